//! Policies of any form: a network of ours, an ONNX model, a program in Python, a rule.
//!
//! A native policy is one file, `policy.safetensors`. The others have `policy.json`, which says what they
//! are, and the files that they need beside it. Nothing of a policy is executed before [`AnyPolicy::start`].

mod onnx;
mod python;
mod rule;

pub use onnx::{Checked, MODEL, OnnxForm, Told, Units};
pub use python::{Per, PythonForm, Trust, WEIGHTS, files_of};
pub use rule::{Rule, RuleConfig, RuleForm, check_name};

use crate::policy::{ENTRY, Forward, Mode, Policy, PolicyState};
use crate::{ActionHead, Observed, Output};
use cache::{Artifact, ArtifactBuilder, ArtifactDigest, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::{PortType, StageError};
use stages_env::{Actions, EnvSpec};
use std::collections::BTreeMap;

/// The name of the entry that says what a policy is which is not native.
pub const FORM_ENTRY: &str = "policy.json";

/// The layout of that entry.
const FORMAT: u32 = 1;

/// A policy of any form.
#[derive(Clone, Debug)]
pub enum AnyPolicy {
    /// A network of ours.
    Native(Policy),
    /// Another form.
    Other(OtherPolicy),
}

/// A policy that is not a network of ours.
#[derive(Clone, Debug)]
pub struct OtherPolicy {
    about: About,
    files: BTreeMap<String, Vec<u8>>,
}

/// The contents of [`FORM_ENTRY`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    format: u32,
    /// The stage kind that made the policy.
    kind: String,
    /// The name under which it appears as a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    env: EnvSpec,
    #[serde(flatten)]
    form: Form,
}

/// A form with its own settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Form {
    /// An ONNX model.
    Onnx(OnnxForm),
    /// A program in Python.
    Python(PythonForm),
    /// A rule.
    Rule(RuleForm),
}

/// The parts of a policy that a form starts from.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The environment's observations and actions.
    pub spec: &'a EnvSpec,
    /// The files beside [`FORM_ENTRY`], by the path of their entry.
    pub files: &'a BTreeMap<String, Vec<u8>>,
    /// The store that the policy was read from.
    pub store: &'a Store,
    /// B.
    pub batch: usize,
}

impl OtherPolicy {
    /// A policy of the form `form` for the environment `env`, made by the stage kind `kind`; `name` is that
    /// of a baseline.
    pub fn new(
        kind: &str,
        name: Option<String>,
        env: EnvSpec,
        form: Form,
        files: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        let (format, kind) = (FORMAT, kind.to_owned());
        Self {
            about: About {
                format,
                kind,
                name,
                env,
                form,
            },
            files,
        }
    }

    /// The form with its settings.
    pub fn form(&self) -> &Form {
        &self.about.form
    }

    /// The files beside [`FORM_ENTRY`], by the path of their entry.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// The contents of [`FORM_ENTRY`].
    pub fn describe(&self) -> Value {
        json!(self.about)
    }

    fn decides(&self, store: &Store, batch: usize) -> Result<Box<dyn Forward>, StageError> {
        let parts = Parts {
            spec: &self.about.env,
            files: &self.files,
            store,
            batch,
        };
        match &self.about.form {
            Form::Onnx(form) => form.start(parts),
            Form::Python(form) => form.start(parts),
            Form::Rule(form) => form.start(parts),
        }
    }
}

/// Begins every episode without memory.
struct Forgetting(Box<dyn Forward>);

impl Forward for Forgetting {
    fn reload(&mut self, policy: &OtherPolicy) -> Result<bool, StageError> {
        self.0.reload(policy)
    }

    fn head(&self) -> &ActionHead {
        self.0.head()
    }

    fn state_len(&self) -> usize {
        self.0.state_len()
    }

    fn forward(
        &mut self,
        input: &Observed,
        recurrent: &mut [f32],
        out: &mut Output,
    ) -> Result<(), StageError> {
        let memories = recurrent.chunks_exact_mut(self.state_len().max(1));
        let starting = memories.zip(input.episode_start).filter(|(_, starts)| **starts);
        starting.for_each(|(memory, _)| memory.fill(0.0));
        self.0.forward(input, recurrent, out)
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }
}

impl AnyPolicy {
    /// True if an artifact is a policy.
    pub fn is_one(artifact: &Artifact) -> bool {
        [ENTRY, FORM_ENTRY].iter().any(|entry| artifact.entry(entry).is_some())
    }

    /// Reads the policy of an artifact.
    ///
    /// # Errors
    /// Fails when the artifact is no policy, or is damaged or of another version.
    pub fn read(store: &Store, artifact: &Artifact) -> Result<Self, StageError> {
        if let Some(entry) = artifact.entry(ENTRY) {
            return Policy::load(&store.blob(entry.blob)?).map(Self::Native);
        }
        let Some(entry) = artifact.entry(FORM_ENTRY) else {
            return Err(StageError::new(format!(
                "it is not a policy: it has no file `{ENTRY}` and no `{FORM_ENTRY}`"
            ))
            .hint("give the output of a stage that trains, `ingest/policy` or `policy/rule`"));
        };
        let about: About = serde_json::from_slice(&store.blob(entry.blob)?).map_err(|err| {
            StageError::new(format!("cannot read the policy: {err}"))
                .hint("it was made by another version or damaged; run its stage again")
        })?;
        if about.format != FORMAT {
            return Err(StageError::new(format!(
                "the policy's format is {}, this program reads {FORMAT}",
                about.format
            ))
            .hint("run its stage again"));
        }
        let mut files = BTreeMap::new();
        for entry in artifact.entries.iter().filter(|entry| entry.path != FORM_ENTRY) {
            files.insert(entry.path.clone(), store.blob(entry.blob)?.to_vec());
        }
        Ok(Self::Other(OtherPolicy { about, files }))
    }

