//! Resolution of `tools:`: the programs of a `run:` stage on this machine, and the files that represent them
//! in the action key.
//!
//! | entry | looked for | in the key |
//! | --- | --- | --- |
//! | `NAME` | on the engine's PATH | its name and the content of the executable |
//! | a path to an executable | relative to the pipeline | the same |
//! | a directory of a virtual environment | relative to the pipeline | its name, the version of its interpreter, its lock file, or else the records of its installed packages |
//! | `{ path or name, version: TEXT }` | likewise | its name and TEXT, which its `--version` has to print |
//!
//! The interpreter of a `uses: python` stage is such a tool, see [`Finder::python`].

use crate::stage::command::Tool;
use crate::stage::shims::{find_program, is_program, is_shim, program_behind};
use crate::text::TextOr;
use schemars::JsonSchema;
use serde::Deserialize;
use stages_core::Source;
use stages_core::python::package_records;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The lock files of a virtual environment, in the order of preference.
const LOCKS: [&str; 7] = [
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pixi.lock",
    "requirements.lock",
    "requirements.txt",
];

/// The file that makes a directory a virtual environment.
const CFG: &str = "pyvenv.cfg";

/// The directories that every program sees.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/etc", "/nix/store", "/gnu/store"];

/// The directories that are shared by unrelated programs or have a special meaning.
const SHARED: [&str; 12] = [
    "/", "/home", "/Users", "/root", "/tmp", "/var", "/dev", "/proc", "/run", "/sys", "/opt", "/stage",
];

/// An entry of `tools:`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "RequestForm")]
pub(crate) struct Request {
    /// A name, or a path if it contains `/`.
    pub name: String,
    /// The text that the program must print for `--version`.
    pub version: Option<String>,
    /// The lock file, relative to the pipeline.
    pub lock: Option<String>,
}

pub(crate) type RequestForm = TextOr<String, ToolForm>;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["path"] }, { "required": ["name"] }]))]
pub(crate) struct ToolForm {
    /// An executable, or the directory of a virtual environment.
    path: Option<String>,
    /// A program on PATH.
    name: Option<String>,
    /// The text that its `--version` prints: in the key instead of its content.
    version: Option<String>,
    /// The file that lists the environment's packages.
    lock: Option<String>,
}

impl TryFrom<RequestForm> for Request {
    type Error = String;

    fn try_from(form: RequestForm) -> Result<Self, String> {
        let form = match form {
            TextOr::Text(name) if name.contains('/') => ToolForm {
                path: Some(name),
                ..ToolForm::default()
            },
            TextOr::Text(name) => ToolForm {
                name: Some(name),
                ..ToolForm::default()
            },
            TextOr::Map(form) => form,
        };
        let name = match (form.path, form.name) {
            (Some(path), None) if path.contains('/') => path,
            (Some(path), None) => format!("./{path}"),
            (None, Some(name)) if !name.contains('/') => name,
            (None, Some(name)) => return Err(format!("`name` is the path `{name}`\nwrite `path: {name}`")),
            (Some(_), Some(_)) => {
                return Err("a tool has both `path` and `name`\nkeep one of them".to_owned());
            }
            (None, None) => return Err("a tool has neither `path` nor `name`\n".to_owned()),
        };
        match name.contains(['\0', '\n']) {
            true => Err("a text with control characters is not a program\n".to_owned()),
            false => Ok(Self {
                name,
                version: form.version,
                lock: form.lock,
            }),
        }
    }
}

/// The error of a tool, and a hint on how to fix it.
pub(crate) type Wrong = (String, String);

/// Finds tools, and caches the result of each request.
pub(crate) struct Finder<'e> {
    env: &'e BTreeMap<String, String>,
    /// The interpreter of Python stages that name none.
    python: &'e str,
    known: RefCell<HashMap<(PathBuf, Request), Result<Tool, Wrong>>>,
}

impl<'e> Finder<'e> {
    /// Creates a finder; `env` has the engine's `PATH` and `HOME`, `python` is the interpreter of Python
    /// stages that name none.
    pub(crate) fn new(env: &'e BTreeMap<String, String>, python: Option<&'e str>) -> Self {
        Self {
            env,
            python: python.unwrap_or("python3"),
            known: RefCell::default(),
        }
    }

