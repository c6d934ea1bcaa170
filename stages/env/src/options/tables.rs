//! The format of an environment's tables: Arrow IPC files, which are mapped and looked up in place.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, and of each world the
//! ranges of its splits and the names of its parts. A part is a stretch of snapshots of a world, as long as a
//! partition of the chain, and has a directory of two files:
//!
//! | file | holds |
//! | --- | --- |
//! | `snapshots.arrow` | a row for each snapshot: date (and instant, where there are several a day), underlying, rate, raw market features `[F]`, contracts on the slate `[K]` (indices of the part's list, -1 for an empty slot), call and put at the money by maturity, raw slate features `[K, G]` (with features by contract, `[K, G + C]`), and the features that are not observed `[H]` |
//! | `paths.arrow` | a row for each contract of the part: its terms (and instant of settlement, likewise), its first snapshot there, its quote history (an entry of 8 values, [`Entry`], is one cache line), where the configuration needs them its volume and open interest, the sizes of its quotes, and its gains in the scenarios of portfolio margin, and its last volatility and time value for the next part |
//!
//! So a day more changes the files of its own part and `env.json`. [`build`](super::build) writes them,
//! [`step`](super::step) reads them.

use super::config::{OptionsConfig, SlateConfig};
use super::portfolio_margin::RiskRow;
use crate::adjustment::Adjustment;
use crate::ipc;
use crate::parts::{Part, TableColumn, TableRows, columns};
use crate::spec::EnvSpec;
use crate::split::Splits;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow_buffer::ScalarBuffer;
use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use datasets::schema::SNAPSHOT;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::sync::Arc;

const SNAPSHOTS: &str = "snapshots.arrow";
const PATHS: &str = "paths.arrow";
/// The column of the instants of settlement.
pub(crate) const SETTLEMENT: &str = "settlement";
/// The column of the shares that a unit of a contract delivers.
pub(crate) const DELIVERABLE: &str = "deliverable";

/// The column of volume and open interest, where trades depend on them.
pub(crate) const DEPTHS: &str = "depths";
/// The column of the sizes of bid and ask, where trades depend on them.
pub(crate) const SIZES: &str = "sizes";
/// The column of the gains in the scenarios of portfolio margin, where it is the rule.
pub(crate) const RISKS: &str = "risks";

/// A contract at a snapshot, per unit of the underlying.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    /// The price of a sale; NaN where there is none.
    pub bid: f64,
    /// The price of a purchase; NaN where there is none.
    pub ask: f64,
    pub mark: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    pub theta: f64,
    /// The source of the mark: [`Entry::QUOTED`], [`Entry::MODEL`] or [`Entry::SETTLED`].
    pub source: f64,
}

impl Entry {
    /// The number of values of an entry.
    pub(crate) const WIDTH: usize = 8;
    pub(crate) const QUOTED: f64 = 0.0;
    pub(crate) const MODEL: f64 = 1.0;
    pub(crate) const SETTLED: f64 = 2.0;
    /// An entry whose values are not yet known.
    pub(crate) const MISSING: Self = Self {
        bid: f64::NAN,
        ask: f64::NAN,
        mark: f64::NAN,
        delta: f64::NAN,
        gamma: f64::NAN,
        vega: f64::NAN,
        theta: f64::NAN,
        source: Self::MODEL,
    };

    pub(crate) fn is_missing(&self) -> bool {
        self.mark.is_nan()
    }

    /// Returns whether the contract settles at this snapshot.
    pub(crate) fn is_settled(&self) -> bool {
        self.source == Self::SETTLED
    }

    /// The price at which a signed quantity can be closed; NaN where it cannot.
    pub(crate) fn exit(&self, quantity: i32) -> f64 {
        if quantity < 0 { self.ask } else { self.bid }
    }

    /// The values, in the order of the fields.
    pub(crate) fn values(&self) -> &[f64; Self::WIDTH] {
        bytemuck::cast_ref(self)
    }
}

/// The contents of `env.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub multiplier: f64,
    pub config: OptionsConfig,
    pub env: EnvSpec,
    pub worlds: Vec<World>,
    /// The names of the hidden features.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

/// A world: the snapshots of one underlying. Snapshots are numbered from its first one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub symbol: String,
    /// The first snapshot at which every market feature has had a value.
    pub warm_up: usize,
    pub splits: Splits,
    /// The directories of the parts, in order.
    pub parts: Vec<String>,
    /// The adjustments for corporate actions, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
}

/// The names of a part's two files.
pub(crate) fn part_files(part: &str) -> [String; 2] {
    [SNAPSHOTS, PATHS].map(|file| format!("{part}/{file}"))
}

/// The snapshots of a part, as columns of `snapshots.arrow`.
#[derive(Default)]
pub(crate) struct SnapshotRows {
    /// The dates, in days since 1970-01-01.
    pub dates: Vec<i32>,
    /// The instants, in microseconds since 1970 UTC; empty where there is one snapshot a day.
    pub instants: Vec<i64>,
    pub underlying: Vec<f64>,
    pub rate: Vec<f64>,
    /// The carry of the nearest forward, annual; NaN where there is none. Empty where no future is traded.
    pub carry: Vec<f64>,
    /// `[T, 3]`: the prices of a future that is read from bars; empty where there is none.
    pub future: Vec<f64>,
    /// The market features `[T, F]`.
    pub features: Vec<f32>,
    /// The slate `[T, K]`, as indices of the part's list of contracts.
    pub slate: Vec<i32>,
    /// The call and the put at the money `[T, maturities, 2]`, as indices of the part's list of contracts.
    pub at_the_money: Vec<i32>,
    /// The features of the slots `[T, K, G]`.
    pub slate_features: Vec<f32>,
    /// The hidden features `[T, H]`.
    pub hidden: Vec<f32>,
}

