//! Stages as the file has them: keys are checked, values are trees that may hold interpolations.

use crate::text::source::Spot;
use crate::text::tree::{Key, Tree};
use stages_core::PortType;
use std::collections::BTreeMap;

/// The keys of every stage.
pub(crate) const COMMON: [&str; 6] = ["needs", "matrix", "resources", "retries", "timeout", "register"];
/// The keys of a stage with a kind.
pub(crate) const OF_KIND: [&str; 2] = ["uses", "with"];
/// The keys of a `run:` stage.
pub(crate) const OF_COMMAND: [&str; 11] = [
    "run",
    "files",
    "outputs",
    "env",
    "secrets",
    "tools",
    "network",
    "shell",
    "isolation",
    "log",
    "container",
];

/// The name of Python stages in `uses:`.
pub(crate) const USES: &str = "python";

/// The keys of a Python stage.
pub(crate) const OF_PYTHON: [&str; 15] = [
    "uses",
    "with",
    "call",
    "path",
    "python",
    "lock",
    "seed",
    "outputs",
    "files",
    "env",
    "secrets",
    "tools",
    "network",
    "isolation",
    "log",
];

/// A stage as written.
pub(crate) struct Stage {
    pub key: Key,
    pub job: Job,
    pub needs: Vec<(Key, Tree)>,
    pub matrix: Vec<(Key, Tree)>,
    pub threads: Option<Tree>,
    pub memory: Option<Tree>,
    pub retries: Option<Tree>,
    pub timeout: Option<Tree>,
    pub register: Option<Tree>,
    /// True if a key was rejected, so that a missing key may only be misspelt.
    pub doubtful: bool,
}

impl Stage {
    /// The environment variables passed to it from outside.
    pub fn secrets(&self) -> &[String] {
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
    /// Neither; the error is already reported.
    Broken,
}

/// A `run:` stage's own keys.
#[derive(Default)]
pub(crate) struct Program {
    pub run: Tree,
    pub files: Vec<Tree>,
    /// The paths of the outputs.
    pub outputs: Vec<(Key, Tree)>,
    /// The types of those that are data sets.
    pub types: BTreeMap<String, PortType>,
    pub env: Vec<(Key, Tree)>,
    pub secrets: Vec<String>,
    pub tools: Vec<Tree>,
    pub shell: Option<Tree>,
    pub isolation: Option<Tree>,
    pub network: Option<Tree>,
    pub log: Option<Tree>,
    pub container: Option<Tree>,
    /// The function of a `uses: python` stage, whose `run` is empty.
    pub python: Option<PythonStage>,
}

impl Program {
    /// The settings with a single value, by key.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &Tree)> {
        let all = [
            ("shell", &self.shell),
            ("isolation", &self.isolation),
            ("network", &self.network),
            ("log", &self.log),
            ("container", &self.container),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}

/// The own keys of a Python stage as written.
#[derive(Default)]
pub(crate) struct PythonStage {
    /// The position of `uses`.
    pub spot: Spot,
    pub call: Option<Tree>,
    pub path: Option<Tree>,
    pub python: Option<Tree>,
    pub lock: Option<Tree>,
    pub seed: Option<Tree>,
    pub with: Tree,
}

impl PythonStage {
    /// The settings with a single value but `call`, by key.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &Tree)> {
        let all = [
            ("path", &self.path),
            ("python", &self.python),
            ("lock", &self.lock),
            ("seed", &self.seed),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}
