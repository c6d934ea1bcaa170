//! The snapshots of a part of the chain, by its own quotes alone: the contracts selected at each, and the
//! forward curves at the end of the part.

use super::market_source::{Day, Quote};
use super::selection::{feature, select};
use super::settlements::Settlements;
use crate::options::config::OptionsConfig;
use crate::options::hedge::HedgeInstrument;
use datasets::{Date, SnapshotTime};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::collections::BTreeMap;

/// The identity of a contract.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ContractKey {
    /// The expiry, in days since 1970-01-01.
    pub expiry: i32,
    pub root: String,
    /// The bits of the strike.
    pub strike: u64,
    pub call: bool,
    /// The bits of the number of shares that a unit delivers: 1, unless the contract was adjusted. Adjusted
    /// contracts have no quotes, so that snapshots do not store this number.
    #[serde(skip, default = "one")]
    pub deliverable: u64,
}

fn one() -> u64 {
    1.0_f64.to_bits()
}

impl ContractKey {
    /// The shares of the underlying that a unit delivers.
    pub(crate) fn deliverable(&self) -> f64 {
        f64::from_bits(self.deliverable)
    }

    pub(crate) fn new(day: &Day, quote: &Quote) -> Self {
        Self {
            expiry: quote.expiry,
            root: day.root(quote).to_owned(),
            strike: quote.strike.to_bits(),
            call: quote.call,
            deliverable: one(),
        }
    }
}

/// A snapshot, and the contracts selected at it. Floats are stored as their bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The date, in days since 1970-01-01.
    pub date: i32,
    /// The instant in microseconds since 1970 UTC, where there are several snapshots a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instant: Option<i64>,
    #[serde(with = "bits64")]
    pub underlying: f64,
    /// The bits of the annual carry of the nearest forward, where a future is traded and there is a forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<u64>,
    /// The contract in each of the K slots.
    pub slots: Vec<Option<ContractKey>>,
    /// For each maturity, the call and the put at the money.
    pub at_the_money: Vec<Option<(ContractKey, ContractKey)>>,
    /// The features of the slots `[K, G]`, raw.
    #[serde(with = "bits32")]
    pub features: Vec<f32>,
}

impl Snapshot {
    pub(crate) fn time(&self) -> SnapshotTime {
        SnapshotTime {
            date: Date(self.date),
            instant: self.instant,
        }
    }

    /// The selected contracts, in the order in which they are numbered.
    pub(crate) fn contracts(&self) -> impl Iterator<Item = &ContractKey> {
        let pairs = self.at_the_money.iter().flatten().flat_map(|(call, put)| [call, put]);
        self.slots.iter().flatten().chain(pairs)
    }
}

/// A class of contracts: expiry and root.
pub(crate) type Class = (i32, String);

/// The forward curve of a class at a snapshot: carry and rate per year.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    #[serde(with = "bits64")]
    pub carry: f64,
    #[serde(with = "bits64")]
    pub rate: f64,
}

/// The curve of each class at a snapshot, from the first of its quotes that has a forward and a discount
/// factor.
pub(crate) fn curves(day: &Day, settlements: &Settlements) -> Vec<(Class, Curve)> {
    let mut curves = Vec::new();
    let mut last_class = None;
    for quote in &day.quotes {
        let class = (quote.expiry, quote.root);
        if last_class == Some(class) || !(quote.forward > 0.0 && quote.discount > 0.0) {
            continue;
        }
        let root = day.root(quote).to_owned();
        let years = settlements.of(quote.expiry, &root).days(day.time()) / 365.0;
        if years > 0.0 {
            last_class = Some(class);
            let curve = Curve {
                carry: libm::log(quote.forward / day.underlying) / years,
                rate: -libm::log(quote.discount) / years,
            };
            curves.push(((quote.expiry, root), curve));
        }
    }
    curves
}

/// The snapshots of a part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartSnapshots {
    pub snapshots: Vec<Snapshot>,
    /// The number of snapshots that are left out because they have no price of the underlying.
    pub left_out: usize,
    /// The last curve of each class that is yet to expire at the end of the part.
    pub curves: Vec<(Class, Curve)>,
}

impl PartSnapshots {
    /// The snapshots `days` of a part; `left_out` others have no price of the underlying.
    pub(crate) fn new(
        days: &[Day],
        left_out: usize,
        config: &OptionsConfig,
        settlements: &Settlements,
    ) -> Self {
        let last = days.last().map(Day::time);
        let goes_on =
            |(expiry, root): &Class| last.is_some_and(|last| !settlements.of(*expiry, root).is_over(last));
        let mut all = BTreeMap::new();
        let mut snapshots = Vec::with_capacity(days.len());
        for day in days {
            let curves = curves(day, settlements);
            snapshots.push(snapshot(day, &curves, config, settlements));
            // A class that appears again on a day has its curve of later on that day.
            all.extend(curves);
        }
        Self {
            snapshots,
            left_out,
            curves: all.into_iter().filter(|(class, _)| goes_on(class)).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, StageError> {
        serde_json::to_vec(self).map_err(|err| StageError::new(err.to_string()))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StageError> {
        serde_json::from_slice(bytes)
            .map_err(|err| StageError::new(format!("the memo of a part's snapshots cannot be read: {err}")))
    }
}

/// The carry of the nearest expiry that the slate may select, where a future is traded.
fn carry(
    day: &Day,
    curves: &[(Class, Curve)],
    config: &OptionsConfig,
    settlements: &Settlements,
) -> Option<f64> {
    if config.hedge.instrument != HedgeInstrument::Future {
        return None;
    }
    let days = |(expiry, root): &Class| settlements.of(*expiry, root).days(day.time());
    curves
        .iter()
        .map(|(class, curve)| (days(class), curve.carry))
        .filter(|(days, _)| *days >= f64::from(config.slate.min_days))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, carry)| carry)
}

fn snapshot(
    day: &Day,
    curves: &[(Class, Curve)],
    config: &OptionsConfig,
    settlements: &Settlements,
) -> Snapshot {
    let selection = select(day, config, settlements);
    let key = |i: usize| ContractKey::new(day, &day.quotes[i]);
    Snapshot {
        date: day.date.0,
        instant: day.instant,
        underlying: day.underlying,
        carry: carry(day, curves, config, settlements).map(f64::to_bits),
        features: selection
            .slots
            .iter()
            .flat_map(|slot| {
                config.slate.features.iter().map(move |&name| match slot {
                    Some(i) => feature(name, &day.quotes[*i], day, config, settlements) as f32,
                    None => f32::NAN,
                })
            })
            .collect(),
        slots: selection.slots.iter().map(|slot| slot.map(key)).collect(),
        at_the_money: selection
            .at_the_money
            .iter()
            .map(|pair| pair.map(|(call, put)| (key(call), key(put))))
            .collect(),
    }
}

mod bits64 {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

mod bits32 {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| value.to_bits()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
        let bits = Vec::<u32>::deserialize(deserializer)?;
        Ok(bits.into_iter().map(f32::from_bits).collect())
    }
}
