//! Conversion of vendors' bars to our columns.

use crate::cuts::with_left_out;
use crate::file_memo::{Around, Reading};
use crate::form::{Opened, open};
use crate::frame::Frame;
use crate::header::{needed, source_of, wanted};
use crate::layout_choice::Chosen;
use crate::unpack::Packed;
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use datasets::Date;
use datasets::layout::{Layout, Mapping, OTHERS, Table, normal};
use datasets::schema;
use rayon::prelude::*;
use stages_core::{StageError, table};
use std::sync::Arc;

/// One bar; numbers are NaN where they are missing.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Ticker.
    pub symbol: Arc<str>,
    /// Trading day.
    pub date: Date,
    /// The values of the columns [`FLOATS`].
    pub values: [f64; 6],
}

/// The numeric columns of a bar, in order.
pub(super) const FLOATS: [&str; 6] = ["open", "high", "low", "close", "volume", "adjusted_close"];
pub(super) const CLOSE: usize = 3;
pub(super) const VOLUME: usize = 4;

/// Reads a table as it is, without applying rules. Rows without a symbol get `symbol` or, failing that, the
/// name of the file.
pub(crate) fn parse(
    packed: &Packed,
    layout: &Layout,
    around: &Around<'_>,
) -> Result<RecordBatch, StageError> {
    let opened = open(packed, layout, around.lookup)?;
    if let Some(closes) = layout.sources("close").find(|mapping| mapping.theirs == OTHERS) {
        return by_symbol(&opened, layout, closes);
    }
    let Opened {
        place, frame, given, ..
    } = &opened;
    let name_symbol = given.get("symbol").map(|named| named.text.to_uppercase());
    let symbol = match (around.symbol, name_symbol.as_deref()) {
        ("", Some(name_symbol)) => name_symbol,
        (given, _) => given,
    };
    let date = &needed(layout, frame, place, "date")?.theirs;
    let zone = zone_of_days(frame, date, layout)?;
    // In parallel; the error returned is the one that sequential reading would meet first.
    let (dates, (symbols, values)) = rayon::join(
        || frame.dates(date, &layout.dates, zone),
        || {
            rayon::join(
                || symbols(&opened, layout, symbol),
                || {
                    FLOATS
                        .par_iter()
                        .map(|ours| match source_of(layout, frame, ours) {
                            Some(mapping) => frame.numbers(mapping),
                            None => Ok(vec![f64::NAN; frame.rows()]),
                        })
                        .collect::<Vec<_>>()
                },
            )
        },
    );
    let dates = dates?;
    needed(layout, frame, place, "close")?;
    let symbols = symbols?;
    let values: Vec<Vec<f64>> = values.into_iter().collect::<Result<_, StageError>>()?;
    let names = symbols
        .iter()
        .flat_map(|(symbol, rows)| std::iter::repeat_n(symbol.as_str(), *rows));
    with_left_out(batch(names, dates.into_iter(), values, false)?, frame.left_out())
}

/// The time zone in which epochs have their day: the layout's or, where all are midnights of UTC as those of
/// daily bars of a market without hours are, UTC.
fn zone_of_days<'l>(frame: &Frame, date: &str, layout: &'l Layout) -> Result<&'l str, StageError> {
    let day = layout.dates.iter().find_map(|format| match format.as_str() {
        "epoch_s" => Some(86_400),
        "epoch_ms" => Some(86_400_000),
        "epoch_us" => Some(86_400_000_000),
        "epoch_ns" => Some(86_400_000_000_000_i64),
        _ => None,
    });
    let Some(day) = day.filter(|_| !matches!(layout.zone.as_str(), "" | "UTC")) else {
        return Ok(&layout.zone);
    };
    let mut all_midnight = true;
    frame.texts(date, |_, text| {
        all_midnight &= text.parse::<i64>().is_ok_and(|time| time % day == 0);
        Ok(())
    })?;
    Ok(if all_midnight { "UTC" } else { &layout.zone })
}

