//! Requests to a remote, with the circuit breaker, the existence cache and warnings.

use crate::address::Address;
use crate::backend::{Backend, Sink};
use crate::circuit_breaker::CircuitBreaker;
use crate::cloud::Cloud;
use crate::directory::Directory;
use crate::existence_cache::ExistenceCache;
use crate::failure::{Attempt, Failure};
use crate::object_name::{DOCUMENTS, object_name, parse_object_name};
use crate::redact::Redactor;
use crate::settings::RemoteSettings;
use crate::signature::{MAX_LEN, Rejection};
use crate::transfer_stats::Counters;
use crate::warnings::{REQUEST_FAILED, UNAVAILABLE, Warnings};
use bytes::Bytes;
use cache::parallel::{self, locked};
use cache::{BlobDigest, BlobRef, Error, Result, Store};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};
use tokio::sync::watch;

/// The layout version that is read and written.
const FORMAT: &str = "runner-remote 2";
/// The number of concurrent look-ups.
const LOOKUPS: usize = 32;

/// A client of one remote. The client sends no request, and starts no thread, before the first look-up.
pub(crate) struct Client {
    pub settings: RemoteSettings,
    address: Address,
    /// The remote's URL, without credentials.
    pub name: String,
    /// The local store.
    pub store: Store,
    backend: OnceLock<Option<Box<dyn Backend>>>,
    /// True if the remote has a supported format; `None` before the first request.
    format: Mutex<Option<bool>>,
    pub reads: CircuitBreaker,
    /// True once reads were stopped.
    stop_reads: watch::Sender<bool>,
    pub writes: CircuitBreaker,
    known: OnceLock<Mutex<ExistenceCache>>,
    /// The sizes of blobs according to manifests: no more bytes than that are accepted from a server.
    expected: Mutex<HashMap<BlobDigest, u64>>,
    redactor: OnceLock<Redactor>,
    pub warnings: Warnings,
    pub stats: Counters,
}

impl Client {
    /// Creates a client with these settings, for a local store.
    pub(crate) fn new(settings: RemoteSettings, store: &Store) -> Result<Self> {
        let unusable = |what: &str, reason: String| {
            let forms = "a remote is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory` or \
                `https://…`";
            Error::remote(format!("the {what} of the remote"), format!("{reason}; {forms}"))
        };
        settings
            .check(store.root())
            .map_err(|(field, reason)| unusable(if field == "url" { "URL" } else { field }, reason))?;
        let address =
            Address::parse(&settings.url, store.root()).map_err(|reason| unusable("URL", reason))?;
        settings.check_trust().map_err(|err| {
            let remote = format!("the remote {}", address.shown());
            Error::remote(remote, format!("{err}; {}", err.hint()))
        })?;
        Ok(Self::unchecked(settings, address, store))
    }

    /// Creates the client of a worker process, whose engine checked the settings. It has no signing key, and
    /// uploads blobs at most.
    pub(crate) fn for_worker(settings: RemoteSettings, store: &Store) -> Result<Self> {
        let address = Address::parse(&settings.url, store.root())
            .map_err(|reason| Error::remote("the remote of this worker", reason))?;
        Ok(Self::unchecked(settings, address, store))
    }

    fn unchecked(settings: RemoteSettings, address: Address, store: &Store) -> Self {
        Self {
            reads: CircuitBreaker::default(),
            stop_reads: watch::Sender::default(),
            writes: CircuitBreaker::default(),
            settings,
            name: address.shown(),
            address,
            store: store.clone(),
            backend: OnceLock::new(),
            format: Mutex::default(),
            known: OnceLock::new(),
            expected: Mutex::default(),
            redactor: OnceLock::new(),
            warnings: Warnings::default(),
            stats: Counters::default(),
        }
    }

    /// True if nothing is ever written to the remote.
    pub(crate) fn is_read_only(&self) -> bool {
        self.settings.read_only || self.address.is_web_server()
    }

    /// True if the remote can list its objects.
    pub(crate) fn can_list(&self) -> bool {
        !self.address.is_web_server()
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.directory().is_some()
    }

