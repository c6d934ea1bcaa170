//! The contracts that a snapshot lists.

use super::columns::{Chain, UNDERLYING};
use datasets::Date;
use std::ops::Range;

/// A contract of an underlying: expiry in days since 1970-01-01, the bits of the strike, and whether it is a
/// call.
pub(super) type Contract = (i32, u64, bool);

/// The contracts listed in a snapshot, sorted.
pub(super) struct Ladder {
    pub date: Date,
    pub underlying: f64,
    pub contracts: Vec<Contract>,
}

impl Ladder {
    /// The contracts in the given rows, which are one snapshot.
    pub(super) fn new(chain: &Chain, rows: Range<usize>) -> Self {
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

    /// Returns whether the contract is listed.
    pub(super) fn has(&self, contract: &Contract) -> bool {
        self.contracts.binary_search(contract).is_ok()
    }
}