    /// Stores the policy as an artifact of the type `policy`, with `meta` beside what every policy says.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn store(&self, store: &Store, meta: Value) -> Result<ArtifactDigest, StageError> {
        let mut all = json!({ "kind": self.kind(), "env": self.spec().name });
        match self {
            Self::Native(policy) => {
                all["architecture"] = json!(policy.architecture());
                all["parameters"] = json!(policy.params().len());
            }
            Self::Other(_) => all["form"] = json!(self.form()),
        }
        if let (Value::Object(all), Value::Object(meta)) = (&mut all, meta) {
            all.extend(meta);
        }
        let mut builder = ArtifactBuilder::new(store, PortType::Policy.name(), all);
        match self {
            Self::Native(policy) => {
                builder.bytes(ENTRY, &policy.save()?)?;
            }
            Self::Other(policy) => {
                let about = cache::canonical_json(&policy.describe());
                builder.bytes(FORM_ENTRY, about.as_bytes())?;
                for (path, bytes) in &policy.files {
                    builder.bytes(path, bytes)?;
                }
            }
        }
        Ok(builder.finish()?)
    }

    /// The stage kind that made the policy.
    pub fn kind(&self) -> &str {
        match self {
            Self::Native(policy) => policy.kind(),
            Self::Other(policy) => &policy.about.kind,
        }
    }

    /// The observations and actions of the environment that it decides in.
    pub fn spec(&self) -> &EnvSpec {
        match self {
            Self::Native(policy) => policy.spec(),
            Self::Other(policy) => &policy.about.env,
        }
    }

    /// The name under which it appears as a baseline, where it has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Native(_) => None,
            Self::Other(policy) => policy.about.name.as_deref(),
        }
    }

    /// `native`, `onnx`, `python` or `rule`.
    pub fn form(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Other(policy) => match policy.about.form {
                Form::Onnx(_) => "onnx",
                Form::Python(_) => "python",
                Form::Rule(_) => "rule",
            },
        }
    }

    /// True if its decisions depend on earlier observations of the episode.
    pub fn remembers(&self) -> bool {
        match self {
            Self::Native(policy) => policy.architecture().remembers(),
            Self::Other(policy) => match &policy.about.form {
                Form::Onnx(form) => form.state_len() > 0,
                Form::Python(form) => form.state_len() > 0,
                Form::Rule(form) => form.state_len() > 0,
            },
        }
    }

    /// The policy, where it is native.
    pub fn native(&self) -> Option<&Policy> {
        match self {
            Self::Native(policy) => Some(policy),
            Self::Other(_) => None,
        }
    }

    /// The rule, where it is one.
    pub fn rule(&self) -> Option<&RuleForm> {
        match self {
            Self::Other(OtherPolicy {
                about:
                    About {
                        form: Form::Rule(rule),
                        ..
                    },
                ..
            }) => Some(rule),
            _ => None,
        }
    }

    /// The policy as a network of ours, which `what` needs, such as "`init`".
    ///
    /// # Errors
    /// Fails when it has another form.
    pub fn into_native(self, what: &str) -> Result<Policy, StageError> {
        let form = self.form();
        match self {
            Self::Native(policy) => Ok(policy),
            Self::Other(policy) => Err(StageError::new(format!(
                "{what} needs a network of this program, and the policy of `{}` has the form `{form}`",
                policy.about.kind
            ))
            .hint("imitate it by `train/imitate`: the student is such a network")),
        }
    }

    /// A state for `batch` environments, each at the start of an episode. `store` is the one that the policy
    /// was read from.
    ///
    /// # Errors
    /// Fails when what decides cannot be started on this machine.
    pub fn start(&self, store: &Store, batch: usize) -> Result<PolicyState, StageError> {
        match self {
            Self::Native(policy) => Ok(policy.start(batch)),
            Self::Other(policy) => {
                let decides = Box::new(Forgetting(policy.decides(store, batch)?));
                Ok(PolicyState::new(decides, &self.spec().action_space, batch))
            }
        }
    }

    /// Chooses an action for each environment of `state`, as [`Policy::act`] does.
    ///
    /// # Errors
    /// Fails where what decides fails.
    pub fn act<'s>(
        &self,
        obs: &[f32],
        action_mask: &[bool],
        episode_start: &[bool],
        state: &'s mut PolicyState,
        mode: Mode,
    ) -> Result<Actions<'s>, StageError> {
        self.forward(obs, action_mask, episode_start, state)?;
        Ok(state.choose(&self.spec().action_space, None, mode))
    }

    /// The outputs alone, in [`PolicyState::output`]; arguments as in [`Policy::act`].
    ///
    /// # Errors
    /// Fails where what decides fails.
    pub fn forward(
        &self,
        obs: &[f32],
        action_mask: &[bool],
        episode_start: &[bool],
        state: &mut PolicyState,
    ) -> Result<(), StageError> {
        let normalisation = self.native().and_then(Policy::observation_normalisation);
        state.forward(normalisation, obs, action_mask, episode_start)
    }
}
