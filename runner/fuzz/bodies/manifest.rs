//! A manifest of any bytes is refused, or names files below one directory and nothing else.

use cache::{Artifact, untrusted};
use std::path::{Component, Path};

/// Reads bytes as a manifest.
pub(crate) fn check(bytes: &[u8]) {
    let Some(artifact) = untrusted::manifest(bytes) else {
        return;
    };
    for entry in &artifact.entries {
        let path = Path::new(&entry.path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        assert!(path.components().all(plain), "{:?}", entry.path);
        assert_eq!(
            path.components().count(),
            entry.path.split('/').count(),
            "{:?}",
            entry.path
        );
        assert!(!entry.path.is_empty() && !entry.path.contains(char::is_control));
    }
    // What it is written as is read as the same, and written so again: it has one digest.
    let text = artifact.canonical();
    let again: Option<Artifact> = untrusted::manifest(text.as_bytes());
    assert_eq!(again.map(|again| again.canonical()).as_deref(), Some(text.as_str()));
}
