//! The external program of a `run:` stage, as an executor runs it.

use super::job::Program;
use runner_pipeline::Command;
use stages_core::typed_output::FileType;
use stages_core::{Input, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// An external program to run.
pub(crate) struct Run<'a> {
    pub command: &'a Command,
    pub program: &'a Program,
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    pub files: &'a [Source],
    pub log: &'a Path,
    /// If set, memos are not looked up.
    pub fresh: bool,
    /// The types whose files others check.
    pub file_types: &'static [FileType],
}
