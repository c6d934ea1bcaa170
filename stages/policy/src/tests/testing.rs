//! A synthetic rollout and a plain objective, for tests of models.

use crate::model::{Minibatch, Observed};
use crate::objective::{Objective, PolicyOutputs, Sums};
use crate::{Architecture, Device, categorical, gaussian};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

/// Weight of the entropy bonus.
const ENTROPY: f64 = 0.05;

/// candle's devices: the CPU, and the GPU that the program is built for.
///
/// # Panics
/// When the program is built for a GPU and the machine has none.
pub(crate) fn devices() -> Vec<candle_core::Device> {
    let built_in = Device::ALL.into_iter().filter(|device| device.is_built_in());
    built_in.map(|device| device.open().unwrap()).collect()
}

/// Each architecture with each device.
pub(crate) fn on_devices(architectures: Vec<Architecture>) -> Vec<(Architecture, candle_core::Device)> {
    let pairs = |device: candle_core::Device| architectures.iter().map(move |a| (a.clone(), device.clone()));
    devices().into_iter().flat_map(pairs).collect()
}

/// The Euclidean norm.
pub(crate) fn norm(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

/// A synthetic rollout of T steps of B columns, time-major.
pub(crate) struct Data {
    pub steps: usize,
    pub columns: usize,
    pub obs: Vec<f32>,
    pub mask: Vec<bool>,
    pub episode_start: Vec<bool>,
    pub state: Vec<f32>,
    /// Discrete actions `[T, B, K]`.
    pub actions: Vec<u32>,
    /// Continuous actions `[T, B, A]`.
    pub continuous: Vec<f32>,
    pub old_log_prob: Vec<f32>,
    pub advantage: Vec<f32>,
    pub target: Vec<f32>,
    pub indices: Vec<u32>,
}

impl Data {
    /// Two thirds of the columns are in the minibatch.
    pub(crate) fn new(architecture: &Architecture, steps: usize, columns: usize, seed: u64) -> Self {
        let random = &mut Random::new(&[seed]);
        let n = steps * columns;
        let a = architecture.head.num_outputs();
        let mut floats =
            |len: usize, scale: f64| (0..len).map(|_| (scale * random.normal()) as f32).collect::<Vec<_>>();
        let obs = floats(n * architecture.obs_dim, 1.0);
        let state = match architecture.transformer {
            // Its states have a structure.
            Some(_) => vec![0.0; columns * architecture.state_len()],
            None => floats(columns * architecture.state_len(), 0.5),
        };
        let continuous = floats(n * a, 1.0);
        let old_log_prob = floats(n, 0.2).iter().map(|x| -1.2 + x).collect();
        let (advantage, target) = (floats(n, 2.0), floats(n, 1.0));
        let mut mask: Vec<bool> = (0..n * a).map(|_| random.uniform() < 0.7).collect();
        let choices = architecture.head.choices();
        let mut actions = Vec::new();
        for row in mask.chunks_exact_mut(a) {
            for component in categorical::components(choices) {
                let action = random.below(component.len() as u64) as u32;
                row[component.start + action as usize] = true;
                actions.push(action);
            }
        }
        let episode_start = (0..n).map(|_| random.uniform() < 0.2).collect();
        let mut indices: Vec<u32> = (0..columns as u32).collect();
        random.shuffle(&mut indices);
        indices.truncate(columns * 2 / 3);
        Self {
            steps,
            columns,
            obs,
            mask,
            episode_start,
            state,
            actions,
            continuous,
            old_log_prob,
            advantage,
            target,
            indices,
        }
    }

    pub(crate) fn minibatch(&self) -> Minibatch<'_> {
        Minibatch {
            steps: self.steps,
            columns: self.columns,
            obs: &self.obs,
            episode_start: &self.episode_start,
            state: &self.state,
            candidates: &[],
            indices: &self.indices,
        }
    }

    /// The observations of step t.
    pub(crate) fn input(&self, architecture: &Architecture, t: usize) -> Observed<'_> {
        let (d, a) = (architecture.obs_dim, architecture.head.num_outputs());
        let rows = t * self.columns..(t + 1) * self.columns;
        Observed {
            obs: &self.obs[rows.start * d..rows.end * d],
            mask: &self.mask[rows.start * a..rows.end * a],
            episode_start: &self.episode_start[rows],
            candidates: None,
        }
    }

    /// The log-probability of the action of a row, of that row's log-probabilities `[A]`.
    pub(crate) fn log_prob(&self, architecture: &Architecture, row: usize, log_prob: &[f32]) -> f32 {
        let k = architecture.head.num_components();
        let action = &self.actions[row * k..(row + 1) * k];
        let columns = categorical::components(architecture.head.choices());
        columns
            .zip(action)
            .map(|(columns, &choice)| log_prob[columns][choice as usize])
            .sum()
    }

    pub(crate) fn objective(&self) -> PolicyGradient<'_> {
        PolicyGradient {
            data: self,
            weight: 1.0 / (self.steps * self.indices.len()) as f64,
            value_weight: 0.5,
        }
    }
}

/// The plain policy gradient with a value loss, in double precision: the mean of
/// -advantage ln pi(action) - 0.05 entropy + `value_weight` (value - target)^2.
pub(crate) struct PolicyGradient<'a> {
    data: &'a Data,
    weight: f64,
    pub value_weight: f64,
}

impl PolicyGradient<'_> {
    /// The loss whose gradient is taken.
    pub(crate) fn loss(&self, sums: &Sums) -> f64 {
        self.weight * (sums[0] + self.value_weight * sums[1])
    }

    /// The sums of the squared errors of the values, and of |ln pi(action) - old_log_prob|.
    pub(crate) fn errors(&self, sums: &Sums) -> (f64, f64) {
        (sums[1], sums[2])
    }
}

