//! The rows of a file of factors.

use super::config::FactorColumn;
use super::config::FeaturesConfig;
use super::contract_columns::Found;
use crate::finder::Finder;
use crate::frame::{Frame, Stated};
use crate::unpack::Packed;
use crate::value::{OUT_OF_RANGE, formats_or_iso, shown};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datasets::Date;
use datasets::layout::normal;
use stages_core::{StageError, is_default, table};
use std::sync::Arc;

const DATES: [&str; 3] = ["date", "datadate", "day"];

/// The columns of a file of factors.
#[derive(Debug)]
pub(super) struct Columns {
    /// The column of dates; `None` if rows have no dates.
    pub date: Option<String>,
    pub symbol: Option<String>,
    contract: Option<Found>,
    /// The factors, in the order of the configuration or, if that names none, of the file.
    pub factors: Vec<FactorColumn>,
    /// The line to tell of a column that is not read.
    note: Option<String>,
}

impl Columns {
    /// Finds the columns in a file's header. `checks_unread` refuses a file whose rows differ by a column
    /// that is not read as by a symbol.
    pub(super) fn of(
        packed: &Packed,
        config: &FeaturesConfig,
        checks_unread: bool,
    ) -> Result<Self, StageError> {
        let packed = &*config.text.with_header(packed)?;
        let mut finder = Finder::new(packed)?;
        let contract = config.contract.as_ref();
        let contract = contract.and_then(|columns| Found::of(columns, &mut finder));
        let contract_keys: Vec<String> = contract.iter().flat_map(Found::names).cloned().collect();
        let date = finder.key("date", &config.date, &DATES);
        let listed = config.columns.0.iter().map(|column| &column.theirs);
        let symbol = finder.symbol(&config.symbol, listed)?;
        let symbol = symbol.filter(|symbol| !contract_keys.contains(symbol));
        if config.date.is_empty() && date.is_none() && !config.undated {
            finder.missing.push(format!("dates ({})", DATES.join(", ")));
        }
        if let Some(date) = date.as_ref().filter(|_| config.undated) {
            return Err(StageError::new(format!(
                "`{}` has the column of dates `{}`, and `undated` says that rows have none",
                packed.place,
                shown(date)
            ))
            .hint("leave `undated` out"));
        }
        let keys: Vec<String> = date.iter().chain(&symbol).chain(&contract_keys).cloned().collect();
        let named = &config.columns.0;
        let theirs = finder.others(named.iter().map(|column| &column.theirs), &keys);
        finder.check("`date`, `symbol` and `columns`")?;
        let factor = |(i, theirs): (usize, String)| FactorColumn {
            // A column that is not renamed keeps the spelling of the file.
            ours: match named.get(i).filter(|column| column.ours != column.theirs) {
                Some(column) => column.ours.clone(),
                None => theirs.clone(),
            },
            theirs,
        };
        let factors: Vec<FactorColumn> = theirs.into_iter().enumerate().map(factor).collect();
        let ours = factors.iter().map(|factor| &factor.ours);
        let hint =
            "`columns` names the factors to read; `columns: { my_name: NAME }` renames it if it is one";
        finder.check_others("factor", ours, |name| config.is_key(name), hint)?;
        let theirs = factors.iter().map(|factor| &factor.theirs);
        let note = match symbol.is_none() && config.symbol.is_empty() && checks_unread {
            true => finder.check_unread(date.as_deref(), theirs, contract_keys.iter())?,
            false => None,
        };
        Ok(Self {
            date,
            symbol,
            contract,
            factors,
            note,
        })
    }
}

/// The date given to rows without dates: earlier than all dates that files can have.
pub(super) const UNDATED: Date = Date(OUT_OF_RANGE.0 + 1);

/// Reads a table of factors. The columns are `symbol` (`only`, empty for the whole market, where the file has
/// none; null if missing), `date`,
/// those of the contract if factors are by contract, and the factors (null without a value, infinite if the
/// value is not a finite number).
pub(super) fn parse(packed: &Packed, config: &FeaturesConfig, only: &str) -> Result<RecordBatch, StageError> {
    let columns = Columns::of(packed, config, only.is_empty())?;
    let packed = &*config.text.with_header(packed)?;
    let contract = columns.contract.as_ref();
    let is_factor = |name: &str| columns.factors.iter().any(|factor| normal(&factor.theirs) == name);
    let strike = contract.and_then(Found::numeric).map(|strike| normal(strike));
    let is_key = |name: &str| {
        let keys = [columns.date.as_ref(), columns.symbol.as_ref()].into_iter().flatten();
        let mut keys = keys.chain(contract.iter().flat_map(|found| found.names()));
        keys.any(|key| normal(key) == name)
    };
    // A symbol or a date of digits is a text, also where it is a factor, too.
    let is_plain = is_default(&config.text.numbers);
    let is_number =
        |name: &str| is_plain && (strike.as_deref() == Some(name) || is_factor(name) && !is_key(name));
    let is_wanted = |name: &str| is_factor(name) || is_key(name);
    let frame = Frame::read_with_numbers(packed, is_wanted, is_number)?.with_stated(Stated::of_settings(
        &config.text.numbers,
        "date_format",
        &config.date_format,
    ));
    if let Some(note) = &columns.note {
        frame.note(note.clone());
    }
    let formats = formats_or_iso(&config.date_format);
    let dates = match &columns.date {
        Some(date) => frame.dates(date, &formats, "")?,
        None => vec![UNDATED; frame.rows()],
    };
    let symbols = match &columns.symbol {
        Some(symbol) => {
            let mut symbols = Vec::with_capacity(frame.rows());
            frame.symbols(symbol, |_, text| {
                symbols.push((!text.is_empty()).then(|| text.to_owned()));
                Ok(())
            })?;
            symbols
        }
        None => vec![Some(only.to_owned()); frame.rows()],
    };
    let mut fields = vec![
        Field::new("symbol", DataType::Utf8, true),
        Field::new("date", DataType::Date32, false),
    ];
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter(&symbols)),
        Arc::new(Date32Array::from_iter_values(dates.iter().map(|date| date.0))),
    ];
    if let Some(contract) = contract {
        let format = config
            .contract
            .as_ref()
            .map_or_else(Default::default, |contract| contract.format);
        let (contract_keys, columns) = contract.read(&frame, format, &formats)?;
        fields.extend(contract_keys);
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
