//! The prices of one time's options by strike, free of butterfly arbitrage.

use crate::numerics::formula::{Contract, black_76};
use stages_numerics::special::exp;

/// A price over the forward that is as good as none; no price is lower, so that each has a volatility.
pub(super) const LEAST_PRICE: f64 = 1e-250;

/// The nodes of a day: strikes over the forward, ascending, with 1 among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// `ln(K/F)`.
    logs: Vec<f64>,
    strikes: Vec<f64>,
}

impl Nodes {
    /// Nodes from `least` to `most` (of `ln(K/F)`), `finest` apart at the money and ever farther from there.
    pub fn new(finest: f64, least: f64, most: f64) -> Self {
        /// The part by which the distance grows with that from the money.
        const GROWTH: f64 = 0.03;
        let side = |end: f64| {
            let (mut list, mut x) = (Vec::new(), 0.0);
            while x < end {
                x += finest + GROWTH * x;
                list.push(x);
            }
            list
        };
        let left = side(-least).into_iter().rev().map(|x| -x);
        Self::of(left.chain([0.0]).chain(side(most)).collect())
    }

    /// From [`Nodes::logs`].
    pub fn of(logs: Vec<f64>) -> Self {
        let strikes = logs.iter().map(|k| exp(*k)).collect();
        Self { logs, strikes }
    }

    /// `ln(K/F)` at the nodes.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// The undiscounted prices over the forward of options out of the money (calls from `K = F` on) with
    /// these total variances at the nodes, lowered to their convex hull.
    pub fn prices(&self, variances: &[f64]) -> Vec<f64> {
        let prices: Vec<f64> = variances
            .iter()
            .zip(&self.strikes)
            .map(|(variance, strike)| {
                let numbers = [1.0, *strike, 1.0, 0.0, 0.0, variance.sqrt()];
                black_76(&Contract::from_array(numbers, *strike >= 1.0)).price
            })
            .collect();
        self.convex(prices)
    }

    /// The slope of prices from one node to a later one, and whether it is that of calls: that of puts is
    /// greater by 1.
    fn slope(&self, prices: &[f64], from: usize, to: usize) -> (f64, bool) {
        let (low, high) = (self.strikes[from], self.strikes[to]);
        let call = low >= 1.0;
        let parity = if !call && high > 1.0 { high - 1.0 } else { 0.0 };
        ((prices[to] + parity - prices[from]) / (high - low), call)
    }

    /// The lower convex hull of prices: no butterfly, none above what it was, puts from 0 at strike 0 on,
    /// calls nowhere rising. Where prices are higher their hull is not lower, so that it keeps the order of
    /// two times.
    fn convex(&self, mut prices: Vec<f64>) -> Vec<f64> {
        let rises = |before: (f64, bool), after: (f64, bool)| match (before.1, after.1) {
            (false, true) => before.0 - 1.0 <= after.0,
            _ => before.0 <= after.0,
        };
        let mut hull: Vec<usize> = Vec::with_capacity(prices.len());
        let up_to = |hull: &[usize]| match *hull {
            [.., a, b] => self.slope(&prices, a, b),
            [a] => (prices[a] / self.strikes[a], false),
            [] => (0.0, false),
        };
        for i in 0..prices.len() {
            while let Some(&last) = hull.last()
                && !rises(up_to(&hull), self.slope(&prices, last, i))
            {
                hull.pop();
            }
            hull.push(i);
        }
        while hull.len() > 1 && !rises(up_to(&hull), (0.0, true)) {
            hull.pop();
        }
        let mut before: Option<usize> = None;
        for &node in &hull {
            let (slope, _) = match before {
                Some(before) => self.slope(&prices, before, node),
                None => (prices[node] / self.strikes[node], false),
            };
            let is_call = before.is_some_and(|before| self.strikes[before] >= 1.0);
            for i in before.map_or(0, |before| before + 1)..node {
                let distance = self.strikes[i] - self.strikes[node];
                let parity = if self.strikes[node] > 1.0 && !is_call {
                    self.strikes[node] - 1.0
                } else {
                    0.0
                };
                let line = prices[node] + parity + slope * distance;
                prices[i] = if is_call {
                    line
                } else {
                    line - (self.strikes[i] - 1.0).max(0.0)
                };
            }
            before = Some(node);
        }
        if let Some(&last) = hull.last() {
            let price = prices[last];
            prices[last + 1..].fill(price);
        }
        for price in &mut prices {
            *price = price.max(LEAST_PRICE);
        }
        prices
    }

    /// The price at `k = ln(K/F)`: linear in the strike between nodes; below the first in proportion to the
    /// strike, and above the last constant.
    pub fn price(&self, prices: &[f64], k: f64) -> f64 {
        let after = self.logs.partition_point(|node| *node < k);
        let strike = exp(k);
        let last = self.logs.len() - 1;
        if after == 0 {
            return prices[0] * (strike / self.strikes[0]);
        }
        if after > last {
            return prices[last];
        }
        let (low, high) = (self.strikes[after - 1], self.strikes[after]);
        let share = ((strike - low) / (high - low)).clamp(0.0, 1.0);
        prices[after - 1] * (1.0 - share) + prices[after] * share
    }
}
