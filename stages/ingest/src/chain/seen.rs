//! The state that the rules of a chain go on from.

use super::edge;
use super::ladder::Ladder;
use super::parity;
use super::snapshot_copy::Prices;
use datasets::Date;
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The state of the snapshots so far that later ones are checked against: a chain may come in parts, each
/// later than the one before.
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
    /// Of a chain by instant, the price of the underlying and the prices of the first snapshot of the last
    /// day.
    pub opening: Option<(f64, Prices)>,
    /// The contracts that traded, or were open, so far.
    pub traded: HashSet<(i32, u64, bool)>,
    /// The contracts of the last snapshot that was kept.
    pub ladder: Option<Ladder>,
    /// The state from which prices by put-call parity go on.
    pub parity: parity::State,
}

impl Seen {
    /// Ends a partition with `last` for its last possible date: forgets the contracts that cannot be in a
    /// later one, and returns the trading days that had a snapshot, by symbol, which the state of later ones
    /// does not have.
    pub fn end_partition(&mut self, last: Date) -> BTreeMap<String, BTreeSet<Date>> {
        let of_symbol = |(symbol, seen): (&String, &mut SeenOf)| {
            seen.traded.retain(|contract| contract.0 > last.0);
            (symbol.clone(), std::mem::take(&mut seen.open))
        };
        self.symbols.iter_mut().map(of_symbol).collect()
    }

    /// The state at the end of a partition as bytes.
    ///
    /// # Errors
    /// None that is known.
    pub fn pack(&self) -> Result<Vec<u8>, StageError> {
        let states = self.symbols.iter();
        edge::pack(
            &states
                .map(|(symbol, seen)| (symbol.clone(), edge::encode(seen)))
                .collect(),
        )
    }

    /// The state in the bytes of [`Seen::pack`].
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpack(bytes: &[u8]) -> Result<Self, StageError> {
        let states = edge::unpack(bytes)?.into_iter();
        Ok(Self {
            symbols: states.map(|(symbol, _, seen)| (symbol, seen)).collect(),
        })
    }

    pub(super) fn of(&mut self, symbol: &str) -> &mut SeenOf {
        if !self.symbols.contains_key(symbol) {
            self.symbols.insert(symbol.to_owned(), SeenOf::default());
        }
        self.symbols.entry(symbol.to_owned()).or_default()
    }
}
