//! Implied volatility to machine precision, after P. Jäckel, "Let's be rational", Wilmott (January 2015).
//!
//! With `x = -|ln(F/K)|` and `s = sigma sqrt T`, the out-of-the-money price in units of the discounted `sqrt(FK)` is
//! `b(s) = e^(x/2) cdf(x/s + s/2) - e^(-x/2) cdf(x/s - s/2)`. A rational guess in one of four zones, then Householder steps of third order (error
//! to the fourth power) on a function of b that is nearly linear there: `1/ln b` for small prices, `ln(b_max - b)` for large ones, b between.

use super::special::{INV_SQRT_TAU, exp, inverse_normal_cdf, log, log_ratio, mills, normal_cdf};
use std::f64::consts::{PI, TAU};

/// Whether there is an implied volatility, or why not. The discriminant is the code in the column `iv_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// There is one.
    Ok = 0,
    /// The price is below the discounted intrinsic value.
    BelowIntrinsic = 1,
    /// The price is the discounted intrinsic value: the volatility is 0.
    AtIntrinsic = 2,
    /// The price is 0 and so is the intrinsic value: the volatility is 0.
    ZeroPrice = 3,
    /// The price is at or above its upper bound (discounted forward for a call, discounted strike for a put).
    AtOrAboveUpper = 4,
    /// No time is left.
    Expired = 5,
    /// There is no two-sided quote and no last price.
    NoQuote = 6,
    /// There is no forward or discount factor for the expiry.
    NoForward = 7,
}

impl Status {
    /// All, by code.
    pub const ALL: [Self; 8] = [
        Self::Ok,
        Self::BelowIntrinsic,
        Self::AtIntrinsic,
        Self::ZeroPrice,
        Self::AtOrAboveUpper,
        Self::Expired,
        Self::NoQuote,
        Self::NoForward,
    ];

    /// The code in the column `iv_status`.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::BelowIntrinsic => "below_intrinsic",
            Self::AtIntrinsic => "at_intrinsic",
            Self::ZeroPrice => "zero_price",
            Self::AtOrAboveUpper => "at_or_above_upper",
            Self::Expired => "expired",
            Self::NoQuote => "no_quote",
            Self::NoForward => "no_forward",
        }
    }
}

/// The implied volatility of a price: annual and decimal, or NaN and why. `forward` and `strike` in currency, `discount` the value now of 1 at
/// expiry, `years` to expiry.
pub fn implied_volatility(
    price: f64,
    forward: f64,
    strike: f64,
    discount: f64,
    years: f64,
    call: bool,
) -> (f64, Status) {
    let none = |status| (f64::NAN, status);
    if years.is_nan() || years <= 0.0 {
        return none(Status::Expired);
    }
    let usable = |value: f64| value > 0.0 && value.is_finite();
    if !price.is_finite() || !usable(strike) {
        return none(Status::NoQuote);
    }
    if !usable(forward) || !usable(discount) {
        return none(Status::NoForward);
    }
    let undiscounted = price / discount;
    if undiscounted >= if call { forward } else { strike } {
        return none(Status::AtOrAboveUpper);
    }
    let intrinsic = if call { forward - strike } else { strike - forward }.max(0.0);
    let time_value = undiscounted - intrinsic;
    if time_value < 0.0 {
        return none(Status::BelowIntrinsic);
    }
    if time_value == 0.0 {
        return none(if intrinsic > 0.0 {
            Status::AtIntrinsic
        } else {
            Status::ZeroPrice
        });
    }
    let x = -log_ratio(forward, strike).abs();
    let s = total_deviation(time_value / (forward.sqrt() * strike.sqrt()), x);
    if s.is_nan() {
        return none(Status::AtOrAboveUpper);
    }
    if s == 0.0 {
        return none(Status::AtIntrinsic);
    }
    (s / years.sqrt(), Status::Ok)
}

/// ln sqrt(2 pi).
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// `cdf(h + t)/pdf(h + t) - cdf(h - t)/pdf(h - t)` with `h = x/s`, `t = s/2`, for `h + t <= 0` or small t: the price over its
/// derivative by s.
fn price_over_vega(x: f64, s: f64) -> f64 {
    let (h, t) = (x / s, 0.5 * s);
    if t < 0.25 && x > -1.0 {
        // The odd part of Taylor's series in t, whose terms follow Y^(n+1) = h Y^(n) + n Y^(n-1), Y' = 1 + h Y.
        let y = mills(-h);
        let (mut even, mut odd) = (y, 1.0 + h * y);
        let (mut sum, mut power, t2) = (odd, 1.0, t * t);
        for k in 1..10 {
            let n = f64::from(2 * k);
            even = h * odd + (n - 1.0) * even;
            odd = h * even + n * odd;
            power *= t2 / (n * (n + 1.0));
            sum += power * odd;
        }
        2.0 * t * sum
    } else {
        mills(-(h + t)) - mills(t - h)
    }
}

