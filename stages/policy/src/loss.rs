//! PPO's clipped loss and its gradient with respect to logits and values (Schulman and others, 2017), 16 samples at a time.

use crate::Architecture;
use crate::distribution::{Lanes, Softmax, load, store};
use crate::gaussian::{self, Drawn};
use crate::kernels::Level;
use crate::kernels::kernel;
use crate::kernels::math::{clamp, exp};
use crate::model::{Batch, LossSettings, Losses};

/// What the loss needs of n samples, beside what the network says of them.
#[derive(Default)]
pub(crate) struct Samples {
    /// `[n, A]`.
    pub mask: Vec<bool>,
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
        self.mask.clear();
        self.actions.clear();
        self.numbers.clear();
        self.old_log_prob.clear();
        self.old_value.clear();
        self.advantage.clear();
        self.target.clear();
    }

    /// Takes down sample i of a rollout; `moments` are the mean of the advantages and the reciprocal of their deviation.
    pub fn push(&mut self, batch: &Batch, i: usize, architecture: &Architecture, moments: (f32, f32)) {
        let a = architecture.num_actions;
        self.mask.extend_from_slice(&batch.mask[i * a..(i + 1) * a]);
        self.actions.push(batch.choice(i, architecture));
        self.numbers.extend_from_slice(batch.number(i, architecture));
        self.old_log_prob.push(batch.old_log_prob[i]);
        self.old_value.push(batch.old_value[i]);
        self.advantage.push((batch.advantage[i] - moments.0) * moments.1);
        self.target.push(batch.target[i]);
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.actions.len()
    }
}

/// 16 numbers of `values` from `at` on; `rest` where there are fewer.
#[inline(always)]
fn lanes(values: &[f32], at: usize, rest: f32) -> Lanes {
    let mut out = [rest; 16];
    match values.get(at..at + 16) {
        Some(all) => out.copy_from_slice(all),
        None => {
            let some = &values[at..];
            out[..some.len()].copy_from_slice(some);
        }
    }
    out
}

fn total(lanes: &[f64; 16]) -> f64 {
    lanes.iter().sum()
}

/// Where actions are numbers, the logarithms of their standard deviations, and their gradient, which is added to.
pub(crate) struct Deviations<'a> {
    pub log_std: &'a [f32],
    pub gradient: &'a mut [f32],
}

/// Adds up the policy's losses of the samples (sums, not means). `said` `[n, A]`, logits or means, becomes the gradient of the loss times
/// `weight` with respect to it.
pub(crate) fn policy(
    level: Level,
    samples: &Samples,
    settings: &LossSettings,
    weight: f32,
    deviations: Option<Deviations>,
    softmax: &mut Softmax,
    said: &mut [f32],
    sums: &mut Losses,
) {
    let Some(Deviations { log_std, gradient }) = deviations else {
        return choices(level, samples, settings, weight, softmax, said, sums);
    };
    let drawn = Drawn {
        actions: &samples.numbers,
        old_log_prob: &samples.old_log_prob,
        advantage: &samples.advantage,
        log_std,
    };
    gaussian::policy(level, drawn, settings, weight, said, gradient, sums);
}

