//! The interpreter of an environment: found while the pipeline is planned, without starting it, and again
//! where the artifact is opened.
//!
//! An artifact names versions, not places. The store therefore keeps, beside its artifacts and for this
//! machine alone, the path of the interpreter that had these versions when the stage ran.

use super::artifact::{PROJECT, Versions};
use super::config::PythonConfig;
use cache::Store;
use stages_core::python::{imported, installed_packages, package_records, site_directories};
use stages_core::{ConfigProblem, Source, StageError};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the interpreter among the sources of the stage.
pub(super) const INTERPRETER: &str = "python";
/// The directory of the packages' records in the names of sources.
const PACKAGES: &str = "site-packages";

/// The interpreter, the records of its packages, the project's modules that are imported, and the files that
/// are listed.
pub(super) fn sources(config: &PythonConfig, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
    let program = program(&config.python, base)?;
    let sites = site_directories(&prefixes(&program));
    let packages = installed_packages(&sites);
    if let Some(missing) = ["gymnasium", "numpy"]
        .iter()
        .find(|name| !packages.contains_key(**name))
    {
        return Err(ConfigProblem::new(
            "python",
            format!("the Python `{}` has no package `{missing}`", config.python),
        )
        .hint(format!(
            "`{} -m pip install gymnasium numpy`, or name another environment: `python: ./env`",
            program.display()
        )));
    }
    let mut found = vec![Source::program(INTERPRETER, program)];
    let records = package_records(&sites).into_iter();
    found.extend(records.map(|(name, path)| Source::program(format!("{PACKAGES}/{name}"), path)));
    let root = base.join(&config.path);
    if let Some(module) = config.module() {
        let modules = imported(&root, module).map_err(|err| {
            ConfigProblem::new("path", format!("cannot read the modules of `{module}`: {err}"))
                .hint("check the files' permissions")
        })?;
        // The module of an id may be an installed package.
        ConfigProblem::new("call", format!("there is no module `{module}` in {}", root.display()))
            .hint(format!(
                "write `{}.py` there, or name its directory by `path:`",
                module.replace('.', "/")
            ))
            .when(modules.is_none() && config.call.is_some())?;
        let modules = modules.into_iter().flatten();
        found.extend(modules.map(|(name, path)| Source::program(format!("{PROJECT}/{name}"), path)));
    }
    for (i, file) in config.files.iter().enumerate() {
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

/// The executable that `written` names: a program on PATH, the path of one, or the directory of an
/// environment.
pub(super) fn program(written: &str, base: &Path) -> Result<PathBuf, ConfigProblem> {
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
pub(super) fn remember(store: &Store, versions: &Versions, program: &Path) -> Result<(), StageError> {
    let path = program.as_os_str().as_encoded_bytes().to_vec();
    Ok(store.save_derived(&note(versions), path)?)
}

/// The interpreter with these versions.
pub(super) fn recall(store: &Store, versions: &Versions, name: &str) -> Result<PathBuf, StageError> {
    let path = store
        .load_derived(&note(versions))
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(PathBuf::from);
    path.filter(|path| path.is_file()).ok_or_else(|| {
        StageError::new(format!(
            "no interpreter on this machine is known to have the packages that `{name}` was made with ({})",
            versions.python
        ))
        .hint(
            "run the stage of the environment again here, which notes where it is: `runner exec PIPELINE \
            --force STAGE`",
        )
    })
}
