//! The quote histories of contracts, part by part: the prices of each from its first snapshot on the slate to
//! its settlement or the last snapshot.
//!
//! A part lists the contracts that the part before left unexpired, in its order, and then its own in the
//! order of their first appearance; so contracts are numbered over the whole chain without a part knowing any
//! number. The state that a part leaves for the next is small: for each contract its last volatility and time
//! value, for each class its last curve. The file of a part depends on its own quotes and on the state before
//! it, and on nothing later.

use super::market_source::Day;
use super::settlements::{Settlement, Settlements};
use super::snapshots::{Class, ContractKey, Curve, PartSnapshots, Snapshot, curves};
use crate::adjustment::{Adjustment, cents};
use crate::options::config::Fills;
use crate::options::portfolio_margin::{Priced, RiskArray, RiskRow};
use crate::options::tables::{ContractRows, Entry, last_values};
use bytes::Bytes;
use datasets::SnapshotTime;
use stages_core::StageError;
use stages_numerics::black_scholes::{greeks, intrinsic};
use std::collections::{BTreeMap, HashMap};

/// The contracts that a part lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// Each contract, and the snapshot of the part at which the contract's history there begins.
    pub contracts: Vec<(ContractKey, usize)>,
    /// The number of leading contracts that the previous part left unexpired.
    pub carried: usize,
    /// True for contracts that settle in the part: at their first snapshot at or after their settlement.
    settles: Vec<bool>,
    /// The contracts into which others turn by an adjustment, by index, with their predecessors.
    successors: BTreeMap<usize, Predecessor>,
}

/// The contract that another contract was before an adjustment.
#[derive(Clone, Copy, Debug)]
struct Predecessor {
    /// The index of the contract.
    index: usize,
    /// The snapshot of the part at which the contract becomes the other.
    at: usize,
    /// The number of contracts that one contract becomes.
    shares: u32,
}

/// A contract by its expiry (days since the epoch), the number of its class, the bits of its strike, and its
/// right (true for a call).
type QuotedContract = (i32, usize, u64, bool);

impl Listing {
    /// The contracts of a part that follows a part with these. `adjustments` are those at snapshots of the
    /// part, with the time of the snapshot before each: every contract that can be held there is followed by
    /// the one that it becomes.
    pub(crate) fn after(
        &self,
        part: &PartSnapshots,
        adjustments: &[(usize, SnapshotTime, Adjustment)],
        settlements: &Settlements,
    ) -> Self {
        let mut contracts: Vec<(ContractKey, usize)> =
            self.unexpired().map(|i| (self.contracts[i].0.clone(), 0)).collect();
        let carried = contracts.len();
        let mut seen: BTreeMap<ContractKey, ()> =
            contracts.iter().map(|(key, _)| (key.clone(), ())).collect();
        let mut successors = BTreeMap::new();
        for (t, snapshot) in part.snapshots.iter().enumerate() {
            for (_, before, adjustment) in adjustments.iter().filter(|(at, ..)| *at == t) {
                for index in 0..contracts.len() {
                    let key = &contracts[index].0;
                    if settlements.of(key.expiry, &key.root).is_over(*before) {
                        continue;
                    }
                    let (strike, deliverable) =
                        adjustment.terms(f64::from_bits(key.strike), key.deliverable());
                    let key = ContractKey {
                        strike: strike.to_bits(),
                        deliverable: deliverable.to_bits(),
                        ..key.clone()
                    };
                    if seen.insert(key.clone(), ()).is_none() {
                        let shares = adjustment.shares;
                        successors.insert(contracts.len(), Predecessor { index, at: t, shares });
                        contracts.push((key, t));
                    }
                }
            }
            for key in snapshot.contracts() {
                if seen.insert(key.clone(), ()).is_none() {
                    contracts.push((key.clone(), t));
                }
            }
        }
        let last = part.snapshots.last().map(Snapshot::time);
        let is_over = |(key, _): &(ContractKey, usize)| {
            last.is_some_and(|last| settlements.of(key.expiry, &key.root).is_over(last))
        };
        Self {
            settles: contracts.iter().map(is_over).collect(),
            contracts,
            carried,
            successors,
        }
    }

    /// The contracts that settle in the part.
    pub(crate) fn settled(&self) -> impl Iterator<Item = &(ContractKey, usize)> {
        let contracts = self.contracts.iter().zip(&self.settles);
        contracts.filter(|(_, settles)| **settles).map(|(contract, _)| contract)
    }

    /// The contracts that the part leaves unexpired.
    fn unexpired(&self) -> impl Iterator<Item = usize> {
        (0..self.contracts.len()).filter(|&i| !self.settles[i])
    }

