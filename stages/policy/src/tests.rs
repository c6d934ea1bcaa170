//! Networks whose actions are numbers: every model against candle.

use crate::kernels::Level;
use crate::model::{Batch, LossSettings, Model, Observed, Output};
use crate::{
    Activation, Architecture, CandleModel, Critic, FusedModel, Lstm, Transformer, TransformerModel, gaussian, initial,
};
use datasets::random::Random;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        obs_dim: 4,
        num_actions: 3,
        continuous: true,
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![8],
        vf: vec![6],
    };
    let lstm = Some(Lstm {
        hidden: 5,
        critic: Critic::Separate,
    });
    let transformer = Some(Transformer {
        window: 3,
        d_model: 8,
        n_heads: 2,
        n_layers: 2,
        d_ff: 8,
    });
    vec![
        base.clone(),
        Architecture { lstm, ..base.clone() },
        Architecture { transformer, ..base },
    ]
}

fn own(architecture: &Architecture, level: Level) -> Box<dyn Model> {
    match TransformerModel::with_level(architecture, level) {
        Some(model) => Box::new(model),
        None => Box::new(FusedModel::with_level(architecture, level)),
    }
}

const SETTINGS: LossSettings = LossSettings {
    clip_range: 0.2,
    clip_range_vf: None,
    ent_coef: 0.05,
    vf_coef: 0.5,
    normalize_advantage: true,
};

#[test]
fn numbers_are_learned_from_as_candle_does_and_replayed_as_they_were_drawn() {
    for architecture in architectures() {
        let (steps, columns, d, a) = (5, 6, architecture.obs_dim, architecture.num_actions);
        let n = steps * columns;
        let random = &mut Random::new(&[7]);
        let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
        let (obs, advantage, target) = (floats(n * d), floats(n), floats(n));
        let mut params = initial(&architecture, false, 3);
        let log_std = architecture.tensors().last().unwrap().clone();
        assert_eq!(
            (log_std.name.as_str(), log_std.range()),
            ("log_std", params.len() - a..params.len())
        );
        for (param, value) in params[log_std.range()].iter_mut().zip([-0.5, 0.0, 0.4]) {
            *param = value;
        }
        let episode_start: Vec<bool> = (0..n).map(|i| i % 7 == 3).collect();
        let mask = vec![true; n * a];
        let state = vec![0.0; columns * architecture.state_len()];
        let mut candle = CandleModel::new(&architecture);
        candle.load(&params);
        for level in Level::all() {
            let mut own = own(&architecture, level);
            own.load(&params);
            let (mut numbers, mut old_log_prob) = (vec![0.0; n * a], vec![0.0; n]);
            let (mut moving, mut other) = (state.clone(), state.clone());
            let (mut out, mut wanted) = (Output::default(), Output::default());
            for t in 0..steps {
                let rows = t * columns..(t + 1) * columns;
                let input = Observed {
                    obs: &obs[rows.start * d..rows.end * d],
                    mask: &mask[rows.start * a..rows.end * a],
                    episode_start: &episode_start[rows.clone()],
                };
                own.forward(&input, &mut moving, &mut out);
                candle.forward(&input, &mut other, &mut wanted);
                assert!(out.log_prob.is_empty());
                assert_eq!(out.log_std, wanted.log_std);
                for (x, y) in out
                    .mean
                    .iter()
                    .chain(&out.value)
                    .zip(wanted.mean.iter().chain(&wanted.value))
                {
                    assert!((x - y).abs() < 1e-5, "{architecture:?}: {x} {y}");
                }
                for (column, row) in rows.enumerate() {
                    let (mean, drawn) = (
                        &out.mean[column * a..(column + 1) * a],
                        &mut numbers[row * a..(row + 1) * a],
                    );
                    gaussian::sample(mean, &out.log_std, || random.normal(), drawn);
                    old_log_prob[row] = gaussian::log_prob(drawn, mean, &out.log_std);
                }
            }
            let batch = Batch {
                steps,
                columns,
                obs: &obs,
                mask: &mask,
                episode_start: &episode_start,
                state: &state,
                numbers: &numbers,
                old_log_prob: &old_log_prob,
                old_value: &target,
                advantage: &advantage,
                target: &target,
                pick: &[4, 0, 3, 1],
                ..Batch::default()
            };
            let mut found = vec![0.0; params.len()];
            let tight = LossSettings {
                clip_range: 1e-5,
                ..SETTINGS
            };
            let losses = own.gradient(&batch, &tight, &mut found);
            assert_eq!(losses.clip_fraction, 0.0, "ratios of 1: {losses:?}");

            let moved: Vec<f32> = old_log_prob.iter().zip(&advantage).map(|(x, y)| x + 0.2 * y).collect();
            let batch = Batch {
                old_log_prob: &moved,
                ..batch
            };
            let losses = own.gradient(&batch, &SETTINGS, &mut found);
            let mut wanted = vec![0.0; params.len()];
            let theirs = candle.gradient(&batch, &SETTINGS, &mut wanted);
            for (x, y) in [
                (losses.policy, theirs.policy),
                (losses.value, theirs.value),
                (losses.entropy, theirs.entropy),
                (losses.approx_kl, theirs.approx_kl),
                (losses.clip_fraction, theirs.clip_fraction),
            ] {
                assert!((x - y).abs() < 2e-5 * y.abs().max(1.0), "{losses:?} {theirs:?}");
            }
            let size = wanted.iter().map(|x| x * x).sum::<f32>().sqrt();
            for tensor in architecture.tensors() {
                let pairs = found[tensor.range()].iter().zip(&wanted[tensor.range()]);
                let difference = pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f32>().sqrt();
                assert!(
                    difference < 1e-4 * size,
                    "{level:?} {}: {difference} of {size}",
                    tensor.name
                );
            }
        }
    }
}
