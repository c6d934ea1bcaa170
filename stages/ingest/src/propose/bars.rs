//! Daily bars: by their names, as a series of one column, or as a wide table of closes.

use super::column::Column;
use super::proposal::{Proposal, Question, scalar};
use super::rates::is_rate_word;
use super::unknown::{Taken, Unknown};
use datasets::layout::Table;

/// The shares of rows above which an order of prices is refused, and below which another is taken.
const CONTRADICTED: (f64, f64) = (0.5, 0.02);

/// The reason by which the columns of a wide table are closes.
const OTHERS: &str = "every other column is a symbol's";

/// The rows a year below which a series may be one of the economy.
const SELDOM: f64 = 40.0;

impl<'t, 'c> Unknown<'t, 'c> {
    /// Daily bars, by name or as a wide table of closes.
    pub(super) fn bars(&self) -> Option<Proposal> {
        let mut taken = Taken::new();
        let date = self.date()?;
        taken.insert(
            "date",
            (
                date,
                if date.is_called("date") {
                    "its name"
                } else {
                    "the earliest dates"
                },
            ),
        );
        let wanted: Vec<&'static str> = Table::Bars.schema().iter().map(|column| column.name).collect();
        if let Some(symbol) = self.symbol() {
            let why = if symbol.rank("symbol").is_some() {
                "its name"
            } else {
                "its texts, which repeat"
            };
            taken.insert("symbol", (symbol, why));
        }
        // Whole names come before words of names.
        for whole in [true, false] {
            for ours in &wanted {
                let named = self
                    .named(ours, &taken)
                    .filter(|column| column.is_called(ours) == whole);
                if let Some(column) = named.filter(|_| !taken.contains_key(ours)) {
                    taken.insert(ours, (column, "its name"));
                }
            }
        }
        let numbers: Vec<&'t Column<'c>> = self
            .free(&taken)
            .filter(|column| column.numbers.is_some() && column.dates.is_none())
            .collect();
        let is_one = !taken.contains_key("symbol");
        let only = match (numbers.as_slice(), taken.contains_key("close")) {
            ([column], false) if is_one => Some(*column),
            _ => None,
        };
        let close = taken.get("close").map(|(column, _)| *column).or(only);
        let wide = match self.wide(date, &taken) {
            Wide::Perhaps if close.is_none() => Wide::No,
            wide if is_one => wide,
            _ => Wide::No,
        };
        if wide != Wide::No {
            let mut proposal = self.of_layout(Table::Bars, &["date"], &taken);
            proposal.missing.clear();
            match close.filter(|_| wide == Wide::Perhaps) {
                None => proposal.columns.push(("close".to_owned(), "*".to_owned(), OTHERS)),
                Some(close) => proposal.of_columns.push(Question {
                    asked: format!("is `{}` the close, or a symbol like the others?", close.name),
                    notes: Vec::new(),
                    choices: vec![
                        ("close: \"*\"".to_owned(), OTHERS.to_owned()),
                        (format!("close: {}", scalar(close.name)), "the close".to_owned()),
                    ],
                }),
            }
            return Some(proposal);
        }
        let mut series = None;
        if let Some(column) = only {
            // A result of trades may be below 0, and is no price.
            if column.numbers.iter().flatten().any(|value| *value < 0.0) {
                return None;
            }
            if self.is_series(date) || is_rate_word(column.name) {
                series = Some(column);
            } else {
                taken.insert("close", (column, "the only column of numbers"));
            }
        }
        let swapped = reorder(&mut taken);
        let mut proposal = self.of_layout(Table::Bars, &wanted, &taken);
        proposal.doubts.extend(swapped);
        if let Some(column) = series {
            let (date, name) = (scalar(date.name), scalar(column.name));
            proposal.missing.clear();
            proposal.of_columns.push(Question {
                asked: format!("is `{}` a price that is traded?", column.name),
                notes: vec![
                    "An interest rate is read by `ingest/rates`, a series of the economy by".to_owned(),
                    format!("`ingest/features` with `date: {date}, columns: [{name}]`"),
                ],
                choices: vec![(format!("close: {name}"), "a price".to_owned())],
            });
        }
        Some(proposal)
    }

