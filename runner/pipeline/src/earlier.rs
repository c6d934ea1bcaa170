//! References to what earlier runs made: `RUN/STAGE.OUTPUT`, such as `latest/train` or `20261120T213045-k3f9/train[seed=1].policy`.
//!
//! Where runs are kept is none of a pipeline's business: whoever reads it gives a function that finds them. What a reference
//! stands for is settled when the pipeline is read.

use cache::ArtifactDigest;
use serde_json::Value;
use stages_core::PortType;

/// What a reference asks for.
#[derive(Clone, Debug)]
pub struct EarlierRef<'a> {
    /// The run: its id, a part of it, or `latest`.
    pub run: &'a str,
    /// The stage.
    pub stage: &'a str,
    /// Its point, as far as it is given, by axis.
    pub point: &'a [(String, Value)],
    /// Its output; the only one of the type where it is not given.
    pub output: Option<&'a str>,
    /// The type that is needed; any where it is not known.
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

/// Why a reference stands for nothing, and what to do about it.
#[derive(Clone, Debug)]
pub struct NotFound {
    /// What is wrong, a lowercase fragment.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Finds the artifacts of earlier runs.
pub type FindEarlier = Box<dyn Fn(&EarlierRef<'_>) -> Result<Earlier, NotFound>>;

/// The run and the rest of a reference to an earlier run; `None` of one to a stage of this pipeline.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    let at = name.find('/')?;
    Some((&text[..at], &text[at + 1..]))
}
