//! The paths of contracts, part by part: what each can be traded at from its first snapshot on the slate to its settlement or
//! the last snapshot.
//!
//! A part lists the contracts that the part before left alive, in its order, and then its own in the order of their first
//! appearance; so contracts are numbered over the whole chain without a part knowing any number. What a part carries over to
//! the next is small: for each contract its last volatility and time value, for each class its last curve. The file of a part
//! depends on its own quotes and on what is carried in, and on nothing later.

use super::build::Day;
use super::config::Fills;
use super::model::{black_scholes, intrinsic};
use super::offer::{Class, Curve, Key, Offer, curves};
use super::tables::Entry;
use crate::ipc;
use arrow::array::{ArrayRef, BooleanArray, Date32Array, Float64Array, StringArray, UInt32Array};
use arrow::datatypes::Float64Type;
use bytes::Bytes;
use stages_core::StageError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contracts of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// Each contract, and the snapshot of the part at which its path there begins.
    pub contracts: Vec<(Key, usize)>,
    /// How many of them, the first ones, the part before left alive.
    pub carried: usize,
    /// The last date of the part.
    last: i32,
}

impl Listing {
    /// The contracts of a part that follows a part with these.
    pub(crate) fn after(&self, offer: &Offer) -> Self {
        let mut contracts: Vec<(Key, usize)> = self.alive().map(|i| (self.contracts[i].0.clone(), 0)).collect();
        let carried = contracts.len();
        let mut seen: BTreeMap<Key, ()> = contracts.iter().map(|(key, _)| (key.clone(), ())).collect();
        for (t, snapshot) in offer.snapshots.iter().enumerate() {
            for key in snapshot.contracts() {
                if seen.insert(key.clone(), ()).is_none() {
                    contracts.push((key.clone(), t));
                }
            }
        }
        Self {
            contracts,
            carried,
            last: offer.last_date().unwrap_or(self.last),
        }
    }

    /// The contracts that the part leaves alive.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.contracts.len()).filter(|&i| !self.settles(i))
    }

    /// Whether contract `i` settles in the part: at its first snapshot at or after its expiry.
    fn settles(&self, i: usize) -> bool {
        self.contracts[i].0.expiry <= self.last
    }

    /// The place of each contract.
    pub(crate) fn places(&self) -> BTreeMap<&Key, usize> {
        self.contracts
            .iter()
            .enumerate()
            .map(|(i, (key, _))| (key, i))
            .collect()
    }
}

/// What is known of a contract, for its marks when it has no quote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    /// Its last implied volatility; NaN if it never had one.
    pub volatility: f64,
    /// The time value of its last mark.
    pub time_value: f64,
}

impl Known {
    const NOTHING: Self = Self {
        volatility: f64::NAN,
        time_value: 0.0,
    };
}

/// What a part carries over to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carry {
    /// Of each contract left alive, in order.
    pub contracts: Vec<Known>,
    /// The last curve of each class yet to expire.
    pub curves: BTreeMap<Class, Curve>,
}

/// A part whose paths are to be found.
pub(crate) struct Part<'a> {
    pub offer: &'a Offer,
    pub listing: &'a Listing,
    /// By snapshot of the part.
    pub rate: &'a [f64],
}