#[inline(always)]
fn choices_body<const FMA: bool>(
    samples: &Samples,
    settings: &LossSettings,
    weight: f32,
    softmax: &mut Softmax,
    logits: &mut [f32],
    sums: &mut Losses,
) {
    let (low, high) = (1.0 - settings.clip_range, 1.0 + settings.clip_range);
    let n = samples.len();
    let num_actions = logits.len() / n.max(1);
    let [mut policy, mut entropies, mut kl, mut outside] = [[0.0_f64; 16]; 4];
    for at in (0..n).step_by(16) {
        let count = (n - at).min(16);
        let range = at * num_actions..(at + count) * num_actions;
        load(
            &logits[range.clone()],
            &samples.mask[range.clone()],
            num_actions,
            softmax,
        );
        softmax.normalise::<FMA>();
        let mut actions = [0_u32; 16];
        actions[..count].copy_from_slice(&samples.actions[at..at + count]);
        let mut chosen = [0.0_f32; 16];
        let mut entropy = [0.0_f32; 16];
        for (j, (log_prob, p)) in softmax.log_prob.iter().zip(&softmax.p).enumerate() {
            for r in 0..16 {
                chosen[r] = if actions[r] == j as u32 { log_prob[r] } else { chosen[r] };
                // Where an action is illegal, its probability is 0 and its logarithm finite.
                entropy[r] -= p[r] * log_prob[r];
            }
        }
        let old = lanes(&samples.old_log_prob, at, 0.0);
        let advantage = lanes(&samples.advantage, at, 0.0);
        let mut by_log_prob = [0.0_f32; 16];
        for r in 0..16 {
            let log_ratio = chosen[r] - old[r];
            let ratio = exp::<FMA>(log_ratio);
            let clipped = advantage[r] * clamp(ratio, low, high);
            let plain = advantage[r] * ratio;
            // Where the clipped term is the smaller, no gradient flows.
            by_log_prob[r] = if plain <= clipped { -plain } else { 0.0 };
            let counts = if r < count { 1.0 } else { 0.0 };
            policy[r] -= counts * f64::from(if plain <= clipped { plain } else { clipped });
            entropies[r] += counts * f64::from(entropy[r]);
            kl[r] += counts * f64::from(ratio - 1.0 - log_ratio);
            outside[r] += if (ratio - 1.0).abs() > settings.clip_range {
                counts
            } else {
                0.0
            };
        }
        for (j, (x, (log_prob, p))) in softmax
            .x
            .iter_mut()
            .zip(softmax.log_prob.iter().zip(&softmax.p))
            .enumerate()
        {
            let legal = &softmax.legal[j];
            for r in 0..16 {
                let hit = if actions[r] == j as u32 { 1.0 } else { 0.0 };
                let slope = by_log_prob[r] * (hit - p[r]) + settings.ent_coef * p[r] * (log_prob[r] + entropy[r]);
                x[r] = if legal[r] { weight * slope } else { 0.0 };
            }
        }
        store(&softmax.x, &mut logits[range]);
    }
    sums.policy += total(&policy);
    sums.entropy += total(&entropies);
    sums.approx_kl += total(&kl);
    sums.clip_fraction += total(&outside);
}
kernel! {
    /// [`policy`] where actions are choices.
    fn choices(samples: &Samples, settings: &LossSettings, weight: f32, softmax: &mut Softmax, logits: &mut [f32], sums: &mut Losses) = choices_body
}

#[inline(always)]
fn value_body<const FMA: bool>(
    samples: &Samples,
    settings: &LossSettings,
    weight: f32,
    value: &mut [f32],
    sums: &mut Losses,
) {
    let range = settings.clip_range_vf.unwrap_or(f32::INFINITY);
    let weight = weight * settings.vf_coef * 2.0;
    let mut squares = [0.0_f64; 16];
    for (i, part) in value.chunks_mut(16).enumerate() {
        let (old, target) = (
            lanes(&samples.old_value, 16 * i, 0.0),
            lanes(&samples.target, 16 * i, 0.0),
        );
        let new = lanes(part, 0, 0.0);
        let mut slope = [0.0_f32; 16];
        for r in 0..16 {
            let moved = new[r] - old[r];
            let used = if settings.clip_range_vf.is_some() {
                old[r] + clamp(moved, -range, range)
            } else {
                new[r]
            };
            let error = used - target[r];
            squares[r] += f64::from(error) * f64::from(error);
            slope[r] = if moved.abs() > range { 0.0 } else { weight * error };
        }
        part.copy_from_slice(&slope[..part.len()]);
    }
    sums.value += total(&squares);
}
kernel! {
    /// The same for the critic's losses and its values `[n]`.
    pub(crate) fn value(samples: &Samples, settings: &LossSettings, weight: f32, value: &mut [f32], sums: &mut Losses) = value_body
}
