//! `ingest/option_chain` as a stage.

use super::classes::Classes;
use super::columns::{ASK, BID, Chain, LAST, OPEN_INTEREST, UNDERLYING, VOLUME};
use super::config::{ChainConfig, UnderlyingChoice};
use super::quotes::Quotes;
use super::rules::{Rules, Seen};
use super::{classes, intraday, parity, parse};
use crate::bars;
use crate::file_memo::Reading;
use crate::layout_choice::Chosen;
use crate::options::Treatment;
use crate::read;
use crate::table_input::{self, Files, TABLE, check_origin};
use crate::value::OUT_OF_RANGE;
use datasets::contract::{Contracts, Exercise, Expires, Terms};
use datasets::layout::{Layout, Table};
use datasets::quality::{Action, CHAIN, Tally};
use datasets::{Date, schema};
use serde_json::{Value, json};
use stages_core::corporate_actions;
use stages_core::dataset::{self, Period};
use stages_core::{
    ConfigProblem, Context, Given, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, Share,
    Source, StageError, StageEvent, StageKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// `ingest/option_chain`.
pub struct OptionChain;

/// The prefix of the names of the files of the underlying, among the sources.
const UNDERLYING_FILES: &str = "underlying:";

impl StageKind for OptionChain {
    type Config = ChainConfig;
    const NAME: &'static str = "ingest/option_chain";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "option quotes from files, checked and counted";
    const NOT_IN_KEY: &'static [&'static str] = &["path", "underlying_path"];
    const PORTS: Ports = Ports {
        inputs: &[
            InputPort {
                name: "actions",
                ty: PortType::CorporateActions,
                optional: true,
                list: false,
                doc: "the corporate actions that explain jumps of strikes and prices",
            },
            TABLE,
        ],
        outputs: &[OutputPort {
            name: "chain",
            ty: PortType::OptionChain,
            doc: "the quotes, with the data-quality table in its metadata",
        }],
    };

    fn check(&self, config: &ChainConfig, plan: &PlanContext) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        config.check()?;
        check_origin(&config.path, plan)?;
        let (chosen, sources) = config.layout.open(Table::Chain, &self.sources(config, plan.base)?)?;
        let (sources, underlying) = split(&sources);
        if !underlying.is_empty() {
            table_input::columns("underlying_path", &underlying, Table::Bars, &Chosen::Auto)?;
        }
        let Some(mut columns) = table_input::columns("path", &sources, Table::Chain, &chosen)? else {
            return Ok(BTreeMap::from([(
                "chain".to_owned(),
                Provided::unknown(PortType::OptionChain),
            )]));
        };
        columns.extend(
            schema::OPTION_CHAIN
                .iter()
                .filter(|c| !c.nullable)
                .map(|c| c.name.to_owned()),
        );
        let quoted = columns.contains("bid") && columns.contains("ask");
        match (&config.quotes, quoted, columns.contains("last")) {
            (Quotes::FromLast(_), true, _) => {
                return Err(ConfigProblem::new("quotes", "the files have quotes of their own")
                    .hint("`from_last` is for files that have closes alone; leave it out"));
            }
            (Quotes::FromLast(_), false, true) => columns.extend(["bid".to_owned(), "ask".to_owned()]),
            (_, false, false) => {
                return Err(ConfigProblem::new(
                    "path",
                    "the files have neither bid and ask nor a last price",
                ));
            }
            _ => {}
        }
        if config.underlying == UnderlyingChoice::Quoted && !columns.contains("underlying") {
            return Err(
                ConfigProblem::new("underlying", "the files have no price of the underlying")
                    .hint("`underlying: parity` derives it from the options, `underlying_path` takes it from bars"),
            );
        }
        columns.insert("underlying".to_owned());
        columns.insert(schema::TRADABLE.name.to_owned());
        Ok(BTreeMap::from([(
            "chain".to_owned(),
            Provided::columns(PortType::OptionChain, columns),
        )]))
    }

    fn sources(&self, config: &ChainConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let mut sources = config.path.find_any("path", base)?;
        if !config.underlying_path.is_empty() {
            for mut source in config.underlying_path.find("underlying_path", base)? {
                source.name = format!("{UNDERLYING_FILES}{}", source.name);
                sources.push(source);
            }
        }
        sources.extend(config.layout.source(base)?);
        sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(sources)
    }

    fn run(&self, config: &ChainConfig, context: &Context) -> Result<Outputs, StageError> {
        let given = Files::open(&context.given())?;
        let (chosen, sources) = config.layout.open(Table::Chain, &given.sources)?;
        let (sources, underlying) = split(&sources);
        let mut chain = Chain::default();
        let mut layouts: Vec<Layout> = Vec::new();
        let reasons = read::each(context, &reading(config, &chosen), &sources, |layout, batch| {
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
            chain.append(&batch)
        })?;
        layouts.sort_by(|a, b| a.name.cmp(&b.name));
        let terms = config.terms()?;
        let layout = classes::terms_of_all(&layouts, &terms)?;
        let mut tally = Tally::new(CHAIN);
        filter(&mut chain, config, &mut tally);
        if chain.is_empty() {
            return Err(
                StageError::new("no row is left: the files hold none of these symbols and dates")
                    .hint("see `symbols` and `dates`"),
            );
        }
        let read_rows = chain.len() as u64 + tally.out_of_range();
        count_single_precision(&chain, &mut tally);
        context.check_cancelled()?;
        context.progress(0, None, "checking");

        let facts = layouts.first().map(|layout| layout.facts.clone());
        let facts = facts.ok_or_else(|| StageError::new("there is no file to read"))?;
        let stated = classes::settle(&mut chain, &terms, &layout);
        let other_snapshots = intraday::choose(&mut chain, config.snapshot)?;
        if other_snapshots > 0 {
            context.log(format!(
                "{other_snapshots} rows of other snapshots of a day are left out"
            ));
        }
        let Classes {
            mut contracts,
            calendar,
            warnings,
        } = classes::facts(&chain, &stated, config, &terms, &layout)?;
        for message in warnings {
            context.events.emit(StageEvent::Warning {
                message,
                hint: Some("state the terms of the contracts with `contract: { … }` in this stage".to_owned()),
            });
        }
        let mut seen = Seen::default();
        let is_morning = |root: &str| {
            let mut classes = contracts.iter().filter(|(class, _)| *class == root);
            classes.any(|(_, facts)| facts.terms.expires == Some(Expires::Am))
        };
        let quoted = chain.has(BID) || chain.has(ASK);
        let is_american = |symbol: &str| {
            let mut classes = contracts.iter().filter(|(_, facts)| facts.symbol == symbol);
            classes.any(|(_, facts)| facts.terms.exercise == Some(Exercise::American))
        };
        let ticks: Vec<f64> = contracts
            .iter()
            .map(|(_, facts)| tick_of(facts.terms.currency.as_deref()))
            .collect();
        let corporate = corporate_actions::open(&context.given(), "actions")?;
        let rules = Rules {
            bad: &config.on_bad_rows,
            calendar,
            is_morning: &is_morning,
            is_american: &is_american,
            quoted,
            counted: chain.has(VOLUME) || chain.has(OPEN_INTEREST),
            // The smallest of all: of several currencies, none is checked by the step of another.
            tick: config
                .tick
                .unwrap_or_else(|| ticks.iter().copied().reduce(f64::min).unwrap_or(0.0)),
            actions: &corporate,
        };
        rules.clean(&mut chain, &mut seen, &mut tally);
        seen.count_missing_days(calendar, &mut tally);
        context.check_cancelled()?;

        let underlying = price_underlying(config, context, &mut chain, &underlying, facts.daily_limit, &mut tally)?;
        classes::convert_coin_quotes(&mut chain, &contracts);
        let quotes = match &config.quotes {
            Quotes::AsGiven => json!("as_given"),
            Quotes::FromLast(_) if quoted => {
                return Err(StageError::new("the files have quotes of their own").hint("leave `quotes` out"));
            }
            Quotes::FromLast(from_last) => {
                from_last.fill(&mut chain);
                json!({ "from_last": from_last })
            }
        };
        rules.check_prices(&mut chain, &mut seen, &mut tally);
        let treatment = Treatment {
            bad: &config.on_bad_rows,
            most: &config.max_dropped,
        };
        treatment.apply(context, &tally, read_rows - other_snapshots, chain.len() as u64)?;
        if chain.is_empty() {
            return Err(
                StageError::new("no good row is left").hint("`on_bad_rows: keep` keeps the bad ones, to be looked at")
            );
        }

        let snapshots = chain.snapshots();
        let period = config
            .partition
            .resolve(snapshots.first().map_or(0, ExactSizeIterator::len), Period::Month);
        classes::retain(&mut contracts, &chain);
        let mut meta = describe(&chain, &contracts);
        meta["layout"] = json!(layouts.iter().map(|layout| &layout.name).collect::<Vec<_>>());
        meta["recognised"] = json!(reasons);
        meta["calendar"] = json!(calendar);
        meta["underlying"] = json!(underlying);
        meta["quotes"] = quotes;
        meta["rows_read"] = json!(read_rows);
        meta["rows_of_other_snapshots"] = json!(other_snapshots);
        meta["rows"] = json!(chain.len());
        meta["untradable"] = json!((0..chain.len()).filter(|row| !chain.is_tradable(*row)).count());
        meta["snapshots"] = json!(snapshots.len());
        meta["quality"] = json!(tally.findings(|rule| config.on_bad_rows.action(rule)));
        context.progress(0, None, "writing");
        let of = |i: usize| (chain.name(chain.symbol[i]), Date(chain.date[i]));
        let partitions = dataset::partition_rows(&context.store, chain.len(), period, of, |rows| chain.to_table(rows))?;
        let digest = dataset::write(&context.store, PortType::OptionChain, meta, partitions)?;
        Ok(Outputs::from([("chain".to_owned(), digest)]))
    }

    fn cached_share(&self, config: &ChainConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        let Some(files) = Files::open_local(given) else {
            return Ok(None);
        };
        let (chosen, sources) = config.layout.open(Table::Chain, &files.sources)?;
        let (sources, underlying) = split(&sources);
        let mut share = reading(config, &chosen).share(given, &sources)?;
        let of_bars = bars::reading(&Chosen::Auto, "").share(given, &underlying)?;
        share.cached += of_bars.cached;
        share.total += of_bars.total;
        Ok(Some(share))
    }
}

