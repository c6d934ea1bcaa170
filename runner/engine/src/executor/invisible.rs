//! Hints for a stage that failed because it could not see a file of the host.

use runner_pipeline::{find_program, is_shim, program_behind};
use runner_sandbox::is_visible;
use stages_core::Source;
use std::path::{Component, Path, PathBuf};

/// The host, in which the hints look for files and programs.
pub(super) struct Host<'a> {
    /// The directories of the engine's own PATH.
    pub path: &'a str,
    /// The home directory.
    pub home: Option<&'a Path>,
    /// The directory of the pipeline.
    pub base: &'a Path,
    /// The stage's own files, which it can see.
    pub files: &'a [Source],
    /// The stage's working directory, as it saw it.
    pub work: &'a Path,
    /// The directory of the modules of a `uses: python` stage, relative to `base`.
    pub modules: Option<&'a str>,
    /// True if the stage saw no other files of the host than `visible` and the system's own.
    pub is_isolated: bool,
    pub visible: &'a [PathBuf],
}

/// The hints for the last lines of a failed program's output, without duplicates.
pub(super) fn hints(lines: &str, host: &Host<'_>) -> Vec<String> {
    let mut hints: Vec<String> = Vec::new();
    for line in lines.lines() {
        let named = missing_command(line)
            .filter(|_| host.is_isolated)
            .and_then(|name| command_hint(name, host));
        let module = missing_module(line).and_then(|name| module_hint(name, host));
        let is_missing = line.contains("No such file") || line.contains("NotFound");
        let files = line
            .split(delimiter)
            .filter_map(|word| path_hint(word, is_missing, host));
        hints.extend(named.into_iter().chain(module).chain(files));
    }
    let mut known = std::collections::BTreeSet::new();
    hints.retain(|hint| known.insert(hint.clone()));
    hints.truncate(3);
    hints
}

fn delimiter(c: char) -> bool {
    c.is_whitespace() || "'\"`‘’“”()[]{}<>,;:=".contains(c)
}

