//! Copied snapshots: all bids and asks are those of the snapshot before.

use super::columns::{ASK, BID, Chain, LAST};
use datasets::quality::FEW_CONTRACTS;
use std::collections::HashMap;
use std::ops::Range;

/// A contract on one underlying: expiry, class, bits of the strike, call.
type Contract = (i32, String, u64, bool);

/// The prices of a snapshot, by contract.
pub(super) struct Prices(HashMap<Contract, [u64; 2]>);

impl Prices {
    /// The prices of the rows of a snapshot that have some: bid and ask, or, where there is neither, the last price.
    pub(super) fn new(chain: &Chain, rows: Range<usize>) -> Self {
        let mut prices = HashMap::with_capacity(rows.len());
        for i in rows {
            let [bid, ask, last] = [BID, ASK, LAST].map(|column| chain.values[column][i]);
            let pair = match (bid > 0.0 || ask > 0.0, last > 0.0) {
                (true, _) => [bid, ask],
                (false, true) if bid.is_nan() && ask.is_nan() => [last, f64::NAN],
                _ => continue,
            };
            let contract = (
                chain.expiry[i],
                chain.name(chain.root[i]).to_owned(),
                chain.strike[i].to_bits(),
                chain.call[i],
            );
            prices.insert(contract, pair.map(f64::to_bits));
        }
        Self(prices)
    }

    /// Returns whether these are a copy of the prices `before`: of at least [`FEW_CONTRACTS`] contracts that both have, nine in ten of these prices,
    /// every one is the same.
    pub(super) fn copies(&self, before: &Self) -> bool {
        let mut shared = 0;
        for (contract, prices) in &self.0 {
            match before.0.get(contract) {
                Some(then) if then == prices => shared += 1,
                Some(_) => return false,
                None => {}
            }
        }
        shared >= FEW_CONTRACTS && 10 * shared >= 9 * self.0.len()
    }
}
