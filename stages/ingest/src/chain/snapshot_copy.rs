//! Copied snapshots: all bids and asks are those of a snapshot of the day before.

use super::columns::{ASK, BID, Chain, LAST};
use super::ladder::Contract;
use datasets::quality::FEW_CONTRACTS;
use std::cmp::Ordering;
use std::ops::Range;

/// The prices of a snapshot, in the order of a chain's rows.
#[derive(Default)]
pub(super) struct Prices {
    /// The classes that rows have by number.
    pub roots: Vec<String>,
    pub rows: Vec<Row>,
}

/// A contract and its prices.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub expiry: i32,
    pub root: u32,
    pub strike: f64,
    pub call: bool,
    /// The bits of bid and ask, or of the last price.
    pub prices: [u64; 2],
}

impl Row {
    pub fn contract(&self) -> Contract {
        (self.expiry, self.strike.to_bits(), self.call)
    }
}

impl Prices {
    /// The prices of the rows of a snapshot of a sorted chain that have some: bid and ask, or, where there is
    /// neither, the last price.
    pub(super) fn new(chain: &Chain, rows: Range<usize>) -> Self {
        let mut ids: Vec<u32> = Vec::new();
        let mut out = Vec::with_capacity(rows.len());
        for i in rows {
            let [bid, ask, last] = [BID, ASK, LAST].map(|column| chain.values[column][i]);
            let prices = match (bid > 0.0 || ask > 0.0, last > 0.0) {
                (true, _) => [bid, ask],
                (false, true) if bid.is_nan() && ask.is_nan() => [last, f64::NAN],
                _ => continue,
            };
            let root = match ids.iter().position(|id| *id == chain.root[i]) {
                Some(known) => known,
                None => {
                    ids.push(chain.root[i]);
                    ids.len() - 1
                }
            };
            out.push(Row {
                expiry: chain.expiry[i],
                root: root as u32,
                strike: chain.strike[i],
                call: chain.call[i],
                prices: prices.map(f64::to_bits),
            });
        }
        Self {
            roots: ids.into_iter().map(|id| chain.name(id).to_owned()).collect(),
            rows: out,
        }
    }

    /// Returns whether these are a copy of the prices `before`: of at least [`FEW_CONTRACTS`] contracts that
    /// both have, nine in ten of these prices, every one is the same.
    pub(super) fn copies(&self, before: &Self) -> bool {
        let (mut shared, mut at) = (0, 0);
        for row in &self.rows {
            while before
                .rows
                .get(at)
                .is_some_and(|then| before.compare(then, self, row) == Ordering::Less)
            {
                at += 1;
            }
            let Some(then) = before.rows.get(at) else { break };
            if before.compare(then, self, row) == Ordering::Equal {
                if then.prices != row.prices {
                    return false;
                }
                shared += 1;
            }
        }
        shared >= FEW_CONTRACTS && 10 * shared >= 9 * self.rows.len()
    }

    /// The order of a row and one of another snapshot, as [`Chain::sort`] has it.
    fn compare(&self, row: &Row, others: &Self, other: &Row) -> Ordering {
        row.expiry
            .cmp(&other.expiry)
            .then_with(|| self.roots[row.root as usize].cmp(&others.roots[other.root as usize]))
            .then_with(|| row.strike.total_cmp(&other.strike))
            .then_with(|| other.call.cmp(&row.call))
    }
}
