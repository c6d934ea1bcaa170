//! The harness of the tests of `cache` and `cache-remote`.

use cache::{ActionKey, ActionRecord, ArtifactBuilder, BlobRef, KeyHasher, MemoKey, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The time of a takeover on a store of several hosts, longer than any test.
pub(crate) const TAKEOVER: Duration = Duration::from_secs(600);

/// A store in a temporary directory.
pub(crate) struct Home {
    pub dir: tempfile::TempDir,
    pub store: Store,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        Self { dir, store }
    }

    /// The store as another process opens it: no blob counts as verified.
    pub(crate) fn reopen(&self) -> Store {
        match self.store.is_shared() {
            true => Store::open_shared(self.store.root(), TAKEOVER).unwrap(),
            false => Store::open(self.store.root()).unwrap(),
        }
    }

    /// An action with one artifact of one file, and a log.
    pub(crate) fn action(&self, name: &str) -> ActionRecord {
        let mut artifact = ArtifactBuilder::new(&self.store, "table", json!({"rows": 2, "unit": 0.1}));
        artifact.bytes("part/0", format!("bytes of {name}").as_bytes()).unwrap();
        let record = ActionRecord {
            key: action_key(name),
            recipe: json!({"name": name}),
            outputs: BTreeMap::from([("out".to_owned(), artifact.finish().unwrap())]),
            log: Some(self.store.put(format!("log of {name}").as_bytes()).unwrap()),
            seconds: 1.5,
            peak_memory: None,
            numerics_class: "portable/1".to_owned(),
            program: "0.1.0".to_owned(),
            sources: Vec::new(),
            info: BTreeMap::new(),
        };
        self.store.put_action(&record).unwrap();
        record
    }

    pub(crate) fn memo(&self, name: &str) -> BlobRef {
        let value = self.store.put(format!("memo of {name}").as_bytes()).unwrap();
        self.store.put_memo(memo_key(name), value).unwrap();
        value
    }
}

pub(crate) fn action_key(name: &str) -> ActionKey {
    KeyHasher::new("test action").field(name).action_key()
}

pub(crate) fn memo_key(name: &str) -> MemoKey {
    KeyHasher::new("test memo").field(name).memo_key()
}

pub(crate) fn data(record: &ActionRecord, store: &Store) -> BlobRef {
    store.artifact(record.outputs["out"]).unwrap().entries[0].blob_ref()
}

/// All files below a directory, with their paths relative to it.
pub(crate) fn files(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, base: &Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, base, out);
            } else {
                out.push(path.strip_prefix(base).unwrap().display().to_string());
            }
        }
    }
    let mut out = Vec::new();
    walk(dir, dir, &mut out);
    out.sort();
    out
}
