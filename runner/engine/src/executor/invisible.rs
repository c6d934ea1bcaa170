//! Hints for a stage that failed because it could not see a file of the host.

use runner_pipeline::{find_program, is_shim, program_behind};
use runner_sandbox::is_visible;
use stages_core::Source;
use std::path::{Path, PathBuf};

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
    /// The files that the stage saw besides the system's own.
    pub visible: &'a [PathBuf],
}

/// The hints for the last lines of a failed program's output, without duplicates.
pub(super) fn hints(lines: &str, host: &Host<'_>) -> Vec<String> {
    let mut hints: Vec<String> = Vec::new();
    for line in lines.lines() {
        let named = missing_command(line).and_then(|name| command_hint(name, host));
        let module = missing_module(line).map(|name| {
            format!(
                "the module `{name}` is in no environment that the stage sees: add a virtual \
                environment, `tools: [./env]`"
            )
        });
        let files = line.split(delimiter).filter_map(|word| path_hint(word, host));
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
    Some(name.trim_matches(delimiter)).filter(|name| !name.is_empty())
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

fn path_hint(word: &str, host: &Host<'_>) -> Option<String> {
    let path = Path::new(word.trim_end_matches('.'));
    if let Ok(name) = path.strip_prefix("/stage/work") {
        let is_seen = host.files.iter().any(|file| Path::new(&file.name) == name);
        let is_forgotten = !is_seen && !name.as_os_str().is_empty() && host.base.join(name).exists();
        return is_forgotten.then(|| {
            format!(
                "`{0}` is beside the pipeline, but not among the stage's files: add `files: [{0}]`",
                name.display()
            )
        });
    }
    // A word with a single component is hardly ever a path.
    if !path.is_absolute()
        || path.components().count() < 3
        || is_visible(path, host.visible)
        || !path.exists()
    {
        return None;
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
            "`DIR/data.csv` exists, but the stage does not see it: add it to `files:`, or to `tools:` if it \
            is a program"
        );
        assert!(hints(&line, &host(&visible)).is_empty(), "it was visible");
        assert_eq!(
            found("ModuleNotFoundError: No module named 'numpy'"),
            "the module `numpy` is in no environment that the stage sees: add a virtual environment, \
            `tools: [./env]`"
        );
    }
}
