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
//!
//! Prices are accurate to 1e-12 of the forward: 3e-9 of an index at 3000, whose ticks are 0.05. So a quote
//! stands on another tick than that of the exact price at most once in ten million times. The lanes of
//! vectors hold moments, then nodes of the characteristic function, then strikes.

use super::complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::simd::F64Vector;
use stages_numerics::special::fused::{exp_clamped, log_normal, normals};
use stages_numerics::special::trigonometric::{angle, sin_cos};

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

    /// The logarithm of E[e^(sX)] over `years`, starting from an instantaneous variance `v`, for s real or on
    /// the line 1/2 + iu, which gives ln phi(u - i/2); `s - s^2` is real on both. For real s the expectation
    /// must be finite, see [`Bates::explosion`].
    ///
    /// Heston's formula in the form of Albrecher and others ("The little Heston trap", 2007), whose logarithm
    /// does not cross its branch cut, rearranged without differences of nearly equal numbers, so that it
    /// holds for sigma down to 0.
    #[inline(always)]
    fn log_moment<V: F64Vector>(&self, v: f64, years: f64, mean_jump: f64, s: Complex<V>) -> Complex<V> {
        let all = |x: f64| s.re.splat(x);
        let one = Complex::one(s.re);
        let square = s * s;
        let variance = self.sigma * self.sigma;
        let quadratic = s.re - square.re;
        let b = Complex::new(all(self.kappa), all(0.0)) - s.scale(all(self.rho * self.sigma));
        let b_square = b * b;
        let d = Complex::new(quadratic.mul_add(all(variance), b_square.re), b_square.im).sqrt();
        let by_sum = (b + d).inverse();
        // Here (b - d) / sigma^2, and g = (b - d) / (b + d).
        let slope = by_sum.scale(-quadratic);
        let decay = d.scale(all(-years)).exp();
        let gone = one - decay;
        let g_over_variance = slope * by_sum;
        let g = g_over_variance.scale(all(variance));
        let on_variance = slope * gone * (one - g * decay).inverse();
        // The term ln((1 - g decay) / (1 - g)) / sigma^2.
        let ratio = g_over_variance * gone * (one - g).inverse();
        let log = if variance > 0.0 {
            ratio.scale(all(variance)).ln_1p().scale(all(1.0 / variance))
        } else {
            ratio
        };
        let diffusion = (slope.scale(all(years)) - log.scale(all(2.0))).scale(all(self.kappa * self.theta))
            + on_variance.scale(all(v));
        if self.jump_intensity == 0.0 {
            return diffusion;
        }
        let spread = self.jump_deviation * self.jump_deviation;
        let jump = (s.scale(all(self.jump_mean)) + square.scale(all(0.5 * spread))).exp()
            - one
            - s.scale(all(mean_jump));
        diffusion + jump.scale(all(self.jump_intensity * years))
    }

    /// The number of years after which E[e^(sX)] is infinite (Andersen and Piterbarg, "Moment explosions in
    /// stochastic volatility models", 2007, proposition 3.1).
    #[inline(always)]
    fn explosion<V: F64Vector>(&self, s: V) -> V {
        let (zero, two) = (s.splat(0.0), s.splat(2.0));
        let above = s * s - s;
        let beta = s.splat(self.rho * self.sigma) * s - s.splat(self.kappa);
        let square = beta * beta - s.splat(self.sigma * self.sigma) * above;
        let gamma = square.abs().sqrt();
        let turning = two * angle(gamma, beta) / gamma;
        let growing = log_normal((beta + gamma) / (beta - gamma)) / gamma;
        let never = s.splat(f64::INFINITY);
        let growing = zero.if_below(beta, growing, never);
        let explosive = square.if_below(zero, turning, growing);
        zero.if_below(above, explosive, never)
    }

    /// The distance from 0 beyond which the density of X, and with it the price of an option, is negligible:
    /// the W for which E[e^((1/2 +- a) X)] e^(-a W) is negligible for some a, on both sides. `variance` is
    /// that of the control, Black's formula.
    #[inline(always)]
    fn reach<V: F64Vector>(&self, v: f64, years: f64, mean_jump: f64, variance: f64, like: V) -> f64 {
        let mut far = 0.0_f64;
        for sign in [1.0, -1.0] {
            let mut best = f64::INFINITY;
            let mut powers = [0.0; BLOCK];
            let mut a = 0.2;
            'up: while a < 1e5 {
                for power in &mut powers {
                    *power = a;
                    a *= 1.3;
                }
                let (mut times, mut logs) = ([0.0; BLOCK], [0.0; BLOCK]);
                for i in (0..BLOCK).step_by(V::WIDTH) {
                    let s = like.load(&powers[i..]).mul_add(like.splat(sign), like.splat(0.5));
                    self.explosion(s).store(&mut times[i..]);
                    let s = Complex::new(s, like.splat(0.0));
                    self.log_moment(v, years, mean_jump, s).re.store(&mut logs[i..]);
                }
                for ((a, time), log) in powers.iter().zip(times).zip(logs) {
                    if time < 1.02 * years {
                        break 'up;
                    }
                    let size = log.max(0.5 * variance * (a * a - 0.25)).max(0.0);
                    let width = (DIGITS + size) / a;
                    if width.is_nan() || width > best {
                        break 'up;
                    }
                    best = width;
                }
            }
            far = far.max(best);
        }
        far.min(WIDEST)
    }
}

