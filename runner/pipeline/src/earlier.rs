//! References to artifacts of earlier runs: `RUN/STAGE.OUTPUT`, such as `latest/train` or `20261120T213045-k3f9/train[seed=1].policy`.
//!
//! A pipeline does not depend on the storage of runs: the caller passes a function that finds artifacts. References
//! are resolved when the pipeline is loaded.

use cache::ArtifactDigest;
use serde_json::Value;
use stages_core::PortType;

/// A reference to an artifact of an earlier run.
#[derive(Clone, Debug)]
pub struct EarlierRef<'a> {
    /// The run: its id, a part of the id, or `latest`.
    pub run: &'a str,
    /// The stage.
    pub stage: &'a str,
    /// The axes of its point that the reference gives, with their values.
    pub point: &'a [(String, Value)],
    /// Its output; the only one of the type if absent.
    pub output: Option<&'a str>,
    /// The required type; any type if absent.
    pub ty: Option<PortType>,
}

/// An artifact of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The run, the stage and the output: `20261120T213045-k3f9/train.policy`.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// Its digest.
    pub digest: ArtifactDigest,
}

/// The error of a reference that cannot be resolved, with a hint.
#[derive(Clone, Debug)]
pub struct NotFound {
    /// The error, a lowercase fragment.
    pub message: String,
    /// The hint.
    pub hint: String,
}

/// Finds the artifacts of earlier runs.
pub type FindEarlier = Box<dyn Fn(&EarlierRef<'_>) -> Result<Earlier, NotFound>>;

/// Splits a reference to an earlier run into the run and the rest; `None` for a reference to a stage of this pipeline.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    let at = name.find('/')?;
    Some((&text[..at], &text[at + 1..]))
}
