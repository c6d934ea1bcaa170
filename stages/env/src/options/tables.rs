//! The tables of an environment: Arrow IPC files, mapped and looked up in place.
//!
//! | file | holds |
//! | --- | --- |
//! | `env.json` | configuration, observation and actions by name, normalisation, train and test ranges |
//! | `market.arrow` | a row for each snapshot: date, underlying, rate, accrual of cash to the next one, raw features `[F]` |
//! | `slate.arrow` | contract ids `[K]` (-1 for an empty slot), call and put at the money by maturity, raw features `[K, G]` |
//! | `rows.arrow` | market and slate features normalised, as they are shown, `[F + K G]` |
//! | `contracts.arrow` | a row for each contract ever on offer: its terms, first and last snapshot, where its path starts |
//! | `paths.arrow` | all paths, one after another; an entry of 8 numbers ([`Entry`]) is one cache line |

use super::config::OptionsConfig;
use super::split::Splits;
use crate::{EnvSpec, Normalisation, ipc};
use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Date32Type, Float32Type, Float64Type, Int32Type, UInt32Type, UInt64Type};
use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use datasets::Date;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::sync::Arc;

pub(crate) const SPEC: &str = "env.json";
const MARKET: &str = "market.arrow";
const SLATE: &str = "slate.arrow";
const ROWS: &str = "rows.arrow";
const CONTRACTS: &str = "contracts.arrow";
const PATHS: &str = "paths.arrow";

/// A contract at a snapshot, per unit of the underlying.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    /// What a seller gets; NaN where it cannot be sold.
    pub bid: f64,
    /// What a buyer pays; NaN where it cannot be bought.
    pub ask: f64,
    pub mark: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    pub theta: f64,
    /// Where the mark is from: [`Entry::QUOTED`], [`Entry::MODEL`], [`Entry::SETTLED`].
    pub source: f64,
}

impl Entry {
    pub(crate) const QUOTED: f64 = 0.0;
    pub(crate) const MODEL: f64 = 1.0;
    pub(crate) const SETTLED: f64 = 2.0;
    /// Not yet known.
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
}

/// A contract that was on offer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contract {
    /// Days since 1970-01-01.
    pub expiry: i32,
    pub strike: f64,
    pub call: bool,
    /// The first snapshot at which it was on offer.
    pub first: u32,
    /// The snapshot at which it settles, or the last one there is.
    pub last: u32,
    /// Whether it settles at `last`.
    pub settles: bool,
    /// Where its path starts.
    pub start: u64,
}

impl Contract {
    /// The number of entries in its path.
    pub(crate) fn len(&self) -> usize {
        (self.last - self.first + 1) as usize
    }
}

/// What `env.json` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub symbol: String,
    pub multiplier: f64,
    pub config: OptionsConfig,
    /// The first snapshot at which every market feature has had a value.
    pub warm_up: usize,
    pub splits: Splits,
    pub env: EnvSpec,
}

/// The tables before they are files.
pub(crate) struct Raw {
    pub dates: Vec<Date>,
    pub underlying: Vec<f64>,
    pub rate: Vec<f64>,
    pub accrual: Vec<f64>,
    pub features: Vec<f32>,
    pub feature_names: Vec<String>,
    pub slate: Vec<i32>,
    pub at_the_money: Vec<i32>,
    pub slate_features: Vec<f32>,
    pub contracts: Vec<Contract>,
    pub roots: Vec<String>,
    pub paths: Vec<Entry>,
    pub rows: Vec<f32>,
}

