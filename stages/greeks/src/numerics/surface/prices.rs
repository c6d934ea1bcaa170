//! The prices of options at one time as a function of the strike, free of butterfly arbitrage.

use crate::numerics::formula::{Contract, black_76};
use stages_numerics::special::exp;

/// A negligible price relative to the forward; no price is lower, so that every one has a volatility.
pub(super) const LEAST_PRICE: f64 = 1e-250;

/// The nodes of a day: strikes relative to the forward, ascending, with 1 among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// The log-moneyness `ln(K/F)` of the nodes.
    logs: Vec<f64>,
    strikes: Vec<f64>,
}

impl Nodes {
    /// Nodes from `least` to `most` in `ln(K/F)`, with a spacing of `finest` at the money that grows from
    /// there.
    pub fn new(finest: f64, least: f64, most: f64) -> Self {
        /// The growth of the spacing per unit of distance from the money.
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

    /// Nodes from their log-moneyness, as [`Nodes::logs`] returns it.
    pub fn of(logs: Vec<f64>) -> Self {
        let strikes = logs.iter().map(|k| exp(*k)).collect();
        Self { logs, strikes }
    }

    /// The log-moneyness `ln(K/F)` of the nodes.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// The undiscounted prices, relative to the forward, of out-of-the-money options (calls for `K >= F`)
    /// with the given total variances at the nodes, lowered to their convex hull.
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

    /// The slope of prices from one node (from strike 0, where a put is worth 0, without one) to a later one,
    /// and whether it is that of call prices; the slope of put prices is greater by 1.
    fn slope(&self, prices: &[f64], from: Option<usize>, to: usize) -> (f64, bool) {
        let (low, price) = from.map_or((0.0, 0.0), |from| (self.strikes[from], prices[from]));
        let high = self.strikes[to];
        let call = low >= 1.0;
        let parity = if !call && high > 1.0 { high - 1.0 } else { 0.0 };
        ((prices[to] + parity - price) / (high - low), call)
    }

    /// The lower convex hull of prices: free of butterflies, nowhere above the original, with puts starting
    /// from 0 at strike 0 and calls nowhere increasing. The hull of higher prices is nowhere lower, so the
    /// order of two times is preserved.
    fn convex(&self, mut prices: Vec<f64>) -> Vec<f64> {
        let rises = |before: (f64, bool), after: (f64, bool)| match (before.1, after.1) {
            (false, true) => before.0 - 1.0 <= after.0,
            _ => before.0 <= after.0,
        };
        let mut hull: Vec<usize> = Vec::with_capacity(prices.len());
        let up_to = |hull: &[usize]| match *hull {
            [.., a, b] => self.slope(&prices, Some(a), b),
            [a] => self.slope(&prices, None, a),
            [] => (0.0, false),
        };
        for i in 0..prices.len() {
            while let Some(&last) = hull.last()
                && !rises(up_to(&hull), self.slope(&prices, Some(last), i))
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
            let (slope, is_call) = self.slope(&prices, before, node);
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

    /// The price at `k = ln(K/F)`: linear in the strike between nodes, proportional to the strike below the
    /// first, constant above the last.
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
