//! PPO's clipped objective: its derivatives against candle's autodiff of the same loss, and against finite
//! differences.

use crate::ppo::objective::{Clipped, Coefficients, Losses};
use crate::ppo::surrogate::surrogate;
use candle_core::{Device, Result, Tensor, Var};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use stages_policy::categorical::{Softmax, components, num_outputs};
use stages_policy::{Objective as _, PolicyOutputs, Sums};

const COEFFICIENTS: Coefficients = Coefficients {
    clip_range: 0.2,
    clip_range_vf: None,
    ent_coef: 0.05,
    vf_coef: 0.5,
    normalize_advantage: true,
};

/// The samples of a made-up rollout of discrete actions, in the order of a minibatch.
struct Data {
    /// The number of choices of each component `[K]`.
    choices: Vec<u32>,
    a: usize,
    samples: Vec<u32>,
    mask: Vec<bool>,
    actions: Vec<u32>,
    old_log_prob: Vec<f32>,
    old_value: Vec<f32>,
    advantage: Vec<f32>,
    target: Vec<f32>,
    logits: Vec<f32>,
    value: Vec<f32>,
}

impl Data {
    /// 60 samples, of which 37 are in the minibatch.
    fn new(choices: &[u32]) -> Self {
        let (n, a) = (60, num_outputs(choices));
        let random = &mut Random::new(&[2]);
        let mut samples: Vec<u32> = (0..n as u32).collect();
        random.shuffle(&mut samples);
        samples.truncate(37);
        let mut floats =
            |len: usize, scale: f64| (0..len).map(|_| (scale * random.normal()) as f32).collect::<Vec<_>>();
        let (logits, value) = (floats(samples.len() * a, 1.0), floats(samples.len(), 0.5));
        let old_log_prob = floats(n, 0.2).iter().map(|x| -1.2 + x).collect();
        let (old_value, advantage, target) = (floats(n, 0.3), floats(n, 2.0), floats(n, 1.0));
        let mut mask: Vec<bool> = (0..n * a).map(|_| random.uniform() < 0.7).collect();
        let mut actions = Vec::new();
        for row in mask.chunks_exact_mut(a) {
            for columns in components(choices) {
                let action = random.below(columns.len() as u64) as u32;
                row[columns.start + action as usize] = true;
                actions.push(action);
            }
        }
        Self {
            choices: choices.to_vec(),
            a,
            samples,
            mask,
            actions,
            old_log_prob,
            old_value,
            advantage,
            target,
            logits,
            value,
        }
    }

    /// The loss, its parts, and its derivatives by logits and values, by candle.
    fn candle(
        &self,
        moments: (f32, f32),
        coefficients: Coefficients,
    ) -> Result<(Losses, Vec<f32>, Vec<f32>)> {
        let (n, cpu) = (self.samples.len(), &Device::Cpu);
        let floats = |of: &[f32]| {
            let values: Vec<f32> = self.samples.iter().map(|&i| of[i as usize]).collect();
            Tensor::from_vec(values, n, cpu)
        };
        let logits = Var::from_slice(&self.logits, (n, self.a), cpu)?;
        let value = Var::from_slice(&self.value, n, cpu)?;
        let mask: Vec<u8> = self
            .samples
            .iter()
            .flat_map(|&i| &self.mask[i as usize * self.a..][..self.a])
            .map(|&allowed| u8::from(allowed))
            .collect();
        let mask = Tensor::from_vec(mask, (n, self.a), cpu)?;
        let masked = mask.where_cond(logits.as_tensor(), &Tensor::full(-1e8_f32, (n, self.a), cpu)?)?;
        let zero = Tensor::zeros(n, candle_core::DType::F32, cpu)?;
        let (mut entropy, mut log_prob) = (zero.clone(), zero);
        for (component, columns) in components(&self.choices).enumerate() {
            let all = candle_nn::ops::log_softmax(&masked.narrow(1, columns.start, columns.len())?, 1)?;
            entropy = (entropy - (all.exp()? * &all)?.sum(1)?)?;
            let action = |&i: &u32| self.actions[i as usize * self.choices.len() + component];
            let actions: Vec<u32> = self.samples.iter().map(action).collect();
            log_prob = (log_prob + all.gather(&Tensor::from_vec(actions, (n, 1), cpu)?, 1)?.squeeze(1)?)?;
        }
        let entropy = entropy.mean_all()?;
        let log_ratio = (log_prob - floats(&self.old_log_prob)?)?;
        let ratio = log_ratio.exp()?;
        let (mean, scale) = moments;
        let advantage = floats(&self.advantage)?.affine(f64::from(scale), f64::from(-mean * scale))?;
        let range = coefficients.clip_range;
        let clipped = (&advantage * ratio.clamp(1.0 - range, 1.0 + range)?)?;
        let policy = (&advantage * &ratio)?.minimum(&clipped)?.mean_all()?.neg()?;
        let used = match coefficients.clip_range_vf {
            None => value.as_tensor().clone(),
            Some(range) => {
                let old = floats(&self.old_value)?;
                (&old + (value.as_tensor() - &old)?.clamp(-range, range)?)?
            }
        };
        let errors = (used - floats(&self.target)?)?.sqr()?.mean_all()?;
        let loss = ((&policy - (&entropy * f64::from(coefficients.ent_coef))?)?
            + (&errors * f64::from(coefficients.vf_coef))?)?;
        let gradients = loss.backward()?;
        let gradient = |var: &Var| match gradients.get(var.as_tensor()) {
            None => candle_core::bail!("no gradient"),
            Some(values) => values.flatten_all()?.to_vec1::<f32>(),
        };
        let scalar = |tensor: &Tensor| tensor.to_scalar::<f32>().map(f64::from);
        let outside = ratio.affine(1.0, -1.0)?.abs()?.gt(range)?.to_vec1::<u8>()?;
        let losses = Losses {
            policy: scalar(&policy)?,
            value: scalar(&errors)?,
            entropy: scalar(&entropy)?,
            approx_kl: scalar(&(ratio.affine(1.0, -1.0)? - log_ratio)?.mean_all()?)?,
            clip_fraction: outside.into_iter().map(f64::from).sum::<f64>() / n as f64,
        };
        Ok((losses, gradient(&logits)?, gradient(&value)?))
    }
}

