//! Evolution strategies over flat parameters, as evosax 0.3.2 defines them: ask for a generation's members,
//! tell their costs.
//!
//! A member is mean + y or, where sampling is antithetic, mean - y, for a displacement y that is a function
//! of the state and of a vector of normal numbers, which can be drawn again: neither the population nor its
//! noise is kept. Costs are negated fitnesses: less is better, as there.

mod ars;
mod cma_es;
mod open_es;
mod pepg;
mod sep_cma_es;
mod shaping;
#[cfg(test)]
mod tests;

pub(crate) use ars::Ars;
pub(crate) use cma_es::{CmaEs, MOST as CMA_ES_MOST};
pub(crate) use open_es::OpenEs;
pub(crate) use pepg::Pepg;
pub(crate) use sep_cma_es::SepCmaEs;

use crate::optimiser;
use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise::{AdamStep, adam};
use stages_policy::population::{Noise, add_scaled, add_scaled_square};

/// The present generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation {
    /// The generation's number, from 0.
    pub number: u64,
    /// The standard deviation, where it follows a schedule.
    pub std: f64,
    /// Adam's learning rate, where there is one.
    pub learning_rate: f64,
    /// The generation's standard normal numbers.
    pub noise: Noise,
}

impl Generation {
    /// Elements `start..` of vector `k` of normal numbers; `start` is a multiple of [`BLOCK`].
    fn fill(&self, k: usize, start: usize, out: &mut [f32]) {
        let instructions = InstructionSet::detect();
        self.noise.fill(instructions, self.number, k as u32, start, out);
    }
}

/// The mean and all that a strategy keeps from one generation to the next.
#[derive(Debug)]
pub(crate) struct Distribution<'a> {
    /// The mean of the distribution `[n]`.
    pub mean: &'a mut [f32],
    /// Adam's moments `[n]`, and the number of Adam's steps.
    pub adam: (&'a mut [f32], &'a mut [f32], &'a mut u64),
    /// The strategy's own state, which [`Strategy::start`] begins.
    pub own: &'a mut [f32],
}

/// A strategy for a population of a given size.
pub(crate) trait Strategy: Send + Sync {
    /// True if members come in pairs, mean + y and mean - y: vector k gives the members k and k + half the
    /// population.
    fn antithetic(&self) -> bool {
        true
    }

    /// The state of a distribution of `n` parameters besides its mean.
    fn start(&self, _n: usize) -> Vec<f32> {
        Vec::new()
    }

    /// Computes what all members of the generation share.
    fn prepare(&mut self, _own: &[f32]) {}

    /// The displacement of vector `k` `[n]`.
    fn displacement(&self, generation: &Generation, own: &[f32], k: usize, y: &mut [f32]);

    /// Learns from the costs of all members.
    fn tell(&mut self, generation: &Generation, costs: &[f64], distribution: &mut Distribution);

    /// The mean standard deviation of a parameter.
    fn mean_std(&self, generation: &Generation, own: &[f32]) -> f64;
}

/// A step of Adam down the gradient, with optax's constants.
fn adam_step(learning_rate: f64, gradient: &[f32], distribution: &mut Distribution) {
    let (m, v, steps) = &mut distribution.adam;
    **steps += 1;
    let step = AdamStep {
        least: 0.0,
        ..optimiser::adam_step(**steps, learning_rate, 1.0, 1e-8)
    };
    adam(InstructionSet::detect(), step, distribution.mean, gradient, m, v);
}

/// The number of parameters that are summed over the population together, in the L1 cache.
pub(crate) const BLOCK: usize = 1024;

/// Sums over vectors of normal numbers z: those of weight x z and, if there are weights for them, of weight x
/// z^2. `weights` are (k, weight of z, weight of z^2). Each element is one chain over the vectors, so that
/// the split over threads changes no bit.
fn sums(
    generation: &Generation,
    weights: &[(usize, f32, f32)],
    n: usize,
    squares: bool,
) -> (Vec<f32>, Vec<f32>) {
    let instructions = InstructionSet::detect();
    let (mut first, mut second) = (vec![0.0; n], vec![0.0; if squares { n } else { 0 }]);
    let block = |b: usize, first: &mut [f32], mut second: Option<&mut [f32]>| {
        let mut z = [0.0; BLOCK];
        let z = &mut z[..first.len()];
        for &(k, weight, square_weight) in weights {
            generation.fill(k, b * BLOCK, z);
            add_scaled(instructions, first, weight, z);
            if let Some(second) = &mut second {
                add_scaled_square(instructions, second, square_weight, z);
            }
        }
    };
    if squares {
        let both = first.par_chunks_mut(BLOCK).zip(second.par_chunks_mut(BLOCK));
        both.enumerate()
            .for_each(|(b, (first, second))| block(b, first, Some(second)));
    } else {
        first
            .par_chunks_mut(BLOCK)
            .enumerate()
            .for_each(|(b, first)| block(b, first, None));
    }
    (first, second)
}
