//! Stages as written in the file: keys are checked, values are trees that may contain interpolations.

use crate::text::source::Spot;
use crate::text::tree::{Key, Tree};
use crate::text::typed::{Text, Whole, Written, keys};
use crate::text::units::size;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stages_core::PortType;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

/// The keys of every stage; the limits are read at each point.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Common {
    #[schemars(skip)]
    needs: IgnoredAny,
    #[schemars(skip)]
    matrix: IgnoredAny,
    /// The resources that the stage requires.
    pub resources: Requests,
    /// The number of retries after a failure.
    pub retries: Option<Whole<0, 100>>,
    /// The time limit: `90s`, `2h`, `5d`.
    pub timeout: Option<Text<Duration>>,
    #[schemars(skip)]
    register: IgnoredAny,
}

/// `resources:`
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Requests {
    /// The number of threads; by default the running stages share the cores.
    pub threads: Option<Whole<1, 4096>>,
    /// Memory, such as `4GiB`.
    pub memory: Option<Text<Size>>,
}

/// A size in bytes.
pub(crate) struct Size(pub u64);

impl Written for Size {
    const PATTERN: Option<&'static str> = Some("^[0-9.]+ *([KMGT]i?B|kB|B)$");

    fn read(text: &str) -> Result<Self, String> {
        size(text).map(Self).ok_or_else(String::new)
    }
}

/// The keys of a stage that has a kind.
pub(crate) const OF_KIND: [&str; 2] = ["uses", "with"];

/// The value of `uses:` for Python stages.
pub(crate) const USES: &str = "python";

/// The keys of every stage, of `run:` stages and of Python stages.
pub(crate) struct Keys {
    pub common: &'static [&'static str],
    pub command: &'static [&'static str],
    pub python: Vec<&'static str>,
}

pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let command = keys::<super::run_stage::Settings>();
    let shared = command
        .iter()
        .filter(|key| !["run", "shell", "container"].contains(key));
    Keys {
        common: keys::<Common>(),
        command,
        python: keys::<super::python_stage::Settings>()
            .iter()
            .chain(shared)
            .copied()
            .collect(),
    }
});

/// A stage as written.
pub(crate) struct Stage {
    pub key: Key,
    pub job: Job,
    pub needs: Vec<(Key, Tree)>,
    pub matrix: Vec<(Key, Tree)>,
    /// `resources`, `retries` and `timeout`.
    pub limits: Tree,
    pub register: Option<Tree>,
    /// True if a key was rejected, so that a missing key may only be misspelt.
    pub doubtful: bool,
}

impl Stage {
    /// The environment variables passed to the stage from outside.
    pub(crate) fn secrets(&self) -> &[String] {
        match &self.job {
            Job::Command(program) => &program.secrets,
            Job::Kind { .. } | Job::Broken => &[],
        }
    }
}

/// The work of a stage.
pub(crate) enum Job {
    /// `uses:`
    Kind {
        name: String,
        spot: Spot,
        /// `with:`; an empty map if absent.
        with: Tree,
    },
    /// `run:`
    Command(Box<Program>),
    /// Neither `uses:` nor `run:`; the error has already been reported.
    Broken,
}

/// The keys of a `run:` stage beyond the common ones.
#[derive(Default)]
pub(crate) struct Program {
    pub run: Tree,
    /// The paths of the outputs.
    pub outputs: Vec<(Key, Tree)>,
    /// The types of the outputs that have one.
    pub types: BTreeMap<String, PortType>,
    pub env: Vec<(Key, Tree)>,
    pub secrets: Vec<String>,
    /// The other settings: `files`, `tools`, `shell` and the like.
    pub settings: Tree,
    /// The function of a `uses: python` stage, whose `run` is empty.
    pub python: Option<PythonStage>,
}

/// The keys of a Python stage beyond the common ones, as written.
#[derive(Default)]
pub(crate) struct PythonStage {
    /// The position of `uses`.
    pub spot: Spot,
    pub with: Tree,
    /// `call`, `path` and the like.
    pub settings: Tree,
}
