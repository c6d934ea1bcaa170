//! The requirements of decisions outside of a run: of `policy act`, of schedules and of paper accounts.

use crate::project::{Project, Settings};
use crate::session::Session;
use crate::{config, registry};
use runner_acting::Acting;
use runner_engine::{Control, Failure};
use runner_history::Archive;
use runner_history::trials::Trials;
use runner_pipeline::Pipeline;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Calls a function with the stages of this project; `named` names the command in logs.
pub(crate) fn acting<T>(
    session: &Session,
    archive: &Archive,
    (control, named): (&Control, &'static str),
    run: impl FnOnce(&Acting<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let load = |file: &Path| session.load(file, &Settings::default());
    let options = |pipeline: &Pipeline| {
        let project = Project {
            isolation: config::isolation(archive.store.root())?,
            store: archive.store.clone(),
            runs: archive.runs.clone(),
            pipeline: Arc::new(pipeline.clone()),
            chosen: Vec::new(),
            force: BTreeSet::new(),
            trials: Trials::default(),
        };
        Ok(project.options(session, named))
    };
    run(&Acting {
        archive,
        kinds: registry::kinds(),
        file_types: registry::FILE_TYPES,
        options: &options,
        load: &load,
        control,
    })
}
