//! Separable CMA-ES (Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space
//! complexity", 2008).

use super::{Distribution, Generation, Strategy, sums};
use stages_numerics::cma::Constants;

/// A step size and a diagonal covariance: `evosax.algorithms.Sep_CMA_ES`. Its own state: the step size, its
/// path `[n]`, the path of the covariance `[n]`, the covariance `[n]`.
#[derive(Debug)]
pub(crate) struct SepCmaEs {
    /// The first step size.
    pub std_init: f64,
    population: usize,
    constants: Option<Constants>,
    /// The standard deviations of the parameters, without the factor of the step size.
    scale: Vec<f32>,
}

impl SepCmaEs {
    pub(crate) fn new(std_init: f64, population: usize) -> Self {
        Self {
            std_init,
            population,
            constants: None,
            scale: Vec::new(),
        }
    }
}

impl Strategy for SepCmaEs {
    fn antithetic(&self) -> bool {
        false
    }

    fn start(&self, n: usize) -> Vec<f32> {
        let mut own = vec![0.0; 1 + 3 * n];
        own[0] = self.std_init as f32;
        own[1 + 2 * n..].fill(1.0);
        own
    }

    fn prepare(&mut self, own: &[f32]) {
        let n = (own.len() - 1) / 3;
        self.constants
            .get_or_insert_with(|| Constants::new(self.population, n, false));
        self.scale.clear();
        self.scale.extend(own[1 + 2 * n..].iter().map(|c| loaded(*c).sqrt()));
    }

    fn displacement(&self, generation: &Generation, own: &[f32], k: usize, y: &mut [f32]) {
        generation.fill(k, 0, y);
        for (y, scale) in y.iter_mut().zip(&self.scale) {
            *y *= own[0] * scale;
        }
    }

    /// With y = D z: the mean moves by std x the weighted sum of y (eq. 41, 42); paths and step size as in
    /// [`Constants`]; C becomes a mixture of itself, the square of its path and the weighted sum of y^2 (eq.
    /// 47; `Sep_CMA_ES._tell`).
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution) {
        let n = distribution.mean.len();
        let Some(constants) = &self.constants else { return };
        let weights = constants
            .weights(costs)
            .into_iter()
            .enumerate()
            .filter(|(_, weight)| *weight > 0.0);
        let weights: Vec<_> = weights.map(|(k, weight)| (k, weight as f32, weight as f32)).collect();
        let (z, squares) = sums(generation, &weights, n, true);
        let y: Vec<f32> = z.iter().zip(&self.scale).map(|(z, scale)| z * scale).collect();
        let (std, rest) = distribution.own.split_at_mut(1);
        let (p_std, rest) = rest.split_at_mut(n);
        let (p_c, c) = rest.split_at_mut(n);
        for (mean, y) in distribution.mean.iter_mut().zip(&y) {
            *mean += std[0] * y;
        }
        let moves = constants.advance_std(&mut std[0], p_std, &z, generation.number);
        constants.advance_path(p_c, &y, moves);
        let (kept, c_1, c_mu) = (
            constants.kept(moves) as f32,
            constants.c_1 as f32,
            constants.c_mu as f32,
        );
        for j in 0..n {
            let rank_mu = self.scale[j] * self.scale[j] * squares[j];
            c[j] = kept * loaded(c[j]) + c_1 * p_c[j] * p_c[j] + c_mu * rank_mu;
        }
    }

    fn mean_std(&self, _: &Generation, own: &[f32]) -> f64 {
        let sum: f64 = self.scale.iter().map(|&scale| f64::from(scale)).sum();
        f64::from(own[0]) * sum / self.scale.len().max(1) as f64
    }
}

/// A variance within bounds, and above 0.
fn loaded(c: f32) -> f32 {
    c.clamp(0.0, 1e8) + 1e-8
}
