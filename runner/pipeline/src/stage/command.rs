//! The external program of a `run:` stage: its text, what it sees, and how it is isolated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use stages_core::python::site_directories;
use stages_core::{PortType, Source, typed_output};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The default of `log:`, in bytes.
pub const LOG_LIMIT: u64 = 64 << 20;

/// A `run:` stage. It is serialised as in a run's record: fields that the first version lacked are omitted if
/// they have their default value.
///
/// Every setting is a field of this struct. It is part of the action key unless [`Command::NOT_IN_KEY`] names
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// The shell text, in which `${needs.X}` and `${outputs.X}` are not yet replaced and `$${` stands for
    /// `${`.
    pub command: String,
    /// The environment variables set by `env:`.
    pub env: BTreeMap<String, String>,
    /// Files of the pipeline's directory that the program reads: relative names, with globs expanded.
    #[serde(serialize_with = "names", skip_deserializing)]
    pub files: Vec<Source>,
    /// The program's outputs: from the output's name to the file name in the working directory.
    pub outputs: BTreeMap<String, String>,
    /// Names of the environment variables passed on from outside.
    pub secrets: Vec<String>,
    /// The shell that interprets the text.
    #[serde(skip_serializing_if = "stages_core::is_default")]
    pub shell: Shell,
    /// The isolation that the stage requests; `None` leaves it to the user's default.
    #[serde(skip_serializing_if = "stages_core::is_default")]
    pub isolation: Option<Isolation>,
    /// True if the program may use the network.
    #[serde(skip_serializing_if = "stages_core::is_default")]
    pub network: bool,
    /// The programs outside the system's directories that the stage runs.
    #[serde(
        skip_serializing_if = "stages_core::is_default",
        serialize_with = "texts",
        skip_deserializing
    )]
    pub tools: Vec<Tool>,
    /// The container image in which the program runs, `IMAGE@sha256:…`.
    #[serde(skip_serializing_if = "stages_core::is_default")]
    pub container: Option<String>,
    /// The maximum size of the log in bytes, of which the first and last halves are kept; [`LOG_LIMIT`] if
    /// absent.
    #[serde(skip)]
    pub log_limit: Option<u64>,
    /// The types of the outputs that have one; in the key, together with the version of their checks.
    #[serde(skip)]
    pub types: BTreeMap<String, PortType>,
    /// The directories of inputs that are collected from a matrix, by port, in the order of the inputs, such
    /// as `seed=1`; in the key.
    #[serde(skip)]
    pub points: BTreeMap<String, Vec<String>>,
    /// The Python function that the program calls instead of a shell text; in the key.
    #[serde(skip)]
    pub python: Option<PythonCall>,
}

/// The parts of a command that its record leaves out, and a program on another machine needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unrecorded {
    files: Vec<Source>,
    tools: Vec<Tool>,
    log_limit: Option<u64>,
    types: BTreeMap<String, String>,
    points: BTreeMap<String, Vec<String>>,
    /// The call, the interpreter's name, and the directories of its packages.
    python: Option<(PythonCall, String, Vec<PathBuf>)>,
}

impl Command {
    /// The fields that the serialised form leaves out.
    pub fn unrecorded(&self) -> Unrecorded {
        let python = self.python.as_ref();
        Unrecorded {
            files: self.files.clone(),
            tools: self.tools.clone(),
            log_limit: self.log_limit,
            types: self
                .types
                .iter()
                .map(|(name, ty)| (name.clone(), ty.name().to_owned()))
                .collect(),
            points: self.points.clone(),
            python: python.map(|python| (python.clone(), python.program.clone(), python.sites.clone())),
        }
    }

    /// The command, once read from its serialised form, with what that leaves out.
    #[must_use]
    pub fn with(self, unrecorded: Unrecorded) -> Self {
        let typed = |(name, text): (String, String)| {
            let ty = *PortType::ALL.iter().find(|ty| ty.name() == text)?;
            Some((name, ty))
        };
        Self {
            files: unrecorded.files,
            tools: unrecorded.tools,
            log_limit: unrecorded.log_limit,
            types: unrecorded.types.into_iter().filter_map(typed).collect(),
            points: unrecorded.points,
            python: unrecorded.python.map(|(python, program, sites)| PythonCall {
                program,
                sites,
                ..python
            }),
            ..self
        }
    }

    /// The recorded fields that are not part of the configuration in the key. Files and tools are in the key
    /// by their contents.
    const NOT_IN_KEY: [&str; 4] = ["files", "secrets", "isolation", "tools"];

    /// The configuration as it is hashed into the key.
    pub fn key_config(&self) -> Value {
        let Ok(Value::Object(mut config)) = serde_json::to_value(self) else {
            return Value::Null;
        };
        config.retain(|name, _| !Self::NOT_IN_KEY.contains(&name.as_str()));
        if let Some(text) = config.remove("command") {
            config.insert("run".to_owned(), text);
        }
        if !self.points.is_empty() {
            config.insert("points".to_owned(), json!(self.points));
        }
        let types = self.types.iter().map(|(name, ty)| {
            let version = typed_output::version(*ty).unwrap_or_default();
            (name.clone(), json!(format!("{} v{version}", ty.name())))
        });
        if !self.types.is_empty() {
            config.insert("types".to_owned(), types.collect::<Map<_, _>>().into());
        }
        if let Some(python) = &self.python {
            config.insert("python".to_owned(), json!(python));
        }
        Value::Object(config)
    }
}

