//! Statements of a file's columns about the markets of its bars.

use crate::frame::Frame;
use crate::header::{CURRENCY, UNIT, market_columns};
use crate::number::currencies;
use crate::value::{is_missing, shown};
use arrow_array::RecordBatch;
use datasets::calendar::{CalendarName, is_currency, of_hundredths};
use datasets::layout::{Layout, normal};
use serde::{Deserialize, Serialize};
use stages_core::{StageError, table};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The market of a symbol, as far as columns state it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stated {
    /// The currency of prices: an ISO 4217 code, that of hundredths of one, such as `GBp`, or a sign that
    /// several share.
    pub currency: Option<String>,
    /// The sign or code of a currency that stands beside the prices themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The calendar of the exchange.
    pub calendar: Option<CalendarName>,
}

/// The key of what is stated, in the schema of a file's rows.
const KEY: &str = "markets";

/// The currency that a text names; `None` for a text that names none.
fn named(text: &str) -> Option<String> {
    let upper = text.to_ascii_uppercase();
    let name = match (of_hundredths(text), text.to_lowercase().as_str()) {
        (Some("GBP"), _) | (_, "pence" | "penny" | "p") => "GBp",
        (Some("ZAR"), _) => "ZAc",
        (Some(_), _) => "ILA",
        (_, "pound" | "pounds") => "GBP",
        (_, "euro" | "euros") => "EUR",
        (_, "dollar" | "dollars") => "$",
        _ if is_currency(&upper) => &upper,
        _ => match currencies(text) {
            [] => return None,
            [one] => one,
            _ => text,
        },
    };
    Some(name.to_owned())
}

/// The currency at the end of a column's name: `close_eur`, `Close (EUR)`, `Price (p)`.
fn of_name(name: &str) -> Option<String> {
    let name = name.trim();
    if let Some((before, inner)) = name
        .strip_suffix([')', ']'])
        .and_then(|name| name.rsplit_once(['(', '[']))
    {
        return named(inner.trim()).filter(|_| !before.is_empty());
    }
    let (_, last) = name.rsplit_once(['_', ' ', '-'])?;
    Some(last.to_ascii_uppercase()).filter(|last| is_currency(last) || *last == "GBX")
}

/// The error of a text in a column of currencies.
fn not_a_currency(frame: &Frame, row: usize, column: &str, text: &str) -> StageError {
    let problem = format!("`{}` is not the code of a currency", shown(text));
    frame
        .error(row, column, &problem)
        .hint("write codes of ISO 4217, such as USD, or rename a column of another meaning")
}

/// The currency that stands beside the prices of a column, or in the row of units below its name.
fn beside(frame: &Frame, theirs: &str) -> Option<String> {
    let unit = || frame.unit_below(theirs);
    let sign = frame.currency_sign(theirs).map(ToOwned::to_owned);
    sign.or_else(|| named(unit()?.trim_matches(['(', ')', '[', ']', ' '])))
}