impl Objective for PolicyGradient<'_> {
    fn policy(&self, _: InstructionSet, samples: &[u32], outputs: PolicyOutputs, sums: &mut Sums) {
        let data = self.data;
        match outputs {
            PolicyOutputs::Discrete { logits, choices, .. } => {
                let (a, k) = (logits.len() / samples.len(), choices.len());
                for (row, &i) in logits.chunks_exact_mut(a).zip(samples) {
                    let i = i as usize;
                    let advantage = f64::from(data.advantage[i]);
                    let mut all = 0.0;
                    for (component, columns) in categorical::components(choices).enumerate() {
                        let mask = &data.mask[i * a..][columns.clone()];
                        let action = data.actions[i * k + component] as usize;
                        let row = &mut row[columns];
                        let mut log_prob = row.to_vec();
                        categorical::log_softmax(&mut log_prob, mask);
                        let p: Vec<f64> = log_prob.iter().map(|&x| libm::exp(f64::from(x))).collect();
                        let plain = |x: f32| if x == f32::NEG_INFINITY { 0.0 } else { f64::from(x) };
                        let entropy: f64 = -p.iter().zip(&log_prob).map(|(p, &x)| p * plain(x)).sum::<f64>();
                        sums[0] -= advantage * f64::from(log_prob[action]) + ENTROPY * entropy;
                        all += log_prob[action];
                        for (j, x) in row.iter_mut().enumerate() {
                            let hit = if j == action { 1.0 } else { 0.0 };
                            let slope =
                                advantage * (p[j] - hit) + ENTROPY * p[j] * (plain(log_prob[j]) + entropy);
                            *x = (self.weight * slope) as f32;
                        }
                    }
                    sums[2] += f64::from((all - data.old_log_prob[i]).abs());
                }
            }
            PolicyOutputs::Continuous {
                mean,
                log_std,
                grad_log_std,
            } => {
                let a = log_std.len();
                for (mean, &i) in mean.chunks_exact_mut(a).zip(samples) {
                    let i = i as usize;
                    let action = &data.continuous[i * a..(i + 1) * a];
                    let log_prob = gaussian::log_prob(action, mean, log_std);
                    let advantage = f64::from(data.advantage[i]);
                    sums[0] -=
                        advantage * f64::from(log_prob) + ENTROPY * f64::from(gaussian::entropy(log_std));
                    sums[2] += f64::from((log_prob - data.old_log_prob[i]).abs());
                    for j in 0..a {
                        let by = libm::exp(-f64::from(log_std[j]));
                        let z = f64::from(action[j] - mean[j]) * by;
                        mean[j] = (-self.weight * advantage * z * by) as f32;
                        grad_log_std[j] += (-self.weight * (advantage * (z * z - 1.0) + ENTROPY)) as f32;
                    }
                }
            }
        }
    }

    fn candidates(
        &self,
        _: InstructionSet,
        samples: &[u32],
        logits: &mut [f32],
        starts: &[u32],
        sums: &mut Sums,
    ) {
        let data = self.data;
        for (row, &i) in starts.windows(2).zip(samples) {
            let (row, i) = (&mut logits[row[0] as usize..row[1] as usize], i as usize);
            let (advantage, action) = (f64::from(data.advantage[i]), data.actions[i] as usize);
            let sum: f64 = row.iter().map(|&x| libm::exp(f64::from(x))).sum();
            let log_prob: Vec<f64> = row.iter().map(|&x| f64::from(x) - libm::log(sum)).collect();
            let entropy: f64 = -log_prob.iter().map(|x| x * libm::exp(*x)).sum::<f64>();
            sums[0] -= advantage * log_prob[action] + ENTROPY * entropy;
            for (j, (x, log_prob)) in row.iter_mut().zip(&log_prob).enumerate() {
                let (hit, p) = (if j == action { 1.0 } else { 0.0 }, libm::exp(*log_prob));
                let slope = advantage * (p - hit) + ENTROPY * p * (log_prob + entropy);
                *x = (self.weight * slope) as f32;
            }
        }
    }

    fn value(&self, _: InstructionSet, samples: &[u32], value: &mut [f32], sums: &mut Sums) {
        for (value, &i) in value.iter_mut().zip(samples) {
            let error = f64::from(*value - self.data.target[i as usize]);
            sums[1] += error * error;
            *value = (2.0 * self.weight * self.value_weight * error) as f32;
        }
    }
}

/// Asserts that two models, given the same minibatch, have the same sums and gradients, tensor by tensor.
pub(crate) fn assert_same(
    architecture: &Architecture,
    (found, found_sums): (&[f32], &Sums),
    (wanted, sums): (&[f32], &Sums),
    (tolerance, absolute): (f64, f64),
    name: &str,
) {
    for (x, y) in found_sums.iter().zip(sums) {
        assert!(
            (x - y).abs() < 2e-5 * y.abs().max(1.0),
            "{name} {architecture:?}: {found_sums:?} {sums:?}"
        );
    }
    for tensor in architecture.tensors() {
        let (x, y) = (&found[tensor.range()], &wanted[tensor.range()]);
        let difference: Vec<f32> = x.iter().zip(y).map(|(x, y)| x - y).collect();
        assert!(
            norm(&difference) < tolerance * norm(y) + absolute,
            "{name} {architecture:?} {}: {} of {}",
            tensor.name,
            norm(&difference),
            norm(y)
        );
    }
}
