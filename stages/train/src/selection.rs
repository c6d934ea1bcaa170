//! The policy that a training hands on: the best of the validated ones, or else the last.

use serde::Serialize;
use stages_env::Normalisation;
use std::sync::Arc;

/// The best policy so far; a part of the train state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    /// The best policy; `None` until a validation has given a finite value.
    pub best: Option<Arc<Best>>,
    /// The number of validations since the last improvement.
    pub since: u64,
    /// The environment steps of all validations.
    pub played: u64,
    /// The step of training at the last validation.
    pub at: u64,
}

/// A policy, as it was when it was validated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    /// Environment steps done at the validation.
    pub step: u64,
    /// The policy's value by the metric that selects.
    pub value: f64,
    /// The parameters of the policy alone.
    pub params: Vec<f32>,
    /// The normalisation of observations at the validation.
    pub normalisation: Option<Normalisation>,
}

/// A policy with its value by the metric that selects.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub value: f64,
    /// The parameters of the policy alone.
    pub params: Vec<f32>,
}

/// The choice of a policy by validation, as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Selected {
    /// Environment steps done when the policy was validated.
    pub step: u64,
    /// The total number of environment steps of the training.
    pub of: u64,
    /// The metric that selects.
    pub by: &'static str,
    /// The policy's value by that metric.
    pub value: f64,
}
