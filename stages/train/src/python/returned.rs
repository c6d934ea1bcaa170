//! From what a function returned to a policy.

use super::config::PythonTrainConfig;
use super::stage::PythonTrain;
use serde::Deserialize;
use serde_json::{Value, json};
use stages_core::{Context, StageError, StageKind as _};
use stages_env::python::Versions;
use stages_env::{ActionSpace, BatchEnv, EnvSpec, Normalisation, Step};
use stages_policy::forms::{Form, MODEL, OnnxForm, OtherPolicy, PythonForm, Told, Units};
use stages_policy::ingest::sb3;
use stages_policy::{AnyPolicy, Architecture, Mode, Policy};
use std::collections::BTreeMap;
use std::path::Path;

/// The number of observations on which a policy is tried.
const TRIED: usize = 64;

/// The description of a policy, which the first line of its file has; the bytes follow it in order.
#[derive(Debug, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
enum Returned {
    /// Files, by name and length, that a function of the project loads.
    Python {
        load: String,
        state_len: usize,
        files: Vec<(String, usize)>,
    },
    /// A model, with its length, and what is told of it.
    Onnx {
        units: Units,
        tensors: BTreeMap<String, String>,
        files: Vec<(String, usize)>,
    },
    /// A file of stable-baselines3, with its length.
    Sb3 { files: Vec<(String, usize)> },
    /// Tensors of f32, by name and shape.
    Native {
        architecture: Value,
        observation_normalisation: Option<Normalisation>,
        tensors: Vec<(String, Vec<usize>)>,
    },
}

/// Everything that a policy is made of beside what the function returned.
pub(super) struct Maker<'a> {
    pub context: &'a Context,
    pub config: &'a PythonTrainConfig,
    pub spec: &'a EnvSpec,
    pub versions: &'a Versions,
    /// The project's modules, by their entries in an artifact.
    pub project: &'a BTreeMap<String, Vec<u8>>,
}

/// Splits off the first bytes.
fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Result<&'b [u8], StageError> {
    let (first, rest) = bytes
        .split_at_checked(len)
        .ok_or_else(|| StageError::new("the file of the returned policy is cut off"))?;
    *bytes = rest;
    Ok(first)
}

