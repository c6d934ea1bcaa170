//! Double-double arithmetic with about 31 digits: the oracle for tests, slow, plain, and independent of the
//! kernels.
//!
//! T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971).

use std::ops::{Add, Div, Mul, Neg, Sub};

/// An unevaluated sum of two doubles, the second of at most half an ulp of the first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Dd(pub(crate) f64, pub(crate) f64);

fn two_sum(a: f64, b: f64) -> Dd {
    let s = a + b;
    let t = s - a;
    Dd(s, (a - (s - t)) + (b - t))
}

fn quick(a: f64, b: f64) -> Dd {
    let s = a + b;
    Dd(s, b - (s - a))
}

impl From<f64> for Dd {
    fn from(x: f64) -> Self {
        Self(x, 0.0)
    }
}

impl Neg for Dd {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl<T: Into<Self>> Add<T> for Dd {
    type Output = Self;
    fn add(self, b: T) -> Self {
        let b = b.into();
        let (s, t) = (two_sum(self.0, b.0), two_sum(self.1, b.1));
        let s = quick(s.0, s.1 + t.0);
        quick(s.0, s.1 + t.1)
    }
}

impl<T: Into<Self>> Sub<T> for Dd {
    type Output = Self;
    fn sub(self, b: T) -> Self {
        self + -b.into()
    }
}

impl<T: Into<Self>> Mul<T> for Dd {
    type Output = Self;
    fn mul(self, b: T) -> Self {
        let b = b.into();
        let p = self.0 * b.0;
        let rest = self.0.mul_add(b.0, -p);
        quick(p, rest + (self.0 * b.1 + self.1 * b.0))
    }
}

impl<T: Into<Self>> Div<T> for Dd {
    type Output = Self;
    fn div(self, b: T) -> Self {
        let b = b.into();
        let q = self.0 / b.0;
        let r = self - b * q;
        let q2 = r.0 / b.0;
        let r = r - b * q2;
        quick(q, q2) + r.0 / b.0
    }
}

impl Dd {
    /// The nearest f64.
    pub(crate) fn f64(self) -> f64 {
        self.0 + self.1
    }

    /// The absolute value.
    pub(crate) fn abs(self) -> Self {
        if self.0 < 0.0 { -self } else { self }
    }

    /// The square root.
    pub(crate) fn sqrt(self) -> Self {
        if self.0 == 0.0 {
            return self;
        }
        let x = Self::from(self.0.sqrt());
        let x = (x + self / x) * 0.5;
        (x + self / x) * 0.5
    }

    /// The exponential e^x.
    pub(crate) fn exp(self) -> Self {
        const LN_2: Dd = Dd(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
        let k = (self.0 / std::f64::consts::LN_2).round();
        let r = (self - LN_2 * k) / 512.0;
        // Uses e^r - 1, so that squaring does not lose terms that are small beside 1.
        let (mut term, mut sum) = (r, r);
        for n in 2..12 {
            term = term * r / f64::from(n);
            sum = sum + term;
        }
        for _ in 0..9 {
            sum = sum * 2.0 + sum * sum;
        }
        let y = sum + 1.0;
        let (half, rest) = ((k / 2.0).trunc(), k - (k / 2.0).trunc());
        let (a, b) = (libm::exp2(half), libm::exp2(rest));
        Self(y.0 * a * b, y.1 * a * b)
    }

    /// The natural logarithm.
    pub(crate) fn ln(self) -> Self {
        let mut y = Self::from(libm::log(self.0));
        for _ in 0..2 {
            y = y + (self * (-y).exp() - 1.0);
        }
        y
    }

    /// Mills' ratio for z >= 0: by its series near 0, by its continued fraction beyond.
    pub(crate) fn mills(self) -> Self {
        if self.0 < 4.0 {
            let square = self * self;
            let (mut term, mut sum, mut n) = (self, self, 1.0);
            while term.0 > 1e-34 * sum.0 {
                n += 2.0;
                term = term * square / n;
                sum = sum + term;
            }
            return Self(1.253_314_137_315_500_3, -9.164_289_990_229_583e-17) * (square * 0.5).exp() - sum;
        }
        let mut tail = self;
        for n in (1..400).rev() {
            tail = self + Self::from(f64::from(n)) / tail;
        }
        Self::from(1.0) / tail
    }

    /// The density of the standard normal distribution.
    pub(crate) fn pdf(self) -> Self {
        (self * self * -0.5).exp() * Self(0.398_942_280_401_432_7, -2.492_327_202_277_73e-17)
    }

    /// The standard normal distribution function.
    pub(crate) fn cdf(self) -> Self {
        let tail = self.abs().pdf() * self.abs().mills();
        if self.0 < 0.0 { tail } else { Self::from(1.0) - tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with digits computed by mpmath.
    #[test]
    fn has_thirty_digits() {
        let near = |x: Dd, high: f64, low: f64| {
            let error = ((x - Dd(high, low)).f64() / high).abs();
            assert!(error < 1e-27, "{x:?}: {error}");
        };
        for (x, mills, ln, exp) in VALUES {
            near(Dd::from(x).mills(), mills.0, mills.1);
            near(Dd::from(x).ln(), ln.0, ln.1);
            near(Dd::from(x).exp(), exp.0, exp.1);
            near((Dd::from(x) * x).sqrt(), x, 0.0);
        }
    }
    type Pair = (f64, f64);
    const VALUES: [(f64, Pair, Pair, Pair); 8] = [
        (
            0.1,
            (1.1592623996187363, -1.5078438510171842e-17),
            (-2.3025850929940455, -1.7150243628057985e-16),
            (1.1051709180756477, -8.149523913327619e-17),
        ),
        (
            0.75,
            (0.7525711790634081, -3.9647853211372663e-17),
            (-0.2876820724517809, -2.607160616442564e-17),
            (2.117000016612675, -1.1571006249440234e-16),
        ),
        (
            2.5,
            (0.35426511132979366, 8.527077771281615e-18),
            (0.9162907318741551, -4.141195369011963e-17),
            (12.182493960703473, 2.0334002173348147e-16),
        ),
        (
            3.9,
            (0.24210933472105986, 1.2833615627421644e-17),
            (1.3609765531356006, 1.0103074684515222e-16),
            (49.40244910553017, 2.829950016264447e-15),
        ),
        (
            4.1,
            (0.23142643286975406, 7.288654242187191e-18),
            (1.410986973710262, -1.5855980230298456e-17),
            (60.34028759736195, -2.07343456080387e-15),
        ),
        (
            7.3,
            (0.1345483871591707, 6.4375503237374684e-18),
            (1.9878743481543455, -7.33258575199512e-17),
            (1480.299927584545, -4.301777951764024e-14),
        ),
        (
            30.5,
            (0.03275175306250282, 1.6328220728984132e-18),
            (3.417726683613366, -1.732573381665158e-17),
            (17619017951355.633, -0.001400339015239068),
        ),
        (
            300.0,
            (0.0033332962975307955, 1.2655356879506147e-19),
            (5.703782474656201, 1.4126959774862874e-16),
            (1.9424263952412558e+130, 1.1143145370175699e+114),
        ),
    ];
}
