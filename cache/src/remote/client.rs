//! A remote: what it has, and fetching it.

use super::address::Address;
use super::behind::Queue;
use super::cloud::Cloud;
use super::directory::Directory;
use super::known::Known;
use super::patience::{Lost, Patience};
use super::place::{Attempt, Place, Sink, Trouble};
use super::redact::Redactor;
use super::settings::RemoteSettings;
use super::signed::{self, Signed};
use crate::publish::{self, metadata};
use crate::{BlobDigest, BlobRef, Error, Result, Store, lock, walk};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The layout that is read and written.
const FORMAT: &str = "runner-remote 1";
/// How many transfers run side by side.
pub(crate) const TRANSFERS: usize = 8;
/// How many questions are asked side by side.
const QUESTIONS: usize = 32;
/// A slower download is given up, in bytes a second over the whole of it.
const SLOWEST: u64 = 16 << 10;
/// What a download is given on top of that.
const EXTRA: Duration = Duration::from_secs(60);

/// What went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Blobs fetched.
    pub fetched: u64,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// Blobs uploaded.
    pub uploaded: u64,
    /// Bytes uploaded.
    pub uploaded_bytes: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    fetched: AtomicU64,
    fetched_bytes: AtomicU64,
    pub uploaded: AtomicU64,
    pub uploaded_bytes: AtomicU64,
}

/// A remote store. Cheap to clone. Nothing is asked of it, and no thread started, before something is looked up in it.
#[derive(Clone)]
pub struct Remote {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub settings: RemoteSettings,
    address: Address,
    shown: String,
    /// The root of the local store.
    root: PathBuf,
    place: OnceLock<Option<Box<dyn Place>>>,
    /// Whether its format was looked at, and is there.
    format: Mutex<Option<bool>>,
    reads: Patience,
    pub writes: Patience,
    known: OnceLock<Mutex<Known>>,
    redactor: OnceLock<Redactor>,
    warned: Mutex<BTreeSet<&'static str>>,
    warnings: Mutex<Vec<String>>,
    pub counters: Counters,
    pub queue: Queue,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.inner.shown)
    }
}

impl Remote {
    /// The remote of these settings, for the store at `root`.
    ///
    /// # Errors
    /// [`Error::Remote`] when the URL is none.
    pub(crate) fn new(settings: RemoteSettings, root: &Path) -> Result<Self> {
        let address = Address::parse(&settings.url, root).map_err(|reason| Error::Remote {
            // What is no URL may still hold a password.
            remote: "the URL of the remote".to_owned(),
            reason: format!("{reason}; it is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///folder` or `https://…`"),
        })?;
        let shown = address.shown();
        Ok(Self {
            inner: Arc::new(Inner {
                reads: Patience::new(settings.timeout),
                writes: Patience::new(settings.timeout),
                settings,
                address,
                shown,
                root: root.to_owned(),
                place: OnceLock::new(),
                format: Mutex::default(),
                known: OnceLock::new(),
                redactor: OnceLock::new(),
                warned: Mutex::default(),
                warnings: Mutex::default(),
                counters: Counters::default(),
                queue: Queue::default(),
            }),
        })
    }

    /// Its URL, without credentials.
    pub fn shown(&self) -> &str {
        &self.inner.shown
    }

    /// What it was opened with. Holds what must not be shown; for handing to a worker process.
    pub fn settings(&self) -> &RemoteSettings {
        &self.inner.settings
    }

    /// Whether nothing is ever written to it.
    pub fn is_read_only(&self) -> bool {
        self.inner.settings.read_only || matches!(self.inner.address, Address::Http(_))
    }

    /// Whether it can say which records it has.
    pub(super) fn lists(&self) -> bool {
        !matches!(self.inner.address, Address::Http(_))
    }

    /// Whether it did not answer, and this process goes on without it.
    pub fn is_aside(&self) -> bool {
        self.inner.reads.is_aside()
    }

