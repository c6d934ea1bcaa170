//! References to artifacts of earlier runs: `RUN/STAGE.OUTPUT`, such as `latest/train` or
//! `20261120T213045-k3f9/train[seed=1].policy`, and `{ pipeline: NAME, stage: STAGE.OUTPUT, or: none }`; and
//! to registered policies: `NAME@ALIAS`, `NAME@VERSION`, `{ policy: NAME@ALIAS, or: none }` or with a stage
//! of this pipeline in place of `none`.
//!
//! `latest` is the last run of the current pipeline, identified by name and file, so that pipelines of the
//! same name in different files of one home never take each other's policy. A run that lacks the output,
//! because it failed or did not run the stage, is skipped.
//!
//! A pipeline does not depend on how runs are stored: the caller passes a function that finds artifacts.
//! References are resolved when the pipeline is loaded.

use crate::text::{Block, Problems, Text, Tree, Written};
use cache::ArtifactDigest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use stages_core::PortType;
use std::path::{Path, PathBuf};

/// The run that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRef<'a> {
    /// The run with this id, with an id that contains this part uniquely, or with this name.
    Named(&'a str),
    /// No run: a registered policy, `NAME@ALIAS` or `NAME@VERSION`.
    Registered(&'a str),
    /// The last run that has the output, among the runs of the pipelines with this name.
    LastOf {
        /// The pipeline's name.
        pipeline: &'a str,
        /// The absolute path of the pipeline file; any file with a pipeline of that name if absent.
        file: Option<PathBuf>,
    },
}

/// A reference to an artifact of an earlier run.
#[derive(Clone, Debug)]
pub struct EarlierRef<'a> {
    /// The run.
    pub run: RunRef<'a>,
    /// The stage.
    pub stage: &'a str,
    /// The axes of the stage's point that the reference fixes, with their values.
    pub point: &'a [(String, Json)],
    /// The output's name; the stage's only output of the required type if absent.
    pub output: Option<&'a str>,
    /// The required type of the artifact; any type if absent.
    pub ty: Option<PortType>,
}

/// An artifact of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The run, the stage and the output: `20261120T213045-k3f9/train.policy`.
    pub name: String,
    /// The artifact's type.
    pub ty: String,
    /// The artifact's digest.
    pub digest: ArtifactDigest,
}

/// The error for a reference that cannot be resolved, with a hint.
#[derive(Clone, Debug)]
pub struct NotFound {
    /// The error message, a lowercase fragment.
    pub message: String,
    /// The hint.
    pub hint: String,
}

/// Finds the artifacts of earlier runs; `None` if no run of a pipeline has the output yet.
pub type FindEarlier = Box<dyn Fn(&EarlierRef<'_>) -> Result<Option<Earlier>, NotFound>>;

/// Counts the policies that were tried under a name, including the one that is being tried.
pub type FindTried = Box<dyn Fn(&str) -> Result<usize, NotFound>>;

/// The pipeline that is being read.
#[derive(Clone, Copy)]
pub(crate) struct This<'a> {
    /// The pipeline's name.
    pub name: &'a str,
    /// The pipeline file.
    pub file: &'a Path,
    /// The absolute directory of the pipeline file.
    pub base: &'a Path,
}

impl This<'_> {
    /// The absolute path of the pipeline file.
    pub(crate) fn path(&self) -> PathBuf {
        self.base.join(self.file.file_name().unwrap_or_default())
    }
}

/// A reference to an artifact of an earlier run, as written.
pub(crate) struct Need<'t> {
    pub run: RunRef<'t>,
    /// The artifact: `STAGE`, `STAGE.OUTPUT` or `STAGE[AXIS=VALUE]`.
    pub artifact: &'t str,
    /// `or`: the replacement if there is no such artifact, `none` or a stage of this pipeline.
    pub or: Option<&'t Tree>,
}

/// The forms of references, for hints.
pub(crate) const FORMS: &str = "write `RUN/STAGE`, `RUN/STAGE.OUTPUT` or `\"RUN/STAGE[AXIS=VALUE]\"`, where \
                                RUN is an id or `latest`, or \
                                `{ pipeline: NAME, stage: STAGE, or: none }`";

/// True if a need refers to an artifact of an earlier run.
pub(crate) fn is_earlier(need: &Tree) -> bool {
    need.entry("pipeline").is_some()
        || need.entry("policy").is_some()
        || need
            .text()
            .is_some_and(|text| split(text).is_some() || names_policy(text))
}

