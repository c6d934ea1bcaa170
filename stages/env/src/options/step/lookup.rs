//! The open tables of an environment, in which a step looks up its values.
//!
//! Opening memory-maps the quote histories, which are nearly all of the data; it reads the rows of snapshots
//! and contracts, numbers the contracts in the order of their first appearance, and normalises features, a
//! few hundred bytes a day.

use crate::adjustment::Adjustment;
use crate::env_artifact::{self, Files};
use crate::hedge::FuturePrice;
use crate::ipc;
use crate::normalise;
use crate::open_options::OpenOptions;
use crate::options::config::SlateConfig;
use crate::options::fills::Depths;
use crate::options::hedge::HedgeInstrument;
use crate::options::portfolio_margin::{RiskRow, SCENARIOS};
use crate::options::quantities;
use crate::options::tables::{
    DELIVERABLE, DEPTHS, Entry, RISKS, SETTLEMENT, SIZES, SnapshotRows, Spec, World, part_files,
};
use crate::parts::{TableRows as _, consistent, mismatch};
use crate::portfolio::{Common, Worlds};
use crate::rates::growth;
use crate::reward::Reward;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, TimestampMicrosecondType, UInt32Type};
use arrow_buffer::ScalarBuffer;
use datasets::{Date, SnapshotTime};
use stages_core::StageError;
use std::collections::{BTreeMap, HashMap};

/// The microseconds of a day.
const DAY: f64 = 86_400e6;

/// A contract that was on the slate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contract {
    /// The expiry, in days since 1970-01-01.
    pub expiry: i32,
    pub strike: f64,
    pub call: bool,
    /// The index of the shares that a unit delivers, for [`Tables::shares`]: 0 is 1 share.
    pub deliverable: u8,
    /// The first snapshot at which the contract was on the slate.
    pub first: u32,
    /// The snapshot at which the contract settles, or the last one there is.
    pub last: u32,
    /// True if the contract settles at `last`.
    pub settles: bool,
}

/// The open tables: T snapshots, K slots. The worlds' snapshots follow one another.
pub(crate) struct Tables {
    pub spec: Spec,
    /// The snapshots of all worlds, whose slates have the contracts' numbers; without the features that rows
    /// show.
    pub rows: SnapshotRows,
    /// Days to the next snapshot; 0 at the end of a world.
    pub days: Vec<f64>,
    /// The relative growth of a future's fair price at an unchanged carry, from each snapshot to the next;
    /// empty where no future is traded.
    pub growth: Vec<f64>,
    pub contracts: Vec<Contract>,
    /// The instant of settlement of each contract, likewise.
    settlements: Vec<i64>,
    /// The numbers of shares that units deliver, as many as [`Contract::deliverable`] can index.
    deliverables: Box<[f64; 256]>,
    /// The adjustments for corporate actions, by snapshot.
    pub adjusted: BTreeMap<u32, Adjusted>,
    /// The part of each snapshot.
    part_of: Vec<u32>,
    parts: Vec<Part>,
}

/// An adjustment for corporate actions, with the contracts that it changes.
pub(crate) struct Adjusted {
    pub adjustment: Adjustment,
    /// The contract that each changed contract becomes.
    pub successors: HashMap<u32, u32>,
}

/// The quote histories of a part's contracts.
struct Part {
    /// The entries, shared with the file's bytes without a copy.
    entries: ScalarBuffer<f64>,
    /// The number of the first contract that has entries.
    first: u32,
    /// For each contract from `first` on, the offset of its entries: the entry at snapshot t is number offset
    /// + t.
    bases: Vec<u32>,
    /// Volume, open interest and sizes, in the order of the entries; empty where the rules do not depend on
    /// them.
    depths: ScalarBuffer<f32>,
    sizes: ScalarBuffer<f32>,
    risks: ScalarBuffer<f32>,
}

impl Tables {
    /// The prices of the future at a snapshot, where they are read from bars.
    pub(crate) fn future(&self, t: usize) -> Option<FuturePrice> {
        let at = FuturePrice::WIDTH * t;
        FuturePrice::decode(self.rows.future.get(at..at + FuturePrice::WIDTH)?)
    }