fn reading<'a>(config: &'a ChainConfig, chosen: &'a Chosen) -> Reading<'a> {
    Reading {
        memo: "ingest/option_chain file v4",
        table: Table::Chain,
        chosen,
        symbol: &config.symbol,
        parse: parse::parse,
    }
}

/// The smallest step of option prices in a currency, where all exchanges of it have the same one.
fn tick_of(currency: Option<&str>) -> f64 {
    match currency {
        Some("USD") => 0.01,
        Some("CNY") => 0.0001,
        _ => 0.0,
    }
}

/// The chain's own files, and those of the underlying.
fn split(sources: &[Source]) -> (Vec<Source>, Vec<Source>) {
    sources
        .iter()
        .cloned()
        .partition(|source| !source.name.starts_with(UNDERLYING_FILES))
}

/// Keeps the rows of the wanted symbols and dates; those whose date or expiry is out of range are counted.
fn filter(chain: &mut Chain, config: &ChainConfig, tally: &mut Tally) {
    let symbols: Vec<bool> = chain
        .names
        .texts
        .iter()
        .map(|name| config.symbols.is_empty() || config.symbols.contains(name))
        .collect();
    let keep: Vec<bool> = (0..chain.len())
        .map(|i| {
            let (date, expiry) = (Date(chain.date[i]), Date(chain.expiry[i]));
            if !symbols[chain.symbol[i] as usize] {
                return false;
            }
            if date == OUT_OF_RANGE || expiry == OUT_OF_RANGE {
                tally.add_out_of_range();
                return false;
            }
            config.dates.is_none_or(|dates| dates.contains(date))
        })
        .collect();
    chain.retain(&keep);
}

