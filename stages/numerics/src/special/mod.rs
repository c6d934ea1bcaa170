//! `exp`, `log` and the normal distribution, with the same bits on every CPU, and without branches or calls
//! so that loops over them are vectorised.
//!
//! Without fused multiplication, for code outside kernels, where the baseline of x86-64 would make each one a
//! function call. [`fused`] is for kernels.
//!
//! | function | error against exact values |
//! | --- | --- |
//! | [`exp`] | below 0.6 ulp |
//! | [`log`] | below 1 ulp |
//! | [`normal_cdf`] | a few ulp, relative, down to the smallest normal number |
//!
//! The tests measure these errors.

// The polynomials are written with all digits of their sources.
#![expect(
    clippy::excessive_precision,
    reason = "constants are given as their sources print them"
)]

mod constants;
pub mod fused;
pub mod trigonometric;

pub use constants::INV_SQRT_TAU;

use crate::simd::{F64Vector as _, ROUND};
use constants::{LN2_HIGH, LN2_LOW};

/// The coefficients `1 / n!` for n from 2 to 13.
const EXP: [f64; 12] = [
    0.5,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// Evaluates a polynomial with coefficients from degree 0 up, as four polynomials in x^4 of a quarter of the
/// degree: Horner's scheme alone would be a single chain of dependent operations.
#[inline(always)]
fn polynomial<const N: usize>(c: &[f64; N], x: f64) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let mut quarter = [0.0; 4];
    for i in (0..N.div_ceil(4)).rev() {
        for (j, sum) in quarter.iter_mut().enumerate() {
            let next = if 4 * i + j < N { c[4 * i + j] } else { 0.0 };
            *sum = *sum * x4 + next;
        }
    }
    (quarter[0] + x * quarter[1]) + x2 * (quarter[2] + x * quarter[3])
}

/// `e^(x + low)`, for `low` small beside the spacing of doubles near `x`: reduction of Cody and Waite, then
/// the Taylor series to degree 13 (truncation error below 4e-18 for |r| <= ln 2 / 2).
#[inline(always)]
fn exp_of_sum(x: f64, low: f64) -> f64 {
    let x = if x < -760.0 { -760.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let high = x - k * LN2_HIGH;
    let rest = k * LN2_LOW - low;
    let r = high - rest;
    let lost = (high - r) - rest;
    let p = polynomial(&EXP, r);
    let y = 1.0 + (r + (lost + r * r * p));
    // Two factors, since 2^k itself may be out of range when the result is not.
    let half = (k * 0.5 + ROUND) - ROUND;
    y * (half + ROUND).power_of_two() * (k - half + ROUND).power_of_two()
}

/// The exponential e^x.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// The natural logarithm of 2^k (1 + f), for 1 + f between sqrt(1/2) and sqrt(2) (fdlibm `e_log.c`).
#[inline(always)]
fn log_of_parts(k: f64, f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w
        * (3.999_999_999_940_941_908e-1
            + w * (2.222_219_843_214_978_396e-1 + w * 1.531_383_769_920_937_332e-1));
    let odd = z
        * (6.666_666_666_666_735_130e-1
            + w * (2.857_142_874_366_239_149e-1
                + w * (1.818_357_216_161_805_012e-1 + w * 1.479_819_860_511_658_591e-1)));
    let half_square = 0.5 * f * f;
    k * LN2_HIGH - ((half_square - (s * (half_square + (even + odd)) + k * LN2_LOW)) - f)
}

/// The natural logarithm; minus infinity at 0, NaN for negative numbers.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * TWO_54 } else { x };
    let (k, m) = scaled.split();
    let k = if tiny { k - 54.0 } else { k };
    let y = log_of_parts(k, m - 1.0);
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if (0.0..f64::INFINITY).contains(&x) {
        y
    } else if x > 0.0 {
        x
    } else {
        f64::NAN
    }
}

/// `ln(a / b)` of positive numbers. The relative error is also small if they are close: their difference is
/// then exact, whereas the rounding of the quotient would drown a small logarithm.
#[inline(always)]
pub fn log_ratio(a: f64, b: f64) -> f64 {
    let inverse = 1.0 / b;
    let (k, m) = (a * inverse).split();
    let f = if k == 0.0 { (a - b) * inverse } else { m - 1.0 };
    log_of_parts(k, f)
}

/// `e^(-z^2/2)`, with compensation for the square's rounding error (Dekker), which the exponential would
/// magnify. 0 for |z| beyond 100.
#[inline(always)]
pub fn gauss(z: f64) -> f64 {
    let z = z.abs();
    let z = if z > 100.0 { 100.0 } else { z };
    let square = z * z;
    let t = 134_217_729.0 * z;
    let high = t - (t - z);
    let low = z - high;
    let error = ((high * high - square) + 2.0 * high * low) + low * low;
    exp_of_sum(-0.5 * square, -0.5 * error)
}

