//! Looking up and writing the records of actions and memos.

use crate::blob::BlobRef;
use crate::checksummed::{self, Checksummed};
use crate::digest::{ActionKey, BlobDigest, MemoKey};
use crate::error::{Error, Result};
use crate::fs::{if_allowed, touch_record};
use crate::record::{ActionRecord, Hit, StoredAction, StoredMemo};
use crate::regular_file::read_own;
use crate::store::Store;
use crate::store::sharded;
use crate::upstream::RecordId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The fields of [`StoredAction`] that a [`Hit`] needs.
#[derive(Deserialize)]
struct StoredHit {
    record: Hit,
    blobs: Vec<(BlobDigest, u64)>,
}

impl Store {
    pub(crate) fn action_path(&self, key: ActionKey) -> PathBuf {
        sharded(&self.folder("actions"), &key.to_hex())
    }

    pub(crate) fn memo_path(&self, key: MemoKey) -> PathBuf {
        sharded(&self.folder("memos"), &key.to_hex())
    }

    /// The record of an action, whether or not its outputs still exist; used by `why`.
    pub fn recorded(&self, key: ActionKey) -> Result<Option<ActionRecord>> {
        match checksummed::read::<StoredAction>(&self.action_path(key))? {
            Checksummed::Intact(stored, _) if stored.record.key == key => Ok(Some(stored.record)),
            _ => Ok(None),
        }
    }

    /// The record of an action whose outputs all exist (in the local store or the upstream); `None` when the
    /// action has to run. Costs one small read, and one look-up of the size of each blob. A damaged record is
    /// quarantined; a missing log alone is still a hit.
    pub fn action(&self, key: ActionKey) -> Result<Option<ActionRecord>> {
        let path = self.action_path(key);
        let stored = self.read_record(&path, |stored: &StoredAction| stored.record.key == key)?;
        let Some((stored, meta)) = stored else { return Ok(None) };
        if !self.has_all(stored.blobs())? {
            return Ok(None);
        }
        touch_record(&path, &meta);
        let mut record = stored.record;
        record.log = record.log.filter(|log| self.has(*log));
        Ok(Some(record))
    }

    /// Looks an action up as [`Store::action`] does, but omits the fields that only display and `why` need. A
    /// miss is looked up in the upstream; none of its blobs is fetched.
    pub fn hit(&self, key: ActionKey) -> Result<Option<Hit>> {
        match self.recorded_hit(key, |blobs| self.has_all(blobs.iter().copied()))? {
            Some(mut hit) => {
                hit.log = hit.log.filter(|log| self.has(*log));
                Ok(Some(hit))
            }
            None => self.upstream_hit(key),
        }
    }

    /// Looks an action up as [`Store::hit`] does, without the fallback to the upstream.
    pub fn hit_here(&self, key: ActionKey) -> Result<Option<Hit>> {
        let mut hit = self.recorded_hit(key, |blobs| Ok(blobs.iter().all(|blob| self.has_here(*blob))))?;
        if let Some(hit) = &mut hit {
            hit.log = hit.log.filter(|log| self.has_here(*log));
        }
        Ok(hit)
    }

    /// Reads the record at `path` if it satisfies `is_right`; anything else is quarantined.
    fn read_record<T: DeserializeOwned>(
        &self,
        path: &Path,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<Option<(T, Metadata)>> {
        match checksummed::read::<T>(path)? {
            Checksummed::Intact(record, meta) if is_right(&record) => Ok(Some((record, meta))),
            Checksummed::Absent => Ok(None),
            Checksummed::Intact(_, seen) | Checksummed::Damaged(seen) => {
                self.quarantine(path, &seen).map(|()| None)
            }
        }
    }

    fn recorded_hit(
        &self,
        key: ActionKey,
        has_all: impl Fn(&[BlobRef]) -> Result<bool>,
    ) -> Result<Option<Hit>> {
        let path = self.action_path(key);
        let stored = self.read_record(&path, |stored: &StoredHit| stored.record.key == key)?;
        let Some((StoredHit { record, blobs }, meta)) = stored else {
            return Ok(None);
        };
        let hit = Hit { blobs, ..record };
        if !has_all(&hit.blobs().collect::<Vec<_>>())? {
            return Ok(None);
        }
        touch_record(&path, &meta);
        Ok(Some(hit))
    }

    /// Writes an action record. The outputs must already be stored.
    ///
    /// # Errors
    /// When the store cannot be written, or an output or a blob that it names does not exist
    /// ([`Error::Missing`], [`Error::Damaged`]).
    pub fn put_action(&self, record: &ActionRecord) -> Result<Hit> {
        let blobs = self.blobs_of(record.outputs.values().copied())?;
        let stored = StoredAction {
            record: record.clone(),
            blobs: blobs.into_iter().map(|blob| (blob.blob, blob.size)).collect(),
        };
        if let Some(missing) = self.missing(stored.blobs().chain(record.log))?.first() {
            return Err(Error::missing(missing.blob));
        }
        self.write_action(&stored)?;
        Ok(stored.into_hit())
    }

    pub(crate) fn write_action(&self, stored: &StoredAction) -> Result<()> {
        let path = self.action_path(stored.record.key);
        checksummed::write_durable(self.root(), &path, stored)
    }

    /// The value of a memo, if it has a record (in the local store or the upstream) and its blob exists.
    pub fn memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let path = self.memo_path(key);
        match self.read_record(&path, |memo: &StoredMemo| memo.key == key)? {
            Some((memo, meta)) if self.has(memo.value) => {
                touch_record(&path, &meta);
                Ok(Some(memo.value))
            }
            _ => self.upstream_memo(key),
        }
    }

