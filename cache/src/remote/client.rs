//! A remote: asking it with patience, and what people should know of it.

use super::address::Address;
use super::behind::Queue;
use super::cloud::Cloud;
use super::directory::Directory;
use super::known::Known;
use super::patience::{Lost, Patience};
use super::place::{Attempt, Place, Sink};
use super::redact::Redactor;
use super::settings::RemoteSettings;
use super::signed::{self, Signed};
use crate::{BlobDigest, BlobRef, Error, MemoKey, Result, Store, walk};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The layout that is read and written.
const FORMAT: &str = "runner-remote 1";
/// How many transfers run side by side.
pub(super) const TRANSFERS: usize = 8;
/// How many questions are asked side by side.
pub(super) const QUESTIONS: usize = 32;

/// A remote store. Cheap to clone. Nothing is asked of it, and no thread started, before something is looked up in it.
#[derive(Clone)]
pub struct Remote {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub settings: RemoteSettings,
    pub address: Address,
    pub shown: String,
    /// The root of the local store.
    pub root: PathBuf,
    place: OnceLock<Option<Box<dyn Place>>>,
    /// Whether its format was looked at, and is there.
    format: Mutex<Option<bool>>,
    pub reads: Patience,
    pub writes: Patience,
    known: OnceLock<Mutex<Known>>,
    redactor: OnceLock<Redactor>,
    /// By kind: what to say, and how often there was reason to.
    pub warnings: Mutex<BTreeMap<String, (String, u64)>>,
    pub traffic: super::traffic::Counters,
    /// Memos that were written here since they were last asked for.
    pub memos: Mutex<Vec<MemoKey>>,
    /// How many memos were asked for that were not there.
    pub memo_misses: AtomicU32,
    /// All memos that were there when it was asked, where it could say and they are not too many.
    pub memo_names: OnceLock<Option<HashSet<MemoKey>>>,
    pub queue: Queue,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.inner.shown)
    }
}

impl Remote {
    /// The remote of these settings, for the store at `root`.
    pub(super) fn new(settings: RemoteSettings, root: &Path) -> Result<Self> {
        let unusable = |what: &str, reason: String| Error::Remote {
            remote: format!("the {what} of the remote"),
            reason: format!(
                "{reason}; a remote is written `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///folder` or `https://…`"
            ),
        };
        settings
            .check(root)
            .map_err(|(field, reason)| unusable(if field == "url" { "URL" } else { field }, reason))?;
        let address = Address::parse(&settings.url, root).map_err(|reason| unusable("URL", reason))?;
        Ok(Self {
            inner: Arc::new(Inner {
                reads: Patience::new(settings.timeout),
                writes: Patience::new(settings.timeout),
                settings,
                shown: address.shown(),
                address,
                root: root.to_owned(),
                place: OnceLock::new(),
                format: Mutex::default(),
                known: OnceLock::new(),
                redactor: OnceLock::new(),
                warnings: Mutex::default(),
                traffic: super::traffic::Counters::default(),
                memos: Mutex::default(),
                memo_misses: AtomicU32::new(0),
                memo_names: OnceLock::new(),
                queue: Queue::default(),
            }),
        })
    }

    /// Its URL, without credentials.
    pub fn shown(&self) -> &str {
        &self.inner.shown
    }

    /// How it was configured.
    pub fn settings(&self) -> &RemoteSettings {
        &self.inner.settings
    }

    /// Whether nothing is ever written to it.
    pub fn is_read_only(&self) -> bool {
        self.inner.settings.read_only || matches!(self.inner.address, Address::Http(_))
    }

