//! A binomial lattice: the slow oracle for the fast methods, which shares nothing with them.
//!
//! Steps and probabilities are those of D. P. J. Leisen and M. Reimer, "Binomial models for option valuation:
//! examining and improving convergence", Applied Mathematical Finance 3 (1996). Cash dividends are treated as
//! in [`stages_greeks::numerics::american::grid`]: on its date the spot falls by the amount, and the value
//! before is the value after, interpolated between the nodes (M. H. Vellekoop and J. W. Nieuwenhuis,
//! "Efficient pricing of derivatives on assets with discrete dividends", Applied Mathematical Finance 13
//! (2006)).

use libm::{exp, log, pow, sqrt};
use stages_greeks::numerics::american::grid::Dividend;
use stages_greeks::numerics::formula::Contract;

/// The Peizer-Pratt inversion: the success probability for which a binomial variable of n trials (n odd)
/// exceeds n/2 with probability `cdf(z)`.
fn peizer_pratt(z: f64, n: f64) -> f64 {
    let a = z / (n + 1.0 / 3.0 + 0.1 / (n + 1.0));
    let root = sqrt(0.25 - 0.25 * exp(-a * a * (n + 1.0 / 6.0)));
    if z < 0.0 { 0.5 - root } else { 0.5 + root }
}

/// The price on a lattice of `steps` steps (one more if even). NaN unless spot, strike, time and volatility
/// are positive.
fn lattice(option: &Contract, dividends: &[Dividend], steps: usize, american: bool) -> f64 {
    let [spot, strike, years, rate, dividend_yield, volatility] = option.to_array();
    let positive = |x: f64| x > 0.0 && x.is_finite();
    if !(positive(spot) && positive(strike) && positive(years) && positive(volatility)) {
        return f64::NAN;
    }
    let n = steps | 1;
    let dt = years / n as f64;
    let carry = rate - dividend_yield;
    let deviation = volatility * sqrt(years);
    let d1 = (log(spot / strike) + carry * years) / deviation + 0.5 * deviation;
    let (p, share) = (peizer_pratt(d1 - deviation, n as f64), peizer_pratt(d1, n as f64));
    let growth = exp(carry * dt);
    let up = growth * share / p;
    let down = (growth - p * up) / (1.0 - p);
    let discount = exp(-rate * dt);
    let (win, lose) = (discount * p, discount * (1.0 - p));
    let w = option.sign();
    let payoff = |s: f64| (w * (s - strike)).max(0.0);
    let spots = |step: usize| {
        let ratio = up / down;
        let mut s = spot * pow(down, step as f64);
        (0..=step)
            .map(|_| {
                let here = s;
                s *= ratio;
                here
            })
            .collect::<Vec<f64>>()
    };
    let paid = |step: usize| -> f64 {
        let due =
            |dividend: &&Dividend| (dividend.years / dt).round() as usize == step && dividend.years > 0.0;
        dividends.iter().filter(due).map(|dividend| dividend.amount).sum()
    };
    let mut values: Vec<f64> = spots(n).into_iter().map(payoff).collect();
    for step in (0..=n).rev() {
        let here = spots(step);
        if step < n {
            for j in 0..=step {
                values[j] = win * values[j + 1] + lose * values[j];
            }
            values.truncate(step + 1);
            if american {
                for (value, s) in values.iter_mut().zip(&here) {
                    *value = value.max(payoff(*s));
                }
            }
        }
        let amount = paid(step);
        if amount > 0.0 && step > 0 {
            let after = values.clone();
            for (value, s) in values.iter_mut().zip(&here) {
                let fallen = (s - amount).max(0.0);
                *value = between(
                    &here,
                    &after,
                    fallen,
                    payoff(0.0)
                        * if american {
                            1.0
                        } else {
                            exp(-rate * (years - step as f64 * dt))
                        },
                );
                if american {
                    *value = value.max(payoff(*s));
                }
            }
        }
    }
    values[0]
}

/// The price extrapolated from lattices of `steps` and of three times as many steps: the error of a smooth
/// lattice is proportional to the step size.
pub(crate) fn extrapolated(option: &Contract, dividends: &[Dividend], steps: usize) -> f64 {
    let n = steps | 1;
    let (rough, fine) = (
        lattice(option, dividends, n, true),
        lattice(option, dividends, 3 * n, true),
    );
    fine + (fine - rough) / 2.0
}

/// Interpolates by the cubic through the four nodes around `s`; below the lowest node by a line to the value
/// at 0, above the highest one with the last slope.
fn between(spots: &[f64], values: &[f64], s: f64, at_zero: f64) -> f64 {
    let n = spots.len();
    if s <= spots[0] {
        return at_zero + (values[0] - at_zero) * s / spots[0];
    }
    if n < 4 {
        let i = spots.partition_point(|x| *x < s).clamp(1, n - 1);
        let t = (s - spots[i - 1]) / (spots[i] - spots[i - 1]);
        return values[i - 1] + t * (values[i] - values[i - 1]);
    }
    let i = spots.partition_point(|x| *x < s).clamp(2, n - 2) - 2;
    let (x, y) = (&spots[i..i + 4], &values[i..i + 4]);
    let mut sum = 0.0;
    for j in 0..4 {
        let mut term = y[j];
        for k in 0..4 {
            if k != j {
                term *= (s - x[k]) / (x[j] - x[k]);
            }
        }
        sum += term;
    }
    sum
}
