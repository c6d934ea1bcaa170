//! Complex numbers in vectors, as far as characteristic functions need them, with the same bits on every CPU.

use stages_numerics::simd::F64Vector;
use stages_numerics::special::fused::{exp_clamped, log_1p};
use stages_numerics::special::trigonometric::{angle, sin_cos};
use std::ops::{Add, Mul, Neg, Sub};

/// A vector of complex numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex<V> {
    pub re: V,
    pub im: V,
}

/// The least modulus of a root, which keeps 0 / 0 out.
const LEAST: f64 = 1e-150;

impl<V: F64Vector> Complex<V> {
    #[inline(always)]
    pub(crate) fn new(re: V, im: V) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    pub(crate) fn one(like: V) -> Self {
        Self::new(like.splat(1.0), like.splat(0.0))
    }

    #[inline(always)]
    pub(crate) fn scale(self, by: V) -> Self {
        Self::new(self.re * by, self.im * by)
    }

    /// The square of the absolute value.
    #[inline(always)]
    pub(crate) fn norm(self) -> V {
        self.re.mul_add(self.re, self.im * self.im)
    }

    #[inline(always)]
    pub(crate) fn inverse(self) -> Self {
        let over = self.re.splat(1.0) / self.norm();
        Self::new(self.re * over, -(self.im * over))
    }

    /// The exponential, without overflow: e^708 is the greatest modulus.
    #[inline(always)]
    pub(crate) fn exp(self) -> Self {
        let size = exp_clamped(self.re);
        let (sin, cos) = sin_cos(self.im);
        Self::new(size * cos, size * sin)
    }

    /// The square root with nonnegative real part.
    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        let like = self.re;
        let (zero, half) = (like.splat(0.0), like.splat(0.5));
        let size = self.norm().sqrt();
        let long = (half * (size + self.re.abs())).sqrt().at_least(like.splat(LEAST));
        let short = half * self.im / long;
        let signed = self.im.if_below(zero, -long, long);
        Self::new(
            self.re.if_below(zero, short.abs(), long),
            self.re.if_below(zero, signed, short),
        )
    }

    /// The principal value of ln(1 + z), also exact for small z.
    #[inline(always)]
    pub(crate) fn ln_1p(self) -> Self {
        let like = self.re;
        let excess = self.re.mul_add(like.splat(2.0) + self.re, self.im * self.im);
        Self::new(
            like.splat(0.5) * log_1p(excess),
            angle(self.im, like.splat(1.0) + self.re),
        )
    }
}

impl<V: F64Vector> Add for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl<V: F64Vector> Sub for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl<V: F64Vector> Mul for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re.mul_add(other.re, -(self.im * other.im)),
            self.re.mul_add(other.im, self.im * other.re),
        )
    }
}

impl<V: F64Vector> Neg for Complex<V> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_their_definitions() {
        let size = |z: Complex<f64>| z.norm().sqrt();
        for (re, im) in [(0.3, -2.0), (-1.5, 0.7), (-2.0, -0.1), (1e-9, 2e-9), (3.0, 0.0)] {
            let z = Complex::new(re, im);
            let root = z.sqrt();
            assert!(size(root * root - z) <= 1e-14 * size(z) && root.re >= 0.0, "{z:?}");
            let back = z.ln_1p().exp() - Complex::one(0.0);
            assert!(size(back - z) < 1e-14, "{z:?}");
            assert!(size(z * z.inverse() - Complex::one(0.0)) <= 1e-15);
        }
        let tiny = Complex::new(1e-12, 1e-12).ln_1p();
        assert!((tiny.re - 1e-12).abs() < 1e-23 && (tiny.im - 1e-12).abs() < 1e-23);
        assert_eq!(Complex::new(0.0, 0.0).sqrt().im, 0.0);
    }
}
