//! A recurrent actor and critic, PPO's loss, advantages and Adam against PyTorch's numbers
//! (`pytorch_reference.py` made them).

use crate::optimiser;
use crate::ppo::algorithm::{advantage_moments, estimate_advantages};
use crate::ppo::objective::{Clipped, Coefficients, Losses};
use serde::Deserialize;
use stages_policy::{
    ActionHead, Activation, Architecture, Critic, FusedModel, Lstm, Minibatch, Model, Observed, Output,
    Precision,
};

#[derive(Deserialize)]
struct Reference {
    sizes: Sizes,
    params: Vec<f32>,
    x: Vec<f32>,
    start: Vec<bool>,
    state: Vec<f32>,
    mask: Vec<bool>,
    actions: Vec<u32>,
    old_log_prob: Vec<f32>,
    old_value: Vec<f32>,
    reward: Vec<f32>,
    done_last: Vec<bool>,
    last_value: Vec<f32>,
    advantage: Vec<f32>,
    target: Vec<f32>,
    losses: [f64; 3],
    log_prob: Vec<f32>,
    value: Vec<f32>,
    state_after: Vec<f32>,
    gradient: Vec<f32>,
    adam: Vec<Step>,
}

#[derive(Deserialize)]
struct Sizes {
    obs: usize,
    hidden: usize,
    actions: usize,
    layer: usize,
    steps: usize,
    columns: usize,
}

#[derive(Deserialize)]
struct Step {
    norm: f64,
    params: Vec<f32>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("pytorch_reference.json")).unwrap()
}

#[track_caller]
fn near(found: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(found.len(), wanted.len());
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{i}: {a} {b}");
    }
}

impl Reference {
    fn model(&self, precision: Precision) -> FusedModel {
        let sizes = &self.sizes;
        let architecture = Architecture {
            obs_dim: sizes.obs,
            head: ActionHead::Discrete(sizes.actions as u32),
            activation: Activation::Tanh,
            lstm: Some(Lstm {
                hidden: sizes.hidden,
                critic: Critic::Separate,
                layers: 1,
            }),
            pi: vec![sizes.layer],
            vf: vec![sizes.layer],
            ..Architecture::default()
        };
        let mut model = FusedModel::new(&architecture, precision);
        model.load(&self.params);
        model
    }

    /// PPO's losses of some columns, and their gradient.
    fn losses(&self, model: &mut FusedModel, indices: &[u32], gradient: &mut [f32]) -> Losses {
        let minibatch = Minibatch {
            steps: self.sizes.steps,
            columns: self.sizes.columns,
            obs: &self.x,
            episode_start: &self.start,
            state: &self.state,
            candidates: &[],
            indices,
        };
        let objective = Clipped {
            mask: &self.mask,
            actions: &self.actions,
            continuous: &[],
            old_log_prob: &self.old_log_prob,
            old_value: &self.old_value,
            advantage: &self.advantage,
            moments: advantage_moments(&self.advantage, &minibatch),
            target: &self.target,
            weight: 1.0 / minibatch.len() as f32,
            coefficients: COEFFICIENTS,
        };
        Losses::mean(&model.backward(&minibatch, &objective, gradient), minibatch.len())
    }
}

const COEFFICIENTS: Coefficients = Coefficients {
    clip_range: 0.2,
    clip_range_vf: Some(0.3),
    ent_coef: 0.01,
    vf_coef: 0.5,
    normalize_advantage: true,
};

#[test]
fn steps_are_pytorchs() {
    let reference = reference();
    let Sizes {
        obs: d,
        actions: a,
        steps,
        columns: b,
        ..
    } = reference.sizes;
    for (precision, tolerance) in [(Precision::F32, 3e-6), (Precision::Bf16, 0.03)] {
        let mut model = reference.model(precision);
        let (mut state, mut out) = (reference.state.clone(), Output::default());
        for t in 0..steps {
            let rows = t * b..(t + 1) * b;
            let input = Observed {
                obs: &reference.x[rows.start * d..rows.end * d],
                mask: &reference.mask[rows.start * a..rows.end * a],
                episode_start: &reference.start[rows.clone()],
                candidates: None,
            };
            model.forward(&input, &mut state, &mut out);
            near(&out.value, &reference.value[rows.clone()], tolerance);
            let log_prob: Vec<f32> = rows
                .clone()
                .map(|i| out.log_prob[(i - rows.start) * a + reference.actions[i] as usize])
                .collect();
            near(&log_prob, &reference.log_prob[rows], tolerance);
        }
        near(&state, &reference.state_after, tolerance);
    }
}

#[test]
fn loss_gradient_and_adam_are_pytorchs() {
    let reference = reference();
    let indices: Vec<u32> = (0..reference.sizes.columns as u32).collect();
    let mut model = reference.model(Precision::F32);
    let mut params = reference.params.clone();
    let (mut gradient, mut m, mut v) = (params.clone(), vec![0.0; params.len()], vec![0.0; params.len()]);
    for (i, wanted) in reference.adam.iter().enumerate() {
        let losses = reference.losses(&mut model, &indices, &mut gradient);
        if i == 0 {
            let found = [losses.policy, losses.value, losses.entropy];
            for (a, b) in found.iter().zip(reference.losses) {
                assert!(
                    (a - b).abs() < 1e-6 * b.abs().max(1.0),
                    "{found:?} {:?}",
                    reference.losses
                );
            }
            near(&gradient, &reference.gradient, 1e-6);
        }
        let norm = optimiser::norm(&gradient);
        assert!((norm / wanted.norm - 1.0).abs() < 1e-5, "{norm} {}", wanted.norm);
        assert!(norm > 0.05, "the gradient is clipped");
        optimiser::update(i as u64 + 1, 1e-2, (norm, 0.05), &mut params, &gradient, &mut m, &mut v);
        near(&params, &wanted.params, 2e-5);
        model.load(&params);
    }
    // The columns in two parts, each with its own advantages, are not the whole: the test can fail.
    let losses = reference.losses(&mut model, &indices[..3], &mut gradient);
    assert!((losses.policy - reference.losses[0]).abs() > 1e-4);
}

#[test]
fn advantages_are_pytorchs() {
    let reference = reference();
    let b = reference.sizes.columns;
    let done: Vec<bool> = reference.start[b..]
        .iter()
        .chain(&reference.done_last)
        .copied()
        .collect();
    let (mut advantage, mut target) = (reference.advantage.clone(), reference.target.clone());
    advantage.fill(0.0);
    target.fill(0.0);
    estimate_advantages(
        0.97,
        0.9,
        &reference.reward,
        &reference.old_value,
        &done,
        &reference.last_value,
        &mut advantage,
        &mut target,
    );
    near(&advantage, &reference.advantage, 2e-6);
    near(&target, &reference.target, 2e-6);
}
