//! An ONNX model as a policy: of any architecture, run by tract.
//!
//! The artifact has the model as it was given (`model.onnx`); `policy.json` says the role of each of its
//! inputs and outputs.

mod acting;
mod guard;
mod ports;
mod run;
mod signature;
#[cfg(test)]
mod tests;

use super::Parts;
use crate::policy::Forward;
use crate::{ActionHead, Architecture};
use acting::Running;
use ports::Ports;
use run::{Feed, Ready};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use signature::{Meaning, Signature};
use stages_core::StageError;
use stages_core::settings::is_default;
use stages_env::{ActionSpace, EnvSpec};
use std::collections::BTreeMap;
use tract_onnx::pb::ModelProto;

/// The entry of the model in the artifact.
pub const MODEL: &str = "model.onnx";

/// The units of a policy's continuous actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Units {
    /// Those of the environment, which holds actions to its bounds.
    #[default]
    Environment,
    /// -1 stands for the lower bound and 1 for the upper one.
    Unit,
    /// Before a hyperbolic tangent, whose -1 and 1 stand for the bounds, as in SAC.
    Tanh,
}

/// The settings of an ONNX model as a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnnxForm {
    signature: Signature,
    /// For each value of the model's observation, the number of the environment's; absent where they are the
    /// environment's, in its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observation_order: Option<Vec<usize>>,
    /// For each of the model's actions (choices or components), the number of the environment's; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action_order: Option<Vec<usize>>,
    #[serde(default, skip_serializing_if = "is_default")]
    units: Units,
    /// The share of drawn actions that are uniform over the allowed choices, where outputs are action values.
    #[serde(default, skip_serializing_if = "is_default")]
    epsilon: f32,
    /// S, the number of floats of an environment's recurrent state.
    #[serde(default, skip_serializing_if = "is_default")]
    state_len: usize,
}

/// Statements of a user about a model, beyond what stands in it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The roles of inputs and outputs, by their names.
    pub tensors: BTreeMap<String, String>,
    /// The names of the values of an observation, in the model's order; empty for the environment's.
    pub observation: Vec<String>,
    /// The names of choices or components, in the model's order; empty for the environment's.
    pub actions: Vec<String>,
    /// The units of continuous actions.
    pub units: Units,
}

/// A model that was checked as a policy.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The settings.
    pub form: OnnxForm,
    /// The environment of its training where the model says it, with its normalisation; else that in which it
    /// acts.
    pub env: EnvSpec,
    /// Sentences on what was told by shapes alone.
    pub assumed: Vec<String>,
}

impl OnnxForm {
    /// The settings of a model that acts in `env`. The model is checked: what it computes, its sizes, and
    /// that its rows are independent.
    ///
    /// # Errors
    /// Fails where the model is not a policy's, or of another environment.
    pub fn check(model: &[u8], env: &EnvSpec, told: &Told) -> Result<Checked, StageError> {
        // Names in a stranger's file are shown, on a terminal, too.
        let clean = |text: String| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self::checked(model, env, told).map_err(|err| StageError {
            message: clean(err.message),
            hint: err.hint.map(clean),
            ..err
        })
    }

    fn checked(model: &[u8], env: &EnvSpec, told: &Told) -> Result<Checked, StageError> {
        StageError::new("a policy over symbolic states has no ONNX form")
            .hint("its inputs are bags of atoms, of any number")
            .when(matches!(env.action_space, ActionSpace::Candidates { .. }))?;
        let proto = guard::decode(model)?;
        let ports = Ports::read(&proto)?;
        let exported = Exported::read(&proto)?;
        let spec = exported.as_ref().map_or(env, |exported| &exported.env);
        if let Some(difference) = spec.difference(env) {
            return Err(StageError::new(format!(
                "the policy was trained in `{}`, and the environment is `{}`: {difference}",
                spec.name, env.name
            ))
            .hint(
                "give the environment that it was trained in, or one with the same observations and actions",
            ));
        }
        let observation_order = order("observation", &told.observation, &env.observation)?;
        let names = env.action_space.names();
        let action_order = order("actions", &told.actions, names)?;
        let missing = action_order
            .as_ref()
            .and_then(|order| (0..names.len()).find(|i| !order.contains(i)));
        if let Some(missing) = missing {
            return Err(StageError::new(format!(
                "`actions` does not name `{}`, which the environment has",
                names[missing]
            ))
            .hint("name all of them, in the order of the model's outputs"));
        }
        let seen = observation_order.as_ref().map_or(env.obs_dim(), Vec::len);
        let (signature, assumed) = signature::resolve(&ports, (env, seen), &told.tensors)?;
        let mut form = Self {
            signature,
            observation_order,
            action_order,
            units: told.units,
            epsilon: exported.as_ref().map_or(0.0, Exported::epsilon),
            state_len: 0,
        };
        let mut running = form.running(model, spec)?;
        form.state_len = running.state_len();
        running.check_rows()?;
        Ok(Checked {
            form,
            env: spec.clone(),
            assumed,
        })
    }

    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    pub fn state_len(&self) -> usize {
        self.state_len
    }

