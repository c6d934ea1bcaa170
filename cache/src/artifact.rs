//! Artifacts: the inputs and outputs of stages.

use crate::blob::BlobRef;
use crate::canonical::canonical_json;
use crate::digest::BlobDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A manifest: the type of an artifact, its metadata and its blobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its type, the name of a port type such as `option_chain`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its metadata: schema, units, data quality. No wall-clock time, no stage name.
    pub meta: Value,
    /// Its files, in order.
    pub entries: Vec<Entry>,
}

/// One file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Relative path, with `/` between its parts.
    pub path: String,
    /// Length in bytes.
    pub size: u64,
    /// The digest of its bytes.
    pub blob: BlobDigest,
}

impl Entry {
    /// The blob that holds its bytes.
    pub fn blob_ref(&self) -> BlobRef {
        BlobRef {
            blob: self.blob,
            size: self.size,
        }
    }
}

impl Artifact {
    /// The canonical JSON, which is hashed and stored.
    pub fn canonical(&self) -> String {
        canonical_json(&serde_json::json!({
            "type": self.kind,
            "meta": self.meta,
            "entries": self.entries,
        }))
    }

    /// Refuses paths that are absolute, leave the artifact's directory, differ in meaning between systems, or collide.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for Entry { path, .. } in &self.entries {
            check_path(path).map_err(|reason| format!("entry `{}` {reason}", path.escape_debug()))?;
            if !seen.insert(path.as_str()) {
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

/// Checks the path of an entry.
///
/// # Errors
/// The reason, a fragment that follows the path in a message, when it is absolute, leaves the artifact's directory, or differs
/// in meaning between systems.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("has an empty path");
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
    for part in path.split('/') {
        match part {
            "" => return Err("has an empty part"),
            "." | ".." => return Err("has a part `.` or `..`"),
            _ => {}
        }
    }
    Ok(())
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
        ] {
            assert!(artifact(bad).check().is_err(), "{bad:?}");
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
