//! Black-Scholes for a single option, over `libm`: the price of a European option on a forward, its
//! derivatives, and the implied volatility. For columns of options there are the batch kernels of Greeks,
//! whose last bits differ.

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

/// The total deviation (volatility times the square root of time) at which [`undiscounted`] gives `price`;
/// `None` if there is none. `guess` is the starting point of the search, or 0 for the default one.
///
/// By parity, the equation is solved for the out-of-the-money option, with Newton's method on the logarithm
/// of the price, kept within a bracket. The relative accuracy is about 1e-12.
pub fn implied_deviation(forward: f64, strike: f64, price: f64, call: bool, guess: f64) -> Option<f64> {
    /// 1 / sqrt(2 pi).
    const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
    let sign = if call { 1.0 } else { -1.0 };
    let intrinsic = (sign * (forward - strike)).max(0.0);
    let bound = if call { forward } else { strike };
    let price_is_possible = price > intrinsic && price < bound;
    if !price_is_possible || forward <= 0.0 || strike <= 0.0 {
        return None;
    }
    let out_is_call = strike >= forward;
    let target = libm::log(if call == out_is_call {
        price
    } else {
        price - sign * (forward - strike)
    });
    if !target.is_finite() {
        return None;
    }
    let moneyness = libm::log(forward / strike);
    let (mut low, mut high) = (0.0, f64::INFINITY);
    // The inflection point of the price as a function of the deviation (S. Manaster and G. Koehler (1982)).
    let mut deviation = if guess > 0.0 {
        guess
    } else {
        (2.0 * moneyness.abs()).sqrt().max(1e-3)
    };
    for _ in 0..100 {
        let value = undiscounted(forward, strike, deviation, out_is_call);
        let d1 = moneyness / deviation + 0.5 * deviation;
        let vega = forward * INV_SQRT_TAU * libm::exp(-0.5 * d1 * d1);
        let error = libm::log(value) - target;
        if error < 0.0 {
            low = deviation;
        } else {
            high = deviation;
        }
        let step = error * value / vega;
        let mut next = deviation - step;
        if !(next > low && next < high) {
            next = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * deviation
            };
        }
        if (next - deviation).abs() <= 1e-13 * deviation {
            return Some(next);
        }
        deviation = next;
        if deviation > 1e3 {
            return None;
        }
    }
    // Accepted if the bracket is at the resolution of f64.
    (high - low <= 1e-9 * high).then_some(deviation)
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

    #[test]
    fn the_inverse_inverts() {
        for deviation in [0.005, 0.05, 0.2, 1.0, 3.0] {
            for strike in [40.0, 80.0, 99.0, 100.0, 101.0, 130.0, 300.0] {
                for call in [true, false] {
                    let out = (strike >= 100.0) == call;
                    let price = undiscounted(100.0, strike, deviation, call);
                    if !out || price < 1e-200 {
                        continue;
                    }
                    for guess in [0.0, 0.3] {
                        let found =
                            implied_deviation(100.0, strike, price, call, guess).expect("a deviation");
                        assert!(
                            (found / deviation - 1.0).abs() < 1e-10,
                            "{deviation} {strike} {call}: {found}"
                        );
                    }
                }
            }
        }
        assert_eq!(implied_deviation(100.0, 80.0, 20.0, true, 0.0), None);
        assert_eq!(implied_deviation(100.0, 80.0, 100.0, true, 0.0), None);
        assert_eq!(implied_deviation(100.0, 80.0, f64::NAN, true, 0.0), None);
        let deep = undiscounted(100.0, 80.0, 0.3, true);
        let found = implied_deviation(100.0, 80.0, deep, true, 0.0).expect("a deviation");
        assert!((found - 0.3).abs() < 1e-10);
    }
}
