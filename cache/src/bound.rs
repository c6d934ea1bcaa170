//! The bound of a store that is only a cache of the upstream, such as that of a cluster's node.

use crate::blob::BlobRef;
use crate::digest::BlobDigest;
use crate::error::{Error, Result};
use crate::fs::{metadata, touch};
use crate::gc::{GcPlan, GcReport};
use crate::store::Store;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

impl Store {
    /// Notes a use of those blobs that are here, for [`Store::shrink`].
    pub fn note_use(&self, blobs: impl IntoIterator<Item = BlobRef>) -> Result<()> {
        for blob in blobs {
            let path = self.blob_path(blob.blob);
            if let Some(meta) = metadata(&path)?.filter(std::fs::Metadata::is_file) {
                touch(&path, &meta, Duration::ZERO);
            }
        }
        Ok(())
    }

    /// Drops the least recently used blobs and records until the blobs have at most `bound` bytes together.
    /// Drops nothing while another process uses the store: the last one to leave does.
    pub fn shrink(&self, bound: u64) -> Result<GcReport> {
        let mut used: Vec<(SystemTime, u64)> = self
            .list::<BlobDigest>("blobs")?
            .into_iter()
            .map(|blob| (blob.meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), blob.meta.len()))
            .collect();
        used.sort_unstable_by_key(|&(at, _)| std::cmp::Reverse(at));
        let mut bytes = 0_u64;
        let last = used.into_iter().find(|&(_, len)| {
            bytes = bytes.saturating_add(len);
            bytes > bound
        });
        let Some((last, _)) = last else {
            return Ok(GcReport::default());
        };
        let now = SystemTime::now();
        let age = now.duration_since(last).unwrap_or_default();
        let dropped = self.drop_older(now, age)?;
        // A memo in use keeps its old value, so that more may be left.
        match dropped.kept.bytes > bound {
            true => self.drop_older(now, Duration::ZERO),
            false => Ok(dropped),
        }
    }

    fn drop_older(&self, now: SystemTime, age: Duration) -> Result<GcReport> {
        let plan = GcPlan {
            keep_actions: BTreeSet::new(),
            keep_younger_than: age,
            now,
            dry_run: false,
        };
        match self.gc(&plan) {
            Err(Error::Busy { .. }) => Ok(GcReport::default()),
            dropped => dropped,
        }
    }
}