    /// Returns whether every column of numbers is a symbol's closes, though some of the symbols are names of
    /// ours, too: `C`, `OPEN`, `VOL`.
    fn wide(&self, date: &Column<'_>, taken: &Taken<'t, 'c>) -> Wide {
        let numbers: Vec<&Column<'_>> = (self.columns.iter().copied())
            .filter(|column| column.numbers.is_some() && column.name != date.name)
            .collect();
        let are_tickers = numbers.iter().all(|column| is_ticker(column));
        let (named, others): (Vec<&Column<'_>>, Vec<&Column<'_>>) =
            (numbers.iter()).partition(|column| taken.values().any(|(other, _)| other.name == column.name));
        if named.is_empty() {
            return if are_tickers && numbers.len() > 1 {
                Wide::Yes
            } else {
                Wide::No
            };
        }
        // Counts are whole, and no symbol is called `CLOSE`.
        let is_own = |ours: &str, column: &Column<'_>| match ours {
            "close" | "adjusted_close" => column.plain.chars().count() > 1,
            "volume" => column
                .numbers
                .iter()
                .flatten()
                .all(|value| value.is_nan() || value.fract() == 0.0),
            _ => false,
        };
        let symbols = others.iter().filter(|column| is_symbol(column)).count();
        if symbols == 0 || taken.iter().any(|(ours, (column, _))| is_own(ours, column)) || are_ordered(taken)
        {
            return Wide::No;
        }
        match (are_tickers, symbols) {
            (true, 1) => Wide::Perhaps,
            (true, _) => Wide::Yes,
            (false, 1) => Wide::No,
            (false, _) => Wide::Perhaps,
        }
    }

    /// Returns whether one number a date, below a code, may be of the economy rather than a price: it is
    /// seldom, or its dates are headed as those of such series.
    fn is_series(&self, date: &Column<'_>) -> bool {
        let Some(dates) = &date.dates else { return false };
        let years = f64::from(dates.range.1.0 - dates.range.0.0) / 365.25;
        let count = dates.by_row.iter().flatten().count();
        ["DATE", "observation_date"].contains(&date.name.trim()) && self.columns.len() == 2
            || count > 2 && ((count - 1) as f64) < SELDOM * years
    }
}

/// The reading of a table as closes of which each column is a symbol's.
#[derive(Clone, Copy, PartialEq)]
enum Wide {
    Yes,
    /// Asked for.
    Perhaps,
    No,
}

/// Returns whether a column of numbers above 0 has a name that symbols have, and that neither abbreviates a
/// value of a bar nor names an indicator.
fn is_symbol(column: &Column<'_>) -> bool {
    const ABBREVIATIONS: &str = "\
        a b d i n p t v vw vwap oi pct chg change ret return sma ema wma rsi macd atr adx cci obv \
        roc mom std var signal beta bid ask mid spread count trades split splits dividend dividends \
        factor value amount turnover";
    let name = &column.plain;
    // `SMA20`, `RSI14`.
    let is_indicator = name.starts_with(char::is_alphabetic) && name.ends_with(|c: char| c.is_ascii_digit());
    let mut values = column.numbers.iter().flatten();
    !is_indicator
        && name.len() <= 10
        && column.name.split_whitespace().count() == 1
        && !column.name.contains('_')
        && !ABBREVIATIONS.split(' ').any(|word| word == name)
        && values.all(|value| value.is_nan() || *value > 0.0)
}

/// Returns whether two or more columns of prices are in their order in nearly every row.
fn are_ordered(taken: &Taken<'_, '_>) -> bool {
    let values = |ours: &str| taken.get(ours).and_then(|(column, _)| column.numbers.as_ref());
    let others = ["open", "close"].map(values);
    let (low, high) = (values("low"), values("high"));
    let pairs = [
        (low, high),
        (low, others[0]),
        (low, others[1]),
        (others[0], high),
        (others[1], high),
    ];
    let mut any = false;
    for (less, more) in pairs.into_iter().filter_map(|(less, more)| less.zip(more)) {
        let wrong = less.iter().zip(more).filter(|(less, more)| less > more).count();
        // Symbols of very different prices are in order, too.
        let far = less
            .iter()
            .zip(more)
            .filter(|(less, more)| **more > 1.5 * **less)
            .count();
        if (wrong + far) as f64 > CONTRADICTED.1 * less.len() as f64 {
            return false;
        }
        any = true;
    }
    any
}