#[test]
fn discrete_actions_and_values_match_candle() {
    for choices in [&[5][..], &[2, 1, 3]] {
        match_candle(choices);
    }
}

fn match_candle(choices: &[u32]) {
    let data = Data::new(choices);
    let n = data.samples.len();
    let cases = [
        (COEFFICIENTS, (0.3, 0.7)),
        (
            Coefficients {
                clip_range_vf: Some(0.3),
                ..COEFFICIENTS
            },
            (0.0, 1.0),
        ),
    ];
    for (coefficients, moments) in cases {
        let (losses, wanted_logits, wanted_value) = data.candle(moments, coefficients).unwrap();
        let objective = Clipped {
            mask: &data.mask,
            actions: &data.actions,
            continuous: &[],
            old_log_prob: &data.old_log_prob,
            old_value: &data.old_value,
            advantage: &data.advantage,
            moments,
            target: &data.target,
            weight: 1.0 / n as f32,
            coefficients,
        };
        for instructions in InstructionSet::available() {
            let (mut logits, mut value, mut sums) =
                (data.logits.clone(), data.value.clone(), Sums::default());
            let outputs = PolicyOutputs::Discrete {
                logits: &mut logits,
                choices,
                softmax: &mut Softmax::default(),
            };
            objective.policy(instructions, &data.samples, outputs, &mut sums);
            objective.value(instructions, &data.samples, &mut value, &mut sums);
            let found = Losses::mean(&sums, n);
            for (x, y) in [
                (found.policy, losses.policy),
                (found.value, losses.value),
                (found.entropy, losses.entropy),
                (found.approx_kl, losses.approx_kl),
                (found.clip_fraction, losses.clip_fraction),
            ] {
                assert!(
                    (x - y).abs() < 2e-5 * y.abs().max(1.0),
                    "{instructions:?}: {found:?} {losses:?}"
                );
            }
            for (x, y) in logits.iter().zip(&wanted_logits).chain(value.iter().zip(&wanted_value)) {
                assert!((x - y).abs() < 1e-6, "{instructions:?}: {x} {y}");
            }
            assert!(losses.clip_fraction > 0.2, "the clip range matters: {losses:?}");
        }
    }
}

/// In double precision, from the definition.
#[test]
fn continuous_actions_match_finite_differences() {
    let (n, a) = (7, 3);
    let mut random = Random::new(&[5]);
    let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
    let (actions, mean, log_std, advantage) = (floats(n * a), floats(n * a), floats(a), floats(n));
    let old: Vec<f32> = floats(n).iter().map(|x| 0.1 * x - 4.0).collect();
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
    let samples: Vec<u32> = (0..n as u32).collect();
    let objective = Clipped {
        mask: &[],
        actions: &[],
        continuous: &actions,
        old_log_prob: &old,
        old_value: &[],
        advantage: &advantage,
        moments: (0.0, 1.0),
        target: &[],
        weight: 1.0 / n as f32,
        coefficients: Coefficients {
            clip_range: 0.5,
            ent_coef: 0.1,
            ..COEFFICIENTS
        },
    };
    for instructions in InstructionSet::available() {
        let (mut dmean, mut grad_log_std, mut sums) = (mean.clone(), vec![0.0; a], Sums::default());
        let outputs = PolicyOutputs::Continuous {
            mean: &mut dmean,
            log_std: &log_std,
            grad_log_std: &mut grad_log_std,
        };
        objective.policy(instructions, &samples, outputs, &mut sums);
        let total = Losses::mean(&sums, n).total(&objective.coefficients);
        let exact = loss(&wide_mean, &wide_log_std);
        assert!((total - exact).abs() < 1e-5 * exact.abs().max(1.0), "{total} {exact}");
        let h = 1e-5;
        for (k, &found) in dmean.iter().chain(&grad_log_std).enumerate() {
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
                "{instructions:?} {k}: {found} {exact}"
            );
        }
    }
}

#[test]
fn the_surrogate_and_its_gradient_are_those_of_the_definition() {
    const RANGE: f64 = 0.2;
    let value = |log_ratio: f64, advantage: f64| {
        let ratio = libm::exp(log_ratio);
        (ratio * advantage).min(ratio.clamp(1.0 - RANGE, 1.0 + RANGE) * advantage)
    };
    for advantage in [-1.5, 0.0, 2.0] {
        for log_ratio in [-0.5, -0.1, 0.0, 0.1, 0.5] {
            let found = surrogate::<false>(log_ratio as f32, advantage as f32, RANGE as f32);
            let change = value(log_ratio + 1e-6, advantage) - value(log_ratio - 1e-6, advantage);
            for (found, wanted) in [
                (found.value, value(log_ratio, advantage)),
                (found.grad_log_prob, -change / 2e-6),
                (found.kl, libm::expm1(log_ratio) - log_ratio),
            ] {
                assert!(
                    (f64::from(found) - wanted).abs() < 1e-5,
                    "{log_ratio} {advantage}: {found} {wanted}"
                );
            }
            assert_eq!(found.is_outside, log_ratio.abs() > 0.3);
        }
    }
}
