//! Augmented random search (Mania and others, "Simple random search of static linear policies is competitive
//! for reinforcement learning", 2018).

use super::{Distribution, Generation, Strategy, adam_step, sums};
use stages_numerics::statistics::order;

/// The share of the pairs from which the strategy learns.
const ELITE_RATIO: f64 = 0.5;

/// The best half of the pairs, weighted by the difference of their costs over the standard deviation of these
/// costs, with Adam: `evosax.algorithms.ARS`.
#[derive(Debug)]
pub(crate) struct Ars;

impl Strategy for Ars {
    fn displacement(&self, generation: &Generation, own: &[f32], k: usize, y: &mut [f32]) {
        super::OpenEs.displacement(generation, own, k, y);
    }

    /// The gradient is the sum over elites of (f+ - f-) z over their number and the standard deviation of
    /// their costs (`ARS._tell`).
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution) {
        let (plus, minus) = costs.split_at(costs.len() / 2);
        let best: Vec<f64> = plus.iter().zip(minus).map(|(plus, minus)| plus.min(*minus)).collect();
        let elites = ((ELITE_RATIO * costs.len() as f64 / 2.0) as usize).max(1);
        let mut elite = order(&best);
        elite.truncate(elites);
        let elite_costs = || elite.iter().flat_map(|&k| [plus[k], minus[k]]);
        let count = 2.0 * elites as f64;
        let mean = elite_costs().sum::<f64>() / count;
        let variance = elite_costs().map(|cost| (cost - mean) * (cost - mean)).sum::<f64>() / count;
        let by = 1.0 / (elites as f64 * variance.sqrt().max(1e-8));
        let weights: Vec<_> = elite
            .iter()
            .map(|&k| (k, ((plus[k] - minus[k]) * by) as f32, 0.0))
            .collect();
        let (gradient, _) = sums(generation, &weights, distribution.mean.len(), false);
        adam_step(generation.learning_rate, &gradient, distribution);
    }

    fn mean_std(&self, generation: &Generation, _: &[f32]) -> f64 {
        generation.std
    }
}
