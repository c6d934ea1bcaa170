//! What the columns of a file state of the markets of its bars.

use crate::frame::Frame;
use arrow_array::RecordBatch;
use datasets::calendar::{CalendarName, of_hundredths};
use serde::{Deserialize, Serialize};
use stages_core::{StageError, table};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The market of a symbol, as far as columns state it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stated {
    /// The currency of prices: an ISO 4217 code, or that of hundredths of one, such as `GBp`.
    pub currency: Option<String>,
    /// The calendar of the exchange.
    pub calendar: Option<CalendarName>,
}

/// The key of what is stated, in the schema of a file's rows.
const KEY: &str = "markets";

/// Adds to the rows of a file what its `columns` state of the market of each symbol. `symbols` are those of
/// the rows, each with the length of its run.
///
/// # Errors
/// Where a symbol has two currencies.
pub(super) fn mark(
    rows: RecordBatch,
    frame: &Frame,
    symbols: &[(String, usize)],
    columns: &[&str],
) -> Result<RecordBatch, StageError> {
    let mut known: BTreeMap<&str, Stated> = BTreeMap::new();
    for column in columns.iter().filter(|column| frame.has(column)) {
        let mut runs = symbols.iter().map(|(symbol, rows)| (symbol.as_str(), *rows));
        let (mut symbol, mut left) = ("", 0);
        let mut before = (String::new(), "");
        frame.texts(column, |row, text| {
            while left == 0 {
                let Some(next) = runs.next() else { return Ok(()) };
                (symbol, left) = next;
            }
            left -= 1;
            if text.is_empty() || before.0 == text && before.1 == symbol {
                return Ok(());
            }
            before = (text.to_owned(), symbol);
            let stated = known.entry(symbol).or_default();
            if *column != "currency" {
                let is_code = text.chars().all(|c| c.is_ascii_uppercase());
                let code = is_code.then(|| CalendarName::of_code(text)).flatten();
                stated.calendar = code.or(stated.calendar);
                return Ok(());
            }
            let currency = match of_hundredths(text) {
                Some(_) => text.to_owned(),
                None => text.to_ascii_uppercase(),
            };
            match &stated.currency {
                Some(other) if *other != currency => {
                    let problem =
                        format!("the prices of {symbol} are in {currency} here and in {other} above");
                    Err(frame.error(row, column, &problem).hint(format!(
                        "prices of two currencies are no series: `layout: {{ where: \"{column} = {other}\", … }}` \
                        reads the rows of one"
                    )))
                }
                _ => {
                    stated.currency = Some(currency);
                    Ok(())
                }
            }
        })?;
    }
    known.retain(|_, stated| *stated != Stated::default());
    if known.is_empty() {
        return Ok(rows);
    }
    let text = serde_json::to_string(&known).map_err(|err| StageError::new(err.to_string()))?;
    let (schema, columns, _) = rows.into_parts();
    let mut schema = Arc::unwrap_or_clone(schema);
    schema.metadata.insert(KEY.to_owned(), text);
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Collects the symbols of a file's rows, with what [`mark`] added of their markets.
pub(super) fn collect(rows: &RecordBatch, known: &mut BTreeMap<String, Stated>) -> Result<(), StageError> {
    let symbols = table::texts(rows, "symbol")?;
    let mut last = "";
    for symbol in symbols.iter().flatten() {
        if symbol != last {
            last = symbol;
            if !known.contains_key(symbol) {
                known.insert(symbol.to_owned(), Stated::default());
            }
        }
    }
    if let Some(text) = rows.schema().metadata().get(KEY) {
        let stated: BTreeMap<String, Stated> =
            serde_json::from_str(text).map_err(|err| StageError::new(err.to_string()))?;
        known.extend(stated);
    }
    Ok(())
}
