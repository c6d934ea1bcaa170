//! The rows of a file of factors.

use super::columns::FactorColumn;
use super::config::FeaturesConfig;
use super::contract_columns::Found;
use crate::frame::{Frame, header};
use crate::unpack::Packed;
use crate::value::{OUT_OF_RANGE, shown, shown_list};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::Date;
use datasets::layout::normal;
use stages_core::{StageError, table};
use std::sync::Arc;

const DATES: [&str; 3] = ["date", "datadate", "day"];
const SYMBOLS: [&str; 3] = ["symbol", "ticker", "tic"];

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    /// `None` where rows have no dates.
    date: Option<String>,
    symbol: Option<String>,
    contract: Option<Found>,
    /// The factors, in the order of the configuration or else of the file.
    pub factors: Vec<FactorColumn>,
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
        let contract = config.contract.as_ref();
        let contract = contract.and_then(|columns| Found::of(columns, &find, &mut missing));
        let of_contract: Vec<String> = contract.iter().flat_map(Found::names).cloned().collect();
        let mut key = |field: &str, given: &str, known: [&str; 3]| match given {
            "" => known.into_iter().find_map(&find),
            given => find(given).or_else(|| {
                missing.push(format!("`{given}` for `{field}`"));
                None
            }),
        };
        let (date, symbol) = (key("date", &config.date, DATES), key("symbol", &config.symbol, SYMBOLS));
        let symbol = symbol.filter(|symbol| !of_contract.contains(symbol));
        if config.date.is_empty() && date.is_none() && !config.undated {
            missing.push(format!("dates ({})", DATES.join(", ")));
        }
        if let Some(date) = date.as_ref().filter(|_| config.undated) {
            return Err(StageError::new(format!(
                "`{}` has the column of dates `{}`, and `undated` says that rows have none",
                packed.place,
                shown(date)
            ))
            .hint("leave `undated` out"));
        }
        let is_other = |name: &String| {
            Some(name) != date.as_ref() && Some(name) != symbol.as_ref() && !of_contract.contains(name)
        };
        let mut factors = Vec::new();
        for FactorColumn { ours, theirs } in &config.columns.0 {
            match find(theirs) {
                // A column that keeps its name keeps it as the file writes it.
                Some(found) if ours == theirs => factors.push(FactorColumn {
                    ours: found.clone(),
                    theirs: found,
                }),
                Some(found) => factors.push(FactorColumn {
                    ours: ours.clone(),
                    theirs: found,
                }),
                None => missing.push(format!("`{theirs}`")),
            }
        }
        if config.columns.0.is_empty() {
            // Tables of pandas have an index without a name.
            let others = header.iter().filter(|name| is_other(name) && !name.is_empty());
            factors.extend(others.map(|name| FactorColumn {
                ours: name.clone(),
                theirs: name.clone(),
            }));
        }
        if !missing.is_empty() {
            return Err(StageError::new(format!(
                "`{}` has no column of {}",
                packed.place,
                missing.join(", ")
            ))
            .hint(format!(
                "it has {}; `date`, `symbol` and `columns` name them",
                shown_list(&header)
            )));
        }
        if factors.is_empty() {
            return Err(
                StageError::new(format!("`{}` has no factor beside its keys", packed.place))
                    .hint("add a column of numbers"),
            );
        }
        if let Some(FactorColumn { ours: name, .. }) =
            factors.iter().find(|factor| config.is_key(&factor.ours))
        {
            return Err(StageError::new(format!(
                "`{}`: the column `{}` has the name of a key",
                packed.place,
                shown(name)
            ))
            .hint(
                "`columns` names the factors to read; `columns: { my_name: NAME }` renames it if it is one",
            ));
        }
        Ok(Self {
            date,
            symbol,
            contract,
            factors,
        })
    }
}

/// The date of rows without dates: before all that files can have.
pub(super) const UNDATED: Date = Date(OUT_OF_RANGE.0 + 1);

/// Reads a table: `symbol` (empty for the whole market, null where it is missing), `date`, the columns of the
/// contract where factors are by contract, and the factors: null where there is no value, infinite where it
/// is none that can be read.
///
/// # Errors
/// When a date cannot be read, a column is missing, or one of factors has no number at all.
pub(super) fn parse(packed: &Packed, config: &FeaturesConfig) -> Result<RecordBatch, StageError> {
    let columns = Columns::of(packed, config)?;
    let contract = columns.contract.as_ref();
    let is_factor = |name: &str| columns.factors.iter().any(|factor| normal(&factor.theirs) == name);
    let is_number = |name: &str| {
        is_factor(name)
            || contract
                .and_then(Found::numeric)
                .is_some_and(|strike| normal(strike) == name)
    };
    let is_wanted = |name: &str| {
        let keys = [columns.date.as_ref(), columns.symbol.as_ref()].into_iter().flatten();
        let mut keys = keys.chain(contract.iter().flat_map(|found| found.names()));
        is_factor(name) || keys.any(|key| normal(key) == name)
    };
    let frame = Frame::read_with_numbers(packed, is_wanted, is_number)?;
    let formats = match config.date_format.as_str() {
        "" => ["%Y-%m-%d".to_owned()],
        format => [format.to_owned()],
    };
    let dates = match &columns.date {
        Some(date) => frame.dates(date, &formats, "")?,
        None => vec![UNDATED; frame.rows()],
    };
    let mut symbols = vec![Some(String::new()); frame.rows()];
    if let Some(symbol) = &columns.symbol {
        frame.texts(symbol, |row, text| {
            symbols[row] = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        })?;
    }
    let mut fields = vec![
        Field::new("symbol", DataType::Utf8, true),
        Field::new("date", DataType::Date32, false),
    ];
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter(&symbols)),
        Arc::new(Date32Array::from_iter_values(dates.iter().map(|date| date.0))),
    ];
    if let Some(contract) = contract {
        let (of_contract, columns) = contract.read(&frame, config, &formats)?;
        fields.extend(of_contract);
        arrays.extend(columns);
    }
    for factor in &columns.factors {
        let numbers = frame
            .numbers_or_infinite(&factor.theirs)
            .map_err(|err| match err.hint {
                None => err.hint("a factor is a column of numbers: `columns: [ … ]` names those to read"),
                Some(_) => err,
            })?;
        fields.push(Field::new(&factor.ours, DataType::Float64, true));
        arrays.push(Arc::new(table::nullable_of(numbers)));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
