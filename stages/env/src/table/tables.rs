//! The format of an environment's tables: Arrow IPC files, read once when it is opened.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, the names of the parts,
//! and of each world its symbols and the ranges of its splits. A [part](crate::parts), a month, is a file:
//!
//! | file | holds |
//! | --- | --- |
//! | `table/FROM_TO.arrow` | a row for each instant of each world: date, world (where there are several), instant (of several rows a day), and for each of N symbols the raw values of F observed columns `[N, F]`; the price or the reward column of each symbol `[N]`, or the reward column of each choice `[K]`; and the columns `[E]` that expressions name |
//!
//! So a day more changes the file of its own month and `env.json`. [`build`](super::build) writes them,
//! [`step`](super::step) reads them. What stands in a row is known at its instant.

use super::config::TableConfig;
use crate::ipc;
use crate::parts::{Column, Part};
use crate::portfolio::World;
use crate::spec::EnvSpec;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, Date32Array, RecordBatch};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::ops::Range;
use std::sync::Arc;

/// The directory of the parts.
pub(crate) const TABLE: &str = "table";

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
    /// The names of the parts, in order.
    pub parts: Vec<String>,
    /// One symbol each, or several side by side. Instants are numbered from a world's first one.
    pub worlds: Vec<World>,
}

impl Spec {
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
    /// The file of a part, of the rows of all worlds.
    pub(crate) fn encode(worlds: &[&Self], part: &Part) -> Result<Vec<u8>, StageError> {
        let t = |world: usize| worlds[world].dates.len();
        let (dates, _) = part.gather(|world| (&worlds[world].dates, t(world)));
        let mut columns: Vec<(&str, ArrayRef)> = vec![("date", Arc::new(Date32Array::from(dates)))];
        if worlds.len() > 1 {
            columns.push(part.world_column());
        }
        let (instants, width) = part.gather(|world| (&worlds[world].instants, t(world)));
        if width > 0 {
            columns.push(("instant", ipc::matrix::<Int64Type>(instants, 1)?));
        }
        let (observed, width) = part.gather(|world| (&worlds[world].observed, t(world)));
        columns.push(("observed", ipc::matrix::<Float32Type>(observed, width)?));
        for (name, (values, width)) in [
            ("paying", part.gather(|world| (&worlds[world].paying, t(world)))),
            ("terms", part.gather(|world| (&worlds[world].terms, t(world)))),
        ] {
            if width > 0 {
                columns.push((name, ipc::matrix::<Float64Type>(values, width)?));
            }
        }
        ipc::write(columns)
    }

    /// Appends rows of a file.
    pub(crate) fn append(&mut self, file: &RowsFile, rows: &Range<usize>) {
        self.dates.extend_from_slice(file.dates.rows(rows));
        self.instants.extend_from_slice(file.instants.rows(rows));
        self.observed.extend_from_slice(file.observed.rows(rows));
        self.paying.extend_from_slice(file.paying.rows(rows));
        self.terms.extend_from_slice(file.terms.rows(rows));
    }
}

/// The columns of a part's file, as of [`Rows`], without a copy.
pub(crate) struct RowsFile {
    dates: Column<i32>,
    instants: Column<i64>,
    observed: Column<f32>,
    paying: Column<f64>,
    terms: Column<f64>,
}

impl RowsFile {
    /// The columns that an environment of `spec` has.
    pub(crate) fn new(batch: &RecordBatch, spec: &Spec) -> Result<Self, StageError> {
        let observed = spec.symbols() * spec.observed.len();
        Ok(Self {
            dates: Column::new::<Date32Type>(batch, "date", 1)?,
            instants: Column::new::<Int64Type>(batch, "instant", usize::from(spec.is_intraday))?,
            observed: Column::new::<Float32Type>(batch, "observed", observed)?,
            paying: Column::new::<Float64Type>(batch, "paying", spec.paying_width())?,
            terms: Column::new::<Float64Type>(batch, "terms", spec.terms.len())?,
        })
    }
}
