//! Models of ours beside the networks that they were made of, and models of attackers.

mod build;
mod hostile;
mod roles;

use super::{Checked, MODEL, OnnxForm, Told};
use crate::forms::{AnyPolicy, Form, OtherPolicy};
use crate::{ActionHead, Activation, Architecture, Critic, Lstm, Mode, Policy, Transformer, initial};
use cache::Store;
use stages_core::StageError;
use stages_env::{ActionEncoding, ActionSpace, Actions, Bounds, EnvSpec, Normalisation};
use stages_numerics::random::Random;

const D: usize = 5;

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("n{i}")).collect()
}

fn env(action_space: ActionSpace) -> EnvSpec {
    EnvSpec {
        name: "test".to_owned(),
        observation: names(D),
        action_space,
        normalisation: None,
        encoding: ActionEncoding::default(),
    }
}

/// An action space for a head.
fn space(head: &ActionHead) -> ActionSpace {
    match head {
        ActionHead::MultiDiscrete(choices) => ActionSpace::MultiDiscrete {
            names: names(choices.len()),
            choices: choices.clone(),
            masked: true,
        },
        head if head.is_continuous() => ActionSpace::Continuous {
            names: names(head.num_outputs()),
            bounds: Bounds {
                low: vec![-2.0, 0.5],
                high: vec![1.0, 4.0],
            },
        },
        head => ActionSpace::Discrete {
            names: names(head.num_outputs()),
            masked: true,
        },
    }
}

/// A network whose parameters are all drawn: initial values of 0 or 1 would hide mistakes.
fn network(architecture: &Architecture, seed: u64) -> Policy {
    let normalisation = Normalisation {
        offset: vec![0.5, 0.0, -1.0, 0.1, 0.0],
        scale: vec![2.0, 0.4, 1.0, 1.0, 3.0],
        clip: 1.5,
    };
    let mut env = env(space(&architecture.head));
    if let ActionHead::MultiDiscrete(choices) = &architecture.head {
        env.encoding = ActionEncoding {
            start: vec![3; choices.len()],
            shape: Some(vec![choices.len(), 1]),
        };
    }
    let random = &mut Random::new(&[seed]);
    let mut params = initial(architecture, false, seed);
    params.iter_mut().for_each(|x| *x += 0.1 * random.normal() as f32);
    Policy::new("train/ppo", &env, architecture, Some(normalisation), params).unwrap()
}

/// Every architecture that is exported.
fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        obs_dim: D,
        head: ActionHead::Discrete(4),
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![16, 8],
        vf: vec![8],
    };
    let lstm = |layers| Architecture {
        lstm: Some(Lstm {
            hidden: 12,
            critic: Critic::Separate,
            layers,
        }),
        ..base.clone()
    };
    let transformer = Architecture {
        transformer: Some(Transformer {
            window: 6,
            d_model: 16,
            n_heads: 2,
            n_layers: 2,
            d_ff: 16,
        }),
        ..base.clone()
    };
    let mut all = vec![
        Architecture {
            activation: Activation::Relu,
            ..base.clone()
        },
        lstm(1),
        lstm(2),
        transformer,
    ];
    for head in [
        ActionHead::Discrete(4),
        ActionHead::MultiDiscrete(vec![3, 2, 4]),
        ActionHead::Continuous(2),
        ActionHead::ScaledGaussian(2),
    ] {
        all.push(Architecture { head, ..base.clone() });
    }
    let q_values = |dueling| ActionHead::QValues {
        choices: 4,
        dueling,
        epsilon: 0.1,
    };
    for head in [
        q_values(false),
        q_values(true),
        ActionHead::SquashedGaussian(2),
        ActionHead::Deterministic(2),
    ] {
        let vf = Vec::new();
        all.push(Architecture {
            head,
            vf,
            ..base.clone()
        });
    }
    all
}

/// A model as a policy.
fn policy(model: Vec<u8>, env: &EnvSpec, told: &Told) -> Result<AnyPolicy, StageError> {
    let Checked { form, env, .. } = OnnxForm::check(&model, env, told)?;
    let files = [(MODEL.to_owned(), model)].into();
    Ok(AnyPolicy::Other(OtherPolicy::new(
        "ingest/policy",
        None,
        env,
        Form::Onnx(form),
        files,
    )))
}

/// The description of an exported policy, as `runner policy export` writes it.
fn about(policy: &Policy) -> String {
    serde_json::json!({ "env": policy.spec(), "architecture": policy.architecture() }).to_string()
}

