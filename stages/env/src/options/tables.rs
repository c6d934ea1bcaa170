//! The tables of an environment: Arrow IPC files, mapped and looked up in place.
//!
//! `env.json` holds configuration, observation and actions by name, normalisation, train and test ranges, and the names of the
//! parts. A part is a stretch of snapshots, as long as a partition of the chain, and has a folder of two files:
//!
//! | file | holds |
//! | --- | --- |
//! | `snapshots.arrow` | a row for each snapshot: date, underlying, rate, raw market features `[F]`, contracts on the slate `[K]` (places in the part's list, -1 for an empty slot), call and put at the money by maturity, raw slate features `[K, G]` |
//! | `paths.arrow` | a row for each contract of the part: its terms, its first snapshot there, its path (an entry of 8 numbers, [`Entry`], is one cache line), and what is carried over to the next part ([`super::paths`]) |
//!
//! So a day more changes the files of its own part and `env.json`. Opening maps the paths, which are nearly all there is, where
//! they lie; it reads the rows of snapshots and contracts, numbers the contracts in the order of their first appearance, and
//! normalises features, a few hundred bytes a day.

use super::build::accruals;
use super::config::OptionsConfig;
use super::normalise;
use super::paths::PATHS;
use super::split::Splits;
use crate::{EnvSpec, Normalisation, ipc};
use arrow::array::{ArrayRef, AsArray, Date32Array, Float64Array, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Date32Type, Float32Type, Float64Type, Int32Type, UInt32Type};
use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::sync::Arc;

pub(crate) const SPEC: &str = "env.json";
const SNAPSHOTS: &str = "snapshots.arrow";

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
    /// How many numbers it is.
    pub(crate) const WIDTH: usize = 8;
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

    /// That of a line without a contract.
    pub(crate) const NONE: Self = Self {
        bid: 0.0,
        ask: 0.0,
        mark: 0.0,
        delta: 0.0,
        gamma: 0.0,
        vega: 0.0,
        theta: 0.0,
        source: Self::QUOTED,
    };

    pub(crate) fn is_missing(&self) -> bool {
        self.mark.is_nan()
    }

    /// Its numbers, in the order of the fields.
    pub(crate) fn numbers(&self) -> &[f64; Self::WIDTH] {
        bytemuck::cast_ref(self)
    }
}

/// The number of no contract.
pub(crate) const NO_CONTRACT: u32 = u32::MAX;

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
    /// The folders of the parts, in order.
    pub parts: Vec<String>,
}

impl Spec {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, StageError> {
        let json = serde_json::to_value(self).map_err(|err| StageError::new(format!("`{SPEC}`: {err}")))?;
        Ok(cache::canonical_json(&json).into_bytes())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        serde_json::from_slice(bytes).map_err(|err| {
            StageError::new(format!("`{SPEC}` of the environment: {err}"))
                .hint("it was made by another version or damaged; run the environment's stage again")
        })
    }
}

/// The names of a part's two files.
pub(crate) fn names(part: &str) -> [String; 2] {
    [SNAPSHOTS, PATHS].map(|file| format!("{part}/{file}"))
}

/// The snapshots of a part, before they are a file.
#[derive(Default)]
pub(crate) struct Rows {
    /// Days since 1970-01-01.
    pub dates: Vec<i32>,
    pub underlying: Vec<f64>,
    pub rate: Vec<f64>,
    /// `[T, F]`.
    pub features: Vec<f32>,
    /// `[T, K]`, places in the part's list of contracts.
    pub slate: Vec<i32>,
    /// `[T, maturities, 2]`, likewise.
    pub at_the_money: Vec<i32>,
    /// `[T, K, G]`.
    pub slate_features: Vec<f32>,
}

