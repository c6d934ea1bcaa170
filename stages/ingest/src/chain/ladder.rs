//! The contracts of a snapshot.

use super::columns::{Chain, UNDERLYING};
use datasets::Date;
use std::ops::Range;

/// A contract: expiry, bits of the strike, call.
pub(super) type Contract = (i32, u64, bool);

/// The contracts of a snapshot, sorted.
pub(super) struct Ladder {
    pub date: Date,
    pub underlying: f64,
    pub contracts: Vec<Contract>,
}

impl Ladder {
    /// The contracts of the snapshot in these rows.
    pub fn new(chain: &Chain, rows: Range<usize>) -> Self {
        let mut contracts: Vec<Contract> = rows
            .clone()
            .map(|i| (chain.expiry[i], chain.strike[i].to_bits(), chain.call[i]))
            .collect();
        contracts.sort_unstable();
        contracts.dedup();
        Self {
            date: Date(chain.date[rows.start]),
            underlying: chain.values[UNDERLYING][rows.start],
            contracts,
        }
    }

    /// True if the contract is listed.
    pub fn has(&self, contract: &Contract) -> bool {
        self.contracts.binary_search(contract).is_ok()
    }
}
