//! Expansion of the `files:` of a `run:` stage.

use super::problems::Problems;
use super::tree::Tree;
use super::units::relative;
use stages_core::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The maximum number of files of a stage.
const MOST: usize = 10_000;

/// Expands globs and directories in `names` to files, sorted by name, without duplicates.
pub(crate) fn expand(names: &[Tree], base: &Path, problems: &mut Problems) -> Vec<Source> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for tree in names {
        let Some(name) = tree.text().and_then(relative) else {
            problems.add(
                tree.spot,
                format!("{} is not a file in the pipeline's directory", tree.describe()),
                "name a file, a directory or a pattern (`scripts/*.py`) relative to the pipeline file, without `..`",
            );
            continue;
        };
        let mut here = BTreeMap::new();
        let mut failure = None;
        if name.contains(['*', '?', '[']) {
            // The directory's own name may contain glob characters.
            let pattern = format!("{}/{name}", glob::Pattern::escape(&base.to_string_lossy()));
            match glob::glob(&pattern) {
                Ok(paths) => {
                    for path in paths {
                        match path {
                            Ok(path) => add(&path, base, &mut here, &mut failure),
                            Err(err) => failure = Some(err.to_string()),
                        }
                    }
                }
                Err(err) => failure = Some(err.to_string()),
            }
        } else {
            add(&base.join(&name), base, &mut here, &mut failure);
        }
        let none = here.is_empty();
        found.extend(here);
        if found.len() > MOST {
            failure = Some(format!("more than {MOST} files"));
        }
        match failure {
            Some(message) => problems.add(
                tree.spot,
                format!("cannot read `{name}`: {message}"),
                format!("it is looked for in {}", base.display()),
            ),
            None if none && !name.contains(['*', '?', '[']) => problems.add(
                tree.spot,
                format!("the directory `{name}` holds no files"),
                "name the files that the command reads",
            ),
            None if none => problems.add(
                tree.spot,
                format!("no file fits `{name}`"),
                format!("it is looked for in {}", base.display()),
            ),
            None => {}
        }
    }
    found.into_iter().map(|(name, path)| Source::new(name, path)).collect()
}

fn add(path: &Path, base: &Path, found: &mut BTreeMap<String, PathBuf>, failure: &mut Option<String>) {
    if found.len() > MOST || failure.is_some() {
        return;
    }
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(err) => {
            *failure = Some(err.to_string());
            return;
        }
    };
    if meta.is_dir() {
        match std::fs::read_dir(path) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    // A link to a parent directory would cause infinite recursion.
                    if !(entry.path().is_dir() && entry.path().is_symlink()) {
                        add(&entry.path(), base, found, failure);
                    }
                }
            }
            Err(err) => *failure = Some(err.to_string()),
        }
        return;
    }
    let name = path.strip_prefix(base).unwrap_or(path);
    let name: Vec<String> = name
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    found.insert(name.join("/"), path.to_owned());
}