/// The derivative of b by s.
fn vega(x: f64, s: f64) -> f64 {
    let (h, t) = (x / s, 0.5 * s);
    INV_SQRT_TAU * exp(-0.5 * (h * h + t * t))
}

/// b(s) for x <= 0.
pub(super) fn black(x: f64, s: f64) -> f64 {
    let (h, t) = (x / s, 0.5 * s);
    if h + t <= 0.0 || (t < 0.25 && x > -1.0) {
        vega(x, s) * price_over_vega(x, s)
    } else {
        exp(0.5 * x) * normal_cdf(h + t) - exp(-0.5 * x) * normal_cdf(h - t)
    }
}

/// `e^(x/2) - b(s)`, for `x/s + s/2 >= 0`.
fn complement(x: f64, s: f64) -> f64 {
    let (h, t) = (x / s, 0.5 * s);
    vega(x, s) * (mills(h + t) + mills(t - h))
}

/// One step of Householder's third-order method from the Newton step and the ratios f''/f' and f'''/f'.
fn householder(newton: f64, second: f64, third: f64) -> f64 {
    newton * (1.0 + 0.5 * second * newton) / (1.0 + newton * (second + third * newton / 6.0))
}

/// What is iterated on.
#[derive(Clone, Copy, PartialEq)]
enum Objective {
    InverseLog,
    Price,
    LogComplement,
}

/// The s with b(s) = `beta`, for x <= 0 and beta > 0; NaN where beta is at or above the bound `e^(x/2)`.
pub(super) fn total_deviation(beta: f64, x: f64) -> f64 {
    let bound = exp(0.5 * x);
    if beta >= bound {
        return f64::NAN;
    }
    if beta < f64::MIN_POSITIVE {
        return 0.0;
    }
    let (guess, low, high, objective) = guess(beta, x, bound);
    refine(beta, x, bound, guess, low, high, objective)
}

/// A guess, a bracket and what to iterate on.
fn guess(beta: f64, x: f64, bound: f64) -> (f64, f64, f64, Objective) {
    // The inflection point of b.
    let centre = (2.0 * x.abs()).sqrt();
    let (b_c, v_c) = if x == 0.0 {
        (0.0, INV_SQRT_TAU)
    } else {
        (black(x, centre), vega(x, centre))
    };
    if beta < b_c {
        let left = centre - b_c / v_c;
        let b_l = if left > 0.0 { black(x, left) } else { 0.0 };
        if beta < b_l {
            let (f, d, d2) = lower_map(x, left);
            let r = control_right((0.0, b_l), (0.0, f), (1.0, d), d2, true);
            let mut y = rational_cubic(beta, (0.0, b_l), (0.0, f), (1.0, d), r);
            if y.is_nan() || y <= 0.0 {
                let t = beta / b_l;
                y = (f * t + b_l * (1.0 - t)) * t;
            }
            return (inverse_lower_map(x, y).min(left), 0.0, left, Objective::InverseLog);
        }
        let slopes = (1.0 / vega(x, left), 1.0 / v_c);
        let r = control_right((b_l, b_c), (left, centre), slopes, 0.0, false);
        let s = rational_cubic(beta, (b_l, b_c), (left, centre), slopes, r);
        return (s, left, centre, Objective::Price);
    }
    let right = if v_c > f64::MIN_POSITIVE {
        centre + (bound - b_c) / v_c
    } else {
        centre
    };
    let b_h = black(x, right);
    if beta <= b_h {
        let slopes = (1.0 / v_c, 1.0 / vega(x, right));
        let r = control_left((b_c, b_h), (centre, right), slopes, 0.0, false);
        let s = rational_cubic(beta, (b_c, b_h), (centre, right), slopes, r);
        return (s, centre, right, Objective::Price);
    }
    let (f, d, d2) = upper_map(x, right);
    let mut y = f64::NAN;
    if d2.abs() < 1e154 {
        let r = control_left((b_h, bound), (f, 0.0), (d, -0.5), d2, true);
        y = rational_cubic(beta, (b_h, bound), (f, 0.0), (d, -0.5), r);
    }
    if y.is_nan() || y <= 0.0 {
        let h = bound - b_h;
        let t = (beta - b_h) / h;
        y = (f * (1.0 - t) + 0.5 * h * t) * (1.0 - t);
    }
    let objective = if beta > 0.5 * bound {
        Objective::LogComplement
    } else {
        Objective::Price
    };
    ((-2.0 * inverse_normal_cdf(y)).max(right), right, f64::MAX, objective)
}

