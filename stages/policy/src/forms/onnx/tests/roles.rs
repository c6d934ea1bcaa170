//! Roles of inputs and outputs: by names, by shapes, by the user's word; and what is not clear.

use super::build::{B, Model, Size, n};
use super::{D, Told, env, names, policy};
use crate::Mode;
use crate::forms::AnyPolicy;
use crate::onnx::proto::{Attribute, Type};
use cache::Store;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, Bounds, EnvSpec};

pub(super) fn discrete() -> EnvSpec {
    env(ActionSpace::Discrete {
        names: vec!["hold".into(), "buy".into(), "sell".into()],
        masked: true,
    })
}

pub(super) fn continuous() -> EnvSpec {
    env(ActionSpace::Continuous {
        names: names(1),
        bounds: Bounds {
            low: vec![5.0],
            high: vec![10.0],
        },
    })
}

/// A linear layer from `x` to `y`: the first A observed values, times 1, 2, 3.
pub(super) fn linear(x: &str, y: &str, d: usize, a: usize) -> Model {
    let mut weights = vec![0.0; d * a];
    (0..a).for_each(|i| weights[i * a + i] = 1.0 + i as f32);
    Model::default()
        .input(x, Type::Float, &[B, n(d as i64)])
        .output(y, Type::Float, &[B, n(a as i64)])
        .floats("w", &[d, a], &weights)
        .op("MatMul", &[x, "w"], y, &[])
}

/// The decision of a policy for one observation: log-probabilities or the action.
fn decide(policy: &AnyPolicy, obs: &[f32], mask: &[bool]) -> Result<Vec<f32>, StageError> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut state = policy.start(&store, 1)?;
    if let Actions::Continuous(action) = policy.act(obs, mask, &[true], &mut state, Mode::Greedy)? {
        return Ok(action.to_vec());
    }
    Ok(state.output().log_prob.clone())
}

fn told(pairs: &[(&str, &str)]) -> Told {
    Told {
        tensors: pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        ..Told::default()
    }
}

fn refused(model: Model, env: &EnvSpec, told: &Told) -> String {
    let err = policy(model.bytes(), env, told).unwrap_err();
    format!("{}\n{}", err.message, err.hint.unwrap_or_default())
}

const OBS: [f32; D] = [0.5, -1.0, 0.25, 7.0, 9.0];

fn close(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (x, y) in found.iter().zip(wanted) {
        assert!(x == y || (x - y).abs() < 1e-6, "{found:?} {wanted:?}");
    }
}

/// Logarithms of the softmax of logits; minus infinity where they are masked.
fn log_softmax(logits: &[f32], mask: &[bool]) -> Vec<f32> {
    let allowed = logits.iter().zip(mask).filter(|(_, mask)| **mask);
    let normaliser = libm::log(allowed.map(|(x, _)| libm::exp(f64::from(*x))).sum::<f64>()) as f32;
    let pairs = logits.iter().zip(mask);
    pairs
        .map(|(x, mask)| if *mask { x - normaliser } else { f32::NEG_INFINITY })
        .collect()
}

#[test]
fn logits_are_masked_and_normalised() {
    let read = policy(linear("x", "y", D, 3).bytes(), &discrete(), &Told::default()).unwrap();
    close(
        &decide(&read, &OBS, &[true; 3]).unwrap(),
        &log_softmax(&[0.5, -2.0, 0.75], &[true; 3]),
    );
    let mask = [true, false, true];
    close(
        &decide(&read, &OBS, &mask).unwrap(),
        &log_softmax(&[0.5, -2.0, 0.75], &mask),
    );
}