    /// The numbers of the classes, and the index of each contract that quotes are of by expiry, class, bits
    /// of the strike and right. No quote is of a contract that delivers another number of shares.
    fn quoted(&self) -> (HashMap<&str, usize>, HashMap<QuotedContract, usize>) {
        let (mut roots, mut indices) = (HashMap::new(), HashMap::new());
        for (i, (key, _)) in self.contracts.iter().enumerate() {
            let next = roots.len();
            let root = *roots.entry(key.root.as_str()).or_insert(next);
            if key.deliverable() == 1.0 {
                indices.insert((key.expiry, root, key.strike, key.call), i);
            }
        }
        (roots, indices)
    }

    /// The index of each contract.
    pub(crate) fn indices(&self) -> BTreeMap<&ContractKey, usize> {
        self.contracts
            .iter()
            .enumerate()
            .map(|(i, (key, _))| (key, i))
            .collect()
    }
}

/// The last values of a contract, for its marks when it has no quote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LastValues {
    /// The last implied volatility; NaN if it never had one.
    pub volatility: f64,
    /// The time value of the contract's last mark.
    pub time_value: f64,
}

impl LastValues {
    const NONE: Self = Self {
        volatility: f64::NAN,
        time_value: 0.0,
    };
}

/// The state that a part passes to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartState {
    /// The last values of each unexpired contract, in order.
    pub contracts: Vec<LastValues>,
    /// The last curve of each class yet to expire.
    pub curves: BTreeMap<Class, Curve>,
}

/// A part whose histories are to be computed.
pub(crate) struct Part<'a> {
    pub snapshots: &'a [Snapshot],
    /// The last curve of each class that is yet to expire at the end of the part.
    pub curves: &'a [(Class, Curve)],
    pub listing: &'a Listing,
    /// The rate by snapshot of the part.
    pub rate: &'a [f64],
    pub settlements: &'a Settlements,
    /// True if volume and open interest are in the tables.
    pub has_depths: bool,
    /// True if the sizes of quotes are in the tables.
    pub has_sizes: bool,
    /// The scenarios of portfolio margin; `None` under other margin rules.
    pub risk_array: Option<&'a RiskArray>,
}

impl Part<'_> {
    /// Everything on which the part's file depends besides its own quotes and the settings for reading them.
    pub(crate) fn key(&self, state: &PartState) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut text = |text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        for ((key, _), last) in self.listing.contracts.iter().zip(&state.contracts) {
            text(&format!(
                "{} {} {} {:x} {:x}",
                key.expiry,
                key.strike,
                key.call,
                last.volatility.to_bits(),
                last.time_value.to_bits()
            ));
            text(&key.root);
        }
        text("curves");
        for ((expiry, root), curve) in &state.curves {
            text(&format!(
                "{expiry} {:x} {:x}",
                curve.carry.to_bits(),
                curve.rate.to_bits()
            ));
            text(root);
        }
        bytes.extend(self.rate.iter().flat_map(|rate| rate.to_le_bytes()));
        for (index, before) in &self.listing.successors {
            let (key, _) = &self.listing.contracts[*index];
            bytes.extend(key.strike.to_le_bytes());
            bytes.extend(
                [
                    *index as u64,
                    before.index as u64,
                    before.at as u64,
                    before.shares.into(),
                ]
                .map(u64::to_le_bytes)
                .concat(),
            );
        }
        for (i, (key, _)) in self.listing.contracts.iter().enumerate() {
            if key.deliverable() != 1.0 {
                bytes.extend([i as u64, key.deliverable].map(u64::to_le_bytes).concat());
            }
        }
        bytes
    }

    /// The number of entries of contract `i` in the part.
    fn len(&self, i: usize) -> usize {
        let (key, first) = &self.listing.contracts[i];
        let settlement = self.settlements.of(key.expiry, &key.root);
        let settled = self.snapshots.partition_point(|s| !settlement.is_over(s.time()));
        settled.min(self.snapshots.len() - 1) + 1 - first
    }

    /// The state after a part with the file `written`.
    pub(crate) fn state_after(&self, before: &PartState, written: &Bytes) -> Result<PartState, StageError> {
        let (volatility, time_value) = last_values(written)?;
        StageError::new("the memo of a part's quote histories is of other contracts")
            .when(volatility.len() != self.listing.contracts.len())?;
        let mut curves = before.curves.clone();
        curves.extend(self.curves.iter().cloned());
        let last = self.snapshots.last().map(Snapshot::time);
        curves.retain(|(expiry, root), _| {
            last.is_none_or(|last| !self.settlements.of(*expiry, root).is_over(last))
        });
        Ok(PartState {
            contracts: self
                .listing
                .unexpired()
                .map(|i| LastValues {
                    volatility: volatility[i],
                    time_value: time_value[i],
                })
                .collect(),
            curves,
        })
    }
}

