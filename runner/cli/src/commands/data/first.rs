//! The stages of a first pipeline, by what the data allow.

use super::attempt::{Attempt, comment};
use super::contents::days;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use datasets::Date;
use runner_engine::Failure;
use serde_json::Value;
use stages_ingest::propose::{CALENDAR_OF_FACTORS, CHOOSE, is_name_of, scalar, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Days below which dates between training and test are too dear to drop, and episodes are parts of the data.
const FEW: usize = 400;

/// The least number of days: of a quarter for the test, and of training dates behind the warm-up of features.
const LEAST: usize = 20;

/// The maturities of a surface's features in days, the most usual first.
const MATURITIES: [u32; 8] = [30, 60, 14, 90, 7, 180, 3, 365];

/// The share of days on which a chain has to reach a maturity.
const REACHED: f64 = 0.97;

/// The share of missing values above which a column is not observed.
const MOST_MISSING: f64 = 0.02;

/// The most lines to choose from.
const CHOICES: usize = 8;

/// Files, and the stage that reads them.
pub(super) struct Found {
    pub attempt: Attempt,
    /// The days of the rows.
    pub days: BTreeSet<Date>,
    pub rows: usize,
    batches: Vec<RecordBatch>,
}

impl Found {
    pub(super) fn new(attempt: Attempt) -> Result<Self, Failure> {
        let batches = match &attempt.read {
            Some(read) => read.partitions()?,
            None => Vec::new(),
        };
        Ok(Self {
            days: days(&batches),
            rows: batches.iter().map(RecordBatch::num_rows).sum(),
            attempt,
            batches,
        })
    }

    fn meta(&self) -> &Value {
        self.attempt
            .read
            .as_ref()
            .map_or(&Value::Null, |read| &read.artifact.meta)
    }

    fn symbols(&self) -> BTreeSet<String> {
        self.attempt.read.iter().flat_map(|read| read.symbols()).collect()
    }

    /// The share of rows with a value in a column; 0 for a column that is not there.
    fn share(&self, name: &str) -> f64 {
        let columns = self.batches.iter().filter_map(|batch| batch.column_by_name(name));
        let values: usize = columns.map(|column| column.len() - column.null_count()).sum();
        values as f64 / self.rows.max(1) as f64
    }

    /// True if every value of a column is above 0.
    fn is_price(&self, name: &str) -> bool {
        let columns = self.batches.iter().filter_map(|batch| batch.column_by_name(name));
        let mut values = columns.filter_map(|column| column.as_primitive_opt::<Float64Type>());
        values.all(|values| values.iter().flatten().all(|value| value > 0.0))
    }
}

/// Gives stages of one name numbers: `bars`, `bars_2`.
pub(super) fn number(found: &mut [Found]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for found in found {
        let count = seen.entry(found.attempt.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let name = format!("{}_{count}", found.attempt.name);
            let head = format!("  {}:\n", found.attempt.name);
            found.attempt.yaml = found.attempt.yaml.replacen(&head, &format!("  {name}:\n"), 1);
            found.attempt.name = name;
        }
    }
}

/// The stages for the tables.
pub(super) fn stages(found: &[Found]) -> String {
    let of = |name: &str| found.iter().find(|found| found.attempt.name == name);
    if found.is_empty() {
        return include_str!("first/simulated.yaml").to_owned() + &train("recurrent_ppo");
    }
    let (chain, bars, rows) = (of("chain"), of("bars"), of("rows"));
    let with = Others {
        rates: of("rates").is_some(),
        actions: of("actions").is_some(),
        factors: found
            .iter()
            .filter(|found| found.attempt.kind == "ingest/features")
            .map(|found| found.attempt.name.as_str())
            .collect(),
    };
    let mut out = String::new();
    for found in found {
        let name = &found.attempt.name;
        let days_of = match (found.attempt.kind.as_str(), bars, chain) {
            ("ingest/features", Some(_), _) => "    needs: { bars: bars }\n",
            ("ingest/features", None, Some(_)) => "    needs: { chain: chain }\n",
            _ => "",
        };
        let uses = format!("    uses: {}\n", found.attempt.kind);
        let yaml = found.attempt.yaml.replacen(&uses, &format!("{uses}{days_of}"), 1);
        // Bars or a chain give factors their days.
        let calendar = format!("      {CALENDAR_OF_FACTORS}");
        for line in yaml
            .lines()
            .filter(|line| days_of.is_empty() || !line.starts_with(&calendar))
        {
            let _ = writeln!(out, "{line}");
        }
        if name.contains('_') && found.attempt.kind != "ingest/features" {
            let _ = writeln!(
                out,
                "  # `{name}` differs in form from the files before it, and is not used below"
            );
        }
    }
    let (market, behind) = match (chain, bars, rows) {
        (Some(chain), bars, _) => (chain, options(chain, bars, &with)),
        (None, Some(bars), _) => (bars, stocks(bars, &with)),
        (None, None, Some(rows)) => (rows, table(rows)),
        (None, None, None) => {
            out.push_str(
                "  # On their own these give nothing to trade: `runner init` with files of bars or option chains beside them\n  \
                 # makes an environment, a training and its evaluation.\n",
            );
            return out;
        }
    };
    let instants = if market.attempt.name == "rows" {
        market.rows
    } else {
        market.days.len()
    };
    let name = &market.attempt.name;
    let why = match market.attempt.read {
        None => Some(format!(
            "`{name}` does not read its files yet; once it does, remove the marks from these lines"
        )),
        Some(_) if instants < LEAST => Some(format!(
            "finding: {instants} days of {name} are too few to train and to test on; with {LEAST} or more, take the \
             marks away from these lines"
        )),
        Some(_) => None,
    };
    if let Some(why) = why {
        out += &comment("  ", &why);
        for line in behind.lines() {
            let _ = writeln!(out, "  # {}", line.strip_prefix("  ").unwrap_or(line));
        }
        return out;
    }
    out + &behind
}

/// The data that there is beside that of a market.
struct Others<'a> {
    rates: bool,
    actions: bool,
    factors: Vec<&'a str>,
}

