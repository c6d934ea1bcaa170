//! The kernels against plain scalar code, and against the model that acts with the result.

use super::*;
use crate::{
    ActionHead, Activation, Architecture, Critic, Lstm, Observed, Output, Precision, initial, model,
};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;

fn architecture(obs_dim: usize, pi: &[usize], head: ActionHead, lstm: Option<usize>) -> Architecture {
    Architecture {
        obs_dim,
        head,
        pi: pi.to_vec(),
        lstm: lstm.map(|hidden| Lstm {
            hidden,
            critic: Critic::Shared,
            layers: 1,
        }),
        ..Architecture::default()
    }
}

fn cases() -> Vec<Architecture> {
    let relu = Architecture {
        activation: Activation::Relu,
        ..architecture(3, &[20], ActionHead::MultiDiscrete(vec![3, 2]), None)
    };
    vec![
        architecture(5, &[64, 64], ActionHead::Discrete(3), None),
        architecture(68, &[7, 33], ActionHead::Continuous(2), None),
        architecture(1, &[], ActionHead::Discrete(2), None),
        relu,
        architecture(6, &[10], ActionHead::Discrete(4), Some(12)),
        architecture(6, &[], ActionHead::Continuous(1), Some(32)),
    ]
}

fn draw(n: usize, random: &mut Random) -> Vec<f32> {
    (0..n).map(|_| random.normal() as f32).collect()
}

/// x w + b of the tensors `weight` and `bias`, in f64.
fn affine(
    architecture: &Architecture,
    params: &[f32],
    x: &[f64],
    weight: &str,
    bias: Option<&str>,
) -> Vec<f64> {
    let tensors = architecture.tensors();
    let tensor = |name: &str| &params[tensors.iter().find(|tensor| tensor.name == name).unwrap().range()];
    let weight = tensor(weight);
    let n = weight.len() / x.len();
    let mut y: Vec<f64> = match bias {
        Some(bias) => tensor(bias).iter().map(|&b| f64::from(b)).collect(),
        None => vec![0.0; n],
    };
    for (i, x) in x.iter().enumerate() {
        for (j, y) in y.iter_mut().enumerate() {
            *y += x * f64::from(weight[i * n + j]);
        }
    }
    y
}

/// The outputs of an episode's steps, by the definition.
fn oracle(architecture: &Architecture, params: &[f32], steps: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let hidden = architecture.lstm.map_or(0, |lstm| lstm.hidden);
    let (mut h, mut c) = (vec![0.0; hidden], vec![0.0; hidden]);
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let mut outputs = Vec::new();
    for obs in steps {
        let mut x: Vec<f64> = obs.iter().map(|&x| f64::from(x)).collect();
        if hidden > 0 {
            let z = affine(architecture, params, &x, "actor_lstm.weight_x", Some("actor_lstm.bias"));
            let more = affine(architecture, params, &h, "actor_lstm.weight_h", None);
            let z: Vec<f64> = z.iter().zip(&more).map(|(a, b)| a + b).collect();
            for j in 0..hidden {
                let (i, f) = (sigmoid(z[j]), sigmoid(z[hidden + j]));
                let (g, o) = (libm::tanh(z[2 * hidden + j]), sigmoid(z[3 * hidden + j]));
                c[j] = f * c[j] + i * g;
                h[j] = o * libm::tanh(c[j]);
            }
            x.clone_from(&h);
        }
        for layer in 0..architecture.pi.len() {
            let (weight, bias) = (format!("pi.{layer}.weight"), format!("pi.{layer}.bias"));
            x = affine(architecture, params, &x, &weight, Some(&bias));
            for x in &mut x {
                *x = match architecture.activation {
                    Activation::Tanh => libm::tanh(*x),
                    Activation::Relu => x.max(0.0),
                };
            }
        }
        outputs.push(affine(architecture, params, &x, "action.weight", Some("action.bias")));
    }
    outputs
}