fn names<S: Serializer>(files: &[Source], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|file| &file.name))
}

fn texts<S: Serializer>(tools: &[Tool], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tools.iter().map(ToString::to_string))
}

/// The function of a `uses: python` stage. The serialised fields are part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonCall {
    /// The function, written as `MODULE:FUNCTION`.
    pub call: String,
    /// The stage kind of an installed package that the function runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OfPackage>,
    /// The directory of the function's modules, relative to the stage's working directory; empty for the
    /// working directory itself.
    #[serde(rename = "path")]
    pub root: String,
    /// The function's keyword arguments besides the inputs.
    pub with: BTreeMap<String, Value>,
    /// The seed of the function's context.
    pub seed: u64,
    /// The check of a function that is called by symbol or by partition.
    #[serde(default, skip_serializing_if = "stages_core::is_default")]
    pub check: Check,
    /// The interpreter's name on the stage's `PATH`.
    #[serde(skip)]
    pub program: String,
    /// The versions of the installed packages, by name.
    pub packages: BTreeMap<String, String>,
    /// The directories in which the packages are installed.
    #[serde(skip)]
    pub sites: Vec<PathBuf>,
}

/// A stage kind of an installed package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfPackage {
    /// The kind's name.
    pub name: String,
    /// The version that the kind declares.
    pub version: u32,
}

/// The rows with which it is checked, once for new code, that a function gives the same in parts as for all
/// rows at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// The rows of three symbols, of the last 100,000 rows.
    #[default]
    Whole,
    /// All rows.
    All,
    /// There is no check.
    None,
}

impl Check {
    /// The check as the driver is told; `None` if there is none.
    pub const fn mode(self) -> Option<&'static str> {
        match self {
            Self::Whole => Some("whole"),
            Self::All => Some("all"),
            Self::None => None,
        }
    }
}

/// The shell of a `run:` stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// `bash -euo pipefail -c TEXT`.
    #[default]
    Bash,
    /// `sh -e -c TEXT`.
    Sh,
}

impl Shell {
    /// The shell's name in a pipeline file, which is also the name of its executable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
        }
    }

    /// The shell's arguments before the text.
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["-euo", "pipefail", "-c"],
            Self::Sh => &["-e", "-c"],
        }
    }
}

/// The isolation that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// All isolation settings.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Required, Self::None];

    /// The setting's name in files and arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }

    /// The isolation of a stage that requests `stage`, where `self` is the user's default: the stage decides,
    /// but isolation required by either of them is required.
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
    /// The tool's name in the key: as the pipeline names it, relative to the pipeline; for an absolute path,
    /// its last part.
    pub name: String,
    /// The canonical path of the executable, or the directory of the virtual environment.
    pub path: PathBuf,
    /// The directories and files that the tool needs, mounted read-only at their own absolute paths.
    pub visible: Vec<PathBuf>,
    /// The addition to `PATH`: the executable (under the last part of `name`), or the `bin` of the
    /// environment.
    pub bin: PathBuf,
    /// The text that the first line of `TOOL --version` must contain; for an environment, that of `bin/python
    /// --version`. In the key: for an executable, in place of its content.
    pub version: Option<String>,
    /// True for an environment that can import the packages of its interpreter's installation; in the key.
    pub system_packages: bool,
    /// The files whose contents represent the tool in the key: the executable (listed with an empty name), or
    /// the environment's lock file, or else the records of the packages installed in it.
    pub sources: Vec<Source>,
}

impl Tool {
    /// True for a virtual environment, whose `bin` directory is added to `PATH`; false for a single
    /// executable, to which a link is placed on `PATH`.
    pub fn is_environment(&self) -> bool {
        self.bin != self.path
    }

    /// The package directories of a Python: those of its environment, and those of the installation if the
    /// environment can import from it.
    pub fn sites(&self) -> Vec<PathBuf> {
        let mut prefixes = Vec::new();
        if self.is_environment() {
            prefixes.push(self.path.clone());
        }
        if !self.is_environment() || self.system_packages {
            let program = match self.is_environment() {
                true => fs::canonicalize(self.bin.join("python")).unwrap_or_default(),
                false => self.path.clone(),
            };
            if let Some(prefix) = program.parent().and_then(Path::parent) {
                prefixes.push(prefix.to_owned());
                prefixes.push(prefix.join("local"));
            }
        }
        site_directories(&prefixes)
    }

    /// The name under which a single executable is found on `PATH`.
    pub fn link(&self) -> &str {
        Path::new(&self.name)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(&self.name)
    }
}

/// Formats the tool's name, with its version if the version identifies it: `python3 (3.11.2)`.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, " ({version})"),
            None => Ok(()),
        }
    }
}