impl Maker<'_> {
    /// The policy in a file of the process.
    pub(super) fn policy(&self, file: &Path) -> Result<AnyPolicy, StageError> {
        let unreadable =
            |err: String| StageError::new(format!("cannot read the policy that was returned: {err}"));
        let bytes = std::fs::read(file).map_err(|err| unreadable(err.to_string()))?;
        let mut rest = &bytes[..];
        let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        let line = take(&mut rest, line + 1)?;
        match serde_json::from_slice(line).map_err(|err| unreadable(err.to_string()))? {
            Returned::Native {
                architecture,
                observation_normalisation,
                tensors,
            } => self.native(architecture, observation_normalisation, &tensors, rest),
            Returned::Python {
                load,
                state_len,
                files,
            } => {
                let form = PythonForm {
                    load: Some(load),
                    state_len,
                    threads: self.config.threads,
                    trust: self.config.trust,
                    versions: self.versions.clone(),
                    ..PythonForm::default()
                };
                let mut all = self.project.clone();
                for (name, len) in files {
                    let path = format!("weights/{name}");
                    cache::check_path(&path).map_err(|reason| {
                        StageError::new(format!("the policy's file `{name}` {reason}"))
                            .hint("give it a plain name: letters, digits, `.`, `-` and `_`")
                    })?;
                    all.insert(path, take(&mut rest, len)?.to_vec());
                }
                let kind = PythonTrain::NAME;
                let policy = OtherPolicy::new(kind, None, self.spec.clone(), Form::Python(form), all);
                Ok(AnyPolicy::Other(policy))
            }
            Returned::Sb3 { files } => {
                let bytes = take(&mut rest, files.iter().map(|(_, len)| len).sum())?;
                sb3::policy(bytes, &self.context.store, self.spec).map(AnyPolicy::Native)
            }
            Returned::Onnx { units, tensors, files } => {
                let model = take(&mut rest, files.iter().map(|(_, len)| len).sum())?.to_vec();
                let told = Told {
                    units,
                    tensors,
                    ..Told::default()
                };
                let checked = OnnxForm::check(&model, self.spec, &told)?;
                for sentence in checked.assumed {
                    let hint = "say the roles of its inputs and outputs by `tensors` of `Onnx`";
                    self.context.warn(&sentence, Some(hint));
                }
                let (kind, form) = (PythonTrain::NAME, Form::Onnx(checked.form));
                let files = [(MODEL.to_owned(), model)].into();
                let policy = OtherPolicy::new(kind, None, checked.env, form, files);
                Ok(AnyPolicy::Other(policy))
            }
        }
    }

    /// A network of ours.
    fn native(
        &self,
        architecture: Value,
        normalisation: Option<Normalisation>,
        tensors: &[(String, Vec<usize>)],
        mut bytes: &[u8],
    ) -> Result<AnyPolicy, StageError> {
        let refused = |what: String, hint: &str| {
            StageError::new(format!("the weights that were returned: {what}")).hint(hint)
        };
        let described: Architecture =
            serde_json::from_value(self.filled_in(architecture)).map_err(|err| {
                refused(
                    format!("`architecture` cannot be read: {err}"),
                    "docs/policies/read_policy.py has its keys",
                )
            })?;
        let mut given: BTreeMap<&str, (&[usize], &[u8])> = BTreeMap::new();
        for (name, shape) in tensors {
            let len = shape.iter().product::<usize>();
            given.insert(name, (shape, take(&mut bytes, 4 * len)?));
        }
        let mut params = vec![0.0_f32; described.num_params()];
        let expected = described.tensors();
        let listed = || {
            let names: Vec<String> = expected
                .iter()
                .map(|tensor| format!("`{}` {:?}", tensor.name, tensor.shape))
                .collect();
            format!("the tensors of this architecture are {}", names.join(", "))
        };
        for tensor in &expected {
            let (shape, data) = given
                .remove(tensor.name.as_str())
                .ok_or_else(|| refused(format!("`{}` is missing", tensor.name), &listed()))?;
            if shape != tensor.shape {
                let what = format!(
                    "`{}` has the shape {shape:?} instead of {:?}",
                    tensor.name, tensor.shape
                );
                return Err(refused(
                    what,
                    "a weight is [inputs, outputs]: of a torch module its transpose",
                ));
            }
            for (param, value) in params[tensor.range()].iter_mut().zip(data.as_chunks().0) {
                *param = f32::from_le_bytes(*value);
            }
            if let Some(at) = params[tensor.range()].iter().position(|value| !value.is_finite()) {
                let value = params[tensor.range()][at];
                let what = format!("number {at} of `{}` is {value}", tensor.name);
                return Err(refused(what, "the training may have diverged"));
            }
        }
        if let Some(name) = given.keys().next() {
            return Err(refused(
                format!("`{name}` is not a tensor of the architecture"),
                &listed(),
            ));
        }
        Policy::new(PythonTrain::NAME, self.spec, &described, normalisation, params).map(AnyPolicy::Native)
    }

    /// The description of a network with what the environment says: the sizes of observations and actions.
    fn filled_in(&self, mut architecture: Value) -> Value {
        let Some(fields) = architecture.as_object_mut() else {
            return architecture;
        };
        let space = &self.spec.action_space;
        let mut known = vec![
            ("obs_dim", json!(self.spec.obs_dim())),
            ("num_actions", json!(space.num_outputs())),
            ("activation", json!("tanh")),
            ("lstm", Value::Null),
            ("pi", json!([])),
            ("vf", json!([])),
        ];
        match space {
            ActionSpace::Continuous { .. } => known.push(("continuous", json!(true))),
            ActionSpace::MultiDiscrete { choices, .. } => known.push(("choices", json!(choices))),
            ActionSpace::Discrete { .. } | ActionSpace::Candidates { .. } => {}
        }
        for (name, value) in known {
            fields.entry(name).or_insert(value);
        }
        architecture
    }

    /// Has a policy decide on some observations of the training's environments: the first ones, and those
    /// that its decisions lead to.
    pub(super) fn try_out(&self, policy: &AnyPolicy, mut env: Box<dyn BatchEnv>) -> Result<(), StageError> {
        let batch = env.num_envs();
        let mut state = policy.start(&self.context.store, batch)?;
        let mut step = Step::new(self.spec, batch);
        env.reset(step.buffers());
        let mut starts = vec![true; batch];
        for _ in 0..TRIED.div_ceil(batch) {
            let actions = policy.act(&step.obs, &step.action_mask, &starts, &mut state, Mode::Greedy)?;
            env.step(actions, step.buffers())?;
            for (start, (a, b)) in starts.iter_mut().zip(step.terminated.iter().zip(&step.truncated)) {
                *start = *a || *b;
            }
        }
        Ok(())
    }
}
