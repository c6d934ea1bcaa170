//! Action records and memos: which key had which result.

use crate::publish::touch_record;
use crate::sealed::{self, Sealed};
use crate::store::sharded;
use crate::{ActionKey, ArtifactDigest, BlobDigest, BlobRef, Error, MemoKey, Outputs, Result, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is known of one action that ran to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Its key.
    pub key: ActionKey,
    /// What the key was made of, for people and for `why`; the decision to run is made on the key alone.
    pub recipe: Value,
    /// Its output artifacts, by port.
    pub outputs: BTreeMap<String, ArtifactDigest>,
    /// Its log (standard streams of a `run:` stage).
    pub log: Option<BlobRef>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The peak resident memory of its worker in bytes, where known.
    pub peak_memory: Option<u64>,
    /// Instruction set and kernel version that computed it.
    pub numerics_class: String,
    /// The version of the program that computed it.
    pub program: String,
    /// Further facts that tools may show (host, started at).
    #[serde(default)]
    pub info: BTreeMap<String, Value>,
}

/// An action record as it is stored: with every blob that its outputs consist of, so that a look-up needs no manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredAction {
    pub record: ActionRecord,
    /// The manifests and what they name, each once, sorted.
    pub blobs: Vec<(BlobDigest, u64)>,
}

impl StoredAction {
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.blobs.iter().map(|&(blob, size)| BlobRef { blob, size })
    }

    pub fn into_hit(self) -> Hit {
        Hit {
            outputs: self.record.outputs.into(),
            log: self.record.log,
            seconds: self.record.seconds,
            peak_memory: self.record.peak_memory,
            blobs: self.blobs,
        }
    }
}

/// What a look-up of an action gives: as much of its record as a run needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Its output artifacts, by port.
    pub outputs: Outputs,
    /// Its log, if it is still there.
    pub log: Option<BlobRef>,
    /// How long it took when it was computed, in seconds.
    pub seconds: f64,
    /// The peak resident memory of its worker in bytes, where known.
    pub peak_memory: Option<u64>,
    /// The manifests of its outputs and what they name, each once, sorted.
    pub blobs: Vec<(BlobDigest, u64)>,
}

impl Hit {
    /// The manifests of its outputs and what they name.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.blobs.iter().map(|&(blob, size)| BlobRef { blob, size })
    }
}

/// The fields of [`StoredAction`] that a [`Hit`] is made of.
#[derive(Deserialize)]
struct StoredHit {
    record: HitRecord,
    blobs: Vec<(BlobDigest, u64)>,
}

#[derive(Deserialize)]
struct HitRecord {
    key: ActionKey,
    outputs: Outputs,
    log: Option<BlobRef>,
    seconds: f64,
    peak_memory: Option<u64>,
}

/// A memo as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredMemo {
    pub key: MemoKey,
    pub value: BlobRef,
}

impl Store {
    pub(crate) fn action_path(&self, key: ActionKey) -> PathBuf {
        sharded(&self.folder("actions"), &key.to_hex())
    }

    pub(crate) fn memo_path(&self, key: MemoKey) -> PathBuf {
        sharded(&self.folder("memos"), &key.to_hex())
    }

