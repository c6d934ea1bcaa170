//! Black-Scholes for a single option, over `libm`: the price of a European option on a forward, and its
//! derivatives. For columns of options there are the batch kernels of Greeks, whose last bits differ.

use crate::fields;
use crate::normal::{cdf, pdf};

/// Price and sensitivities of an option on one unit of the underlying.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Greeks {
    /// The price V, in currency.
    pub price: f64,
    /// Delta: dV/dS.
    pub delta: f64,
    /// Gamma: d2V/dS2.
    pub gamma: f64,
    /// Vega: dV/dsigma, per 1.00 of volatility.
    pub vega: f64,
    /// Theta: -dV/dT, per year of calendar time passing.
    pub theta: f64,
    /// Rho: dV/dr, per 1.00 of rate.
    pub rho: f64,
    /// Vanna: d2V/dS dsigma, per 1.00 of volatility.
    pub vanna: f64,
    /// Volga: d2V/dsigma2, per 1.00 of volatility squared.
    pub volga: f64,
    /// Charm: -d2V/dS dT, per year of calendar time passing.
    pub charm: f64,
}

fields! { all Greeks, f64: price, delta, gamma, vega, theta, rho, vanna, volga, charm }

impl Greeks {
    /// A value with all fields NaN.
    pub const NONE: Self = Self::from_array([f64::NAN; 9]);
}

/// The payoff of exercise: `max(S - K, 0)` for a call, `max(K - S, 0)` for a put.
pub fn intrinsic(underlying: f64, strike: f64, call: bool) -> f64 {
    if call {
        (underlying - strike).max(0.0)
    } else {
        (strike - underlying).max(0.0)
    }
}

/// The price and Greeks of a European option (F. Black and M. Scholes (1973) in Black's form). The
/// derivatives by spot and time use the carry `ln(forward / underlying) / years`. Without time or volatility,
/// the discounted intrinsic value and its delta.
pub fn greeks(
    underlying: f64,
    forward: f64,
    discount: f64,
    volatility: f64,
    years: f64,
    strike: f64,
    call: bool,
) -> Greeks {
    let sign = if call { 1.0 } else { -1.0 };
    let total = volatility * years.max(0.0).sqrt();
    if !(total > 0.0 && forward > 0.0 && strike > 0.0) {
        let price = intrinsic(forward, strike, call) * discount;
        let inside = sign * (forward - strike) > 0.0;
        return Greeks {
            price,
            delta: if inside {
                sign * discount * forward / underlying
            } else {
                0.0
            },
            ..Greeks::default()
        };
    }
    let root = years.sqrt();
    let d1 = libm::log(forward / strike) / total + 0.5 * total;
    let d2 = d1 - total;
    let (n1, n2) = (cdf(sign * d1), cdf(sign * d2));
    let density = pdf(d1);
    let growth = forward / underlying;
    let (rate, carry) = (-libm::log(discount) / years, libm::log(growth) / years);
    let vega = discount * forward * density * root;
    Greeks {
        price: discount * sign * (forward * n1 - strike * n2),
        delta: sign * discount * growth * n1,
        gamma: discount * growth * density / (underlying * total),
        vega,
        theta: -discount * forward * density * volatility / (2.0 * root)
            - sign * discount * ((carry - rate) * forward * n1 + rate * strike * n2),
        rho: sign * strike * years * discount * n2,
        vanna: -discount * growth * density * d2 / volatility,
        volga: vega * d1 * d2 / volatility,
        charm: discount
            * growth
            * (sign * (rate - carry) * n1
                - density * (2.0 * carry * years - d2 * total) / (2.0 * years * total)),
    }
}

/// The undiscounted price of an option on a forward (F. Black (1976)). `deviation` is volatility times the
/// square root of time.
pub fn undiscounted(forward: f64, strike: f64, deviation: f64, call: bool) -> f64 {
    let sign = if call { 1.0 } else { -1.0 };
    if deviation <= 0.0 {
        return (sign * (forward - strike)).max(0.0);
    }
    let d1 = libm::log(forward / strike) / deviation + 0.5 * deviation;
    let d2 = d1 - deviation;
    (sign * (forward * cdf(sign * d1) - strike * cdf(sign * d2))).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J. Hull, "Options, Futures, and Other Derivatives", example 15.6, with a yield added: S = 42, K = 40,
    /// r = 10 %, sigma = 20 %, half a year.
    fn hull(spot: f64, volatility: f64, years: f64, rate: f64, call: bool) -> Greeks {
        let dividend_yield = 0.02;
        let forward = spot * libm::exp((rate - dividend_yield) * years);
        greeks(spot, forward, libm::exp(-rate * years), volatility, years, 40.0, call)
    }

    #[test]
    fn values_from_a_textbook() {
        let growth = libm::exp(0.05);
        let deviation = 0.2 * 0.5_f64.sqrt();
        for (call, price) in [(true, 4.759_422_392_871_535), (false, 0.808_599_372_900_096_5)] {
            assert!((undiscounted(42.0 * growth, 40.0, deviation, call) / growth - price).abs() < 1e-13);
            assert!(
                (greeks(42.0, 42.0 * growth, 1.0 / growth, 0.2, 0.5, 40.0, call).price - price).abs() < 1e-13
            );
        }
        assert_eq!(greeks(42.0, 42.0, 1.0, 0.2, 0.0, 40.0, true).price, 2.0);
    }

    #[test]
    fn greeks_are_derivatives() {
        for call in [true, false] {
            let h = 1e-4;
            let slope = |f: &dyn Fn(f64) -> f64| (f(h) - f(-h)) / (2.0 * h);
            let g = hull(42.0, 0.2, 0.5, 0.1, call);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b} {call}");
            close(slope(&|x| hull(42.0 + x, 0.2, 0.5, 0.1, call).price), g.delta);
            close(slope(&|x| hull(42.0 + x, 0.2, 0.5, 0.1, call).delta), g.gamma);
            close(slope(&|x| hull(42.0, 0.2 + x, 0.5, 0.1, call).price), g.vega);
            close(slope(&|x| -hull(42.0, 0.2, 0.5 + x, 0.1, call).price), g.theta);
            close(slope(&|x| hull(42.0, 0.2, 0.5, 0.1 + x, call).price), g.rho);
            close(slope(&|x| hull(42.0, 0.2 + x, 0.5, 0.1, call).delta), g.vanna);
            close(slope(&|x| hull(42.0, 0.2 + x, 0.5, 0.1, call).vega), g.volga);
            close(slope(&|x| -hull(42.0, 0.2, 0.5 + x, 0.1, call).delta), g.charm);
        }
    }
}
