//! Which blobs a remote is known to have. What was found out is remembered in the local store, so that a later run need not
//! ask again; where the memory is wrong, fetching fails and what made the blob runs again.

use crate::sealed::{self, Sealed};
use crate::{BlobDigest, BlobRef, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The file in the local store.
const FILE: &str = "remote";

/// What the file holds.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    /// The URL, without credentials.
    remote: String,
    /// Blobs that are there, and were not here.
    blobs: BTreeMap<BlobDigest, u64>,
}

/// How sure it is that a blob is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// An earlier run saw it.
    Before,
    /// This process saw it.
    Now,
}

#[derive(Default)]
pub(crate) struct Known {
    blobs: HashMap<BlobDigest, (u64, Since)>,
    /// Blobs that are gone, or whose bytes there are not what their name says.
    refused: BTreeSet<BlobDigest>,
    /// Those that were found out since this process began, also where they have been put right since.
    found_out: Vec<BlobDigest>,
    changed: bool,
}

impl Known {
    /// What an earlier run left in `root` about this remote.
    pub fn load(root: &Path, remote: &str) -> Self {
        let index = read(root).filter(|index| index.remote == remote).unwrap_or_default();
        Self {
            blobs: index
                .blobs
                .into_iter()
                .map(|(blob, size)| (blob, (size, Since::Before)))
                .collect(),
            ..Self::default()
        }
    }

    /// Leaves it for later runs: of what is not here, by `is_here`.
    pub fn save(&mut self, root: &Path, remote: &str, is_here: impl Fn(BlobRef) -> bool) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        // Another process may have found out more; what this one saw vanish is not taken over again.
        let mut blobs = match read(root) {
            Some(index) if index.remote == remote => index.blobs,
            _ => BTreeMap::new(),
        };
        blobs.extend(self.blobs.iter().map(|(blob, (size, _))| (*blob, *size)));
        blobs.retain(|blob, size| {
            self.blobs.contains_key(blob)
                && !is_here(BlobRef {
                    blob: *blob,
                    size: *size,
                })
        });
        let index = Index {
            remote: remote.to_owned(),
            blobs,
        };
        sealed::write(root, &path(root), &index)
    }

    /// Whether it is there, as far as is known.
    pub fn has(&self, blob: BlobRef) -> bool {
        self.size(blob.blob) == Some(blob.size)
    }

    /// Whether this process saw that it is there.
    pub fn has_now(&self, blob: BlobRef) -> bool {
        self.blobs.get(&blob.blob) == Some(&(blob.size, Since::Now))
    }

    pub fn size(&self, blob: BlobDigest) -> Option<u64> {
        self.blobs.get(&blob).map(|(size, _)| *size)
    }

    pub fn add(&mut self, blob: BlobRef) {
        self.refused.remove(&blob.blob);
        let before = self.blobs.insert(blob.blob, (blob.size, Since::Now));
        self.changed |= before.is_none_or(|(size, _)| size != blob.size);
    }

    pub fn remove(&mut self, blob: BlobDigest) {
        self.changed |= self.blobs.remove(&blob).is_some();
    }

    /// Takes nothing on trust that an earlier run saw: something of it is gone.
    pub fn distrust(&mut self) {
        let before = self.blobs.len();
        self.blobs.retain(|_, (_, since)| *since == Since::Now);
        self.changed |= self.blobs.len() < before;
    }

    /// It is not to be used: its bytes there are wrong, or it is gone. Returns whether that is new.
    pub fn refuse(&mut self, blob: BlobDigest) -> bool {
        let is_new = self.take_refused(blob);
        if is_new {
            self.found_out.push(blob);
        }
        is_new
    }

    /// [`Known::refuse`] for what another process found out before.
    pub fn take_refused(&mut self, blob: BlobDigest) -> bool {
        self.remove(blob);
        self.refused.insert(blob)
    }

    pub fn found_out(&self) -> &[BlobDigest] {
        &self.found_out
    }

    pub fn is_refused(&self, blob: BlobDigest) -> bool {
        self.refused.contains(&blob)
    }

    pub fn refused(&self) -> Vec<BlobDigest> {
        self.refused.iter().copied().collect()
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(FILE)
}

/// The blobs that some remote was known to have when the last run ended.
pub(crate) fn elsewhere(root: &Path) -> BTreeMap<BlobDigest, u64> {
    read(root).unwrap_or_default().blobs
}

/// Whether these bytes are what [`Known::save`] may have left.
pub(crate) fn reads_index(bytes: &[u8]) -> bool {
    sealed::open::<Index>(bytes).is_some()
}

fn read(root: &Path) -> Option<Index> {
    match sealed::read(&path(root)) {
        Ok(Sealed::Intact(index, _)) => Some(index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_found_out_is_remembered_per_remote() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir(root.join("tmp")).unwrap();
        let (a, b, c) = (BlobRef::of(b"a"), BlobRef::of(b"b"), BlobRef::of(b"c"));
        let mut known = Known::load(root, "r");
        for blob in [a, b, c] {
            known.add(blob);
        }
        known.save(root, "r", |blob| blob == c).unwrap();
        let mut later = Known::load(root, "r");
        assert!(
            later.has(a) && later.has(b) && !later.has(c),
            "what is here need not be remembered"
        );
        assert!(!later.has_now(a));
        assert!(!later.has(BlobRef { size: 2, ..a }));
        later.remove(a.blob);
        later.save(root, "r", |_| false).unwrap();
        let last = Known::load(root, "r");
        assert!(!last.has(a) && last.has(b));
        assert!(!Known::load(root, "other").has(b));
        let mut known = Known::load(root, "r");
        known.add(c);
        known.distrust();
        assert!(known.has(c) && !known.has(b), "only what this process saw");
        assert_eq!(elsewhere(root).len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_index_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(sealed::open::<Index>(&bytes).is_none());
        }

        #[test]
        fn a_changed_index_is_none(at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let index = Index { remote: "r".to_owned(), blobs: BTreeMap::from([(BlobRef::of(b"a").blob, 1)]) };
            let mut bytes = sealed::text(&index).unwrap().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = sealed::open::<Index>(&bytes);
            prop_assert!(found.is_none() || found == Some(index));
        }
    }
}