/// True if a text is a reference to a registered policy.
fn names_policy(text: &str) -> bool {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    name.contains('@') && !name.contains('/')
}

/// An output of the last run of a pipeline that has it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is read is borrowed from the file")]
pub(crate) struct OfPipeline {
    /// The name of the pipeline, this one or another in the same home.
    pipeline: Text<Fixed>,
    /// Its file, relative to this one; needed where several files have pipelines of that name.
    file: Option<Text<Fixed>>,
    /// `STAGE`, `STAGE.OUTPUT` or `STAGE[AXIS=VALUE]`.
    stage: Text<Fixed>,
    /// `none`: without a run that has the output, the input is not connected.
    #[schemars(with = "Option<String>", extend("const" = "none"))]
    or: Option<Text<Nothing>>,
}

/// A registered policy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is read is borrowed from the file")]
pub(crate) struct OfPolicy {
    /// `NAME@ALIAS` or `NAME@VERSION`.
    #[schemars(extend("pattern" = "^[A-Za-z][A-Za-z0-9_.-]*@[A-Za-z0-9_.-]+$"))]
    policy: Text<PolicyVersion>,
    /// `none`, where the input is optional, or a stage: what is taken while there is none.
    or: Option<Text<Fixed>>,
}

struct Nothing;

impl Written for Nothing {
    fn read(text: &str) -> Result<Self, String> {
        let message = "the only substitute for an earlier run that is missing is `none`\n";
        (text == "none").then_some(Self).ok_or_else(|| message.to_owned())
    }
}

/// A text without interpolations.
pub(crate) struct Fixed;

impl Written for Fixed {
    fn read(text: &str) -> Result<Self, String> {
        match text.contains("${") {
            true => Err(format!("`{text}` is not fixed\n`needs` cannot contain interpolations")),
            false => Ok(Self),
        }
    }
}

struct PolicyVersion;

impl Written for PolicyVersion {
    fn read(text: &str) -> Result<Self, String> {
        let is_version = text.contains('@') && !text.contains("${");
        is_version
            .then_some(Self)
            .ok_or_else(|| ", not a version of a policy\n".to_owned())
    }
}

/// Reads a need for which [`is_earlier`] is true; `None` if it has errors.
pub(crate) fn read<'t>(need: &'t Tree, this: This<'t>, problems: &mut Problems) -> Option<Need<'t>> {
    let registered = |policy, or| Need {
        run: RunRef::Registered(policy),
        artifact: "",
        or,
    };
    if let Some(text) = need.text() {
        if names_policy(text) {
            return Some(registered(text, None));
        }
        let (run, artifact) = split(text).unwrap_or_default();
        let run = match run {
            "" => return problems.fail(need.spot, format!("`{text}` is not a valid reference"), FORMS),
            "latest" => RunRef::LastOf {
                pipeline: this.name,
                file: Some(this.path()),
            },
            before if before.starts_with("latest~") => {
                return problems.fail(
                    need.spot,
                    format!("`{before}` is no run of this pipeline: it moves with every run"),
                    "write `latest/STAGE.OUTPUT`, or the name or id of a run",
                );
            }
            named => RunRef::Named(named),
        };
        let or = None;
        return Some(Need { run, artifact, or });
    }
    let text = |key: &str| need.entry(key).and_then(|(_, value)| value.text());
    let or = need.entry("or").map(|(_, or)| or);
    if need.entry("policy").is_some() {
        Block::named("policy", "a need".to_owned()).read::<OfPolicy>(need, need, problems)?;
        return Some(registered(text("policy")?, or));
    }
    Block::named("need", "a need".to_owned()).read::<OfPipeline>(need, need, problems)?;
    let (pipeline, artifact) = (text("pipeline")?, text("stage")?);
    let file = match text("file") {
        Some(file) => Some(this.base.join(file)),
        None => (pipeline == this.name).then(|| this.path()),
    };
    let run = RunRef::LastOf { pipeline, file };
    Some(Need { run, artifact, or })
}

/// Splits a reference to an earlier run into the run and the rest; `None` for a reference to a stage of this
/// pipeline.
fn split(text: &str) -> Option<(&str, &str)> {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    let at = name.find('/')?;
    Some((&text[..at], &text[at + 1..]))
}
