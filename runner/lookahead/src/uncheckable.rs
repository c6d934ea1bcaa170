//! Outputs and sources that cannot be checked.

use serde::Serialize;

/// An output or a source that could not be compared or changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unchecked {
    /// The stage, or the source that could not be changed.
    pub stage: String,
    /// The output and its file.
    pub what: String,
    /// The reason.
    pub reason: String,
}

impl Unchecked {
    /// Creates the entry for an output of a stage, or for all of them, with the reason.
    pub(crate) fn new(stage: &str, what: &str, reason: impl Into<String>) -> Self {
        Self {
            stage: stage.to_owned(),
            what: what.to_owned(),
            reason: reason.into(),
        }
    }

    /// Creates the entry for a source that cannot be changed.
    pub(crate) fn source(name: &str, reason: &str) -> Self {
        Self::new(name, "", format!("{reason}, so that its future cannot be changed"))
    }
}

impl std::fmt::Display for Unchecked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.what.is_empty() {
            true => write!(f, "{}: {}", self.stage, self.reason),
            false => write!(f, "{}.{}: {}", self.stage, self.what, self.reason),
        }
    }
}
