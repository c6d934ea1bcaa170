//! The state of a chain's rules from one part to the next.

use super::edge;
use super::jumps::Ladder;
use super::parity;
use super::snapshot_copy::Prices;
use datasets::Date;
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet, HashSet};

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
    pub traded: HashSet<(i32, u64, bool)>,
    /// The contracts of the last snapshot that was kept.
    pub ladder: Option<Ladder>,
    /// The state of the underlying's prices from put-call parity.
    pub parity: parity::State,
}

impl Seen {
    /// Ends a partition whose last possible date is `last`: forgets contracts that cannot occur in later
    /// partitions, and returns the trading days with a snapshot by symbol, which are removed from the state.
    pub(crate) fn end_partition(&mut self, last: Date) -> BTreeMap<String, BTreeSet<Date>> {
        let of_symbol = |(symbol, seen): (&String, &mut SeenOf)| {
            seen.traded.retain(|contract| contract.0 > last.0);
            (symbol.clone(), std::mem::take(&mut seen.open))
        };
        self.symbols.iter_mut().map(of_symbol).collect()
    }

    /// Serialises the state at the end of a partition.
    pub(crate) fn pack(&self) -> Result<Vec<u8>, StageError> {
        let states = self.symbols.iter();
        edge::pack(
            &states
                .map(|(symbol, seen)| (symbol.clone(), edge::encode(seen)))
                .collect(),
        )
    }

    /// Decodes the output of [`Seen::pack`].
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self, StageError> {
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
