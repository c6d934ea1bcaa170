//! The contract terms that the rows of a file state, passed from the file to the chain in columns of
//! [`datasets::schema::CONTRACT_TERMS`] after the chain's own columns in the file's table.

use crate::clock::{Clock, Clocks};
use crate::frame::Frame;
use crate::header::source_of;
use crate::value::{OUT_OF_RANGE, zone_of};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use chrono_tz::Tz;
use datasets::contract::{Exercise, Expires, Settlement, UnderlyingKind};
use datasets::layout::{Layout, Unit};
use datasets::schema::{CONTRACT_TERMS, TIME_OF_DAY, Type};
use datasets::{Date, TimeZone};
use stages_core::{StageError, table};
use std::str::FromStr;
use std::sync::Arc;

/// The column that marks strikes read from single precision.
pub(super) const SINGLE_PRECISION: &str = "strike_is_single_precision";

/// The column with each row's local time of day, in microseconds after midnight.
pub(super) const TIME: &str = "local_time";

/// The column with each row's instant, in microseconds UTC, for files that state more than a local time.
pub(super) const INSTANT: &str = "instant";

/// The canonical name of a term's value, parsed from a file's text.
fn word<T: FromStr<Err = String> + ToString>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|word| word.to_string())
}

/// The text of a term in the spelling of `contract:`.
fn canonical(term: &str, text: &str) -> Result<String, String> {
    match term {
        "underlying_kind" => word::<UnderlyingKind>(text),
        "exercise" => word::<Exercise>(text),
        "settlement" => word::<Settlement>(text),
        "expires" => word::<Expires>(text),
        "currency" => Ok(text.to_ascii_uppercase()),
        _ => Ok(text.to_owned()),
    }
}

/// Adds columns for the terms that a layout maps to a file's table.
pub(super) fn attach(
    batch: RecordBatch,
    frame: &Frame,
    layout: &Layout,
    is_single_precision: bool,
) -> Result<RecordBatch, StageError> {
    let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for term in CONTRACT_TERMS {
        let Some(mapping) = source_of(layout, frame, term.name) else {
            continue;
        };
        columns.push(if term.ty == Type::Float {
            Arc::new(table::nullable(&frame.numbers(mapping)?))
        } else {
            let texts = frame.map(&mapping.theirs, |text| match text {
                "" => Ok(None),
                text => canonical(term.name, text).map(Some),
            })?;
            Arc::new(StringArray::from(texts))
        });
        fields.push(Arc::new(table::field(term)));
    }
    if let Some(mut clocks) = clocks(frame, layout)? {
        if let Some(days) = move_to_exchange(&mut clocks, table::dates(&batch, "date")?, layout)? {
            let date = batch.schema().index_of("date")?;
            columns[date] = Arc::new(Date32Array::from_iter_values(days.into_iter().map(|day| day.0)));
        }
        // Both columns, so that all parts of a file have the same columns.
        let of = |of: fn(&Clock) -> Option<i64>| {
            clocks
                .iter()
                .map(|clock| clock.as_ref().and_then(of))
                .collect::<Int64Array>()
        };
        for (name, values) in [
            (TIME, of(|clock| Some(clock.local))),
            (INSTANT, of(|clock| clock.instant)),
        ] {
            fields.push(Arc::new(Field::new(name, DataType::Int64, true)));
            columns.push(Arc::new(values));
        }
    }
    if is_single_precision {
        // A column, since a table's metadata does not survive Parquet.
        fields.push(Arc::new(Field::new(SINGLE_PRECISION, DataType::Boolean, false)));
        columns.push(Arc::new(BooleanArray::from(vec![true; batch.num_rows()])));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Converts times to the exchange's time zone, if the layout states one, and returns the days there. If all
/// times are midnight, the file has days alone, which stay as they are.
fn move_to_exchange(
    clocks: &mut [Option<Clock>],
    mut days: Vec<Date>,
    layout: &Layout,
) -> Result<Option<Vec<Date>>, StageError> {
    let Some(exchange) = layout.contract.time_zone.as_deref() else {
        return Ok(None);
    };
    if clocks.iter().flatten().all(|clock| clock.local == 0) {
        return Ok(None);
    }
    let zone = |name: &str| {
        zone_of(name)
            .map(|zone| zone.unwrap_or(Tz::UTC))
            .map_err(StageError::new)
    };
    let (file_zone, exchange) = (zone(&layout.zone)?, zone(exchange)?);
    for (clock, day) in clocks.iter_mut().zip(&mut days) {
        let Some(clock) = clock.as_mut().filter(|_| *day != OUT_OF_RANGE) else {
            continue;
        };
        let from_local = || {
            TimeZone::from(file_zone)
                .at(*day, clock.local)
                .filter(|_| !layout.zone.is_empty())
        };
        let instant = clock.instant.or_else(from_local);
        if let Some(instant) = instant {
            let (date, local) = TimeZone::from(exchange).local(instant);
            *day = date;
            *clock = Clock {
                local,
                instant: Some(instant),
            };
        }
    }
    Ok(Some(days))
}

/// The times of a file's rows; `None` if its first date has no time.
fn clocks(frame: &Frame, layout: &Layout) -> Result<Option<Vec<Option<Clock>>>, StageError> {
    let reader =
        |theirs: &str| Clocks::new(&layout.dates, frame.zone(theirs, &layout.zone)).map_err(StageError::new);
    if let Some(mapping) = source_of(layout, frame, TIME_OF_DAY.name) {
        let mut clocks = reader(&mapping.theirs)?;
        let scale = |number: f64| {
            let hours = match mapping.unit {
                Unit::Times(factor) => number * factor,
                Unit::Per(per) => number / per,
                Unit::AsIs | Unit::DividedBy(_) => number,
            };
            hours + mapping.plus_hours.unwrap_or(0.0)
        };
        let times = frame.map(&mapping.theirs, |text| clocks.of_time(text, scale));
        return times.map(Some);
    }
    let Some(mapping) = source_of(layout, frame, "date") else {
        return Ok(None);
    };
    let mut clocks = reader(&mapping.theirs)?;
    // Most files have days alone, which the first row shows.
    let mut first = None;
    let _ = frame.texts(&mapping.theirs, |_, text| {
        first = clocks.of_date(text);
        Err(StageError::new("seen"))
    });
    if first.is_none() {
        return Ok(None);
    }
    frame.map(&mapping.theirs, |text| Ok(clocks.of_date(text))).map(Some)
}

/// The local times of day of a table's rows, in microseconds after midnight, if the file has times.
pub(super) fn times(batch: &RecordBatch) -> Option<&Int64Array> {
    batch.column_by_name(TIME)?.as_primitive_opt::<Int64Type>()
}

/// The instants of a table's rows, in microseconds UTC, if the file has times.
pub(super) fn instants(batch: &RecordBatch) -> Option<&Int64Array> {
    batch.column_by_name(INSTANT)?.as_primitive_opt::<Int64Type>()
}

/// Returns whether the strikes of a file's table were read from single precision.
pub(super) fn is_single_precision(batch: &RecordBatch) -> bool {
    batch.column_by_name(SINGLE_PRECISION).is_some()
}