/// Householder steps within a bracket, until a step no longer changes s.
fn refine(beta: f64, x: f64, bound: f64, guess: f64, mut low: f64, mut high: f64, objective: Objective) -> f64 {
    let mut s = guess;
    let ln_beta = log(beta);
    for _ in 0..12 {
        let h = x / s;
        // b''/b' and b'''/b'.
        let second = h * h / s - 0.25 * s;
        let third = second * second - 3.0 * (h / s) * (h / s) - 0.25;
        let (excess, step) = match objective {
            Objective::InverseLog => {
                let ratio = price_over_vega(x, s);
                let ln_b = -0.5 * (h * h + 0.25 * s * s) - LN_SQRT_TAU + log(ratio);
                let slope = 1.0 / ratio;
                let newton = (ln_beta - ln_b) * ln_b / ln_beta * ratio;
                let halley = second - slope * (1.0 + 2.0 / ln_b);
                let hh3 = third + 2.0 * slope * slope * (1.0 + 3.0 / ln_b * (1.0 + 1.0 / ln_b))
                    - 3.0 * second * slope * (1.0 + 2.0 / ln_b);
                (ln_b - ln_beta, householder(newton, halley, hh3))
            }
            Objective::Price => {
                let b = black(x, s);
                (b - beta, householder((beta - b) / vega(x, s), second, third))
            }
            Objective::LogComplement => {
                let rest = complement(x, s);
                let slope = vega(x, s) / rest;
                let excess = log((bound - beta) / rest);
                let newton = -excess / slope;
                (
                    excess,
                    householder(newton, second + slope, third + slope * (2.0 * slope + 3.0 * second)),
                )
            }
        };
        if excess > 0.0 {
            high = high.min(s);
        } else {
            low = low.max(s);
        }
        let mut next = s + step;
        if !(next >= low && next <= high) {
            next = if high == f64::MAX { 2.0 * s } else { 0.5 * (low + high) };
        }
        let moved = (next - s).abs();
        s = next;
        if moved <= f64::EPSILON * s || low >= high {
            break;
        }
    }
    s
}

/// `2 pi |x| cdf(-|x| / (sqrt 3 s))^3 / sqrt 27`, nearly linear in b for small prices; and its first two derivatives by b.
fn lower_map(x: f64, s: f64) -> (f64, f64, f64) {
    let ax = x.abs();
    let z = ax / (3.0_f64.sqrt() * s);
    let (y, s2) = (z * z, s * s);
    let cdf = normal_cdf(-z);
    let pdf = INV_SQRT_TAU * exp(-0.5 * y);
    let d2 = PI / 6.0 * y / (s2 * s)
        * cdf
        * (8.0 * 3.0_f64.sqrt() * s * ax + (3.0 * s2 * (s2 - 8.0) - 8.0 * x * x) * cdf / pdf)
        * exp(2.0 * y + 0.25 * s2);
    let d = TAU * y * cdf * cdf * exp(y + 0.125 * s2);
    (TAU / 27.0_f64.sqrt() * ax * cdf * cdf * cdf, d, d2)
}

fn inverse_lower_map(x: f64, f: f64) -> f64 {
    let cube = f / (TAU / 27.0_f64.sqrt() * x.abs());
    let p = exp(log(cube) / 3.0);
    (x / (3.0_f64.sqrt() * inverse_normal_cdf(p))).abs()
}

/// `cdf(-s/2)`, nearly linear in b for large prices; and its first two derivatives by b.
fn upper_map(x: f64, s: f64) -> (f64, f64, f64) {
    let w = (x / s) * (x / s);
    (
        normal_cdf(-0.5 * s),
        -0.5 * exp(0.5 * w),
        (0.5 * PI).sqrt() * exp(w + 0.125 * s * s) * w / s,
    )
}

/// Above it a rational cubic is as good as linear.
const CONTROL_MAX: f64 = 2.0 / (f64::EPSILON * f64::EPSILON);
const CONTROL_MIN: f64 = -(1.0 - 1.490_116_119_384_765_6e-8);

