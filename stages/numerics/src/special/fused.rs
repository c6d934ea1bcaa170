//! `exp`, `log` and Mills' ratio for kernels: with fused multiplication and without branches or calls, for
//! single numbers in loops that the compiler vectorises, and for vectors ([`F64Vector`]).
//!
//! A fused operation is rounded once on every instruction set, so the results are the same bits on every CPU.
//! Outside kernels (see [`crate::dispatch`]) the baseline of x86-64 lacks the instruction, and each operation
//! costs a function call; such code should use [`super`].
//!
//! | function | error against exact values |
//! | --- | --- |
//! | [`exp`], [`exp_clamped`] | below 1 ulp, from -708 to 708 |
//! | [`log`], [`log_ratio`], [`log_normal`], [`log_1p`] | below 2 ulp |
//! | [`mills`] and its like | below 8 ulp, for every z >= 0 |
//! | [`gauss`] | below 1.5 ulp |
//!
//! The tests measure these errors. The polynomials were fitted with 60 digits, weighted for relative error.

#![expect(
    clippy::excessive_precision,
    reason = "constants are given with the digits they were computed with"
)]

use super::constants::{INV_SQRT_TAU, LN2_HIGH, LN2_LOW};
use crate::simd::{F64Vector, ROUND};

/// The argument below which the exponential is 0.
const LEAST: f64 = -708.0;
/// The argument above which the exponential is infinite.
const GREATEST: f64 = 709.0;

/// `(e^r - 1 - r) / r^2` for |r| <= ln 2 / 2 (relative error of e^r 4e-18).
const EXP: [f64; 10] = [
    0.50000000000000127385,
    0.16666666666666482243,
    0.041666666666516211407,
    0.0083333333334515333497,
    0.0013888888946711402287,
    0.00019841269596956970804,
    0.000024801490309377566038,
    2.7557507376074574294e-6,
    2.7631139590668130424e-7,
    2.5024634439795133403e-8,
];

/// `(2 atanh s - 2 s) / s^3` in powers of s^2, for |s| <= 0.2 (relative error of the logarithm 2e-19).
const LOG: [f64; 8] = [
    0.66666666666666594858,
    0.40000000000057236512,
    0.28571428555757972805,
    0.22222224300066853354,
    0.18181665829665222464,
    0.15391109629213740158,
    0.13173684678423564706,
    0.13842226437855371157,
];

/// Mills' ratio as a quotient of polynomials, for every z >= 0 (relative error 1.1e-17). All coefficients are
/// positive, so there is no cancellation.
const MILLS_OVER: [f64; 11] = [
    1514518.5717318701619,
    2597341.9562901342473,
    2200642.577261471887,
    1193719.489423420393,
    455379.81489535105662,
    127181.80020927493633,
    26320.05532793629613,
    3993.576478803219303,
    427.28090400657262438,
    29.365253148138535593,
    1.0,
];
const MILLS_UNDER: [f64; 12] = [
    1208410.9854340661444,
    3036551.514431828577,
    3574470.8149729628448,
    2607580.4924270346431,
    1313207.8160406963957,
    480855.30752269113224,
    131116.6462027650853,
    26745.336231617003302,
    4022.9417319543787511,
    428.28090400655854369,
    29.365253148138558254,
    1.0,
];

/// The fused multiply-add `a b + c`, rounded once.
#[inline(always)]
pub fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// A polynomial with coefficients from degree 0 up, by Horner's scheme.
#[inline(always)]
pub fn horner<V: F64Vector, const N: usize>(c: &[f64; N], x: V) -> V {
    let mut sum = x.splat(c[N - 1]);
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, x.splat(c[i]));
    }
    sum
}

/// The reduction of Cody and Waite: `(r, k + ROUND)` with `x = k ln 2 + r` and |r| <= ln 2 / 2.
#[inline(always)]
fn reduce<V: F64Vector>(x: V) -> (V, V) {
    let round = x.splat(ROUND);
    let shifted = x.mul_add(x.splat(std::f64::consts::LOG2_E), round);
    let k = shifted - round;
    let r = (-k).mul_add(x.splat(LN2_HIGH), x);
    ((-k).mul_add(x.splat(LN2_LOW), r), shifted)
}

