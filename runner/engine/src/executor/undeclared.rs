//! The programs that a stage executed and that are not in its key.
//!
//! The key has the command's text, its files and its tools. The utilities that POSIX specifies (but awk),
//! coreutils and the shells belong to every system and behave alike; any other program of the system is
//! named, so that its user can declare it.

use runner_pipeline::Tool;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of the stage itself: what it executes there, it brought along or made.
const OWN: [&str; 2] = ["/stage", "/tmp"];

/// The utilities of POSIX, GNU coreutils, findutils and diffutils, and the shells; not awk, whose programs
/// give other numbers under gawk than under mawk.
const UTILITIES: &str = include_str!("utilities.txt");

/// The executed programs that are not in the key, sorted.
pub(super) fn undeclared(executed: &BTreeSet<PathBuf>, tools: &[Tool]) -> Vec<PathBuf> {
    let is_declared = |path: &Path| {
        tools.iter().any(|tool| {
            let own = [&tool.path, &tool.bin];
            own.into_iter()
                .chain(&tool.visible)
                .any(|above| path.starts_with(above))
        })
    };
    let utilities: BTreeSet<&str> = UTILITIES.split_whitespace().collect();
    // Several names of one file are one program.
    let mut found: BTreeMap<PathBuf, &PathBuf> = BTreeMap::new();
    for path in executed {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let is_own = OWN.iter().any(|own| path.starts_with(own));
        if !is_own && !is_declared(path) && !is_declared(&real) && !utilities.contains(name) {
            found.entry(real).or_insert(path);
        }
    }
    found.into_values().cloned().collect()
}

/// The warning about undeclared programs, and its hint, a line that works: `search_path` is where names in
/// `tools:` are looked for.
pub(super) fn warning(undeclared: &[PathBuf], search_path: &str) -> Option<(String, String)> {
    /// The number of programs that are named.
    const NAMED: usize = 5;
    let names: Vec<String> = undeclared
        .iter()
        .take(NAMED)
        .map(|path| format!("`{}`", path.display()))
        .collect();
    let more = undeclared.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    let verb = if undeclared.len() == 1 { "is" } else { "are" };
    let tools: Vec<String> = undeclared
        .iter()
        .take(NAMED)
        .map(|path| entry(path, search_path))
        .collect();
    (!undeclared.is_empty()).then(|| {
        (
            format!("executed {}{more}, which {verb} not in its key", names.join(", ")),
            format!("add `tools: [{}]`", tools.join(", ")),
        )
    })
}

/// The entry of `tools:` that stands for a program: its name, or its path if the name means another program,
/// such as a shim of pyenv.
fn entry(program: &Path, search_path: &str) -> String {
    let named = program.file_name().and_then(|name| {
        let candidates = std::env::split_paths(search_path).map(|dir| dir.join(name));
        let first = candidates
            .filter(|path| path.is_absolute())
            .find(|path| path.is_file())?;
        let is_same = fs::canonicalize(first).ok()? == fs::canonicalize(program).ok()?;
        is_same.then(|| name.to_str())?
    });
    named.map_or_else(|| program.display().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_programs_and_utilities_are_not_named() {
        let executed = [
            "/usr/bin/cat",
            "/usr/bin/x1",
            "/stage/work/a.sh",
            "/opt/env/bin/y",
            "/opt/z",
        ];
        let executed = executed.into_iter().map(PathBuf::from).collect();
        let tool = Tool {
            name: "./env".into(),
            path: "/opt/env".into(),
            visible: vec!["/opt/z".into()],
            bin: "/opt/env/bin".into(),
            version: None,
            system_packages: false,
            sources: Vec::new(),
        };
        let found = undeclared(&executed, &[tool]);
        assert_eq!(found, [PathBuf::from("/usr/bin/x1")]);
        let (message, hint) = warning(&found, "/usr/bin").unwrap();
        assert_eq!(message, "executed `/usr/bin/x1`, which is not in its key");
        assert_eq!(hint, "add `tools: [/usr/bin/x1]`", "there is none on PATH");
        assert_eq!(warning(&[], ""), None);
    }

    #[test]
    fn a_program_has_its_name_only_where_that_is_found_first() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["bin/tool", "shims/tool"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(at("bin"), at("link")).unwrap();
        let hint = |dirs: &[&str]| {
            let path = std::env::join_paths(dirs.iter().map(|name| at(name))).unwrap();
            let (_, hint) = warning(&[at("bin/tool")], path.to_str().unwrap()).unwrap();
            hint.replace(dir.path().to_str().unwrap(), "DIR")
        };
        assert_eq!(hint(&["bin", "shims"]), "add `tools: [tool]`");
        assert_eq!(hint(&["none", "link"]), "add `tools: [tool]`");
        assert_eq!(hint(&["shims", "bin"]), "add `tools: [DIR/bin/tool]`");
    }
}