/// The rational cubic of R. Delbourgo and J. A. Gregory (1985) through two points with given slopes and control parameter r.
fn rational_cubic(at: f64, x: (f64, f64), y: (f64, f64), d: (f64, f64), r: f64) -> f64 {
    let h = x.1 - x.0;
    if h <= 0.0 {
        return 0.5 * (y.0 + y.1);
    }
    let t = (at - x.0) / h;
    let u = 1.0 - t;
    if r >= CONTROL_MAX {
        return y.1 * t + y.0 * u;
    }
    (y.1 * t * t * t + (r * y.1 - h * d.1) * t * t * u + (r * y.0 + h * d.0) * t * u * u + y.0 * u * u * u)
        / (1.0 + (r - 3.0) * t * u)
}

fn control(numerator: f64, denominator: f64) -> f64 {
    if numerator == 0.0 {
        0.0
    } else if denominator == 0.0 {
        if numerator > 0.0 { CONTROL_MAX } else { CONTROL_MIN }
    } else {
        numerator / denominator
    }
}

fn control_left(x: (f64, f64), y: (f64, f64), d: (f64, f64), second: f64, keep_shape: bool) -> f64 {
    let h = x.1 - x.0;
    let slope = (y.1 - y.0) / h;
    control(0.5 * h * second + (d.1 - d.0), slope - d.0).max(least_control(d, slope, keep_shape))
}

fn control_right(x: (f64, f64), y: (f64, f64), d: (f64, f64), second: f64, keep_shape: bool) -> f64 {
    let h = x.1 - x.0;
    let slope = (y.1 - y.0) / h;
    control(0.5 * h * second + (d.1 - d.0), d.1 - slope).max(least_control(d, slope, keep_shape))
}

/// The least control parameter that keeps the interpolation monotonic and convex where the data are.
fn least_control((left, right): (f64, f64), slope: f64, keep_shape: bool) -> f64 {
    let monotonic = left * slope >= 0.0 && right * slope >= 0.0;
    let curved = (left <= slope && slope <= right) || (left >= slope && slope >= right);
    if !monotonic && !curved {
        return CONTROL_MIN;
    }
    let (change, to_right, to_left) = (right - left, right - slope, slope - left);
    let mut least = CONTROL_MIN;
    if monotonic {
        if slope != 0.0 {
            least = least.max((right + left) / slope);
        } else if keep_shape {
            least = CONTROL_MAX;
        }
    }
    if curved {
        if to_left != 0.0 && to_right != 0.0 {
            least = least.max((change / to_right).abs().max((change / to_left).abs()));
        } else if keep_shape {
            least = CONTROL_MAX;
        }
    } else if monotonic && keep_shape {
        least = CONTROL_MAX;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reasons() {
        let status =
            |price, forward, strike, years, call| implied_volatility(price, forward, strike, 1.0, years, call).1;
        assert_eq!(status(19.0, 100.0, 80.0, 0.5, true), Status::BelowIntrinsic);
        assert_eq!(status(20.0, 100.0, 80.0, 0.5, true), Status::AtIntrinsic);
        assert_eq!(status(-0.1, 100.0, 80.0, 0.5, false), Status::BelowIntrinsic);
        assert_eq!(status(0.0, 100.0, 80.0, 0.5, false), Status::ZeroPrice);
        assert_eq!(status(100.0, 100.0, 80.0, 0.5, true), Status::AtOrAboveUpper);
        assert_eq!(status(80.0, 100.0, 80.0, 0.5, false), Status::AtOrAboveUpper);
        assert_eq!(status(1.0, 100.0, 80.0, 0.0, false), Status::Expired);
        assert_eq!(status(f64::NAN, 100.0, 80.0, 1.0, false), Status::NoQuote);
        assert_eq!(status(1.0, f64::NAN, 80.0, 1.0, false), Status::NoForward);
        for (code, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(status.code()), code);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// s from b(s), over all zones: as close as the price, rounded to a double, allows.
        #[test]
        fn inverts_the_price(x in prop_oneof![-6.0..0.0, -0.1..0.0, -1e-6..0.0, Just(0.0)], log_s in -8.0..1.9) {
            let s = libm::exp(log_s);
            let beta = black(x, s);
            prop_assume!(beta > 1e-300 && exp(0.5 * x) - beta > 1e-13);
            let amplified = 1.0 + beta / (s * vega(x, s));
            let found = total_deviation(beta, x);
            prop_assert!((found / s - 1.0).abs() <= 8.0 * f64::EPSILON * amplified, "{found} {s} {amplified}");
        }
    }
}