/// The coefficients of `(z + 3/4) mills(z)` in powers of `q = (z - 4) / (z + 4)`, from degree 0 up: the
/// Chebyshev series on -1 <= q < 1, computed with 40 digits and truncated (relative error 6e-17). The mapping
/// is that of M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0
/// <= x < infinity", Math. Comp. 36 (1981).
const MILLS: [f64; 25] = [
    1.1240988188394132,
    -0.1356187338302935,
    -0.042851259317988694,
    0.11662643488475159,
    -0.10004965734501028,
    0.0502807607386349,
    -0.012857170982576308,
    -0.0011162681208241358,
    0.0018591491201908968,
    -0.00020815446334206014,
    -0.00023816826831544614,
    5.0364574248948036e-05,
    3.6855682432707714e-05,
    -8.086430392514993e-06,
    -6.967903446074126e-06,
    8.903835684211536e-07,
    1.4497459850530597e-06,
    3.00149868603602e-08,
    -2.9269566704582763e-07,
    -5.242247751496024e-08,
    5.053405818763139e-08,
    1.4989339397862507e-08,
    -6.330031886289986e-09,
    -1.811513005651731e-09,
    4.142682925585722e-10,
];

/// Mills' ratio of the normal distribution, `(1 - cdf(z)) / pdf(z)`, for z >= 0; equals
/// `sqrt(pi/2) erfcx(z / sqrt 2)`.
#[inline(always)]
pub fn mills(z: f64) -> f64 {
    let q = (z - 4.0) / (z + 4.0);
    polynomial(&MILLS, q) / (z + 0.75)
}

/// The standard normal distribution function, with a small relative error also in the left tail.
#[inline(always)]
pub fn normal_cdf(x: f64) -> f64 {
    let z = x.abs();
    let z = if z > 100.0 { 100.0 } else { z };
    let tail = gauss(z) * INV_SQRT_TAU * mills(z);
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The distance in units of the last place of `b`.
    fn ulps(a: f64, b: f64) -> f64 {
        let place = f64::from_bits(b.abs().to_bits() + 1) - b.abs();
        (a - b).abs() / place
    }

    #[test]
    fn exp_and_log_are_within_an_ulp_of_libm() {
        let mut random = Random::new(&[1]);
        let (mut worst_exp, mut worst_log, mut worst_one) = (0.0_f64, 0.0_f64, 0.0_f64);
        for _ in 0..400_000 {
            let x = random.uniform() * 1400.0 - 700.0;
            worst_exp = worst_exp.max(ulps(exp(x), libm::exp(x)));
            let y = libm::exp(x);
            worst_log = worst_log.max(ulps(log(y), libm::log(y)));
            let z = 0.5 + random.uniform();
            worst_one = worst_one.max(ulps(log(z), libm::log(z)));
        }
        assert!(
            worst_exp <= 1.0 && worst_log <= 1.0 && worst_one <= 1.0,
            "{worst_exp} {worst_log} {worst_one}"
        );
    }

    #[test]
    fn special_values() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert!(exp(f64::NAN).is_nan());
        assert!(exp(-744.0) > 0.0);
        assert_eq!(log(1.0), 0.0);
        assert_eq!(log(0.0), f64::NEG_INFINITY);
        assert_eq!(log(f64::INFINITY), f64::INFINITY);
        assert!(log(-1.0).is_nan() && log(f64::NAN).is_nan());
        assert!(ulps(log(5e-324), libm::log(5e-324)) <= 1.0);
        assert_eq!(normal_cdf(0.0), 0.5);
        assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
        assert!(normal_cdf(f64::NAN).is_nan());
    }

    /// Compares with values computed by mpmath with 40 digits.
    #[test]
    fn tails_keep_their_relative_accuracy() {
        for (x, exact) in NORMAL_CDF {
            let ulps = ulps(normal_cdf(x), exact);
            assert!(ulps <= 4.0, "{x}: {ulps} ulp");
        }
    }

    #[test]
    fn close_numbers_have_accurate_log_ratios() {
        let (a, b) = (100.000_000_1, 100.0);
        let exact = libm::log1p((a - b) / b);
        assert!(ulps(log_ratio(a, b), exact) <= 2.0);
        assert!(ulps(log_ratio(250.0, 100.0), libm::log(2.5)) <= 2.0);
    }

    const NORMAL_CDF: [(f64, f64); 14] = [
        (-37.5, 4.605353009581955e-308),
        (-30.1, 2.4226672179857586e-199),
        (-25.3, 1.5971151302422e-141),
        (-20.7, 1.7318518790197378e-95),
        (-15.123, 5.710915776538349e-52),
        (-10.01, 6.887627051422219e-24),
        (-7.7, 6.803311540773961e-15),
        (-5.5, 1.8989562465887718e-08),
        (-3.3, 0.0004834241423837775),
        (-2.2, 0.013903447513498604),
        (-1.1, 0.13566606094638264),
        (-0.3, 0.3820885778110474),
        (0.7, 0.758036347776927),
        (2.5, 0.9937903346742238),
    ];
}