/// The exponential `2^k e^r` from the output of [`reduce`].
#[inline(always)]
fn expand<V: F64Vector>(r: V, shifted: V) -> V {
    (horner(&EXP, r).mul_add(r * r, r) + r.splat(1.0)) * shifted.power_of_two()
}

/// `e^(x + low)`, for `low` small beside the spacing of doubles near `x`; 0 for x below -708 and infinity
/// above 709.
#[inline(always)]
fn exp_of_sum(x: f64, low: f64) -> f64 {
    let bounded = if x < LEAST { LEAST } else { x };
    let bounded = if bounded > GREATEST { GREATEST } else { bounded };
    let (r, shifted) = reduce(bounded);
    let y = expand(r + low, shifted);
    let y = if x < LEAST { 0.0 } else { y };
    if x > GREATEST { f64::INFINITY } else { y }
}

/// The exponential e^x; 0 below -708 and infinity above 709.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// The exponential e^x for -708 <= x <= 708; beyond, its value at the bound, and for NaN its value at -708.
#[inline(always)]
pub fn exp_clamped<V: F64Vector>(x: V) -> V {
    let x = x.at_least(x.splat(-708.0)).at_most(x.splat(708.0));
    let (r, shifted) = reduce(x);
    expand(r, shifted)
}

/// `e^(-z^2/2)`, with compensation for the square's rounding error, which the exponential would magnify. 0
/// where it would be below 3e-308.
#[inline(always)]
pub fn gauss(z: f64) -> f64 {
    let half = 0.5 * z;
    let square = half * z;
    let error = fma(half, z, -square);
    exp_of_sum(-square, -error)
}

/// `k ln 2 + ln(a / b)`, for a / b between 2/3 and 3/2.
#[inline(always)]
fn log_of_parts<V: F64Vector>(k: V, a: V, b: V) -> V {
    log_of_quotient(k, (a - b) / (a + b))
}

/// `k ln 2 + 2 atanh s`, for |s| up to 0.2.
#[inline(always)]
fn log_of_quotient<V: F64Vector>(k: V, s: V) -> V {
    let w = s * s;
    let tail = (horner(&LOG, w) * w).mul_add(s, k * k.splat(LN2_LOW));
    k.mul_add(k.splat(LN2_HIGH), s.mul_add(s.splat(2.0), tail))
}

/// `ln(a / b)` of positive normal numbers. The relative error is also small if they are close, since their
/// difference is then exact.
#[inline(always)]
pub fn log_ratio(a: f64, b: f64) -> f64 {
    // The power of two that brings a to between 2/3 and 3/2 of b, found from the difference of their bit
    // patterns, which is nearly the difference of their logarithms.
    const HALF: u64 = 1 << 51;
    const SIGN: u64 = 1 << 63;
    let difference = a.to_bits().wrapping_sub(b.to_bits()).wrapping_add(SIGN + HALF);
    let k = f64::from_bits((difference >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 2048.0);
    let a = f64::from_bits(
        a.to_bits()
            .wrapping_sub((difference & 0xfff0_0000_0000_0000).wrapping_sub(SIGN)),
    );
    log_of_parts(k, a, b)
}

/// The natural logarithm of a positive normal number.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    log_ratio(x, 1.0)
}

/// The natural logarithm of each lane, for positive normal numbers.
#[inline(always)]
pub fn log_normal<V: F64Vector>(x: V) -> V {
    let (k, m) = x.split();
    log_of_parts(k, m, x.splat(1.0))
}

/// The logarithm `ln(1 + x)` of each lane, for x above -1 and 1 + x normal; the relative error is also small
/// where x is.
#[inline(always)]
pub fn log_1p<V: F64Vector>(x: V) -> V {
    let one = x.splat(1.0);
    let (k, m) = (one + x).split();
    // Where the power of two is 1, the distance from 1 is known exactly: it is x.
    let near = k.abs().if_below(x.splat(0.5), x, m - one);
    let s = near / (near + x.splat(2.0));
    log_of_quotient(k, s)
}

/// The largest argument of Mills' ratio without overflow in between; above it (and already below it, to the
/// last digit) the ratio is `1/z`.
const MILLS_FAR: f64 = 1e12;

/// The numerator and denominator of Mills' ratio of the normal distribution, `(1 - cdf(z)) / pdf(z)`, for 0
/// <= z <= 1e12.
#[inline(always)]
fn mills_parts<V: F64Vector>(z: V) -> (V, V) {
    (horner(&MILLS_OVER, z), horner(&MILLS_UNDER, z))
}

