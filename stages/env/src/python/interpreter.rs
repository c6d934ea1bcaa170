//! A project's sources and its interpreter: found while the pipeline is planned, without starting it, and
//! again where the artifact is opened.
//!
//! An artifact names versions, not places. The store therefore keeps, beside its artifacts and for this
//! machine alone, the path of the interpreter that had these versions when the stage ran.

use super::artifact::{PROJECT, Versions, inner, write};
use cache::{BlobRef, Store};
use stages_core::python::{imported, installed_packages, package_records, site_directories};
use stages_core::{ConfigProblem, Source, StageError};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The name of the interpreter among the sources of the stage.
const INTERPRETER: &str = "python";
/// The directory of the packages' records in the names of sources.
const PACKAGES: &str = "site-packages";

/// A user's modules and the interpreter that runs them, as settings name them.
#[derive(Clone, Copy, Debug)]
pub struct Project<'a> {
    /// The interpreter: a program on PATH, the path of one, or the directory of an environment.
    pub python: &'a str,
    /// The packages that it must have.
    pub packages: &'a [&'a str],
    /// The directory of the modules.
    pub path: &'a str,
    /// The module that is imported first.
    pub module: Option<&'a str>,
    /// The setting that names a module of the project; `None` where it may be an installed package.
    pub call: Option<&'a str>,
    /// Other files, and modules that no import names, relative to `path`.
    pub files: &'a [String],
}

impl Project<'_> {
    /// The interpreter, the records of its packages, the project's modules that are imported, and the files
    /// that are listed, in order of their names; relative paths are to `base`. No interpreter is started.
    ///
    /// # Errors
    /// When one of them is missing.
    pub fn sources(&self, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        let program = program(self.python, base)?;
        let sites = site_directories(&prefixes(&program));
        let packages = installed_packages(&sites);
        if let Some(missing) = self.packages.iter().find(|name| !packages.contains_key(**name)) {
            return Err(ConfigProblem::new(
                "python",
                format!("the Python `{}` has no package `{missing}`", self.python),
            )
            .hint(format!(
                "`{} -m pip install {}`, or name another environment: `python: ./env`",
                program.display(),
                self.packages.join(" ")
            )));
        }
        let mut found = vec![Source::program(INTERPRETER, program)];
        let records = package_records(&sites).into_iter();
        found.extend(records.map(|(name, path)| Source::program(format!("{PACKAGES}/{name}"), path)));
        let root = base.join(self.path);
        if let Some(module) = self.module {
            let modules = imported(&root, module).map_err(|err| {
                ConfigProblem::new("path", format!("cannot read the modules of `{module}`: {err}"))
                    .hint("check the files' permissions")
            })?;
            if let (Some(call), None) = (self.call, &modules) {
                return Err(ConfigProblem::new(
                    call,
                    format!("there is no module `{module}` in {}", root.display()),
                )
                .hint(format!(
                    "write `{}.py` there, or name its directory by `path:`",
                    module.replace('.', "/")
                )));
            }
            let modules = modules.into_iter().flatten();
            found.extend(modules.map(|(name, path)| Source::program(format!("{PROJECT}/{name}"), path)));
        }
        for (i, file) in self.files.iter().enumerate() {
            let path = root.join(file);
            ConfigProblem::new(format!("files[{i}]"), format!("there is no file `{}`", path.display()))
                .hint("files are named relative to `path`, the directory of the modules")
                .when(!path.is_file())?;
            let name = format!("{PROJECT}/{file}");
            if !found.iter().any(|source| source.name == name) {
                found.push(Source::new(name, path));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Checks the names of `files` and of the interpreter.
    ///
    /// # Errors
    /// When a file is not below the directory of the modules, or no interpreter is given.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("python", "no interpreter is given")
            .hint(format!(
                "write `python: ./env`, the directory of an environment with {}",
                self.packages.join(" and ")
            ))
            .when(self.python.is_empty())?;
        for (i, file) in self.files.iter().enumerate() {
            let is_inner = Path::new(file)
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            ConfigProblem::new(
                format!("files[{i}]"),
                format!("`{file}` is not a file below the directory of the modules"),
            )
            .hint("name it relative to `path`, without `..`")
            .when(file.is_empty() || !is_inner)?;
        }
        Ok(())
    }
}

/// The interpreter among the sources of a stage.
///
/// # Errors
/// When there is none.
pub fn interpreter(sources: &[Source]) -> Result<&Path, StageError> {
    let found = sources.iter().find(|source| source.name == INTERPRETER);
    found
        .map(|source| source.path.as_path())
        .ok_or_else(|| StageError::new("no interpreter is given"))
}

/// The project's files among the sources of a stage, with their names in an artifact (`project/my_envs.py`);
/// they are written into the directory `into`, too.
///
/// # Errors
/// When one cannot be read or written, or has changed since the stage was planned.
pub fn project_files(sources: &[Source], into: &Path) -> Result<Vec<(String, Vec<u8>)>, StageError> {
    let mut files = Vec::new();
    for source in sources {
        let Some(name) = inner(&source.name, PROJECT) else {
            continue;
        };
        let bytes = fs::read(&source.path)
            .map_err(|err| StageError::new(format!("cannot read {}: {err}", source.path.display())))?;
        source.check(BlobRef::of(&bytes).blob)?;
        write(into, name, &bytes)?;
        files.push((source.name.clone(), bytes));
    }
    Ok(files)
}

/// Returns whether a text is `MODULE:FUNCTION`.
pub fn is_call(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(module, function)| is_dotted(module) && is_dotted(function))
}

