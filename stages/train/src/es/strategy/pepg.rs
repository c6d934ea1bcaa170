//! Policy gradients with parameter-based exploration (Sehnke and others, 2010).

use super::shaping::centred_ranks;
use super::{Distribution, Generation, Strategy, adam_step, sums};

/// A standard deviation for each parameter, which is learned, too: `evosax.algorithms.PGPE` with Adam. The
/// strategy's own state is these standard deviations `[n]`.
#[derive(Debug)]
pub(crate) struct Pepg {
    /// The first standard deviation.
    pub std_init: f64,
    /// The learning rate of standard deviations.
    pub std_lr: f64,
    /// The largest change of a standard deviation in a generation, as a share of it.
    pub std_max_change: f64,
}

impl Strategy for Pepg {
    fn start(&self, n: usize) -> Vec<f32> {
        vec![self.std_init as f32; n]
    }

    fn displacement(&self, generation: &Generation, own: &[f32], k: usize, y: &mut [f32]) {
        generation.fill(k, 0, y);
        for (y, std) in y.iter_mut().zip(own) {
            *y *= std;
        }
    }

    /// With y = std z and the centred ranks F of the costs, the gradient of the mean is the sum over pairs of
    /// (F+ - F-) y / N, and that of std the sum of (F+ + F- - 2 mean F) (y^2 - std^2) / (N std)
    /// (`PGPE._tell`).
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution) {
        let shaped = centred_ranks(costs);
        let by = 1.0 / costs.len() as f64;
        let baseline = shaped.iter().sum::<f64>() * by;
        let (plus, minus) = shaped.split_at(costs.len() / 2);
        let pairs = plus.iter().zip(minus).enumerate();
        let weights: Vec<_> = pairs
            .map(|(k, (plus, minus))| {
                (
                    k,
                    ((plus - minus) * by) as f32,
                    ((plus + minus - 2.0 * baseline) * by) as f32,
                )
            })
            .collect();
        let all: f32 = weights.iter().map(|(_, _, weight)| weight).sum();
        let (mut gradient, squares) = sums(generation, &weights, distribution.mean.len(), true);
        let most = self.std_max_change as f32;
        for ((gradient, square), std) in gradient.iter_mut().zip(&squares).zip(distribution.own.iter_mut()) {
            *gradient *= *std;
            let new = *std - self.std_lr as f32 * *std * (square - all);
            *std = new.clamp(*std - most * *std, *std + most * *std);
        }
        adam_step(generation.learning_rate, &gradient, distribution);
    }

    fn mean_std(&self, _: &Generation, own: &[f32]) -> f64 {
        own.iter().map(|&std| f64::from(std)).sum::<f64>() / own.len().max(1) as f64
    }
}