impl Others<'_> {
    fn rates(&self) -> &'static str {
        if self.rates { ", rates: rates" } else { "" }
    }

    fn factors(&self) -> String {
        self.factors.iter().map(|name| format!(", {name}")).collect()
    }
}

/// A text of `first/`, with what stands for words in capitals.
fn filled(text: &str, words: &[(&str, &str)]) -> String {
    words
        .iter()
        .fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
}

/// A training of this kind and its evaluation.
fn train(kind: &str) -> String {
    filled(include_str!("first/train.yaml"), &[("KIND", kind)])
}

/// Settings of an environment for so many days.
fn dates(days: usize) -> String {
    match days < FEW {
        // A quarter of the dates is a test, and an episode has a part of the others.
        true => format!(
            "test_fraction: 0.25, purge: 1, embargo: 0, episode_length: {}",
            (days / 4).clamp(2, 60)
        ),
        false => "test_fraction: 0.25".to_owned(),
    }
}

/// The setting that names the prices of bars.
fn price(name: &str, bars: &Found) -> String {
    match bars.share("adjusted_close") > 0.0 {
        true => format!("{name}: adjusted_close, "),
        false => String::new(),
    }
}

/// The maturities that a chain reaches on nearly all of its days, in order.
fn maturities(chain: &Found) -> Vec<u32> {
    let mut reach: BTreeMap<i32, (i32, i32)> = BTreeMap::new();
    for batch in &chain.batches {
        let column = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Date32Type>();
        let (Some(dates), Some(expiries)) = (column("date"), column("expiry")) else {
            continue;
        };
        for (date, expiry) in dates
            .iter()
            .zip(expiries)
            .filter_map(|(date, expiry)| Some((date?, expiry?)))
        {
            let days = expiry - date;
            let (least, most) = reach.entry(date).or_insert((days, days));
            *least = days.min(*least);
            *most = days.max(*most);
        }
    }
    let reaches = |days: &u32| {
        let days = *days as i32;
        let held = reach
            .values()
            .filter(|(least, most)| (*least..=*most).contains(&days))
            .count();
        held as f64 >= REACHED * reach.len() as f64
    };
    let mut found: Vec<u32> = MATURITIES.into_iter().filter(reaches).take(2).collect();
    if found.is_empty() {
        // The longest that every day reaches.
        let longest = reach.values().map(|(_, most)| *most).min().unwrap_or(30);
        found.push(u32::try_from(longest).unwrap_or(0).max(1));
    }
    found.sort_unstable();
    found
}