/// True for names of Python, joined by dots.
pub(super) fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    !text.is_empty() && text.split('.').all(is_name)
}

/// The executable that `written` names: a program on PATH, the path of one, or the directory of an
/// environment.
///
/// # Errors
/// When there is none.
pub fn program(written: &str, base: &Path) -> Result<PathBuf, ConfigProblem> {
    let problem = |message: String, hint: &str| Err(ConfigProblem::new("python", message).hint(hint));
    let other = "name the directory of an environment: `python3 -m venv env`, `env/bin/pip install \
        gymnasium`, `python: ./env`";
    let mut path = if written.contains('/') {
        base.join(written)
    } else {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&search).filter(|dir| dir.is_absolute());
        match places.find(|dir| dir.join(written).is_file()) {
            Some(dir) => dir.join(written),
            None => return problem(format!("there is no program `{written}` on PATH"), other),
        }
    };
    if path.is_dir() {
        path = path.join("bin/python");
    }
    // It is started in another directory.
    let path: PathBuf = std::path::absolute(&path).unwrap_or(path);
    if !path.is_file() {
        return problem(format!("there is no interpreter `{}`", path.display()), other);
    }
    if path.parent().is_some_and(|dir| dir.ends_with("shims")) {
        return problem(
            format!("`{}` is a shim, which starts another program", path.display()),
            other,
        );
    }
    Ok(path)
}

/// The directories that the interpreter's packages are below: the environment's, and the installation's where
/// it sees them.
fn prefixes(program: &Path) -> Vec<PathBuf> {
    let above = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let environment = above(program).filter(|dir| dir.join("pyvenv.cfg").is_file());
    let sees_installation = environment.as_ref().is_none_or(|dir| {
        let text = fs::read_to_string(dir.join("pyvenv.cfg")).unwrap_or_default();
        let mut settings = text.lines().filter_map(|line| line.split_once('='));
        settings.any(|(name, value)| name.trim() == "include-system-site-packages" && value.trim() == "true")
    });
    let mut found: Vec<PathBuf> = environment.into_iter().collect();
    if sees_installation && let Some(prefix) = fs::canonicalize(program).ok().as_deref().and_then(above) {
        found.push(prefix.join("local"));
        found.push(prefix);
    }
    found
}

/// The name of the note of an interpreter's path.
fn note(versions: &Versions) -> Vec<u8> {
    let versions = serde_json::to_value(versions).unwrap_or_default();
    format!("env/python interpreter v1 {}", cache::canonical_json(&versions)).into_bytes()
}

/// Notes where the interpreter with these versions is.
///
/// # Errors
/// When the store cannot be written.
pub fn remember(store: &Store, versions: &Versions, program: &Path) -> Result<(), StageError> {
    let path = program.as_os_str().as_encoded_bytes().to_vec();
    Ok(store.save_derived(&note(versions), path)?)
}

/// The interpreter with these versions, with which `name` was made, of the kind `what`, such as `the
/// environment`.
///
/// # Errors
/// When this machine has none that is known.
pub fn recall(store: &Store, versions: &Versions, name: &str, what: &str) -> Result<PathBuf, StageError> {
    let path = store
        .load_derived(&note(versions))
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(PathBuf::from);
    path.filter(|path| path.is_file()).ok_or_else(|| {
        StageError::new(format!(
            "no interpreter on this machine is known to have the packages that `{name}` was made with ({})",
            versions.python
        ))
        .hint(format!(
            "run the stage of {what} again here, which notes where it is: `runner exec PIPELINE --force \
            STAGE`"
        ))
    })
}