#[test]
fn what_names_do_not_tell_is_told() {
    // Two outputs may be those of the actions; a logarithm of probabilities is the same as logits.
    let two = || {
        linear("x", "y", D, 3)
            .op("Neg", &["y"], "z", &[])
            .output("z", Type::Float, &[B, n(3)])
    };
    let message = refused(two(), &discrete(), &Told::default());
    assert_eq!(
        message,
        "several outputs may be those of the actions; the model has the inputs `x` float32 [batch, 5], and the \
        outputs `y` float32 [batch, 3], `z` float32 [batch, 3]\nname their roles, such as `tensors: { x: \
        observation, h: state, y: logits, h_out: next h }` (docs/guides/export-policy.md)"
    );
    let read = policy(two().bytes(), &discrete(), &told(&[("z", "logits"), ("y", "unused")])).unwrap();
    let found = decide(&read, &OBS, &[true; 3]).unwrap();
    assert!(found[1] > found[0] && found[0] > found[2], "{found:?}");
    let read = policy(two().bytes(), &discrete(), &told(&[("y", "action_values")])).unwrap();
    let greedy = [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0];
    close(&decide(&read, &OBS, &[true; 3]).unwrap(), &greedy);
    for (pairs, wanted) in [
        (&[("q", "logits")][..], "has no such input or output"),
        (&[("y", "logit")], "`logit` of `tensors.y` is not a role"),
        (&[("x", "logits")], "the role of the input `x` is one of outputs"),
        (&[("y", "value")], "which is not `value`"),
    ] {
        let message = refused(two(), &discrete(), &told(pairs));
        assert!(message.contains(wanted), "{message}");
    }
    let message = refused(linear("x", "y", 4, 3), &discrete(), &Told::default());
    assert!(
        message.contains("which input is the observation of 5 values is not clear"),
        "{message}"
    );
    let message = refused(linear("x", "y", D, 2), &discrete(), &Told::default());
    assert!(
        message.contains("no output fits the actions, the environment has 3 choices"),
        "{message}"
    );
}

#[test]
fn other_orders_are_permuted() {
    let text = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
    let told = Told {
        observation: text(&["n2", "n0", "n1"]),
        actions: text(&["sell", "hold", "buy"]),
        ..Told::default()
    };
    // Sees (0.25, 0.5, -1); its logits 0.25, 1, -3 are those of sell, hold and buy.
    let read = policy(linear("x", "y", 3, 3).bytes(), &discrete(), &told).unwrap();
    let found = decide(&read, &OBS, &[true; 3]).unwrap();
    close(&found, &log_softmax(&[1.0, -3.0, 0.25], &[true; 3]));
    // The mask is the environment's.
    let found = decide(&read, &OBS, &[false, true, true]).unwrap();
    assert_eq!(found[0], f32::NEG_INFINITY);
    assert!(found[2] > found[1]);
    for (told, wanted) in [
        (
            Told {
                observation: text(&["n9"]),
                ..Told::default()
            },
            "`observation` names `n9` at 0",
        ),
        (
            Told {
                observation: text(&["n1", "n1"]),
                ..Told::default()
            },
            "names `n1` twice",
        ),
        (
            Told {
                actions: text(&["buy", "sell"]),
                ..Told::default()
            },
            "`actions` does not name `hold`",
        ),
        (
            Told {
                actions: text(&["buy", "short"]),
                ..Told::default()
            },
            "`actions` names `short` at 1",
        ),
    ] {
        let message = refused(linear("x", "y", 3, 3), &discrete(), &told);
        assert!(message.contains(wanted), "{message}");
    }
}

#[test]
fn units_of_continuous_actions() {
    for (units, wanted) in [
        (super::super::Units::Environment, 0.5),
        // The middle of 5 and 10 is 7.5, half the range 2.5.
        (super::super::Units::Unit, 8.75),
        (super::super::Units::Tanh, 7.5 + 2.5 * 0.462_117_16),
    ] {
        let told = Told {
            units,
            ..Told::default()
        };
        let read = policy(linear("x", "y", D, 1).bytes(), &continuous(), &told).unwrap();
        close(&decide(&read, &OBS, &[]).unwrap(), &[wanted]);
    }
}

/// The numbers of choices, and a number beyond them.
#[test]
fn choices_are_numbers() {
    let model = |by: i64| {
        linear("x", "h", D, 3)
            .op(
                "ArgMax",
                &["h"],
                "best",
                &[Attribute::Int("axis", -1), Attribute::Int("keepdims", 0)],
            )
            .ints("by", &[by])
            .op("Add", &["best", "by"], "y", &[])
            .output("y", Type::Int, &[B])
            .bytes()
    };
    let told = told(&[("h", "unused")]);
    let read = policy(model(0), &discrete(), &told).unwrap();
    close(
        &decide(&read, &OBS, &[true; 3]).unwrap(),
        &[f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0],
    );
    let err = decide(&read, &OBS, &[true, true, false]).unwrap_err();
    assert!(err.message.contains("`sell`, which is masked there"), "{err}");
    let err = policy(model(7), &discrete(), &told).unwrap_err();
    assert!(err.message.contains("of 3 choices from 0 on"), "{err}");
}

