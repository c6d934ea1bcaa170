//! The rows of a file of a user's own table.

use super::config::{TableConfig, is_key};
use crate::clock::Clocks;
use crate::finder::Finder;
use crate::frame::{Frame, Stated};
use crate::unpack::Packed;
use crate::value::{OUT_OF_RANGE, shown, zone_of};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::layout::normal;
use datasets::{TimeZone, schema};
use stages_core::{StageError, is_default, table};
use std::sync::Arc;

const INSTANTS: [&str; 5] = ["datetime", "timestamp", "date", "datadate", "day"];

/// The symbol of rows that neither a column nor a file's place names.
pub(super) const ONLY: &str = "table";

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    instant: String,
    time: Option<String>,
    symbol: Option<String>,
    /// The numeric columns, in the order of the configuration or, if that names none, of the file.
    pub numbers: Vec<String>,
    /// A remark about a column that is not read.
    note: Option<String>,
}

impl Columns {
    /// Finds the columns in a file's header.
    pub(super) fn of(packed: &Packed, config: &TableConfig) -> Result<Self, StageError> {
        let packed = &*config.text.with_header(packed)?;
        let mut finder = Finder::new(packed)?;
        let instant = finder.key("instant", &config.instant, &INSTANTS);
        let time = finder.key("time", &config.time, &[]);
        let symbol = finder.symbol(&config.symbol, config.columns.iter())?;
        if config.instant.is_empty() && instant.is_none() {
            finder.missing.push(format!("instants ({})", INSTANTS.join(", ")));
        }
        let keys: Vec<String> = instant.iter().chain(&time).chain(&symbol).cloned().collect();
        let numbers = finder.others(config.columns.iter(), &keys);
        finder.check("`instant`, `time`, `symbol` and `columns`")?;
        let instant = instant.unwrap_or_default();
        let hint = "`instant` and `symbol` name the keys, and `columns` the others to read; rename it if it is \
            one of those";
        finder.check_others("column", numbers.iter(), is_key, hint)?;
        let note = match symbol.is_none() && config.symbol.is_empty() {
            true => finder.check_unread(Some(&instant), numbers.iter(), time.iter())?,
            false => None,
        };
        Ok(Self {
            instant,
            time,
            symbol,
            numbers,
            note,
        })
    }
}

/// The rows of a parsed file.
pub(super) struct Parsed {
    /// The columns `symbol`, `date`, the instant (null for a row with a date alone), and the numbers (null
    /// where missing).
    pub batch: RecordBatch,
    /// True if a column states the symbols.
    pub has_symbols: bool,
    /// True if any row has a time other than midnight.
    pub has_times: bool,
}

/// Reads a file into a table. Rows without a symbol are of `only`.
pub(super) fn parse(packed: &Packed, config: &TableConfig, only: &str) -> Result<Parsed, StageError> {
    let columns = Columns::of(packed, config)?;
    let packed = &*config.text.with_header(packed)?;
    let is_key = |name: &str| {
        let key = [Some(&columns.instant), columns.time.as_ref(), columns.symbol.as_ref()];
        key.into_iter().flatten().any(|key| normal(key) == name)
    };
    let is_listed = |name: &str| columns.numbers.iter().any(|number| normal(number) == name);
    // A symbol or a date of digits is a text, also where it is a column of numbers, too.
    let is_plain = is_default(&config.text.numbers);
    let is_number = |name: &str| is_plain && is_listed(name) && !is_key(name);
    let is_wanted = |name: &str| is_listed(name) || is_key(name);
    let frame = Frame::read_with_numbers(packed, is_wanted, is_number)?.with_stated(Stated::of_settings(
        &config.text.numbers,
        "instant_format",
        &config.instant_format,
    ));
    if let Some(note) = columns.note {
        frame.note(note);
    }
    let (dates, formats) = frame.dates_as(&columns.instant, &config.formats(), &config.zone)?;
    if let Some(row) = dates.iter().position(|date| *date == OUT_OF_RANGE) {
        return Err(frame.error(row, &columns.instant, "the day is not in the years 1800 to 2199"));
    }
    let stored_zone = frame.zone(&columns.instant, &config.zone).to_owned();
    let zone = zone_of(&stored_zone).map_err(StageError::new)?;
    let zone_of_times = TimeZone::from(zone.unwrap_or_default());
    let mut clocks = Clocks::new(&formats, &stored_zone).map_err(StageError::new)?;
    let times = columns.time.as_ref().map(|time| {
        let mut clocks = Clocks::new(&formats, &stored_zone).map_err(StageError::new)?;
        frame.map(time, |text| clocks.of_time(text, |hours| hours))
    });
    let times = times.transpose()?;
    let mut instants: Vec<Option<i64>> = Vec::with_capacity(frame.rows());
    let mut has_times = false;
    frame.texts(&columns.instant, |row, text| {
        let clock = match &times {
            Some(times) => times[row],
            None => clocks.of_date(text),
        };
        let Some(clock) = clock else {
            instants.push(None);
            return Ok(());
        };
        has_times |= clock.local != 0;
        let instant = clock.instant.or_else(|| zone_of_times.at(dates[row], clock.local));
        instants.push(Some(instant.ok_or_else(|| {
            frame
                .error(
                    row,
                    &columns.instant,
                    &format!("`{}` is a time that {zone_of_times} skips", shown(text)),
                )
                .hint("write times with their offset from UTC, or see `zone`")
        })?));
        Ok(())
    })?;
    let symbols = match &columns.symbol {
        Some(symbol) => {
            let mut symbols = Vec::with_capacity(frame.rows());
            frame.symbols(symbol, |row, text| match text {
                "" => Err(frame.error(row, symbol, "the symbol is missing")),
                symbol => {
                    symbols.push(symbol.to_owned());
                    Ok(())
                }
            })?;
            symbols
        }
        None => vec![only.to_owned(); frame.rows()],
    };
    let mut fields: Vec<Field> = schema::TABLE.iter().map(table::field).collect();
    fields.push(Field::new(
        schema::SNAPSHOT.name,
        table::data_type(schema::SNAPSHOT.ty),
        true,
    ));
    let instants: TimestampMicrosecondArray = instants.into_iter().collect();
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(&symbols)),
        Arc::new(Date32Array::from_iter_values(dates.iter().map(|date| date.0))),
        Arc::new(instants.with_timezone("UTC")),
    ];
    for name in &columns.numbers {
        let numbers = frame.raw_numbers(name).map_err(|err| match err.hint {
            None => err.hint("a table has columns of numbers: `columns: [ … ]` names those to read"),
            Some(_) => err,
        })?;
        if let Some(row) = numbers.iter().position(|number| number.is_infinite()) {
            return Err(frame
                .error(row, name, "the number is infinite")
                .hint("leave the field empty where there is no value"));
        }
        fields.push(Field::new(name, DataType::Float64, true));
        arrays.push(Arc::new(table::nullable_of(numbers)));
    }
    Ok(Parsed {
        batch: RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?,
        has_symbols: columns.symbol.is_some(),
        has_times,
    })
}
