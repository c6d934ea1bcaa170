//! The rows of a file of factors.

use super::config::{FeaturesConfig, is_key};
use crate::frame::{Frame, header};
use crate::unpack::Packed;
use crate::value::{OUT_OF_RANGE, shown, shown_list};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::layout::{Mapping, Unit, normal};
use stages_core::{StageError, table};
use std::sync::Arc;

const DATES: [&str; 3] = ["date", "datadate", "day"];
const SYMBOLS: [&str; 3] = ["symbol", "ticker", "tic"];

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    date: String,
    symbol: Option<String>,
    /// The factors, in the order of the configuration or else of the file.
    pub factors: Vec<String>,
}

impl Columns {
    /// The columns by a file's header.
    ///
    /// # Errors
    /// When columns are missing: all of them are named.
    pub fn of(packed: &Packed, config: &FeaturesConfig) -> Result<Self, StageError> {
        let header: Vec<String> = header(packed)?.iter().map(|name| name.trim().to_owned()).collect();
        let find = |name: &str| header.iter().find(|other| normal(other) == normal(name)).cloned();
        let mut missing = Vec::new();
        let mut key = |field: &str, given: &str, known: [&str; 3]| match given {
            "" => known.into_iter().find_map(&find),
            given => find(given).or_else(|| {
                missing.push(format!("`{given}` for `{field}`"));
                None
            }),
        };
        let (date, symbol) = (key("date", &config.date, DATES), key("symbol", &config.symbol, SYMBOLS));
        if config.date.is_empty() && date.is_none() {
            missing.push(format!("dates ({})", DATES.join(", ")));
        }
        let is_other = |name: &String| Some(name) != date.as_ref() && Some(name) != symbol.as_ref();
        let mut factors = Vec::new();
        for name in &config.columns {
            match find(name) {
                Some(found) => factors.push(found),
                None => missing.push(format!("`{name}`")),
            }
        }
        if config.columns.is_empty() {
            // Tables of pandas have an index without a name.
            factors.extend(header.iter().filter(|name| is_other(name) && !name.is_empty()).cloned());
        }
        let Some(date) = date.filter(|_| missing.is_empty()) else {
            return Err(
                StageError::new(format!("`{}` has no column of {}", packed.place, missing.join(", "))).hint(format!(
                    "it has {}; `date`, `symbol` and `columns` name them",
                    shown_list(&header)
                )),
            );
        };
        if factors.is_empty() {
            return Err(
                StageError::new(format!("`{}` has no factor beside its keys", packed.place))
                    .hint("add a column of numbers"),
            );
        }
        if let Some(name) = factors.iter().find(|name| is_key(name)) {
            return Err(StageError::new(format!(
                "`{}`: the column `{}` has the name of a key",
                packed.place,
                shown(name)
            ))
            .hint("`columns` names the factors to read; rename it if it is one"));
        }
        Ok(Self { date, symbol, factors })
    }
}

/// Reads a table: `symbol` (empty for the whole market), `date`, and the factors, null where there is no value.
///
/// # Errors
/// When a value cannot be read, or a column is missing.
pub(super) fn parse(packed: &Packed, config: &FeaturesConfig) -> Result<RecordBatch, StageError> {
    let columns = Columns::of(packed, config)?;
    let is_factor = |name: &str| columns.factors.iter().any(|factor| normal(factor) == name);
    let is_wanted = |name: &str| {
        let key = [Some(&columns.date), columns.symbol.as_ref()];
        is_factor(name) || key.into_iter().flatten().any(|key| normal(key) == name)
    };
    let frame = Frame::read_with_numbers(packed, is_wanted, is_factor)?;
    let format = match config.date_format.as_str() {
        "" => "%Y-%m-%d",
        format => format,
    };
    let dates = frame.dates(&columns.date, &[format.to_owned()], "")?;
    if let Some(row) = dates.iter().position(|date| *date == OUT_OF_RANGE) {
        return Err(frame.error(row, &columns.date, "the date is not in the years 1800 to 2199"));
    }
    let mut symbols = vec![String::new(); frame.rows()];
    if let Some(symbol) = &columns.symbol {
        frame.texts(symbol, |row, text| {
            if text.is_empty() {
                return Err(frame.error(row, symbol, "the symbol is missing"));
            }
            text.clone_into(&mut symbols[row]);
            Ok(())
        })?;
    }
    let mut fields = vec![
        Field::new("symbol", DataType::Utf8, false),
        Field::new("date", DataType::Date32, false),
    ];
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(&symbols)),
        Arc::new(Date32Array::from_iter_values(dates.iter().map(|date| date.0))),
    ];
    for name in &columns.factors {
        let numbers = frame.numbers(&Mapping {
            ours: name.clone(),
            theirs: name.clone(),
            unit: Unit::AsIs,
            plus_hours: None,
            tenor_years: None,
            optional: false,
        });
        let numbers = numbers.map_err(|err| match err.hint {
            None => err.hint("a factor is a column of numbers: `columns: [ … ]` names those to read"),
            Some(_) => err,
        })?;
        fields.push(Field::new(name, DataType::Float64, true));
        arrays.push(Arc::new(table::nullable_of(numbers)));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
