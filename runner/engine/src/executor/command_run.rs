//! The external program of a `run:` stage, as an executor is given it.

use super::python::PythonWork;
use runner_pipeline::{Isolation, Shell, Tool};
use stages_core::typed_output::FileType;
use stages_core::{Input, PortType, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// An external program to run.
pub(crate) struct Run<'a> {
    pub command: &'a str,
    /// The function that it calls, in place of the text.
    pub python: Option<&'a PythonWork>,
    /// If set, memos are not looked up.
    pub fresh: bool,
    pub outputs: &'a BTreeMap<String, String>,
    /// The types of those that have one.
    pub types: &'a BTreeMap<String, PortType>,
    /// The types whose files others check.
    pub file_types: &'static [FileType],
    /// The directories of collected inputs.
    pub points: &'a BTreeMap<String, Vec<String>>,
    pub env: &'a BTreeMap<String, String>,
    /// The variables of `env` whose values are masked in the log.
    pub secrets: &'a [String],
    pub shell: Shell,
    pub isolation: Isolation,
    pub network: bool,
    pub tools: &'a [Tool],
    pub log_limit: u64,
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    pub files: &'a [Source],
    pub log: &'a Path,
    /// The image that it runs in.
    pub container: Option<&'a str>,
    /// The limit of its memory in bytes.
    pub memory: Option<u64>,
    /// The engine's own variables that find programs, and the directory of the pipeline.
    pub host_env: &'a BTreeMap<String, String>,
    pub base: &'a Path,
}
