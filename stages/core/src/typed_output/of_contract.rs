//! Rows of option contracts: the columns that name a contract, and the checks that all such rows share.

use super::columns::{Table, column_or_filled, shown};
use crate::error::StageError;
use crate::table;
use arrow_array::cast::AsArray as _;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array as _, ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use datasets::layout::{Contract, SymbolFormat};
use datasets::schema::{CONTRACT, SNAPSHOT, Type};
use std::sync::Arc;

/// The column with a contract's symbol, an alternative to its terms.
pub(super) const SYMBOL: &str = "contract";

/// The terms that identify a contract; the option class is the symbol where it is left out.
const TERMS: [&str; 3] = ["expiry", "strike", "call"];

/// Returns whether a table of features has a row for each contract, judged by its stored columns.
pub(super) fn is_by_contract(batch: &RecordBatch) -> bool {
    // A user's feature of this name is numeric.
    let call = batch.column_by_name("call");
    call.is_some_and(|call| *call.data_type() == DataType::Boolean)
}

/// Returns whether the columns of a file identify contracts, by their terms or by their symbols.
pub(super) fn names_contracts(table: &Table, names: &[&str]) -> bool {
    TERMS.iter().all(|term| names.contains(term)) || has_symbols(table, names)
}

/// Returns whether a file has some of the columns that identify contracts, for the hint.
pub(super) fn names_some_terms(names: &[&str]) -> bool {
    TERMS.iter().any(|term| names.contains(term))
}

/// Returns whether the column [`SYMBOL`] has texts. A numeric column is a feature of that name.
fn has_symbols(table: &Table, names: &[&str]) -> bool {
    if !names.contains(&SYMBOL) || TERMS.iter().any(|term| names.contains(term)) {
        return false;
    }
    let Some(array) = table.batch.column_by_name(SYMBOL) else {
        return false;
    };
    match array.data_type() {
        DataType::Dictionary(..) | DataType::LargeUtf8 | DataType::Utf8View => true,
        // A column of objects in pandas that lost its rows.
        DataType::Null => array.is_empty(),
        // The fields of CSV are all texts.
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            texts.iter().flatten().any(|text| text.parse::<f64>().is_err())
        }
        _ => false,
    }
}

/// Reads the columns [`CONTRACT`] of a file.
///
/// # Errors
/// When a column has the wrong type, a value is missing, or a contract symbol cannot be parsed.
pub(super) fn columns(table: &Table, names: &[&str]) -> Result<Vec<ArrayRef>, StageError> {
    if !has_symbols(table, names) {
        let columns = CONTRACT.iter().map(|column| column_or_filled(table, names, column));
        return columns.collect();
    }
    let symbols = table.column_of(SYMBOL, Type::Text, false)?;
    let symbols: &StringArray = symbols.as_string();
    let contract = |row: usize| -> Result<Contract<'_>, StageError> {
        let text = symbols.value(row);
        let formats = [SymbolFormat::Occ, SymbolFormat::Deribit];
        formats.iter().find_map(|format| format.parse(text)).ok_or_else(|| {
            table
                .error(
                    row,
                    SYMBOL,
                    &format!("`{}` is not the symbol of a contract", shown(text)),
                )
                .hint(
                    "write it as SPY240419P00500000 or BTC-28MAR25-90000-C, or the columns `expiry`, \
                    `strike` and `call`",
                )
        })
    };
    let contracts: Vec<Contract<'_>> = (0..symbols.len()).map(contract).collect::<Result<_, _>>()?;
    let contracts = || contracts.iter();
    Ok(vec![
        Arc::new(Date32Array::from_iter_values(contracts().map(|of| of.expiry.0))),
        Arc::new(StringArray::from_iter_values(contracts().map(|of| of.root))),
        Arc::new(Float64Array::from_iter_values(contracts().map(|of| of.strike))),
        Arc::new(BooleanArray::from_iter(contracts().map(|of| Some(of.call)))),
    ])
}

/// Checks the strikes of features by contract, and everything that [`check_times`] does.
pub(super) fn check(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let strikes = table::floats_or_nan(batch, "strike")?;
    let below = |row: usize| format!("{} is not above 0", strikes[row]);
    table.refuse("strike", |row| strikes[row] <= 0.0, below, "leave the row out")?;
    check_times(table, batch)
}

/// Checks that no contract has expired by the date of its row, and that instants lie on their rows' dates.
pub(super) fn check_times(table: &Table, batch: &RecordBatch) -> Result<(), StageError> {
    let (dates, expiries) = (table::dates(batch, "date")?, table::dates(batch, "expiry")?);
    table.refuse(
        "expiry",
        |row| expiries[row] < dates[row],
        |row| format!("{} is before the day of the row, {}", expiries[row], dates[row]),
        "leave out the rows of contracts that have expired",
    )?;
    if let Some(instants) = batch.column_by_name(SNAPSHOT.name) {
        let instants = instants.as_primitive::<TimestampMicrosecondType>();
        let day = |row: usize| instants.value(row).div_euclid(86_400_000_000);
        // The exchange's date differs from the UTC date by at most a day.
        table.refuse(
            SNAPSHOT.name,
            |row| (day(row) - i64::from(dates[row].0)).abs() > 1,
            |row| format!("the instant is not of the day {}", dates[row]),
            "`date` is the day of the instant in the time zone of the exchange",
        )?;
    }
    Ok(())
}
