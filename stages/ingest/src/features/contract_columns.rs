//! The columns that identify the contract of a row of factors.

use crate::finder::Finder;
use crate::frame::Frame;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, StringArray};
use arrow_schema::{DataType, Field};
use datasets::layout::SymbolFormat;
use datasets::schema::CONTRACT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError};
use std::sync::Arc;

/// The columns of a contract: its symbol (`id`), or its terms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContractColumns {
    /// The column of the contract's symbol, such as `SPY240419P00500000`; empty for `contract`,
    /// `contract_symbol`, `option_symbol` or `occ_symbol`, where the columns of the terms are not named.
    pub id: String,
    /// Its format.
    pub format: SymbolFormat,
    /// The column of expiries, in the format of dates; empty for `expiry`, `expiration` or `exdate`.
    pub expiry: String,
    /// The column of strikes, in currency; empty for `strike` or `strike_price`.
    pub strike: String,
    /// The column of rights, `C` and `P`, `call` and `put`, or true for a call; empty for `right`, `call`,
    /// `cp_flag`, `option_type` or `type`.
    pub right: String,
    /// The column of option classes; empty for `root`. Where a file has none, a row is of every class with
    /// these terms.
    pub root: String,
}

impl ContractColumns {
    /// Refuses columns that exclude one another.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        match self.id.is_empty() || !self.names_terms() {
            true => Ok(()),
            false => Err(ConfigProblem::new(
                "contract",
                "both the contract's symbol and its terms are named",
            )
            .hint("keep `id`, or `expiry`, `strike` and `right`")),
        }
    }

    fn names_terms(&self) -> bool {
        [&self.expiry, &self.strike, &self.right, &self.root]
            .iter()
            .any(|name| !name.is_empty())
    }
}

/// The columns of a file from which contracts are read.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Id(String),
    Terms {
        expiry: String,
        strike: String,
        right: String,
        root: Option<String>,
    },
}

impl Found {
    /// Finds the columns of contracts by their names.
    pub(super) fn of(columns: &ContractColumns, finder: &mut Finder) -> Option<Self> {
        let known = ["contract", "contract_symbol", "option_symbol", "occ_symbol"];
        let id = finder.first(&columns.id, &known);
        if let Some(id) = id.filter(|_| !columns.names_terms()) {
            return Some(Self::Id(id));
        }
        if !columns.id.is_empty() {
            finder.missing.push(format!("`{}` for `contract.id`", columns.id));
            return None;
        }
        let mut term = |field: &str, given: &str, known: &[&str]| {
            finder.needed(&format!("contract.{field}"), given, known)
        };
        let expiry = term("expiry", &columns.expiry, &["expiry", "expiration", "exdate"]);
        let strike = term("strike", &columns.strike, &["strike", "strike_price"]);
        let rights = ["right", "call", "cp_flag", "option_type", "type"];
        let right = term("right", &columns.right, &rights);
        let root = finder.key("contract.root", &columns.root, &["root"]);
        Some(Self::Terms {
            expiry: expiry?,
            strike: strike?,
            right: right?,
            root,
        })
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<&String> {
        match self {
            Self::Id(id) => vec![id],
            Self::Terms {
                expiry,
                strike,
                right,
                root,
            } => [expiry, strike, right].into_iter().chain(root).collect(),
        }
    }

    /// The column of strikes, the only numeric one.
    pub(super) fn numeric(&self) -> Option<&String> {
        match self {
            Self::Id(_) => None,
            Self::Terms { strike, .. } => Some(strike),
        }
    }

    /// The columns [`CONTRACT`] of a file: null where they cannot be read, and an empty class if the file has
    /// none.
    pub(super) fn read(
        &self,
        frame: &Frame,
        format: SymbolFormat,
        formats: &[String],
    ) -> Result<(Vec<Field>, Vec<ArrayRef>), StageError> {
        let rows = frame.rows();
        let (mut expiries, mut strikes, mut calls) = (vec![None; rows], vec![None; rows], vec![None; rows]);
        let mut roots: Vec<Option<String>> = vec![Some(String::new()); rows];
        match self {
            Self::Id(id) => {
                frame.texts(id, |row, text| {
                    let contract = format.parse(text);
                    expiries[row] = contract.as_ref().map(|contract| contract.expiry.0);
                    strikes[row] = contract.as_ref().map(|contract| contract.strike);
                    calls[row] = contract.as_ref().map(|contract| contract.call);
                    roots[row] = contract.map(|contract| contract.root.to_owned());
                    Ok(())
                })?;
            }
            Self::Terms {
                expiry,
                strike,
                right,
                root,
            } => {
                let dates = frame.dates(expiry, formats, "")?;
                let is_date = |date: &datasets::Date| *date != crate::value::OUT_OF_RANGE;
                expiries = dates.iter().map(|date| is_date(date).then_some(date.0)).collect();
                let numbers = frame.numbers_or_infinite(strike)?;
                let is_strike = |strike: &f64| strike.is_finite() && *strike > 0.0;
                strikes = numbers
                    .into_iter()
                    .map(|strike| Some(strike).filter(is_strike))
                    .collect();
                calls = frame.map(right, |text| {
                    Ok(match text.to_ascii_lowercase().as_str() {
                        "c" | "call" | "calls" | "true" => Some(true),
                        "p" | "put" | "puts" | "false" => Some(false),
                        _ => None,
                    })
                })?;
                if let Some(root) = root {
                    roots = frame.map(root, |text| Ok((!text.is_empty()).then(|| text.to_owned())))?;
                }
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Date32Array::from(expiries)),
            Arc::new(StringArray::from(roots)),
            Arc::new(Float64Array::from(strikes)),
            Arc::new(BooleanArray::from(calls)),
        ];
        let types = [DataType::Date32, DataType::Utf8, DataType::Float64, DataType::Boolean];
        let fields = CONTRACT
            .iter()
            .zip(types)
            .map(|(column, ty)| Field::new(column.name, ty, true));
        Ok((fields.collect(), columns))
    }
}