    /// What went over the wire so far.
    pub fn traffic(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.inner.counters;
        Traffic {
            fetched: of(&counters.fetched),
            fetched_bytes: of(&counters.fetched_bytes),
            uploaded: of(&counters.uploaded),
            uploaded_bytes: of(&counters.uploaded_bytes),
        }
    }

    /// What people should know, each thing once; those that were taken do not come again.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.warnings))
    }

    /// Warns of something, of each kind once.
    pub(super) fn warn(&self, kind: &'static str, text: impl FnOnce() -> String) {
        if locked(&self.inner.warned).insert(kind) {
            let text = text();
            locked(&self.inner.warnings).push(text);
        }
    }

    /// A message as it may be shown.
    pub(super) fn clean(&self, message: &str) -> String {
        let redactor = self.inner.redactor.get_or_init(|| Redactor::new(self.inner.address.credentials()));
        redactor.clean(message)
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        let known = self.inner.known.get_or_init(|| Mutex::new(Known::load(&self.inner.root, &self.inner.shown)));
        locked(known)
    }

    /// Blobs whose bytes there were found to be wrong.
    pub fn refused(&self) -> Vec<BlobDigest> {
        match self.inner.known.get() {
            Some(known) => locked(known).refused(),
            None => Vec::new(),
        }
    }

    /// Uses none of these blobs.
    pub fn refuse(&self, blobs: &[BlobDigest]) {
        for blob in blobs {
            self.known().refuse(*blob);
        }
    }

    /// Leaves what was found out about it to later runs.
    ///
    /// # Errors
    /// When the local store cannot be written.
    pub fn save(&self, store: &Store) -> Result<()> {
        match self.inner.known.get() {
            Some(known) => locked(known).save(&self.inner.root, &self.inner.shown, |blob| store.has_here(blob)),
            None => Ok(()),
        }
    }

    pub(super) fn place(&self) -> std::result::Result<&dyn Place, Lost> {
        let place = self.inner.place.get_or_init(|| {
            let made: std::result::Result<Box<dyn Place>, String> = match &self.inner.address {
                Address::Directory(path) => Ok(Box::new(Directory::new(path.clone()))),
                address => Cloud::new(address, self.inner.settings.timeout / 2)
                    .map(|cloud| Box::new(cloud) as Box<dyn Place>),
            };
            made.map_err(|message| self.set_aside(&message)).ok()
        });
        place.as_deref().ok_or(Lost::Aside)
    }

    /// Goes on without it, and says so once.
    pub(super) fn set_aside(&self, message: &str) {
        self.inner.reads.set_aside();
        self.inner.writes.set_aside();
        self.warn("aside", || {
            format!(
                "the remote {} is left out from here on: {}\n   hint: results are computed and kept here; look at its address, the network and the \
                 credentials in the environment, or leave it out with `--no-remote`",
                self.inner.shown,
                self.clean(message)
            )
        });
    }

    /// Asks it something, with patience; `None` when there is no answer, or none of that name.
    fn ask<T>(&self, mut question: impl FnMut(&dyn Place, &mut bool) -> Attempt<T>) -> Result<Option<T>> {
        let place = match self.place() {
            Ok(place) => place,
            Err(_) => return Ok(None),
        };
        if !self.has_format(place) {
            return Ok(None);
        }
        let answer = self.inner.reads.try_until(|moved| question(place, moved));
        self.heard(answer)
    }

    fn heard<T>(&self, answer: std::result::Result<T, Lost>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Lost::Absent | Lost::Aside) => Ok(None),
            Err(Lost::Local(err)) => Err(err),
            Err(Lost::NowAside(message)) => {
                self.set_aside(&message);
                Ok(None)
            }
            Err(Lost::GaveUp(message)) => {
                self.warn("gave up", || {
                    format!("the remote {} did not give all that was asked of it: {}", self.inner.shown, self.clean(&message))
                });
                Ok(None)
            }
        }
    }

    /// Whether the remote has been written to, in the layout that is known here. Looked at once.
    fn has_format(&self, place: &dyn Place) -> bool {
        let mut format = locked(&self.inner.format);
        if let Some(there) = *format {
            return there;
        }
        let mut text = Memory::default();
        let found = self.inner.reads.try_until(|_| place.read("format", 0, &mut text));
        let there = match found {
            Ok(()) => self.is_format(&text.bytes),
            Err(Lost::Absent) => {
                if matches!(self.inner.address, Address::Http(_)) {
                    self.set_aside("there is no remote at this address: it has no file `format`");
                }
                false
            }
            other => {
                // Said already, or said now; either way it is aside.
                let _ = self.heard(other);
                false
            }
        };
        *format = Some(there);
        there
    }

    fn is_format(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        if text == FORMAT {
            return true;
        }
        let found: String = text.chars().take(40).collect();
        self.set_aside(&format!("it has the format `{found}`, and this program knows `{FORMAT}`"));
        false
    }

    /// Makes sure that there is a remote to write to.
    pub(super) fn prepare_to_write(&self) -> std::result::Result<&dyn Place, Lost> {
        let place = self.place()?;
        if !self.has_format(place) {
            if self.inner.reads.is_aside() {
                return Err(Lost::Aside);
            }
            let text = Bytes::from(format!("{FORMAT}\n"));
            self.inner.writes.try_until(|_| place.write("format", text.clone()))?;
            *locked(&self.inner.format) = Some(true);
        }
        Ok(place)
    }

    /// A record, if there is one that may be used.
    pub(super) fn record<T: DeserializeOwned>(&self, folder: &'static str, name: &str) -> Result<Option<T>> {
        let path = object(folder, name);
        let bytes = self.ask(|place, _| {
            let mut memory = Memory::default();
            place.read(&path, 0, &mut memory).map(|()| memory.bytes)
        })?;
        let Some(bytes) = bytes else { return Ok(None) };
        let shown = &self.inner.shown;
        match signed::read(&bytes, folder, name, self.inner.settings.sign_key.as_ref()) {
            Signed::Intact(record) => return Ok(Some(record)),
            Signed::Damaged => self.warn("damaged record", || {
                format!("{path} in the remote {shown} is damaged and not used; what it would have given is computed, and written there again")
            }),
            bad @ (Signed::Unsigned | Signed::Forged) => self.warn("signature", || {
                let what = if matches!(bad, Signed::Unsigned) { "no signature" } else { "a wrong signature" };
                format!(
                    "{path} in the remote {shown} has {what} and is not used, nor are others like it\n   hint: whoever writes there has \
                     another `sign_key`, or none; what is computed here is written there again, signed"
                )
            }),
        }
        Ok(None)
    }

    /// Which of these blobs it has. What this process saw before is not asked again.
    pub(crate) fn look(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        let ask: Vec<BlobRef> = {
            let known = self.known();
            let unsure = |blob: &&BlobRef| !known.has_now(**blob) && !known.is_refused(blob.blob);
            blobs.iter().filter(unsure).copied().collect()
        };
        let found = walk::in_threads(&ask, QUESTIONS, |blob| {
            let path = object("blobs", &blob.blob.to_hex());
            self.ask(|place, _| place.size(&path))
        })?;
        let mut known = self.known();
        for (blob, size) in ask.iter().zip(found) {
            if size == Some(blob.size) {
                known.add(*blob);
            } else {
                known.remove(blob.blob);
            }
        }
        Ok(blobs.iter().map(|blob| known.has(*blob) && !known.is_refused(blob.blob)).collect())
    }

    /// Whether it has all of them.
    pub(super) fn has_all(&self, blobs: &[BlobRef]) -> Result<bool> {
        Ok(self.look(blobs)?.into_iter().all(|found| found))
    }

    /// Fetches a blob into the local store. Returns whether it is there now. What arrived before a transfer broke off, in this
    /// process or an earlier one, is not fetched again.
    pub(crate) fn fetch(&self, store: &Store, digest: BlobDigest) -> Result<bool> {
        if self.is_aside() || self.known().is_refused(digest) {
            return Ok(false);
        }
        let goal = store.blob_path(digest);
        let mut partial = Partial::open(store, digest)?;
        // Whoever held the partial file before may have completed it.
        if metadata(&goal)?.is_some() {
            return partial.discard().map(|()| true);
        }
        let name = object("blobs", &digest.to_hex());
        let expected = self.known().size(digest);
        let mut again = partial.len > 0;
        loop {
            partial.expected = expected;
            let fetched = self.ask(|place, moved| {
                let before = partial.len;
                partial.began = Instant::now();
                let read = place.read(&name, before, &mut partial);
                *moved = partial.len > before;
                read.and_then(|()| partial.complete())
            })?;
            if fetched.is_none() {
                if !self.is_aside() {
                    self.known().remove(digest);
                }
                partial.keep_or_discard()?;
                return Ok(false);
            }
            if partial.digest() == digest {
                let len = partial.len;
                partial.publish(&goal)?;
                store.set_verified(digest);
                let counters = &self.inner.counters;
                counters.fetched.fetch_add(1, Ordering::Relaxed);
                counters.fetched_bytes.fetch_add(len, Ordering::Relaxed);
                return Ok(true);
            }
            // What was left of an earlier transfer may be what is wrong.
            if !again {
                break;
            }
            again = false;
            partial.restart().map_err(Error::io("write", &partial.path))?;
        }
        partial.discard()?;
        if self.known().refuse(digest) {
            self.warn("damaged blob", || {
                format!(
                    "{name} in the remote {} is not what its name says and is not used; what made it runs again",
                    self.inner.shown
                )
            });
        }
        Err(Error::Damaged {
            what: "in the remote, blob",
            digest: digest.to_hex(),
        })
    }

    /// The names of the records below a folder.
    pub(super) fn list(&self, folder: &'static str) -> Result<Option<Vec<String>>> {
        let names = self.ask(|place, _| place.list(folder))?;
        let prefix = format!("{folder}/");
        Ok(names.map(|names| {
            let name = |path: &String| path.strip_prefix(&prefix).map(|rest| rest.replacen('/', "", 1));
            names.iter().filter_map(name).collect()
        }))
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a digest or key lies in a remote.
pub(super) fn object(folder: &str, hex: &str) -> String {
    format!("{folder}/{}/{}", &hex[..2], &hex[2..])
}

/// A small thing, read into memory.
#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
}