/// Over 10,000 observations of each architecture, under masks and over episodes of several lengths.
#[test]
fn an_exported_policy_that_is_read_back_decides_as_the_network() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (batch, steps) = (100, 100);
    for (i, architecture) in architectures().iter().enumerate() {
        let native = network(architecture, i as u64);
        let read = policy(native.onnx(&about(&native)).unwrap(), native.spec(), &Told::default()).unwrap();
        // As it is stored.
        let artifact = store
            .artifact(read.store(&store, serde_json::json!({})).unwrap())
            .unwrap();
        let read = AnyPolicy::read(&store, &artifact).unwrap();
        assert_eq!((read.form(), read.remembers()), ("onnx", architecture.remembers()));
        let random = &mut Random::new(&[9, i as u64]);
        let (mut own, mut other) = (native.start(batch), read.start(&store, batch).unwrap());
        let (head, mut most) = (&architecture.head, 0.0_f32);
        let (a, choices) = (head.num_outputs(), head.choices());
        let mut differ = 0;
        for step in 0..steps {
            let obs: Vec<f32> = (0..batch * D).map(|_| random.normal() as f32).collect();
            let start: Vec<bool> = (0..batch).map(|row| step % (7 + row % 5) == 0).collect();
            let mut mask: Vec<bool> = (0..batch * a).map(|_| random.uniform() < 0.7).collect();
            for row in mask.chunks_exact_mut(a) {
                crate::categorical::components(choices).for_each(|columns| row[columns.start] = true);
            }
            let wanted = native.act(&obs, &mask, &start, &mut own, Mode::Greedy);
            let mut chosen = match wanted {
                Actions::Discrete(chosen) | Actions::MultiDiscrete(chosen) => chosen.to_vec(),
                Actions::Continuous(_) => Vec::new(),
            };
            let mut wanted = match wanted {
                Actions::Continuous(actions) => actions.to_vec(),
                _ => own.output().log_prob.clone(),
            };
            if let Some(bounds) = native.spec().action_space.bounds() {
                // As the environment does.
                for row in wanted.chunks_exact_mut(a) {
                    row.iter_mut()
                        .zip(&bounds.low)
                        .zip(&bounds.high)
                        .for_each(|((x, &l), &h)| *x = x.clamp(l, h));
                }
            }
            let found = read.act(&obs, &mask, &start, &mut other, Mode::Greedy).unwrap();
            if let Actions::Discrete(found) | Actions::MultiDiscrete(found) = found {
                differ += found.iter().zip(&mut chosen).filter(|(a, b)| a != b).count();
            }
            let found = match found {
                Actions::Continuous(actions) => actions.to_vec(),
                _ => other.output().log_prob.clone(),
            };
            assert_eq!(found.len(), wanted.len());
            for (x, y) in found.iter().zip(&wanted) {
                if x != y {
                    most = most.max((x - y).abs() / (1.0 + y.abs()));
                }
            }
        }
        eprintln!(
            "{i} {head:?} {:?} {:?}: {most:e}, {differ} choices differ",
            architecture.lstm, architecture.transformer
        );
        assert!(most < 1e-6, "{architecture:?}: {most}");
        assert_eq!(differ, 0);
    }
}

/// A row's outputs do not depend on how many rows there are.
#[test]
fn the_same_bytes_for_any_number_of_environments() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for (i, architecture) in architectures().iter().enumerate() {
        let native = network(architecture, i as u64);
        let read = policy(native.onnx(&about(&native)).unwrap(), native.spec(), &Told::default()).unwrap();
        let a = architecture.head.num_outputs();
        let random = &mut Random::new(&[4]);
        let obs: Vec<f32> = (0..150 * D).map(|_| random.normal() as f32).collect();
        let run = |rows: std::ops::Range<usize>| {
            let n = rows.len();
            let mut state = read.start(&store, n).unwrap();
            let mut all = Vec::new();
            for step in 0..3 {
                let obs = &obs[rows.start * D..rows.end * D];
                let (mask, start) = (vec![true; n * a], vec![step == 0; n]);
                let actions = read.act(obs, &mask, &start, &mut state, Mode::Greedy).unwrap();
                let actions = match actions {
                    Actions::Continuous(actions) => actions.to_vec(),
                    _ => Vec::new(),
                };
                all.push(
                    [actions, state.output().log_prob.clone(), state.recurrent().to_vec()]
                        .map(|values| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>()),
                );
            }
            all
        };
        let whole = run(0..150);
        for rows in [0..1, 0..70, 64..150, 128..129] {
            for (part, whole) in run(rows.clone()).iter().zip(&whole) {
                for (part, whole) in part.iter().zip(whole) {
                    let width = whole.len() / 150;
                    assert_eq!(
                        part[..],
                        whole[rows.start * width..rows.end * width],
                        "{architecture:?}"
                    );
                }
            }
        }
    }
}
