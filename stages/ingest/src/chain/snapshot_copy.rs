//! Detection of copied snapshots, whose bids and asks all equal those of a snapshot of the previous day.

use super::columns::{ASK, BID, Chain, LAST};
use datasets::quality::FEW_CONTRACTS;
use std::cmp::Ordering;
use std::ops::Range;

/// The prices in a snapshot, in the order of a chain's rows.
#[derive(Default)]
pub(super) struct Prices {
    /// The names of the classes that rows refer to by number.
    pub roots: Vec<String>,
    pub rows: Vec<Row>,
}

/// A contract and its prices.
pub(super) struct Row {
    pub expiry: i32,
    pub root: u32,
    pub strike: f64,
    pub call: bool,
    /// Bid and ask, or the last price and NaN.
    pub prices: [f64; 2],
}

impl Prices {
    /// The prices of a snapshot of a sorted chain: bid and ask or, where both are missing, the last price.
    /// Rows without prices are left out.
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
                prices,
            });
        }
        Self {
            roots: ids.into_iter().map(|id| chain.name(id).to_owned()).collect(),
            rows: out,
        }
    }

    /// Returns whether these prices are a copy of `before`: at least [`FEW_CONTRACTS`] contracts, and nine
    /// tenths of these, are in both snapshots, and all of them have equal prices.
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
                if then.prices.map(f64::to_bits) != row.prices.map(f64::to_bits) {
                    return false;
                }
                shared += 1;
            }
        }
        shared >= FEW_CONTRACTS && 10 * shared >= 9 * self.rows.len()
    }

    /// Orders a row and a row of another snapshot as [`Chain::sort`] does.
    fn compare(&self, row: &Row, others: &Self, other: &Row) -> Ordering {
        row.expiry
            .cmp(&other.expiry)
            .then_with(|| self.roots[row.root as usize].cmp(&others.roots[other.root as usize]))
            .then_with(|| row.strike.total_cmp(&other.strike))
            .then_with(|| other.call.cmp(&row.call))
    }
}
