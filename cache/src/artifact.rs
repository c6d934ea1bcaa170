//! Artifacts: the inputs and outputs of stages.

use crate::blob::BlobRef;
use crate::canonical::canonical_json;
use crate::digest::BlobDigest;
use crate::plain_text::{is_deceptive, plain_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The maximum lengths of an entry's path and of one of its components, in bytes: the limits of file systems.
const MAX_PATH: usize = 1024;
const MAX_PART: usize = 255;

/// The ASCII characters that a path may contain besides letters, digits and `/`. None of them makes a shell
/// start a command or expand a variable.
const PUNCTUATION: &str = " ._-+@,:=%^()[]";

/// A manifest: the type of an artifact, its metadata and its blobs. Deserialising a manifest with an invalid
/// path fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Artifact {
    /// The type of the artifact, the name of a port type such as `option_chain`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The metadata of the artifact: schema, units, data quality. No wall-clock time, no stage name.
    pub meta: Value,
    /// The files of the artifact, in order.
    pub entries: Vec<Entry>,
}

/// A manifest whose paths are not checked yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    #[serde(rename = "type")]
    kind: String,
    meta: Value,
    entries: Vec<Entry>,
}

impl TryFrom<Unchecked> for Artifact {
    type Error = String;

    fn try_from(Unchecked { kind, meta, entries }: Unchecked) -> Result<Self, String> {
        let artifact = Self { kind, meta, entries };
        artifact.check().map(|()| artifact)
    }
}

/// One file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The entry's relative path, with `/` between its components.
    pub path: String,
    /// The entry's length in bytes.
    pub size: u64,
    /// The digest of the entry's bytes.
    pub blob: BlobDigest,
}

impl Entry {
    /// The blob that holds the entry's bytes.
    pub fn blob_ref(&self) -> BlobRef {
        BlobRef::new(self.blob, self.size)
    }
}

impl Artifact {
    /// The manifest as canonical JSON, which is hashed and stored.
    pub fn canonical(&self) -> String {
        canonical_json(&serde_json::json!({
            "type": self.kind,
            "meta": self.meta,
            "entries": self.entries,
        }))
    }

    /// Fails on paths that [`check_path`] refuses, and on paths that collide.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.kind.len() > MAX_PART || self.kind.contains(char::is_control) {
            return Err("its type is not a name".to_owned());
        }
        let mut sizes = self.entries.iter().map(|entry| entry.size);
        if sizes.try_fold(0_u64, u64::checked_add).is_none() {
            return Err("the sum of its sizes overflows".to_owned());
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for Entry { path, .. } in &self.entries {
            check_path(path).map_err(|reason| format!("entry `{}` {reason}", shown(path)))?;
            if !seen.insert(path) {
                return Err(format!("entry `{path}` occurs twice"));
            }
        }
        for path in &seen {
            for (end, _) in path.match_indices('/') {
                if seen.contains(&path[..end]) {
                    return Err(format!("entry `{}` is both a file and a directory", &path[..end]));
                }
            }
        }
        Ok(())
    }

    /// The entry at `path`.
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }
}

/// Checks the path of an entry: it may contain letters and digits of any script, and a few ASCII characters
/// that have no meaning to a shell inside quotation marks of any kind. `cache/README.md` lists them.
///
/// # Errors
/// The reason, a fragment that follows the path in a message, when it is absolute, leaves the artifact's
/// directory, has a character that is not allowed, or differs in meaning between systems.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("has an empty path");
    }
    if path.len() > MAX_PATH {
        return Err("is longer than 1024 bytes");
    }
    if path.starts_with('/') {
        return Err("is an absolute path");
    }
    if path.contains('\\') {
        return Err("has a backslash; the parts of a path are separated by `/`");
    }
    if path.contains(char::is_control) {
        return Err("has a control character");
    }
    if let [drive, b':', ..] = path.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        return Err("starts with a drive letter");
    }
    path.split('/').try_for_each(check_part)
}

fn check_part(part: &str) -> Result<(), &'static str> {
    match part {
        "" => return Err("has an empty part"),
        "." | ".." => return Err("has a part `.` or `..`"),
        _ => {}
    }
    if part.len() > MAX_PART {
        return Err("has a part longer than 255 bytes");
    }
    if part.starts_with('-') {
        return Err("has a part that starts with `-`, which programs take for an option");
    }
    if part.starts_with(' ') || part.ends_with(' ') {
        return Err("has a part that starts or ends with a space");
    }
    if !part.chars().all(is_allowed) {
        return Err("has a character other than letters, digits, spaces and `._-+@,:=%^()[]`");
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || PUNCTUATION.contains(c),
        false => !is_deceptive(c) && !c.is_whitespace(),
    }
}

/// The beginning of an invalid path, for messages.
fn shown(path: &str) -> String {
    let short: String = path.chars().take(80).collect();
    let end = if short.len() < path.len() { "…" } else { "" };
    format!("{}{end}", plain_text(&short))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    fn artifact(paths: &[&str]) -> Artifact {
        Artifact {
            kind: "t".to_owned(),
            meta: Value::Null,
            entries: paths
                .iter()
                .map(|path| Entry {
                    path: (*path).to_owned(),
                    size: 0,
                    blob: BlobDigest::from_bytes([0; 32]),
                })
                .collect(),
        }
    }

    #[test]
    fn ordinary_paths_are_accepted() {
        artifact(&["a", "b/c.parquet", "SPX/2019-06-28.parquet", "seed=1/x", "...", "ü"])
            .check()
            .unwrap();
        // Vendors' names.
        artifact(&[
            "SPX options (2019).csv",
            "bars [1 min].csv",
            "^VIX",
            "BRK.B",
            "行情 數據.csv",
            "50%@x+y:z,_",
        ])
        .check()
        .unwrap();
        artifact(&[&"é".repeat(127), &format!("{}x", "a/".repeat(511))])
            .check()
            .unwrap();
    }

    #[test]
    fn paths_that_leave_or_collide_are_refused() {
        for bad in [
            &["/etc/passwd"][..],
            &["../x"],
            &["a/../../x"],
            &["a/./b"],
            &["a//b"],
            &["a/"],
            &[""],
            &["."],
            &["a\\..\\b"],
            &["C:/x"],
            &["c:x"],
            &["a\0b"],
            &["a\nb"],
            &["a", "a"],
            &["a", "a/b"],
            &["a/b/c", "a/b"],
            &["-rf"],
            &["a/--output=x"],
            &[" a"],
            &["a /b"],
            &["a\u{202e}b"],
            &["a\u{200b}"],
            &["a\u{a0}b"],
            &["a\u{2028}b"],
            &["a\u{9b}31m"],
            &[&"a".repeat(256)],
            &[&"a/".repeat(600)],
        ] {
            assert!(artifact(bad).check().is_err(), "{bad:?}");
            let text = artifact(bad).canonical();
            assert!(serde_json::from_str::<Artifact>(&text).is_err(), "{bad:?}");
        }
        for c in "$`\"'\\|&;<>*?!{}~#\n\t\0\x1b\x7f".chars() {
            assert!(artifact(&[&format!("a{c}b")]).check().is_err(), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_inside(path in r"[a.:/\\\x00 C]{0,12}") {
            if artifact(&[&path]).check().is_ok() {
                let parts: Vec<_> = Path::new(&path).components().collect();
                prop_assert!(!parts.is_empty());
                prop_assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))));
                // The system reads the same parts that are written.
                prop_assert_eq!(parts.len(), path.split('/').count());
            }
        }
    }
}