impl Rows {
    pub(crate) fn file(self) -> Result<Vec<u8>, StageError> {
        let t = self.dates.len().max(1);
        let array = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("date", Arc::new(Date32Array::from(self.dates))),
            ("underlying", array(self.underlying)),
            ("rate", array(self.rate)),
        ];
        let width = self.features.len() / t;
        if width > 0 {
            columns.push(("features", ipc::matrix::<Float32Type>(self.features, width)?));
        }
        for (name, values) in [("contract", self.slate), ("at_the_money", self.at_the_money)] {
            let width = values.len() / t;
            columns.push((name, ipc::matrix::<Int32Type>(values, width)?));
        }
        let width = self.slate_features.len() / t;
        if width > 0 {
            columns.push((
                "slate_features",
                ipc::matrix::<Float32Type>(self.slate_features, width)?,
            ));
        }
        ipc::write(columns)
    }
}

/// The tables, open. T snapshots, K slots.
pub(crate) struct Tables {
    pub spec: Spec,
    /// Days since 1970-01-01.
    pub dates: Vec<i32>,
    pub underlying: Vec<f64>,
    /// What 1 of cash earns to the next snapshot.
    pub accrual: Vec<f64>,
    /// `[T, K]`, -1 for an empty slot.
    pub slate: Vec<i32>,
    /// `[T, maturities, 2]`, -1 where there is none.
    pub at_the_money: Vec<i32>,
    /// `[T, F + K G]`, as shown.
    pub rows: Vec<f32>,
    pub contracts: Vec<Contract>,
    /// The part of each snapshot.
    part_of: Vec<u32>,
    parts: Vec<Paths>,
}

/// The paths of a part.
struct Paths {
    /// The entries, where they lie in the file.
    entries: ScalarBuffer<f64>,
    /// The first contract that has some, by its number.
    first: u32,
    /// For each contract from that one on: its entry at snapshot t is number (this + t).
    bases: Vec<u32>,
}

impl Tables {
    /// Opens the files that `file` gives by name, showing observations as `normalise_as` where it is given.
    pub(crate) fn open(
        file: impl Fn(&str) -> Result<Bytes, StageError>,
        normalise_as: Option<&Normalisation>,
    ) -> Result<Self, StageError> {
        let mut spec = Spec::decode(&file(SPEC)?)?;
        if let Some(other) = normalise_as {
            spec.env.normalisation = Some(other.clone());
        }
        let slate = &spec.config.slate;
        let slots = 2 * slate.maturities.len() * slate.deltas.len();
        let mut reader = Reader::new(slots, 2 * slate.maturities.len());
        for part in &spec.parts {
            let [snapshots, paths] = names(part);
            reader.take(
                &ipc::read(&snapshots, file(&snapshots)?)?,
                &ipc::read(&paths, file(&paths)?)?,
            )?;
        }
        let this = reader.finish(spec)?;
        this.check()?;
        Ok(this)
    }

    /// Refuses tables whose indices lead out of one another, so that no step can.
    fn check(&self) -> Result<(), StageError> {
        let (t, n) = (self.dates.len(), self.contracts.len() as i32);
        let splits = &self.spec.splits;
        let fits = t > 0
            && self.slate.iter().chain(&self.at_the_money).all(|&id| id < n)
            && splits
                .train
                .iter()
                .chain([&splits.test])
                .all(|range| range.first < range.last && range.last < t);
        if fits { Ok(()) } else { Err(misfit()) }
    }

    /// The paths at a snapshot.
    #[inline]
    pub(crate) fn at(&self, t: usize) -> At<'_> {
        let part = &self.parts[self.part_of[t] as usize];
        At {
            underlying: self.underlying[t],
            entries: bytemuck::cast_slice(&part.entries),
            bases: &part.bases,
            first: part.first,
            t: t as u32,
        }
    }

    /// The part of snapshot `t`.
    #[inline]
    pub(crate) fn part(&self, t: usize) -> u32 {
        self.part_of[t]
    }

    /// The entries of a part.
    #[inline]
    pub(crate) fn entries(&self, part: u32) -> Entries<'_> {
        Entries(bytemuck::cast_slice(&self.parts[part as usize].entries))
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