/// The stages behind an option chain.
fn options(chain: &Found, bars: Option<&Found>, with: &Others<'_>) -> String {
    let classes = chain.meta()["contracts"].as_object().into_iter().flatten();
    let is_american = classes.into_iter().any(|(_, terms)| terms["exercise"] == "american");
    let is_other = |bars: &&Found| bars.symbols().is_disjoint(&chain.symbols());
    let other = bars.filter(is_other).map(|_| {
        "  # The bars have other symbols than the options, and are not used: `--symbol` of `runner init` names the \
         symbol of a file.\n"
    });
    let bars = bars.filter(|bars| !is_other(bars));
    let style = match (is_american, with.rates) {
        (true, true) => "    with: { style: american, forward: rates }\n",
        (true, false) => "    with: { style: american }\n",
        _ => "",
    };
    let maturities: Vec<String> = maturities(chain).iter().map(u32::to_string).collect();
    let features = format!("{}{}", if bars.is_some() { ", technical" } else { "" }, with.factors());
    // Without quotes, orders are filled at the last price.
    let (quotes, fills) = match chain.share("bid") > 0.0 {
        true => ("", ""),
        false => (
            "    # The chain has no bid and ask: orders are filled at its last price, worse by a slippage that is \
             assumed.\n",
            "fills: { quotes: last, slippage: 0.01 }, ",
        ),
    };
    let words = [
        ("QUOTES", quotes),
        ("RATES", with.rates()),
        ("STYLE", style),
        ("MATURITIES", &maturities.join(", ")),
        ("MODEL", if is_american { "american" } else { "analytic" }),
        ("TECHNICAL", &bars.map(technical).unwrap_or_default()),
        ("FEATURES", &features),
        ("ACTIONS", if with.actions { ", actions: actions.actions" } else { "" }),
        ("DATES", &(fills.to_owned() + &dates(chain.days.len()))),
    ];
    other.unwrap_or_default().to_owned()
        + &filled(include_str!("first/options.yaml"), &words)
        + &train("recurrent_ppo")
}

fn technical(bars: &Found) -> String {
    let indicators = match bars.days.len() < FEW {
        true => "[{ log_return: 1 }, { rsi: 5 }]",
        false => "[{ log_return: 1 }, { rsi: 14 }, { macd: [12, 26, 9] }]",
    };
    let price = price("price", bars);
    let words = [("PRICE", price.as_str()), ("INDICATORS", indicators)];
    filled(include_str!("first/technical.yaml"), &words)
}

/// The stages behind daily bars.
fn stocks(bars: &Found, with: &Others<'_>) -> String {
    // Adjusted prices have their corporate actions in them.
    let is_adjusted = bars.share("adjusted_close") > 0.0;
    let actions = if with.actions && !is_adjusted {
        ", actions: actions.actions"
    } else {
        ""
    };
    let words = [
        ("RATES", with.rates()),
        ("ACTIONS", actions),
        ("TECHNICAL", &technical(bars)),
        ("FACTORS", &with.factors()),
        ("PRICES", &price("prices", bars)),
        ("DATES", &dates(bars.days.len())),
    ];
    filled(include_str!("first/stocks.yaml"), &words) + &train("ppo")
}