    /// Starts the policy for a number of environments.
    ///
    /// # Errors
    /// Fails when the model is missing, or is not the one that was checked.
    pub fn start(&self, parts: Parts<'_>) -> Result<Box<dyn Forward>, StageError> {
        let model = parts
            .files
            .get(MODEL)
            .ok_or_else(|| StageError::new(format!("the policy has no file `{MODEL}`")).hint(AGAIN))?;
        let running = self.running(model, parts.spec)?;
        StageError::new("the policy's model has another recurrent state than its description")
            .hint(AGAIN)
            .when(running.state_len() != self.state_len)?;
        Ok(Box::new(running))
    }

    /// Makes the model ready, and checks the sizes of its inputs and outputs.
    fn running(&self, model: &[u8], env: &EnvSpec) -> Result<Running, StageError> {
        let proto = guard::decode(model)?;
        let ports = Ports::read(&proto)?;
        let ready = Ready::new(proto, &ports, &self.signature, model.len())?;
        let (signature, space) = (&self.signature, &env.action_space);
        let is_order = |order: &Option<Vec<usize>>, n: usize| {
            order.as_ref().is_none_or(|order| order.iter().all(|&i| i < n))
        };
        let fits = is_order(&self.observation_order, env.obs_dim())
            && is_order(&self.action_order, space.names().len())
            && self
                .action_order
                .as_ref()
                .is_none_or(|order| order.len() == space.names().len());
        StageError::new("the policy's orders are of another environment than its own")
            .hint(AGAIN)
            .when(!fits)?;
        let seen = self.observation_order.as_ref().map_or(env.obs_dim(), Vec::len);
        let outputs = space.num_outputs();
        let chosen = match signature.meaning {
            Meaning::Choice => space.num_components(),
            _ => outputs,
        };
        let output = |name: &Option<String>| name.as_ref().and_then(|name| ready.output_len(name));
        for (what, found, wanted) in [
            ("observation", ready.input_len(Feed::Observation), seen),
            ("action mask", ready.input_len(Feed::ActionMask), space.mask_len()),
            ("start of episodes", ready.input_len(Feed::EpisodeStart), 1),
            ("output of actions", ready.output_len(&signature.actions), chosen),
            ("output of log_std", output(&signature.log_std), outputs),
            ("output of values", output(&signature.value), 1),
        ] {
            let Some(found) = found else { continue };
            StageError::new(format!(
                "the model's {what} has {found} values for each environment, and `{}` has {wanted}",
                env.name
            ))
            .hint(
                "say what the model sees by `observation`, and what it chooses from by `actions`, or give the \
                environment that it was made for",
            )
            .when(found != wanted)?;
        }
        Ok(Running::new(self.clone(), env.clone(), ready))
    }

    /// The head by which actions are chosen from the model's outputs.
    fn head(&self, space: &ActionSpace) -> ActionHead {
        match (space, self.units) {
            (ActionSpace::Continuous { names, .. }, Units::Environment) => {
                ActionHead::Continuous(names.len())
            }
            (ActionSpace::Continuous { names, .. }, Units::Unit) => ActionHead::ScaledGaussian(names.len()),
            (ActionSpace::Continuous { names, .. }, Units::Tanh) => ActionHead::SquashedGaussian(names.len()),
            _ => ActionHead::of(space),
        }
    }
}

const AGAIN: &str = "it was made by another version or damaged; run its stage again";

/// The description in the metadata of a model that this program exported.
#[derive(Deserialize)]
struct Exported {
    env: EnvSpec,
    architecture: Architecture,
}

impl Exported {
    fn read(model: &ModelProto) -> Result<Option<Self>, StageError> {
        let entry = model.metadata_props.iter().find(|entry| entry.key == "runner");
        let value = entry.and_then(|entry| serde_json::from_str::<serde_json::Value>(&entry.value).ok());
        let Some(value) = value.filter(|value| value.get("env").is_some()) else {
            return Ok(None);
        };
        serde_json::from_value(value).map(Some).map_err(|err| {
            StageError::new(format!("the model's metadata entry `runner` cannot be read: {err}"))
                .hint("export the policy again with this version")
        })
    }

    fn epsilon(&self) -> f32 {
        match self.architecture.head {
            ActionHead::QValues { epsilon, .. } => epsilon,
            _ => 0.0,
        }
    }
}

/// For each name in the model's order, its number here; `None` where none are named, or all in their order.
fn order(what: &str, names: &[String], here: &[String]) -> Result<Option<Vec<usize>>, StageError> {
    if names.is_empty() || names == here {
        return Ok(None);
    }
    let mut order = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let at = here.iter().position(|other| other == name).ok_or_else(|| {
            let mut shown: Vec<&str> = here.iter().take(8).map(String::as_str).collect();
            if here.len() > 8 {
                shown.push("…");
            }
            StageError::new(format!(
                "`{what}` names `{name}` at {i}, which the environment does not have"
            ))
            .hint(format!("it has {}", shown.join(", ")))
        })?;
        StageError::new(format!("`{what}` names `{name}` twice")).when(order.contains(&at))?;
        order.push(at);
    }
    Ok(Some(order))
}
