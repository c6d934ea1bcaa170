//! Black's formula and its inverse.

/// The standard normal distribution function.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// 1 / sqrt(2 pi).
const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;

/// The undiscounted value of an option on a forward (Black 1976). `deviation` is volatility times the root of time.
pub fn black(forward: f64, strike: f64, deviation: f64, call: bool) -> f64 {
    let sign = if call { 1.0 } else { -1.0 };
    if deviation <= 0.0 {
        return (sign * (forward - strike)).max(0.0);
    }
    let d1 = libm::log(forward / strike) / deviation + 0.5 * deviation;
    let d2 = d1 - deviation;
    (sign * (forward * normal_cdf(sign * d1) - strike * normal_cdf(sign * d2))).max(0.0)
}

/// The deviation (volatility times the root of time) at which [`black`] gives `price`; `None` when none does. `guess` is where
/// the search begins, 0 for nowhere in particular.
///
/// It solves for the option that is out of the money, by parity, with Newton's method on the logarithm of the price, kept
/// within a bracket. To about 1e-12, relative.
pub fn implied_deviation(forward: f64, strike: f64, price: f64, call: bool, guess: f64) -> Option<f64> {
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
    // The inflection point of the price in the deviation (Manaster and Koehler 1982).
    let mut deviation = if guess > 0.0 {
        guess
    } else {
        (2.0 * moneyness.abs()).sqrt().max(1e-3)
    };
    for _ in 0..100 {
        let value = black(forward, strike, deviation, out_is_call);
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
    // At the limit of what numbers of 64 bits can tell apart.
    (high - low <= 1e-9 * high).then_some(deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_a_textbook() {
        // Hull, "Options, Futures, and Other Derivatives": S = 42, K = 40, r = 10 %, sigma = 20 %, half a year.
        let growth = libm::exp(0.05);
        let deviation = 0.2 * 0.5_f64.sqrt();
        assert!((black(42.0 * growth, 40.0, deviation, true) / growth - 4.759_422_392_871_535).abs() < 1e-13);
        assert!((black(42.0 * growth, 40.0, deviation, false) / growth - 0.808_599_372_900_096_5).abs() < 1e-13);
    }

    #[test]
    fn the_inverse_inverts() {
        for deviation in [0.005, 0.05, 0.2, 1.0, 3.0] {
            for strike in [40.0, 80.0, 99.0, 100.0, 101.0, 130.0, 300.0] {
                for call in [true, false] {
                    let out = (strike >= 100.0) == call;
                    let price = black(100.0, strike, deviation, call);
                    if !out || price < 1e-200 {
                        continue;
                    }
                    for guess in [0.0, 0.3] {
                        let found = implied_deviation(100.0, strike, price, call, guess).unwrap();
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
        let deep = black(100.0, 80.0, 0.3, true);
        assert!((implied_deviation(100.0, 80.0, deep, true, 0.0).unwrap() - 0.3).abs() < 1e-10);
    }
}