    /// Opens the files that `file` returns by name, and what all accounts share.
    pub(crate) fn open(file: impl Files, options: &OpenOptions) -> Result<(Self, Common), StageError> {
        let mut spec: Spec = env_artifact::spec(&file)?;
        if let Some(other) = &options.normalise_as {
            spec.env.normalisation = Some(other.clone());
        }
        let is_adjusted = spec.worlds.iter().any(|world| !world.adjustments.is_empty());
        let mut reader = Reader {
            deliverables: vec![1.0],
            roots: is_adjusted.then(Vec::new),
            ..Reader::default()
        };
        for world in &spec.worlds {
            let start = reader.rows.dates.len();
            reader.alive.clear();
            for part in &world.parts {
                let [snapshots, paths] = part_files(part);
                let snapshots = ipc::read(&snapshots, file(&snapshots)?)?;
                let paths = ipc::read(&paths, file(&paths)?)?;
                reader.take(&spec.config.slate, &snapshots, &paths)?;
            }
            let snapshots = reader.rows.dates.len() - start;
            reader.worlds.push(&world.symbol, &world.splits, snapshots)?;
        }
        reader.finish(spec)
    }

    /// The hidden features of snapshot `t`.
    pub(crate) fn hidden(&self, t: usize) -> &[f32] {
        let width = self.spec.hidden.len();
        &self.rows.hidden[t * width..(t + 1) * width]
    }

    /// The tables at a snapshot.
    #[inline]
    pub(crate) fn at(&self, t: usize) -> At<'_> {
        let part = &self.parts[self.part_of[t] as usize];
        At {
            underlying: self.rows.underlying[t],
            entries: bytemuck::cast_slice(&part.entries),
            bases: &part.bases,
            first: part.first,
            t: t as u32,
            part,
        }
    }

    /// The number of shares of the underlying that a unit of a contract delivers, by index: 1, unless the
    /// contract was adjusted.
    #[inline]
    pub(crate) fn shares(&self, deliverable: u8) -> f64 {
        self.deliverables[usize::from(deliverable)]
    }

    /// The part of snapshot `t`.
    #[inline]
    pub(crate) fn part(&self, t: usize) -> u32 {
        self.part_of[t]
    }

    /// The days from snapshot `t` to the settlement of a contract that is listed to `expiry`; with their
    /// fraction where snapshots are instants.
    #[inline]
    pub(crate) fn days_left(&self, contract: u32, expiry: i32, t: usize) -> f64 {
        match self.rows.instants.get(t) {
            None => f64::from(expiry - self.rows.dates[t]),
            Some(now) => (self.settlements[contract as usize] - now) as f64 / DAY,
        }
    }

    /// The return of the underlying from snapshot `t` to the next, with dividends; splits are no returns.
    fn underlying_return(&self, t: usize) -> f64 {
        let Some(&next) = self.rows.underlying.get(t + 1) else {
            return 0.0;
        };
        let worth = match self.adjusted.get(&(t as u32 + 1)) {
            None => next,
            Some(Adjusted { adjustment, .. }) => {
                adjustment.cash + f64::from(adjustment.shares) * adjustment.ratio * next
            }
        };
        worth / self.rows.underlying[t] - 1.0
    }
}

/// The tables at a snapshot.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    /// The price of the underlying.
    pub underlying: f64,
    entries: &'a [Entry],
    bases: &'a [u32],
    first: u32,
    t: u32,
    part: &'a Part,
}

impl<'a> At<'a> {
    /// The entry of a contract whose history holds the snapshot.
    pub(crate) fn entry(self, contract: u32) -> &'a Entry {
        self.entry_at(self.base(contract))
    }

    /// The index of a contract's history, for [`At::entry_at`] at the snapshots of this part.
    pub(crate) fn base(self, contract: u32) -> u32 {
        self.bases[contract.wrapping_sub(self.first) as usize]
    }

    /// The entry of the contract whose history is at `base`.
    #[inline]
    pub(crate) fn entry_at(self, base: u32) -> &'a Entry {
        &self.entries[base.wrapping_add(self.t) as usize]
    }

    /// Volume, open interest and quote sizes of a contract, where the rules depend on them; sizes are
    /// infinite where the rules depend only on the other two.
    pub(crate) fn depths(self, contract: u32) -> Depths {
        let at = self.base(contract).wrapping_add(self.t) as usize;
        let pair = |of: &ScalarBuffer<f32>| bytemuck::cast_slice::<f32, [f32; 2]>(of).get(at).copied();
        let [volume, open_interest] = pair(&self.part.depths).unwrap_or_default();
        let [bid, ask] = pair(&self.part.sizes).unwrap_or([f32::INFINITY; 2]);
        [volume, open_interest, bid, ask]
    }

    /// The gains of a unit of a contract in the scenarios of portfolio margin, where that is the rule.
    pub(crate) fn risks(self, contract: u32) -> &'a RiskRow {
        let rows: &[RiskRow] = bytemuck::cast_slice(&self.part.risks);
        &rows[self.base(contract).wrapping_add(self.t) as usize]
    }
}

