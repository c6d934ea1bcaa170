//! The modules of a project that a Python module imports, found in their text.
//!
//! The text is scanned line by line, so imports inside functions count, and so do lines of a docstring that
//! look like imports: a superfluous module in the key costs a recomputation at most. A module imported by a
//! computed name is not found; as the program sees no other files of the project, its import fails.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of modules of a program.
const MOST: usize = 2_000;

/// Finds the files of `module` and of everything in `root` that it imports, directly or not: path relative to
/// `root`, absolute path.
/// `None` if `module` is not in `root`.
pub fn imported(root: &Path, module: &str) -> io::Result<Option<BTreeMap<String, PathBuf>>> {
    let mut files = BTreeMap::new();
    let mut queue = VecDeque::from([module.to_owned()]);
    let mut seen = std::collections::BTreeSet::new();
    let mut is_found = false;
    while let Some(name) = queue.pop_front() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some((file, is_package)) = find(root, &name) else {
            continue;
        };
        is_found |= name == module;
        if files.len() >= MOST {
            return Err(io::Error::other(format!("more than {MOST} modules")));
        }
        // Importing a module runs the packages that contain it first.
        if let Some((parent, _)) = name.rsplit_once('.') {
            queue.push_back(parent.to_owned());
        }
        let path = root.join(&file);
        if let Some(file) = file.to_str() {
            files.insert(file.to_owned(), path.clone());
        }
        if path.is_dir() {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let package = match is_package {
            true => name.as_str(),
            false => name.rsplit_once('.').map_or("", |(package, _)| package),
        };
        queue.extend(imports(&text, package));
    }
    files.retain(|_, path| path.is_file());
    Ok(is_found.then_some(files))
}

/// The file of a module below `root`, and whether the module is a package; for a package without
/// `__init__.py`, its directory.
fn find(root: &Path, name: &str) -> Option<(PathBuf, bool)> {
    let base: PathBuf = name.split('.').collect();
    let file = base.with_extension("py");
    let init = base.join("__init__.py");
    if root.join(&init).is_file() {
        Some((init, true))
    } else if root.join(&file).is_file() {
        Some((file, false))
    } else {
        root.join(&base).is_dir().then_some((base, true))
    }
}

/// The absolute names of the modules that a text imports, and of the names that may be modules: `b` in `from
/// a import b` may be one.
fn imports(text: &str, package: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in statements(text) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["import", ..] => {
                let list = statement.trim_start().trim_start_matches("import");
                found.extend(names(list));
            }
            ["from", from, "import", ..] => {
                let Some(from) = absolute(from, package) else { continue };
                let list = statement.split_once(" import").map_or("", |(_, list)| list);
                let inner = |name: String| match from.as_str() {
                    "" => name,
                    from => format!("{from}.{name}"),
                };
                found.extend(names(list).map(inner));
                found.extend((!from.is_empty()).then(|| from.clone()));
            }
            _ => {}
        }
    }
    found
}

/// The `import` and `from` statements of a text, each joined into one line, without comments.
fn statements(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        if let Some(mut statement) = open.take() {
            statement.push(' ');
            statement.push_str(line.trim_end_matches('\\'));
            if !line.contains(')') && (statement.contains('(') || line.ends_with('\\')) {
                open = Some(statement);
            } else {
                found.push(statement);
            }
            continue;
        }
        // A line may hold several statements.
        for part in line.split(';') {
            let part = part.trim_start();
            if !(part.starts_with("import ") || part.starts_with("from ")) {
                continue;
            }
            if part.ends_with('\\') || part.contains('(') && !part.contains(')') {
                open = Some(part.trim_end_matches('\\').to_owned());
            } else {
                found.push(part.to_owned());
            }
        }
    }
    found.extend(open);
    found
}

/// The names in an import list: `a` and `b` of `a as x, b`.
fn names(list: &str) -> impl Iterator<Item = String> {
    let items = list.split([',', '(', ')']);
    let name = |item: &str| item.split_whitespace().next().map(str::to_owned);
    let is_name = |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    items.filter_map(name).filter(is_name)
}

/// The absolute name of a module that is named relative to `package`: `..a` in `p.q` is `p.a`.
fn absolute(name: &str, package: &str) -> Option<String> {
    let rest = name.trim_start_matches('.');
    let level = name.len() - rest.len();
    if level == 0 {
        return Some(rest.to_owned());
    }
    let mut parts: Vec<&str> = package.split('.').filter(|part| !part.is_empty()).collect();
    parts.truncate((parts.len() + 1).checked_sub(level)?);
    parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
    Some(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn files(dir: &tempfile::TempDir, module: &str) -> Vec<String> {
        let found = imported(dir.path(), module).unwrap().unwrap();
        found.into_keys().collect()
    }

    #[test]
    fn imports_are_followed_through_packages() {
        let dir = project(&[
            (
                "stages.py",
                "import numpy as np, lib.a as a\nfrom lib.b import (\n  one,  # of\n  two,\n)\n",
            ),
            ("lib/__init__.py", ""),
            ("lib/a.py", "def f():\n    from . import c; import os\n"),
            ("lib/b/__init__.py", "from ..d import x \\\n  as y\n"),
            ("lib/b/two.py", ""),
            ("lib/c.py", "import stages\n"),
            ("lib/d.py", "\"\"\"\nimport loose\n\"\"\""),
            ("lib/unused.py", ""),
            ("loose/inner.py", ""),
            ("loose.txt", ""),
        ]);
        let expected = [
            "lib/__init__.py",
            "lib/a.py",
            "lib/b/__init__.py",
            "lib/b/two.py",
            "lib/c.py",
            "lib/d.py",
            "stages.py",
        ];
        assert_eq!(files(&dir, "stages"), expected);
        assert_eq!(
            files(&dir, "lib.b.two"),
            ["lib/__init__.py", "lib/b/__init__.py", "lib/b/two.py", "lib/d.py"]
        );
        assert!(imported(dir.path(), "numpy").unwrap().is_none());
    }

    #[test]
    fn relative_names() {
        assert_eq!(absolute(".", "p.q").unwrap(), "p.q");
        assert_eq!(absolute("..a.b", "p.q").unwrap(), "p.a.b");
        assert_eq!(absolute("a", "p.q").unwrap(), "a");
        assert_eq!(absolute("....a", "p.q"), None);
        assert_eq!(absolute(".a", "").unwrap(), "a");
    }
}
