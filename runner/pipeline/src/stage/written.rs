//! Stages as written in the file: keys are checked, values are trees that may contain interpolations.

use crate::stage::interpolate::{Scope, fill};
use crate::stage::setting::Setting;
use crate::text::{Block, Key, Problems, Spot, Tree, keys};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use stages_core::PortType;

/// The value of `uses:` for Python stages.
pub(crate) const USES: &str = "python";

/// A stage as written.
pub(crate) struct Stage {
    pub key: Key,
    /// The position of the value of `uses:`; that of the stage's name for a `run:` stage.
    pub uses: Spot,
    pub job: Job,
    /// `with:`; an empty map if absent.
    pub with: Tree,
    pub needs: Vec<(Key, Tree)>,
    pub matrix: Vec<(Key, Tree)>,
    pub register: Option<Tree>,
    /// The other keys: `resources`, `timeout` and the like; of a program also `files`, `call` and the like.
    pub settings: Tree,
    /// True if a key was rejected, so that a missing key may only be misspelt.
    pub doubtful: bool,
}

/// The work of a stage.
pub(crate) enum Job {
    /// The stage kind that `uses:` names.
    Kind(String),
    /// The kind that `uses:` names, perhaps of an installed package; its program has no command and no
    /// outputs yet.
    Package(String, Box<Program>),
    /// `run:` or `uses: python`.
    Program(Box<Program>),
    /// Neither `uses:` nor `run:`; the error has already been reported.
    Broken,
}

/// The program of a `run:` or Python stage.
#[derive(Default)]
pub(crate) struct Program {
    /// The command; `None` for a Python stage.
    pub run: Option<Tree>,
    pub outputs: Vec<Output>,
    pub env: Vec<(Key, Tree)>,
    /// The environment variables passed to the program from outside.
    pub secrets: Vec<String>,
}

/// An output of a program.
pub(crate) struct Output {
    pub key: Key,
    pub path: Tree,
    pub ty: Option<PortType>,
}

impl Stage {
    /// The program of a `run:` or Python stage, or of a package's kind.
    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.job {
            Job::Program(program) | Job::Package(_, program) => Some(program),
            Job::Kind(_) | Job::Broken => None,
        }
    }

    /// The names of the stage's inputs.
    pub(crate) fn inputs(&self) -> Vec<&str> {
        self.needs.iter().map(|(key, _)| key.name.as_str()).collect()
    }

    /// Reads those of the settings that are fields of `T`; `None` if they have errors.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        block: &'static str,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Option<T> {
        let (known, entries) = (keys::<T>(), self.settings.entries().iter());
        let own = entries.filter(|(key, _)| known.contains(&key.name.as_str()));
        let own = Tree::map(self.settings.spot, own.cloned().collect());
        Block::of(block).fill(&own, scope, problems)
    }

    /// `with:` at a point, with the values that `settings` give to it. `default` is the complete default
    /// configuration.
    pub(crate) fn with(
        &self,
        settings: &[Setting],
        default: impl Fn() -> Json,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Tree {
        let mut with = fill(&self.with, scope, problems);
        for setting in settings.iter().filter(|setting| setting.stage == self.key.name) {
            let setting = setting.filled(scope, problems);
            if let Err((spot, message, hint)) = setting.apply(&mut with, &default()) {
                problems.add(spot, message, hint);
            }
        }
        with
    }
}

impl Program {
    /// The names of the outputs.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.key.name.as_str()).collect()
    }
}

impl Output {
    /// The output's name and the type of its artifact.
    pub(crate) fn port(&self) -> (&str, PortType) {
        (&self.key.name, self.ty.unwrap_or(PortType::File))
    }
}
