//! The state of a chain's rules from one part to the next.

use super::ladder::{Contract, Ladder};
use super::snapshot_copy::Prices;
use datasets::Date;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The state of all snapshots so far, against which later ones are checked. A chain may arrive in parts, each
/// later than the one before.
#[derive(Default)]
pub(crate) struct Seen {
    pub(super) symbols: BTreeMap<String, SeenOf>,
}

/// The state of a single underlying.
#[derive(Default)]
pub(super) struct SeenOf {
    /// The trading days that have a snapshot.
    pub open: BTreeSet<Date>,
    /// The price of the underlying in the last snapshot.
    pub underlying: Option<f64>,
    /// The prices of the last snapshot.
    pub prices: Option<Prices>,
    /// In a chain by instant, the underlying's price and the option prices in the first snapshot of the last
    /// day.
    pub opening: Option<(f64, Prices)>,
    /// The contracts with volume or open interest so far.
    pub traded: BTreeSet<Contract>,
    /// The contracts of the last snapshot that was kept.
    pub ladder: Option<Ladder>,
    /// The state of the underlying's prices from put-call parity.
    pub parity: ParityState,
}

/// The state of prices from put-call parity from one snapshot to the next: the carries of the last days, and
/// the last price.
#[derive(Default)]
pub(super) struct ParityState {
    /// The annual carries, oldest first.
    pub carries: VecDeque<f64>,
    /// The last price of the underlying.
    pub last: Option<f64>,
    /// The day of the last snapshot, if it is in the same part of the chain, and the last price before that
    /// day.
    pub(super) day: Option<(i32, Option<f64>)>,
    /// True if the last carry belongs to the day of the last snapshot.
    pub(super) has_carry_of_day: bool,
}

impl ParityState {
    /// Advances to a snapshot on day `date`, and returns the last price before that day.
    pub(super) fn begin(&mut self, date: i32) -> Option<f64> {
        match self.day {
            Some((day, before)) if day == date => before,
            _ => {
                self.day = Some((date, self.last));
                self.has_carry_of_day = false;
                self.last
            }
        }
    }
}

impl Seen {
    /// Ends a partition whose last possible date is `last`: forgets contracts that cannot occur in later
    /// partitions, and returns the trading days with a snapshot by symbol, which are removed from the state.
    pub(crate) fn end_partition(&mut self, last: Date) -> BTreeMap<String, BTreeSet<Date>> {
        let closed = |(symbol, seen): (&String, &mut SeenOf)| {
            seen.traded.retain(|contract| contract.0 > last.0);
            (symbol.clone(), std::mem::take(&mut seen.open))
        };
        self.symbols.iter_mut().map(closed).collect()
    }

    pub(super) fn of(&mut self, symbol: &str) -> &mut SeenOf {
        if !self.symbols.contains_key(symbol) {
            self.symbols.insert(symbol.to_owned(), SeenOf::default());
        }
        self.symbols.entry(symbol.to_owned()).or_default()
    }
}