    /// Looks a memo up as [`Store::memo`] does, without any change to the store: the time of use is not
    /// updated, and a damaged record is not quarantined.
    pub fn peek_memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        match checksummed::read::<StoredMemo>(&self.memo_path(key))? {
            Checksummed::Intact(memo, _) if memo.key == key && self.has(memo.value) => Ok(Some(memo.value)),
            _ => self.peek_upstream_memo(key),
        }
    }

    /// Looks an action up in the upstream; a record found there is copied to the local store.
    fn upstream_hit(&self, key: ActionKey) -> Result<Option<Hit>> {
        let Some(upstream) = self.upstream() else {
            return Ok(None);
        };
        let Some(stored) = upstream.action(key)? else {
            return Ok(None);
        };
        // The log is looked up with the other blobs.
        let log = stored.record.log;
        let missing = self.missing(stored.blobs().chain(log))?;
        if stored.blobs().any(|blob| missing.contains(&blob)) {
            return Ok(None);
        }
        if_allowed(self.write_action(&stored))?;
        let mut hit = stored.into_hit();
        hit.log = log.filter(|log| !missing.contains(log));
        Ok(Some(hit))
    }

    /// Looks a memo up in the upstream; a record found there is copied to the local store.
    fn upstream_memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let Some(value) = self.peek_upstream_memo(key)? else {
            return Ok(None);
        };
        let memo = StoredMemo { key, value };
        if_allowed(checksummed::write_durable(self.root(), &self.memo_path(key), &memo))?;
        Ok(Some(value))
    }

    fn peek_upstream_memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let Some(upstream) = self.upstream() else {
            return Ok(None);
        };
        let memo = upstream.memo(key)?;
        Ok(memo.map(|memo| memo.value).filter(|value| self.has(*value)))
    }

    /// Writes the record of a memo whose value is already stored.
    ///
    /// # Errors
    /// When the store cannot be written, or the value does not exist ([`Error::Missing`]).
    pub fn put_memo(&self, key: MemoKey, value: BlobRef) -> Result<()> {
        if !self.has(value) {
            return Err(Error::missing(value.blob));
        }
        let memo = StoredMemo { key, value };
        checksummed::write_durable(self.root(), &self.memo_path(key), &memo)?;
        if let Some(upstream) = self.upstream() {
            upstream.note_memo(memo);
        }
        Ok(())
    }

    /// The ids of all records of the local store.
    pub fn records(&self) -> Result<Vec<RecordId>> {
        let actions = self.list::<ActionKey>("actions")?;
        let memos = self.list::<MemoKey>("memos")?;
        let actions = actions.into_iter().map(|action| RecordId::Action(action.id));
        Ok(actions
            .chain(memos.into_iter().map(|memo| RecordId::Memo(memo.id)))
            .collect())
    }

    /// The contents of a record's file, byte for byte; `None` when the file does not exist.
    pub fn record_bytes(&self, id: RecordId) -> Result<Option<Vec<u8>>> {
        let path = match id {
            RecordId::Action(key) => self.action_path(key),
            RecordId::Memo(key) => self.memo_path(key),
        };
        read_own(&path)
    }
}
