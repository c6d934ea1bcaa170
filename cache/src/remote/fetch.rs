//! Fetching blobs: into a file of their own in `tmp`, checked, and then given their name.

use super::client::{Remote, TRANSFERS, object};
use super::place::{Attempt, Sink, Trouble};
use super::traffic::Counters;
use crate::publish::{self, metadata};
use crate::{BlobDigest, BlobRef, Error, Result, Store, lock, walk};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

impl Remote {
    /// Fetches a blob into the local store. Returns whether it is there now. What arrived before a transfer broke off, in this
    /// process or an earlier one, is not fetched again.
    ///
    /// # Errors
    /// [`Error::Damaged`] when its bytes are not what its name says; it is not asked for again.
    pub(super) fn fetch(&self, store: &Store, digest: BlobDigest) -> Result<bool> {
        if self.is_aside() || self.known().is_refused(digest) {
            return Ok(false);
        }
        let goal = store.blob_path(digest);
        let traffic = &self.inner.traffic;
        let mut partial = Partial::open(store, digest, traffic)?;
        // Whoever held the partial file before may have completed it.
        if metadata(&goal)?.is_some() {
            return partial.discard().map(|()| true);
        }
        let name = object("blobs", &digest.to_hex());
        partial.expected = self.known().size(digest);
        // What an earlier process left may be what is wrong.
        let mut again = partial.len > 0;
        loop {
            let fetched = self.ask(|place, moved| {
                let before = partial.len;
                let read = place.read(&name, before, &mut partial);
                *moved = partial.len > before;
                read.and_then(|()| partial.complete())
            });
            let fetched = match fetched {
                Ok(fetched) => fetched,
                Err(err) => {
                    // A full disk, say, has no room for half a blob.
                    partial.discard()?;
                    return Err(err);
                }
            };
            if fetched.is_none() {
                if !self.is_aside() {
                    let mut known = self.known();
                    known.distrust();
                    known.refuse(digest);
                }
                partial.keep_or_discard()?;
                return Ok(false);
            }
            if partial.digest() == digest {
                let len = partial.len;
                partial.publish(store, &goal)?;
                store.set_verified(digest);
                traffic.fetched(len);
                return Ok(true);
            }
            if !std::mem::take(&mut again) {
                break;
            }
            partial.restart().map_err(Error::io("write", &partial.path))?;
        }
        partial.discard()?;
        if self.known().refuse(digest) {
            self.warn("damaged blob", || {
                let shown = &self.inner.shown;
                format!(
                    "{name} in the remote {shown} is not what its name says and is not used; what made it runs again"
                )
            });
        }
        Err(Error::Damaged {
            what: "in the remote, blob",
            digest: digest.to_hex(),
        })
    }

    /// Fetches those blobs that are not here, several at a time, until `stop` is set. Returns which are still not here.
    pub(super) fn fetch_all(&self, store: &Store, blobs: &[BlobRef], stop: &AtomicBool) -> Result<Vec<BlobRef>> {
        let absent: Vec<BlobRef> = blobs.iter().filter(|blob| !store.has_here(**blob)).copied().collect();
        let fetched = walk::in_threads(&absent, TRANSFERS, |blob| {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match self.fetch(store, blob.blob) {
                Err(err) if err.is_healed_by_recomputing() => Ok(false),
                fetched => fetched,
            }
        })?;
        let pairs = absent.into_iter().zip(fetched);
        Ok(pairs.filter_map(|(blob, fetched)| (!fetched).then_some(blob)).collect())
    }
}

/// A blob on its way: a file in `tmp`, which outlives a transfer that breaks off. Whoever fetches holds its lock.
///
/// Its bytes are hashed by this thread alone: one that helped rayon meanwhile could come to want the very same blob.
struct Partial<'a> {
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    len: u64,
    total: Option<u64>,
    /// The length that is known.
    expected: Option<u64>,
    traffic: &'a Counters,
}

impl<'a> Partial<'a> {
    fn open(store: &Store, digest: BlobDigest, traffic: &'a Counters) -> Result<Self> {
        publish::mark_unflushed(store.root())?;
        let path = store.folder("tmp").join(format!("fetch-{}", digest.to_hex()));
        let file = lock::hold(&path)?;
        let mut partial = Self {
            file,
            path,
            hasher: blake3::Hasher::new(),
            len: 0,
            total: None,
            expected: None,
            traffic,
        };
        partial.read_again()?;
        Ok(partial)
    }

    /// Hashes what an earlier transfer left.
    fn read_again(&mut self) -> Result<()> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.hasher.update(&buffer[..n]);
                    self.len += n as u64;
                }
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                Err(err) => return Err(Error::io("read", &self.path)(err)),
            }
        }
    }

    fn restart(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher.reset();
        self.len = 0;
        Ok(())
    }

    /// Whether all of it has come.
    fn complete(&self) -> Attempt<()> {
        match self.total {
            Some(total) if self.len < total && self.expected.is_none_or(|expected| expected == total) => Err(
                Trouble::Failed(format!("the connection ended after {} of {total} bytes", self.len)),
            ),
            _ => Ok(()),
        }
    }

    fn digest(&self) -> BlobDigest {
        crate::blob::digest(&self.hasher)
    }

    fn publish(self, store: &Store, goal: &Path) -> Result<()> {
        publish::publish_held(store.root(), &self.file, &self.path, goal)
    }

    fn discard(self) -> Result<()> {
        publish::remove(&self.path)
    }

    /// After a failure: what has come stays, for the next time; `gc` drops it.
    fn keep_or_discard(self) -> Result<()> {
        if self.len == 0 { self.discard() } else { Ok(()) }
    }
}

impl Sink for Partial<'_> {
    fn begin(&mut self, at: u64, total: u64) -> Result<()> {
        self.total = Some(total);
        if at != self.len {
            self.restart().map_err(Error::io("write", &self.path))?;
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let limit = self.expected.or(self.total).unwrap_or(u64::MAX);
        // What is longer than it can be is wrong; the rest of it is not needed to see that.
        let room = usize::try_from(limit.saturating_add(1).saturating_sub(self.len)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        self.file.write_all(bytes).map_err(Error::io("write", &self.path))?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        self.traffic.moved(bytes.len());
        Ok(())
    }
}
