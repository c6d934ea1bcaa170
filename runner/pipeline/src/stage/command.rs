//! The external program of a `run:` stage: its text, what it sees, and how it is isolated.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::{PortType, Source};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The default of `log:`, in bytes.
pub const LOG_LIMIT: u64 = 64 << 20;

/// A `run:` stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// The text for the shell, in which `${needs.X}` and `${outputs.X}` are not yet replaced and `$${` stands
    /// for `${`.
    pub command: String,
    /// Files of the pipeline's directory that it reads: relative names, globs expanded.
    pub files: Vec<Source>,
    /// Its outputs: name to file name in its working directory.
    pub outputs: BTreeMap<String, String>,
    /// The types of those outputs that are data sets; part of the key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, PortType>,
    /// The directories of inputs that are collected from a matrix, by port, in the order of the inputs:
    /// `seed=1`. Part of the key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub points: BTreeMap<String, Vec<String>>,
    /// Environment variables, part of the key.
    pub env: BTreeMap<String, String>,
    /// Names of environment variables passed on from outside, not part of the key.
    pub secrets: Vec<String>,
    /// The shell that reads the text; part of the key.
    pub shell: Shell,
    /// The isolation that the stage asks for; `None` leaves it to the user's default. Not part of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// True if the program reaches the network; part of the key.
    pub network: bool,
    /// The programs outside the system's directories that it runs; part of the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The maximum size of its log in bytes: the first and the last half are kept. Not part of the key.
    pub log_limit: u64,
    /// The image that it runs in, `IMAGE@sha256:…`; part of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The function that it calls, in place of a text for the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonCall>,
}

/// The function of a `uses: python` stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonCall {
    /// `MODULE:FUNCTION`; part of the key.
    pub call: String,
    /// The directory of its modules in the stage's working directory; empty for that itself.
    pub root: String,
    /// Its keyword arguments besides the inputs; part of the key.
    pub with: BTreeMap<String, Value>,
    /// The seed of the context; part of the key.
    pub seed: u64,
    /// The interpreter's name on the stage's PATH.
    pub program: String,
    /// The versions of the installed packages, by name; part of the key.
    pub packages: BTreeMap<String, String>,
    /// The directories that they are installed in.
    pub sites: Vec<PathBuf>,
}

impl Default for Command {
    fn default() -> Self {
        Self {
            command: String::new(),
            files: Vec::new(),
            outputs: BTreeMap::new(),
            types: BTreeMap::new(),
            points: BTreeMap::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            shell: Shell::default(),
            isolation: None,
            network: false,
            tools: Vec::new(),
            log_limit: LOG_LIMIT,
            container: None,
            python: None,
        }
    }
}

/// The shell of a `run:` stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// `bash -euo pipefail -c TEXT`.
    #[default]
    Bash,
    /// `sh -e -c TEXT`.
    Sh,
}

impl Shell {
    /// All shells.
    pub const ALL: [Self; 2] = [Self::Bash, Self::Sh];

    /// Its name in a pipeline file, and its program's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
        }
    }

    /// Its arguments before the text.
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["-euo", "pipefail", "-c"],
            Self::Sh => &["-e", "-c"],
        }
    }
}

/// The isolation that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// The strongest that the system has.
    #[default]
    Auto,
    /// Namespaces, or else the stage fails.
    Required,
    /// No isolation.
    None,
}

impl Isolation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Required, Self::None];

    /// Its name in files and arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }

    /// The isolation of a stage that asks for `stage`, where `self` is the user's default: the stage decides,
    /// but what either of them requires is required.
    #[must_use]
    pub fn of(self, stage: Option<Self>) -> Self {
        match (self, stage) {
            (Self::Required, _) => Self::Required,
            (_, Some(stage)) => stage,
            (default, None) => default,
        }
    }
}

/// A program that a `run:` stage declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name in the key: as the pipeline names it, relative to the pipeline; of an absolute path the last
    /// part.
    pub name: String,
    /// The canonical path of the executable, or the directory of the virtual environment.
    pub path: PathBuf,
    /// The directories and files that it needs, read-only, at their own absolute paths.
    pub visible: Vec<PathBuf>,
    /// The addition to PATH: the executable (under the last part of `name`), or the `bin` of the environment.
    pub bin: PathBuf,
    /// The text that the first line of `TOOL --version` must contain, of `bin/python --version` for an
    /// environment. In the key: for an executable instead of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True for an environment that sees the packages of its interpreter's installation; in the key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub system_packages: bool,
    /// The files whose contents stand for it in the key: the executable (whose name is empty), or the
    /// environment's lock file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Tool {
    /// True for a virtual environment, whose `bin` is a directory on PATH; false for a single executable, of
    /// which PATH gets a link.
    pub fn is_environment(&self) -> bool {
        self.bin != self.path
    }

    /// The name under which a single executable is found on PATH.
    pub fn link(&self) -> &str {
        Path::new(&self.name)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(&self.name)
    }
}

/// Its name, with its version if it is known by that: `python3 (3.11.2)`.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, " ({version})"),
            None => Ok(()),
        }
    }
}
