//! Stage kinds of installed Python packages: how a package is asked for them.

use crate::config;
use crate::output;
use crate::project::{Project, Settings};
use crate::registry::FILE_TYPES;
use crate::session::{Session, temporary_directory};
use cache::Store;
use runner_engine::executor::{Executor, WorkerProcess};
use runner_engine::{Control, Failure, run_alone};
use runner_history::trials::Trials;
use runner_pipeline::{DescribeKinds, LARGEST_DESCRIPTION, LoadOptions, Node, Pipeline};
use runner_report::reporter::Verbosity;
use stages_core::{EventSink, StageEvent};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The permission to import a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    /// It is imported if it has not been before.
    Allowed,
    /// Only what it said before is read.
    Never,
}

/// Asks packages for their kinds, in a program that is isolated as those of `run:` stages are. The store of
/// `home` remembers what they say; where there is none yet, nothing does.
pub(crate) fn describing(session: &Session, home: &Path, import: Import) -> DescribeKinds {
    let (session, home) = (session.clone(), home.to_owned());
    Box::new(move |node| {
        describe(&session, &home, node, import).map_err(|failure| {
            let causes = failure.causes.iter().map(|cause| format!(": {cause}"));
            let message = failure.message.clone() + &causes.collect::<String>();
            (message, failure.hint.unwrap_or_default())
        })
    })
}

fn describe(session: &Session, home: &Path, node: &Node, import: Import) -> Result<Vec<u8>, Failure> {
    let scratch = temporary_directory()?;
    let store = match home.is_dir() {
        true => session.store(home)?,
        false => Store::open(&scratch.path().join("home"))?,
    };
    let _guard = store.guard()?;
    let executor = WorkerProcess::new(&store, FILE_TYPES)
        .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let executor: &dyn Executor = &executor;
    let project = Project {
        isolation: config::isolation(home)?,
        store: store.clone(),
        runs: PathBuf::new(),
        pipeline: Arc::new(Pipeline::default()),
        chosen: Vec::new(),
        force: BTreeSet::new(),
        trials: Trials::default(),
    };
    let mut options = project.options(session, "kinds");
    // The log of a package that fails is of no run.
    options.logs = scratch.path().to_owned();
    let events: Arc<dyn EventSink> = Arc::new(Warnings(session.verbosity));
    let executor = Some(executor).filter(|_| import == Import::Allowed);
    let hit = run_alone(node, &store, executor, &options, &Control::default(), &events);
    let hit = hit.map_err(|err| Failure {
        // The log that a hint names is removed; its last lines are in the message.
        hint: err
            .hint
            .filter(|hint| !hint.contains(&*scratch.path().to_string_lossy())),
        ..Failure::usage(err.message)
    })?;
    let hit = hit.ok_or_else(|| Failure::usage("it has not been imported yet"))?;
    let digest = hit.outputs.values().next().copied();
    let artifact = digest.map(|digest| store.artifact(digest)).transpose()?;
    let entries = artifact.map(|artifact| artifact.entries).unwrap_or_default();
    match &entries[..] {
        [entry] if entry.size <= LARGEST_DESCRIPTION => Ok(store.blob(entry.blob)?.to_vec()),
        _ => Err(Failure::usage(format!(
            "it wrote more than {LARGEST_DESCRIPTION} bytes"
        ))),
    }
}

/// Prints the warnings of the program.
struct Warnings(Verbosity);

impl EventSink for Warnings {
    fn emit(&self, event: StageEvent) {
        if let (StageEvent::Warning { message, .. }, false) = (event, self.0 == Verbosity::Quiet) {
            output::warn(&message);
        }
    }
}

impl Session {
    /// The options with which the kinds of packages are read without a pipeline.
    pub(crate) fn reading_kinds(&self, import: Import) -> Result<LoadOptions, Failure> {
        let options = self.reading(Path::new("pipeline.yaml"), &Settings::default())?;
        Ok(LoadOptions {
            describe: Some(describing(self, &self.home(None), import)),
            ..options
        })
    }
}