/// Returns whether the name of a column says that it is paid.
fn is_payment(column: &str) -> bool {
    const WORDS: [&str; 8] = ["pnl", "reward", "return", "profit", "payoff", "fwd", "forward", "ret"];
    words(column)
        .iter()
        .any(|word| WORDS.contains(&word.trim_end_matches('s')))
}

/// The stages behind a table of one's own: the price that is traded is its close, or a question.
fn table(rows: &Found) -> String {
    const PRICES: [&str; 8] = [
        "close",
        "adj close",
        "adj_close",
        "last",
        "price",
        "mid",
        "settle",
        "nav",
    ];
    let columns = rows.meta()["columns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let columns: Vec<&str> = columns.collect();
    let is_called = |column: &str, name: &str| column.eq_ignore_ascii_case(name);
    let price = PRICES
        .iter()
        .find_map(|name| columns.iter().find(|column| is_called(column, name)));
    let closes: Vec<&&str> = columns
        .iter()
        .filter(|column| is_name_of("close", column) && rows.is_price(column))
        .collect();
    let price = price.or(match closes.as_slice() {
        [one] => Some(*one),
        _ => None,
    });
    // Amounts and costs are above 0, too.
    let is_amount = |column: &str| {
        ["volume", "open_interest", "bid_size", "ask_size", "turnover"]
            .iter()
            .any(|ours| is_name_of(ours, column))
            || words(column)
                .iter()
                .any(|word| ["volume", "vol", "spread", "tickvol", "count", "trades"].contains(&&**word))
    };
    let prices: Vec<&&str> = columns
        .iter()
        .filter(|column| rows.is_price(column) && !is_amount(column))
        .collect();
    let price = price.or(match (columns.as_slice(), prices.as_slice()) {
        ([_], [one]) => Some(one),
        _ => None,
    });
    let observed = columns
        .iter()
        .filter(|column| Some(*column) != price && rows.share(column) > 1.0 - MOST_MISSING);
    let observed: Vec<String> = observed.map(|column| scalar(column)).collect();
    let paid = match price {
        Some(price) => format!("      price: {}\n", scalar(price)),
        None => {
            let (paying, others): (Vec<&&str>, Vec<&&str>) =
                columns.iter().partition(|column| is_payment(column));
            let (traded, others): (Vec<&&str>, Vec<&&str>) =
                others.into_iter().partition(|column| prices.contains(column));
            let pays =
                |column: &&str| format!("reward_column: {}   # paid for 1 of position", scalar(column));
            let trades = |column: &&str| format!("price: {}   # a price that is traded", scalar(column));
            let choices = (paying.into_iter().map(pays))
                .chain(traded.into_iter().map(trades))
                .chain(others.into_iter().map(pays));
            let mut lines =
                format!("      # which column is the reward? (remove `{CHOOSE}` from one line)\n");
            for choice in choices.take(CHOICES) {
                let _ = writeln!(lines, "      {CHOOSE}{choice}");
            }
            lines
        }
    };
    // Without `observe`, all columns but those that pay are observed.
    let observe = match (price, observed.len() + 1 < columns.len() || columns.len() == 1) {
        (None, false) => String::new(),
        (Some(price), true) if observed.is_empty() => format!("      observe: [{}]\n", scalar(price)),
        _ => format!("      observe: [{}]\n", observed.join(", ")),
    };
    let has_gaps = price.is_some_and(|price| rows.share(price) < 1.0);
    let paid = if has_gaps {
        paid + "      gaps: drop   # rows without a price are left out\n"
    } else {
        paid
    };
    let instants = rows.rows / rows.symbols().len().max(1);
    let words = [
        ("LENGTH_OF_EPISODES", &*(instants / 4).clamp(2, 250).to_string()),
        ("PURGED_DAYS", if rows.days.len() < 10 { "0" } else { "1" }),
        ("LINE_OF_COLUMNS", observe.as_str()),
        ("LINES_OF_PAY", paid.as_str()),
    ];
    filled(include_str!("first/table.yaml"), &words) + &train("ppo")
}