impl TableRows for SnapshotRows {
    type Spec = SlateConfig;
    const COLUMNS: &'static [&'static dyn TableColumn<Self>] = columns![SnapshotRows:
        One Date32Type "date", dates, |_| Some(1);
        Instant TimestampMicrosecondType SNAPSHOT.name, instants, |_| None;
        One Float64Type "underlying", underlying, |_| Some(1);
        One Float64Type "rate", rate, |_| Some(1);
        One Float64Type "carry", carry, |_| None;
        Row Float64Type "future", future, |_| None;
        Row Float32Type "features", features, |_| None;
        Row Int32Type "contract", slate, |slate| Some(slate.slots());
        Row Int32Type "at_the_money", at_the_money, |slate| Some(2 * slate.maturities.len());
        Row Float32Type "slate_features", slate_features, |_| None;
        Row Float32Type "hidden", hidden, |_| None;
    ];

    fn dates(&self) -> &[i32] {
        &self.dates
    }
}

impl SnapshotRows {
    /// The file.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, StageError> {
        ipc::write(Self::arrays(&[self], &Part::whole(self.dates.len()))?)
    }
}

fn instants(values: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
}

/// The contracts of a part with their quote histories, as columns of `paths.arrow`.
#[derive(Default)]
pub(crate) struct ContractRows {
    pub root: Vec<String>,
    /// The expiries, in days since 1970-01-01.
    pub expiry: Vec<i32>,
    /// The instants of settlement, in microseconds since 1970 UTC; empty where there is one snapshot a day.
    pub settlement: Vec<i64>,
    pub strike: Vec<f64>,
    pub call: Vec<bool>,
    /// The shares that a unit delivers; left out of the file where all are 1.
    pub deliverable: Vec<f64>,
    /// The snapshot of the part at which the history begins.
    pub first: Vec<u32>,
    /// Entries without a quote.
    pub modelled: Vec<u32>,
    /// The last implied volatility, for the next part; NaN if there was none.
    pub volatility: Vec<f64>,
    /// The time value of the last mark, for the next part.
    pub time_value: Vec<f64>,
    /// One for each snapshot from the first on.
    pub entries: Vec<Vec<Entry>>,
    /// Volume and open interest, likewise; empty where trades do not depend on them.
    pub depths: Vec<Vec<[f32; 2]>>,
    /// Sizes of bid and ask, likewise.
    pub sizes: Vec<Vec<[f32; 2]>>,
    /// Gains in the scenarios of margin, likewise; empty where it does not depend on them.
    pub risks: Vec<Vec<RiskRow>>,
}

impl ContractRows {
    /// The file.
    pub(crate) fn encode(self) -> Result<Vec<u8>, StageError> {
        let lengths: Vec<usize> = self.entries.iter().map(Vec::len).collect();
        let flat: Vec<Entry> = self.entries.concat();
        let flat: Vec<f64> = bytemuck::cast_slice(&flat).to_vec();
        let floats = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("root", Arc::new(StringArray::from_iter_values(&self.root))),
            ("expiry", Arc::new(Date32Array::from(self.expiry))),
        ];
        if !self.settlement.is_empty() {
            columns.push((SETTLEMENT, instants(self.settlement)));
        }
        columns.extend([
            ("strike", floats(self.strike)),
            ("call", Arc::new(BooleanArray::from(self.call))),
        ]);
        if self.deliverable.iter().any(|shares| *shares != 1.0) {
            columns.push((DELIVERABLE, floats(self.deliverable)));
        }
        columns.extend([
            ("first", Arc::new(UInt32Array::from(self.first)) as ArrayRef),
            ("modelled", Arc::new(UInt32Array::from(self.modelled))),
            ("volatility", floats(self.volatility)),
            ("time_value", floats(self.time_value)),
            (
                "entries",
                ipc::lists(ipc::matrix::<Float64Type>(flat, Entry::WIDTH)?, &lengths)?,
            ),
        ]);
        if !self.depths.is_empty() {
            columns.push((DEPTHS, singles(&self.depths, &lengths)?));
        }
        if !self.sizes.is_empty() {
            columns.push((SIZES, singles(&self.sizes, &lengths)?));
        }
        if !self.risks.is_empty() {
            columns.push((RISKS, singles(&self.risks, &lengths)?));
        }
        ipc::write(columns)
    }
}

/// Rows of single-precision values, as many for each contract as it has entries.
fn singles<const N: usize>(rows: &[Vec<[f32; N]>], lengths: &[usize]) -> Result<ArrayRef, StageError> {
    ipc::lists(ipc::matrix::<Float32Type>(rows.concat().concat(), N)?, lengths)
}

/// The last volatility and time value of each contract in a `paths.arrow`.
pub(crate) fn last_values(file: &Bytes) -> Result<(ScalarBuffer<f64>, ScalarBuffer<f64>), StageError> {
    let table = ipc::read(PATHS, file.clone())?;
    let values = |name| ipc::numbers::<Float64Type>(&table, name);
    Ok((values("volatility")?, values("time_value")?))
}
