//! The price in units of its derivative, and one step of the iteration towards a given price.

use crate::fields;
use crate::special::fused::{exp, fma, log, mills_of_three, mills_pair};

/// sqrt(2 pi).
pub(super) const SQRT_TAU: f64 = 2.506_628_274_631_000_7;
/// ln sqrt(2 pi).
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// `mills(-h - t) - mills(t - h)` for small t, given `y = mills(-h)`: the odd part of the Taylor series in t,
/// whose terms follow `Y^(n+1) = h Y^(n) + n Y^(n-1)`, `Y' = 1 + h Y`. To full precision for t up to 0.4.
#[inline(always)]
fn difference_of_mills(h: f64, t: f64, y: f64) -> f64 {
    let (mut even, mut odd) = (y, fma(h, y, 1.0));
    let (mut sum, mut power, t2) = (odd, 1.0, t * t);
    for k in 1..10 {
        let n = f64::from(2 * k);
        even = fma(h, odd, (n - 1.0) * even);
        odd = fma(h, even, n * odd);
        power *= t2 * (1.0 / (n * (n + 1.0)));
        sum = fma(power, odd, sum);
    }
    2.0 * t * sum
}

/// Returns whether [`over_vega`] is `b / b'` rather than `(e^(x/2) - b) / b'`.
#[inline(always)]
fn is_price(x: f64, h: f64, t: f64) -> bool {
    (h + t < 0.0) | is_small(x, t)
}

/// Returns whether (x, t) is in the region where the difference of Mills' ratios loses digits. It loses them
/// far from the money, too, but there s depends little on the price.
#[inline(always)]
fn is_small(x: f64, t: f64) -> bool {
    (t < 0.4) & (x > -1.0)
}

/// `b / b'` or `(e^(x/2) - b) / b'`, whichever is more accurate, for x <= 0; `by_s` is `1 / s`.
#[inline(always)]
pub(super) fn over_vega(x: f64, s: f64, by_s: f64) -> f64 {
    let (h, t) = (x * by_s, 0.5 * s);
    let [near, far, middle] = mills_of_three([(h + t).abs(), t - h, -h]);
    let sum = if h + t < 0.0 { near - far } else { near + far };
    if is_small(x, t) {
        difference_of_mills(h, t, middle)
    } else {
        sum
    }
}

/// [`over_vega`] above the inflection point, for s of at least 0.8.
#[inline(always)]
pub(super) fn rest_over_vega(x: f64, s: f64, by_s: f64) -> f64 {
    let (h, t) = (x * by_s, 0.5 * s);
    let (near, far) = mills_pair(h + t, t - h);
    near + far
}

/// The equation to be solved, for 1/ln b, b or ln(e^(x/2) - b).
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// `-|ln(F/K)|`.
    pub x: f64,
    /// The target price b.
    pub beta: f64,
    /// `e^(x/2) - b`.
    pub rest: f64,
    /// The function used: -1 for 1/ln b, 0 for b, 1 for ln(e^(x/2) - b).
    pub objective: f64,
    /// `ln b` or, if `objective` is 1, `ln(e^(x/2) - b)`.
    pub ln: f64,
    /// `1 / ln`.
    pub by_ln: f64,
}

fields! { all Target, f64: x, beta, rest, objective, ln, by_ln }

/// Takes a Householder step of third order, and returns the next s. `by_s` is `1 / s`, and `ratio` the value
/// of [`over_vega`].
#[inline(always)]
pub(super) fn step(target: Target, s: f64, by_s: f64, ratio: f64) -> f64 {
    let Target {
        x,
        beta,
        rest,
        objective,
        ln,
        by_ln,
    } = target;
    let (h, t) = (x * by_s, 0.5 * s);
    let half_square = 0.5 * fma(h, h, t * t);
    // b''/b' and b'''/b', in units of the ratio.
    let second = fma(h * h, by_s, -0.25 * s);
    let steep = h * by_s;
    let third = fma(second, second, fma(-3.0 * steep, steep, -0.25)) * (ratio * ratio);
    let second = second * ratio;

    // For ln b and ln(e^(x/2) - b): the distance of their logarithms from the target's.
    let ln_here = log(ratio) - (half_square + LN_SQRT_TAU);
    let by_both = 1.0 / (ln_here * ratio);
    let (inverse, by_ratio) = (ratio * by_both, ln_here * by_both);
    let excess = ln - ln_here;
    let turn = fma(2.0, inverse, 1.0);
    let low = excess * ln_here * by_ln;
    let low_1 = low * (second - turn);
    let low_2 = low
        * low
        * fma(
            -3.0 * second,
            turn,
            fma(2.0, fma(3.0 * inverse, inverse + 1.0, 1.0), third),
        );
    let high = -excess;
    let high_1 = high * (second + 1.0);
    let high_2 = high * high * fma(3.0, second, third + 2.0);
    // For b: the quotient of the target and the current price, or of their distances to the bound.
    let below = is_price(x, h, t);
    let wanted = if below { beta } else { rest };
    let quotient = wanted * SQRT_TAU * exp(half_square) * by_ratio;
    let middle = if below { quotient - 1.0 } else { 1.0 - quotient };

    let (newton, first, second) = if objective < 0.0 {
        (low, low_1, low_2)
    } else if objective > 0.0 {
        (high, high_1, high_2)
    } else {
        (middle, middle * second, middle * middle * third)
    };
    let change = ratio * newton * fma(0.5, first, 1.0) / (fma(1.0 / 6.0, second, first) + 1.0);
    s + change
}