impl Part<'_> {
    /// All that its file depends on, beside its own quotes and how they are read.
    pub(crate) fn key(&self, carry: &Carry) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut text = |text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        for ((key, _), known) in self.listing.contracts.iter().zip(&carry.contracts) {
            text(&format!(
                "{} {} {} {:x} {:x}",
                key.expiry,
                key.strike,
                key.call,
                known.volatility.to_bits(),
                known.time_value.to_bits()
            ));
            text(&key.root);
        }
        text("curves");
        for ((expiry, root), curve) in &carry.curves {
            text(&format!(
                "{expiry} {:x} {:x}",
                curve.carry.to_bits(),
                curve.rate.to_bits()
            ));
            text(root);
        }
        bytes.extend(self.rate.iter().flat_map(|rate| rate.to_le_bytes()));
        bytes
    }

    /// How many entries the path of contract `i` has in the part.
    fn len(&self, i: usize) -> usize {
        let (key, first) = &self.listing.contracts[i];
        let settled = self.offer.snapshots.partition_point(|s| s.date < key.expiry);
        settled.min(self.offer.snapshots.len() - 1) + 1 - first
    }

    /// What is carried on from a part with the file `written`.
    pub(crate) fn carry(&self, before: &Carry, written: &Bytes) -> Result<Carry, StageError> {
        let table = ipc::read(PATHS, written.clone())?;
        let volatility = ipc::numbers::<Float64Type>(&table, "volatility")?;
        let time_value = ipc::numbers::<Float64Type>(&table, "time_value")?;
        if volatility.len() != self.listing.contracts.len() {
            return Err(StageError::new(
                "what is remembered of a part's paths is of other contracts",
            ));
        }
        let mut curves = before.curves.clone();
        curves.extend(self.offer.curves.iter().cloned());
        curves.retain(|(expiry, _), _| *expiry > self.listing.last);
        Ok(Carry {
            contracts: self
                .listing
                .alive()
                .map(|i| Known {
                    volatility: volatility[i],
                    time_value: time_value[i],
                })
                .collect(),
            curves,
        })
    }
}

/// What the quotes of a part say of its contracts: this needs nothing that is carried in.
pub(crate) struct Found {
    /// `[contract][snapshot of its path]`.
    entries: Vec<Vec<Entry>>,
    volatility: Vec<Vec<f64>>,
    curves: BTreeMap<Class, Vec<(usize, Curve)>>,
}

impl Found {
    pub(crate) fn new(days: &[Day], part: &Part<'_>, fills: &Fills) -> Self {
        let places = part.listing.places();
        let lengths: Vec<usize> = (0..part.listing.contracts.len()).map(|i| part.len(i)).collect();
        let mut this = Self {
            entries: lengths.iter().map(|&n| vec![Entry::MISSING; n]).collect(),
            volatility: lengths.iter().map(|&n| vec![f64::NAN; n]).collect(),
            curves: BTreeMap::new(),
        };
        for (t, day) in days.iter().enumerate() {
            for (class, curve) in curves(day) {
                this.curves.entry(class).or_default().push((t, curve));
            }
            for quote in &day.quotes {
                let Some(&i) = places.get(&Key::new(day, quote)) else {
                    continue;
                };
                let Some(at) = t.checked_sub(part.listing.contracts[i].1).filter(|&at| at < lengths[i]) else {
                    continue;
                };
                let (entry, volatility) = (&mut this.entries[i][at], &mut this.volatility[i][at]);
                // A key that appears twice is the first one.
                if !entry.is_missing() || !volatility.is_nan() {
                    continue;
                }
                let prices = quote.prices(fills);
                *entry = Entry {
                    bid: prices.bid,
                    ask: prices.ask,
                    mark: prices.mid,
                    delta: quote.delta,
                    gamma: quote.gamma,
                    vega: quote.vega,
                    theta: quote.theta,
                    source: Entry::QUOTED,
                };
                *volatility = quote.implied_volatility;
            }
        }
        this
    }

