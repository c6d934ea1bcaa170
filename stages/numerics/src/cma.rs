//! The constants of CMA-ES, and its update, of which the separable one shares a part. Equations: Hansen, "The
//! CMA evolution strategy: a tutorial" (2016), as numbered in `evosax.algorithms.CMA_ES`.

use crate::statistics::ranks;

/// The bound of the step size.
const STD_MAX: f64 = 1e8;

/// The constants for a population and a number of parameters n.
#[derive(Clone, Debug)]
pub struct Constants {
    n: f64,
    /// The weights of the members, best first; those of the better half are positive and add up to 1.
    weights: Vec<f64>,
    mu_eff: f64,
    c_std: f64,
    d_std: f64,
    c_c: f64,
    /// The learning rate of the rank-one update.
    pub c_1: f64,
    /// The learning rate of the rank-mu update.
    pub c_mu: f64,
    chi_n: f64,
}

impl Constants {
    /// The constants for a population and `n` parameters; with `negative`, the worse half has negative
    /// weights.
    pub fn new(population: usize, n: usize, negative: bool) -> Self {
        let (lambda, n) = (population as f64, n as f64);
        let elites = (population / 2).max(1);
        // Eq. (48), (8) and table 1.
        let prime: Vec<f64> = (1..=population)
            .map(|i| libm::log((lambda + 1.0) / 2.0) - libm::log(i as f64))
            .collect();
        let effective = |weights: &[f64]| {
            let sum: f64 = weights.iter().sum();
            sum * sum / weights.iter().map(|w| w * w).sum::<f64>()
        };
        let (mu_eff, mu_eff_minus) = (effective(&prime[..elites]), effective(&prime[elites..]));
        // Eq. (56) to (58).
        let c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
        let c_1 = 2.0 / ((n + 1.3) * (n + 1.3) + mu_eff);
        let c_mu =
            (2.0 * (mu_eff + 1.0 / mu_eff - 2.0) / ((n + 2.0) * (n + 2.0) + mu_eff)).min(1.0 - c_1 - 1e-8);
        // Eq. (50) to (53).
        let least = (1.0 + c_1 / c_mu)
            .min(1.0 + 2.0 * mu_eff_minus / (mu_eff + 2.0))
            .min((1.0 - c_1 - c_mu) / (n * c_mu));
        let positive: f64 = prime.iter().filter(|w| **w > 0.0).sum();
        let below: f64 = prime.iter().filter(|w| **w < 0.0).map(|w| w.abs()).sum();
        let least = if negative { least } else { 0.0 };
        let weight = |w: &f64| if *w >= 0.0 { w / positive } else { least * w / below };
        // Eq. (55).
        let c_std = (mu_eff + 2.0) / (n + mu_eff + 5.0);
        Self {
            n,
            weights: prime.iter().map(weight).collect(),
            mu_eff,
            c_std,
            d_std: 1.0 + 2.0 * (((mu_eff - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_std,
            c_c,
            c_1,
            c_mu,
            chi_n: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
        }
    }

    /// The weight of each member by the rank of its cost. Nothing is learned where no cost is a number.
    pub fn weights(&self, costs: &[f64]) -> Vec<f64> {
        if costs.iter().all(|cost| cost.is_nan()) {
            return vec![0.0; costs.len()];
        }
        ranks(costs).iter().map(|&rank| self.weights[rank as usize]).collect()
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Advances the step size and its path by C^(-1/2) y_w `[n]` (eq. 43 and 44); returns the indicator
    /// h_sigma for [`Constants::advance_path`].
    pub fn advance_std(&self, std: &mut f32, path: &mut [f32], whitened: &[f32], generation: u64) -> bool {
        let by = (self.c_std * (2.0 - self.c_std) * self.mu_eff).sqrt();
        let mut squares = 0.0;
        for (path, y) in path.iter_mut().zip(whitened) {
            let new = (1.0 - self.c_std) * f64::from(*path) + by * f64::from(*y);
            squares += new * new;
            *path = new as f32;
        }
        let norm = squares.sqrt();
        let change = libm::exp(self.c_std / self.d_std * (norm / self.chi_n - 1.0));
        *std = (f64::from(*std) * change).min(STD_MAX) as f32;
        // Page 28: false while the step size grows fast, when the other path stalls.
        let settled = 1.0 - libm::pow(1.0 - self.c_std, 2.0 * (generation as f64 + 2.0));
        norm / settled.sqrt() < (1.4 + 2.0 / (self.n + 1.0)) * self.chi_n
    }

    /// Advances the path of the covariance by y_w (eq. 45).
    pub fn advance_path(&self, path: &mut [f32], y: &[f32], moves: bool) {
        let by = if moves {
            (self.c_c * (2.0 - self.c_c) * self.mu_eff).sqrt()
        } else {
            0.0
        };
        for (path, y) in path.iter_mut().zip(y) {
            *path = ((1.0 - self.c_c) * f64::from(*path) + by * f64::from(*y)) as f32;
        }
    }

    /// The share of the covariance that is kept (eq. 47).
    pub fn kept(&self, moves: bool) -> f64 {
        let stalled = if moves { 0.0 } else { self.c_c * (2.0 - self.c_c) };
        1.0 + self.c_1 * stalled - self.c_1 - self.c_mu * self.total()
    }

    /// The weights of the members in the covariance, given those of [`Constants::weights`] and each member's
    /// C^(-1/2) y `[n]`: negative ones are scaled by n / |z|^2 (eq. 46).
    pub fn covariance_weights<'a>(
        &self,
        weights: &[f64],
        whitened: impl IntoIterator<Item = &'a [f32]>,
    ) -> Vec<f64> {
        let weight = |(weight, z): (&f64, &[f32])| {
            let length: f64 = z.iter().map(|&z| f64::from(z) * f64::from(z)).sum();
            if *weight >= 0.0 {
                *weight
            } else {
                weight * self.n / length.max(1e-8)
            }
        };
        weights.iter().zip(whitened).map(weight).collect()
    }

    /// Row `i` of the new covariance, from the row `before`, the path of the covariance, and each member's
    /// weight and y (eq. 47).
    pub fn advance_row<'a>(
        &self,
        i: usize,
        before: &[f64],
        path: &[f32],
        members: impl IntoIterator<Item = (f64, &'a [f32])>,
        moves: bool,
        row: &mut [f32],
    ) {
        let mut rank_mu = vec![0.0; before.len()];
        for (weight, y) in members {
            let by = weight * f64::from(y[i]);
            for (sum, &y) in rank_mu.iter_mut().zip(y) {
                *sum += by * f64::from(y);
            }
        }
        for (j, new) in row.iter_mut().enumerate() {
            let rank_one = f64::from(path[i]) * f64::from(path[j]);
            let next = self.kept(moves) * before[j] + self.c_1 * rank_one + self.c_mu * rank_mu[j];
            *new = next as f32;
        }
    }
}
