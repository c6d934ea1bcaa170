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
use crate::parts::{TableColumn, TableRows, columns};
use crate::portfolio::World;
use crate::spec::EnvSpec;
use serde::{Deserialize, Serialize};

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
    /// The worlds: of one symbol each, or of several side by side. Instants are numbered from a world's first
    /// one.
    pub worlds: Vec<World>,
}

impl Spec {
    /// N, the number of symbols, the same in each world.
    pub(crate) fn symbols(&self) -> usize {
        self.worlds.first().map_or(0, |world| world.symbols.len())
    }

    /// The number of values in a row that steps are paid by: N or K.
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

impl TableRows for Rows {
    type Spec = Spec;
    const COLUMNS: &'static [&'static dyn TableColumn<Self>] = columns![Rows:
        One Date32Type "date", dates, |_| Some(1);
        Row Int64Type "instant", instants, |spec| Some(usize::from(spec.is_intraday));
        Row Float32Type "observed", observed, |spec| Some(spec.symbols() * spec.observed.len());
        Row Float64Type "paying", paying, |spec| Some(spec.paying_width());
        Row Float64Type "terms", terms, |spec| Some(spec.terms.len());
    ];

    fn dates(&self) -> &[i32] {
        &self.dates
    }
}