/// A state of PyTorch's order, layers first, adds up what was seen.
fn sums(state: &[Size], next: &str) -> Model {
    Model::default()
        .input("obs", Type::Float, &[B, n(D as i64)])
        .input("h0", Type::Float, state)
        .output("logits", Type::Float, &[B, n(3)])
        .output(next, Type::Float, state)
        .ints("axes", &[0])
        .op("Unsqueeze", &["obs", "axes"], "one", &[])
        .ints("twice", &[2, 1, 1])
        .op("Tile", &["one", "twice"], "two", &[])
        .op("Add", &["h0", "two"], next, &[])
        .ints("two_", &[0])
        .op("ReduceSum", &[next, "two_"], "both", &[Attribute::Int("keepdims", 0)])
        .floats("w", &[D, 3], &{
            let mut w = [0.0; D * 3];
            (w[0], w[4], w[8]) = (0.5, 0.5, 0.5);
            w
        })
        .op("MatMul", &["both", "w"], "logits", &[])
}

#[test]
fn states_are_kept_by_environment_and_zero_where_episodes_begin() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let layers = [n(2), B, n(D as i64)];
    let read = policy(sums(&layers, "hn").bytes(), &discrete(), &Told::default()).unwrap();
    assert!(read.remembers());
    let batch = 70;
    let mut state = read.start(&store, batch).unwrap();
    let mut sum = vec![[0.0_f32; 3]; batch];
    for step in 0..5 {
        let obs: Vec<f32> = (0..batch * D).map(|i| ((i * 7 + step * 3) % 11) as f32 / 8.0).collect();
        let start: Vec<bool> = (0..batch).map(|row| step == 0 || (row + step) % 4 == 0).collect();
        read.act(&obs, &vec![true; 3 * batch], &start, &mut state, Mode::Greedy)
            .unwrap();
        for (row, sum) in sum.iter_mut().enumerate() {
            if start[row] {
                *sum = [0.0; 3];
            }
            sum.iter_mut().zip(&obs[row * D..]).for_each(|(sum, x)| *sum += x);
            let normaliser = sum.iter().map(|x| libm::exp(f64::from(*x))).sum::<f64>().ln() as f32;
            let wanted: Vec<f32> = sum.iter().map(|x| x - normaliser).collect();
            close(&state.output().log_prob[3 * row..3 * row + 3], &wanted);
        }
    }
    // A name that says nothing is told by the shape where no other has it; here the user says it.
    let read = policy(sums(&layers, "memory").bytes(), &discrete(), &Told::default()).unwrap();
    assert!(read.remembers());
    let message = refused(sums(&[n(2), B, n(7)], "hn"), &discrete(), &Told::default());
    assert!(message.contains("has no fixed size"), "{message}");
}

/// A sum over the batch, as a network in training mode or a sequence has, is found by its results.
#[test]
fn rows_are_independent() {
    let model = linear("x", "h", D, 3)
        .op("ReduceMean", &["h"], "mean", &[Attribute::Ints("axes", &[0])])
        .op("Sub", &["h", "mean"], "logits", &[])
        .output("logits", Type::Float, &[B, n(3)]);
    let message = refused(model, &discrete(), &told(&[("h", "unused")]));
    assert!(message.contains("depend on the observations of others"), "{message}");
    let message = refused(
        Model::default()
            .input("obs", Type::Float, &[Size::Open("steps"), B, n(D as i64)])
            .op("Relu", &["obs"], "y", &[])
            .output("y", Type::Float, &[B, n(5)]),
        &discrete(),
        &told(&[("y", "logits")]),
    );
    assert!(
        message.contains("several open sizes") || message.contains("is not `logits`"),
        "{message}"
    );
}

/// A model that is made for one environment is run once for each.
#[test]
fn models_of_a_fixed_number_of_environments() {
    let model = Model::default()
        .input("obs", Type::Float, &[n(1), n(1), n(D as i64)])
        .ints("shape", &[1, 5])
        .op("Reshape", &["obs", "shape"], "flat", &[])
        .floats("w", &[D, 3], &[1.0; D * 3])
        .op("MatMul", &["flat", "w"], "value_", &[])
        .floats("b", &[3], &[0.0, 1.0, 2.0])
        .op("Add", &["value_", "b"], "logits", &[])
        .output("logits", Type::Float, &[n(1), n(3)]);
    let read = policy(model.bytes(), &discrete(), &Told::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut state = read.start(&Store::open(dir.path()).unwrap(), 3).unwrap();
    read.act(&[0.5; 3 * D], &[true; 9], &[true; 3], &mut state, Mode::Greedy)
        .unwrap();
    let normaliser = (1.0 + 1_f32.exp() + 2_f32.exp()).ln();
    for row in state.output().log_prob.chunks_exact(3) {
        close(row, &[-normaliser, 1.0 - normaliser, 2.0 - normaliser]);
    }
}
