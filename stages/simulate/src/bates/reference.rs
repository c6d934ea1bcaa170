//! The prices of [`super`] in single numbers over `libm`, integrated to full precision: the reference that
//! tests compare vectors with.

use super::Bates;
use stages_numerics::black_scholes::undiscounted;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
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

/// [`Bates::log_moment`].
fn log_moment(model: &Bates, v: f64, years: f64, s: Complex) -> Complex {
    let variance = model.sigma * model.sigma;
    let quadratic = s - s * s;
    let b = Complex::new(model.kappa, 0.0) - s.scale(model.rho * model.sigma);
    let d = (b * b + quadratic.scale(variance)).sqrt();
    let sum = b + d;
    // Here (b - d) / sigma^2, and g = (b - d) / (b + d).
    let slope = -(quadratic / sum);
    let decay = (-d.scale(years)).exp();
    let gone = Complex::ONE - decay;
    let g_over_variance = slope / sum;
    let g = g_over_variance.scale(variance);
    let on_variance = slope * gone / (Complex::ONE - g * decay);
    // The term ln((1 - g decay) / (1 - g)) / sigma^2.
    let ratio = g_over_variance * gone / (Complex::ONE - g);
    let log = if variance > 0.0 {
        ratio.scale(variance).ln_1p().scale(1.0 / variance)
    } else {
        ratio
    };
    let diffusion =
        (slope.scale(years) - log.scale(2.0)).scale(model.kappa * model.theta) + on_variance.scale(v);
    let spread = model.jump_deviation * model.jump_deviation;
    let jump = (s.scale(model.jump_mean) + (s * s).scale(0.5 * spread)).exp()
        - Complex::ONE
        - s.scale(model.mean_jump());
    diffusion + jump.scale(model.jump_intensity * years)
}

/// [`Bates::explosion`].
fn explosion(model: &Bates, s: f64) -> f64 {
    let above = s * s - s;
    let beta = model.rho * model.sigma * s - model.kappa;
    let square = beta * beta - model.sigma * model.sigma * above;
    let gamma = square.abs().sqrt();
    if above <= 0.0 || (square >= 0.0 && beta <= 0.0) {
        f64::INFINITY
    } else if square < 0.0 {
        2.0 / gamma * libm::atan2(gamma, beta)
    } else {
        libm::log((beta + gamma) / (beta - gamma)) / gamma
    }
}

/// [`Bates::reach`].
fn reach(model: &Bates, v: f64, years: f64, variance: f64) -> f64 {
    let side = |sign: f64| {
        let mut best = f64::INFINITY;
        let mut a = 0.2;
        while a < 1e5 {
            let s = 0.5 + sign * a;
            if explosion(model, s) < 1.02 * years {
                break;
            }
            let log = log_moment(model, v, years, Complex::new(s, 0.0)).re;
            let size = log.max(0.5 * variance * (a * a - 0.25)).max(0.0);
            let width = (DIGITS + size) / a;
            if width.is_nan() || width > best {
                break;
            }
            best = width;
            a *= 1.3;
        }
        best
    };
    side(1.0).max(side(-1.0)).min(WIDEST)
}

/// ln 10^16: terms that are smaller than others by this factor are left out.
const DIGITS: f64 = 36.8;
/// The widest distribution that is integrated to full precision.
const WIDEST: f64 = 300.0;

/// The values of the characteristic function for one expiry, from which options with any strike are priced.
pub(crate) struct Expiry {
    forward: f64,
    deviation: f64,
    step: f64,
    /// The integrand at `i * step` without the factor e^{iuk}, times the step over pi.
    nodes: Vec<Complex>,
}

/// The maximum number of nodes, at which the integrand is cut off; relevant for variances near 0.
const MOST_NODES: usize = 1 << 15;
/// The size below which the integrand counts as negligible.
const NEGLIGIBLE: f64 = 1e-18;

impl Expiry {
    /// [`super::Expiry::new`].
    pub(crate) fn new(model: &Bates, v: f64, years: f64, forward: f64, reach: f64) -> Self {
        let variance = model.expected_variance(v, years).max(1e-12);
        // The trapezoidal rule adds the values at k +- 2 pi / step, which must be out of the distribution's
        // reach.
        let width = reach + self::reach(model, v, years, variance);
        let step = 2.0 * std::f64::consts::PI / width;
        let mut nodes = Vec::with_capacity(256);
        let mut small = 0;
        let weight = step / std::f64::consts::PI;
        while nodes.len() < MOST_NODES && small < 8 {
            let u = nodes.len() as f64 * step;
            let quadratic = u * u + 0.25;
            let control = libm::exp(-0.5 * variance * quadratic);
            let phi = log_moment(model, v, years, Complex::new(0.5, u)).exp() - Complex::new(control, 0.0);
            let ends = if nodes.is_empty() { 0.5 } else { 1.0 };
            let node = phi.scale(ends * weight / quadratic);
            let is_small = node.norm() < NEGLIGIBLE * NEGLIGIBLE && control < NEGLIGIBLE;
            small = if is_small { small + 1 } else { 0 };
            nodes.push(node);
        }
        Self {
            forward,
            deviation: variance.sqrt(),
            step,
            nodes,
        }
    }

    /// The undiscounted price of the out-of-the-money option (a call if the strike is at or above the
    /// forward).
    pub(crate) fn out_of_the_money(&self, strike: f64) -> f64 {
        let k = libm::log(self.forward / strike);
        // The factor e^{iuk} at each node, by rotation; computed anew every 32 nodes, so that errors do not
        // grow.
        let (sin, cos) = libm::sincos(self.step * k);
        let turn = Complex::new(cos, sin);
        let mut sum = 0.0;
        for (i, chunk) in self.nodes.chunks(32).enumerate() {
            let (sin, cos) = libm::sincos((i * 32) as f64 * self.step * k);
            let mut at = Complex::new(cos, sin);
            for node in chunk {
                sum += at.re * node.re - at.im * node.im;
                at = at * turn;
            }
        }
        let control = undiscounted(self.forward, strike, self.deviation, strike >= self.forward);
        (control - (self.forward * strike).sqrt() * sum).max(0.0)
    }

    /// The undiscounted prices of the call and the put.
    pub(crate) fn call_and_put(&self, strike: f64) -> (f64, f64) {
        let out = self.out_of_the_money(strike);
        if strike >= self.forward {
            (out, out + (strike - self.forward))
        } else {
            (out + (self.forward - strike), out)
        }
    }
}
