//! Uploads: blobs first, then the records that name them.

use super::client::{Remote, TRANSFERS, object};
use super::patience::Lost;
use super::place::{Part, Place};
use super::signed;
use crate::publish::found;
use crate::record::{StoredAction, StoredMemo};
use crate::{ActionKey, BlobRef, MemoKey, Result, Store, sealed, walk};
use bytes::Bytes;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many parts of one blob are uploaded side by side.
const PARTS: usize = 4;

/// A record to upload, with all that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Upload {
    /// An action's.
    Action(ActionKey),
    /// A memo's.
    Memo(MemoKey),
}

/// What an upload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushReport {
    /// Records that were asked for and are complete there now.
    pub records: u64,
    /// Those of them that were there before.
    pub there_before: u64,
    /// Blobs uploaded.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that are not here as a whole, and were left out.
    pub incomplete: u64,
    /// Records that could not be uploaded.
    pub failed: u64,
    /// Those that are not there: incomplete or failed.
    #[serde(skip)]
    pub left: Vec<Upload>,
}

/// A record that is here.
struct Ready {
    folder: &'static str,
    name: String,
    /// The bytes of its file.
    sealed: Vec<u8>,
    blobs: Vec<BlobRef>,
    item: Upload,
}

impl Remote {
    /// Uploads records with all that they name, until `stop` is set. What is there already stays as it is; with `replace`,
    /// records do not. `plan` is told how many bytes there are to upload.
    ///
    /// # Errors
    /// When the local store cannot be read. What goes wrong at the remote is in the report and in the warnings.
    pub(super) fn upload(
        &self,
        store: &Store,
        items: &[Upload],
        replace: bool,
        stop: &AtomicBool,
        plan: impl Fn(u64),
    ) -> Result<PushReport> {
        let mut report = PushReport::default();
        let mut ready = Vec::new();
        for item in items {
            match read(store, *item)? {
                Some(record) => ready.push(record),
                None => {
                    report.incomplete += 1;
                    report.left.push(*item);
                }
            }
        }
        if ready.is_empty() {
            return Ok(report);
        }
        let place = match self.prepare_to_write() {
            Ok(place) => place,
            Err(lost) => {
                self.not_written(lost)?;
                report.failed = ready.len() as u64;
                report.left.extend(ready.iter().map(|record| record.item));
                return Ok(report);
            }
        };
        let blobs: Vec<BlobRef> = {
            let unique: BTreeMap<_, _> = ready
                .iter()
                .flat_map(|record| &record.blobs)
                .map(|b| (b.blob, *b))
                .collect();
            unique.into_values().collect()
        };
        let there = self.look_now(&blobs)?;
        let absent: Vec<BlobRef> = blobs
            .iter()
            .zip(&there)
            .filter(|(_, there)| !**there)
            .map(|(b, _)| *b)
            .collect();
        plan(absent.iter().map(|blob| blob.size).sum());
        let (count, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let lost = walk::in_threads(&absent, TRANSFERS, |blob| {
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(*blob));
            }
            match self.upload_blob(place, store, *blob, stop)? {
                Sent::Done => {
                    count.fetch_add(1, Ordering::Relaxed);
                    bytes.fetch_add(blob.size, Ordering::Relaxed);
                    Ok(None)
                }
                Sent::NotHere | Sent::Failed => Ok(Some(*blob)),
            }
        })?;
        report.blobs = count.into_inner();
        report.bytes = bytes.into_inner();
        let lost: HashSet<BlobRef> = lost.into_iter().flatten().collect();
        ready.retain(|record| {
            let lacks = record.blobs.iter().find(|blob| lost.contains(blob));
            match lacks {
                Some(blob) if !store.has_here(*blob) => report.incomplete += 1,
                Some(_) => report.failed += 1,
                None => return true,
            }
            report.left.push(record.item);
            false
        });
        let written = walk::in_threads(&ready, TRANSFERS, |record| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if !replace && self.is_same_there(record)? {
                return Ok(Some(false));
            }
            let bytes = signed::write(
                &record.sealed,
                record.folder,
                &record.name,
                self.inner.settings.sign_key.as_ref(),
            );
            let bytes = Bytes::from(bytes);
            let name = object(record.folder, &record.name);
            match self.inner.writes.try_until(|_| place.write(&name, bytes.clone())) {
                Ok(()) => Ok(Some(true)),
                Err(lost) => self.not_written(lost).map(|()| None),
            }
        })?;
        for (record, written) in ready.iter().zip(written) {
            match written {
                Some(new) => {
                    report.records += 1;
                    report.there_before += u64::from(!new);
                }
                None => {
                    report.failed += 1;
                    report.left.push(record.item);
                }
            }
        }
        Ok(report)
    }

    /// Whether there is a record that says the same and may be used.
    fn is_same_there(&self, ready: &Ready) -> Result<bool> {
        let sign = self.inner.settings.sign_key.as_ref();
        match ready.item {
            Upload::Action(key) => {
                let there = self.record(ready.folder, &ready.name, |bytes| signed::action(bytes, key, sign))?;
                let here = sealed::open::<StoredAction>(&ready.sealed);
                Ok(there
                    .zip(here)
                    .is_some_and(|(there, here)| there.record.outputs == here.record.outputs))
            }
            Upload::Memo(key) => {
                let there = self.record(ready.folder, &ready.name, |bytes| signed::memo(bytes, key, sign))?;
                Ok(there.is_some_and(|there| ready.blobs == [there.value]))
            }
        }
    }

    fn upload_blob(&self, place: &dyn Place, store: &Store, blob: BlobRef, stop: &AtomicBool) -> Result<Sent> {
        // Its bytes are checked: damage is not passed on.
        let bytes = match store.blob_here(blob.blob) {
            Ok(bytes) if bytes.len() as u64 == blob.size => Bytes::from_owner(bytes),
            Ok(_) => return Ok(Sent::NotHere),
            Err(err) if err.is_healed_by_recomputing() => return Ok(Sent::NotHere),
            Err(err) => return Err(err),
        };
        let name = object("blobs", &blob.blob.to_hex());
        let traffic = &self.inner.traffic;
        let sent = match place.part_size(bytes.len()) {
            None => {
                let sent = self.inner.writes.try_until(|_| place.write(&name, bytes.clone()));
                traffic.moved(bytes.len());
                sent
            }
            Some(size) => self.upload_parts(place, &name, &bytes, size, stop)?,
        };
        match sent {
            Ok(()) => {
                traffic.uploaded(blob.size);
                self.known().add(blob);
                Ok(Sent::Done)
            }
            Err(lost) => self.not_written(lost).map(|()| Sent::Failed),
        }
    }

    /// Uploads a large blob in parts, so that what breaks off costs a part.
    fn upload_parts(
        &self,
        place: &dyn Place,
        name: &str,
        bytes: &Bytes,
        size: usize,
        stop: &AtomicBool,
    ) -> Result<std::result::Result<(), Lost>> {
        let writes = &self.inner.writes;
        let id = match writes.try_until(|_| place.begin_parts(name)) {
            Ok(id) => id,
            Err(lost) => return Ok(Err(lost)),
        };
        let indices: Vec<usize> = (0..bytes.len().div_ceil(size)).collect();
        let sent = walk::in_threads(&indices, PARTS, |&i| {
            if stop.load(Ordering::Relaxed) {
                return Ok(Err(Lost::Aside));
            }
            let part = bytes.slice(i * size..bytes.len().min((i + 1) * size));
            let sent = writes.try_until(|_| place.part(name, &id, i, part.clone()));
            if sent.is_ok() {
                self.inner.traffic.moved(part.len());
            }
            Ok(sent)
        })?;
        let parts: std::result::Result<Vec<Part>, Lost> = sent.into_iter().collect();
        let ended = match parts {
            Ok(parts) => writes.try_until(|_| match place.end_parts(name, &id, &parts) {
                // The answer to an earlier attempt may have been lost.
                Err(_) if place.size(name).is_ok_and(|there| there == bytes.len() as u64) => Ok(()),
                ended => ended,
            }),
            Err(lost) => Err(lost),
        };
        if ended.is_err() && !writes.is_aside() {
            place.drop_parts(name, &id);
        }
        Ok(ended)
    }

    /// Goes on without writing to it, and says so once.
    fn not_written(&self, lost: Lost) -> Result<()> {
        let message = match lost {
            Lost::Local(err) => return Err(err),
            Lost::Aside => return Ok(()),
            Lost::Absent => "it has no place for it".to_owned(),
            Lost::NowAside(message) | Lost::GaveUp(message) => message,
        };
        self.warn("not written", || {
            format!(
                "not all of it was uploaded to the remote {}: {}\n   hint: `runner cache push` uploads what is missing there; \
                 `read_only: true` in the configuration leaves the remote as it is",
                self.inner.shown,
                self.clean(&message)
            )
        });
        Ok(())
    }
}

