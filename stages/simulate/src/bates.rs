//! European option prices in the model of Bates (1996): Heston's (1993) stochastic variance with lognormal
//! jumps.
//!
//! Under the pricing measure, with X = ln(S_T / F):
//!
//! ```text
//! dv = kappa (theta - v) dt + sigma sqrt(v) dW2,   d<W1, W2> = rho dt
//! dX = -(v / 2 + lambda m) dt + sqrt(v) dW1 + J dN,   J ~ N(mu, delta^2),   m = E[e^J] - 1
//! ```
//!
//! A price is Lewis's integral ("A simple option formula for general jump-diffusion and other exponential
//! Lévy processes", 2001, equation 3.11) along Im u = -1/2, with the integrand of Black's formula of about
//! the same variance taken away and its price added back:
//!
//! ```text
//! V = Black(F, K, s) - sqrt(F K) / pi Int_0^inf Re[ e^{iuk} (phi(u - i/2) - phi_Black(u - i/2)) ] du / (u^2 + 1/4),   k = ln(F / K)
//! ```
//!
//! The same correction holds for the call and the put, so the out-of-the-money one is found without
//! cancellation. The remaining integrand is analytic around the real axis, so the plain trapezoidal rule
//! converges exponentially (Trefethen and Weideman 2014). All strikes of an expiry share the values of the
//! characteristic function.

use super::complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::black_scholes::undiscounted;

/// Parameters of the variance and the jumps under one measure; time in years.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bates {
    /// kappa, the speed at which the variance reverts to its mean, per year.
    pub kappa: f64,
    /// theta, the mean variance of the diffusion, per year.
    pub theta: f64,
    /// sigma, the volatility of the variance, per year.
    pub sigma: f64,
    /// rho, the correlation of the diffusions of price and variance.
    pub rho: f64,
    /// lambda, jumps per year.
    pub jump_intensity: f64,
    /// mu, the mean of the logarithm of a jump.
    pub jump_mean: f64,
    /// delta, the standard deviation of the logarithm of a jump.
    pub jump_deviation: f64,
}

impl Bates {
    /// The mean relative jump, m = E[e^J] - 1.
    pub fn mean_jump(&self) -> f64 {
        libm::expm1(self.jump_mean + 0.5 * self.jump_deviation * self.jump_deviation)
    }

    /// The variance added by jumps, per year.
    pub fn jump_variance(&self) -> f64 {
        self.jump_intensity * (self.jump_mean * self.jump_mean + self.jump_deviation * self.jump_deviation)
    }

    /// The expected variance of the log price over `years`, jumps included, starting from an instantaneous
    /// variance `v`.
    pub fn expected_variance(&self, v: f64, years: f64) -> f64 {
        let weight = if self.kappa > 0.0 {
            -libm::expm1(-self.kappa * years) / self.kappa
        } else {
            years
        };
        self.theta * (years - weight) + v * weight + self.jump_variance() * years
    }

    /// The logarithm of E[e^(sX)] over `years`, starting from an instantaneous variance `v`; s = 1/2 + iu
    /// gives ln phi(u - i/2). For real s the expectation must be finite, see [`Bates::explosion`].
    ///
    /// Heston's formula in the form of Albrecher and others ("The little Heston trap", 2007), whose logarithm
    /// does not cross its branch cut, rearranged without differences of nearly equal numbers, so that it
    /// holds for sigma down to 0.
    fn log_moment(&self, v: f64, years: f64, s: Complex) -> Complex {
        let variance = self.sigma * self.sigma;
        let quadratic = s - s * s;
        let b = Complex::new(self.kappa, 0.0) - s.scale(self.rho * self.sigma);
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
            (slope.scale(years) - log.scale(2.0)).scale(self.kappa * self.theta) + on_variance.scale(v);
        let spread = self.jump_deviation * self.jump_deviation;
        let jump = (s.scale(self.jump_mean) + (s * s).scale(0.5 * spread)).exp()
            - Complex::ONE
            - s.scale(self.mean_jump());
        diffusion + jump.scale(self.jump_intensity * years)
    }

    /// The number of years after which E[e^(sX)] is infinite (Andersen and Piterbarg, "Moment explosions in
    /// stochastic volatility models", 2007, proposition 3.1).
    fn explosion(&self, s: f64) -> f64 {
        let above = s * s - s;
        let beta = self.rho * self.sigma * s - self.kappa;
        let square = beta * beta - self.sigma * self.sigma * above;
        let gamma = square.abs().sqrt();
        if above <= 0.0 || (square >= 0.0 && beta <= 0.0) {
            f64::INFINITY
        } else if square < 0.0 {
            2.0 / gamma * libm::atan2(gamma, beta)
        } else {
            libm::log((beta + gamma) / (beta - gamma)) / gamma
        }
    }

    /// The distance from 0 beyond which the density of X, and with it the price of an option, is negligible:
    /// the W for which E[e^((1/2 +- a) X)] e^(-a W) is negligible for some a, on both sides. `variance` is
    /// that of the control, Black's formula.
    fn reach(&self, v: f64, years: f64, variance: f64) -> f64 {
        let side = |sign: f64| {
            let mut best = f64::INFINITY;
            let mut a = 0.2;
            while a < 1e5 {
                let s = 0.5 + sign * a;
                if self.explosion(s) < 1.02 * years {
                    break;
                }
                let log = self.log_moment(v, years, Complex::new(s, 0.0)).re;
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
}

/// ln 10^16: terms that are smaller than others by this factor are left out.
const DIGITS: f64 = 36.8;
/// The widest distribution that is integrated to full precision.
const WIDEST: f64 = 300.0;

/// The values of the characteristic function for one expiry, from which options with any strike are priced.
#[derive(Clone, Debug)]
pub struct Expiry {
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
    /// Prepares the expiry in `years` (in the time unit of `model`), starting from the instantaneous variance
    /// `v`, for strikes whose logarithm is within `reach` of that of the forward.
    pub fn new(model: &Bates, v: f64, years: f64, forward: f64, reach: f64) -> Self {
        Self::with_step(model, v, years, forward, reach, 1.0)
    }

    fn with_step(model: &Bates, v: f64, years: f64, forward: f64, reach: f64, finer: f64) -> Self {
        let variance = model.expected_variance(v, years).max(1e-12);
        // The trapezoidal rule adds the values at k +- 2 pi / step, which must be out of the distribution's
        // reach.
        let width = reach + model.reach(v, years, variance);
        let step = 2.0 * std::f64::consts::PI / width / finer;
        let mut nodes = Vec::with_capacity(256);
        let mut small = 0;
        let weight = step / std::f64::consts::PI;
        while nodes.len() < MOST_NODES && small < 8 {
            let u = nodes.len() as f64 * step;
            let quadratic = u * u + 0.25;
            let control = libm::exp(-0.5 * variance * quadratic);
            let phi = model.log_moment(v, years, Complex::new(0.5, u)).exp() - Complex::new(control, 0.0);
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

    /// The forward price.
    pub fn forward(&self) -> f64 {
        self.forward
    }

    /// The undiscounted price of the out-of-the-money option (a call if the strike is at or above the
    /// forward).
    pub fn out_of_the_money(&self, strike: f64) -> f64 {
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
    pub fn call_and_put(&self, strike: f64) -> (f64, f64) {
        let out = self.out_of_the_money(strike);
        if strike >= self.forward {
            (out, out + (strike - self.forward))
        } else {
            (out + (self.forward - strike), out)
        }
    }
}

#[cfg(test)]
mod tests;
