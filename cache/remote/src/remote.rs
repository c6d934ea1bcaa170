//! The remote as an upstream store.

use crate::client::Client;
use crate::fetch::fetch;
use crate::memo_filter::MemoFilter;
use crate::settings::RemoteSettings;
use crate::signature;
use crate::upload::upload_blobs;
use crate::upload_queue::UploadQueue;
use crate::worker_sync;
use cache::parallel::locked;
use cache::{
    ActionKey, BlobDigest, BlobRef, Drained, MemoKey, RecordId, Result, Store, StoredAction, StoredMemo,
    TransferStats, UploadProgress, Upstream, WorkerReport, WorkerSettings,
};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A remote store. Cloning it is cheap. The remote sends no request, and starts no thread, before the first
/// look-up.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<Client>,
    queue: UploadQueue,
    memo_filter: MemoFilter,
    /// The memos written to the local store since the last report.
    memos: Mutex<Vec<StoredMemo>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.client().name)
    }
}

impl Remote {
    /// Creates the remote with these settings, for a local store.
    ///
    /// # Errors
    /// [`cache::Error::Remote`] when the settings are wrong.
    pub fn new(settings: RemoteSettings, store: &Store) -> Result<Self> {
        Client::new(settings, store).map(Self::of)
    }

    fn of(client: Client) -> Self {
        Self {
            inner: Arc::new(Inner {
                client: Arc::new(client),
                queue: UploadQueue::default(),
                memo_filter: MemoFilter::default(),
                memos: Mutex::default(),
            }),
        }
    }

    /// Returns the local store with this remote as its upstream.
    #[must_use]
    pub fn attach(&self, store: Store) -> Store {
        store.with_upstream(Arc::new(self.clone()))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The configuration of the remote.
    pub fn settings(&self) -> &RemoteSettings {
        &self.client().settings
    }
}

/// Opens the engine's remote in a worker process: an [`OpenUpstream`](cache::OpenUpstream).
pub fn open_for_worker(store: &Store, settings: &WorkerSettings) -> Result<Arc<dyn Upstream>> {
    let client = worker_sync::client(store, settings)?;
    Ok(Arc::new(Remote::of(client)))
}

impl Upstream for Remote {
    fn name(&self) -> &str {
        &self.client().name
    }

    fn is_available(&self) -> bool {
        self.client().is_available()
    }

    fn action(&self, key: ActionKey) -> Result<Option<StoredAction>> {
        let settings = self.settings();
        self.client().record("actions", &key.to_hex(), |bytes| {
            signature::action(bytes, key, settings)
        })
    }

    fn memo(&self, key: MemoKey) -> Result<Option<StoredMemo>> {
        let (client, filter) = (self.client(), &self.inner.memo_filter);
        if !filter.may_contain(client, key)? {
            return Ok(None);
        }
        let settings = self.settings();
        let stored = client.record("memos", &key.to_hex(), |bytes| signature::memo(bytes, key, settings))?;
        if stored.is_none() {
            filter.missed();
        }
        Ok(stored)
    }

    fn contains(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        self.client().contains(blobs)
    }

    fn blob_size(&self, digest: BlobDigest) -> Result<Option<u64>> {
        self.client().blob_size(digest)
    }

    fn fetch(&self, digest: BlobDigest) -> Result<bool> {
        fetch(self.client(), digest)
    }

    fn stop_reads(&self) {
        self.client().stop_reads();
    }

    fn expect(&self, blobs: &mut dyn Iterator<Item = BlobRef>) {
        self.client().expect(blobs);
    }

    fn rejected_blobs(&self) -> usize {
        let known = self.client().known_if_loaded();
        known.map_or(0, |known| known.rejections().len())
    }

    fn note_memo(&self, memo: StoredMemo) {
        if !self.client().is_read_only() {
            locked(&self.inner.memos).push(memo);
        }
    }

    fn is_read_only(&self) -> bool {
        self.client().is_read_only()
    }

    fn send(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>> {
        let client = self.client();
        let sent = upload_blobs(client, blobs, &AtomicBool::new(false), |_| {})?;
        Ok(sent.absent.into_iter().collect())
    }

    fn enqueue(&self, records: Vec<RecordId>) {
        if !self.client().is_read_only() {
            self.inner.queue.enqueue(&self.inner.client, records);
        }
    }

    fn drain(&self, stop: &dyn Fn() -> bool, on_progress: &mut dyn FnMut(UploadProgress)) -> Drained {
        let limit = self.settings().upload_time;
        self.inner.queue.drain(self.client(), limit, stop, on_progress)
    }

    fn save(&self) -> Result<()> {
        let client = self.client();
        match client.known_if_loaded() {
            Some(mut known) => match known.save(&client.store, &client.name) {
                // Saving only avoids requests of later runs.
                Err(err) if err.is_denied() => Ok(()),
                saved => saved,
            },
            None => Ok(()),
        }
    }

    fn take_warnings(&self) -> Vec<String> {
        self.client().warnings.take_texts()
    }

    fn stats(&self) -> TransferStats {
        self.client().stats.get()
    }

    fn watch(&self, watcher: Box<dyn Fn(TransferStats) + Send + Sync>) {
        self.client().stats.watch(watcher);
    }

    fn worker_settings(&self) -> Option<WorkerSettings> {
        worker_sync::settings(self.client())
    }

    fn worker_report(&self) -> WorkerReport {
        worker_sync::report(self.client(), std::mem::take(&mut locked(&self.inner.memos)))
    }

    fn merge_report(&self, report: WorkerReport) {
        worker_sync::merge(self.client(), report);
    }
}