impl Raw {
    /// The files, in order.
    pub(crate) fn files(self, spec: &Spec) -> Result<Vec<(&'static str, Vec<u8>)>, StageError> {
        let t = self.dates.len();
        let k = self.slate.len() / t;
        let json = serde_json::to_value(spec).map_err(|err| StageError::new(format!("`{SPEC}`: {err}")))?;
        let array = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let mut market: Vec<(&str, ArrayRef)> = vec![
            (
                "date",
                Arc::new(Date32Array::from_iter_values(self.dates.iter().map(|date| date.0))),
            ),
            ("underlying", array(self.underlying)),
            ("rate", array(self.rate)),
            ("accrual", array(self.accrual)),
        ];
        if !self.feature_names.is_empty() {
            market.push((
                "features",
                ipc::matrix::<Float32Type>(self.features, self.feature_names.len())?,
            ));
        }
        let c = &self.contracts;
        let u32s =
            |f: &dyn Fn(&Contract) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(c.iter().map(f))) };
        let flags = |f: &dyn Fn(&Contract) -> bool| -> ArrayRef {
            Arc::new(c.iter().map(|contract| Some(f(contract))).collect::<BooleanArray>())
        };
        let contracts: Vec<(&str, ArrayRef)> = vec![
            ("root", Arc::new(StringArray::from(self.roots))),
            (
                "expiry",
                Arc::new(Date32Array::from_iter_values(c.iter().map(|c| c.expiry))),
            ),
            ("strike", array(c.iter().map(|c| c.strike).collect())),
            ("call", flags(&|c| c.call)),
            ("first", u32s(&|c| c.first)),
            ("last", u32s(&|c| c.last)),
            ("settles", flags(&|c| c.settles)),
            (
                "start",
                Arc::new(UInt64Array::from_iter_values(c.iter().map(|c| c.start))),
            ),
        ];
        let paths: Vec<f64> = bytemuck::cast_slice(&self.paths).to_vec();
        let (pairs, width, shown) = (
            self.at_the_money.len() / t,
            self.slate_features.len() / t,
            self.rows.len() / t,
        );
        Ok(vec![
            (SPEC, cache::canonical_json(&json).into_bytes()),
            (MARKET, ipc::write(market)?),
            (
                SLATE,
                ipc::write(vec![
                    ("contract", ipc::matrix::<Int32Type>(self.slate, k)?),
                    ("at_the_money", ipc::matrix::<Int32Type>(self.at_the_money, pairs)?),
                    ("features", ipc::matrix::<Float32Type>(self.slate_features, width)?),
                ])?,
            ),
            (
                ROWS,
                ipc::write(vec![("row", ipc::matrix::<Float32Type>(self.rows, shown)?)])?,
            ),
            (CONTRACTS, ipc::write(contracts)?),
            (
                PATHS,
                ipc::write(vec![("entry", ipc::matrix::<Float64Type>(paths, 8)?)])?,
            ),
        ])
    }
}

/// The tables, open.
pub(crate) struct Tables {
    pub spec: Spec,
    /// Days since 1970-01-01.
    pub dates: ScalarBuffer<i32>,
    pub underlying: ScalarBuffer<f64>,
    pub accrual: ScalarBuffer<f64>,
    /// `[T, K]`, -1 for an empty slot.
    pub slate: ScalarBuffer<i32>,
    /// `[T, maturities, 2]`, -1 where there is none.
    pub at_the_money: ScalarBuffer<i32>,
    /// `[T, F + K G]`, as shown.
    pub rows: ScalarBuffer<f32>,
    pub contracts: Vec<Contract>,
    paths: ScalarBuffer<f64>,
}

impl Tables {
    /// Opens the files that `file` gives by name, showing observations as `normalise_as` where it is given.
    pub(crate) fn open(
        file: impl Fn(&str) -> Result<Bytes, StageError>,
        normalise_as: Option<&Normalisation>,
    ) -> Result<Self, StageError> {
        let mut spec: Spec = serde_json::from_slice(&file(SPEC)?)
            .map_err(|err| StageError::new(format!("`{SPEC}` of the environment: {err}")))?;
        let table = |name: &str| ipc::read(name, file(name)?);
        let (market, slate, list) = (table(MARKET)?, table(SLATE)?, table(CONTRACTS)?);
        let rows = match normalise_as {
            Some(other) if Some(other) != spec.env.normalisation.as_ref() => {
                let rows = renormalise(&market, &slate, other, spec.env.obs_dim())?;
                spec.env.normalisation = Some(other.clone());
                rows
            }
            _ => ipc::numbers::<Float32Type>(&table(ROWS)?, "row")?,
        };
        let this = Self {
            dates: ipc::numbers::<Date32Type>(&market, "date")?,
            underlying: ipc::numbers::<Float64Type>(&market, "underlying")?,
            accrual: ipc::numbers::<Float64Type>(&market, "accrual")?,
            slate: ipc::numbers::<Int32Type>(&slate, "contract")?,
            at_the_money: ipc::numbers::<Int32Type>(&slate, "at_the_money")?,
            rows,
            contracts: contracts(&list)?,
            paths: ipc::numbers::<Float64Type>(&table(PATHS)?, "entry")?,
            spec,
        };
        this.check()?;
        Ok(this)
    }

