//! A pipeline whose sources on servers are files of this machine: what is changed, and what runs in stores of
//! its own, reads no server.

use super::sources::files;
use cache::{Store, Workspace};
use runner_engine::{Control, Failure, fetch_sources};
use runner_pipeline::{Pipeline, Work};
use stages_core::event::Silent;
use std::sync::Arc;

/// The pipeline, and the directories of links that its sources lead through.
pub(super) fn fetched(
    pipeline: &Pipeline,
    chosen: &[usize],
    store: &Store,
    control: &Control,
) -> Result<(Pipeline, Vec<Arc<Workspace>>), Failure> {
    let mut pipeline = pipeline.clone();
    let mut links = Vec::new();
    let store = store.clone().with_interrupt({
        let control = control.clone();
        move || control.cancel.is_cancelled() || control.kill.is_cancelled()
    });
    for &i in chosen {
        let node = &mut pipeline.nodes[i];
        let mut sources = files(node)?;
        if sources.iter().all(|source| source.remote.is_none()) {
            continue;
        }
        let fetched = fetch_sources(&mut sources, &store, &Silent);
        let (_, node_links) = fetched.map_err(|err| {
            let failure = Failure::new(
                runner_engine::exit::STAGE_FAILED,
                format!("`{}`: {}", node.id, err.message),
            );
            err.hint.into_iter().fold(failure, Failure::hint)
        })?;
        links.extend(node_links);
        for source in &mut sources {
            (source.remote, source.digest) = (None, None);
        }
        match &mut node.work {
            Work::Kind { .. } => node.sources = Some(sources),
            Work::Command(command) => Arc::make_mut(command).files = sources,
        }
    }
    Ok((pipeline, links))
}
