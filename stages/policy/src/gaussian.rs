//! The distribution of actions that are numbers: independent normals, whose standard deviations are parameters and do not depend on the
//! observation. Actions are drawn from all numbers and held to their range by the environment (clipping, not squashing), as
//! stable-baselines3 does: what is learned from is the action as it was drawn.

use crate::kernels::kernel;
use crate::kernels::math::{clamp, exp, mul_add};
use crate::model::{LossSettings, Losses};

/// ln(2 pi) / 2.
const HALF_LN_TAU: f32 = 0.918_938_5;

/// The log-density of an action `[A]`: the sum over its components of -((x - mean) / std)^2 / 2 - ln std - ln(2 pi) / 2.
pub fn log_prob(action: &[f32], mean: &[f32], log_std: &[f32]) -> f32 {
    let mut sum = 0.0;
    for ((x, mean), log_std) in action.iter().zip(mean).zip(log_std) {
        let z = (x - mean) * libm::expf(-log_std);
        sum -= 0.5 * z * z + log_std + HALF_LN_TAU;
    }
    sum
}

/// The entropy in nats: the sum over components of ln std + ln(2 pi e) / 2.
pub fn entropy(log_std: &[f32]) -> f32 {
    log_std.iter().map(|log_std| log_std + HALF_LN_TAU + 0.5).sum()
}

/// mean + std x `normal()`, component by component.
pub fn sample(mean: &[f32], log_std: &[f32], mut normal: impl FnMut() -> f64, action: &mut [f32]) {
    for ((x, mean), log_std) in action.iter_mut().zip(mean).zip(log_std) {
        *x = mean + libm::expf(*log_std) * normal() as f32;
    }
}

/// What the loss needs of n samples beside the means.
#[derive(Clone, Copy)]
pub(crate) struct Drawn<'a> {
    /// Actions `[n, A]`.
    pub actions: &'a [f32],
    /// Their log-densities then `[n]`.
    pub old_log_prob: &'a [f32],
    /// Advantages `[n]`, normalised if that was asked for.
    pub advantage: &'a [f32],
    /// `[A]`.
    pub log_std: &'a [f32],
}

