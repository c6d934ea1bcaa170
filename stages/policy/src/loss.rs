//! PPO's clipped loss and its gradient with respect to logits and values (Schulman and others, 2017).

use crate::gaussian::{self, Drawn};
use crate::kernels::Level;
use crate::model::{LossSettings, Losses};

/// What the loss needs of n samples, beside what the network says of them.
#[derive(Default)]
pub(crate) struct Samples {
    pub actions: Vec<u32>,
    /// Actions that are numbers `[n, A]`.
    pub numbers: Vec<f32>,
    pub old_log_prob: Vec<f32>,
    pub old_value: Vec<f32>,
    /// Normalised, if that was asked for.
    pub advantage: Vec<f32>,
    pub target: Vec<f32>,
}

impl Samples {
    pub fn clear(&mut self) {
        self.actions.clear();
        self.numbers.clear();
        self.old_log_prob.clear();
        self.old_value.clear();
        self.advantage.clear();
        self.target.clear();
    }
}

/// Adds up the losses of the samples (sums, not means). `log_prob` `[n, A]` becomes the gradient of the mean loss over `total`
/// samples with respect to the logits, `value` `[n]` that with respect to the values.
pub(crate) fn clipped(
    samples: &Samples,
    settings: &LossSettings,
    num_actions: usize,
    total: usize,
    log_prob: &mut [f32],
    value: &mut [f32],
) -> Losses {
    let weight = 1.0 / total as f32;
    let mut sums = Losses::default();
    policy(samples, settings, num_actions, weight, log_prob, &mut sums);
    self::value(samples, settings, weight, value, &mut sums);
    sums
}

/// The same where actions are numbers: `mean` `[n, A]` becomes the gradient with respect to the means, and that with respect to
/// `log_std` `[A]` is added to `dlog_std`.
pub(crate) fn clipped_numbers(
    level: Level,
    samples: &Samples,
    settings: &LossSettings,
    total: usize,
    log_std: &[f32],
    dlog_std: &mut [f32],
    mean: &mut [f32],
    value: &mut [f32],
) -> Losses {
    let weight = 1.0 / total as f32;
    let mut sums = Losses::default();
    let drawn = Drawn {
        actions: &samples.numbers,
        old_log_prob: &samples.old_log_prob,
        advantage: &samples.advantage,
        log_std,
    };
    gaussian::policy(level, drawn, settings, weight, mean, dlog_std, &mut sums);
    self::value(samples, settings, weight, value, &mut sums);
    sums
}

fn policy(
    samples: &Samples,
    settings: &LossSettings,
    num_actions: usize,
    weight: f32,
    log_prob: &mut [f32],
    sums: &mut Losses,
) {
    let (low, high) = (1.0 - settings.clip_range, 1.0 + settings.clip_range);
    for (i, row) in log_prob.chunks_exact_mut(num_actions).enumerate() {
        let action = samples.actions[i] as usize;
        let advantage = samples.advantage[i];
        let log_ratio = row[action] - samples.old_log_prob[i];
        let ratio = libm::expf(log_ratio);
        let clipped = advantage * ratio.clamp(low, high);
        let plain = advantage * ratio;
        // Where the clipped term is the smaller, no gradient flows.
        let by_log_prob = if plain <= clipped { -plain } else { 0.0 };
        sums.policy -= f64::from(plain.min(clipped));
        sums.approx_kl += f64::from(ratio - 1.0 - log_ratio);
        sums.clip_fraction += if (ratio - 1.0).abs() > settings.clip_range {
            1.0
        } else {
            0.0
        };

        let entropy = crate::distribution::entropy(row);
        sums.entropy += f64::from(entropy);
        for (j, x) in row.iter_mut().enumerate() {
            let log_prob = *x;
            if log_prob == f32::NEG_INFINITY {
                *x = 0.0;
                continue;
            }
            let p = libm::expf(log_prob);
            let chosen = if j == action { 1.0 } else { 0.0 };
            *x = weight * (by_log_prob * (chosen - p) + settings.ent_coef * p * (log_prob + entropy));
        }
    }
}

fn value(samples: &Samples, settings: &LossSettings, weight: f32, value: &mut [f32], sums: &mut Losses) {
    for (i, value) in value.iter_mut().enumerate() {
        let (old, new) = (samples.old_value[i], *value);
        let (used, inside) = match settings.clip_range_vf {
            Some(range) => (old + (new - old).clamp(-range, range), (new - old).abs() <= range),
            None => (new, true),
        };
        let error = used - samples.target[i];
        sums.value += f64::from(error) * f64::from(error);
        *value = if inside {
            weight * settings.vf_coef * 2.0 * error
        } else {
            0.0
        };
    }
}
