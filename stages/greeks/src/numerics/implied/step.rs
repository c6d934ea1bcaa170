//! The price in units of its derivative, and one step towards the price that is given.

use crate::numerics::fused::{exp, fma, log, mills, mills_pair};

/// sqrt(2 pi).
pub(super) const SQRT_TAU: f64 = 2.506_628_274_631_000_7;
/// ln sqrt(2 pi).
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// `mills(-h - t) - mills(t - h)` for small t: the odd part of Taylor's series in t, whose terms follow `Y^(n+1) = h Y^(n) + n Y^(n-1)`,
/// `Y' = 1 + h Y`. To full precision for t up to 0.4.
#[inline(always)]
fn difference_of_mills(h: f64, t: f64) -> f64 {
    let y = mills(-h);
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

/// Either `b / b'` and true, or `(e^(x/2) - b) / b'` and false, whichever is known better; with `h = x/s` and `t = s/2`, for x <= 0.
#[inline(always)]
pub(super) fn over_vega(x: f64, h: f64, t: f64) -> (f64, bool) {
    let (near, far) = mills_pair((h + t).abs(), t - h);
    let series = difference_of_mills(h, t);
    // The difference loses digits where both are nearly equal; it doesn't matter where s depends little on the price, far from the money.
    let small = (t < 0.4) & (x > -1.0);
    let below = h + t < 0.0;
    let sum = if below { near - far } else { near + far };
    (if small { series } else { sum }, small | below)
}

/// What is iterated on: 1/ln b, b or ln(e^(x/2) - b).
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// `-|ln(F/K)|`.
    pub x: f64,
    /// The price b.
    pub beta: f64,
    /// `e^(x/2) - b`.
    pub rest: f64,
    /// -1 for 1/ln b, 0 for b, 1 for ln(e^(x/2) - b).
    pub objective: f64,
    /// `ln b` or, for the third, `ln(e^(x/2) - b)`.
    pub ln: f64,
}

/// One of Householder's steps of third order: the next s.
#[inline(always)]
pub(super) fn step(target: Target, s: f64) -> f64 {
    let Target {
        x,
        beta,
        rest,
        objective,
        ln,
    } = target;
    let by_s = 1.0 / s;
    let (h, t) = (x * by_s, 0.5 * s);
    let (ratio, below) = over_vega(x, h, t);
    let half_square = 0.5 * fma(h, h, t * t);
    // b''/b' and b'''/b', in units of the ratio.
    let second = fma(h * h, by_s, -0.25 * s);
    let steep = h * by_s;
    let third = fma(second, second, fma(-3.0 * steep, steep, -0.25)) * (ratio * ratio);
    let second = second * ratio;

    // On ln b and ln(e^(x/2) - b): how far their logarithms are from the target's.
    let ln_here = log(ratio) - (half_square + LN_SQRT_TAU);
    let excess = ln - ln_here;
    let inverse = 1.0 / ln_here;
    let turn = fma(2.0, inverse, 1.0);
    let low = excess * ln_here / ln;
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
    // On b: the quotient of the target and the price here, or of what both leave to the bound.
    let wanted = if below { beta } else { rest };
    let quotient = wanted * SQRT_TAU * exp(half_square) / ratio;
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
