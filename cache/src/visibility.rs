//! Files that another host wrote, on a store that several hosts share: the client of a network file system
//! answers from a cache for a while, also that a file does not exist.

use crate::blob::BlobRef;
use crate::error::Result;
use crate::regular_file::{Opened, open_own};
use crate::store::Store;
use std::path::Path;
use std::time::{Duration, Instant};

/// The first and the longest interval between two looks.
const POLL: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

impl Store {
    /// Waits until blobs that another host wrote are visible here, at most `bound` for all of them. Returns the
    /// first that is still missing, or has another size, at the bound.
    ///
    /// # Errors
    /// When a file exists but cannot be opened.
    pub fn wait_for(
        &self,
        blobs: &mut dyn Iterator<Item = BlobRef>,
        bound: Duration,
    ) -> Result<Option<BlobRef>> {
        let began = Instant::now();
        for blob in blobs {
            let mut poll = POLL[0];
            while !self.opens(blob)? {
                let Some(left) = bound.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
                    return Ok(Some(blob));
                };
                std::thread::sleep(poll.min(left));
                poll = (poll * 2).min(POLL[1]);
                let folder = self.folder("blobs");
                if let Some(shard) = self.blob_path(blob.blob).parent() {
                    refresh(shard);
                }
                refresh(&folder);
            }
        }
        Ok(None)
    }

    /// True if the blob is here with its size. Opens the file: a network file system checks with its server
    /// then.
    fn opens(&self, blob: BlobRef) -> Result<bool> {
        Ok(match open_own(&self.blob_path(blob.blob))? {
            Opened::Regular(_, meta) => meta.len() == blob.size,
            Opened::Foreign(_) | Opened::Absent => false,
        })
    }
}

/// Makes the client of a network file system forget its view of a directory, by creating a file in it. A
/// directory that is not there, or where this user may not write, stays as it is.
pub(crate) fn refresh(dir: &Path) {
    let _ = tempfile::Builder::new().prefix(".refresh-").tempfile_in(dir);
}