/// A snapshot's entries.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    /// The price of the underlying.
    pub underlying: f64,
    entries: &'a [Entry],
    bases: &'a [u32],
    first: u32,
    t: u32,
}

impl<'a> At<'a> {
    /// A contract whose path holds the snapshot.
    pub(crate) fn entry(self, contract: u32) -> &'a Entry {
        let base = self.bases[contract.wrapping_sub(self.first) as usize];
        &self.entries[base.wrapping_add(self.t) as usize]
    }

    /// Where the path of a contract is, for [`Entries::get`] at the snapshots of this part.
    pub(crate) fn base(self, contract: u32) -> u32 {
        self.bases[contract.wrapping_sub(self.first) as usize]
    }
}

/// What [`At::base`] of no contract is.
pub(crate) const NO_BASE: u32 = u32::MAX / 2;

/// The entries of a part.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a>(&'a [Entry]);

impl<'a> Entries<'a> {
    /// The entry at `base` plus the snapshot; [`Entry::NONE`] beyond all.
    #[inline(always)]
    pub(crate) fn get(self, place: u32) -> &'a Entry {
        self.0.get(place as usize).unwrap_or(&Entry::NONE)
    }
}

fn misfit() -> StageError {
    StageError::new("the environment's tables do not fit one another")
        .hint("run the environment's stage again with --force")
}

/// Puts the parts together.
struct Reader {
    slots: usize,
    pairs: usize,
    dates: Vec<i32>,
    underlying: Vec<f64>,
    rate: Vec<f64>,
    slate: Vec<i32>,
    at_the_money: Vec<i32>,
    /// `[T, F + K G]`.
    raw: Vec<f32>,
    contracts: Vec<Contract>,
    /// The numbers of the contracts that the last part left alive.
    alive: Vec<u32>,
    part_of: Vec<u32>,
    parts: Vec<Paths>,
}

