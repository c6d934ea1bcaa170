//! CMA-ES with a full covariance (Hansen and Ostermeier, 2001).

use super::{Distribution, Generation, Strategy};
use rayon::prelude::*;
use stages_numerics::cma::Constants;
use stages_numerics::eigen::square_root;

/// The largest number of parameters n: each generation decomposes a covariance of n x n numbers in some 10
/// n^3 operations (a second at this size), and checkpoints hold the covariance.
pub(crate) const MOST: usize = 512;

/// A step size and a covariance: `evosax.algorithms.CMA_ES`. Its own state: the step size, its path `[n]`,
/// the path of the covariance `[n]`, the covariance `[n, n]`.
///
/// Displacements are std C^(1/2) z with the symmetric root, which has the distribution of evosax's B D z,
/// does not depend on the signs of eigenvectors, and makes z what the step size's path takes: C^(-1/2) y.
#[derive(Debug)]
pub(crate) struct CmaEs {
    /// The first step size.
    pub std_init: f64,
    population: usize,
    constants: Option<Constants>,
    /// The covariance `[n, n]`, with `load` on the diagonal.
    covariance: Vec<f64>,
    root: Vec<f64>,
}

impl CmaEs {
    pub(crate) fn new(std_init: f64, population: usize) -> Self {
        Self {
            std_init,
            population,
            constants: None,
            covariance: Vec::new(),
            root: Vec::new(),
        }
    }

    /// C^(1/2) z.
    fn correlated(&self, z: &[f32], y: &mut [f32]) {
        for (y, row) in y.iter_mut().zip(self.root.chunks_exact(z.len())) {
            *y = row.iter().zip(z).map(|(root, &z)| root * f64::from(z)).sum::<f64>() as f32;
        }
    }
}

impl Strategy for CmaEs {
    fn antithetic(&self) -> bool {
        false
    }

    fn start(&self, n: usize) -> Vec<f32> {
        let mut own = vec![0.0; 1 + 2 * n + n * n];
        own[0] = self.std_init as f32;
        for j in 0..n {
            own[1 + 2 * n + j * (n + 1)] = 1.0;
        }
        own
    }

    fn prepare(&mut self, own: &[f32]) {
        // own has (n + 1)^2 elements.
        let n = own.len().isqrt() - 1;
        self.constants
            .get_or_insert_with(|| Constants::new(self.population, n, true));
        let c = &own[1 + 2 * n..];
        self.covariance.clear();
        self.covariance.resize(n * n, 0.0);
        for i in 0..n {
            for j in 0..n {
                let mean = (f64::from(c[i * n + j]) + f64::from(c[j * n + i])) / 2.0;
                let (least, load) = if i == j { (0.0, 1e-8) } else { (f64::NEG_INFINITY, 0.0) };
                self.covariance[i * n + j] = mean.clamp(least, 1e8) + load;
            }
        }
        self.root = square_root(&self.covariance, n);
    }

    fn displacement(&self, generation: &Generation, own: &[f32], k: usize, y: &mut [f32]) {
        let mut z = vec![0.0; y.len()];
        generation.fill(k, 0, &mut z);
        self.correlated(&z, y);
        for y in y {
            *y *= own[0];
        }
    }

    /// Updates the mean, the step size and the full covariance, like [`super::SepCmaEs`] but with outer
    /// products (`CMA_ES._tell`).
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution) {
        let n = distribution.mean.len();
        let Some(constants) = &self.constants else { return };
        let weights = constants.weights(costs);
        let members: Vec<(Vec<f32>, Vec<f32>)> = (0..costs.len())
            .into_par_iter()
            .map(|k| {
                let (mut z, mut y) = (vec![0.0; n], vec![0.0; n]);
                generation.fill(k, 0, &mut z);
                self.correlated(&z, &mut y);
                (z, y)
            })
            .collect();
        let (mut z_sum, mut y_sum) = (vec![0.0; n], vec![0.0; n]);
        for (weight, (z, y)) in weights.iter().zip(&members) {
            if *weight > 0.0 {
                for j in 0..n {
                    z_sum[j] += (*weight * f64::from(z[j])) as f32;
                    y_sum[j] += (*weight * f64::from(y[j])) as f32;
                }
            }
        }
        let covariance_weights =
            constants.covariance_weights(&weights, members.iter().map(|(z, _)| z.as_slice()));
        let (std, rest) = distribution.own.split_at_mut(1);
        let (p_std, rest) = rest.split_at_mut(n);
        let (p_c, c) = rest.split_at_mut(n);
        for (mean, y) in distribution.mean.iter_mut().zip(&y_sum) {
            *mean += std[0] * y;
        }
        let moves = constants.advance_std(&mut std[0], p_std, &z_sum, generation.number);
        constants.advance_path(p_c, &y_sum, moves);
        let p_c = &*p_c;
        c.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
            let members = covariance_weights.iter().zip(&members);
            let members = members.map(|(weight, (_, y))| (*weight, y.as_slice()));
            let before = &self.covariance[i * n..(i + 1) * n];
            constants.advance_row(i, before, p_c, members, moves, row);
        });
    }

    fn mean_std(&self, _: &Generation, own: &[f32]) -> f64 {
        let n = own.len().isqrt() - 1;
        let scale: f64 = (0..n).map(|j| self.covariance[j * (n + 1)].sqrt()).sum();
        f64::from(own[0]) * scale / n.max(1) as f64
    }
}
