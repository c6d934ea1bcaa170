//! The smile at one time.

use super::prices::{LEAST_PRICE, Nodes};
use crate::numerics::implied::{Prices, implied_volatilities, implied_volatility};
use stages_numerics::special::{exp, normal_cdf};
use std::borrow::Cow;

/// The smile at one time, given by the prices of options.
#[derive(Clone, Debug)]
pub struct Smile<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) prices: Cow<'a, [f64]>,
    pub(super) years: f64,
}

impl Smile<'_> {
    /// Time to maturity in years.
    pub fn years(&self) -> f64 {
        self.years
    }

    /// The undiscounted price, relative to the forward, of the out-of-the-money option (a call for k >= 0) at
    /// `k = ln(K/F)`.
    pub fn price(&self, k: f64) -> f64 {
        self.nodes.price(&self.prices, k)
    }

    /// The total variance `sigma^2 T` at `k = ln(K/F)`.
    pub fn total_variance(&self, k: f64) -> f64 {
        total_variance(self.price(k), k)
    }

    /// The total variances `sigma^2 T` at many `k = ln(K/F)`.
    pub fn total_variances(&self, k: &[f64]) -> Vec<f64> {
        let prices: Vec<f64> = k.iter().map(|k| self.price(*k)).collect();
        total_variances(&prices, k)
    }

    /// The volatility at `k = ln(K/F)`, annualised, as a decimal.
    pub fn volatility(&self, k: f64) -> f64 {
        (self.total_variance(k) / self.years).sqrt()
    }

    /// The `k = ln(K/F)` at which the absolute undiscounted forward delta of the option, `cdf(w d1)`, is
    /// `delta` (below 1/2); NaN if there is none.
    pub fn log_moneyness_of(&self, delta: f64, call: bool) -> f64 {
        let sign = if call { 1.0 } else { -1.0 };
        // Here `distance` is the log-moneyness out of the money.
        let delta_at = |distance: f64| {
            let k = sign * distance;
            let w = self.total_variance(k);
            normal_cdf(sign * (-k / w.sqrt() + 0.5 * w.sqrt()))
        };
        let scale = self.total_variance(0.0).sqrt();
        let (mut low, mut high) = (-4.0 * scale, 4.0 * scale);
        while delta_at(high) > delta {
            high *= 2.0;
            if high > 1e3 * scale {
                return f64::NAN;
            }
        }
        if delta_at(low) < delta {
            return f64::NAN;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if delta_at(middle) > delta {
                low = middle;
            } else {
                high = middle;
            }
        }
        sign * 0.5 * (low + high)
    }
}

/// The total variances implied by prices of out-of-the-money options.
pub(super) fn total_variances(prices: &[f64], k: &[f64]) -> Vec<f64> {
    let ones = vec![1.0; k.len()];
    let (deviations, _) = implied_volatilities(&Prices {
        price: &prices.iter().map(|price| price.max(LEAST_PRICE)).collect::<Vec<f64>>(),
        forward: &ones,
        strike: &k.iter().map(|k| exp(*k)).collect::<Vec<f64>>(),
        discount: &ones,
        years: &ones,
        call: &k.iter().map(|k| *k >= 0.0).collect::<Vec<bool>>(),
    });
    deviations.into_iter().map(|deviation| deviation * deviation).collect()
}

/// The total variance implied by the price of an out-of-the-money option.
fn total_variance(price: f64, k: f64) -> f64 {
    let (deviation, _) = implied_volatility(price.max(LEAST_PRICE), 1.0, exp(k), 1.0, 1.0, k >= 0.0);
    deviation * deviation
}
