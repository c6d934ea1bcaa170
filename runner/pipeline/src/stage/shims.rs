//! Shims: the small programs on `PATH` through which pyenv, rbenv, nodenv, asdf and mise start the selected
//! version of a program.
//!
//! | manager | the version is chosen by |
//! | --- | --- |
//! | pyenv, rbenv, nodenv, … | `.python-version` (…) beside or above the pipeline, or else `version` in the manager's directory |
//! | asdf, mise | `.tool-versions` beside or above the pipeline, or else in the home directory |
//!
//! A version selected by an environment variable or in another file is not detected; the newest installed
//! version is named instead.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// True if the path is that of a shim.
pub fn is_shim(path: &Path) -> bool {
    path.parent().is_some_and(|dir| dir.ends_with("shims"))
}

/// The program that a shim starts in the directory `base`, as far as the manager's files determine it.
/// `search_path` is the value of `PATH`, `home` the home directory.
pub fn program_behind(shim: &Path, base: &Path, search_path: &str, home: Option<&Path>) -> Option<PathBuf> {
    let (root, name) = (shim.parent()?.parent()?, shim.file_name()?);
    let mut installed = installed(root, Path::new(name));
    let chosen = chosen(root, base, home);
    for version in &chosen {
        if version == "system" {
            let dirs =
                std::env::split_paths(search_path).filter(|dir| dir.is_absolute() && !dir.ends_with("shims"));
            let mut programs = dirs.map(|dir| dir.join(name)).filter(|path| is_program(path));
            if let Some(program) =
                programs.find(|path| !fs::canonicalize(path).is_ok_and(|real| is_shim(&real)))
            {
                return Some(program);
            }
        }
        // `3.12` selects the newest 3.12.
        let begins = |found: &str| {
            let rest = found.strip_prefix(version.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(at) = installed.iter().rposition(|(found, _)| begins(found)) {
            return Some(installed.swap_remove(at).1);
        }
    }
    installed.pop().map(|(_, program)| program)
}

/// The installed versions of a program, in ascending order.
fn installed(root: &Path, name: &Path) -> Vec<(String, PathBuf)> {
    let entries = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let plugins = entries(&root.join("installs"));
    let versions = plugins.iter().flat_map(|plugin| entries(plugin));
    let versions = entries(&root.join("versions")).into_iter().chain(versions);
    let mut found: Vec<(String, PathBuf)> = versions
        .filter_map(|dir| {
            let program = dir.join("bin").join(name);
            let version = dir.file_name()?.to_str()?.to_owned();
            is_program(&program).then_some((version, program))
        })
        .collect();
    found.sort_by_cached_key(|(version, program)| (numbers(version), program.clone()));
    found
}

/// The numbers of a version, as a sort key: `3.9` comes before `3.10`, and a version without a number, such
/// as `latest`, comes first.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The selected versions, in the order of preference.
fn chosen(root: &Path, base: &Path, home: Option<&Path>) -> Vec<String> {
    let read = |file: PathBuf| fs::read_to_string(file).ok();
    let words = |text: String| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    // `.pyenv` chooses by `.python-version`, `.rbenv` by `.ruby-version`.
    let manager = root.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let language = match manager.trim_start_matches('.') {
        "pyenv" => "python",
        "rbenv" => "ruby",
        other => other.strip_suffix("env").unwrap_or(other),
    };
    let local = base.ancestors();
    if let Some(text) = local
        .clone()
        .find_map(|dir| read(dir.join(format!(".{language}-version"))))
    {
        return words(text);
    }
    if let Some(text) = read(root.join("version")) {
        return words(text);
    }
    // Each line is a plugin and its versions. It is unknown which plugin has the program, but other plugins
    // hardly ever install a version under the program's name.
    let text = local.chain(home).find_map(|dir| read(dir.join(".tool-versions")));
    let lines = text.as_deref().unwrap_or_default().lines();
    let versions =
        lines.flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace().skip(1));
    versions.map(str::to_owned).collect()
}

/// The first executable called `name` in the absolute directories of a search path.
pub fn find_program(search_path: &str, name: &str) -> Option<PathBuf> {
    let dirs = std::env::split_paths(search_path).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|path| is_program(path))
}

/// True for an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_chosen_version_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for version in ["3.9.18", "3.11.2", "3.11.10", "3.12.0"] {
            write(&at(&format!(".pyenv/versions/{version}/bin/python3")), "");
        }
        write(&at("usr/python3"), "");
        let behind = |search_path: &str| {
            let found = program_behind(&at(".pyenv/shims/python3"), &at("project/sub"), search_path, None);
            let found = found.map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string());
            found.unwrap_or_default()
        };
        assert_eq!(behind(""), ".pyenv/versions/3.12.0/bin/python3", "the newest");
        write(&at(".pyenv/version"), "3.9.18\n");
        assert_eq!(behind(""), ".pyenv/versions/3.9.18/bin/python3");
        write(&at("project/.python-version"), "3.11\n");
        assert_eq!(behind(""), ".pyenv/versions/3.11.10/bin/python3");
        write(&at("project/.python-version"), "system\n");
        assert_eq!(behind(at("usr").to_str().unwrap()), "usr/python3");
        write(&at("project/.python-version"), "4.0\n");
        assert_eq!(
            behind(""),
            ".pyenv/versions/3.12.0/bin/python3",
            "that is not installed"
        );
    }

    #[test]
    fn asdf_chooses_by_tool_versions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for version in ["20.9.0", "22.1.0"] {
            write(&at(&format!(".asdf/installs/nodejs/{version}/bin/node")), "");
        }
        write(&at(".tool-versions"), "python 3.11.2\nnodejs 20.9.0 # for now\n");
        let behind = |home| program_behind(&at(".asdf/shims/node"), Path::new("/nowhere"), "", home);
        assert_eq!(
            behind(Some(dir.path())),
            Some(at(".asdf/installs/nodejs/20.9.0/bin/node"))
        );
        assert_eq!(behind(None), Some(at(".asdf/installs/nodejs/22.1.0/bin/node")));
        assert_eq!(program_behind(&at(".asdf/shims/npm"), dir.path(), "", None), None);
    }
}
