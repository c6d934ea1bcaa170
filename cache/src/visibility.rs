//! Files that another host wrote, on a store that several hosts share: the client of a network file system
//! answers from a cache for a while, also that a file does not exist.

use crate::blob::BlobRef;
use crate::error::Result;
use crate::regular_file::{Opened, open_own};
use crate::store::Store;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The first and the longest interval between two looks.
const POLL: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

impl Store {
    /// Waits until blobs that another host wrote are visible here, at most `bound` for all of them. Returns
    /// the first that is still missing, or has another size, at the bound.
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
                refresh_folder_of(&self.blob_path(blob.blob));
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

/// Makes the client of a network file system forget its view of the folder of a sharded file, by creating a
/// file in it. Where this user may not write, the view stays as it is until the client looks again.
pub(crate) fn refresh_folder_of(path: &Path) {
    if let Some(shard) = path.parent()
        && refresh(shard).is_err()
        && let Some(folder) = shard.parent()
        && refresh(folder).is_ok()
    {
        let _ = refresh(shard);
    }
}

fn refresh(dir: &Path) -> io::Result<()> {
    // Always the same name, so that a kill leaves at most one file, which the next look removes.
    let path = dir.join(".refresh");
    match File::create_new(&path) {
        Err(err) if err.kind() != ErrorKind::AlreadyExists => return Err(err),
        _ => {}
    }
    match std::fs::remove_file(&path) {
        Err(err) if err.kind() != ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_blob_that_appears_late_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_shared(dir.path(), Duration::from_secs(90)).unwrap();
        let blobs = [b"one", b"two"].map(|bytes| store.put(bytes).unwrap());
        let wait = |bound: u64| {
            store
                .wait_for(&mut blobs.into_iter(), Duration::from_millis(bound))
                .unwrap()
        };
        assert_eq!(wait(0), None);
        // A whole folder that is not seen yet, and one that is seen with too short a file.
        let shards = blobs.map(|blob| store.blob_path(blob.blob).parent().unwrap().to_owned());
        fs::rename(&shards[0], dir.path().join("late")).unwrap();
        assert_eq!(wait(30), Some(blobs[0]));
        let path = store.blob_path(blobs[1].blob);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "t").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(40));
                fs::rename(dir.path().join("late"), &shards[0]).unwrap();
                std::thread::sleep(Duration::from_millis(40));
                fs::write(&path, "two").unwrap();
            });
            let began = Instant::now();
            assert_eq!(wait(60_000), None);
            assert!(began.elapsed() >= Duration::from_millis(80));
        });
        for shard in shards {
            assert_eq!(fs::read_dir(shard).unwrap().count(), 1, "nothing is left behind");
        }
    }
}
