//! References to artifacts of earlier runs: `RUN/STAGE.OUTPUT`, such as `latest/train` or
//! `20261120T213045-k3f9/train[seed=1].policy`, and `{ pipeline: NAME, stage: STAGE.OUTPUT, or: none }`; and
//! to registered policies: `NAME@ALIAS`, `NAME@VERSION`, `{ policy: NAME@ALIAS, or: none }` or with a stage
//! of this pipeline in place of `none`.
//!
//! `latest` is the last run of the pipeline that says it: of its name and its file, so that two books with
//! pipelines of one name in one home never take each other's policy. A run that has no such output, because
//! it failed or did not run the stage, is passed over.
//!
//! A pipeline does not depend on the storage of runs: the caller passes a function that finds artifacts.
//! References are resolved when the pipeline is loaded.

use crate::text::source::Spot;
use crate::text::suggest::suggest;
use crate::text::tree::{Key, Tree, Value};
use cache::ArtifactDigest;
use serde_json::Value as Json;
use stages_core::PortType;
use std::path::{Path, PathBuf};

/// The run of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRef<'a> {
    /// The run with this id, the only one with this part of an id, or the run of this name.
    Named(&'a str),
    /// No run: a registered policy, `NAME@ALIAS` or `NAME@VERSION`.
    Registered(&'a str),
    /// The last run that has the output, of the pipelines of this name.
    LastOf {
        /// The name of the pipeline.
        pipeline: &'a str,
        /// Its file, as an absolute path; any file of a pipeline of that name if absent.
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
    /// The axes of its point that the reference gives, with their values.
    pub point: &'a [(String, Json)],
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

/// Finds the artifacts of earlier runs; `None` if no run of a pipeline has the output yet.
pub type FindEarlier = Box<dyn Fn(&EarlierRef<'_>) -> Result<Option<Earlier>, NotFound>>;

/// Counts the policies that were tried under a name, the one that is being tried included.
pub type FindTried = Box<dyn Fn(&str) -> Result<usize, NotFound>>;

/// The pipeline that is read.
#[derive(Clone, Copy)]
pub(crate) struct This<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its file.
    pub file: &'a Path,
    /// The absolute directory of its file.
    pub base: &'a Path,
}

impl This<'_> {
    /// The absolute path of its file.
    pub fn path(&self) -> PathBuf {
        self.base.join(self.file.file_name().unwrap_or_default())
    }
}

/// A reference to an artifact of an earlier run as it is written.
pub(crate) struct Written<'t> {
    pub run: RunRef<'t>,
    /// `STAGE`, `STAGE.OUTPUT` or `STAGE[AXIS=VALUE]`.
    pub artifact: &'t str,
    /// The replacement where there is none, if `or` is given.
    pub or: Option<Or<'t>>,
}

/// The replacement of an artifact that is not there.
#[derive(Clone, Copy)]
pub(crate) enum Or<'t> {
    /// Nothing: the input is not connected. With the position.
    Nothing(Spot),
    /// A stage of this pipeline.
    Stage(&'t Tree),
}

/// The forms of references, for hints.
pub(crate) const FORMS: &str = "write `RUN/STAGE`, `RUN/STAGE.OUTPUT` or `\"RUN/STAGE[AXIS=VALUE]\"`, where \
                                RUN is an id or `latest`, or \
                                `{ pipeline: NAME, stage: STAGE, or: none }`";

/// The forms of references to policies, for hints.
const POLICY_FORMS: &str = "write `NAME@ALIAS` or `NAME@VERSION`, such as `desk@champion`, or \
    `{ policy: NAME@ALIAS, or: none }`, or with a stage in place of `none`";

/// True if a need is an artifact of an earlier run.
pub(crate) fn is_earlier(need: &Tree) -> bool {
    need.entry("pipeline").is_some()
        || need.entry("policy").is_some()
        || need
            .text()
            .is_some_and(|text| split(text).is_some() || names_policy(text))
}

/// True for the text of a reference to a registered policy.
fn names_policy(text: &str) -> bool {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    name.contains('@') && !name.contains('/')
}

/// Reads a need for which [`is_earlier`] is true.
///
/// # Errors
/// The position, the error and a hint.
pub(crate) fn read<'t>(need: &'t Tree, this: This<'t>) -> Result<Written<'t>, (Spot, String, String)> {
    if let Some(text) = need.text().filter(|text| names_policy(text)) {
        return Ok(Written {
            run: RunRef::Registered(text),
            artifact: "",
            or: None,
        });
    }
    if let Some(text) = need.text() {
        let (run, artifact) = split(text).unwrap_or_default();
        if run.is_empty() {
            return Err((
                need.spot,
                format!("`{text}` is not a valid reference"),
                FORMS.to_owned(),
            ));
        }
        let run = match run {
            "latest" => RunRef::LastOf {
                pipeline: this.name,
                file: Some(this.path()),
            },
            named => RunRef::Named(named),
        };
        return Ok(Written {
            run,
            artifact,
            or: None,
        });
    }
    let Value::Map(entries) = &need.value else {
        return Err((need.spot, "a need is no reference".to_owned(), FORMS.to_owned()));
    };
    if need.entry("policy").is_some() {
        return registered(need, entries);
    }
    let (mut pipeline, mut file, mut stage, mut or) = (None, None, None, None);
    for (key, value) in entries {
        let slot = match key.name.as_str() {
            "pipeline" => &mut pipeline,
            "file" => &mut file,
            "stage" => &mut stage,
            "or" if value.text() == Some("none") => {
                or = Some(Or::Nothing(value.spot));
                continue;
            }
            "or" => {
                return Err((
                    value.spot,
                    "an earlier run that is not there can be replaced by nothing alone".to_owned(),
                    "write `or: none`, or leave it out".to_owned(),
                ));
            }
            other => {
                let hint = suggest(other, "keys", ["pipeline", "file", "stage", "or"]);
                return Err((key.spot, format!("unknown key `{other}` of a need"), hint));
            }
        };
        let Some(text) = value.text().filter(|text| !text.is_empty()) else {
            let message = format!("`{}` is {}, not a text", key.name, value.describe());
            return Err((value.spot, message, FORMS.to_owned()));
        };
        if text.contains("${") {
            return Err((
                value.spot,
                format!("`{text}` is not fixed"),
                "`needs` cannot contain interpolations".to_owned(),
            ));
        }
        *slot = Some(text);
    }
    let (Some(pipeline), Some(artifact)) = (pipeline, stage) else {
        return Err((
            need.spot,
            "a need of a pipeline names no `stage`".to_owned(),
            FORMS.to_owned(),
        ));
    };
    let file = match file {
        Some(file) => Some(this.base.join(file)),
        None => (pipeline == this.name).then(|| this.path()),
    };
    Ok(Written {
        run: RunRef::LastOf { pipeline, file },
        artifact,
        or,
    })
}

/// Reads `{ policy: NAME@ALIAS, or: … }`.
fn registered<'t>(need: &'t Tree, entries: &'t [(Key, Tree)]) -> Result<Written<'t>, (Spot, String, String)> {
    let (mut policy, mut or) = (None, None);
    for (key, value) in entries {
        match (key.name.as_str(), value.text()) {
            ("policy", Some(text)) if text.contains('@') && !text.contains("${") => policy = Some(text),
            ("policy", _) => {
                let message = format!("`policy` is {}, not a version of a policy", value.describe());
                return Err((value.spot, message, POLICY_FORMS.to_owned()));
            }
            ("or", Some("none")) => or = Some(Or::Nothing(value.spot)),
            ("or", Some(text)) if !text.contains("${") => or = Some(Or::Stage(value)),
            ("or", _) => {
                let message = format!("`or` is {}, not `none` or a stage", value.describe());
                return Err((value.spot, message, POLICY_FORMS.to_owned()));
            }
            (other, _) => {
                let hint = suggest(other, "keys", ["policy", "or"]);
                return Err((key.spot, format!("unknown key `{other}` of a need"), hint));
            }
        }
    }
    match policy {
        Some(policy) => Ok(Written {
            run: RunRef::Registered(policy),
            artifact: "",
            or,
        }),
        None => Err((need.spot, "a need names no policy".to_owned(), POLICY_FORMS.to_owned())),
    }
}

/// Splits a reference to an earlier run into the run and the rest; `None` for a reference to a stage of this
/// pipeline.
fn split(text: &str) -> Option<(&str, &str)> {
    let name = &text[..text.find('[').unwrap_or(text.len())];
    let at = name.find('/')?;
    Some((&text[..at], &text[at + 1..]))
}
