//! The series that a row of factors belongs to: a symbol, a contract, or the whole market.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use stages_core::{StageError, table};
use std::fmt;

/// A series of factors over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series {
    /// The symbol; empty if the files have no symbols.
    pub symbol: String,
    /// The contract, if factors are by contract.
    pub contract: Option<Contract>,
}

/// A contract on a symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Contract {
    /// The option class; empty if the files have none.
    pub root: String,
    /// The expiry in days since 1970-01-01.
    pub expiry: i32,
    /// The bits of the strike's `f64`.
    pub strike: u64,
    pub call: bool,
}

impl Series {
    /// The series of a symbol, or of the whole market if `symbol` is empty.
    pub(super) fn of_symbol(symbol: &str) -> Self {
        Self {
            symbol: symbol.to_owned(),
            contract: None,
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(contract) = &self.contract else {
            return f.write_str(if self.symbol.is_empty() {
                "the market"
            } else {
                &self.symbol
            });
        };
        let name = if contract.root.is_empty() {
            &self.symbol
        } else {
            &contract.root
        };
        let right = if contract.call { "call" } else { "put" };
        let (expiry, strike) = (datasets::Date(contract.expiry), f64::from_bits(contract.strike));
        write!(
            f,
            "{name}{}{expiry} {strike} {right}",
            if name.is_empty() { "" } else { " " }
        )
    }
}

/// The columns that identify contracts in a table of parsed rows.
pub(super) struct Contracts<'a> {
    expiries: &'a Date32Array,
    roots: &'a StringArray,
    strikes: &'a Float64Array,
    calls: &'a BooleanArray,
}

impl<'a> Contracts<'a> {
    /// Finds the contract columns of a table.
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self, StageError> {
        let expiries = batch
            .column_by_name("expiry")
            .and_then(|expiries| expiries.as_primitive_opt());
        Ok(Self {
            expiries: expiries.ok_or_else(|| StageError::new("the table has no column `expiry` of days"))?,
            roots: table::texts(batch, "root")?,
            strikes: table::floats(batch, "strike")?,
            calls: table::bools(batch, "call")?,
        })
    }

    /// The contract of a row; `None` if it could not be read.
    pub(super) fn row(&self, row: usize) -> Option<Contract> {
        let is_valid = self.expiries.is_valid(row)
            && self.roots.is_valid(row)
            && self.strikes.is_valid(row)
            && self.calls.is_valid(row);
        is_valid.then(|| Contract {
            root: self.roots.value(row).to_owned(),
            expiry: self.expiries.value(row),
            strike: self.strikes.value(row).to_bits(),
            call: self.calls.value(row),
        })
    }
}