/// Joins the parts into tables.
#[derive(Default)]
struct Reader {
    worlds: Worlds,
    /// The snapshots, whose slates have the contracts' numbers.
    rows: SnapshotRows,
    contracts: Vec<Contract>,
    settlements: Vec<i64>,
    /// The numbers of shares that units deliver, each once.
    deliverables: Vec<f64>,
    /// The classes of the contracts, where adjustments need them.
    roots: Option<Vec<String>>,
    /// The numbers of the contracts that the last part left unexpired.
    alive: Vec<u32>,
    part_of: Vec<u32>,
    parts: Vec<Part>,
}

impl Reader {
    /// Takes the next part.
    fn take(
        &mut self,
        slate: &SlateConfig,
        snapshots: &RecordBatch,
        paths: &RecordBatch,
    ) -> Result<(), StageError> {
        let (start, n) = (self.rows.dates.len(), snapshots.num_rows());
        let (known, pairs) = (self.rows.slate.len(), self.rows.at_the_money.len());
        self.rows.append(snapshots, &(0..n), slate)?;
        let Some(&last) = self.rows.dates.last().filter(|_| n > 0) else {
            return Err(mismatch());
        };
        consistent(self.rows.instants.is_empty() || self.rows.instants.len() == self.rows.dates.len())?;
        self.part_of.resize(start + n, self.parts.len() as u32);

        let last = (last, self.rows.instants.last().copied());
        let numbers = self.contracts(paths, start, n, last)?;
        let slate = self.rows.slate[known..].iter_mut();
        for place in slate.chain(&mut self.rows.at_the_money[pairs..]) {
            *place = match usize::try_from(*place) {
                Err(_) => -1,
                Ok(place) => *numbers.get(place).ok_or_else(mismatch)? as i32,
            };
        }
        Ok(())
    }

