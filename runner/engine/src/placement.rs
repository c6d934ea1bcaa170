//! The choice between this machine and an executor of others for a stage.

use crate::executor::{Elsewhere, JobStore};
use crate::prepare::Prepared;
use cache::Store;
use runner_pipeline::{HERE, Node, Work};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The reason for which stages run on this machine that are expected to be short.
pub(crate) const SMALL: &str = "they are expected to take less time than a job costs";

/// The executor that a node requests by its name, or else `default`; `None` for this machine.
pub(crate) fn requested<'a>(node: &'a Node, default: Option<&'a str>) -> Option<&'a str> {
    let name = node.resources.executor.as_deref().or(default);
    name.filter(|name| *name != HERE)
}

/// The reason why a stage runs on this machine although it requests an executor of others; `expected` is its
/// run time in seconds, if known.
pub(crate) fn stays(
    node: &Node,
    prepared: &Prepared,
    elsewhere: &Elsewhere,
    store: &Store,
    expected: impl FnOnce() -> Option<f64>,
) -> Option<&'static str> {
    bound_here(node, prepared, &elsewhere.store, store).or_else(|| {
        // A stage that names its executor is sent, however short.
        let is_small = node.resources.executor.is_none()
            && expected().is_some_and(|expected| expected < elsewhere.small.as_secs_f64());
        is_small.then_some(SMALL)
    })
}

/// The reason why a stage has to run on the engine's machine, whatever executor it requests.
fn bound_here(node: &Node, prepared: &Prepared, jobs: &JobStore, store: &Store) -> Option<&'static str> {
    let is_node = matches!(jobs, JobStore::Node { .. });
    if let Work::Command(command) = &node.work {
        if !command.secrets.is_empty() {
            return Some("its secrets do not leave this machine");
        }
        if is_node {
            return Some("its program is on this machine");
        }
    }
    let device = |path: &Path| std::fs::metadata(path).map(|meta| meta.dev()).ok();
    let home = device(store.root());
    let mut sources = prepared.sources.iter();
    let is_unseen = sources.any(|source| is_node || device(&source.path) != home);
    is_unseen.then_some("it reads files that are not on the file system of the store")
}
