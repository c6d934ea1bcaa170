//! The external program of a `run:` stage, as an executor runs it.

use super::isolation::Sandbox;
use super::job::Program;
use super::limits::Limits;
use cache::Store;
use runner_pipeline::Command;
use stages_core::typed_output::FileType;
use stages_core::{EventSink, Input, Source, StageError};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// An external program to run.
pub(crate) struct Run<'a> {
    pub command: &'a Command,
    pub program: &'a Program,
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    pub files: &'a [Source],
    pub log: &'a Path,
    /// If set, memos are not looked up.
    pub fresh: bool,
    /// The file types that other crates validate.
    pub file_types: &'static [FileType],
    pub sandbox: &'a Sandbox,
    pub store: &'a Store,
    pub events: &'a dyn EventSink,
    pub limits: &'a Limits,
    pub started: Instant,
}

impl Run<'_> {
    /// Returns an error if the run has to end.
    pub(super) fn stop(&self) -> Result<(), StageError> {
        self.limits.stopped(self.started)
    }
}