/// Mills' ratio for z >= 0.
#[inline(always)]
pub fn mills(z: f64) -> f64 {
    let z = if z > MILLS_FAR { MILLS_FAR } else { z };
    let (over, under) = mills_parts(z);
    over / under
}

/// Mills' ratios of two arguments >= 0, with a single division.
#[inline(always)]
pub fn mills_pair(a: f64, b: f64) -> (f64, f64) {
    let a = if a > MILLS_FAR { MILLS_FAR } else { a };
    let b = if b > MILLS_FAR { MILLS_FAR } else { b };
    let ((over_a, under_a), (over_b, under_b)) = (mills_parts(a), mills_parts(b));
    let inverse = 1.0 / (under_a * under_b);
    (over_a * (under_b * inverse), over_b * (under_a * inverse))
}

/// Mills' ratios of three arguments from 0 to 1e8 (larger ones count as 1e8), with a single division.
#[inline(always)]
pub fn mills_of_three(z: [f64; 3]) -> [f64; 3] {
    let parts = z.map(|z| mills_parts(if z > 1e8 { 1e8 } else { z }));
    let [(over_a, a), (over_b, b), (over_c, c)] = parts;
    let inverse = 1.0 / (a * b * c);
    [
        over_a * (b * c * inverse),
        over_b * (a * c * inverse),
        over_c * (a * b * inverse),
    ]
}

/// `((pdf(a), cdf(a)), (pdf(b), cdf(b)), 1/c)` of the standard normal distribution, with one division instead
/// of three.
#[inline(always)]
pub fn normals<V: F64Vector>(a: V, b: V, c: V) -> ((V, V), (V, V), V) {
    let far = c.splat(37.0);
    let (za, zb) = (a.abs().at_most(far), b.abs().at_most(far));
    let ((oa, ua), (ob, ub)) = (mills_parts(za), mills_parts(zb));
    let ab = ua * ub;
    let inverse = c.splat(1.0) / (ab * c);
    let by_ab = inverse * c;
    let (fa, fb) = (density(za), density(zb));
    let (pa, pb) = (fa * oa * (ub * by_ab), fb * ob * (ua * by_ab));
    let (zero, one) = (c.splat(0.0), c.splat(1.0));
    let (ca, cb) = (a.if_below(zero, pa, one - pa), b.if_below(zero, pb, one - pb));
    ((fa, ca), (fb, cb), inverse * ab)
}