/// Fills the underlying's price and returns its source.
fn price_underlying(
    config: &ChainConfig,
    context: &Context,
    chain: &mut Chain,
    files: &[Source],
    limit: f64,
    tally: &mut Tally,
) -> Result<&'static str, StageError> {
    let quoted = chain.has(UNDERLYING);
    match config.underlying {
        UnderlyingChoice::Quoted => Ok("quoted"),
        UnderlyingChoice::Auto if files.is_empty() && quoted => Ok("quoted"),
        UnderlyingChoice::Auto | UnderlyingChoice::File if !files.is_empty() => {
            let closes = bars::closes(context, files)?;
            let symbols: BTreeSet<u32> = chain.symbol.iter().copied().collect();
            for i in 0..chain.len() {
                let name = chain.name(chain.symbol[i]);
                let of_symbol = closes.get(name).or_else(|| {
                    // One underlying and one series of bars: they belong together even if their symbols differ.
                    (closes.len() == 1 && symbols.len() == 1)
                        .then(|| closes.values().next())
                        .flatten()
                });
                let close = of_symbol.and_then(|days| days.get(&Date(chain.date[i])));
                chain.values[UNDERLYING][i] = close.copied().unwrap_or(f64::NAN);
            }
            if !chain.has(UNDERLYING) {
                return Err(
                    StageError::new("the bars at `underlying_path` have no close on any of the chain's days").hint(
                        format!("they hold {}", closes.keys().cloned().collect::<Vec<_>>().join(", ")),
                    ),
                );
            }
            Ok("file")
        }
        _ => {
            let bound = config.on_bad_rows.of(CHAIN, "underlying_beyond_limit") != Action::Keep;
            parity::fill_underlying(chain, limit, bound, tally);
            Ok("parity")
        }
    }
}

