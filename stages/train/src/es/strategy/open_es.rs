//! OpenAI-ES (Salimans and others, "Evolution strategies as a scalable alternative to reinforcement
//! learning", 2017).

use super::shaping::centred_ranks;
use super::{Distribution, Generation, Strategy, adam_step, sums};

/// Antithetic sampling, centred ranks and Adam: `evosax.algorithms.Open_ES`.
#[derive(Debug)]
pub(crate) struct OpenEs;

impl Strategy for OpenEs {
    fn displacement(&self, generation: &Generation, _: &[f32], k: usize, y: &mut [f32]) {
        generation.fill(k, 0, y);
        let std = generation.std as f32;
        for y in y {
            *y *= std;
        }
    }

    /// The gradient is the sum of F z / (N std) over members, F their centred ranks (`Open_ES._tell`).
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution) {
        let shaped = centred_ranks(costs);
        let by = 1.0 / (costs.len() as f64 * generation.std);
        let (plus, minus) = shaped.split_at(costs.len() / 2);
        let pairs = plus.iter().zip(minus).enumerate();
        let weights: Vec<_> = pairs
            .map(|(k, (plus, minus))| (k, ((plus - minus) * by) as f32, 0.0))
            .collect();
        let (gradient, _) = sums(generation, &weights, distribution.mean.len(), false);
        adam_step(generation.learning_rate, &gradient, distribution);
    }

    fn mean_std(&self, generation: &Generation, _: &[f32]) -> f64 {
        generation.std
    }
}
