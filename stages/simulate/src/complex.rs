//! Complex numbers over `libm`, as far as characteristic functions need them.
//!
//! `num-complex` uses the `exp` of the standard library, which differs between platforms, and divides by
//! another formula, so its prices would not be bit for bit the same.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex {
    pub re: f64,
    pub im: f64,
}

impl Complex {
    pub(crate) const ONE: Self = Self::new(1.0, 0.0);

    pub(crate) const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(crate) fn scale(self, by: f64) -> Self {
        Self::new(self.re * by, self.im * by)
    }

    /// The square of the absolute value.
    pub(crate) fn norm(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    pub(crate) fn exp(self) -> Self {
        let size = libm::exp(self.re);
        let (sin, cos) = libm::sincos(self.im);
        Self::new(size * cos, size * sin)
    }

    /// The square root with nonnegative real part.
    pub(crate) fn sqrt(self) -> Self {
        let size = libm::hypot(self.re, self.im);
        if size == 0.0 {
            return Self::new(0.0, 0.0);
        }
        let half = (0.5 * (size + self.re.abs())).sqrt();
        if self.re >= 0.0 {
            Self::new(half, self.im / (2.0 * half))
        } else {
            Self::new(self.im.abs() / (2.0 * half), if self.im < 0.0 { -half } else { half })
        }
    }

    /// The principal value of ln(1 + z), also exact for small z.
    pub(crate) fn ln_1p(self) -> Self {
        let excess = self.re * (2.0 + self.re) + self.im * self.im;
        Self::new(0.5 * libm::log1p(excess), libm::atan2(self.im, 1.0 + self.re))
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}

impl Div for Complex {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let over = 1.0 / other.norm();
        (self * Self::new(other.re, -other.im)).scale(over)
    }
}

impl Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_their_definitions() {
        for (re, im) in [(0.3, -2.0), (-1.5, 0.7), (-2.0, -0.1), (1e-9, 2e-9), (3.0, 0.0)] {
            let z = Complex::new(re, im);
            let close = |a: Complex, b: Complex| (a - b).norm().sqrt() <= 1e-14 * b.norm().sqrt();
            let root = z.sqrt();
            assert!(close(root * root, z) && root.re >= 0.0, "{z:?}");
            let back = z.ln_1p().exp() - Complex::ONE;
            assert!((back - z).norm().sqrt() < 1e-14, "{z:?}");
            assert!(close(z / z, Complex::ONE));
        }
        let tiny = Complex::new(1e-12, 1e-12).ln_1p();
        assert!((tiny.re - 1e-12).abs() < 1e-23 && (tiny.im - 1e-12).abs() < 1e-23);
    }
}
