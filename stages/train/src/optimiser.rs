//! Adam with clipping of the gradient's global norm.

use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise::{AdamStep, adam, squares};

/// The epsilon of stable-baselines3, not PyTorch's 1e-8.
const EPSILON: f32 = 1e-5;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;

/// The number of parameters that one task updates.
const CHUNK: usize = 1 << 16;

/// The Euclidean norm of a gradient; the same for any number of threads.
pub fn norm(gradient: &[f32]) -> f64 {
    let instructions = InstructionSet::detect();
    let part = |chunk: &[f32]| {
        let mut sum = 0.0;
        squares(instructions, chunk, &mut sum);
        sum
    };
    let sums: Vec<f64> = if gradient.len() <= 4 * CHUNK {
        gradient.chunks(CHUNK).map(part).collect()
    } else {
        gradient.par_chunks(CHUNK).map(part).collect()
    };
    sums.iter().sum::<f64>().sqrt()
}

/// Step number `step` (from 1) of Adam (Kingma and Ba, 2015), with the usual decay of its moments.
pub(crate) fn adam_step(step: u64, learning_rate: f64, gradient_scale: f32, epsilon: f32) -> AdamStep {
    let t = step as f64;
    AdamStep {
        gradient_scale,
        rate: (learning_rate / (1.0 - libm::pow(BETA1, t))) as f32,
        second_correction: (1.0 / libm::sqrt(1.0 - libm::pow(BETA2, t))) as f32,
        beta1: BETA1 as f32,
        beta2: BETA2 as f32,
        epsilon,
        // Units of ReLU that no row of a batch reaches have no gradient.
        least: 1e-30,
    }
}

/// The factor that scales a gradient of norm `norm` down to `max_norm`, as PyTorch's clip_grad_norm_ does.
pub(crate) fn clip(norm: f64, max_norm: f64) -> f32 {
    (max_norm / (norm + 1e-6)).min(1.0) as f32
}

/// Updates the parameters by Adam's step number `step` (from 1), with the gradient of norm `norm` scaled down
/// to `max_norm`.
pub fn update(
    step: u64,
    learning_rate: f64,
    (norm, max_norm): (f64, f64),
    params: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
    v: &mut [f32],
) {
    let coefficients = adam_step(step, learning_rate, clip(norm, max_norm), EPSILON);
    let instructions = InstructionSet::detect();
    if params.len() <= 4 * CHUNK {
        adam(instructions, coefficients, params, gradient, m, v);
        return;
    }
    params
        .par_chunks_mut(CHUNK)
        .zip(gradient.par_chunks(CHUNK))
        .zip(m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK)))
        .for_each(|((params, gradient), (m, v))| adam(instructions, coefficients, params, gradient, m, v));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_minimum_of_a_bowl() {
        let (mut x, mut m, mut v) = (vec![3.0_f32; 10], vec![0.0; 10], vec![0.0; 10]);
        for step in 1..=2000 {
            let gradient: Vec<f32> = x.iter().map(|x| 2.0 * (x - 1.0)).collect();
            let norm = norm(&gradient);
            update(step, 0.01, (norm, 0.5), &mut x, &gradient, &mut m, &mut v);
        }
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-3), "{x:?}");
        assert!((norm(&[3.0; 400_000]) - 3.0 * 400_000_f64.sqrt()).abs() < 1e-6);
    }
}
