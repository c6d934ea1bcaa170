//! Expansion of the `files:` of a `run:` stage.

use crate::text::{Problems, Spot, TextOr, Tree, relative};
use cache::RemoteFile;
use schemars::JsonSchema;
use serde::Deserialize;
use stages_core::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The maximum number of files of a stage.
const MOST: usize = 10_000;

/// An entry of `files:`, with interpolations replaced: a file, a directory, a glob or a URL.
pub(crate) type Pattern = TextOr<String, Remote>;

/// A file on a server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remote {
    url: String,
    blake3: String,
}

/// The place of an item of a list. A list that is one `${params.X}` in the file has the one place.
pub(super) fn spot_of(items: &[Tree], index: usize) -> Spot {
    let item = items.get(index).or(items.first());
    item.map_or_else(Spot::default, |item| item.spot)
}

/// Expands globs and directories in `patterns` to files, sorted by name, without duplicates. A file on a
/// server is named by the last part of its URL. `entries` are the patterns as written.
pub(crate) fn expand(
    patterns: &[Pattern],
    entries: &[Tree],
    base: &Path,
    problems: &mut Problems,
) -> Vec<Source> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut remote: BTreeMap<String, Source> = BTreeMap::new();
    for (i, pattern) in patterns.iter().enumerate() {
        let spot = spot_of(entries, i);
        let (text, pinned) = match pattern {
            TextOr::Text(text) => (text, None),
            TextOr::Map(Remote { url, blake3 }) => {
                match blake3.parse().ok().filter(|_| url.contains("://")) {
                    Some(digest) => (url, Some(digest)),
                    None => {
                        problems.add(
                        spot,
                        "a map is not a file in the pipeline's directory, nor one on a server",
                        "name a file, a directory or a pattern (`scripts/*.py`), a URL, or `{ url: https://…, \
                        blake3: HEX }`",
                    );
                        continue;
                    }
                }
            }
        };
        match RemoteFile::parse(text) {
            Ok(None) => {}
            Ok(Some(file)) => {
                let source = Source::remote(RemoteFile { pinned, ..file });
                let known = remote.insert(source.name.clone(), source.clone());
                if known.is_some_and(|known| known != source) {
                    let message = format!("two files on servers are named `{}`", source.name);
                    problems.add(
                        spot,
                        message,
                        "a program finds them by their names: give one in another stage",
                    );
                }
                continue;
            }
            Err((reason, hint)) => {
                problems.add(spot, reason.to_owned(), hint);
                continue;
            }
        }
        let Some(name) = relative(text) else {
            problems.add(
                spot,
                format!("the string \"{}\" is not a file in the pipeline's directory", text),
                "name a file, a directory or a pattern (`scripts/*.py`) relative to the pipeline file, \
                without `..`",
            );
            continue;
        };
        let mut here = BTreeMap::new();
        let is_pattern = name.contains(['*', '?', '[']);
        let failure = match is_pattern {
            true => add_all(&name, base, &mut here),
            false => add(&base.join(&name), base, &mut here),
        };
        let none = here.is_empty();
        found.extend(here);
        let failure = match found.len() > MOST {
            true => Some(format!("more than {MOST} files")),
            false => failure.err(),
        };
        match failure {
            Some(message) => problems.add(
                spot,
                format!("cannot read `{name}`: {message}"),
                format!("it is looked for in {}", base.display()),
            ),
            None if none && !is_pattern => problems.add(
                spot,
                format!("the directory `{name}` holds no files"),
                "name the files that the command reads",
            ),
            None if none => problems.add(
                spot,
                format!("no file matches `{name}`"),
                format!("it is looked for in {}", base.display()),
            ),
            None => {}
        }
    }
    for name in remote.keys().filter(|name| found.contains_key(*name)) {
        let spot = spot_of(entries, 0);
        let message = format!("a file of the pipeline's directory and one on a server are named `{name}`");
        problems.add(spot, message, "rename the one in the directory");
    }
    let found = found
        .into_iter()
        .map(|(name, path)| (name.clone(), Source::new(name, path)));
    let all: BTreeMap<String, Source> = found.chain(remote).collect();
    all.into_values().collect()
}

/// Adds the files that match a pattern.
fn add_all(name: &str, base: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), String> {
    // The directory's own name may contain glob characters.
    let pattern = format!("{}/{name}", glob::Pattern::escape(&base.to_string_lossy()));
    for path in glob::glob(&pattern).map_err(|err| err.to_string())? {
        add(&path.map_err(|err| err.to_string())?, base, found)?;
    }
    Ok(())
}

/// Adds a file, or the files of a directory.
fn add(path: &Path, base: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), String> {
    if found.len() > MOST {
        return Ok(());
    }
    if !std::fs::metadata(path).map_err(|err| err.to_string())?.is_dir() {
        let name = path.strip_prefix(base).unwrap_or(path).components();
        let name: Vec<_> = name.map(|part| part.as_os_str().to_string_lossy()).collect();
        found.insert(name.join("/"), path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|err| err.to_string())?;
    for entry in entries.flatten() {
        // A link to a parent directory would cause infinite recursion.
        if !(entry.path().is_dir() && entry.path().is_symlink()) {
            add(&entry.path(), base, found)?;
        }
    }
    Ok(())
}