    /// Whether it can say which records it has.
    pub fn lists(&self) -> bool {
        !matches!(self.inner.address, Address::Http(_))
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self.inner.address, Address::Directory(_))
    }

    /// Whether it did not answer, and this process goes on without it.
    pub fn is_aside(&self) -> bool {
        self.inner.reads.is_aside()
    }

    /// What people should know, each thing once; what was taken does not come again.
    pub fn take_warnings(&self) -> Vec<String> {
        let warnings = std::mem::take(&mut *locked(&self.inner.warnings));
        let text = |(text, count): (String, u64)| match (count, text.split_once('\n')) {
            (1, _) => text,
            (_, None) => format!("{text} ({count} times)"),
            (_, Some((first, rest))) => format!("{first} ({count} times)\n{rest}"),
        };
        warnings.into_values().map(text).collect()
    }

    /// Warns of something, of each kind once.
    pub(super) fn warn(&self, kind: &str, text: impl FnOnce() -> String) {
        let mut warnings = locked(&self.inner.warnings);
        match warnings.get_mut(kind) {
            Some((_, count)) => *count += 1,
            None => {
                warnings.insert(kind.to_owned(), (text(), 1));
            }
        }
    }

    /// A message as it may be shown.
    pub(super) fn clean(&self, message: &str) -> String {
        self.inner.redactor.get_or_init(Redactor::new).clean(message)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        let load = || Mutex::new(Known::load(&self.inner.root, &self.inner.shown));
        locked(self.inner.known.get_or_init(load))
    }

    /// Whether anything was found out about it.
    pub(super) fn knows_something(&self) -> bool {
        self.inner.known.get().is_some()
    }

    /// Leaves what was found out about it to later runs.
    ///
    /// # Errors
    /// When the local store cannot be written.
    pub fn save(&self, store: &Store) -> Result<()> {
        if !self.knows_something() {
            return Ok(());
        }
        let inner = &self.inner;
        self.known()
            .save(&inner.root, &inner.shown, |blob| store.has_here(blob))
    }

    pub(super) fn place(&self) -> std::result::Result<&dyn Place, Lost> {
        let place = self.inner.place.get_or_init(|| {
            let made: std::result::Result<Box<dyn Place>, String> = match &self.inner.address {
                Address::Directory(path) => Ok(Box::new(Directory::new(path.clone()))),
                address => Cloud::new(address, &self.inner.settings).map(|cloud| Box::new(cloud) as Box<dyn Place>),
            };
            made.map_err(|message| self.set_aside(&message)).ok()
        });
        place.as_deref().ok_or(Lost::Aside)
    }

    /// Goes on without it, and says so once.
    pub(super) fn set_aside(&self, message: &str) {
        self.inner.reads.set_aside();
        self.inner.writes.set_aside();
        self.warn_aside(message);
    }

    /// Says that nothing is asked of it for now.
    fn warn_aside(&self, message: &str) {
        self.warn("aside", || {
            format!(
                "the remote {} is left out: {}\n   hint: results are computed and kept here; look at its address, the network \
                 and the credentials in the environment, or leave it out with `--no-remote`",
                self.inner.shown,
                self.clean(message)
            )
        });
    }

    /// Asks it something, with patience; `None` when there is no answer, or none of that name.
    pub(super) fn ask<T>(&self, mut question: impl FnMut(&dyn Place, &mut bool) -> Attempt<T>) -> Result<Option<T>> {
        let Ok(place) = self.place() else { return Ok(None) };
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
                self.inner.writes.set_to_rest();
                self.warn_aside(&message);
                Ok(None)
            }
            Err(Lost::GaveUp(message)) => {
                self.warn("gave up", || {
                    let (shown, message) = (&self.inner.shown, self.clean(&message));
                    format!("the remote {shown} did not give all that was asked of it: {message}")
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
        let there = match self.inner.reads.try_until(|_| place.read("format", 0, &mut text)) {
            Ok(()) => self.is_format(&text.bytes),
            Err(Lost::Absent) => {
                if self.is_read_only() {
                    self.set_aside("there is no remote at this address: it has no file `format`");
                }
                false
            }
            other => {
                // It is aside, and was not looked at.
                let _ = self.heard(other);
                return false;
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
        let found: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
        self.set_aside(&format!(
            "it has the format `{found}`, and this program knows `{FORMAT}`"
        ));
        false
    }

    /// Makes sure that there is a remote to write to.
    pub(super) fn prepare_to_write(&self) -> std::result::Result<&dyn Place, Lost> {
        let place = self.place()?;
        if !self.has_format(place) {
            if self.is_aside() {
                return Err(Lost::Aside);
            }
            let text = Bytes::from(format!("{FORMAT}\n"));
            self.inner.writes.try_until(|_| place.write("format", text.clone()))?;
            *locked(&self.inner.format) = Some(true);
        }
        Ok(place)
    }

    /// A record, if there is one that may be used. `read` is one of the functions of [`signed`].
    pub(super) fn record<T>(&self, folder: &str, name: &str, read: impl Fn(&[u8]) -> Signed<T>) -> Result<Option<T>> {
        let path = object(folder, name);
        let bytes = self.ask(|place, _| {
            let mut memory = Memory::default();
            place.read(&path, 0, &mut memory).map(|()| memory.bytes)
        })?;
        let Some(bytes) = bytes else { return Ok(None) };
        let shown = &self.inner.shown;
        match read(&bytes) {
            Signed::Intact(record) => return Ok(Some(record)),
            Signed::Damaged => self.warn("damaged record", || {
                format!("{path} in the remote {shown} is damaged and not used; what it would have given is computed")
            }),
            bad @ (Signed::Unsigned | Signed::Forged) => self.warn("signature", || {
                let what = if matches!(bad, Signed::Unsigned) {
                    "no signature"
                } else {
                    "a wrong signature"
                };
                format!(
                    "{path} in the remote {shown} has {what} and is not used\n   hint: whoever wrote it has another signing \
                     key, or none; what is computed here is written there again, signed"
                )
            }),
        }
        Ok(None)
    }

    /// Which of these blobs it has. What was seen before, by an earlier run too, is not asked again: where that is wrong,
    /// fetching fails.
    pub(super) fn look(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        self.look_for(blobs, Known::has)
    }

    /// [`Remote::look`] that trusts only what this process saw.
    pub(super) fn look_now(&self, blobs: &[BlobRef]) -> Result<Vec<bool>> {
        self.look_for(blobs, Known::has_now)
    }

    fn look_for(&self, blobs: &[BlobRef], is_sure: impl Fn(&Known, BlobRef) -> bool) -> Result<Vec<bool>> {
        if self.is_aside() {
            return Ok(vec![false; blobs.len()]);
        }
        let ask: Vec<BlobRef> = {
            let known = self.known();
            let unsure = |blob: &&BlobRef| !is_sure(&known, **blob) && !known.is_refused(blob.blob);
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
        Ok(blobs.iter().map(|blob| known.has(*blob)).collect())
    }

    /// Whether it has a blob as far as is known, without asking.
    pub(super) fn remembers(&self, blob: BlobRef) -> bool {
        self.known().has(blob)
    }

    /// How long a blob is that it has.
    pub(super) fn size_of(&self, digest: BlobDigest) -> Result<Option<u64>> {
        if let Some(size) = self.known().size(digest) {
            return Ok(Some(size));
        }
        let path = object("blobs", &digest.to_hex());
        self.ask(|place, _| place.size(&path))
    }

    /// The names of the records below a folder, as 64 hex digits, up to so many; what is named otherwise is not ours. `None`
    /// where it cannot say.
    pub(super) fn list(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        let names = self.ask(|place, _| place.list(folder, most))?;
        Ok(names.map(|names| names.iter().filter_map(|name| id_of(folder, name)).collect()))
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a digest or key lies in a remote.
pub(super) fn object(folder: &str, hex: &str) -> String {
    format!("{folder}/{}/{}", &hex[..2], &hex[2..])
}

/// The digest or key that lies there; `None` where the name is not one that [`object`] gives.
pub(crate) fn id_of(folder: &str, name: &str) -> Option<String> {
    let (shard, rest) = name.strip_prefix(folder)?.strip_prefix('/')?.split_once('/')?;
    let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (shard.len() == 2 && rest.len() == 62 && hex(shard) && hex(rest)).then(|| format!("{shard}{rest}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_records() {
        let hex = "ab".repeat(32);
        assert_eq!(id_of("actions", &object("actions", &hex)), Some(hex.clone()));
        for wrong in [
            format!("actions/ab/{}", "AB".repeat(31)),
            format!("actions/../{}", "ab".repeat(31)),
            format!("memos/ab/{}", "ab".repeat(31)),
            format!("actions/ab/{}/x", "ab".repeat(31)),
            format!("actions/{hex}"),
            "actions/".to_owned(),
        ] {
            assert_eq!(id_of("actions", &wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_listed_name_is_ours_or_ignored(name in ".{0,80}", tail in "[0-9a-f/.]{0,70}") {
            for name in [name, format!("actions/{tail}")] {
                if let Some(id) = id_of("actions", &name) {
                    prop_assert_eq!(object("actions", &id), name);
                    prop_assert!(id.parse::<BlobDigest>().is_ok());
                }
            }
        }
    }
}
