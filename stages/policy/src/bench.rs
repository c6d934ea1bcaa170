//! The speed of policies on this machine, form by form.

use crate::forms::{AnyPolicy, Form, MODEL, OnnxForm, OtherPolicy, Per, PythonForm, Told};
use crate::policy::{Mode, Policy};
use crate::{ActionHead, Architecture, initial};
use cache::Store;
use serde::Serialize;
use stages_core::StageError;
use stages_env::{ActionEncoding, ActionSpace, EnvSpec};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyBenchRow {
    /// The form of the policy, and what decides.
    pub policy: String,
    /// Environments in the batch.
    pub num_envs: usize,
    /// Decisions a second, all environments together.
    pub decisions_per_second: f64,
    /// The time of a decision as a multiple of the native one's.
    pub times_native: f64,
}

const BATCHES: [usize; 3] = [1, 16, 256];
/// D and A.
const SIZES: (usize, usize) = (20, 5);

/// Policies in Python with the sizes of [`SIZES`]: one for each name.
const MODULE: &str = "\
import numpy as np

draw = np.random.default_rng(1).normal
LINEAR = draw(size=(20, 5)).astype(np.float32)
LAYERS = [draw(size=size).astype(np.float32) for size in ((20, 64), (64, 64), (64, 5))]


def linear(obs):
    return {'logits': obs @ LINEAR}


def mlp(obs):
    first, second, last = LAYERS
    return {'logits': np.tanh(np.tanh(obs @ first) @ second) @ last}


def module(path, spec):
    import torch
    nn = torch.nn

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))

        def forward(self, obs):
            return {'logits': self.net(obs)}

    return Policy()


def rule(now, allowed):
    return 'choice 1' if now['obs[0]'] > 0.5 else allowed[0]
";

/// Decisions of batches of 1, 16 and 256 random observations of 20 numbers among 5 choices: by the program's
/// own perceptron of two layers of 64 on one thread, by the same as an ONNX model and, where `python` is
/// given (an interpreter as in a configuration, relative to `base`), by policies in Python: a linear one and
/// a perceptron of the same size in NumPy, the perceptron in torch where it is installed, and a rule that is
/// asked for one environment at a time.
///
/// # Errors
/// When a policy cannot be started, or fails.
pub fn bench(python: Option<&str>, base: &Path, store: &Store) -> Result<Vec<PolicyBenchRow>, StageError> {
    let (d, a) = SIZES;
    let spec = EnvSpec {
        name: "bench".to_owned(),
        observation: (0..d).map(|i| format!("obs[{i}]")).collect(),
        action_space: ActionSpace::Discrete {
            names: (0..a).map(|i| format!("choice {i}")).collect(),
            masked: true,
        },
        normalisation: None,
        encoding: ActionEncoding::default(),
    };
    let architecture = Architecture {
        obs_dim: d,
        head: ActionHead::of(&spec.action_space),
        pi: vec![64, 64],
        vf: vec![64, 64],
        ..Architecture::default()
    };
    let params = initial(&architecture, false, 1);
    let native = Policy::new("train/ppo", &spec, &architecture, None, params)?;
    let model = native.onnx("{}")?;
    let form = OnnxForm::check(&model, &spec, &Told::default())?.form;
    let files = [(MODEL.to_owned(), model)].into();
    let onnx = OtherPolicy::new("bench", None, spec.clone(), Form::Onnx(form), files);
    let mut policies = vec![
        ("native, MLP 64 x 64".to_owned(), AnyPolicy::Native(native)),
        ("onnx, the same MLP".to_owned(), AnyPolicy::Other(onnx)),
    ];
    if let Some(python) = python {
        let problem = |problem: stages_core::ConfigProblem| StageError {
            hint: problem.hint,
            ..StageError::new(problem.message)
        };
        let interpreter = stages_env::python::program(python, base).map_err(problem)?;
        let call = |name: &str, per: Per| PythonForm {
            call: Some(format!("policies:{name}")),
            per,
            ..PythonForm::default()
        };
        let loaded = PythonForm {
            load: Some("policies:module".to_owned()),
            ..PythonForm::default()
        };
        let forms = [
            ("linear in NumPy", call("linear", Per::Batch)),
            ("MLP 64 x 64 in NumPy", call("mlp", Per::Batch)),
            ("a rule of one snapshot", call("rule", Per::Snapshot)),
            ("MLP 64 x 64 in torch", loaded),
        ];
        let files: BTreeMap<String, Vec<u8>> =
            [("project/policies.py".to_owned(), MODULE.as_bytes().to_vec())].into();
        let mut has_torch = true;
        for (name, form) in forms {
            if form.load.is_some() && !has_torch {
                continue;
            }
            let form = form.made(store, &spec, &files, &interpreter)?;
            has_torch = form.versions.packages.contains_key("torch");
            let policy = OtherPolicy::new("bench", None, spec.clone(), Form::Python(form), files.clone());
            policies.push((format!("python, {name}"), AnyPolicy::Other(policy)));
        }
    }
    let mut rows: Vec<PolicyBenchRow> = Vec::new();
    for num_envs in BATCHES {
        let mut native = None;
        for (name, policy) in &policies {
            let decisions_per_second = rate(policy, store, num_envs)?;
            rows.push(PolicyBenchRow {
                policy: name.clone(),
                num_envs,
                decisions_per_second,
                times_native: *native.get_or_insert(decisions_per_second) / decisions_per_second,
            });
        }
    }
    Ok(rows)
}

/// The best of six turns.
fn rate(policy: &AnyPolicy, store: &Store, num_envs: usize) -> Result<f64, StageError> {
    let (d, a) = SIZES;
    let mut random = Random::new(&[3]);
    let obs: Vec<f32> = (0..num_envs * d).map(|_| random.normal() as f32).collect();
    let (mask, start) = (vec![true; num_envs * a], vec![false; num_envs]);
    let mut state = policy.start(store, num_envs)?;
    let mut best = 0.0_f64;
    for _ in 0..6 {
        let (since, mut decisions) = (Instant::now(), 0);
        while since.elapsed() < Duration::from_millis(200) {
            policy.act(&obs, &mask, &start, &mut state, Mode::Greedy)?;
            decisions += num_envs;
        }
        best = best.max(decisions as f64 / since.elapsed().as_secs_f64());
    }
    Ok(best)
}
