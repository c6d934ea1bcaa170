//! The formula as a textbook writes it, over `libm`: what the kernels are tested and measured against.

use super::formula::{Greeks, Option};
use libm::{erfc, exp, log, sqrt};

fn cdf(x: f64) -> f64 {
    0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn pdf(x: f64) -> f64 {
    exp(-0.5 * x * x) / sqrt(std::f64::consts::TAU)
}

/// Black-Scholes-Merton, for positive time and volatility.
pub fn black_scholes_merton(option: &Option) -> Greeks {
    let Option {
        spot: s,
        strike: k,
        years: t,
        rate: r,
        dividend_yield: q,
        volatility: v,
        call,
    } = *option;
    let w = if call { 1.0 } else { -1.0 };
    let sd = v * sqrt(t);
    let d1 = (log(s / k) + (r - q + 0.5 * v * v) * t) / sd;
    let d2 = d1 - sd;
    let (dq, dr) = (exp(-q * t), exp(-r * t));
    let (n1, n2) = (cdf(w * d1), cdf(w * d2));
    let vega = s * dq * pdf(d1) * sqrt(t);
    Greeks {
        price: w * (s * dq * n1 - k * dr * n2),
        delta: w * dq * n1,
        gamma: dq * pdf(d1) / (s * sd),
        vega,
        theta: -s * dq * pdf(d1) * v / (2.0 * sqrt(t)) + w * (q * s * dq * n1 - r * k * dr * n2),
        rho: w * k * t * dr * n2,
        vanna: -dq * pdf(d1) * d2 / v,
        volga: vega * d1 * d2 / v,
        charm: w * q * dq * n1 - dq * pdf(d1) * (2.0 * (r - q) * t - d2 * sd) / (2.0 * t * sd),
    }
}

/// Implied volatility by bisection of the price to the last bit: slow, and sure.
pub fn implied_volatility(price: f64, option: &Option) -> f64 {
    let (mut low, mut high) = (1e-6, 50.0);
    while high - low > 1e-15 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        let model = black_scholes_merton(&Option {
            volatility: middle,
            ..*option
        });
        if model.price < price {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
