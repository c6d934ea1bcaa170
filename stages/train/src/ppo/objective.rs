//! The clipped objective of proximal policy optimisation (Schulman and others, 2017): the losses, and their
//! derivatives with respect to the outputs of a network.

use super::surrogate::{Surrogate, surrogate};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use stages_policy::categorical::{Lanes, Softmax, num_outputs, store};
use stages_policy::kernels::math::{clamp, exp, ln, mul_add};
use stages_policy::{Objective, PolicyOutputs, Sums, gaussian};

/// The clipped objective of a minibatch: policy loss - `ent_coef` x entropy + `vf_coef` x value loss, means
/// over samples. The arrays are those of the rollout.
pub(crate) struct Clipped<'a> {
    /// Action masks `[T, B, A]`.
    pub mask: &'a [bool],
    /// Discrete and multi-discrete actions `[T, B, K]`.
    pub actions: &'a [u32],
    /// Continuous actions `[T, B, A]`.
    pub continuous: &'a [f32],
    /// Log-probabilities of the actions, and values, when the rollout was collected `[T, B]`.
    pub old_log_prob: &'a [f32],
    pub old_value: &'a [f32],
    pub advantage: &'a [f32],
    /// The mean and the reciprocal standard deviation of the minibatch's advantages.
    pub moments: (f32, f32),
    /// The returns `[T, B]`.
    pub target: &'a [f32],
    /// 1 over the number of samples.
    pub weight: f32,
    pub coefficients: Coefficients,
}

/// The coefficients of PPO's loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coefficients {
    /// Bound of |ratio - 1|.
    pub clip_range: f32,
    /// Bound of the change of a value, in units of the return; `None` for no bound.
    pub clip_range_vf: Option<f32>,
    /// Weight of the entropy bonus.
    pub ent_coef: f32,
    /// Weight of the value loss.
    pub vf_coef: f32,
    /// If true, advantages are normalised within the minibatch.
    pub normalize_advantage: bool,
}

/// The means of the losses over a minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// The clipped surrogate, to be minimised.
    pub policy: f64,
    /// Mean squared error of the values (stable-baselines3's; cleanrl reports half of it).
    pub value: f64,
    /// Entropy of the policy in nats, over allowed actions.
    pub entropy: f64,
    /// The mean of (ratio - 1) - ln ratio (Schulman, "Approximating KL divergence", 2020).
    pub approx_kl: f64,
    /// The share of samples whose ratio lies outside the clip range.
    pub clip_fraction: f64,
}

/// The slots of the objective's sums.
const POLICY: usize = 0;
const VALUE: usize = 1;
const ENTROPY: usize = 2;
const APPROX_KL: usize = 3;
const CLIPPED: usize = 4;

impl Losses {
    /// The means over `n` samples.
    pub(crate) fn mean(sums: &Sums, n: usize) -> Self {
        let by = 1.0 / n as f64;
        Self {
            policy: sums[POLICY] * by,
            value: sums[VALUE] * by,
            entropy: sums[ENTROPY] * by,
            approx_kl: sums[APPROX_KL] * by,
            clip_fraction: sums[CLIPPED] * by,
        }
    }

    /// The losses in words.
    pub(crate) fn text(&self) -> String {
        let Self {
            policy,
            value,
            entropy,
            ..
        } = self;
        format!("policy loss {policy}, value loss {value}, entropy {entropy}")
    }

    /// The loss whose gradient is taken.
    pub(crate) fn total(&self, coefficients: &Coefficients) -> f64 {
        self.policy - f64::from(coefficients.ent_coef) * self.entropy
            + f64::from(coefficients.vf_coef) * self.value
    }
}

impl Clipped<'_> {
    /// The surrogate of sample `i`, whose action now has the log-probability `log_prob`; adds the surrogate
    /// and the policy's entropy to the sums.
    #[inline(always)]
    fn surrogate<const FMA: bool>(
        &self,
        i: usize,
        log_prob: f32,
        entropy: f32,
        sums: &mut Sums,
    ) -> Surrogate {
        let advantage = (self.advantage[i] - self.moments.0) * self.moments.1;
        let log_ratio = log_prob - self.old_log_prob[i];
        let surrogate = surrogate::<FMA>(log_ratio, advantage, self.coefficients.clip_range);
        sums[POLICY] -= f64::from(surrogate.value);
        sums[ENTROPY] += f64::from(entropy);
        sums[APPROX_KL] += f64::from(surrogate.kl);
        sums[CLIPPED] += if surrogate.is_outside { 1.0 } else { 0.0 };
        surrogate
    }
}