/// How the upload of a blob went.
enum Sent {
    Done,
    /// It is not here, or damaged.
    NotHere,
    Failed,
}

/// A record of the local store and the blobs that it names; `None` where it is not there or damaged.
fn read(store: &Store, item: Upload) -> Result<Option<Ready>> {
    let (folder, name, path) = match item {
        Upload::Action(key) => ("actions", key.to_hex(), store.action_path(key)),
        Upload::Memo(key) => ("memos", key.to_hex(), store.memo_path(key)),
    };
    let Some(sealed) = found(std::fs::read(&path), "read", &path)? else {
        return Ok(None);
    };
    let blobs = match item {
        Upload::Action(key) => sealed::open::<StoredAction>(&sealed)
            .filter(|stored| stored.record.key == key)
            // A log that is gone is no reason to leave its action out.
            .map(|stored| {
                stored
                    .blobs()
                    .chain(stored.record.log.filter(|log| store.has_here(*log)))
                    .collect()
            }),
        Upload::Memo(key) => sealed::open::<StoredMemo>(&sealed)
            .filter(|stored| stored.key == key)
            .map(|stored| vec![stored.value]),
    };
    Ok(blobs.map(|blobs| Ready {
        folder,
        name,
        sealed,
        blobs,
        item,
    }))
}
