//! Sine, cosine and the angle of a point, for kernels: like [`super::fused`] with fused multiplication and
//! without branches, and with the same bits on every CPU.
//!
//! | function | error against exact values |
//! | --- | --- |
//! | [`sin_cos`] | below 1.5 * 2^-53, for arguments up to 10^6 |
//! | [`angle`] | below 4 * 2^-53 |
//!
//! The polynomials are those of fdlibm (`k_sin.c`, `k_cos.c`, `s_atan.c`). The tests measure the errors.

#![expect(
    clippy::excessive_precision,
    reason = "constants are given as their sources print them"
)]

use super::fused::horner;
use crate::simd::F64Vector;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI};

/// `(sin x - x) / x^3` in powers of x^2, for |x| <= pi / 4.
const SIN: [f64; 6] = [
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
];

/// `(cos x - 1 + x^2 / 2) / x^4` in powers of x^2, for |x| <= pi / 4.
const COS: [f64; 6] = [
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
];

/// `(x - atan x) / x^3` in powers of x^2, for |x| <= 7 / 16.
const ATAN: [f64; 11] = [
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
];

/// The difference of pi / 2 and its nearest double.
const FRAC_PI_2_LOW: f64 = 6.123233995736766e-17;
/// `tan(pi / 8)`, above which an angle is counted from pi / 4.
const TAN_PI_8: f64 = 0.414_213_562_373_095;
/// The least divisor: 0 / 0 counts as 0.
const LEAST: f64 = 1e-300;

/// The sine and cosine of each lane.
#[inline(always)]
pub fn sin_cos<V: F64Vector>(x: V) -> (V, V) {
    let turns = (x * x.splat(FRAC_2_PI)).round();
    // Fused, the first product is subtracted exactly.
    let r = (-turns).mul_add(x.splat(FRAC_PI_2), x);
    let r = (-turns).mul_add(x.splat(FRAC_PI_2_LOW), r);
    let w = r * r;
    let sin = (horner(&SIN, w) * w).mul_add(r, r);
    let cos = (horner(&COS, w) * w).mul_add(w, w.mul_add(x.splat(-0.5), x.splat(1.0)));
    // The quarter turn, from -2 to 2.
    let quarter = (turns * x.splat(0.25)).round().mul_add(x.splat(-4.0), turns);
    let size = quarter.abs();
    let (half, three_halves) = (x.splat(0.5), x.splat(1.5));
    let is_odd = |yes: V, no: V| size.if_below(half, no, size.if_below(three_halves, yes, no));
    let (s, c) = (is_odd(cos, sin), is_odd(sin, cos));
    let s = quarter.if_below(x.splat(-0.5), -s, three_halves.if_below(quarter, -s, s));
    let c = half.if_below(quarter, -c, quarter.if_below(x.splat(-1.5), -c, c));
    (s, c)
}

/// The angle of the point (x, y) in each lane, from -pi to pi; 0 at the origin.
#[inline(always)]
pub fn angle<V: F64Vector>(y: V, x: V) -> V {
    let (height, width) = (y.abs(), x.abs());
    let (low, high) = (height.at_most(width), height.at_least(width));
    let bound = high * x.splat(TAN_PI_8);
    let over = bound.if_below(low, low - high, low);
    let under = bound.if_below(low, low + high, high).at_least(x.splat(LEAST));
    let t = over / under;
    let w = t * t;
    let r = (-(horner(&ATAN, w) * w)).mul_add(t, t);
    let r = bound.if_below(low, x.splat(FRAC_PI_4) + r, r);
    let r = width.if_below(height, x.splat(FRAC_PI_2) - r, r);
    let zero = x.splat(0.0);
    let r = x.if_below(zero, x.splat(PI) - r, r);
    y.if_below(zero, -r, r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{InstructionSet, VectorKernel};
    use crate::random::Random;

    const N: usize = 40_000;

    fn arguments() -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(&[1]);
        let mut number = |i: usize| {
            let size = [1.0, 1e-9, 30.0, 1e6][i % 4];
            (2.0 * random.uniform() - 1.0) * size
        };
        (0..N).map(|i| (number(i), number(i / 4))).unzip()
    }

    struct All<'a>(&'a [f64], &'a [f64]);

    impl VectorKernel for All<'_> {
        type Output = Vec<[u64; 3]>;

        #[inline(always)]
        fn run<V: F64Vector>(self, zero: V) -> Self::Output {
            let mut out = Vec::new();
            for (y, x) in self.0.chunks_exact(V::WIDTH).zip(self.1.chunks_exact(V::WIDTH)) {
                let (y, x) = (zero.load(y), zero.load(x));
                let (sin, cos) = sin_cos(y);
                let mut lanes = [[0.0; 8]; 3];
                for (lanes, vector) in lanes.iter_mut().zip([sin, cos, angle(y, x)]) {
                    vector.store(lanes);
                }
                out.extend((0..V::WIDTH).map(|i| lanes.map(|lanes| lanes[i].to_bits())));
            }
            out
        }
    }

    #[test]
    fn errors_are_those_of_the_table_and_bits_those_of_single_numbers() {
        let (y, x) = arguments();
        let (mut of_turns, mut of_angles) = (0.0_f64, 0.0_f64);
        let single: Vec<[u64; 3]> = y
            .iter()
            .zip(&x)
            .map(|(&y, &x)| {
                let ((sin, cos), found) = (sin_cos(y), angle(y, x));
                of_turns = of_turns.max((sin - libm::sin(y)).abs()).max((cos - libm::cos(y)).abs());
                of_angles = of_angles.max((found - libm::atan2(y, x)).abs());
                [sin, cos, found].map(f64::to_bits)
            })
            .collect();
        let errors = [of_turns, of_angles].map(|error| error * (1_u64 << 53) as f64);
        // libm's own error included.
        assert!(errors[0] <= 2.0 && errors[1] <= 5.0, "{errors:?}");
        for instructions in InstructionSet::available() {
            assert!(instructions.run_on_vectors(All(&y, &x)) == single, "{instructions:?}");
        }
    }

    #[test]
    fn axes_and_quarters() {
        assert_eq!((angle(0.0, 0.0), angle(0.0, 2.0), angle(0.0, -2.0)), (0.0, 0.0, PI));
        assert_eq!((angle(3.0, 0.0), angle(-3.0, 0.0)), (FRAC_PI_2, -FRAC_PI_2));
        assert_eq!(angle(1.0, 1.0), FRAC_PI_4);
        assert_eq!(sin_cos(0.0), (0.0, 1.0));
        let (sin, cos) = sin_cos(PI);
        assert!(sin.abs() < 2e-16 && cos == -1.0);
    }
}