    /// What was recorded of an action, whether or not its outputs are still there; for `why`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn recorded(&self, key: ActionKey) -> Result<Option<ActionRecord>> {
        match sealed::read::<StoredAction>(&self.action_path(key))? {
            Sealed::Intact(stored, _) if stored.record.key == key => Ok(Some(stored.record)),
            _ => Ok(None),
        }
    }

    /// The record of an action whose outputs are all there (here or in the remote); `None` when it has to run. Costs one
    /// small read, and a look at the size of each blob. A damaged record is moved away; a lost log alone does not make the action run again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn action(&self, key: ActionKey) -> Result<Option<ActionRecord>> {
        let path = self.action_path(key);
        let (stored, meta) = match sealed::read::<StoredAction>(&path)? {
            Sealed::Intact(stored, meta) if stored.record.key == key => (stored, meta),
            Sealed::Absent => return Ok(None),
            Sealed::Intact(_, seen) | Sealed::Damaged(seen) => return self.set_aside(&path, &seen).map(|()| None),
        };
        if !self.has_all(stored.blobs())? {
            return Ok(None);
        }
        touch_record(&path, &meta);
        let mut record = stored.record;
        record.log = record.log.filter(|log| self.has(*log));
        Ok(Some(record))
    }

    /// As [`Store::action`], without what only people and `why` need. What is not known here is looked up in the remote;
    /// none of its blobs is fetched.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn hit(&self, key: ActionKey) -> Result<Option<Hit>> {
        match self.recorded_hit(key, |blobs| self.has_all(blobs.iter().copied()))? {
            Some(mut hit) => {
                hit.log = hit.log.filter(|log| self.has(*log));
                Ok(Some(hit))
            }
            None => self.hit_there(key),
        }
    }

    /// As [`Store::hit`], by this store alone: nothing is asked of a remote.
    ///
    /// # Errors
    /// Likewise.
    pub fn hit_here(&self, key: ActionKey) -> Result<Option<Hit>> {
        let mut hit = self.recorded_hit(key, |blobs| Ok(blobs.iter().all(|blob| self.has_here(*blob))))?;
        if let Some(hit) = &mut hit {
            hit.log = hit.log.filter(|log| self.has_here(*log));
        }
        Ok(hit)
    }

    fn recorded_hit(&self, key: ActionKey, has_all: impl Fn(&[BlobRef]) -> Result<bool>) -> Result<Option<Hit>> {
        let path = self.action_path(key);
        let (StoredHit { record, blobs }, meta) = match sealed::read::<StoredHit>(&path)? {
            Sealed::Intact(stored, meta) if stored.record.key == key => (stored, meta),
            Sealed::Absent => return Ok(None),
            Sealed::Intact(_, seen) | Sealed::Damaged(seen) => return self.set_aside(&path, &seen).map(|()| None),
        };
        let hit = Hit {
            outputs: record.outputs,
            log: record.log,
            seconds: record.seconds,
            peak_memory: record.peak_memory,
            blobs,
        };
        if !has_all(&hit.blobs().collect::<Vec<_>>())? {
            return Ok(None);
        }
        touch_record(&path, &meta);
        Ok(Some(hit))
    }

    /// Writes an action record. Its outputs must be stored already.
    ///
    /// # Errors
    /// When the store cannot be written, or an output or a blob that it names is not there ([`Error::Missing`],
    /// [`Error::Damaged`]).
    pub fn put_action(&self, record: &ActionRecord) -> Result<Hit> {
        let mut blobs = BTreeSet::new();
        for &output in record.outputs.values() {
            let (artifact, size) = self.manifest(output)?;
            blobs.insert((output.into(), size));
            blobs.extend(artifact.entries.iter().map(|entry| (entry.blob, entry.size)));
        }
        let stored = StoredAction {
            record: record.clone(),
            blobs: blobs.into_iter().collect(),
        };
        if let Some(lost) = self.lost(stored.blobs().chain(record.log))?.first() {
            return Err(Error::Missing {
                digest: lost.blob.to_hex(),
            });
        }
        self.write_action(&stored)?;
        Ok(stored.into_hit())
    }

    pub(crate) fn write_action(&self, stored: &StoredAction) -> Result<()> {
        let path = self.action_path(stored.record.key);
        if let Sealed::Intact(old, _) = sealed::read::<StoredHit>(&path)?
            && *old.record.outputs != stored.record.outputs
        {
            // The newest result of a key is the one that counts.
            self.forget_recent()?;
        }
        sealed::write_lasting(self.root(), &path, stored)
    }

    /// The value of a memo, if it is known (here or to the remote) and its blob is there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        let path = self.memo_path(key);
        match sealed::read::<StoredMemo>(&path)? {
            Sealed::Intact(memo, meta) if memo.key == key => {
                if !self.has(memo.value) {
                    return self.memo_there(key);
                }
                touch_record(&path, &meta);
                Ok(Some(memo.value))
            }
            Sealed::Absent => self.memo_there(key),
            Sealed::Intact(_, seen) | Sealed::Damaged(seen) => {
                self.set_aside(&path, &seen)?;
                self.memo_there(key)
            }
        }
    }

    /// As [`Store::memo`], leaving everything as it is: neither its time of use nor a damaged record is touched.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn peek_memo(&self, key: MemoKey) -> Result<Option<BlobRef>> {
        match sealed::read::<StoredMemo>(&self.memo_path(key))? {
            Sealed::Intact(memo, _) if memo.key == key && self.has(memo.value) => Ok(Some(memo.value)),
            _ => self.peek_memo_there(key),
        }
    }

    /// Remembers a value that is stored already.
    ///
    /// # Errors
    /// When the store cannot be written, or the value is not there ([`Error::Missing`]).
    pub fn put_memo(&self, key: MemoKey, value: BlobRef) -> Result<()> {
        if !self.has(value) {
            return Err(Error::Missing {
                digest: value.blob.to_hex(),
            });
        }
        sealed::write_lasting(self.root(), &self.memo_path(key), &StoredMemo { key, value })?;
        if let Some(remote) = &self.remote {
            remote.note_memo(key);
        }
        Ok(())
    }

    /// Where [`Store::scratch`] keeps a folder, whether or not it is there.
    pub fn scratch_path(&self, key: MemoKey) -> PathBuf {
        sharded(&self.folder("scratch"), &key.to_hex())
    }

    /// A folder for checkpoints of unfinished work. Its files may be changed by whoever holds the action's lock; it
    /// outlives a crash, and `gc` drops it once it is old. A file on its way into place is named `….tmp`, so that `gc`
    /// knows it for a leftover.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn scratch(&self, key: MemoKey) -> Result<PathBuf> {
        let path = self.scratch_path(key);
        std::fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(path)
    }
}
