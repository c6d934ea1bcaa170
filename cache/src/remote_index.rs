//! The index of blobs that the upstream holds according to earlier requests, saved between runs in the file
//! `remote`.

use crate::checksummed::{self, Checksummed};
use crate::digest::BlobDigest;
use crate::error::Result;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The blobs that the upstream held at the last look-ups and that were not in the local store.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteIndex {
    /// The upstream's name: its URL, without credentials.
    pub remote: String,
    /// The digests of the blobs, with their sizes in bytes.
    pub blobs: BTreeMap<BlobDigest, u64>,
}

impl Store {
    fn remote_index_path(&self) -> PathBuf {
        self.folder("remote")
    }

    /// Loads the saved index; empty if it is missing or damaged.
    pub fn remote_index(&self) -> RemoteIndex {
        match checksummed::read(&self.remote_index_path()) {
            Ok(Checksummed::Intact(index, _)) => index,
            _ => RemoteIndex::default(),
        }
    }

    /// Saves the index.
    pub fn save_remote_index(&self, index: &RemoteIndex) -> Result<()> {
        checksummed::write(self.root(), &self.remote_index_path(), index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::BlobRef;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_an_index_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(checksummed::decode::<RemoteIndex>(&bytes).is_none());
        }

        #[test]
        fn a_changed_index_is_none(at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let blobs = BTreeMap::from([(BlobRef::of(b"a").blob, 1)]);
            let index = RemoteIndex { remote: "r".to_owned(), blobs };
            let mut bytes = checksummed::encode(&index).unwrap().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = checksummed::decode::<RemoteIndex>(&bytes);
            prop_assert!(found.is_none() || found == Some(index));
        }
    }
}