impl Objective for Clipped<'_> {
    fn policy(&self, instructions: InstructionSet, samples: &[u32], outputs: PolicyOutputs, sums: &mut Sums) {
        match outputs {
            PolicyOutputs::Discrete {
                logits,
                choices,
                softmax,
            } => clipped_discrete(instructions, self, samples, choices, softmax, logits, sums),
            PolicyOutputs::Continuous {
                mean,
                log_std,
                grad_log_std,
            } => clipped_continuous(instructions, self, samples, mean, log_std, grad_log_std, sums),
        }
    }

    fn candidates(
        &self,
        instructions: InstructionSet,
        samples: &[u32],
        logits: &mut [f32],
        starts: &[u32],
        sums: &mut Sums,
    ) {
        clipped_candidates(instructions, self, samples, starts, logits, sums);
    }

    fn value(&self, instructions: InstructionSet, samples: &[u32], value: &mut [f32], sums: &mut Sums) {
        clipped_value(instructions, self, samples, value, sums);
    }
}

/// The element of `of` for each of up to 16 samples; 0 for missing samples.
#[inline(always)]
fn gather(samples: &[u32], of: &[f32]) -> Lanes {
    let mut lanes = [0.0; 16];
    for (lane, &i) in lanes.iter_mut().zip(samples) {
        *lane = of[i as usize];
    }
    lanes
}

fn total(lanes: &[f64; 16]) -> f64 {
    lanes.iter().sum()
}