impl Reader {
    fn new(slots: usize, pairs: usize) -> Self {
        Self {
            slots,
            pairs,
            dates: Vec::new(),
            underlying: Vec::new(),
            rate: Vec::new(),
            slate: Vec::new(),
            at_the_money: Vec::new(),
            raw: Vec::new(),
            contracts: Vec::new(),
            alive: Vec::new(),
            part_of: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Takes the next part.
    fn take(&mut self, snapshots: &RecordBatch, paths: &RecordBatch) -> Result<(), StageError> {
        let (start, n) = (self.dates.len(), snapshots.num_rows());
        let dates = ipc::numbers::<Date32Type>(snapshots, "date")?;
        let Some(&last) = dates.last() else {
            return Err(misfit());
        };
        self.dates.extend_from_slice(&dates);
        self.underlying
            .extend_from_slice(&ipc::numbers::<Float64Type>(snapshots, "underlying")?);
        self.rate
            .extend_from_slice(&ipc::numbers::<Float64Type>(snapshots, "rate")?);
        self.part_of.resize(start + n, self.parts.len() as u32);

        let numbers = self.contracts(paths, start, n, last)?;
        let number = |place: i32| match usize::try_from(place) {
            Err(_) => Ok(-1),
            Ok(place) => numbers.get(place).map(|&id| id as i32).ok_or_else(misfit),
        };
        let slate = ipc::numbers::<Int32Type>(snapshots, "contract")?;
        let pairs = ipc::numbers::<Int32Type>(snapshots, "at_the_money")?;
        if slate.len() != n * self.slots || pairs.len() != n * self.pairs {
            return Err(misfit());
        }
        for &place in slate.iter() {
            self.slate.push(number(place)?);
        }
        for &place in pairs.iter() {
            self.at_the_money.push(number(place)?);
        }

        let shown = |name| match snapshots.column_by_name(name) {
            Some(_) => ipc::numbers::<Float32Type>(snapshots, name),
            None => Ok(Vec::new().into()),
        };
        let (ours, theirs) = (shown("features")?, shown("slate_features")?);
        let (f, g) = (ours.len() / n, theirs.len() / n);
        for t in 0..n {
            self.raw.extend_from_slice(&ours[t * f..(t + 1) * f]);
            self.raw.extend_from_slice(&theirs[t * g..(t + 1) * g]);
        }
        Ok(())
    }

    /// Takes the contracts of a part of `n` snapshots from `start` on, the last of them on the date `last`; gives their
    /// numbers.
    fn contracts(&mut self, paths: &RecordBatch, start: usize, n: usize, last: i32) -> Result<Vec<u32>, StageError> {
        let expiry = ipc::numbers::<Date32Type>(paths, "expiry")?;
        let strike = ipc::numbers::<Float64Type>(paths, "strike")?;
        let first = ipc::numbers::<UInt32Type>(paths, "first")?;
        let call = paths
            .column_by_name("call")
            .and_then(|column| column.as_boolean_opt())
            .ok_or_else(misfit)?;
        let (offsets, entries) = ipc::list_numbers::<Float64Type>(paths, "entries", Entry::WIDTH)?;
        let mut numbers = Vec::with_capacity(paths.num_rows());
        let (mut alive, mut bases) = (Vec::new(), Vec::with_capacity(paths.num_rows()));
        if self.alive.len() > paths.num_rows() {
            return Err(misfit());
        }
        for i in 0..paths.num_rows() {
            let (from, len) = (first[i] as usize, offsets[i + 1] - offsets[i]);
            let settles = expiry[i] <= last;
            let carried = self.alive.get(i).copied();
            let whole = if settles { from + len <= n } else { from + len == n };
            if len == 0 || !whole || (carried.is_some() && from > 0) {
                return Err(misfit());
            }
            let id = carried.unwrap_or(self.contracts.len() as u32);
            if carried.is_none() {
                self.contracts.push(Contract {
                    expiry: expiry[i],
                    strike: strike[i],
                    call: call.value(i),
                    first: (start + from) as u32,
                    last: 0,
                    settles: false,
                });
            }
            let contract = &mut self.contracts[id as usize];
            if (contract.expiry, contract.call) != (expiry[i], call.value(i)) || contract.strike != strike[i] {
                return Err(misfit());
            }
            contract.last = (start + from + len - 1) as u32;
            contract.settles = settles;
            // Less the snapshot's number, so that adding it gives the entry's.
            bases.push((offsets[i] as u32).wrapping_sub((start + from) as u32));
            if !settles {
                alive.push(id);
            }
            numbers.push(id);
        }
        self.alive = alive;
        let first = numbers.iter().copied().min().unwrap_or(0);
        let end = numbers.iter().map(|id| id + 1).max().unwrap_or(0);
        // Contracts between them that have settled have no entries: a number beyond all.
        let mut by_number = vec![NO_BASE; (end - first) as usize];
        for (&id, base) in numbers.iter().zip(bases) {
            by_number[(id - first) as usize] = base;
        }
        self.parts.push(Paths {
            entries,
            first,
            bases: by_number,
        });
        Ok(numbers)
    }

    fn finish(self, spec: Spec) -> Result<Tables, StageError> {
        let Self { dates, rate, raw, .. } = self;
        let width = raw.len() / dates.len().max(1);
        let rows = match &spec.env.normalisation {
            Some(by) => {
                let expected = spec.env.obs_dim();
                if by.offset.len() != expected || by.scale.len() != expected || width > expected {
                    return Err(StageError::new(format!(
                        "an observation here has {expected} elements, and the normalisation is for {}",
                        by.offset.len()
                    ))
                    .hint(
                        "a policy can only be evaluated on an environment with the observation that it was trained on",
                    ));
                }
                normalise::rows(&raw, width, by)
            }
            None => raw,
        };
        Ok(Tables {
            accrual: accruals(&dates, &rate),
            spec,
            dates,
            underlying: self.underlying,
            slate: self.slate,
            at_the_money: self.at_the_money,
            rows,
            contracts: self.contracts,
            part_of: self.part_of,
            parts: self.parts,
        })
    }
}