/// Counts the rows whose strike was read from single precision, of the symbols and days that are left.
fn count_single_precision(chain: &Chain, tally: &mut Tally) {
    let left: BTreeSet<(u32, i32)> = chain.symbol.iter().copied().zip(chain.date.iter().copied()).collect();
    for (key, rows) in &chain.single_precision {
        if left.contains(key) {
            tally.add("single_precision", Date(key.1), *rows);
        }
    }
}

/// The metadata of the chain: the contracts, and the columns that have values.
fn describe(chain: &Chain, contracts: &Contracts) -> Value {
    let symbols: BTreeSet<&str> = contracts.classes.values().map(|facts| facts.symbol.as_str()).collect();
    let mut styles: BTreeMap<&str, Exercise> = BTreeMap::new();
    for facts in contracts.classes.values() {
        if let Some(exercise) = facts.terms.exercise {
            styles.entry(facts.symbol.as_str()).or_insert(exercise);
        }
    }
    let kinds: BTreeSet<Exercise> = styles.values().copied().collect();
    // A summary for people; stages read `contracts`.
    let common = |term: fn(&Terms) -> Option<Value>| {
        let of_symbols: Vec<_> = symbols.iter().map(|symbol| contracts.common(symbol, term)).collect();
        match of_symbols.as_slice() {
            [Ok(Some(first)), rest @ ..] if rest.iter().all(|other| other.as_ref() == Ok(&Some(first.clone()))) => {
                first.clone()
            }
            _ => Value::Null,
        }
    };
    json!({
        "symbols": symbols,
        "contracts": contracts,
        "currency": common(|terms| terms.currency.as_deref().map(Value::from)),
        "multiplier": common(|terms| terms.multiplier.map(Value::from)),
        // One word where all underlyings agree, otherwise by symbol.
        "exercise": match Vec::from_iter(kinds).as_slice() {
            [one] => json!(one),
            _ => json!(styles),
        },
        "settlement": contracts
            .iter()
            .map(|(root, facts)| (root, facts.terms.expires))
            .collect::<BTreeMap<_, _>>(),
        "has": {
            "quotes": chain.has(BID) || chain.has(ASK),
            "last": chain.has(LAST),
        },
    })
}