/// ln 10^14: terms that are smaller than others by this factor are left out.
const DIGITS: f64 = 32.3;
/// The widest distribution that is integrated to full precision.
const WIDEST: f64 = 300.0;
/// The number of nodes, moments and strikes that are computed together: the lanes of the widest vector.
pub(super) const BLOCK: usize = 8;
/// The maximum number of nodes, at which the integrand is cut off; relevant for variances near 0.
const MOST_NODES: usize = 1 << 15;
/// The size below which the integrand counts as negligible.
const NEGLIGIBLE: f64 = 1e-15;

/// The values of the characteristic function for one expiry, from which options with any strike are priced.
#[derive(Clone, Debug)]
pub(super) struct Expiry {
    forward: f64,
    deviation: f64,
    step: f64,
    /// The real and imaginary part of the integrand at `i * step` without the factor e^{iuk}, times the step
    /// over pi.
    nodes: Vec<[f64; 2]>,
}

impl Expiry {
    /// Prepares the expiry in `years` (in the time unit of `model`), starting from the instantaneous variance
    /// `v`, for strikes whose logarithm is within `reach` of that of the forward.
    #[inline(always)]
    pub(super) fn new<V: F64Vector>(
        zero: V,
        model: &Bates,
        v: f64,
        years: f64,
        forward: f64,
        reach: f64,
    ) -> Self {
        Self::with_step(zero, model, v, years, forward, reach, 1.0)
    }

    #[inline(always)]
    fn with_step<V: F64Vector>(
        zero: V,
        model: &Bates,
        v: f64,
        years: f64,
        forward: f64,
        reach: f64,
        finer: f64,
    ) -> Self {
        let all = |x: f64| zero.splat(x);
        let mean_jump = model.mean_jump();
        let variance = model.expected_variance(v, years).max(1e-12);
        // The trapezoidal rule adds the values at k +- 2 pi / step, which must be out of the distribution's
        // reach.
        let width = reach + model.reach(v, years, mean_jump, variance, zero);
        let step = 2.0 * std::f64::consts::PI / width / finer;
        let weight = step / std::f64::consts::PI;
        let mut nodes = Vec::with_capacity(256);
        let mut is_small = false;
        while nodes.len() < MOST_NODES && !is_small {
            let u: [f64; BLOCK] = std::array::from_fn(|i| (nodes.len() + i) as f64 * step);
            let [mut re, mut im, mut controls] = [[0.0; BLOCK]; 3];
            for i in (0..BLOCK).step_by(V::WIDTH) {
                let u = zero.load(&u[i..]);
                let quadratic = u.mul_add(u, all(0.25));
                let control = exp_clamped(all(-0.5 * variance) * quadratic);
                let phi = model.log_moment(v, years, mean_jump, Complex::new(all(0.5), u)).exp();
                let weight = all(weight) / quadratic;
                ((phi.re - control) * weight).store(&mut re[i..]);
                (phi.im * weight).store(&mut im[i..]);
                control.store(&mut controls[i..]);
            }
            if nodes.is_empty() {
                // The trapezoidal rule counts its ends by half.
                (re[0], im[0]) = (0.5 * re[0], 0.5 * im[0]);
            }
            let sizes = re.iter().zip(&im).map(|(re, im)| re.abs().max(im.abs()));
            is_small = sizes
                .zip(&controls)
                .all(|(size, control)| size.max(*control) < NEGLIGIBLE);
            nodes.extend(re.into_iter().zip(im).map(|(re, im)| [re, im]));
        }
        Self {
            forward,
            deviation: variance.sqrt(),
            step,
            nodes,
        }
    }

    /// The undiscounted prices of the calls and the puts with the strikes of a vector, and `ln(K / F)`.
    #[inline(always)]
    pub(super) fn calls_and_puts<V: F64Vector>(&self, strike: V) -> (V, V, V) {
        let all = |x: f64| strike.splat(x);
        let (zero, forward) = (all(0.0), all(self.forward));
        let k = log_normal(forward / strike);
        // The factor e^{iuk} at each node, by rotation; computed anew every 32 nodes, so that errors do not
        // grow.
        let angle = all(self.step) * k;
        let (sin, cos) = sin_cos(angle);
        let turn = Complex::new(cos, sin);
        let mut sum = zero;
        for (i, chunk) in self.nodes.chunks(32).enumerate() {
            let (sin, cos) = sin_cos(all((i * 32) as f64) * angle);
            let mut at = Complex::new(cos, sin);
            for [re, im] in chunk {
                sum = at.re.mul_add(all(*re), sum);
                sum = at.im.mul_add(all(-im), sum);
                at = at * turn;
            }
        }
        let deviation = all(self.deviation);
        let d1 = k * all(1.0 / self.deviation) + all(0.5) * deviation;
        let d2 = d1 - deviation;
        // The out-of-the-money option: a call if the strike is at or above the forward.
        let is_put = |yes: V, no: V| strike.if_below(forward, yes, no);
        let ((_, n1), (_, n2), _) = normals(is_put(-d1, d1), is_put(-d2, d2), all(1.0));
        let difference = forward * n1 - strike * n2;
        let control = is_put(-difference, difference).at_least(zero);
        let out = (control - (forward * strike).sqrt() * sum).at_least(zero);
        let inside = forward - strike;
        (is_put(out + inside, out), is_put(out, out - inside), -k)
    }
}

#[cfg(test)]
pub(super) mod reference;
#[cfg(test)]
mod tests;