    /// Refuses tables whose indices lead out of one another, so that no step can.
    fn check(&self) -> Result<(), StageError> {
        let (t, n) = (self.dates.len(), self.contracts.len() as i32);
        let slate = &self.spec.config.slate;
        let k = 2 * slate.maturities.len() * slate.deltas.len();
        let splits = &self.spec.splits;
        let fits = self.underlying.len() == t
            && self.accrual.len() == t
            && self.slate.len() == t * k
            && self.at_the_money.len() == t * slate.maturities.len() * 2
            && self.rows.len().is_multiple_of(t.max(1))
            && self.slate.iter().chain(self.at_the_money.iter()).all(|&id| id < n)
            && splits
                .train
                .iter()
                .chain([&splits.test])
                .all(|range| range.first < range.last && range.last < t)
            && self.contracts.iter().all(|contract| {
                contract.first <= contract.last
                    && (contract.last as usize) < t
                    && contract.start as usize + contract.len() <= self.paths.len() / 8
            });
        if fits {
            Ok(())
        } else {
            Err(StageError::new("the environment's tables do not fit one another")
                .hint("run the environment's stage again with --force"))
        }
    }

    /// The paths of all contracts.
    pub(crate) fn entries(&self) -> &[Entry] {
        bytemuck::cast_slice(&self.paths)
    }

    /// The width of a row: F + K G.
    pub(crate) fn width(&self) -> usize {
        self.rows.len() / self.dates.len()
    }

    /// What is shown of market and slate at snapshot `t`.
    pub(crate) fn row(&self, t: usize) -> &[f32] {
        let width = self.width();
        &self.rows[t * width..(t + 1) * width]
    }
}

fn renormalise(
    market: &RecordBatch,
    slate: &RecordBatch,
    by: &Normalisation,
    obs_dim: usize,
) -> Result<ScalarBuffer<f32>, StageError> {
    if by.offset.len() != obs_dim || by.scale.len() != obs_dim {
        return Err(StageError::new(format!(
            "an observation here has {obs_dim} elements, and the normalisation is for {}",
            by.offset.len()
        ))
        .hint("a policy can only be evaluated on an environment with the observation that it was trained on"));
    }
    let t = market.num_rows();
    let theirs = ipc::numbers::<Float32Type>(slate, "features")?;
    let ours = match market.column_by_name("features") {
        Some(_) => ipc::numbers::<Float32Type>(market, "features")?,
        None => Vec::new().into(),
    };
    let (f, g) = (ours.len() / t, theirs.len() / t);
    let raw: Vec<f32> = (0..t)
        .flat_map(|t| {
            ours[t * f..(t + 1) * f]
                .iter()
                .chain(&theirs[t * g..(t + 1) * g])
                .copied()
        })
        .collect();
    Ok(super::normalise::rows(&raw, f + g, by).into())
}

fn contracts(batch: &RecordBatch) -> Result<Vec<Contract>, StageError> {
    let flags = |name: &str| {
        batch
            .column_by_name(name)
            .and_then(|column| column.as_boolean_opt())
            .ok_or_else(|| StageError::new(format!("the environment's contracts have no column `{name}`")))
    };
    let (call, settles) = (flags("call")?, flags("settles")?);
    let expiry = ipc::numbers::<Date32Type>(batch, "expiry")?;
    let strike = ipc::numbers::<Float64Type>(batch, "strike")?;
    let first = ipc::numbers::<UInt32Type>(batch, "first")?;
    let last = ipc::numbers::<UInt32Type>(batch, "last")?;
    let start = ipc::numbers::<UInt64Type>(batch, "start")?;
    Ok((0..batch.num_rows())
        .map(|i| Contract {
            expiry: expiry[i],
            strike: strike[i],
            call: call.value(i),
            first: first[i],
            last: last[i],
            settles: settles.value(i),
            start: start[i],
        })
        .collect())
}