/// The histories of a part's contracts as far as its quotes give them: this needs no state of the part
/// before.
pub(crate) struct QuotedHistories {
    /// The entries `[contract][snapshot of its history]`.
    entries: Vec<Vec<Entry>>,
    volatility: Vec<Vec<f64>>,
    /// Volume and open interest; empty where they are not in the tables.
    depths: Vec<Vec<[f32; 2]>>,
    /// The sizes of bid and ask; empty where they are not in the tables.
    sizes: Vec<Vec<[f32; 2]>>,
    curves: BTreeMap<Class, Vec<(usize, Curve)>>,
}

impl QuotedHistories {
    pub(crate) fn new(days: &[Day], part: &Part<'_>, fills: &Fills) -> Self {
        let (roots, indices) = part.listing.quoted();
        // What an adjustment makes of a strike is a number of cents, and not all vendors round it. No quote
        // is of a contract that delivers another number of shares.
        let adjusted: BTreeMap<(i32, &str, i64, bool), usize> = part
            .listing
            .successors
            .keys()
            .map(|&i| (i, &part.listing.contracts[i].0))
            .filter(|(_, key)| key.deliverable() == 1.0)
            .map(|(i, key)| {
                (
                    (
                        key.expiry,
                        key.root.as_str(),
                        cents(f64::from_bits(key.strike)),
                        key.call,
                    ),
                    i,
                )
            })
            .collect();
        let lengths: Vec<usize> = (0..part.listing.contracts.len()).map(|i| part.len(i)).collect();
        let zeros = |wanted: bool| -> Vec<Vec<[f32; 2]>> {
            match wanted {
                true => lengths.iter().map(|&n| vec![[0.0; 2]; n]).collect(),
                false => Vec::new(),
            }
        };
        let mut this = Self {
            entries: lengths.iter().map(|&n| vec![Entry::MISSING; n]).collect(),
            volatility: lengths.iter().map(|&n| vec![f64::NAN; n]).collect(),
            depths: zeros(part.has_depths),
            sizes: zeros(part.has_sizes),
            curves: BTreeMap::new(),
        };
        for (t, day) in days.iter().enumerate() {
            for (class, curve) in curves(day, part.settlements) {
                this.curves.entry(class).or_default().push((t, curve));
            }
            let numbers: Vec<_> = day.roots.iter().map(|root| roots.get(root.as_str())).collect();
            for quote in &day.quotes {
                let root = numbers.get(usize::from(quote.root)).copied().flatten();
                let listed = root
                    .and_then(|root| indices.get(&(quote.expiry, *root, quote.strike.to_bits(), quote.call)));
                let near = || adjusted.get(&(quote.expiry, day.root(quote), cents(quote.strike), quote.call));
                let found = match adjusted.is_empty() {
                    true => [listed, None],
                    false => [listed, near()],
                };
                // A contract may be on the slate by its own strike, and held by the rounded one.
                let same = found[0] == found[1];
                for &i in found.into_iter().flatten().take(if same { 1 } else { 2 }) {
                    let Some(at) = t.checked_sub(part.listing.contracts[i].1).filter(|&at| at < lengths[i])
                    else {
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
                        // Without a price to trade at, a quote is no more than a model: a mark.
                        source: if quote.tradable { Entry::QUOTED } else { Entry::MODEL },
                    };
                    *volatility = quote.implied_volatility;
                    let known = |pair: [f64; 2]| pair.map(|depth| depth.max(0.0) as f32);
                    if part.has_depths {
                        this.depths[i][at] = known([quote.volume, quote.open_interest]);
                    }
                    if part.has_sizes {
                        this.sizes[i][at] = known([quote.bid_size, quote.ask_size]);
                    }
                }
            }
        }
        this
    }

    /// The last values of a contract that was another until an adjustment: of the other, whose history is
    /// complete, up to the snapshot before.
    fn last_values(&self, part: &Part<'_>, before: &PartState, predecessor: &Predecessor) -> LastValues {
        let &Predecessor { index, at, shares } = predecessor;
        let (key, first) = &part.listing.contracts[index];
        let start = match part.listing.successors.get(&index) {
            Some(earlier) => self.last_values(part, before, earlier),
            None => before.contracts.get(index).copied().unwrap_or(LastValues::NONE),
        };
        let past = at.saturating_sub(*first).min(self.entries[index].len());
        let volatility = self.volatility[index][..past]
            .iter()
            .rev()
            .find(|volatility| **volatility > 0.0);
        let time_value = match past.checked_sub(1) {
            Some(last) => {
                let spot = part.snapshots[first + last].underlying * key.deliverable();
                let inner = intrinsic(spot, f64::from_bits(key.strike), key.call);
                (self.entries[index][last].mark - inner).max(0.0)
            }
            None => start.time_value,
        };
        LastValues {
            volatility: volatility.copied().unwrap_or(start.volatility),
            time_value: time_value / f64::from(shares),
        }
    }

