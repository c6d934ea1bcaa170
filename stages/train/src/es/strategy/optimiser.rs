//! Adam with optax's constants.

use super::Distribution;
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise::{AdamStep, adam};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// A step of Adam (Kingma and Ba, 2015) down the gradient, as `optax.adam` makes it.
pub(super) fn step(learning_rate: f64, gradient: &[f32], distribution: &mut Distribution) {
    let (m, v, steps) = &mut distribution.adam;
    **steps += 1;
    let t = **steps as f64;
    let step = AdamStep {
        gradient_scale: 1.0,
        rate: (learning_rate / (1.0 - libm::pow(BETA1, t))) as f32,
        second_correction: (1.0 / libm::sqrt(1.0 - libm::pow(BETA2, t))) as f32,
        beta1: BETA1 as f32,
        beta2: BETA2 as f32,
        epsilon: EPSILON as f32,
        least: 0.0,
    };
    adam(InstructionSet::detect(), step, distribution.mean, gradient, m, v);
}
