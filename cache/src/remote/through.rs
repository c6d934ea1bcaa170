//! The store's look-ups that read through to its remote.

use super::client::Remote;
use super::settings::RemoteSettings;
use super::signed;
use super::upload::Upload;
use crate::record::StoredMemo;
use crate::sealed;
use crate::{ActionKey, BlobDigest, BlobRef, Hit, MemoKey, Result, Store};
use std::sync::atomic::Ordering;

impl Store {
    /// Looks for what is not here in a remote. Nothing is asked of it before there is something to ask.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) when the settings are wrong.
    pub fn with_remote(mut self, settings: RemoteSettings) -> Result<Self> {
        self.remote = Some(Remote::new(settings, self.root())?);
        Ok(self)
    }

    /// Where it looks for what is not here.
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// The same store, which fetches nothing longer than so many bytes.
    #[must_use]
    pub fn fetching_at_most(&self, bytes: u64) -> Self {
        let mut store = self.clone();
        store.longest_fetch = bytes;
        store
    }

    /// Uploads an action and these memos in the background, if there is a remote to write to.
    pub fn upload_later(&self, action: ActionKey, memos: &[MemoKey]) {
        if let Some(remote) = &self.remote {
            let memos = memos.iter().copied().map(Upload::Memo);
            remote.upload_later(self, memos.chain([Upload::Action(action)]));
        }
    }

    /// Fetches a blob. Returns whether it is here now.
    pub(crate) fn fetch(&self, digest: BlobDigest) -> Result<bool> {
        let Some(remote) = &self.remote else { return Ok(false) };
        if self.longest_fetch < u64::MAX && remote.size_of(digest)?.is_none_or(|size| size > self.longest_fetch) {
            return Ok(false);
        }
        remote.fetch(self, digest)
    }

    /// Fetches those blobs that are not here, several at a time. What cannot be fetched is found out when it is opened.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn fetch_all(&self, blobs: impl IntoIterator<Item = BlobRef>) -> Result<()> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let blobs: Vec<BlobRef> = blobs.into_iter().collect();
        remote.fetch_all(self, &blobs, &Default::default()).map(|_| ())
    }

    pub(crate) fn has_there(&self, blob: BlobRef) -> bool {
        let there = |remote: &Remote| remote.look(&[blob]).is_ok_and(|found| found == [true]);
        self.remote.as_ref().is_some_and(there)
    }

    /// Whether the remote has it as far as is known; nothing is asked.
    pub(crate) fn remembers_there(&self, blob: BlobRef) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.remembers(blob))
    }

    /// Those of these blobs that are neither here nor in the remote.
    pub(crate) fn lost(&self, blobs: impl Iterator<Item = BlobRef>) -> Result<Vec<BlobRef>> {
        let absent: Vec<BlobRef> = blobs.filter(|blob| !self.has_here(*blob)).collect();
        if absent.is_empty() {
            return Ok(absent);
        }
        let Some(remote) = &self.remote else { return Ok(absent) };
        let there = remote.look(&absent)?;
        Ok(absent
            .into_iter()
            .zip(there)
            .filter_map(|(blob, there)| (!there).then_some(blob))
            .collect())
    }

    pub(crate) fn has_all(&self, blobs: impl Iterator<Item = BlobRef>) -> Result<bool> {
        if self.remote.is_none() {
            // The first one that is missing settles it.
            let mut blobs = blobs;
            return Ok(blobs.all(|blob| self.has_here(blob)));
        }
        self.lost(blobs).map(|lost| lost.is_empty())
    }

    /// An action that the remote has a record of; the record is kept here.
    pub(crate) fn hit_there(&self, key: ActionKey) -> Result<Option<Hit>> {
        let Some(remote) = &self.remote else { return Ok(None) };
        let sign = remote.inner.settings.sign_key.as_ref();
        let record = remote.record("actions", &key.to_hex(), |bytes| signed::action(bytes, key, sign))?;
        let Some(stored) = record else { return Ok(None) };
        // The log is asked for with the rest.
        let log = stored.record.log;
        let lost = self.lost(stored.blobs().chain(log))?;
        if stored.blobs().any(|blob| lost.contains(&blob)) {
            return Ok(None);
        }
        self.write_action(&stored)?;
        let mut hit = stored.into_hit();
        hit.log = log.filter(|log| !lost.contains(log));
        Ok(Some(hit))
    }

    /// A memo that the remote has a record of; the record is kept here.
    pub(crate) fn memo_there(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let Some(value) = self.peek_memo_there(key)? else {
            return Ok(None);
        };
        sealed::write_lasting(self.root(), &self.memo_path(key), &StoredMemo { key, value })?;
        Ok(Some(value))
    }

    pub(crate) fn peek_memo_there(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let Some(remote) = &self.remote else { return Ok(None) };
        if !remote.may_have(key)? {
            return Ok(None);
        }
        let sign = remote.inner.settings.sign_key.as_ref();
        let stored = remote.record("memos", &key.to_hex(), |bytes| signed::memo(bytes, key, sign))?;
        if stored.is_none() {
            remote.inner.memo_misses.fetch_add(1, Ordering::Relaxed);
        }
        Ok(stored.map(|stored| stored.value).filter(|value| self.has(*value)))
    }
}

/// After so many memos that were not there, the remote is asked once which it has: most of the others will not be there either.
const MISSES: u32 = 32;

/// To list more names than this takes longer than to ask for some.
const NAMES: usize = 20_000;

impl Remote {
    fn may_have(&self, key: MemoKey) -> Result<bool> {
        let inner = &self.inner;
        // Asking a folder costs nothing.
        if !self.lists() || self.is_folder() || inner.memo_misses.load(Ordering::Relaxed) < MISSES || self.is_aside() {
            return Ok(true);
        }
        if inner.memo_names.get().is_none() {
            let names = self.list("memos", NAMES)?.filter(|names| names.len() < NAMES);
            let names = names.map(|names| names.iter().filter_map(|name| name.parse().ok()).collect());
            let _ = inner.memo_names.set(names);
        }
        let names = inner.memo_names.get().and_then(Option::as_ref);
        Ok(names.is_none_or(|names| names.contains(&key)))
    }
}
