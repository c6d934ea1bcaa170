//! The format of an environment's tables: Arrow IPC files, which are looked up in place.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, and of each world its symbols and the ranges of its splits. A world of several has a
//! directory, a single one has its file at the top:
//!
//! | file | holds |
//! | --- | --- |
//! | `table.arrow` | a row for each instant: date, instant (of several rows a day), and for each of N symbols the raw values of F observed columns `[N, F]`; the price or the reward column of each symbol `[N]`, or the reward column of each choice `[K]`; and the columns `[E]` that expressions name |
//!
//! [`build`](super::build) writes them, [`step`](super::step) reads them. What stands in a row is known at its instant.

use super::config::TableConfig;
use crate::ipc;
use crate::spec::EnvSpec;
use crate::split::Splits;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, Date32Array};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::sync::Arc;

pub(crate) const SPEC: &str = "env.json";
const TABLE: &str = "table.arrow";

/// The contents of `env.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub config: TableConfig,
    pub env: EnvSpec,
    /// The names of the observed columns `[F]`.
    pub observed: Vec<String>,
    /// The names of the columns that steps are paid by, one or K.
    pub paying: Vec<String>,
    /// The names of the columns that expressions name `[E]`.
    pub terms: Vec<String>,
    /// True where rows have instants.
    pub is_intraday: bool,
    pub worlds: Vec<World>,
}

/// A world: one symbol, or several side by side. Instants are numbered from its first one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub name: String,
    /// `[N]`.
    pub symbols: Vec<String>,
    /// The first instant at which every observed column has had a value.
    pub warm_up: usize,
    pub splits: Splits,
    /// The directory of its file; empty for the top.
    pub directory: String,
}

impl World {
    /// The name of its file.
    pub(crate) fn file(&self) -> String {
        match self.directory.is_empty() {
            true => TABLE.to_owned(),
            false => format!("{}/{TABLE}", self.directory),
        }
    }
}

impl Spec {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, StageError> {
        let json =
            serde_json::to_value(self).map_err(|err| StageError::new(format!("cannot write `{SPEC}`: {err}")))?;
        Ok(cache::canonical_json(&json).into_bytes())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        serde_json::from_slice(bytes).map_err(|err| {
            StageError::new(format!("cannot read `{SPEC}` of the environment: {err}"))
                .hint("it was made by another version or damaged; run the environment's stage again")
        })
    }

    /// N, the same in each world.
    pub(crate) fn symbols(&self) -> usize {
        self.worlds.first().map_or(0, |world| world.symbols.len())
    }

    /// The values of a row that steps are paid by: N or K.
    pub(crate) fn paying_width(&self) -> usize {
        self.symbols() * self.paying.len()
    }
}

/// The rows of a world, T of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    /// Days since 1970-01-01 `[T]`.
    pub dates: Vec<i32>,
    /// Microseconds since 1970-01-01 00:00 UTC `[T]`; empty where a day has one row.
    pub instants: Vec<i64>,
    /// `[T, N, F]`, raw; NaN before the first value.
    pub observed: Vec<f32>,
    /// `[T, N]` or `[T, K]`.
    pub paying: Vec<f64>,
    /// `[T, E]`.
    pub terms: Vec<f64>,
}

impl Rows {
    pub(crate) fn encode(self) -> Result<Vec<u8>, StageError> {
        let t = self.dates.len().max(1);
        let mut columns: Vec<(&str, ArrayRef)> = vec![("date", Arc::new(Date32Array::from(self.dates)))];
        if !self.instants.is_empty() {
            columns.push(("instant", ipc::matrix::<Int64Type>(self.instants, 1)?));
        }
        let width = self.observed.len() / t;
        columns.push(("observed", ipc::matrix::<Float32Type>(self.observed, width)?));
        for (name, values) in [("paying", self.paying), ("terms", self.terms)] {
            let width = values.len() / t;
            if width > 0 {
                columns.push((name, ipc::matrix::<Float64Type>(values, width)?));
            }
        }
        ipc::write(columns)
    }

    /// Reads the file of a world of `spec`.
    pub(crate) fn decode(name: &str, file: Bytes, spec: &Spec) -> Result<Self, StageError> {
        let batch = ipc::read(name, file)?;
        let rows = Self {
            dates: ipc::numbers::<Date32Type>(&batch, "date")?.to_vec(),
            instants: match spec.is_intraday {
                true => ipc::numbers::<Int64Type>(&batch, "instant")?.to_vec(),
                false => Vec::new(),
            },
            observed: ipc::numbers::<Float32Type>(&batch, "observed")?.to_vec(),
            paying: ipc::numbers::<Float64Type>(&batch, "paying")?.to_vec(),
            terms: match spec.terms.is_empty() {
                true => Vec::new(),
                false => ipc::numbers::<Float64Type>(&batch, "terms")?.to_vec(),
            },
        };
        let t = rows.dates.len();
        let fits = rows.instants.len() == if spec.is_intraday { t } else { 0 }
            && rows.observed.len() == t * spec.symbols() * spec.observed.len()
            && rows.paying.len() == t * spec.paying_width()
            && rows.terms.len() == t * spec.terms.len();
        if fits { Ok(rows) } else { Err(mismatch()) }
    }
}

pub(crate) fn mismatch() -> StageError {
    StageError::new("the environment's tables are inconsistent").hint("run the environment's stage again with --force")
}