    /// Finds the tool of a request, whose paths are relative to `base`.
    pub(crate) fn find(&self, request: &Request, base: &Path) -> Result<Tool, Wrong> {
        let key = (base.to_owned(), request.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = self.search(request, base);
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// The request of the interpreter that a stage names, or of the default one.
    pub(crate) fn interpreter(&self, name: Option<String>, lock: Option<String>) -> Request {
        Request {
            name: name.unwrap_or_else(|| self.python.to_owned()),
            version: None,
            lock,
        }
    }

    /// Finds the interpreter of a `uses: python` stage. An interpreter inside a virtual environment
    /// represents the environment. The versions of its packages are part of the stage's key elsewhere.
    pub(crate) fn python(&self, request: &Request, base: &Path) -> Result<Tool, Wrong> {
        let path = self.locate(&request.name, base)?;
        let environment = match path.is_dir() {
            true => Some(path.as_path()),
            false => path
                .parent()
                .and_then(Path::parent)
                .filter(|env| env.join(CFG).is_file()),
        };
        match environment {
            Some(dir) => self.environment(request, dir, base),
            None => self.search(request, base),
        }
    }

    fn search(&self, request: &Request, base: &Path) -> Result<Tool, Wrong> {
        let written = &request.name;
        let path = self.locate(written, base)?;
        let meta = fs::metadata(&path).map_err(|err| {
            (
                format!("cannot read the tool `{written}`: {err}"),
                format!("it is looked for in {}", base.display()),
            )
        })?;
        if meta.is_dir() {
            let mut tool = self.environment(request, &path, base)?;
            if tool.sources.is_empty() {
                // The packages of conda are not Python's alone.
                if !path.join(CFG).is_file() {
                    return Err((
                        format!("the environment `{written}` of conda has no lock file in it or beside it"),
                        format!(
                            "name the file that lists its packages: `{{ path: {written}, lock: conda.lock }}`"
                        ),
                    ));
                }
                let records = package_records(&tool.sites());
                tool.sources = records
                    .into_iter()
                    .map(|(name, path)| Source::new(name, path))
                    .collect();
            }
            return Ok(tool);
        }
        if !is_program(&path) {
            return Err((
                format!("`{written}` is not an executable file"),
                format!("`chmod +x {written}`, or list it in `files:` if a program reads it"),
            ));
        }
        self.executable(request, &path, base)
    }

    fn search_path(&self) -> &str {
        self.env.get("PATH").map_or("", String::as_str)
    }

    fn home(&self) -> Option<&Path> {
        self.env.get("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// The path of what a request names: a program on `PATH`, or a path relative to `base`.
    fn locate(&self, name: &str, base: &Path) -> Result<PathBuf, Wrong> {
        if name.contains('/') {
            return Ok(base.join(plain(name)));
        }
        find_program(self.search_path(), name).ok_or_else(|| {
            let hint = if base.join(name).exists() {
                format!("to name what is beside the pipeline, write `./{name}`")
            } else {
                format!("install it, or write its path: `tools: [/…/bin/{name}]`")
            };
            (format!("there is no program `{name}` on PATH"), hint)
        })
    }

    fn executable(&self, request: &Request, path: &Path, base: &Path) -> Result<Tool, Wrong> {
        let written = &request.name;
        if request.lock.is_some() {
            return Err((
                format!("`{written}` is an executable, and `lock` is for virtual environments"),
                "remove `lock`, or name the environment's directory".to_owned(),
            ));
        }
        let real = canonical(path, written)?;
        if let Some(shim) = [path, &real].into_iter().find(|path| is_shim(path)) {
            let hint = match program_behind(shim, base, self.search_path(), self.home()) {
                Some(program) => format!("name the program itself: `{}`", program.display()),
                None => "name the program that it starts".to_owned(),
            };
            let message = format!("`{}` is a shim, which starts another program", shim.display());
            return Err((message, hint));
        }
        if let Some(env) = path
            .parent()
            .and_then(Path::parent)
            .filter(|env| env.join(CFG).is_file())
        {
            return Err((
                format!("`{written}` is part of the virtual environment `{}`", env.display()),
                "name the environment's directory: its packages are then part of the key".to_owned(),
            ));
        }
        let name = key_name(written);
        Ok(Tool {
            visible: self.visible(&real, base).into_iter().collect(),
            bin: real.clone(),
            version: request.version.clone(),
            system_packages: false,
            sources: match request.version {
                Some(_) => Vec::new(),
                None => vec![Source::new("", real.clone())],
            },
            path: real,
            name,
        })
    }

    /// The tool of a virtual environment, with its lock file if it has one.
    fn environment(&self, request: &Request, dir: &Path, base: &Path) -> Result<Tool, Wrong> {
        let written = &request.name;
        if request.version.is_some() {
            return Err((
                format!("`{written}` is a directory, and `version` is for executables"),
                "remove `version`: a virtual environment is known by its packages".to_owned(),
            ));
        }
        let cfg = fs::read_to_string(dir.join(CFG)).ok();
        if cfg.is_none() && !dir.join("conda-meta").is_dir() {
            return Err((
                format!("`{written}` is a directory without {CFG}"),
                "name the directory of a virtual environment, or an executable".to_owned(),
            ));
        }
        let bin = dir.join("bin");
        if !bin.is_dir() {
            return Err((
                format!("the virtual environment `{written}` has no `bin`"),
                "create it again: `python3 -m venv DIR`, or `uv sync`".to_owned(),
            ));
        }
        let value = |wanted: &str| {
            let mut lines = cfg.as_deref()?.lines().filter_map(|line| line.split_once('='));
            let value = lines.find(|(name, _)| name.trim() == wanted)?.1.trim();
            (!value.is_empty()).then_some(value)
        };
        let interpreter = value("home").map(Path::new).filter(|home| home.is_absolute());
        let interpreters = interpreter.into_iter().flat_map(|home| {
            // The environment's `python` is a link to the interpreter at this path, which may itself contain
            // links.
            let program = home.join("python3");
            let real = fs::canonicalize(&program).ok();
            let paths = [Some(program), real];
            paths
                .into_iter()
                .flatten()
                .flat_map(move |program| self.visible(&program, base))
        });
        let mut visible: Vec<PathBuf> = vec![dir.to_owned(), canonical(dir, written)?];
        visible.extend(interpreters);
        visible.sort();
        visible.dedup();
        Ok(Tool {
            name: key_name(written),
            path: dir.to_owned(),
            visible,
            bin,
            version: value("version").or_else(|| value("version_info")).map(release),
            system_packages: value("include-system-site-packages").is_some_and(|value| value == "true"),
            sources: lock(request, dir, base)?.into_iter().collect(),
        })
    }

    /// The directory of the installation that contains this executable, or else the executable itself; `None`
    /// if it belongs to the system.
    fn visible(&self, program: &Path, base: &Path) -> Option<PathBuf> {
        if is_system(program) {
            return None;
        }
        let prefix = program
            .parent()
            .filter(|dir| dir.ends_with("bin"))
            .and_then(Path::parent);
        let homes = |path: Option<&Path>| ["/home", "/Users"].iter().any(|all| path == Some(Path::new(all)));
        let is_home = |path: Option<&Path>| {
            path.is_some() && (path == Some(Path::new("/root")) || path == self.home())
                || homes(path.and_then(Path::parent))
        };
        let own = prefix.filter(|prefix| {
            // A hidden directory in a home directory, such as ~/.local or ~/.cargo, holds personal files
            // besides programs.
            let hidden = prefix
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let shared = SHARED.iter().any(|shared| *prefix == Path::new(shared));
            let around = base.starts_with(prefix) || self.home().is_some_and(|home| home.starts_with(prefix));
            !(shared || around || is_home(Some(prefix)) || hidden && is_home(prefix.parent()))
        });
        Some(own.unwrap_or(program).to_owned())
    }
}

/// The lock file of an environment, if it has one.
fn lock(request: &Request, dir: &Path, base: &Path) -> Result<Option<Source>, Wrong> {
    let written = &request.name;
    if let Some(lock) = &request.lock {
        let path = base.join(plain(lock));
        if !path.is_file() {
            return Err((
                format!("the lock file `{lock}` of `{written}` is not there"),
                format!("it is looked for in {}", base.display()),
            ));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(Some(Source::new(name, path)));
    }
    let places = [Some(dir), dir.parent()];
    Ok(LOCKS.iter().find_map(|name| {
        let mut paths = places.iter().flatten().map(|place| place.join(name));
        Some(Source::new(*name, paths.find(|path| path.is_file())?))
    }))
}

/// Sorts tools in the order of `PATH`: executables by name, since their order has no effect, and then
/// environments.
pub(crate) fn in_order(mut tools: Vec<Tool>) -> Vec<Tool> {
    tools.sort_by_key(|tool| match tool.is_environment() {
        true => (true, String::new()),
        false => (false, tool.name.clone()),
    });
    tools
}

/// True if every program sees the path.
fn is_system(path: &Path) -> bool {
    let first = path.components().nth(1);
    // /lib, /lib64, /libx32
    let lib = first.is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"lib"));
    lib || SYSTEM.iter().any(|dir| path.starts_with(dir))
}

fn canonical(path: &Path, written: &str) -> Result<PathBuf, Wrong> {
    fs::canonicalize(path).map_err(|err| {
        (
            format!("cannot read the tool `{written}`: {err}"),
            "check the path".to_owned(),
        )
    })
}

/// The path without `.` components and repeated slashes.
fn plain(path: &str) -> PathBuf {
    Path::new(path)
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .collect()
}

/// The name of a tool in the key. An absolute path is shortened, because it would differ between machines.
fn key_name(written: &str) -> String {
    let path = plain(written);
    let path = if path.is_absolute() {
        path.file_name().map_or(path.as_path(), Path::new)
    } else {
        &path
    };
    let name = path.to_string_lossy();
    if name.is_empty() {
        ".".to_owned()
    } else {
        name.into_owned()
    }
}

/// The release part of a Python version: `3.11.2` for `3.11.2.final.0`.
fn release(version: &str) -> String {
    version.split('.').take(3).collect::<Vec<_>>().join(".")
}
