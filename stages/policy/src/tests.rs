//! Networks whose actions are numbers: every model against candle.

use crate::kernels::Level;
use crate::model::{Batch, LossSettings, Model, Observed, Output};
use crate::{
    Activation, Architecture, CandleModel, Critic, FusedModel, Lstm, Transformer, TransformerModel, gaussian, initial,
};
use stages_numerics::random::Random;

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
        layers: 1,
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
        None => Box::new(FusedModel::with(architecture, level, None)),
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

/// Two layers for each of actor and critic, against the definition in double precision, with a reset on the way; then replayed.
#[test]
fn a_stack_of_lstms_is_what_its_definition_says() {
    let (d, hidden, a, steps) = (3, 4, 2, 6);
    let architecture = Architecture {
        obs_dim: d,
        num_actions: a,
        lstm: Some(Lstm {
            hidden,
            critic: Critic::Separate,
            layers: 2,
        }),
        ..Architecture::default()
    };
    let params = initial(&architecture, false, 5);
    let tensor = |name: &str| {
        let tensors = architecture.tensors();
        let found = tensors.iter().find(|tensor| tensor.name == name);
        let range = found.unwrap_or_else(|| panic!("no {name}")).range();
        params[range].iter().map(|&x| f64::from(x)).collect::<Vec<_>>()
    };
    let product = |x: &[f64], w: &[f64], out: &mut [f64]| {
        let n = out.len();
        for (x, w) in x.iter().zip(w.chunks_exact(n)) {
            for (out, w) in out.iter_mut().zip(w) {
                *out += x * w;
            }
        }
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let mut random = Random::new(&[6]);
    let obs: Vec<f32> = (0..steps * d).map(|_| random.normal() as f32).collect();
    let episode_start: Vec<bool> = (0..steps).map(|t| t == 0 || t == 4).collect();

    let mut model = crate::model(&architecture, crate::Precision::F32);
    model.load(&params);
    let mut state = vec![0.0; architecture.state_len()];
    let mut exact = vec![[vec![0.0; hidden], vec![0.0; hidden]]; 4];
    let (mut out, mut old_log_prob, mut value) = (Output::default(), Vec::new(), Vec::new());
    for t in 0..steps {
        let input = Observed {
            obs: &obs[t * d..(t + 1) * d],
            mask: &[true; 2],
            episode_start: &episode_start[t..=t],
        };
        model.forward(&input, &mut state, &mut out);
        old_log_prob.push(out.log_prob[0]);
        value.push(out.value[0]);
        let mut tops = Vec::new();
        for (i, [h, c]) in exact.iter_mut().enumerate() {
            if episode_start[t] {
                h.fill(0.0);
                c.fill(0.0);
            }
            let name = ["actor_lstm", "actor_lstm.1", "critic_lstm", "critic_lstm.1"][i];
            let below: Vec<f64> = if i % 2 == 0 {
                input.obs.iter().map(|&x| f64::from(x)).collect()
            } else {
                tops.pop().unwrap()
            };
            let mut z = tensor(&format!("{name}.bias"));
            product(&below, &tensor(&format!("{name}.weight_x")), &mut z);
            product(h, &tensor(&format!("{name}.weight_h")), &mut z);
            for j in 0..hidden {
                let gate = |k: usize| z[k * hidden + j];
                c[j] = sigmoid(gate(1)) * c[j] + sigmoid(gate(0)) * libm::tanh(gate(2));
                h[j] = sigmoid(gate(3)) * libm::tanh(c[j]);
            }
            tops.push(h.clone());
        }
        let mut exact_value = tensor("value.bias");
        product(&tops[1], &tensor("value.weight"), &mut exact_value);
        assert!((f64::from(out.value[0]) - exact_value[0]).abs() < 1e-5, "step {t}");
        let mut logits = tensor("action.bias");
        product(&tops[0], &tensor("action.weight"), &mut logits);
        let log_prob = -libm::log(1.0 + libm::exp(logits[1] - logits[0]));
        assert!((f64::from(out.log_prob[0]) - log_prob).abs() < 1e-5, "step {t}");
    }
    let batch = Batch {
        steps,
        columns: 1,
        obs: &obs,
        mask: &vec![true; steps * a],
        episode_start: &episode_start,
        state: &vec![0.0; state.len()],
        actions: &vec![0; steps],
        old_log_prob: &old_log_prob,
        old_value: &value,
        advantage: &[0.5, -1.0, 0.2, 1.5, 0.0, -0.3],
        target: &value,
        pick: &[0],
        ..Batch::default()
    };
    let tight = LossSettings {
        clip_range: 1e-5,
        ..SETTINGS
    };
    let losses = model.gradient(&batch, &tight, &mut vec![0.0; params.len()]);
    assert!(losses.clip_fraction == 0.0 && losses.value < 1e-10, "{losses:?}");
}