    /// The file of the part: its contracts with their histories, completed by the state before it.
    pub(crate) fn complete(mut self, part: &Part<'_>, before: &PartState) -> Result<Vec<u8>, StageError> {
        let listing = part.listing;
        let mut rows = ContractRows::default();
        for (i, (key, first)) in listing.contracts.iter().enumerate() {
            let class = (key.expiry, key.root.clone());
            let mut last = match listing.successors.get(&i) {
                Some(predecessor) => self.last_values(part, before, predecessor),
                None => before.contracts.get(i).copied().unwrap_or(LastValues::NONE),
            };
            let history = History {
                key,
                first: *first,
                settles: listing.settles[i],
                settlement: part.settlements.of(key.expiry, &key.root),
                part,
                before: before.curves.get(&class),
                curves: self.curves.get(&class).map_or(&[], Vec::as_slice),
            };
            let (modelled, risks) = history.complete(&mut self.entries[i], &self.volatility[i], &mut last);
            rows.risks.extend(risks);
            rows.modelled.push(modelled);
            rows.root.push(key.root.clone());
            rows.expiry.push(key.expiry);
            rows.settlement.extend(history.settlement.instant);
            rows.strike.push(f64::from_bits(key.strike));
            rows.call.push(key.call);
            rows.deliverable.push(key.deliverable());
            rows.first.push(*first as u32);
            rows.volatility.push(last.volatility);
            rows.time_value.push(last.time_value);
        }
        (rows.entries, rows.depths, rows.sizes) = (self.entries, self.depths, self.sizes);
        rows.encode()
    }
}

/// A contract whose history is to be completed.
struct History<'a> {
    key: &'a ContractKey,
    first: usize,
    settles: bool,
    settlement: Settlement,
    part: &'a Part<'a>,
    /// The last curve before the part, and the curves in it by snapshot.
    before: Option<&'a Curve>,
    curves: &'a [(usize, Curve)],
}

impl History<'_> {
    /// Completes the entries: model marks and Greeks where there are none, the settlement at its end. Goes
    /// forward in time and uses past data alone. Returns the number of entries without a quote, and the gains
    /// in the scenarios of portfolio margin where it is the rule.
    fn complete(
        &self,
        entries: &mut [Entry],
        volatility: &[f64],
        last: &mut LastValues,
    ) -> (u32, Option<Vec<RiskRow>>) {
        let mut modelled = 0;
        let mut risks = self.part.risk_array.map(|_| Vec::with_capacity(entries.len()));
        let (strike, deliverable) = (f64::from_bits(self.key.strike), self.key.deliverable());
        let n = entries.len();
        for (i, entry) in entries.iter_mut().enumerate() {
            let t = self.first + i;
            let snapshot = &self.part.snapshots[t];
            // A unit is a contract on what it delivers.
            let underlying = snapshot.underlying * deliverable;
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
                if let Some(risks) = &mut risks {
                    risks.push(RiskRow::default());
                }
                continue;
            }
            if volatility[i] > 0.0 {
                last.volatility = volatility[i];
            }
            let missing = entry.is_missing();
            let has_greeks = entry.delta.is_finite()
                && entry.gamma.is_finite()
                && entry.vega.is_finite()
                && entry.theta.is_finite();
            if missing || !has_greeks {
                let years = self.settlement.days(snapshot.time()) / 365.0;
                let curve = self.curve(t);
                let (forward, discount) = (
                    underlying * libm::exp(curve.carry * years),
                    libm::exp(-curve.rate * years),
                );
                let known = last.volatility > 0.0;
                let sigma = if known { last.volatility } else { 0.0 };
                let value = greeks(underlying, forward, discount, sigma, years, strike, self.key.call);
                if missing {
                    // Without any volatility, the time value of the last mark is kept.
                    entry.mark = if known { value.price } else { inner + last.time_value };
                    entry.source = Entry::MODEL;
                    modelled += 1;
                }
                if !has_greeks {
                    entry.delta = value.delta * deliverable;
                    entry.gamma = value.gamma * deliverable * deliverable;
                    (entry.vega, entry.theta) = (value.vega, value.theta);
                }
            }
            last.time_value = (entry.mark - inner).max(0.0);
            if let (Some(risks), Some(array)) = (&mut risks, self.part.risk_array) {
                let years = self.settlement.days(snapshot.time()) / 365.0;
                let curve = self.curve(t);
                risks.push(array.row(&Priced {
                    spot: underlying,
                    forward: underlying * libm::exp(curve.carry * years),
                    discount: libm::exp(-curve.rate * years),
                    volatility: if last.volatility > 0.0 { last.volatility } else { 0.0 },
                    years,
                    strike,
                    call: self.key.call,
                }));
            }
        }
        (modelled, risks)
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
