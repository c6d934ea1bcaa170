//! Perturbed data after a date. Each cell keeps its type and stays plausible, so that checks of data still pass: integers stay integers, a text
//! is another text of its column, a high is the highest price of its bar. No ratio of two cells is preserved.

use super::change::About;
use super::document::{Cell, Document, Row};
use super::moment::{self, Stamp};
use datasets::Date;
use std::collections::{BTreeMap, BTreeSet};

/// Parts of the names of columns that identify a row.
const KEYS: [&str; 17] = [
    "strike",
    "tenor",
    "expir",
    "matur",
    "years",
    "dte",
    "right",
    "root",
    "call",
    "multiplier",
    "unixtime",
    "readtime",
    "cusip",
    "isin",
    "currency",
    "exchange",
    "option_type",
];

/// Names of columns with the symbol of a row.
const SYMBOLS: [&str; 17] = [
    "symbol",
    "tic",
    "ticker",
    "sym",
    "stock",
    "asset",
    "instrument",
    "security",
    "code",
    "permno",
    "gvkey",
    "name",
    "pair",
    "coin",
    "act_symbol",
    "underlying_symbol",
    "company",
];

/// The most values of a column of codes.
const CODES: usize = 12;

/// A pseudo-random number from 0 to 1 of a moment and a position.
fn chance(stamp: Stamp, place: u64) -> f64 {
    let mut x = (stamp.start / 1000).cast_unsigned().rotate_left(20)
        ^ place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The finaliser of splitmix64.
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The role of a column in perturbation.
enum Role {
    /// Left as it is: a date, a key.
    Fixed,
    /// Numbers between bounds.
    Number {
        low: f64,
        high: f64,
    },
    /// One of some integers, or texts.
    Codes(Vec<Cell>),
    Flag,
    /// Days that are not those of the row.
    Date,
}

/// The column of symbols: by its name, or a text that differs in the rows of each date.
pub fn symbol_column(document: &Document) -> Option<usize> {
    let schema = document.batch.schema();
    let name = |i: usize| schema.field(i).name().trim().to_ascii_lowercase();
    let others = || (0..schema.fields().len()).filter(|&i| Some(i) != document.date);
    let named = others().find(|&i| SYMBOLS.contains(&name(i).as_str()));
    named.or_else(|| {
        others().find(|&i| {
            let Some(cells) = moment::texts(document.batch.column(i).as_ref()) else {
                return false;
            };
            let is_text = cells.iter().flatten().all(|cell| cell.parse::<f64>().is_err());
            let distinct: BTreeSet<&str> = cells.iter().flatten().map(String::as_str).collect();
            let rows: BTreeSet<(i64, &str)> = cells
                .iter()
                .zip(&document.stamps)
                .filter_map(|(cell, stamp)| Some((stamp.start, cell.as_deref()?)))
                .collect();
            let dates: BTreeSet<i64> = document.stamps.iter().map(|stamp| stamp.start).collect();
            let is_key = rows.len() == cells.len() && dates.len() < cells.len();
            is_text && is_key && distinct.len() > 1 && distinct.len() < cells.len() / 2
        })
    })
}

/// The symbol of a row; empty where there is none.
pub fn symbol(document: &Document, column: Option<usize>, row: usize) -> String {
    match column.map(|column| document.cell(row, column)) {
        Some(Cell::Text(text)) => text,
        Some(Cell::Int(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn role(document: &Document, column: usize, symbols: Option<usize>) -> Role {
    let schema = document.batch.schema();
    let name = schema.field(column).name().to_ascii_lowercase();
    if Some(column) == document.date
        || Some(column) == symbols
        || KEYS.iter().any(|key| name.contains(key))
        || name.ends_with("id")
        || name.trim() == "time"
    {
        return Role::Fixed;
    }
    let cells: Vec<Cell> = (0..document.batch.num_rows())
        .map(|row| document.cell(row, column))
        .filter(|cell| *cell != Cell::Null)
        .collect();
    let all = |is: &dyn Fn(&Cell) -> bool| !cells.is_empty() && cells.iter().all(is);
    if all(&|cell| matches!(cell, Cell::Bool(_))) {
        return Role::Flag;
    }
    if all(&|cell| matches!(cell, Cell::Date(_))) {
        return Role::Date;
    }
    let distinct = |of: &dyn Fn(&Cell) -> String| -> Vec<Cell> {
        let found: BTreeMap<String, &Cell> = cells.iter().map(|cell| (of(cell), cell)).collect();
        found.into_values().cloned().collect()
    };
    let numbers: Option<Vec<f64>> = cells
        .iter()
        .map(|cell| match cell {
            Cell::Int(value) => Some(*value as f64),
            Cell::Float(value) => Some(*value),
            _ => None,
        })
        .collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let codes = distinct(&|cell| format!("{cell:?}"));
            let is_time = moment::of_texts(
                &cells
                    .iter()
                    .map(|cell| {
                        if let Cell::Int(value) = cell {
                            value.to_string()
                        } else {
                            String::new()
                        }
                    })
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
                name.contains("time"),
            )
            .is_some();
            if is_time {
                return Role::Fixed;
            }
            let few = codes.len() > 1 && codes.len() <= CODES && numbers.len() > 4 * codes.len();
            if few && all(&|cell| matches!(cell, Cell::Int(_))) {
                return Role::Codes(codes);
            }
            let finite = || numbers.iter().copied().filter(|value| value.is_finite());
            let (least, most) = (
                finite().fold(f64::INFINITY, f64::min),
                finite().fold(f64::NEG_INFINITY, f64::max),
            );
            let high = if most <= 1.0 && least >= -1.0 {
                1.0
            } else {
                f64::INFINITY
            };
            let low = if least >= 0.0 {
                0.0
            } else if least >= -1.0 && high <= 1.0 {
                -1.0
            } else {
                f64::NEG_INFINITY
            };
            Role::Number { low, high }
        }
        _ if all(&|cell| matches!(cell, Cell::Text(_))) => {
            let texts: Vec<String> = cells
                .iter()
                .map(|cell| {
                    if let Cell::Text(text) = cell {
                        text.clone()
                    } else {
                        String::new()
                    }
                })
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let choices = distinct(&|cell| format!("{cell:?}"));
            match choices.len() > 1 && moment::of_texts(&texts, false).is_none() {
                true => Role::Codes(choices),
                false => Role::Fixed,
            }
        }
        _ => Role::Fixed,
    }
}

/// The roles of all columns.
struct Roles {
    symbols: Option<usize>,
    roles: Vec<Role>,
    names: Vec<String>,
}

impl Roles {
    fn new(document: &Document) -> Self {
        let symbols = symbol_column(document);
        let columns = 0..document.batch.num_columns();
        Self {
            roles: columns.map(|column| role(document, column, symbols)).collect(),
            names: document
                .batch
                .schema()
                .fields()
                .iter()
                .map(|field| field.name().trim().to_ascii_lowercase())
                .collect(),
            symbols,
        }
    }

    /// Other values of a row: numbers times `factor`, and 5 to 15 % up or down.
    fn changes(&self, document: &Document, row: usize, factor: f64) -> Vec<(usize, Cell)> {
        let stamp = document.stamps[row];
        let of_symbol = hash(&symbol(document, self.symbols, row));
        let up = chance(stamp, of_symbol) < 0.5;
        let mut changes = Vec::new();
        for (column, role) in self.roles.iter().enumerate() {
            let place = (row as u64) << 16 | column as u64;
            let noise = 0.05 + 0.09 * chance(stamp, of_symbol ^ 7) + 0.01 * chance(stamp, place);
            let factor = factor * if up { 1.0 + noise } else { 1.0 - noise };
            let old = document.cell(row, column);
            let new = match (role, &old) {
                (Role::Number { low, high }, Cell::Int(value)) => {
                    let scaled = (*value as f64 * factor).round().clamp(*low, *high);
                    let scaled = if scaled as i64 == *value {
                        scaled as i64 + if up || *low >= 0.0 && *value <= 0 { 1 } else { -1 }
                    } else {
                        scaled as i64
                    };
                    Cell::Int(scaled)
                }
                (Role::Number { low, high }, Cell::Float(value)) if value.is_finite() => {
                    Cell::Float(self.float(column, *value, factor, *low, *high))
                }
                (Role::Codes(choices), old) if !matches!(old, Cell::Null) => {
                    // About half of the cells.
                    let others: Vec<&Cell> = choices.iter().filter(|choice| *choice != old).collect();
                    let pick = (chance(stamp, place ^ 11) * 2.0 * others.len() as f64) as usize;
                    match others.get(pick) {
                        Some(other) => (*other).clone(),
                        None => continue,
                    }
                }
                (Role::Flag, Cell::Bool(value)) if chance(stamp, place) < 0.5 => Cell::Bool(!value),
                (Role::Date, Cell::Date(day)) if chance(stamp, place) < 0.5 => Cell::Date(day + 7),
                _ => continue,
            };
            if new != old {
                changes.push((column, new));
            }
        }
        self.order(document, row, &mut changes);
        changes
    }

    fn float(&self, column: usize, value: f64, factor: f64, low: f64, high: f64) -> f64 {
        // A contract without a bid stays without one.
        if value == 0.0 && ["bid", "volume", "open_interest"].contains(&self.names[column].as_str()) {
            return value;
        }
        let new = if value == 0.0 {
            1e-3 * factor.abs()
        } else {
            value * factor
        };
        let new = new.clamp(low, high);
        // At a bound, to the other side of it.
        if new == value {
            value * 0.9 + if value == 0.0 { 1e-3 } else { 0.0 }
        } else {
            new
        }
    }

    /// Moves prices beyond others, as checks of data require: the low is the minimum of its bar.
    fn order(&self, document: &Document, row: usize, changes: &mut Vec<(usize, Cell)>) {
        type Rule<'r> = (&'r str, &'r [&'r str], fn(f64, f64) -> f64);
        let rules: [Rule; 3] = [
            ("low", &["open", "close", "high"], f64::min),
            ("high", &["open", "close", "low"], f64::max),
            ("ask", &["bid"], f64::max),
        ];
        for (name, others, beyond) in rules {
            let place = |name: &str| self.names.iter().position(|other| other == name);
            let value = |column: usize, changes: &[(usize, Cell)]| {
                let changed = changes
                    .iter()
                    .find(|(changed, _)| *changed == column)
                    .map(|(_, cell)| cell.clone());
                match changed.unwrap_or_else(|| document.cell(row, column)) {
                    Cell::Float(value) => Some(value),
                    Cell::Int(value) => Some(value as f64),
                    _ => None,
                }
            };
            let Some(column) = place(name) else { continue };
            let Some(old) = value(column, changes) else { continue };
            let new = others
                .iter()
                .filter_map(|other| value(place(other)?, changes))
                .fold(old, beyond);
            if new != old {
                let is_int = matches!(document.cell(row, column), Cell::Int(_));
                changes.retain(|(changed, _)| *changed != column);
                changes.push((
                    column,
                    if is_int {
                        Cell::Int(new as i64)
                    } else {
                        Cell::Float(new)
                    },
                ));
            }
        }
    }
}

/// All rows, those after the moment with other values.
pub fn values(document: &Document, until: i64) -> Vec<Row> {
    let roles = Roles::new(document);
    let row = |from: usize| Row {
        from,
        changes: match document.stamps[from].end <= until {
            true => Vec::new(),
            false => roles.changes(document, from, 1.0),
        },
    };
    (0..document.stamps.len()).map(row).collect()
}

/// Other rows after the moment: a fifth of the dates and some rows are gone, symbols end and begin, dates are added at the end, and each symbol's
/// values are multiplied by a factor of its own, so that ranks change.
pub fn rows(document: &Document, about: &About) -> Vec<Row> {
    let roles = Roles::new(document);
    let named: Vec<String> = (0..document.stamps.len())
        .map(|row| symbol(document, roles.symbols, row))
        .collect();
    let in_order = document.stamps.is_sorted();
    let per_date =
        document.stamps.windows(2).any(|pair| pair[0] == pair[1]) || named.iter().any(|symbol| *symbol != named[0]);
    let is_panel = about.may_grow && !about.delisted.is_empty() && per_date;
    let last = document.stamps.iter().max();
    let (mut rows, mut added) = (Vec::new(), Vec::new());
    for (from, &stamp) in document.stamps.iter().enumerate() {
        if stamp.end <= about.until {
            rows.push(Row {
                from,
                changes: Vec::new(),
            });
            continue;
        }
        let symbol = &named[from];
        // The last date stays, so that later rows exist as in the original.
        let gone = Some(&stamp) != last && chance(stamp, 3) < 0.2
            || per_date && chance(stamp, hash(symbol) ^ from as u64) < 0.05;
        if gone || about.delisted.contains(symbol) {
            continue;
        }
        let factor = [0.45, 0.7, 1.5, 2.2][(hash(symbol) % 4) as usize];
        rows.push(Row {
            from,
            changes: roles.changes(document, from, factor),
        });
        if let (true, Some(column), Some(new)) = (is_panel, roles.symbols, new_symbol(symbol, &named)) {
            let mut changes = roles.changes(document, from, 1.3 / factor);
            changes.push((column, Cell::Text(new)));
            let row = Row { from, changes };
            if in_order { rows.push(row) } else { added.push(row) }
        }
    }
    rows.extend(added);
    // No moment is left without rows after it, so that the change is one.
    if let (true, Some(last)) = (
        in_order && about.may_grow && document.date.is_some(),
        document.stamps.last(),
    ) {
        let of_last: Vec<usize> = (0..document.stamps.len())
            .filter(|&row| document.stamps[row] == *last && !about.delisted.contains(&named[row]))
            .collect();
        for days in 1..=3 {
            for &from in &of_last {
                let Some(date) = later(document, from, days) else {
                    return rows;
                };
                let mut changes = roles.changes(document, from, 1.0 + 0.1 * f64::from(days));
                changes.push(date);
                rows.push(Row { from, changes });
            }
        }
    }
    rows
}

/// The symbol that a copy of the rows of the first symbol gets.
fn new_symbol(symbol: &str, named: &[String]) -> Option<String> {
    let first = named.iter().min()?;
    (symbol == first && symbol.parse::<f64>().is_err()).then(|| format!("{symbol}Z"))
}

/// The date of a row, some days later; `None` if it is not a plain date.
fn later(document: &Document, row: usize, days: i32) -> Option<(usize, Cell)> {
    let has_expiry = document
        .batch
        .schema()
        .fields()
        .iter()
        .any(|field| field.name().to_ascii_lowercase().contains("expir"));
    let column = document.date.filter(|_| !has_expiry)?;
    // Weekdays, as most data has.
    let mut date = document.stamps[row].date();
    for _ in 0..days {
        date = date.plus(1);
        while date.is_weekend() {
            date = date.plus(1);
        }
    }
    match document.cell(row, column) {
        Cell::Date(_) => Some((column, Cell::Date(date.0))),
        Cell::Text(old) if old == document.stamps[row].date().to_string() => {
            Some((column, Cell::Text(date.to_string())))
        }
        _ => None,
    }
}

/// The third of the symbols that end, at least one, and none where there is only one.
pub fn delisted(symbols: &BTreeSet<String>, seed: Date) -> BTreeSet<String> {
    if symbols.len() < 2 {
        return BTreeSet::new();
    }
    let mut ranked: Vec<&String> = symbols.iter().collect();
    ranked.sort_by_key(|symbol| hash(&format!("{seed} {symbol}")));
    ranked.truncate((symbols.len() / 3).max(1));
    ranked.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookahead::read::Container;
    use arrow::array::{ArrayRef, BooleanArray, Date32Array, Float32Array, Int32Array, RecordBatch, StringArray};
    use std::sync::Arc;

    fn until(day: i32) -> i64 {
        Stamp::day(Date(day)).end
    }

    fn about(day: i32, delisted: &[&str]) -> About {
        About {
            until: until(day),
            delisted: delisted.iter().map(|symbol| (*symbol).to_owned()).collect(),
            may_grow: true,
        }
    }

    /// Lines of a text whose rows after the 20th of 40 days are other rows.
    fn lines(text: &str, rows: impl Fn(&Document) -> Vec<Row>) -> Vec<String> {
        let document = Document::read("t.csv", text.as_bytes()).unwrap().unwrap();
        let bytes = document.write(&rows(&document)).unwrap();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn types_of_text_are_respected() {
        let mut text = "date,open,high,low,close,volume,share,regime,code,time_ms\n".to_owned();
        for i in 0..40 {
            let open = 100.0 + f64::from(i % 7);
            let cells = [
                format!("{open:.2},{:.2},{:.2},{:.2}", open + 2.0, open - 1.0, open + 1.0),
                format!("{},0.{:02}", 100 + i, 10 + i),
                format!(
                    "{},00{},{}",
                    ["calm", "wild"][(i % 2) as usize],
                    i % 10,
                    1_700_000_000_000i64 + i64::from(i)
                ),
            ];
            text.push_str(&format!("{},{}\n", Date(19_700 + i), cells.join(",")));
        }
        let old: Vec<&str> = text.lines().collect();
        let new = lines(&text, |document| values(document, until(19_720)));
        assert_eq!(
            (new.len(), &new[..22]),
            (
                old.len(),
                &old.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()[..22]
            )
        );
        let mut texts = 0;
        for (old, new) in old.iter().zip(&new).skip(22) {
            let (a, b): (Vec<&str>, Vec<&str>) = (old.split(',').collect(), new.split(',').collect());
            assert_eq!((a[0], a[8], a[9]), (b[0], b[8], b[9]), "{new}");
            let number = |i: usize| b[i].parse::<f64>().unwrap();
            let (open, high, low, close) = (number(1), number(2), number(3), number(4));
            assert!(low <= open.min(close) && open.max(close) <= high, "{new}");
            assert!(a[4] != b[4] && b[4].split_once('.').unwrap().1.len() == 2, "{new}");
            assert!(a[5] != b[5] && b[5].parse::<u32>().is_ok(), "{new}");
            assert!(
                (0.0..=1.0).contains(&number(6)) && ["calm", "wild"].contains(&b[7]),
                "{new}"
            );
            texts += usize::from(a[7] != b[7]);
        }
        assert!(texts > 3, "{texts}");
    }

    #[test]
    fn rows_end_and_begin() {
        let mut text = "date,symbol,close\n".to_owned();
        for i in 0..40 {
            for symbol in ["A", "B", "C"] {
                text.push_str(&format!("{},{symbol},{}.5\n", Date(19_700 + i), 10 + i));
            }
        }
        let new = lines(&text, |document| rows(document, &about(19_720, &["B"])));
        let known = 1 + 3 * 21;
        assert_eq!(
            new[..known],
            text.lines().map(str::to_owned).collect::<Vec<_>>()[..known]
        );
        let count = |symbol: &str| {
            new[known..]
                .iter()
                .filter(|line| line.contains(&format!(",{symbol},")))
                .count()
        };
        assert_eq!(count("B"), 0);
        assert!(
            (8..22).contains(&count("A")) && (8..22).contains(&count("C")),
            "{new:#?}"
        );
        assert!(count("AZ") > 8, "{new:#?}");
        assert!(new.last().unwrap().as_str() > "2023-12-16", "{new:#?}");
    }

    #[test]
    fn types_of_columns_are_respected() {
        let columns: [(&str, ArrayRef); 5] = [
            ("date", Arc::new(Date32Array::from_iter_values(0..40))),
            ("n", Arc::new(Int32Array::from_iter_values((0..40).map(|i| i * 100)))),
            ("x", Arc::new(Float32Array::from_iter_values((0..40u8).map(f32::from)))),
            (
                "flag",
                Arc::new(BooleanArray::from_iter((0..40).map(|i| Some(i % 3 == 0)))),
            ),
            (
                "text",
                Arc::new(StringArray::from_iter_values((0..40).map(|i| ["a", "b", "c"][i % 3]))),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        for container in [Container::Parquet, Container::ArrowFile, Container::ArrowStream] {
            let document = Document::read("t", &container.write(&batch).unwrap()).unwrap().unwrap();
            let new = container
                .read(&document.write(&values(&document, until(19))).unwrap())
                .unwrap();
            assert_eq!(new.slice(0, 20), batch.slice(0, 20));
            assert_eq!(new.schema().fields(), batch.schema().fields());
            for i in 1..5 {
                assert_ne!(new.column(i), batch.column(i), "column {i}");
            }
            let truncated = crate::lookahead::truncate::rows(&document, until(19));
            assert_eq!(
                container.read(&document.write(&truncated).unwrap()).unwrap(),
                batch.slice(0, 20)
            );
        }
    }
}