kernel![
    /// The clipped surrogate and the entropy bonus of discrete actions, 16 samples at a time.
    fn clipped_discrete(
        ppo: &Clipped<'_>,
        samples: &[u32],
        choices: &[u32],
        softmax: &mut Softmax,
        logits: &mut [f32],
        sums: &mut Sums,
    ) {
        let Coefficients {
            clip_range, ent_coef, ..
        } = ppo.coefficients;
        let (num_actions, k) = (num_outputs(choices), choices.len());
        let [mut policy, mut entropies, mut kl, mut outside] = [[0.0_f64; 16]; 4];
        for (samples, logits) in samples.chunks(16).zip(logits.chunks_mut(16 * num_actions)) {
            let count = samples.len();
            let masks = samples
                .iter()
                .map(|&i| &ppo.mask[i as usize * num_actions..][..num_actions]);
            softmax.load(logits, masks, choices);
            softmax.normalise::<FMA>();
            // The columns of the choices.
            let chosen_columns = |component: usize, start: usize| {
                let mut columns = [0_u32; 16];
                for (column, &i) in columns.iter_mut().zip(samples) {
                    *column = start as u32 + ppo.actions[i as usize * k + component];
                }
                columns
            };
            let mut chosen = [0.0_f32; 16];
            let mut all_entropy = [0.0_f32; 16];
            softmax.entropy.clear();
            for (component, columns) in softmax.components.iter().enumerate() {
                let actions = chosen_columns(component, columns.start);
                let (mut chosen_log_prob, mut entropy) = ([0.0_f32; 16], [0.0_f32; 16]);
                for j in columns.clone() {
                    let (log_prob, p) = (&softmax.log_prob[j], &softmax.p[j]);
                    for r in 0..16 {
                        chosen_log_prob[r] = if actions[r] == j as u32 {
                            log_prob[r]
                        } else {
                            chosen_log_prob[r]
                        };
                        // Where a choice is masked, its probability is 0 and its logarithm finite.
                        entropy[r] -= p[r] * log_prob[r];
                    }
                }
                for r in 0..16 {
                    chosen[r] += chosen_log_prob[r];
                    all_entropy[r] += entropy[r];
                }
                softmax.entropy.push(entropy);
            }
            let old = gather(samples, ppo.old_log_prob);
            let mut advantage = gather(samples, ppo.advantage);
            for advantage in &mut advantage[..count] {
                *advantage = (*advantage - ppo.moments.0) * ppo.moments.1;
            }
            let mut grad_log_prob = [0.0_f32; 16];
            for r in 0..16 {
                let surrogate = surrogate::<FMA>(chosen[r] - old[r], advantage[r], clip_range);
                grad_log_prob[r] = surrogate.grad_log_prob;
                let counts = if r < count { 1.0 } else { 0.0 };
                policy[r] -= counts * f64::from(surrogate.value);
                entropies[r] += counts * f64::from(all_entropy[r]);
                kl[r] += counts * f64::from(surrogate.kl);
                outside[r] += if surrogate.is_outside { counts } else { 0.0 };
            }
            for (component, columns) in softmax.components.iter().enumerate() {
                let actions = chosen_columns(component, columns.start);
                let entropy = &softmax.entropy[component];
                for j in columns.clone() {
                    let (x, mask) = (&mut softmax.x[j], &softmax.mask[j]);
                    let (log_prob, p) = (&softmax.log_prob[j], &softmax.p[j]);
                    for r in 0..16 {
                        let hit = if actions[r] == j as u32 { 1.0 } else { 0.0 };
                        let grad =
                            grad_log_prob[r] * (hit - p[r]) + ent_coef * p[r] * (log_prob[r] + entropy[r]);
                        x[r] = if mask[r] { ppo.weight * grad } else { 0.0 };
                    }
                }
            }
            store(&softmax.x, logits);
        }
        sums[POLICY] += total(&policy);
        sums[ENTROPY] += total(&entropies);
        sums[APPROX_KL] += total(&kl);
        sums[CLIPPED] += total(&outside);
    }

    /// The clipped surrogate and the entropy bonus of candidates; those of sample i begin at `starts[i]`.
    fn clipped_candidates(
        ppo: &Clipped<'_>,
        samples: &[u32],
        starts: &[u32],
        logits: &mut [f32],
        sums: &mut Sums,
    ) {
        let ent_coef = ppo.coefficients.ent_coef;
        for (row, &i) in starts.windows(2).zip(samples) {
            let (row, i) = (&mut logits[row[0] as usize..row[1] as usize], i as usize);
            let action = ppo.actions[i] as usize;
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0_f32;
            for &x in &*row {
                sum += exp::<FMA>(x - most);
            }
            let log = most + ln::<FMA>(sum);
            let mut entropy = 0.0_f32;
            for &x in &*row {
                entropy -= exp::<FMA>(x - log) * (x - log);
            }
            let surrogate = ppo.surrogate::<FMA>(i, row[action] - log, entropy, sums);
            let grad_log_prob = surrogate.grad_log_prob;
            for x in &mut *row {
                let (log_prob, p) = (*x - log, exp::<FMA>(*x - log));
                *x = ppo.weight * p * (ent_coef * (log_prob + entropy) - grad_log_prob);
            }
            row[action] += ppo.weight * grad_log_prob;
        }
    }

    /// The clipped surrogate and the entropy bonus of continuous actions.
    fn clipped_continuous(
        ppo: &Clipped<'_>,
        samples: &[u32],
        mean: &mut [f32],
        log_std: &[f32],
        grad_log_std: &mut [f32],
        sums: &mut Sums,
    ) {
        let a = log_std.len();
        let ent_coef = ppo.coefficients.ent_coef;
        let entropy = gaussian::entropy(log_std);
        for (mean, &i) in mean.chunks_exact_mut(a).zip(samples) {
            let i = i as usize;
            let action = &ppo.continuous[i * a..(i + 1) * a];
            let log_prob = gaussian::log_density::<FMA>(action, mean, log_std);
            let surrogate = ppo.surrogate::<FMA>(i, log_prob, entropy, sums);
            let grad_log_prob = ppo.weight * surrogate.grad_log_prob;
            for j in 0..a {
                let by = exp::<FMA>(-log_std[j]);
                let z = (action[j] - mean[j]) * by;
                mean[j] = grad_log_prob * z * by;
                grad_log_std[j] += mul_add::<FMA>(grad_log_prob, z * z - 1.0, -ppo.weight * ent_coef);
            }
        }
    }

    /// The critic's loss.
    fn clipped_value(ppo: &Clipped<'_>, samples: &[u32], value: &mut [f32], sums: &mut Sums) {
        let bound = ppo.coefficients.clip_range_vf;
        let range = bound.unwrap_or(f32::INFINITY);
        let weight = ppo.weight * ppo.coefficients.vf_coef * 2.0;
        let mut squares = [0.0_f64; 16];
        for (samples, part) in samples.chunks(16).zip(value.chunks_mut(16)) {
            let (old, target) = (gather(samples, ppo.old_value), gather(samples, ppo.target));
            let mut new = [0.0_f32; 16];
            new[..part.len()].copy_from_slice(part);
            let mut grad_value = [0.0_f32; 16];
            for r in 0..16 {
                let moved = new[r] - old[r];
                let used = if bound.is_some() {
                    old[r] + clamp(moved, -range, range)
                } else {
                    new[r]
                };
                let error = used - target[r];
                squares[r] += f64::from(error) * f64::from(error);
                grad_value[r] = if moved.abs() > range { 0.0 } else { weight * error };
            }
            part.copy_from_slice(&grad_value[..part.len()]);
        }
        sums[VALUE] += total(&squares);
    }
];