    /// Takes the contracts of a part of `n` snapshots from `start` on, of which the last is on the given date
    /// and, with several snapshots a day, at the given instant; returns the contracts' numbers.
    fn contracts(
        &mut self,
        paths: &RecordBatch,
        start: usize,
        n: usize,
        last: (i32, Option<i64>),
    ) -> Result<Vec<u32>, StageError> {
        let settlement = match last.1 {
            Some(_) => ipc::numbers::<TimestampMicrosecondType>(paths, SETTLEMENT)?,
            None => Vec::new().into(),
        };
        let expiry = ipc::numbers::<Date32Type>(paths, "expiry")?;
        let strike = ipc::numbers::<Float64Type>(paths, "strike")?;
        let first = ipc::numbers::<UInt32Type>(paths, "first")?;
        let deliverables = match paths.column_by_name(DELIVERABLE) {
            Some(_) => ipc::numbers::<Float64Type>(paths, DELIVERABLE)?,
            None => Vec::new().into(),
        };
        let roots = paths
            .column_by_name("root")
            .and_then(|column| column.as_string_opt::<i32>());
        consistent(self.roots.is_none() || roots.is_some())?;
        let call = paths
            .column_by_name("call")
            .and_then(|column| column.as_boolean_opt())
            .ok_or_else(mismatch)?;
        let (offsets, entries) = ipc::list_numbers::<Float64Type>(paths, "entries", Entry::WIDTH)?;
        let single = |name: &str, width: usize| match paths.column_by_name(name) {
            Some(_) => match ipc::list_numbers::<Float32Type>(paths, name, width)? {
                (same, numbers) if same == offsets => Ok(numbers),
                _ => Err(mismatch()),
            },
            None => Ok(Vec::new().into()),
        };
        let (depths, sizes, risks) = (single(DEPTHS, 2)?, single(SIZES, 2)?, single(RISKS, SCENARIOS)?);
        let mut numbers = Vec::with_capacity(paths.num_rows());
        let (mut alive, mut bases) = (Vec::new(), Vec::with_capacity(paths.num_rows()));
        consistent(self.alive.len() <= paths.num_rows())?;
        for i in 0..paths.num_rows() {
            let (from, len) = (first[i] as usize, offsets[i + 1] - offsets[i]);
            let settles = match last {
                (_, Some(last)) => settlement[i] <= last,
                (last, None) => expiry[i] <= last,
            };
            let carried = self.alive.get(i).copied();
            let whole = if settles { from + len <= n } else { from + len == n };
            consistent(len > 0 && whole && (carried.is_none() || from == 0))?;
            let deliverable = self.deliverable(deliverables.get(i).copied().unwrap_or(1.0))?;
            let id = carried.unwrap_or(self.contracts.len() as u32);
            if carried.is_none() {
                if let (Some(all), Some(roots)) = (&mut self.roots, &roots) {
                    all.push(roots.value(i).to_owned());
                }
                self.settlements.extend(settlement.get(i));
                self.contracts.push(Contract {
                    expiry: expiry[i],
                    strike: strike[i],
                    call: call.value(i),
                    deliverable,
                    first: (start + from) as u32,
                    last: 0,
                    settles: false,
                });
            }
            let contract = &mut self.contracts[id as usize];
            let same = (contract.expiry, contract.call, contract.deliverable)
                == (expiry[i], call.value(i), deliverable);
            consistent(same && contract.strike == strike[i])?;
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
        let mut by_number = vec![u32::MAX / 2; (end - first) as usize];
        for (&id, base) in numbers.iter().zip(bases) {
            by_number[(id - first) as usize] = base;
        }
        self.parts.push(Part {
            entries,
            first,
            bases: by_number,
            depths,
            sizes,
            risks,
        });
        Ok(numbers)
    }

    /// The index of a number of delivered shares.
    fn deliverable(&mut self, shares: f64) -> Result<u8, StageError> {
        let found = self.deliverables.iter().position(|known| *known == shares);
        let index = found.unwrap_or(self.deliverables.len());
        if found.is_none() {
            self.deliverables.push(shares);
        }
        u8::try_from(index).map_err(|_| {
            StageError::new("more than 256 different numbers of shares are delivered by adjusted contracts")
        })
    }

    fn finish(self, spec: Spec) -> Result<(Tables, Common), StageError> {
        let all = self.rows;
        let t = all.dates.len();
        // No step can go out of bounds.
        let mut ids = all.slate.iter().chain(&all.at_the_money);
        consistent(t > 0 && ids.all(|&id| id < self.contracts.len() as i32))?;
        let is_future = spec.config.hedge.instrument == HedgeInstrument::Future;
        let has_future = !all.future.is_empty();
        if all.carry.len() != if is_future { t } else { 0 }
            || has_future && all.future.len() != FuturePrice::WIDTH * t
            || all.hidden.len() != t * spec.hidden.len()
        {
            return Err(mismatch());
        }
        // Without a forward, an index grows at the short rate.
        let known = |(carry, rate): (f64, &f64)| if carry.is_nan() { *rate } else { carry };
        let carry: Vec<f64> = all.carry.iter().copied().zip(&all.rate).map(known).collect();
        let days = days_ahead(&self.worlds, &all.dates, &all.instants);
        let (f, g) = (all.features.len() / t, all.slate_features.len() / t);
        let width = f + g;
        let mut raw = Vec::with_capacity(t * width);
        for t in 0..t {
            raw.extend_from_slice(&all.features[t * f..(t + 1) * f]);
            raw.extend_from_slice(&all.slate_features[t * g..(t + 1) * g]);
        }
        let rows = match &spec.env.normalisation {
            Some(by) => {
                let expected = spec.env.obs_dim();
                StageError::new(format!(
                    "an observation here has {expected} elements, and the normalisation is for {}",
                    by.offset.len()
                ))
                .hint(
                    "a policy can only be evaluated on an environment with the observation that it was \
                        trained on",
                )
                .when(by.offset.len() != expected || by.scale.len() != expected || width > expected)?;
                normalise::rows(&raw, width, by)
            }
            None => raw,
        };
        let mut deliverables = Box::new([1.0; 256]);
        deliverables[..self.deliverables.len()].copy_from_slice(&self.deliverables);
        let instant = |t: usize| all.instants.get(t).copied();
        let times = all.dates.iter().enumerate().map(|(t, &date)| SnapshotTime {
            date: Date(date),
            instant: instant(t),
        });
        let (times, risk_free) = (times.collect(), growth(&days, &all.rate));
        let tables = Tables {
            adjusted: adjusted(
                &spec,
                &self.worlds,
                t,
                &self.contracts,
                &self.deliverables,
                self.roots.as_deref().unwrap_or_default(),
            )?,
            growth: growth(&days, &carry),
            days,
            spec,
            rows: SnapshotRows {
                features: Vec::new(),
                slate_features: Vec::new(),
                ..all
            },
            settlements: self.settlements,
            deliverables,
            contracts: self.contracts,
            part_of: self.part_of,
            parts: self.parts,
        };
        let config = &tables.spec.config;
        let size = format!(
            "{} lines over {t} snapshots and {} contracts",
            config.lines,
            tables.contracts.len()
        );
        let common = Common {
            spec: tables.spec.env.clone(),
            worlds: self.worlds,
            reward: Reward::new(&config.reward, config.capital, &quantities::names())?,
            tag: ["options v1".to_owned(), size],
            width: config.lines,
            num_weights: 0,
            hedges: !config.hedge.is_none(),
            episode_length: config.episode_length,
            steps_beyond: 0,
            times,
            risk_free,
            underlying: (0..t).map(|t| tables.underlying_return(t)).collect(),
            rows,
        };
        Ok((tables, common))
    }
}

/// The adjustments, each with the contract that every contract held until then becomes.
fn adjusted(
    spec: &Spec,
    worlds: &Worlds,
    snapshots: usize,
    contracts: &[Contract],
    deliverables: &[f64],
    roots: &[String],
) -> Result<BTreeMap<u32, Adjusted>, StageError> {
    let mut out = BTreeMap::new();
    let of_world = |(number, world): (usize, &World)| {
        let (start, adjustments) = (worlds.snapshots(number).start, world.adjustments.clone());
        adjustments.into_iter().map(move |adjustment| (start, adjustment))
    };
    for (start, adjustment) in spec.worlds.iter().enumerate().flat_map(of_world) {
        let t = (start + adjustment.snapshot) as u32;
        consistent(adjustment.snapshot > 0 && (t as usize) < snapshots)?;
        let mut successors = HashMap::new();
        if adjustment.changes_contracts() {
            let terms =
                |contract: &Contract| (contract.strike, deliverables[usize::from(contract.deliverable)]);
            let key = |i: usize, (strike, deliverable): (f64, f64)| {
                (
                    contracts[i].expiry,
                    roots[i].as_str(),
                    strike.to_bits(),
                    deliverable.to_bits(),
                    contracts[i].call,
                )
            };
            // Only those of this world: a contract of another may have the same terms.
            let of_world = |i: &usize| contracts[*i].first as usize >= start && contracts[*i].first <= t;
            let listed: HashMap<_, u32> = (0..contracts.len())
                .filter(of_world)
                .map(|i| (key(i, terms(&contracts[i])), i as u32))
                .collect();
            for (i, contract) in contracts.iter().enumerate() {
                if contract.first as usize >= start && contract.first < t && contract.last >= t {
                    let (strike, deliverable) = terms(contract);
                    let successor = listed.get(&key(i, adjustment.terms(strike, deliverable))).copied();
                    let successor = successor.filter(|&to| {
                        let to = &contracts[to as usize];
                        (to.first..=to.last).contains(&t)
                    });
                    successors.insert(i as u32, successor.ok_or_else(mismatch)?);
                }
            }
        }
        out.insert(
            t,
            Adjusted {
                adjustment,
                successors,
            },
        );
    }
    Ok(out)
}

/// The days from each snapshot to the next; 0 at the end of a world.
fn days_ahead(worlds: &Worlds, dates: &[i32], instants: &[i64]) -> Vec<f64> {
    let ahead = |t: usize| match instants.get(t) {
        _ if worlds.begins(t + 1) => 0.0,
        None => f64::from(dates.get(t + 1).map_or(0, |next| next - dates[t])),
        Some(now) => instants.get(t + 1).map_or(0, |next| next - now) as f64 / DAY,
    };
    (0..dates.len()).map(ahead).collect()
}