/// The command that a shell, `env` or a loader did not find.
fn missing_command(line: &str) -> Option<&str> {
    let (before, _) = line
        .split_once(": command not found")
        .or_else(|| line.split_once(": not found"))
        .or_else(|| line.split_once(": No such file or directory"))?;
    let name = before.rsplit(": ").next()?.trim_matches(delimiter);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

fn missing_module(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("No module named ")?;
    name.split(delimiter).find(|name| !name.is_empty())
}

fn command_hint(name: &str, host: &Host<'_>) -> Option<String> {
    let path = find_program(host.path, name)?;
    let entry = match is_shim(&path) {
        false => name.to_owned(),
        // A shim cannot be declared: the program that it starts depends on the environment.
        true => program_behind(&path, host.base, host.path, host.home)?
            .display()
            .to_string(),
    };
    Some(format!(
        "`{name}` is `{}` on this machine, which the stage does not see: add `tools: [{entry}]`",
        path.display()
    ))
}

/// The hint for a module that was not found: of the project, or else of an environment.
fn module_hint(name: &str, host: &Host<'_>) -> Option<String> {
    let base: PathBuf = Path::new(host.modules.unwrap_or_default()).join(name.replace('.', "/"));
    let file = base.with_extension("py");
    if let Some(hint) = beside(&file, host) {
        return Some(hint);
    }
    if host.base.join(&base).is_dir() {
        return Some(forgotten(&base.join("*.py")));
    }
    // The driver of a Python stage says what to do about a package.
    (host.modules.is_none() && host.is_isolated).then(|| {
        format!(
            "the module `{name}` is in no environment that the stage sees: add a virtual environment, \
            `tools: [./env]`"
        )
    })
}

/// The hint for a file beside the pipeline that is not one of the stage's.
fn beside(name: &Path, host: &Host<'_>) -> Option<String> {
    let is_seen = host.files.iter().any(|file| Path::new(&file.name) == name);
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    let is_forgotten = !is_seen && is_below && !name.as_os_str().is_empty() && host.base.join(name).exists();
    is_forgotten.then(|| forgotten(name))
}

fn forgotten(name: &Path) -> String {
    format!(
        "`{0}` is beside the pipeline, but not among the stage's files: add `files: [{0}]`",
        name.display()
    )
}

/// The hint for a word of a line; `is_missing` if the line says that there is no such file.
fn path_hint(word: &str, is_missing: bool, host: &Host<'_>) -> Option<String> {
    let path = Path::new(word.trim_end_matches('.'));
    if let Ok(name) = path.strip_prefix(host.work) {
        return beside(name, host);
    }
    if is_missing && path.is_relative() {
        let path = path.strip_prefix(".").unwrap_or(path);
        // A word without an extension is hardly ever a path.
        let is_path = path.components().count() > 1 || path.extension().is_some();
        return beside(path, host).filter(|_| is_path);
    }
    // A word with a single component is hardly ever a path.
    if !host.is_isolated
        || !path.is_absolute()
        || path.components().count() < 3
        || is_visible(path, host.visible)
        || !path.exists()
    {
        return None;
    }
    if let Some(hint) = path.strip_prefix(host.base).ok().and_then(|name| beside(name, host)) {
        return Some(hint);
    }
    Some(format!(
        "`{}` exists, but the stage does not see it: add it to `files:`, or to `tools:` if it is a program",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_on_the_host_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        for dir in [".pyenv/shims", ".pyenv/versions/3.12.0/bin"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        for name in [
            "bin/tool",
            "plot.py",
            "data.csv",
            ".pyenv/shims/python3",
            ".pyenv/versions/3.12.0/bin/python3",
        ] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::join_paths([at("bin"), at(".pyenv/shims")]).unwrap();
        let path = path.into_string().unwrap();
        let visible = [at("data.csv")];
        let host = |visible| Host {
            path: &path,
            home: None,
            base: dir.path(),
            files: &[],
            work: Path::new("/stage/work"),
            modules: None,
            is_isolated: true,
            visible,
        };
        let found = |line: &str| {
            hints(line, &host(&[]))
                .join("\n")
                .replace(&dir.path().display().to_string(), "DIR")
        };
        let tool =
            "`tool` is `DIR/bin/tool` on this machine, which the stage does not see: add `tools: [tool]`";
        assert_eq!(found("bash: line 1: tool: command not found"), tool);
        assert_eq!(
            found("sh: 1: tool: not found\nenv: ‘tool’: No such file or directory"),
            tool
        );
        assert_eq!(found("sh: 1: other: not found"), "");
        assert_eq!(
            found("bash: line 1: python3: command not found"),
            "`python3` is `DIR/.pyenv/shims/python3` on this machine, which the stage does not see: \
             add `tools: [DIR/.pyenv/versions/3.12.0/bin/python3]`"
        );
        assert_eq!(
            found("python3: can't open file '/stage/work/plot.py': [Errno 2] No such file"),
            "`plot.py` is beside the pipeline, but not among the stage's files: add `files: [plot.py]`"
        );
        let line = format!("cat: {}: No such file or directory", at("data.csv").display());
        assert_eq!(
            found(&line),
            "`data.csv` is beside the pipeline, but not among the stage's files: add `files: [data.csv]`"
        );
        assert!(hints(&line, &host(&visible)).is_empty(), "it was visible");
        for line in [
            "ModuleNotFoundError: No module named 'plot'",
            "No module named 'plot'; 'x' is not a package",
        ] {
            assert_eq!(
                found(line),
                "`plot.py` is beside the pipeline, but not among the stage's files: add `files: [plot.py]`"
            );
        }
        assert_eq!(
            found("ModuleNotFoundError: No module named 'bin'"),
            "`bin/*.py` is beside the pipeline, but not among the stage's files: add `files: [bin/*.py]`"
        );
        assert_eq!(
            found("ModuleNotFoundError: No module named 'numpy'"),
            "the module `numpy` is in no environment that the stage sees: add a virtual environment, \
            `tools: [./env]`"
        );
    }
}
