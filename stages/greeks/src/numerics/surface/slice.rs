//! One smile.

use stages_numerics::special::normal_cdf;

/// A smile without butterfly arbitrage: theta, and the slopes of its wings doubled, `psi (1 + rho)` and `psi (1 - rho)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    theta: f64,
    right: f64,
    left: f64,
}

impl Slice {
    /// The nearest that may follow `before` and has no butterfly arbitrage: theta is raised, then both wings are brought into their bounds (neither flatter than a hundredth of the other) and, if
    /// they are too steep together, back towards those before.
    pub fn nearest(theta: f64, right: f64, left: f64, before: Option<&Self>) -> Self {
        const LEAST: f64 = 1e-8;
        const STEEPEST: f64 = 0.01;
        let (least_right, least_left) = before.map_or((0.0, 0.0), |before| (before.right, before.left));
        let theta = theta.max(before.map_or(LEAST, |before| before.theta));
        let (right, left) = (right.clamp(least_right, 4.0), left.clamp(least_left, 4.0));
        // At a correlation of 1 or -1 the smile has a kink, and no variance beyond it.
        let (mut right, mut left) = (right.max(STEEPEST * left), left.max(STEEPEST * right));
        // psi / theta does not rise; psi max(right, left) <= 4 theta.
        let most = before.map_or(f64::INFINITY, |before| theta * before.psi() / before.theta);
        let holds = |right: f64, left: f64| {
            let psi = 0.5 * (right + left);
            psi <= most && psi * right.max(left) <= 4.0 * theta
        };
        if !holds(right, left) {
            // The interpolation weight from the least wings to those wanted, by bisection: the least always satisfy the conditions.
            let (mut low, mut high) = (0.0, 1.0);
            let at = |share: f64| {
                (
                    least_right + share * (right - least_right),
                    least_left + share * (left - least_left),
                )
            };
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                let (right, left) = at(middle);
                if holds(right, left) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            (right, left) = at(low);
        }
        Self { theta, right, left }
    }

    /// From [`Slice::parameters`].
    pub fn of([theta, right, left]: [f64; 3]) -> Self {
        Self { theta, right, left }
    }

    /// Total variance at the money.
    pub fn theta(&self) -> f64 {
        self.theta
    }

    /// The mean of both wings' slopes, doubled.
    pub fn psi(&self) -> f64 {
        0.5 * (self.right + self.left)
    }

    /// Correlation: how much steeper the right wing is.
    pub fn rho(&self) -> f64 {
        let sum = self.right + self.left;
        if sum > 0.0 { (self.right - self.left) / sum } else { 0.0 }
    }

    /// theta, and the doubled slopes of the right and the left wing.
    pub fn parameters(&self) -> [f64; 3] {
        [self.theta, self.right, self.left]
    }

    /// Total variance at `k = ln(K/F)`.
    pub fn total_variance(&self, k: f64) -> f64 {
        self.derivatives(k)[0]
    }

    /// Total variance and its first two derivatives by k.
    pub fn derivatives(&self, k: f64) -> [f64; 3] {
        let (theta, psi, rho) = (self.theta, self.psi(), self.rho());
        let inner = psi * k + theta * rho;
        let rest = theta * theta * (1.0 - rho * rho);
        let root = (inner * inner + rest).sqrt();
        if root == 0.0 {
            return [0.5 * (theta + rho * psi * k), 0.5 * rho * psi, 0.0];
        }
        [
            0.5 * (theta + rho * psi * k + root),
            0.5 * psi * (rho + inner / root),
            0.5 * psi * psi * rest / (root * root * root),
        ]
    }

    /// Durrleman's function, which has the sign of the density that the smile implies: butterfly arbitrage where it is negative.
    pub fn durrleman(&self, k: f64) -> f64 {
        let [w, slope, curvature] = self.derivatives(k);
        let first = 1.0 - 0.5 * k * slope / w;
        first * first - 0.25 * slope * slope * (1.0 / w + 0.25) + 0.5 * curvature
    }

    /// Volatility at k for a time.
    pub fn volatility(&self, k: f64, years: f64) -> f64 {
        (self.total_variance(k) / years).sqrt()
    }

    /// The k where the absolute undiscounted delta of the option to the forward, `cdf(w d1)`, is `delta` (below 1/2); NaN where the smile has none.
    pub fn log_moneyness_of(&self, delta: f64, call: bool) -> f64 {
        let sign = if call { 1.0 } else { -1.0 };
        // `distance`: log-moneyness out of the money.
        let delta_at = |distance: f64| {
            let k = sign * distance;
            let w = self.total_variance(k);
            normal_cdf(sign * (-k / w.sqrt() + 0.5 * w.sqrt()))
        };
        let scale = self.theta.sqrt();
        let (mut low, mut high) = (-4.0 * scale, 4.0 * scale);
        while delta_at(high) > delta {
            high *= 2.0;
            if high > 1e3 * scale {
                return f64::NAN;
            }
        }
        if delta_at(low) < delta {
            return f64::NAN;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if delta_at(middle) > delta {
                low = middle;
            } else {
                high = middle;
            }
        }
        sign * 0.5 * (low + high)
    }

    /// Between this smile and a later one.
    pub(super) fn between(&self, later: &Self, share: f64) -> Self {
        let mix = |a: f64, b: f64| a + (b - a) * share;
        Self {
            theta: mix(self.theta, later.theta),
            right: mix(self.right, later.right),
            left: mix(self.left, later.left),
        }
    }

    /// The same volatilities for a share of the time.
    pub(super) fn sooner(&self, share: f64) -> Self {
        Self {
            theta: self.theta * share,
            right: self.right * share,
            left: self.left * share,
        }
    }

    /// The same volatility at the money and the same slopes for a multiple of the time.
    pub(super) fn later(&self, multiple: f64) -> Self {
        Self {
            theta: self.theta * multiple,
            ..*self
        }
    }
}
