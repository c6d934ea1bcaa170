//! A rule as a policy: lines of a condition and an action, over named observations.
//!
//! Conditions and amounts are expressions ([`stages_env::expression`]) over the names of an observation and
//! of the account; docs/guides/rules.md has examples. Observations are in their own units: the policy's
//! specification has the identity as normalisation. All lines are evaluated for all environments at each
//! step, so that what they remember does not depend on which of them decides.

mod compiled;
mod config;
mod names;
mod stage;
#[cfg(test)]
mod tests;

use super::Parts;
use crate::policy::Forward;
use compiled::Compiled;
use config::{Action, Line};
pub use config::{RuleConfig, check_name};
use serde::{Deserialize, Serialize};
pub use stage::Rule;
use stages_core::{ConfigProblem, StageError};
use stages_env::{EnvSpec, Normalisation};

/// The settings of a rule as a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleForm {
    rules: Vec<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    otherwise: Option<Action>,
    /// The names of the choices, in the order of the action mask.
    choices: Vec<String>,
    /// S, the number of floats of an environment's recurrent state.
    #[serde(default)]
    state_len: usize,
}

impl RuleForm {
    /// A rule over the observations and actions of an environment, whose choices have these names.
    ///
    /// # Errors
    /// The first mistake, with its field.
    pub fn new(config: &RuleConfig, spec: &EnvSpec, choices: Vec<String>) -> Result<Self, ConfigProblem> {
        let compiled = Compiled::new(&config.rules, config.otherwise.as_ref(), spec, &choices)?;
        Ok(Self {
            rules: config.rules.clone(),
            otherwise: config.otherwise.clone(),
            choices,
            state_len: compiled.state_len(),
        })
    }

    /// S, the number of floats of an environment's recurrent state; 0 without memory.
    pub fn state_len(&self) -> usize {
        self.state_len
    }

    /// The rule as text, a line for each of its lines.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.rules.iter().enumerate();
        let each = lines.map(|(i, line)| format!("{}. when {}: {}", i + 1, line.when, line.action.text()));
        let otherwise = self.otherwise.as_ref().map_or("hold".to_owned(), Action::text);
        each.chain([format!("otherwise: {otherwise}")]).collect()
    }

    /// Starts the policy for a number of environments.
    ///
    /// # Errors
    /// Fails when the rule does not fit the specification that is stored beside it.
    pub fn start(&self, parts: Parts<'_>) -> Result<Box<dyn Forward>, StageError> {
        let compiled = Compiled::new(&self.rules, self.otherwise.as_ref(), parts.spec, &self.choices)
            .map_err(|problem| {
                StageError::from(problem).hint("the rule was changed by hand; run its stage again")
            })?;
        Ok(Box::new(compiled.start()))
    }
}

/// The specification by which a rule sees an environment: observations as they are, unscaled.
pub(crate) fn in_own_units(spec: &EnvSpec) -> EnvSpec {
    let unscaled = |_: &Normalisation| Normalisation {
        offset: vec![0.0; spec.obs_dim()],
        scale: vec![1.0; spec.obs_dim()],
        clip: f32::MAX,
    };
    EnvSpec {
        normalisation: spec.normalisation.as_ref().map(unscaled),
        ..spec.clone()
    }
}
