//! The state that the rules of a chain go on from.

use super::ladder::Ladder;
use super::parity;
use super::snapshot_copy::Prices;
use crate::missing_days::count_missing_days;
use datasets::Date;
use datasets::layout::CalendarName;
use datasets::quality::Tally;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The state of the snapshots so far that later ones are checked against: a chain may come in parts, each later than the one before.
#[derive(Default)]
pub struct Seen {
    pub(super) symbols: BTreeMap<String, SeenOf>,
}

/// The state of one underlying.
#[derive(Default)]
pub(super) struct SeenOf {
    /// The trading days that have a snapshot.
    pub open: BTreeSet<Date>,
    /// The price of the underlying in the last snapshot.
    pub underlying: Option<f64>,
    /// The prices of the last snapshot.
    pub prices: Option<Prices>,
    /// Of a chain by instant, the price of the underlying and the prices of the first snapshot of the last day.
    pub opening: Option<(f64, Prices)>,
    /// The contracts that traded, or were open, so far.
    pub traded: HashSet<(i32, u64, bool)>,
    /// The contracts of the last snapshot that was kept.
    pub ladder: Option<Ladder>,
    /// The state from which prices by put-call parity go on.
    pub parity: parity::State,
}

impl Seen {
    /// Counts the trading days without a snapshot, once all of the chain was seen.
    pub fn count_missing_days(&self, calendar: CalendarName, tally: &mut Tally) {
        for (symbol, seen) in &self.symbols {
            count_missing_days(symbol, calendar, &seen.open, tally);
        }
    }

    pub(super) fn of(&mut self, symbol: &str) -> &mut SeenOf {
        if !self.symbols.contains_key(symbol) {
            self.symbols.insert(symbol.to_owned(), SeenOf::default());
        }
        self.symbols.entry(symbol.to_owned()).or_default()
    }
}