/// Returns whether a column of numbers above 0 has the name of a symbol.
fn is_ticker(column: &Column<'_>) -> bool {
    let name = column.name.trim();
    let is_mark = |c: char| ".-=^/:_ ".contains(c);
    let is_name = name.chars().any(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || is_mark(c))
        && name.len() <= 14;
    let mut values = column.numbers.iter().flatten();
    is_name && values.all(|value| value.is_nan() || *value > 0.0)
}

/// Assigns the columns of prices anew where their values, which are of one size, contradict
/// `low <= open, close <= high`, and says so.
fn reorder(taken: &mut Taken<'_, '_>) -> Option<String> {
    const ROLES: [&str; 4] = ["open", "high", "low", "close"];
    let mut columns = Vec::new();
    for role in ROLES {
        columns.push(taken.get(role)?.0);
    }
    let values: Vec<&Vec<f64>> = columns
        .iter()
        .map(|column| column.numbers.as_ref())
        .collect::<Option<_>>()?;
    let broken = |order: [usize; 4]| {
        let [open, high, low, close] = order.map(|at| values[at]);
        let rows = (0..open.len()).filter(|row| {
            let (low, high) = (low[*row], high[*row]);
            let slack = high.abs() * 1e-4;
            [open[*row], close[*row]]
                .iter()
                .any(|price| *price < low - slack || *price > high + slack)
                // A decimal comma that is taken for one of thousands is no matter of order.
                || high > 5.0 * low
        });
        rows.count() as f64 / open.len().max(1) as f64
    };
    if broken([0, 1, 2, 3]) <= CONTRADICTED.0 {
        return None;
    }
    let mut orders: Vec<[usize; 4]> = Vec::new();
    for open in 0..4 {
        for high in (0..4).filter(|at| *at != open) {
            for low in (0..4).filter(|at| *at != open && *at != high) {
                orders.push([open, high, low, 6 - open - high - low]);
            }
        }
    }
    let kept = |order: &[usize; 4]| (0..4).filter(|at| order[*at] == *at).count();
    let best = orders
        .into_iter()
        .filter(|order| broken(*order) < CONTRADICTED.1)
        .max_by_key(|order| kept(order))?;
    let mut names = Vec::new();
    for (role, at) in ROLES.into_iter().zip(best) {
        let column = columns[at];
        if taken.get(role).is_some_and(|(other, _)| other.name != column.name) {
            names.push(format!("`{}` is {role}", column.name));
            taken.insert(role, (column, "its values: low <= open, close <= high"));
        }
    }
    Some(format!("the values contradict the names: {}", names.join(", ")))
}

/// Names for the columns of a file without a header, by the cells of its first row: a day, a time of day,
/// prices in their usual order, and a volume. A fifth price, which is no volume, is an adjusted close.
pub fn names_of(cells: &[String]) -> Vec<String> {
    let values: Vec<[String; 1]> = cells.iter().map(|cell| [cell.trim().to_owned()]).collect();
    let columns: Vec<Column<'_>> = values.iter().map(|value| Column::of("", value)).collect();
    let date = columns.iter().position(|column| column.dates.is_some());
    let number = |(at, column): (usize, &Column<'_>)| match &column.numbers {
        Some(numbers) if Some(at) != date => numbers.first().copied(),
        _ => None,
    };
    let numbers: Vec<f64> = columns.iter().enumerate().filter_map(number).collect();
    let names: &[&str] = match numbers[..] {
        // A day and one number are a series of closes.
        [_] if cells.len() == 2 => &["close"],
        [_, _, _, close, adjusted, _] if date.is_some() && 0.0 < adjusted && adjusted <= 1.5 * close => {
            &["open", "high", "low", "close", "adjusted_close", "volume"]
        }
        _ => &["open", "high", "low", "close", "volume"],
    };
    let mut names = names.iter();
    let name = |(at, column): (usize, &Column<'_>)| {
        let name = match column.numbers {
            _ if Some(at) == date => Some(&"date"),
            Some(_) => names.next(),
            None => (column.has_times || cells[at].contains(':')).then_some(&"time"),
        };
        name.map_or_else(|| format!("column_{}", at + 1), |name| (*name).to_owned())
    };
    columns.iter().enumerate().map(name).collect()
}