    /// The directory that is the remote, if it is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match &self.address {
            Address::Directory(path) => Some(path),
            Address::Object { .. } => None,
        }
    }

    /// True if requests are sent, that is, while the circuit breaker is closed.
    pub(crate) fn is_available(&self) -> bool {
        !self.reads.is_open()
    }

    /// Removes credentials from a message.
    pub(crate) fn redact(&self, message: &str) -> String {
        self.redactor.get_or_init(Redactor::new).clean(message)
    }

    /// The existence cache.
    pub(crate) fn known(&self) -> MutexGuard<'_, ExistenceCache> {
        let load = || Mutex::new(ExistenceCache::load(&self.store, &self.name));
        locked(self.known.get_or_init(load))
    }

    /// The existence cache, if it was loaded.
    pub(crate) fn known_if_loaded(&self) -> Option<MutexGuard<'_, ExistenceCache>> {
        self.known.get().map(locked)
    }

    fn backend(&self) -> Attempt<&dyn Backend> {
        let backend = self.backend.get_or_init(|| {
            let made: std::result::Result<Box<dyn Backend>, String> = match &self.address {
                Address::Directory(path) => Ok(Box::new(Directory::new(path.clone()))),
                address => Cloud::new(address, &self.settings, self.stop_reads.subscribe())
                    .map(|cloud| Box::new(cloud) as Box<dyn Backend>),
            };
            made.map_err(|message| self.give_up(&message)).ok()
        });
        backend.as_deref().ok_or(Failure::CircuitOpen)
    }

    /// Ends all current and future reads.
    pub(crate) fn stop_reads(&self) {
        self.reads.open_for_good();
        self.stop_reads.send_replace(true);
    }

    /// True once reads were stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop_reads.borrow()
    }

    /// Opens the circuit breaker permanently, with a warning.
    fn give_up(&self, message: &str) {
        self.reads.open_for_good();
        self.writes.open_for_good();
        self.warn_unavailable(message);
    }

    fn warn_unavailable(&self, message: &str) {
        self.warnings.add(UNAVAILABLE, || {
            format!(
                "the remote {} is unavailable: {}\n   hint: results are computed and stored locally; check \
                 its URL, the network, this machine's certificates and the credentials in the environment, \
                 or ignore it with `--no-remote`",
                self.name,
                self.redact(message)
            )
        });
    }

    /// Sends a request; `None` when there is no answer or no such object.
    pub(crate) fn request<T>(&self, request: impl FnOnce(&dyn Backend) -> Attempt<T>) -> Result<Option<T>> {
        let Ok(backend) = self.backend() else { return Ok(None) };
        if !self.has_format(backend) {
            return Ok(None);
        }
        let answer = self.reads.call(|| request(backend));
        self.answer(answer)
    }

    fn answer<T>(&self, answer: Attempt<T>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Failure::NotFound | Failure::CircuitOpen | Failure::Stopped) => Ok(None),
            Err(Failure::Local(err)) => Err(err),
            Err(Failure::Permanent { message, .. }) => {
                self.writes.open();
                self.warn_unavailable(&message);
                Ok(None)
            }
            Err(Failure::Transient { message, .. }) => {
                self.warnings.add(REQUEST_FAILED, || {
                    format!(
                        "a request to the remote {} failed: {}",
                        self.name,
                        self.redact(&message)
                    )
                });
                Ok(None)
            }
        }
    }

    /// True if the remote has been written to in the supported layout. Requested only once.
    fn has_format(&self, backend: &dyn Backend) -> bool {
        let mut format = locked(&self.format);
        if let Some(known) = *format {
            return known;
        }
        let mut text = Buffer::default();
        let known = match self.reads.call(|| backend.read("format", 0, &mut text)) {
            Ok(()) => self.is_format(&text.bytes),
            Err(Failure::NotFound) => {
                if self.is_read_only() {
                    self.give_up("there is no remote at this address: it has no file `format`");
                }
                false
            }
            other => {
                // Without an answer, the next request asks again.
                let _ = self.answer(other);
                return false;
            }
        };
        *format = Some(known);
        known
    }

    fn is_format(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        if text == FORMAT {
            return true;
        }
        let found = cache::plain_text(&text.chars().take(40).collect::<String>());
        let older = "; `runner cache push --all` fills another, empty one with signed records";
        let hint = if found == "runner-remote 1" { older } else { "" };
        self.give_up(&format!(
            "it has the format `{found}`, but this program reads `{FORMAT}`{hint}"
        ));
        false
    }

    /// The backend for writing; initialises an empty remote.
    pub(crate) fn writable(&self) -> Attempt<&dyn Backend> {
        let backend = self.backend()?;
        if !self.has_format(backend) {
            if !self.is_available() {
                return Err(Failure::CircuitOpen);
            }
            let text = Bytes::from(format!("{FORMAT}\n"));
            self.writes.call(|| backend.write("format", text, &|_| true))?;
            *locked(&self.format) = Some(true);
        }
        Ok(backend)
    }

    /// Fetches a record; `None` when there is no record that may be used. `read` is one of the functions of
    /// [`signature`](crate::signature).
    pub(crate) fn record<T>(
        &self,
        folder: &str,
        name: &str,
        read: impl Fn(&[u8]) -> std::result::Result<T, Rejection>,
    ) -> Result<Option<T>> {
        let path = object_name(folder, name);
        let bytes = self.request(|backend| read_object(backend, &path))?;
        let Some(bytes) = bytes else { return Ok(None) };
        match read(&bytes) {
            Ok(record) => Ok(Some(record)),
            Err(rejection) => {
                self.warn_rejected(&path, &rejection);
                Ok(None)
            }
        }
    }

    fn warn_rejected(&self, path: &str, rejection: &Rejection) {
        let (kind, what, hint) = match rejection {
            Rejection::Damaged => {
                let what = if path.starts_with(DOCUMENTS) {
                    ""
                } else {
                    "; its action runs again"
                };
                let text = || format!("{path} in the remote {} is damaged and ignored{what}", self.name);
                return self.warnings.add("damaged record", text);
            }
            Rejection::Unsigned => (
                "unsigned record",
                "no signature".to_owned(),
                "its writer needs a signing key (`sign_key_file:`); `runner cache push --all` signs what \
                was uploaded before"
                    .to_owned(),
            ),
            Rejection::WrongSignature => (
                "wrong signature",
                "a wrong signature".to_owned(),
                "somebody changed it after it was signed, or moved it here from another key".to_owned(),
            ),
            Rejection::UnknownSigner(key) => (
                "unknown signer",
                format!("a signature by the unknown key {}", key.fingerprint()),
                format!("if its owner is trusted, add `{key}` to `trusted_keys:` of the configuration"),
            ),
        };
        self.warnings.add(kind, || {
            format!(
                "{path} in the remote {} has {what} and is ignored\n   hint: {hint}",
                self.name
            )
        });
    }

    /// Fetches an object of at most [`MAX_LEN`] bytes; `None` when it does not exist.
    pub(crate) fn object(&self, path: &str) -> Attempt<Option<Vec<u8>>> {
        let backend = self.backend()?;
        match self.reads.call(|| read_object(backend, path)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Failure::NotFound) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// For each blob, true if the remote holds it. Entries of the existence cache are trusted: if an entry is
    /// wrong, fetching the blob fails.
    pub(crate) fn contains(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        self.look_up(blobs, ExistenceCache::has)
    }

    /// Looks blobs up as [`Client::contains`] does, but trusts only entries of this process.
    pub(crate) fn contains_current(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        self.look_up(blobs, ExistenceCache::has_current)
    }

    fn look_up(
        &self,
        blobs: &[BlobRef],
        is_trusted: impl Fn(&ExistenceCache, BlobRef) -> bool,
    ) -> Result<Vec<bool>> {
        if !self.is_available() {
            return Ok(vec![false; blobs.len()]);
        }
        let unknown: Vec<BlobRef> = {
            let known = self.known();
            let is_unknown = |blob: &&BlobRef| !is_trusted(&known, **blob) && !known.is_rejected(blob.blob);
            blobs.iter().filter(is_unknown).copied().collect()
        };
        let found = parallel::map_with_threads(&unknown, LOOKUPS, |blob| {
            let path = object_name("blobs", &blob.blob.to_hex());
            self.request(|backend| backend.size(&path))
        })?;
        let mut known = self.known();
        for (blob, size) in unknown.iter().zip(found) {
            if size == Some(blob.size) {
                known.add(*blob);
            } else {
                known.remove(blob.blob);
            }
        }
        Ok(blobs.iter().map(|blob| known.has(*blob)).collect())
    }

    /// Notes the sizes of blobs that may be fetched.
    pub(crate) fn expect(&self, blobs: impl Iterator<Item = BlobRef>) {
        locked(&self.expected).extend(blobs.map(|blob| (blob.blob, blob.size)));
    }

    pub(crate) fn expected_size(&self, digest: BlobDigest) -> Option<u64> {
        locked(&self.expected).get(&digest).copied()
    }

    /// The length of a blob in bytes; `None` when the remote does not hold it.
    pub(crate) fn blob_size(&self, digest: BlobDigest) -> Result<Option<u64>> {
        if let Some(size) = self.known().size(digest) {
            return Ok(Some(size));
        }
        let path = object_name("blobs", &digest.to_hex());
        self.request(|backend| backend.size(&path))
    }

    /// Lists at most `limit` digests or keys below a directory, in hex; other names are ignored. `None` when
    /// there is no answer.
    pub(crate) fn list(&self, folder: &str, limit: usize) -> Result<Option<Vec<String>>> {
        let names = self.request(|backend| backend.list(folder, limit))?;
        let ids = |names: Vec<String>| {
            let ids = names.iter().filter_map(|name| parse_object_name(folder, name));
            ids.collect()
        };
        Ok(names.map(ids))
    }
}

fn read_object(backend: &dyn Backend, path: &str) -> Attempt<Vec<u8>> {
    let mut buffer = Buffer::default();
    backend.read(path, 0, &mut buffer).map(|()| buffer.bytes)
}

/// A small object in memory.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
}

impl Sink for Buffer {
    fn begin(&mut self, _offset: u64, _total: u64) -> Result<()> {
        self.bytes.clear();
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        // A longer object is not a record, and fails its checksum.
        let room = (MAX_LEN as usize).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len() < room)
    }
}