#[inline(always)]
fn policy_body<const FMA: bool>(
    drawn: Drawn,
    settings: &LossSettings,
    weight: f32,
    mean: &mut [f32],
    dlog_std: &mut [f32],
    sums: &mut Losses,
) {
    let a = drawn.log_std.len();
    let (low, high) = (1.0 - settings.clip_range, 1.0 + settings.clip_range);
    let entropy = entropy(drawn.log_std);
    for (i, (mean, actions)) in mean.chunks_exact_mut(a).zip(drawn.actions.chunks_exact(a)).enumerate() {
        let mut new = 0.0;
        for j in 0..a {
            let z = (actions[j] - mean[j]) * exp::<FMA>(-drawn.log_std[j]);
            new -= mul_add::<FMA>(0.5 * z, z, drawn.log_std[j] + HALF_LN_TAU);
        }
        let log_ratio = new - drawn.old_log_prob[i];
        let ratio = exp::<FMA>(log_ratio);
        let advantage = drawn.advantage[i];
        let (plain, clipped) = (advantage * ratio, advantage * clamp(ratio, low, high));
        // Where the clipped term is the smaller, no gradient flows.
        let by_log_prob = if plain <= clipped { -weight * plain } else { 0.0 };
        sums.policy -= f64::from(if plain <= clipped { plain } else { clipped });
        sums.entropy += f64::from(entropy);
        sums.approx_kl += f64::from(ratio - 1.0 - log_ratio);
        sums.clip_fraction += if (ratio - 1.0).abs() > settings.clip_range {
            1.0
        } else {
            0.0
        };
        for j in 0..a {
            let by = exp::<FMA>(-drawn.log_std[j]);
            let z = (actions[j] - mean[j]) * by;
            mean[j] = by_log_prob * z * by;
            dlog_std[j] += mul_add::<FMA>(by_log_prob, z * z - 1.0, -weight * settings.ent_coef);
        }
    }
}
kernel! {
    /// Adds up the policy's losses of the samples (sums, not means). `mean` `[n, A]` becomes the gradient of the loss times `weight` with
    /// respect to the means; that with respect to `log_std` is added to `dlog_std`.
    pub(crate) fn policy(drawn: Drawn<'_>, settings: &LossSettings, weight: f32, mean: &mut [f32], dlog_std: &mut [f32], sums: &mut Losses) = policy_body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Level;
    use stages_numerics::random::Random;

    /// N(0.3, 0.5^2) and N(-1, 2^2): densities and entropies in closed form.
    #[test]
    fn as_in_closed_form() {
        let (mean, log_std) = ([0.3_f32, -1.0], [0.5_f32.ln(), 2.0_f32.ln()]);
        let density = |x: f64, mean: f64, std: f64| {
            libm::exp(-0.5 * ((x - mean) / std).powi(2)) / (std * libm::sqrt(2.0 * std::f64::consts::PI))
        };
        for action in [[0.3, -1.0], [1.3, 2.0], [-0.9, -7.0]] {
            let exact = libm::log(
                density(f64::from(action[0]), f64::from(mean[0]), 0.5) * density(f64::from(action[1]), -1.0, 2.0),
            );
            assert!((f64::from(log_prob(&action, &mean, &log_std)) - exact).abs() < 1e-5);
        }
        let exact = libm::log(2.0 * std::f64::consts::PI * std::f64::consts::E * 0.5 * 2.0);
        assert!((f64::from(entropy(&log_std)) - exact).abs() < 1e-6);

        let mut random = Random::new(&[4]);
        let (n, mut sums, mut squares) = (200_000, [0.0; 2], [0.0; 2]);
        let mut action = [0.0; 2];
        for _ in 0..n {
            sample(&mean, &log_std, || random.normal(), &mut action);
            for j in 0..2 {
                sums[j] += f64::from(action[j]);
                squares[j] += f64::from(action[j]).powi(2);
            }
        }
        for (j, std) in [0.5, 2.0].into_iter().enumerate() {
            let m = sums[j] / f64::from(n);
            assert!((m - f64::from(mean[j])).abs() < 0.02, "{m}");
            assert!(((squares[j] / f64::from(n) - m * m).sqrt() / std - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let (n, a) = (7, 3);
        let mut random = Random::new(&[5]);
        let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
        let (actions, mean, log_std, advantage) = (floats(n * a), floats(n * a), floats(a), floats(n));
        let old: Vec<f32> = floats(n).iter().map(|x| 0.1 * x - 4.0).collect();
        let settings = LossSettings {
            clip_range: 0.5,
            clip_range_vf: None,
            ent_coef: 0.1,
            vf_coef: 0.5,
            normalize_advantage: true,
        };
        // In double precision, from the definition.
        let loss = |mean: &[f64], log_std: &[f64]| {
            let mut sum = 0.0;
            for i in 0..n {
                let mut new = 0.0;
                for j in 0..a {
                    let z = (f64::from(actions[i * a + j]) - mean[i * a + j]) / libm::exp(log_std[j]);
                    new -= 0.5 * z * z + log_std[j] + 0.5 * libm::log(2.0 * std::f64::consts::PI);
                }
                let ratio = libm::exp(new - f64::from(old[i]));
                let advantage = f64::from(advantage[i]);
                sum -= (advantage * ratio).min(advantage * ratio.clamp(0.5, 1.5));
                let entropy: f64 = log_std
                    .iter()
                    .map(|s| s + 0.5 * libm::log(2.0 * std::f64::consts::PI * std::f64::consts::E))
                    .sum();
                sum -= 0.1 * entropy;
            }
            sum / n as f64
        };
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (wide_mean, wide_log_std) = (wide(&mean), wide(&log_std));
        for level in Level::all() {
            let (mut dmean, mut dlog_std, mut sums) = (mean.clone(), vec![0.0; a], Losses::default());
            let drawn = Drawn {
                actions: &actions,
                old_log_prob: &old,
                advantage: &advantage,
                log_std: &log_std,
            };
            policy(
                level,
                drawn,
                &settings,
                1.0 / n as f32,
                &mut dmean,
                &mut dlog_std,
                &mut sums,
            );
            let total = (sums.policy - 0.1 * sums.entropy) / n as f64;
            let exact = loss(&wide_mean, &wide_log_std);
            assert!((total - exact).abs() < 1e-5 * exact.abs().max(1.0), "{total} {exact}");
            let h = 1e-5;
            for (k, &found) in dmean.iter().chain(&dlog_std).enumerate() {
                let at = |step: f64| {
                    let (mut mean, mut log_std) = (wide_mean.clone(), wide_log_std.clone());
                    match k.checked_sub(n * a) {
                        None => mean[k] += step,
                        Some(j) => log_std[j] += step,
                    }
                    loss(&mean, &log_std)
                };
                let exact = (at(h) - at(-h)) / (2.0 * h);
                assert!(
                    (f64::from(found) - exact).abs() < 1e-4 * exact.abs().max(1.0),
                    "{level:?} {k}: {found} {exact}"
                );
            }
        }
    }
}
