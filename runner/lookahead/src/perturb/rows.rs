//! Other rows: a fifth of the dates and some further rows are removed, symbols begin, dates are added at the
//! end, and each symbol's values are multiplied by a factor of its own, so that ranks change. Symbols that
//! end are omitted when the rows are written.

use super::{cells, chance, hash, is_contract, values};
use crate::column::Column;
use crate::document::{Document, Variant};
use arrow_array::{ArrayRef, Date32Array, StringArray};
use std::sync::Arc;

/// A perturbed row.
struct Row {
    from: usize,
    factor: f64,
    /// The symbol that begins with a copy of the row.
    symbol: Option<String>,
    /// The number of weekdays by which a copy of the row is moved later.
    later: u32,
}

/// Perturbs all rows.
pub(super) fn all(document: &Document) -> Result<Variant, String> {
    let stamps = &document.stamps;
    let (codes, symbols) = document.symbols();
    let hashes: Vec<u64> = symbols.iter().map(|symbol| hash(symbol)).collect();
    let in_order = stamps.is_sorted();
    let several = codes.iter().any(|code| Some(code) != codes.first());
    let per_date = several || stamps.windows(2).any(|pair| pair[0] == pair[1]);
    let is_panel = document.may_grow && several;
    let last = stamps.iter().max().copied();
    let first_symbol = codes.iter().map(|&code| &symbols[code as usize]).min();
    let copied = first_symbol.filter(|symbol| is_panel && symbol.parse::<f64>().is_err());
    let (mut rows, mut added) = (Vec::new(), Vec::new());
    for (from, &stamp) in stamps.iter().enumerate() {
        let (symbol, hash) = (&symbols[codes[from] as usize], hashes[codes[from] as usize]);
        // The last date is kept, so that the original's later rows still exist.
        let gone = Some(stamp) != last && chance(stamp, 3) < 0.2
            || per_date && chance(stamp, hash ^ from as u64) < 0.05;
        if gone {
            continue;
        }
        let factor = [0.45, 0.7, 1.5, 2.2][(hash % 4) as usize];
        let later = 0;
        rows.push(Row {
            from,
            factor,
            symbol: None,
            later,
        });
        if copied == Some(symbol) {
            let factor = 1.3 / factor;
            let row = Row {
                from,
                factor,
                symbol: Some(another(symbol)),
                later,
            };
            if in_order { rows.push(row) } else { added.push(row) }
        }
    }
    let in_place = rows.len();
    rows.append(&mut added);
    // Rows are added after the last date, so that the change has an effect at every moment.
    if in_order && document.may_grow && document.has_plain_dates() {
        for later in 1..=3 {
            let last_rows = (0..stamps.len()).filter(|&row| Some(stamps[row]) == last);
            let factor = 1.0 + 0.1 * f64::from(later);
            rows.extend(last_rows.map(|from| Row {
                from,
                factor,
                symbol: None,
                later,
            }));
        }
    }
    let from: Vec<usize> = rows.iter().map(|row| row.from).collect();
    let factors: Vec<f64> = rows.iter().map(|row| row.factor).collect();
    let mut new = values::columns(document, &from, &factors);
    if let Some(column) = document.symbols.filter(|_| rows.iter().any(|row| row.symbol.is_some())) {
        let symbols = rows.iter().map(|row| row.symbol.as_deref());
        new.insert(column, Arc::new(symbols.collect::<StringArray>()));
    }
    if let Some(column) = document.date.filter(|_| rows.iter().any(|row| row.later > 0)) {
        let dates = rows.iter().map(|row| (row.later > 0).then(|| later(document, row)));
        let dates: ArrayRef = match &document.columns[column] {
            Column::Days(_) => Arc::new(dates.map(|date| Some(date?.0)).collect::<Date32Array>()),
            _ => Arc::new(dates.map(|date| Some(date?.to_string())).collect::<StringArray>()),
        };
        new.insert(column, dates);
    }
    Ok(Variant {
        batch: cells::rows(document, &from, &new)?,
        from,
        in_place,
    })
}

/// A symbol that begins: for a contract, one of another class with the same terms.
fn another(symbol: &str) -> String {
    match (is_contract(symbol), symbol.split_once(':')) {
        (false, _) => format!("{symbol}Z"),
        (true, Some((prefix, contract))) => format!("{prefix}:Z{contract}"),
        (true, None) => format!("Z{symbol}"),
    }
}

/// The date of a row moved later by some weekdays, since most data has weekdays only.
fn later(document: &Document, row: &Row) -> datasets::Date {
    let mut date = document.stamps[row.from].date();
    for _ in 0..row.later {
        date = date.plus(1);
        while date.is_weekend() {
            date = date.plus(1);
        }
    }
    date
}

impl Document {
    /// True if rows of later dates can be added: the dates are days, and no contract would be past its
    /// expiry.
    fn has_plain_dates(&self) -> bool {
        let has_expiry = self.names.iter().any(|name| name.contains("expir"));
        let Some(column) = self.date.filter(|_| !has_expiry) else {
            return false;
        };
        match &self.columns[column] {
            // A copy moved by days would keep its instant.
            Column::Days(_) => self.stamps.iter().all(|stamp| stamp.start < stamp.end),
            Column::Texts(codes, choices) => {
                let last = self.stamps.iter().zip(codes).max();
                last.is_some_and(|(stamp, code)| {
                    choices.get(*code as usize) == Some(&stamp.date().to_string())
                })
            }
            _ => false,
        }
    }
}