/// Episodes of 1 to 17 rows that end at different steps; a member before has left other weights and states.
#[test]
fn members_as_by_definition() {
    let mut random = Random::new(&[1]);
    for instructions in InstructionSet::available() {
        for architecture in cases() {
            let mut network = MemberNetwork::new(&architecture).unwrap();
            for rows in [3, 1, 2, 4, 5, 6, 7, 16, 17] {
                let params = draw(searched_len(&architecture).unwrap(), &mut random);
                let steps: Vec<Vec<Vec<f32>>> = (0..rows)
                    .map(|r| {
                        (0..3 + r % 4)
                            .map(|_| draw(architecture.obs_dim, &mut random))
                            .collect()
                    })
                    .collect();
                let wanted: Vec<_> = steps
                    .iter()
                    .map(|steps| oracle(&architecture, &params, steps))
                    .collect();
                network.begin(&params, rows);
                let mut live: Vec<usize> = (0..rows).collect();
                for t in 0..6 {
                    for row in (0..live.len()).rev() {
                        if steps[live[row]].len() == t {
                            live.remove(row);
                            network.end(row);
                        }
                    }
                    let obs: Vec<f32> = live.iter().flat_map(|&r| steps[r][t].iter().copied()).collect();
                    if live.is_empty() {
                        break;
                    }
                    let stride = network.stride();
                    let outputs = network.forward(instructions, &obs);
                    for (row, &r) in live.iter().enumerate() {
                        for (found, wanted) in outputs[row * stride..].iter().zip(&wanted[r][t]) {
                            let error = (f64::from(*found) - wanted).abs();
                            assert!(
                                error < 2e-4 * (1.0 + wanted.abs()),
                                "{instructions:?} {architecture:?}: {found} {wanted}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The policy that a training hands on acts as the distribution's mean did.
#[test]
fn the_mean_acts_like_its_policy() {
    let mut random = Random::new(&[2]);
    for architecture in cases() {
        let params = initial(&architecture, false, 3);
        let (rows, d) = (4, architecture.obs_dim);
        let mut network = MemberNetwork::new(&architecture).unwrap();
        network.begin(&params, rows);
        let mut model = model(&architecture, Precision::F32);
        model.load(&params);
        let mut state = vec![0.0; rows * architecture.state_len()];
        let a = architecture.head.num_outputs();
        for t in 0..5 {
            let obs = draw(rows * d, &mut random);
            let mut output = Output::default();
            let input = Observed {
                obs: &obs,
                mask: &vec![true; rows * a],
                episode_start: &vec![t == 0; rows],
                candidates: None,
            };
            model.forward(&input, &mut state, &mut output);
            let stride = network.stride();
            let found = network.forward(InstructionSet::detect(), &obs);
            for (r, found) in found.chunks_exact(stride).take(rows).enumerate() {
                let found = &found[..a];
                if architecture.head.is_continuous() {
                    for (x, y) in found.iter().zip(&output.mean[r * a..]) {
                        assert!((x - y).abs() < 1e-4);
                    }
                } else {
                    // Logits, up to a constant.
                    let difference = |j: usize| found[j] - output.log_prob[r * a + j];
                    let first = architecture.head.choices()[0] as usize;
                    assert!((1..first).all(|j| (difference(j) - difference(0)).abs() < 1e-4));
                }
            }
        }
    }
}

#[test]
fn critics_and_transformers_are_refused() {
    let mut separate = architecture(3, &[4], ActionHead::Discrete(2), Some(8));
    separate.lstm.as_mut().unwrap().critic = Critic::Separate;
    assert!(MemberNetwork::new(&separate).unwrap_err().contains("critic"));
    let mut stacked = architecture(3, &[4], ActionHead::Discrete(2), Some(8));
    stacked.lstm.as_mut().unwrap().layers = 2;
    assert!(searched_len(&stacked).is_err());
}
