//! The interpreter of a `uses: python` stage, and its installed packages.
//!
//! No interpreter is started to plan a run.

use crate::stage::command::{PythonCall, Tool};
use crate::stage::tools::{Finder, Request, Wrong};
use stages_core::python::{installed_packages, site_directories};
use std::fs;
use std::path::{Path, PathBuf};

/// Finds the interpreter that `request` names, relative to `base`: a program on `PATH`, the path of a
/// program, or the directory of a virtual environment. Returns its tool, and completes the call of it.
pub(crate) fn find(
    request: &Request,
    finder: &Finder<'_>,
    base: &Path,
    python: &mut PythonCall,
) -> Result<Tool, Wrong> {
    let tool = finder.python(request, base)?;
    python.program = match tool.is_environment() {
        true => "python".to_owned(),
        false => tool.link().to_owned(),
    };
    python.sites = sites(&tool);
    python.packages = installed_packages(&python.sites);
    if !python.packages.contains_key("pyarrow") {
        let name = &request.name;
        let install = match tool.is_environment() {
            true => format!("{}/bin/python -m pip install pyarrow", tool.path.display()),
            false => format!(
                "create an environment beside the pipeline and name it: `python3 -m venv env`, `env/bin/pip \
                install pyarrow`, `python: ./env`; or `{} -m pip install pyarrow`",
                tool.path.display()
            ),
        };
        return Err((
            format!("the Python `{name}` has no package `pyarrow`, in which tables are handed over"),
            install,
        ));
    }
    Ok(tool)
}

/// The package directories of an interpreter: those of its environment, and those of the installation if the
/// environment can import from it.
fn sites(tool: &Tool) -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    if tool.is_environment() {
        prefixes.push(tool.path.clone());
    }
    if !tool.is_environment() || tool.system_packages {
        let program = match tool.is_environment() {
            true => fs::canonicalize(tool.bin.join("python")).unwrap_or_default(),
            false => tool.path.clone(),
        };
        if let Some(prefix) = program.parent().and_then(Path::parent) {
            prefixes.push(prefix.to_owned());
            prefixes.push(prefix.join("local"));
        }
    }
    site_directories(&prefixes)
}
