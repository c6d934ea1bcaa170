//! Read-through: look-ups that fall back to the upstream store, and write-behind to it.

use crate::artifact::{Artifact, Entry};
use crate::blob::{Blob, BlobRef};
use crate::digest::{ActionKey, ArtifactDigest, BlobDigest};
use crate::error::{Error, Result};
use crate::parallel::map_with_threads;
use crate::record::StoredMemo;
use crate::store::Store;
use crate::upstream::{RecordId, Upstream, WorkerSettings};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Opens the upstream of a local store from [`Upstream::worker_settings`].
pub type OpenUpstream = fn(&Store, &WorkerSettings) -> Result<Arc<dyn Upstream>>;

/// The maximum length of a manifest that is read, in bytes: half a million entries.
const MAX_MANIFEST: u64 = 64 << 20;

/// The number of concurrent fetches.
const FETCHES: usize = 8;

impl Store {
    /// Returns the store with a fallback for objects that it does not hold.
    #[must_use]
    pub fn with_upstream(mut self, upstream: Arc<dyn Upstream>) -> Self {
        self.upstream = Some(upstream);
        self
    }

    /// The fallback for objects that are not in the local store.
    pub fn upstream(&self) -> Option<&dyn Upstream> {
        self.upstream.as_deref()
    }

    /// Returns a copy of the store that fetches no blob longer than `bytes`.
    #[must_use]
    pub fn with_fetch_limit(&self, bytes: u64) -> Self {
        let mut store = self.clone();
        store.fetch_limit = bytes;
        store
    }

    /// Maps a blob into memory and checks its bytes on the first use in this process. Big blobs are hashed on
    /// rayon's current pool. A missing or damaged blob is fetched from the upstream, if the upstream holds
    /// it.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::Damaged`] (the file is then moved to `damaged/`); recomputing the
    /// action that produced the blob replaces it. [`Error::Interrupted`] when hashing a large blob was
    /// interrupted, see [`Store::with_interrupt`].
    pub fn blob(&self, digest: BlobDigest) -> Result<Blob> {
        match self.local_blob(digest) {
            Err(err) if err.is_healed_by_recomputing() => match self.fetch(digest)? {
                true => self.local_blob(digest),
                false => Err(err),
            },
            result => result,
        }
    }

    /// Checks a blob's bytes again even if they were checked before: something may have written to its file.
    pub fn recheck(&self, digest: BlobDigest) -> Result<()> {
        self.forget_verified(digest);
        self.blob(digest).map(|_| ())
    }

    /// Reads an artifact's manifest.
    ///
    /// # Errors
    /// The errors of [`Store::blob`], and [`Error::Manifest`] when the blob is not a valid manifest.
    pub fn artifact(&self, digest: ArtifactDigest) -> Result<Artifact> {
        self.manifest(digest).map(|(artifact, _)| artifact)
    }

    /// Reads an artifact's manifest, and returns it with its length in bytes.
    pub(crate) fn manifest(&self, digest: ArtifactDigest) -> Result<(Artifact, u64)> {
        let blob = self.blob(digest.into())?;
        let size = blob.len() as u64;
        let artifact: Result<Artifact, String> = if size > MAX_MANIFEST {
            Err(format!("its manifest has {size} bytes"))
        } else {
            serde_json::from_slice(&blob).map_err(|err| err.to_string())
        };
        if let (Some(upstream), Ok(artifact)) = (self.upstream(), &artifact) {
            upstream.expect(&mut artifact.entries.iter().map(Entry::blob_ref));
        }
        artifact
            .map(|artifact| (artifact, size))
            .map_err(|reason| Error::Manifest {
                digest: digest.to_hex(),
                reason,
            })
    }

    /// The manifests of artifacts and the blobs of their entries, each once, sorted by digest.
    pub fn blobs_of(&self, artifacts: impl IntoIterator<Item = ArtifactDigest>) -> Result<Vec<BlobRef>> {
        let mut blobs = BTreeSet::new();
        for digest in artifacts {
            let (artifact, size) = self.manifest(digest)?;
            blobs.insert((digest.into(), size));
            blobs.extend(artifact.entries.iter().map(|entry| (entry.blob, entry.size)));
        }
        Ok(blobs.into_iter().map(|(blob, size)| BlobRef { blob, size }).collect())
    }

    /// True if the blob is in the local store or the upstream with the stated size (its bytes are not read).
    pub fn has(&self, blob: BlobRef) -> bool {
        let in_upstream =
            |upstream: &dyn Upstream| upstream.contains(&[blob]).is_ok_and(|found| found == [true]);
        self.has_here(blob) || self.upstream().is_some_and(in_upstream)
    }

    /// The blobs that are in neither the local store nor the upstream.
    pub(crate) fn missing(&self, blobs: impl Iterator<Item = BlobRef>) -> Result<Vec<BlobRef>> {
        let absent: Vec<BlobRef> = blobs.filter(|blob| !self.has_here(*blob)).collect();
        let Some(upstream) = self.upstream().filter(|_| !absent.is_empty()) else {
            return Ok(absent);
        };
        let found = upstream.contains(&absent)?;
        let pairs = absent.into_iter().zip(found);
        Ok(pairs.filter_map(|(blob, found)| (!found).then_some(blob)).collect())
    }

    pub(crate) fn has_all(&self, mut blobs: impl Iterator<Item = BlobRef>) -> Result<bool> {
        if self.upstream.is_none() {
            // Stops at the first missing blob.
            return Ok(blobs.all(|blob| self.has_here(blob)));
        }
        self.missing(blobs).map(|missing| missing.is_empty())
    }

    /// Fetches a blob from the upstream. Returns true if it is in the local store afterwards.
    fn fetch(&self, digest: BlobDigest) -> Result<bool> {
        let Some(upstream) = self.upstream() else {
            return Ok(false);
        };
        if self.fetch_limit < u64::MAX
            && upstream.blob_size(digest)?.is_none_or(|size| size > self.fetch_limit)
        {
            return Ok(false);
        }
        upstream.fetch(digest)
    }

    /// Fetches the blobs that are not in the local store, several at a time. A blob that cannot be fetched
    /// causes an error only when it is opened.
    pub fn fetch_all(&self, blobs: impl IntoIterator<Item = BlobRef>) -> Result<()> {
        let Some(upstream) = self.upstream() else { return Ok(()) };
        let absent: Vec<BlobRef> = blobs.into_iter().filter(|blob| !self.has_here(*blob)).collect();
        map_with_threads(&absent, FETCHES, |blob| match upstream.fetch(blob.blob) {
            Err(err) if err.is_healed_by_recomputing() => Ok(()),
            fetched => fetched.map(|_| ()),
        })
        .map(|_| ())
    }

    /// Uploads an action and these memos in the background, if the store has an upstream.
    pub fn upload_later(&self, action: ActionKey, memos: &[StoredMemo]) {
        if let Some(upstream) = self.upstream() {
            let memos = memos.iter().map(|memo| RecordId::Memo(memo.key));
            upstream.enqueue(memos.chain([RecordId::Action(action)]).collect());
        }
    }
}