/// The density of the standard normal distribution, as accurate as the rounding of the argument permits.
#[inline(always)]
fn density<V: F64Vector>(z: V) -> V {
    exp_clamped(z.splat(-0.5) * (z * z)) * z.splat(INV_SQRT_TAU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::InstructionSet;
    use crate::double_double::Dd;
    use crate::random::Random;
    use crate::simd::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{Avx2, Avx512};

    /// The distance in units of the last place of `exact`.
    fn ulps(value: f64, exact: Dd) -> f64 {
        let place = f64::from_bits(exact.0.abs().to_bits() + 1) - exact.0.abs();
        (((Dd::from(value) - exact) / place).f64()).abs()
    }

    #[test]
    fn errors_are_those_of_the_table() {
        let mut random = Random::new(&[1]);
        let [
            mut exp_error,
            mut log_error,
            mut ratio_error,
            mut mills_error,
            mut gauss_error,
        ] = [0.0_f64; 5];
        for i in 0..8_000 {
            let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
            let x = if i % 2 == 0 {
                uniform(-708.0, 709.0)
            } else {
                uniform(-1.0, 1.0)
            };
            exp_error = exp_error.max(ulps(exp(x), Dd::from(x).exp()));
            let clamped = x.min(708.0);
            exp_error = exp_error.max(ulps(exp_clamped(clamped), Dd::from(clamped).exp()));
            let y = if i % 2 == 0 { exp(x) } else { uniform(0.5, 2.0) };
            log_error = log_error.max(ulps(log(y), Dd::from(y).ln()));
            log_error = log_error.max(ulps(log_normal(y), Dd::from(y).ln()));
            let x = y * uniform(-1e-3, 1.0).min(1.0 / y);
            if i % 2 == 1 {
                log_error = log_error.max((log_1p(x) / libm::log1p(x) - 1.0).abs() / f64::EPSILON);
            }
            let (a, b) = (uniform(50.0, 200.0), uniform(50.0, 200.0));
            let b = if i % 3 == 0 {
                a * (1.0 + 1e-6 * uniform(-1.0, 1.0))
            } else {
                b
            };
            ratio_error = ratio_error.max(ulps(log_ratio(a, b), (Dd::from(a) / b).ln()));
            let z = if i % 2 == 0 {
                uniform(0.0, 6.0)
            } else {
                exp(uniform(-20.0, 7.0))
            };
            let exact = Dd::from(z).mills();
            mills_error = mills_error.max(ulps(mills(z), exact));
            let (pair, three) = (mills_pair(z, 1.0), mills_of_three([1.0, z, 3.0]));
            mills_error = mills_error.max(ulps(pair.0, exact)).max(ulps(three[1], exact));
            let z = uniform(0.0, 37.0);
            gauss_error = gauss_error.max(ulps(gauss(z), (Dd::from(z) * z * -0.5).exp()));
        }
        let errors = [exp_error, log_error, ratio_error, mills_error, gauss_error];
        let limits = [1.0, 2.0, 2.0, 8.0, 1.5];
        assert!(
            errors.iter().zip(limits).all(|(error, limit)| *error <= limit),
            "{errors:?}"
        );
    }

    #[test]
    fn special_values() {
        assert_eq!((exp(0.0), exp(-709.0), exp(f64::NEG_INFINITY)), (1.0, 0.0, 0.0));
        assert_eq!((exp(710.0), exp(f64::INFINITY)), (f64::INFINITY, f64::INFINITY));
        assert!(exp(f64::NAN).is_nan() && gauss(f64::NAN).is_nan() && mills(f64::NAN).is_nan());
        assert_eq!((gauss(0.0), gauss(40.0), gauss(f64::NEG_INFINITY)), (1.0, 0.0, 0.0));
        assert_eq!((log(1.0), log_ratio(7.0, 7.0)), (0.0, 0.0));
        assert!((mills(1e11) * 1e11 - 1.0).abs() < 1e-15);
    }

    /// Checks that each lane has the same bits as the single-number functions.
    fn agrees_with_single_numbers<V: F64Vector>(like: V) {
        let mut random = Random::new(&[2]);
        for _ in 0..2_000 {
            let x: [f64; 8] = std::array::from_fn(|_| 1_500.0 * random.uniform() - 750.0);
            let small = x.map(|x| 0.05 * x);
            let (x, small) = (&x[..V::WIDTH], &small[..V::WIDTH]);
            let bits = |vector: V| {
                let mut out = [0.0; 8];
                vector.store(&mut out);
                out[..V::WIDTH].iter().map(|x| x.to_bits()).collect::<Vec<u64>>()
            };
            let each = |values: &[f64], f: &dyn Fn(f64) -> f64| {
                values.iter().map(|x| f(*x).to_bits()).collect::<Vec<u64>>()
            };
            let vector = like.load(x);
            assert_eq!(bits(exp_clamped(vector)), each(x, &|x| exp_clamped(x)));
            assert_eq!(bits(log_normal(vector.abs())), each(x, &|x| log_normal(x.abs())));
            assert_eq!(bits(log_1p(vector.abs())), each(x, &|x| log_1p(x.abs())));
            let ((pdf, cdf), _, inverse) = normals(like.load(small), like.splat(0.7), vector);
            assert_eq!(bits(pdf), each(small, &|x| normals(x, 0.7, 1.0).0.0));
            assert_eq!(bits(cdf), each_pair(small, x, |x, c| normals(x, 0.7, c).0.1));
            assert_eq!(bits(inverse), each_pair(small, x, |x, c| normals(x, 0.7, c).2));
            assert_eq!(bits(vector.abs().sqrt()), each(x, &|x| x.abs().sqrt()));
        }
    }

    fn each_pair(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<u64> {
        a.iter().zip(b).map(|(a, b)| f(*a, *b).to_bits()).collect()
    }

    #[test]
    fn every_vector_has_the_bits_of_single_numbers() {
        for instructions in InstructionSet::available() {
            match instructions {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512(token) => agrees_with_single_numbers(Avx512::zero(token)),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2(token) => agrees_with_single_numbers(Avx2::zero(token)),
                InstructionSet::Portable => agrees_with_single_numbers(Portable::default()),
            }
        }
    }
}