/// Reads a wide table with a column of closes for each symbol. An empty cell means no bar.
fn by_symbol(opened: &Opened, layout: &Layout, closes: &Mapping) -> Result<RecordBatch, StageError> {
    let (frame, place) = (&opened.frame, &opened.place);
    let named = wanted(layout);
    let date = &needed(layout, frame, place, "date")?.theirs;
    let dates = frame.dates(date, &layout.dates, &layout.zone)?;
    let (mut symbols, mut days, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for name in opened.header.iter().filter(|name| !named.contains(&normal(name))) {
        let symbol = name.trim();
        let mapping = Mapping {
            theirs: name.clone(),
            ..closes.clone()
        };
        let numbers = frame.numbers(&mapping)?;
        // A separator at the end of all lines makes a column without a name.
        if symbol.is_empty() && numbers.iter().all(|number| number.is_nan()) {
            continue;
        }
        if symbol.is_empty() {
            return Err(StageError::new(format!(
                "`{place}` has a column without a name, which is not a symbol"
            ))
            .hint("remove it from the file, or name its column of dates in `columns: { date: … }`"));
        }
        for (date, close) in dates.iter().zip(numbers) {
            if !close.is_nan() {
                symbols.push(symbol);
                days.push(*date);
                values.push(close);
            }
        }
    }
    let missing = vec![f64::NAN; values.len()];
    let mut columns = vec![missing; FLOATS.len()];
    columns[CLOSE] = values;
    batch(symbols.into_iter(), days.into_iter(), columns, false)
}

/// The symbols of the rows, each with the length of its run of consecutive rows.
fn symbols(opened: &Opened, layout: &Layout, given: &str) -> Result<Vec<(String, usize)>, StageError> {
    let frame = &opened.frame;
    let mut symbols: Vec<(String, usize)> = Vec::new();
    if let Some(mapping) = source_of(layout, frame, "symbol") {
        frame.texts(&mapping.theirs, |row, text| {
            if text.is_empty() {
                return Err(frame.error(row, &mapping.theirs, "the symbol is missing"));
            }
            match symbols.last_mut() {
                Some((last, rows)) if last == text => *rows += 1,
                _ => symbols.push((text.to_owned(), 1)),
            }
            Ok(())
        })?;
        return Ok(symbols);
    }
    let name = match (given, &*layout.facts.symbol) {
        ("", "") if layout.facts.symbol_from_file_name => opened.stem.as_str(),
        ("", layout_symbol) => layout_symbol,
        (given, _) => given,
    };
    if name.is_empty() {
        return Err(StageError::new(format!("`{}` does not name the symbol", opened.place))
            .hint("give it as `symbol: SPY`"));
    }
    Ok(vec![(name.to_owned(), frame.rows())])
}

/// A table of bars; closes may be missing in the input of the rules, and not in the schema.
fn batch<'a>(
    symbols: impl Iterator<Item = &'a str>,
    dates: impl Iterator<Item = Date>,
    values: impl IntoIterator<Item = Vec<f64>>,
    has_closes: bool,
) -> Result<RecordBatch, StageError> {
    let field = |column: &schema::Column| {
        let is_key = matches!(column.name, "symbol" | "date");
        table::field(column).with_nullable(column.nullable || !has_closes && !is_key)
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(symbols)),
        Arc::new(Date32Array::from_iter_values(dates.map(|date| date.0))),
    ];
    columns.extend(
        values
            .into_iter()
            .map(|values| -> ArrayRef { Arc::new(table::nullable_of(values)) }),
    );
    let fields: Vec<_> = schema::BARS.iter().map(field).collect();
    Ok(RecordBatch::try_new(
        Arc::new(arrow_schema::Schema::new(fields)),
        columns,
    )?)
}

/// Appends the wanted bars of a table to `bars`; `is_wanted` judges symbol and date.
pub(super) fn collect(
    batch: &RecordBatch,
    is_wanted: impl Fn(&str, Date) -> bool,
    bars: &mut Vec<Bar>,
) -> Result<(), StageError> {
    let symbols = table::texts(batch, "symbol")?;
    let dates = table::dates(batch, "date")?;
    let mut columns = Vec::new();
    for name in FLOATS {
        columns.push(table::floats_or_nan(batch, name)?);
    }
    let mut last: Arc<str> = Arc::from("");
    for (i, date) in dates.into_iter().enumerate() {
        let symbol = symbols.value(i);
        if !is_wanted(symbol, date) {
            continue;
        }
        if &*last != symbol {
            last = Arc::from(symbol);
        }
        bars.push(Bar {
            symbol: Arc::clone(&last),
            date,
            values: std::array::from_fn(|k| columns[k][i]),
        });
    }
    Ok(())
}

/// Converts bars to a table in the schema, which requires every close.
pub(crate) fn to_batch(bars: &[Bar]) -> Result<RecordBatch, StageError> {
    let symbols = bars.iter().map(|bar| &*bar.symbol);
    let columns = (0..FLOATS.len()).map(|i| bars.iter().map(|bar| bar.values[i]).collect());
    batch(symbols, bars.iter().map(|bar| bar.date), columns, true)
}

/// The settings for reading files of bars as whole tables.
pub fn reading<'a>(chosen: &'a Chosen, symbol: &'a str) -> Reading<'a> {
    Reading {
        memo: "ingest/bars file v5",
        table: Table::Bars,
        chosen,
        symbol,
        parse,
    }
}
