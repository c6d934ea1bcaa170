//! The squashed normal distribution of soft actor-critic (Haarnoja and others, 2018): a = tanh u, where u is
//! normal and the network gives its mean and standard deviation, within the bounds of stable-baselines3.
//!
//! Networks see actions within -1 and 1; environments see them scaled to the bounds of the action space.

use crate::kernels::math::{clamp, exp, ln, tanh};
use stages_numerics::kernel;

/// The bounds of the logarithm of the standard deviation.
pub const LOG_STD: (f32, f32) = (-20.0, 2.0);

/// The term added to 1 - a^2 under the logarithm.
const EPSILON: f32 = 1e-6;

/// ln(2 pi) / 2.
const HALF_LN_TAU: f32 = 0.918_938_5;

kernel![
    /// Draws actions `[n, A]` and writes their log-densities `[n]`, from outputs `[n, 2 A]` (means, then
    /// logarithms of standard deviations) and standard normal numbers `[n, A]`.
    pub fn sample(outputs: &[f32], noise: &[f32], action: &mut [f32], log_prob: &mut [f32]) {
        let a = action.len() / log_prob.len().max(1);
        for (i, log_prob) in log_prob.iter_mut().enumerate() {
            let (mean, log_std) = outputs[2 * i * a..2 * (i + 1) * a].split_at(a);
            *log_prob = 0.0;
            for j in 0..a {
                let (e, log_std) = (noise[i * a + j], clamp(log_std[j], LOG_STD.0, LOG_STD.1));
                let x = tanh::<FMA>(mean[j] + exp::<FMA>(log_std) * e);
                action[i * a + j] = x;
                *log_prob -= 0.5 * e * e + log_std + HALF_LN_TAU + ln::<FMA>(1.0 - x * x + EPSILON);
            }
        }
    }

    /// Overwrites outputs `[n, 2 A]` with the derivative of a loss with respect to them, given its
    /// derivatives with respect to the actions `[n, A]` that [`sample`] drew and with respect to each
    /// log-density.
    pub fn back(
        outputs: &mut [f32],
        a: usize,
        noise: &[f32],
        action: &[f32],
        grad_action: &[f32],
        grad_log_prob: f32,
    ) {
        for (i, row) in outputs.chunks_exact_mut(2 * a).enumerate() {
            let (mean, log_std) = row.split_at_mut(a);
            for j in 0..a {
                let (e, x) = (noise[i * a + j], action[i * a + j]);
                let slope = 1.0 - x * x;
                // Through a = tanh u: the action, and the last term of its density.
                let du = slope * (grad_action[i * a + j] + grad_log_prob * 2.0 * x / (slope + EPSILON));
                let bounded = clamp(log_std[j], LOG_STD.0, LOG_STD.1);
                let within = bounded == log_std[j];
                mean[j] = du;
                log_std[j] = if within {
                    du * exp::<FMA>(bounded) * e - grad_log_prob
                } else {
                    0.0
                };
            }
        }
    }
];

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::dispatch::InstructionSet;
    use stages_numerics::random::Random;

    /// The loss sum c a + d ln p in double precision.
    fn loss(outputs: &[f64], noise: &[f32], c: &[f32], d: f64, a: usize) -> f64 {
        let mut sum = 0.0;
        for (i, row) in outputs.chunks_exact(2 * a).enumerate() {
            for j in 0..a {
                let (e, log_std) = (f64::from(noise[i * a + j]), row[a + j].clamp(-20.0, 2.0));
                let x = libm::tanh(row[j] + libm::exp(log_std) * e);
                let log_prob =
                    -0.5 * e * e - log_std - f64::from(HALF_LN_TAU) - libm::log(1.0 - x * x + 1e-6);
                sum += f64::from(c[i * a + j]) * x + d * log_prob;
            }
        }
        sum
    }

    #[test]
    fn densities_and_derivatives_by_differences() {
        let (n, a, d) = (5, 3, 0.3);
        let random = &mut Random::new(&[8]);
        let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
        let (mut outputs, noise, c) = (floats(n * 2 * a), floats(n * a), floats(n * a));
        outputs[a] = 2.5;
        let wide: Vec<f64> = outputs.iter().map(|&x| f64::from(x)).collect();
        for instructions in InstructionSet::available() {
            let (mut action, mut log_prob) = (vec![0.0; n * a], vec![0.0; n]);
            sample(instructions, &outputs, &noise, &mut action, &mut log_prob);
            let found: f64 = action.iter().zip(&c).map(|(x, c)| f64::from(x * c)).sum::<f64>()
                + d * log_prob.iter().map(|&x| f64::from(x)).sum::<f64>();
            assert!((found - loss(&wide, &noise, &c, d, a)).abs() < 2e-3, "{found}");
            let mut back_to = outputs.clone();
            back(instructions, &mut back_to, a, &noise, &action, &c, d as f32);
            for i in 0..wide.len() {
                let moved = |by: f64| {
                    let mut moved = wide.clone();
                    moved[i] += by;
                    loss(&moved, &noise, &c, d, a)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (slope - f64::from(back_to[i])).abs() < 2e-3 * slope.abs().max(1.0),
                    "{i}: {slope} {}",
                    back_to[i]
                );
            }
        }
    }
}
