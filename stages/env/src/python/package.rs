//! The modules of the Python package that a user's code imports in a worker process, whether it is installed
//! there or not.

use super::write;
use stages_core::StageError;
use std::path::Path;

/// The texts of the modules, by their names in the package.
macro_rules! texts {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../runner/python/runner/", $name)))),*]
    };
}

const MODULES: &[(&str, &str)] = texts!(
    "__init__.py",
    "_error.py",
    "_kind.py",
    "_stage.py",
    "gymnasium.py",
    "stable_baselines3.py",
    "torch.py",
    "trained.py"
);

/// Writes the package `runner` to a directory, which a request names as `package` for it to be imported from
/// there, before anything that is installed.
///
/// # Errors
/// Fails when it cannot be written.
pub fn write_package(dir: &Path) -> Result<(), StageError> {
    for (name, text) in MODULES {
        write(dir, &format!("runner/{name}"), text.as_bytes())?;
    }
    Ok(())
}
