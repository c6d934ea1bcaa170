//! The existence cache: the blobs that a remote holds according to earlier requests, saved in the local store
//! between runs, so that a later run sends no requests for them. If an entry is wrong, fetching fails and the
//! action that produced the blob runs again.

use cache::{BlobDigest, BlobRef, RemoteIndex, Result, Store};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The source of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// An earlier run.
    EarlierRun,
    /// A request of this process.
    ThisProcess,
}

#[derive(Default)]
pub(crate) struct ExistenceCache {
    blobs: HashMap<BlobDigest, (u64, Source)>,
    /// The blobs that are missing or damaged in the remote.
    rejected: BTreeSet<BlobDigest>,
    /// All rejections by this process, including blobs that were uploaded again later.
    rejections: Vec<BlobDigest>,
    changed: bool,
}

impl ExistenceCache {
    /// Loads the entries that an earlier run saved for this remote.
    pub(crate) fn load(store: &Store, remote: &str) -> Self {
        Self {
            blobs: saved(store, remote)
                .into_iter()
                .map(|(blob, size)| (blob, (size, Source::EarlierRun)))
                .collect(),
            ..Self::default()
        }
    }

    /// Saves the entries for later runs, except for blobs that are in the local store.
    pub(crate) fn save(&mut self, store: &Store, remote: &str) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        // Another process may have saved more entries; entries that this process removed stay removed.
        let mut blobs = saved(store, remote);
        blobs.extend(self.blobs.iter().map(|(blob, (size, _))| (*blob, *size)));
        blobs.retain(|blob, size| {
            self.blobs.contains_key(blob) && !store.has_here(BlobRef::new(*blob, *size))
        });
        store.save_remote_index(&RemoteIndex {
            remote: remote.to_owned(),
            blobs,
        })
    }

    /// True if the cache lists the blob.
    pub(crate) fn has(&self, blob: BlobRef) -> bool {
        self.size(blob.blob) == Some(blob.size)
    }

    /// True if a request of this process found the blob.
    pub(crate) fn has_current(&self, blob: BlobRef) -> bool {
        self.blobs.get(&blob.blob) == Some(&(blob.size, Source::ThisProcess))
    }

    pub(crate) fn size(&self, blob: BlobDigest) -> Option<u64> {
        self.blobs.get(&blob).map(|(size, _)| *size)
    }

    pub(crate) fn add(&mut self, blob: BlobRef) {
        self.rejected.remove(&blob.blob);
        let before = self.blobs.insert(blob.blob, (blob.size, Source::ThisProcess));
        self.changed |= before.is_none_or(|(size, _)| size != blob.size);
    }

    pub(crate) fn remove(&mut self, blob: BlobDigest) {
        self.changed |= self.blobs.remove(&blob).is_some();
    }

    /// Invalidates the entries of earlier runs: one of them turned out to be wrong.
    pub(crate) fn invalidate(&mut self) {
        let before = self.blobs.len();
        self.blobs.retain(|_, (_, source)| *source == Source::ThisProcess);
        self.changed |= self.blobs.len() < before;
    }

    /// Rejects a blob that is missing or damaged. Returns true if it was not rejected before.
    pub(crate) fn reject(&mut self, blob: BlobDigest) -> bool {
        let is_new = self.merge_rejected(blob);
        if is_new {
            self.rejections.push(blob);
        }
        is_new
    }

    /// Rejects a blob as [`ExistenceCache::reject`] does, for a blob that another process rejected before.
    pub(crate) fn merge_rejected(&mut self, blob: BlobDigest) -> bool {
        self.remove(blob);
        self.rejected.insert(blob)
    }

    /// All rejections by this process.
    pub(crate) fn rejections(&self) -> &[BlobDigest] {
        &self.rejections
    }

    pub(crate) fn is_rejected(&self, blob: BlobDigest) -> bool {
        self.rejected.contains(&blob)
    }

    pub(crate) fn rejected(&self) -> Vec<BlobDigest> {
        self.rejected.iter().copied().collect()
    }
}

/// The saved entries of this remote.
fn saved(store: &Store, remote: &str) -> BTreeMap<BlobDigest, u64> {
    let index = store.remote_index();
    if index.remote == remote {
        index.blobs
    } else {
        BTreeMap::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_saved_per_remote() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let (a, b, c) = (BlobRef::of(b"a"), BlobRef::of(b"b"), store.put(b"c").unwrap());
        let mut known = ExistenceCache::load(&store, "r");
        for blob in [a, b, c] {
            known.add(blob);
        }
        known.save(&store, "r").unwrap();
        let mut later = ExistenceCache::load(&store, "r");
        assert!(
            later.has(a) && later.has(b) && !later.has(c),
            "a local blob needs no entry"
        );
        assert!(!later.has_current(a));
        assert!(!later.has(BlobRef { size: 2, ..a }));
        later.remove(a.blob);
        later.save(&store, "r").unwrap();
        let last = ExistenceCache::load(&store, "r");
        assert!(!last.has(a) && last.has(b));
        assert!(!ExistenceCache::load(&store, "other").has(b));
        let mut known = ExistenceCache::load(&store, "r");
        known.add(c);
        known.invalidate();
        assert!(known.has(c) && !known.has(b), "only entries of this process");
        assert_eq!(store.remote_index().blobs.len(), 1);
    }
}