    /// The file of the part: its contracts with their paths, completed by what is carried in.
    pub(crate) fn complete(mut self, part: &Part<'_>, carry: &Carry) -> Result<Vec<u8>, StageError> {
        let listing = part.listing;
        let n = listing.contracts.len();
        let (mut modelled, mut known) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (i, (key, first)) in listing.contracts.iter().enumerate() {
            let class = (key.expiry, key.root.clone());
            let mut state = carry.contracts.get(i).copied().unwrap_or(Known::NOTHING);
            let fill = Fill {
                key,
                first: *first,
                settles: listing.settles(i),
                part,
                before: carry.curves.get(&class),
                curves: self.curves.get(&class).map_or(&[], Vec::as_slice),
            };
            modelled.push(fill.complete(&mut self.entries[i], &self.volatility[i], &mut state));
            known.push(state);
        }
        let keys = || listing.contracts.iter().map(|(key, _)| key);
        let floats =
            |f: &dyn Fn(&Known) -> f64| -> ArrayRef { Arc::new(known.iter().map(f).collect::<Float64Array>()) };
        let lengths: Vec<usize> = self.entries.iter().map(Vec::len).collect();
        let flat: Vec<Entry> = self.entries.concat();
        let flat: Vec<f64> = bytemuck::cast_slice(&flat).to_vec();
        ipc::write(vec![
            (
                "root",
                Arc::new(StringArray::from_iter_values(keys().map(|key| &key.root))),
            ),
            (
                "expiry",
                Arc::new(Date32Array::from_iter_values(keys().map(|key| key.expiry))),
            ),
            (
                "strike",
                Arc::new(Float64Array::from_iter_values(
                    keys().map(|key| f64::from_bits(key.strike)),
                )),
            ),
            (
                "call",
                Arc::new(keys().map(|key| Some(key.call)).collect::<BooleanArray>()),
            ),
            (
                "first",
                Arc::new(UInt32Array::from_iter_values(
                    listing.contracts.iter().map(|(_, first)| *first as u32),
                )),
            ),
            ("modelled", Arc::new(UInt32Array::from(modelled))),
            ("volatility", floats(&|known| known.volatility)),
            ("time_value", floats(&|known| known.time_value)),
            (
                "entries",
                ipc::lists(ipc::matrix::<Float64Type>(flat, Entry::WIDTH)?, &lengths)?,
            ),
        ])
    }
}

/// The name of a part's file.
pub(crate) const PATHS: &str = "paths.arrow";

/// A contract whose path is to be completed.
struct Fill<'a> {
    key: &'a Key,
    first: usize,
    settles: bool,
    part: &'a Part<'a>,
    /// The last curve before the part, and those in it by snapshot.
    before: Option<&'a Curve>,
    curves: &'a [(usize, Curve)],
}

impl Fill<'_> {
    /// Completes a path: model marks and Greeks where there are none, the settlement at its end. Goes forward in time and
    /// uses what was known. Returns how many entries had no quote.
    fn complete(&self, entries: &mut [Entry], volatility: &[f64], state: &mut Known) -> u32 {
        let mut modelled = 0;
        let strike = f64::from_bits(self.key.strike);
        let n = entries.len();
        for (i, entry) in entries.iter_mut().enumerate() {
            let t = self.first + i;
            let snapshot = &self.part.offer.snapshots[t];
            let underlying = snapshot.underlying;
            let inner = intrinsic(underlying, strike, self.key.call);
            if i + 1 == n && self.settles {
                *entry = Entry {
                    bid: f64::NAN,
                    ask: f64::NAN,
                    mark: inner,
                    delta: 0.0,
                    gamma: 0.0,
                    vega: 0.0,
                    theta: 0.0,
                    source: Entry::SETTLED,
                };
                continue;
            }
            if volatility[i] > 0.0 {
                state.volatility = volatility[i];
            }
            let missing = entry.is_missing();
            let greeks =
                entry.delta.is_finite() && entry.gamma.is_finite() && entry.vega.is_finite() && entry.theta.is_finite();
            if missing || !greeks {
                let years = f64::from(self.key.expiry - snapshot.date) / 365.0;
                let curve = self.curve(t);
                let (forward, discount) = (
                    underlying * libm::exp(curve.carry * years),
                    libm::exp(-curve.rate * years),
                );
                let known = state.volatility > 0.0;
                let sigma = if known { state.volatility } else { 0.0 };
                let value = black_scholes(underlying, forward, discount, sigma, years, strike, self.key.call);
                if missing {
                    // Without any volatility, the time value of the last mark is kept.
                    entry.mark = if known { value.price } else { inner + state.time_value };
                    entry.source = Entry::MODEL;
                    modelled += 1;
                }
                if !greeks {
                    (entry.delta, entry.gamma, entry.vega, entry.theta) =
                        (value.delta, value.gamma, value.vega, value.theta);
                }
            }
            state.time_value = (entry.mark - inner).max(0.0);
        }
        modelled
    }

    /// The last curve known at snapshot `t` of the part; the rate where there is none.
    fn curve(&self, t: usize) -> Curve {
        let known = self.curves.partition_point(|&(at, _)| at <= t);
        let rate = self.part.rate[t];
        match known.checked_sub(1) {
            Some(i) => self.curves[i].1,
            None => self.before.copied().unwrap_or(Curve { carry: rate, rate }),
        }
    }
}