impl Sink for Memory {
    fn begin(&mut self, _at: u64, _total: u64) -> Result<()> {
        self.bytes.clear();
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        // What is longer is no record, and fails its checksum.
        let room = (signed::LONGEST as usize).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }
}

/// A blob on its way: a file in `tmp`, which outlives a transfer that breaks off. Whoever fetches holds its lock.
struct Partial {
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    len: u64,
    total: Option<u64>,
    /// The length that is known.
    expected: Option<u64>,
    /// When the attempt began.
    began: Instant,
}

impl Partial {
    fn open(store: &Store, digest: BlobDigest) -> Result<Self> {
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
            began: Instant::now(),
        };
        partial.read_again()?;
        Ok(partial)
    }

    /// Hashes what an earlier transfer left.
    fn read_again(&mut self) -> Result<()> {
        let mut buffer = vec![0; 1 << 20];
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
            Some(total) if self.len < total => {
                Err(Trouble::Failed(format!("the connection ended after {} of {total} bytes", self.len)))
            }
            _ => Ok(()),
        }
    }

    fn digest(&self) -> BlobDigest {
        crate::blob::digest(&self.hasher)
    }

    fn publish(self, goal: &Path) -> Result<()> {
        publish::publish_held(&self.file, &self.path, goal)
    }

    fn discard(self) -> Result<()> {
        publish::remove(&self.path)
    }

    /// After a failure: what has come stays, for the next time; `gc` drops it.
    fn keep_or_discard(self) -> Result<()> {
        if self.len == 0 { self.discard() } else { Ok(()) }
    }
}

impl Sink for Partial {
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
        Ok(())
    }
}