/// Adds to the rows of a file what its columns state of the market of each symbol. `symbols` are those of
/// the rows, each with the length of its run.
///
/// # Errors
/// Where a symbol has two currencies.
pub(super) fn mark(
    rows: RecordBatch,
    frame: &Frame,
    symbols: &[(String, usize)],
    layout: &Layout,
) -> Result<RecordBatch, StageError> {
    let mut known: BTreeMap<&str, Stated> = BTreeMap::new();
    let closes = layout.sources("close").find(|mapping| frame.has(&mapping.theirs));
    let written = closes.and_then(|mapping| {
        beside(frame, &mapping.theirs).or_else(|| of_name(&mapping.theirs).filter(|_| layout.is_described))
    });
    if written.is_some() {
        for (symbol, _) in symbols {
            known.entry(symbol).or_default().written.clone_from(&written);
        }
    }
    let is_read = |column: &str| layout.mappings().any(|mapping| normal(&mapping.theirs) == column);
    let mut has_currency = false;
    let found = layout.sources(CURRENCY).map(|mapping| &*mapping.theirs);
    let columns = found.chain(market_columns(layout).map(|name| -> &str { name }));
    for column in columns.filter(|column| frame.has(column)) {
        let (is_unit, is_exchange) = (column == UNIT, matches!(column, "exchange" | "mic"));
        // The first column of currencies is that of prices.
        if !is_exchange && !is_unit && std::mem::replace(&mut has_currency, true)
            || is_read(column) && is_unit
        {
            continue;
        }
        let mut runs = symbols.iter().map(|(symbol, rows)| (symbol.as_str(), *rows));
        let (mut symbol, mut left) = ("", 0);
        let mut before = (String::new(), "");
        frame.texts(column, |row, text| {
            while left == 0 {
                let Some(next) = runs.next() else { return Ok(()) };
                (symbol, left) = next;
            }
            left -= 1;
            if is_missing(text) || before.0 == text && before.1 == symbol {
                return Ok(());
            }
            before = (text.to_owned(), symbol);
            let stated = known.entry(symbol).or_default();
            if is_exchange {
                let is_code = text.chars().all(|c| c.is_ascii_uppercase());
                let code = is_code.then(|| CalendarName::of_code(text)).flatten();
                if let Some((code, other)) = code.zip(stated.calendar).filter(|(code, other)| code != other) {
                    let problem = format!("{symbol} is of the exchange `{code}` here and of `{other}` above");
                    return Err(frame.error(row, column, &problem).hint(format!(
                        "two companies may have one symbol: `layout: {{ where: \"{column} = {}\", … }}` reads the \
                        rows of one",
                        shown(text)
                    )));
                }
                stated.calendar = code.or(stated.calendar);
                return Ok(());
            }
            let currency = match named(text) {
                Some(name) => name,
                // A unit may be another one, of volumes or of the contract.
                None if is_unit => return Ok(()),
                None => return Err(not_a_currency(frame, row, column, text)),
            };
            if is_unit && has_currency {
                // Pence of a currency that another column states.
                if of_hundredths(&currency).is_some_and(|whole| stated.currency.as_deref() == Some(whole)) {
                    stated.currency = Some(currency);
                }
                return Ok(());
            }
            match &stated.currency {
                Some(other) if *other != currency => {
                    let problem =
                        format!("the prices of {symbol} are in {currency} here and in {other} above");
                    Err(frame.error(row, column, &problem).hint(format!(
                        "prices in two currencies are not one series: `layout: {{ where: \"{column} = {other}\", … }}` \
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
    attach(rows, known)
}

/// Adds to the rows of a wide table what stands beside the prices of each symbol's column, and what columns
/// state of all symbols.
///
/// # Errors
/// Where rows state two currencies or exchanges.
pub(super) fn mark_wide(
    rows: RecordBatch,
    frame: &Frame,
    symbols: &[&str],
    layout: &Layout,
) -> Result<RecordBatch, StageError> {
    let mut of_all = Stated::default();
    for column in market_columns(layout).filter(|column| frame.has(column)) {
        let mut first = String::new();
        frame.texts(column, |row, text| {
            if is_missing(text) || text == first {
                return Ok(());
            }
            if column == CURRENCY && named(text).is_none() {
                return Err(not_a_currency(frame, row, column, text));
            }
            if !first.is_empty() {
                return Err(frame
                    .error(
                        row,
                        column,
                        &format!("`{}`, and `{}` above", shown(text), shown(&first)),
                    )
                    .hint("a wide table is of one market: read the symbols of each in a stage of its own"));
            }
            text.clone_into(&mut first);
            Ok(())
        })?;
        match column {
            CURRENCY => of_all.currency = named(&first),
            _ => of_all.calendar = CalendarName::of_code(&first).or(of_all.calendar),
        }
    }
    let of = |symbol: &&'_ str| Stated {
        written: beside(frame, symbol),
        ..of_all.clone()
    };
    attach(rows, symbols.iter().map(|symbol| (*symbol, of(symbol))).collect())
}

/// The rows with what is known of the markets of their symbols.
fn attach(rows: RecordBatch, mut known: BTreeMap<&str, Stated>) -> Result<RecordBatch, StageError> {
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
    let mut different: HashSet<&str> = HashSet::new();
    for symbol in symbols.iter().flatten() {
        if std::mem::replace(&mut last, symbol) != symbol {
            different.insert(symbol);
        }
    }
    for symbol in different {
        known.entry(symbol.to_owned()).or_default();
    }
    if let Some(text) = rows.schema().metadata().get(KEY) {
        let stated: BTreeMap<String, Stated> =
            serde_json::from_str(text).map_err(|err| StageError::new(err.to_string()))?;
        known.extend(stated);
    }
    Ok(())
}
