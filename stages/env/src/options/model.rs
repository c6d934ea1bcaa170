//! Black-Scholes on the forward, for the marks of contracts that have no quote.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// A value and its Greeks, per unit of the underlying; vega per 1.00 of volatility, theta per year.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Value {
    pub price: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    pub theta: f64,
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// What the option is worth if exercised now.
pub(crate) fn intrinsic(underlying: f64, strike: f64, call: bool) -> f64 {
    if call {
        (underlying - strike).max(0.0)
    } else {
        (strike - underlying).max(0.0)
    }
}

/// Black and Scholes (1973) in Black's form: a European option on a forward, discounted. Delta and theta are those of the
/// spot, with carry ln(forward / underlying) / years.
pub(crate) fn black_scholes(
    underlying: f64,
    forward: f64,
    discount: f64,
    volatility: f64,
    years: f64,
    strike: f64,
    call: bool,
) -> Value {
    let sign = if call { 1.0 } else { -1.0 };
    let total = volatility * years.max(0.0).sqrt();
    if !(total > 0.0 && forward > 0.0 && strike > 0.0) {
        let price = intrinsic(forward, strike, call) * discount;
        let inside = sign * (forward - strike) > 0.0;
        return Value {
            price,
            delta: if inside {
                sign * discount * forward / underlying
            } else {
                0.0
            },
            ..Value::default()
        };
    }
    let root = years.sqrt();
    let d1 = libm::log(forward / strike) / total + 0.5 * total;
    let (n1, n2) = (normal_cdf(sign * d1), normal_cdf(sign * (d1 - total)));
    let density = libm::exp(-0.5 * d1 * d1) / (2.0 * PI).sqrt();
    let growth = forward / underlying;
    let (rate, carry) = (-libm::log(discount) / years, libm::log(growth) / years);
    Value {
        price: discount * sign * (forward * n1 - strike * n2),
        delta: sign * discount * growth * n1,
        gamma: discount * growth * density / (underlying * total),
        vega: discount * forward * density * root,
        theta: -discount * forward * density * volatility / (2.0 * root)
            - sign * discount * ((carry - rate) * forward * n1 + rate * strike * n2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_and_finite_differences() {
        // Hull, example 15.6: S 42, K 40, r 10 %, sigma 20 %, half a year: call 4.76, put 0.81.
        let at = |s: f64, v: f64, y: f64, call| {
            let (r, q) = (0.1, 0.0);
            black_scholes(s, s * libm::exp((r - q) * y), libm::exp(-r * y), v, y, 40.0, call)
        };
        let (call, put) = (at(42.0, 0.2, 0.5, true), at(42.0, 0.2, 0.5, false));
        assert!((call.price - 4.759_422).abs() < 1e-6, "{}", call.price);
        assert!((put.price - 0.808_599).abs() < 1e-6, "{}", put.price);
        for right in [true, false] {
            let mid = at(42.0, 0.2, 0.5, right);
            let h = 1e-4;
            let slope = |f: &dyn Fn(f64) -> f64| (f(h) - f(-h)) / (2.0 * h);
            assert!((slope(&|x| at(42.0 + x, 0.2, 0.5, right).price) - mid.delta).abs() < 1e-7);
            assert!((slope(&|x| at(42.0 + x, 0.2, 0.5, right).delta) - mid.gamma).abs() < 1e-7);
            assert!((slope(&|x| at(42.0, 0.2 + x, 0.5, right).price) - mid.vega).abs() < 1e-5);
            assert!((slope(&|x| -at(42.0, 0.2, 0.5 + x, right).price) - mid.theta).abs() < 1e-5);
        }
        assert_eq!(at(42.0, 0.2, 0.0, true).price, 2.0);
    }
}
