//! The upstream store: a second, shared store, for which the local store is a read-through and write-behind
//! cache.
//!
//! An implementation holds the local [`Store`](crate::Store) that it fills: [`Upstream::fetch`] writes to
//! that store. No method fails because the upstream does not answer: look-ups are misses then, uploads stay
//! queued, and [`Upstream::take_warnings`] reports it. Errors are those of the local store.

use crate::blob::BlobRef;
use crate::digest::{ActionKey, BlobDigest, MemoKey};
use crate::error::{Error, Result};
use crate::record::{StoredAction, StoredMemo};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A shared store upstream of the local one.
pub trait Upstream: fmt::Debug + Send + Sync {
    /// The name for messages: a URL without credentials.
    fn name(&self) -> &str;

    /// True if requests are sent, that is, while the circuit breaker is closed.
    fn is_available(&self) -> bool;

    /// The record of an action; `None` when there is no record that may be used.
    fn action(&self, key: ActionKey) -> Result<Option<StoredAction>>;

    /// The record of a memo; `None` when there is no record that may be used.
    fn memo(&self, key: MemoKey) -> Result<Option<StoredMemo>>;

    /// For each blob, in the order given, true if the upstream holds it.
    fn contains(&self, blobs: &[BlobRef]) -> Result<Vec<bool>>;

    /// The length of a blob in bytes; `None` when the upstream does not hold it.
    fn blob_size(&self, digest: BlobDigest) -> Result<Option<u64>>;

    /// Fetches a blob. Returns true if it is in the local store afterwards.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the bytes do not match the digest, or when the local store fails.
    fn fetch(&self, digest: BlobDigest) -> Result<bool>;

    /// Ends all current and future look-ups and fetches, which become misses. For a run that was cancelled.
    fn stop_reads(&self);

    /// Notes the sizes of blobs that may be fetched: no more bytes than that are accepted for a blob.
    fn expect(&self, blobs: &mut dyn Iterator<Item = BlobRef>);

    /// The number of blobs that turned out to be missing or damaged.
    fn rejected_blobs(&self) -> usize;

    /// Notes a memo that was written to the local store, for [`WorkerReport::memos`].
    fn note_memo(&self, memo: StoredMemo);

    /// True if nothing is ever uploaded.
    fn is_read_only(&self) -> bool;

    /// Uploads those of the blobs that the upstream lacks, and returns the ones that it lacks afterwards.
    /// Needs no signing key: blobs are found by their digest.
    fn send(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>>;

    /// Adds records to the upload queue.
    fn enqueue(&self, records: Vec<RecordId>);

    /// Waits until the upload queue is empty, at most for the configured time and until `stop` returns true.
    /// `on_progress` is called several times a second.
    fn drain(&self, stop: &dyn Fn() -> bool, on_progress: &mut dyn FnMut(UploadProgress)) -> Drained;

    /// Saves the existence cache for later runs.
    fn save(&self) -> Result<()>;

    /// Returns warnings for the user, each kind once. Later calls return only new ones.
    fn take_warnings(&self) -> Vec<String>;

    /// The transfers so far.
    fn stats(&self) -> TransferStats;

    /// Calls `watcher` after each transferred piece, on the thread that waited for it. Only the first watcher
    /// is used.
    fn watch(&self, watcher: Box<dyn Fn(TransferStats) + Send + Sync>);

    /// The settings from which a worker process opens the same upstream; `None` while the circuit breaker is
    /// open.
    fn worker_settings(&self) -> Option<WorkerSettings>;

    /// The report that a worker process sends to the engine when it ends.
    fn worker_report(&self) -> WorkerReport;

    /// Merges the report of a worker process.
    fn merge_report(&self, report: WorkerReport);
}

/// The settings of an upstream for a worker process, in a form that the implementation defines. They are sent
/// over a pipe, never to a file or in arguments, and are not shown.
#[derive(Clone, Serialize, Deserialize)]
pub struct WorkerSettings(serde_json::Value);

impl WorkerSettings {
    /// Serialises an implementation's settings.
    pub fn new(settings: &impl Serialize) -> Option<Self> {
        serde_json::to_value(settings).ok().map(Self)
    }

    /// Deserialises the settings.
    pub fn get<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        T::deserialize(&self.0)
            .map_err(|_| Error::remote("the remote of this worker", "its settings have another form"))
    }
}

impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerSettings(…)")
    }
}

/// The state of the upstream at the end of a worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Memos that the worker wrote.
    pub memos: Vec<StoredMemo>,
    /// Blobs that the worker uploaded, or found in the upstream.
    #[serde(default)]
    pub sent: Vec<BlobRef>,
    /// Blobs that turned out to be missing or damaged.
    pub rejected: Vec<BlobDigest>,
    /// Warnings: kind, text, number of occurrences.
    pub warnings: Vec<(String, String, u64)>,
    /// The worker's transfers.
    pub stats: TransferStats,
    /// True if the circuit breaker is open.
    pub unavailable: bool,
}

/// A record of an action or a memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordId {
    /// The record of an action.
    Action(ActionKey),
    /// The record of a memo.
    Memo(MemoKey),
}

/// The result of waiting for uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drained {
    /// The number of records that were not uploaded, because of the deadline or because the upstream rejected
    /// them.
    pub left: u64,
    /// True if the wait ended at the deadline or was stopped.
    pub out_of_time: bool,
}

/// The progress of uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadProgress {
    /// The number of records that are waiting or being uploaded.
    pub records: u64,
    /// The number of bytes of the current batch that have been uploaded.
    pub done: u64,
    /// The total number of bytes of the current batch.
    pub total: u64,
}

/// The numbers of transferred blobs and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStats {
    /// Blobs fetched.
    pub fetched: u64,
    /// Bytes of the fetched blobs.
    pub fetched_bytes: u64,
    /// Blobs uploaded.
    pub uploaded: u64,
    /// Bytes of the uploaded blobs.
    pub uploaded_bytes: u64,
    /// Bytes transferred so far, unfinished transfers included.
    pub moved_bytes: u64,
}
