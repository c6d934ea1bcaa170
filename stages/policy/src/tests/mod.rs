//! Networks of continuous actions, and stacks of LSTMs: every model against candle or a definition.

pub(crate) mod testing;

use crate::model::{Model, Observed, Output};
use crate::testing::{Data, norm, on_devices};
use crate::{
    ActionHead, Activation, Architecture, CandleModel, Critic, FusedModel, Lstm, Transformer,
    TransformerModel, gaussian, initial,
};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        obs_dim: 4,
        head: ActionHead::Continuous(3),
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

fn own(architecture: &Architecture, instructions: InstructionSet) -> Box<dyn Model> {
    match TransformerModel::with_instructions(architecture, instructions) {
        Some(model) => Box::new(model),
        None => Box::new(FusedModel::with(architecture, instructions, None)),
    }
}

#[test]
fn continuous_actions_are_learned_from_as_candle_does_and_replayed_as_they_were_drawn() {
    for (architecture, device) in on_devices(architectures()) {
        let a = architecture.head.num_outputs();
        let random = &mut Random::new(&[7]);
        let mut data = Data::new(&architecture, 5, 6, 7);
        data.indices = vec![4, 0, 3, 1];
        data.state.fill(0.0);
        data.mask.fill(true);
        let mut params = initial(&architecture, false, 3);
        let log_std = architecture.tensors().last().unwrap().clone();
        assert_eq!(
            (log_std.name.as_str(), log_std.range()),
            ("log_std", params.len() - a..params.len())
        );
        for (param, value) in params[log_std.range()].iter_mut().zip([-0.5, 0.0, 0.4]) {
            *param = value;
        }
        let mut candle = CandleModel::on(device, &architecture);
        candle.load(&params);
        for instructions in InstructionSet::available() {
            let mut own = own(&architecture, instructions);
            own.load(&params);
            let (mut moving, mut other) = (data.state.clone(), data.state.clone());
            let (mut out, mut wanted) = (Output::default(), Output::default());
            for t in 0..data.steps {
                own.forward(&data.input(&architecture, t), &mut moving, &mut out);
                candle.forward(&data.input(&architecture, t), &mut other, &mut wanted);
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
                for (column, row) in (t * data.columns..(t + 1) * data.columns).enumerate() {
                    let (mean, drawn) = (
                        &out.mean[column * a..(column + 1) * a],
                        &mut data.continuous[row * a..(row + 1) * a],
                    );
                    gaussian::sample(mean, &out.log_std, || random.normal(), drawn);
                    data.old_log_prob[row] = gaussian::log_prob(drawn, mean, &out.log_std);
                }
            }
            let objective = data.objective();
            let mut found = vec![0.0; params.len()];
            let sums = own.backward(&data.minibatch(), &objective, &mut found);
            assert!(objective.errors(&sums).1 < 1e-4, "replayed as drawn: {sums:?}");
            let mut wanted = vec![0.0; params.len()];
            let theirs = candle.backward(&data.minibatch(), &objective, &mut wanted);
            for (x, y) in sums.iter().zip(theirs) {
                assert!((x - y).abs() < 2e-5 * y.abs().max(1.0), "{sums:?} {theirs:?}");
            }
            for tensor in architecture.tensors() {
                let pairs = found[tensor.range()].iter().zip(&wanted[tensor.range()]);
                let difference: Vec<f32> = pairs.map(|(x, y)| x - y).collect();
                assert!(
                    norm(&difference) < 1e-4 * norm(&wanted),
                    "{instructions:?} {}: {} of {}",
                    tensor.name,
                    norm(&difference),
                    norm(&wanted)
                );
            }
        }
    }
}

/// Two layers for each of actor and critic, against the definition in double precision, with a reset within
/// the sequence; then replayed.
#[test]
fn a_stack_of_lstms_is_what_its_definition_says() {
    let (d, hidden, a, steps) = (3, 4, 2, 6);
    let architecture = Architecture {
        obs_dim: d,
        head: ActionHead::Discrete(a as u32),
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
            candidates: None,
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
    let mut data = Data::new(&architecture, steps, 1, 7);
    (data.obs, data.episode_start) = (obs, episode_start);
    (data.old_log_prob, data.target) = (old_log_prob, value);
    data.mask.fill(true);
    data.actions.fill(0);
    data.state.fill(0.0);
    data.indices = vec![0];
    let objective = data.objective();
    let sums = model.backward(&data.minibatch(), &objective, &mut vec![0.0; params.len()]);
    let (value, log_prob) = objective.errors(&sums);
    assert!(value < 1e-10 && log_prob < 1e-5, "{sums:?}");
}
