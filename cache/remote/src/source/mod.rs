//! Files of web servers and S3 buckets that stages read, fetched into the store.
//!
//! | | pinned (`blake3:`) | followed |
//! | --- | --- | --- |
//! | its identity | the digest | what the server has: a conditional request (`If-None-Match`, `If-Modified-Since`) tells whether the last contents are current |
//! | in the store already | no request | one request in a process |
//! | resumed after a break | by the digest, also in a later process | by a strong `ETag` (`If-Range`), also in a later process; without one from the start |
//!
//! A file named by a URL is streamed to a partial file of the store, hashed while it arrives, and renamed to
//! its blob when it is complete. The contents last fetched from a URL are noted in a derived file of the
//! store: without it, the file is fetched again.

mod bucket;
mod download;
mod origin;
mod request;
mod web;

use crate::failure::Failure;
use crate::redact::Redactor;
use crate::runtime::Runtime;
use cache::parallel::locked;
use cache::{BlobDigest, Error, FetchFiles, FetchedFile, OnBytes, RemoteFile, Result, Seen, Store};
use download::{Download, Outcome};
use origin::Origin;
use request::{Ask, Reply};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The maximum time without an answer, or without a byte of a body.
    pub stall: Duration,
    /// The wait before the first retry; it doubles with each retry.
    pub backoff: Duration,
    /// The maximum number of retries without progress.
    pub retries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            backoff: Duration::from_millis(500),
            retries: 5,
        }
    }
}

/// The contents of a URL in this process, once known. The lock is held while they are requested.
type Slot = Arc<Mutex<Option<FetchedFile>>>;

/// Fetches files from web servers and S3 buckets. No request is sent, and no thread started, before the first
/// file.
#[derive(Default)]
pub struct SourceFiles {
    is_offline: bool,
    timing: Timing,
    /// The S3 settings, by the names of their environment variables (`AWS_REGION`).
    s3: Vec<(String, String)>,
    client: OnceLock<std::result::Result<Client, String>>,
    slots: Mutex<HashMap<(String, Option<BlobDigest>), Slot>>,
    redactor: OnceLock<Redactor>,
    notes: Mutex<BTreeSet<String>>,
}

/// The clients that send requests, and their runtime.
struct Client {
    runtime: Runtime,
    web: web::Web,
}

impl std::fmt::Debug for SourceFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceFiles")
            .field("is_offline", &self.is_offline)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// The name of the derived file for a URL.
fn memory_name(url: &str) -> Vec<u8> {
    [b"remote file v1\0", url.as_bytes()].concat()
}

/// The length in bytes of a blob that the local store has.
fn local_size(store: &Store, blob: BlobDigest) -> Option<u64> {
    let meta = std::fs::symlink_metadata(store.blob_path(blob)).ok()?;
    meta.is_file().then_some(meta.len())
}

impl SourceFiles {
    /// Creates a fetcher. If `is_offline`, no server is contacted, and contents fetched before are used.
    /// Credentials, region and endpoint of S3 are variables of `env`.
    pub fn new<'e>(
        is_offline: bool,
        timing: Timing,
        env: impl IntoIterator<Item = (&'e String, &'e String)>,
    ) -> Self {
        let aws = env.into_iter().filter(|(name, _)| name.starts_with("AWS_"));
        Self {
            is_offline,
            timing,
            s3: aws.map(|(name, value)| (name.clone(), value.clone())).collect(),
            ..Self::default()
        }
    }

    fn slot(&self, file: &RemoteFile) -> Slot {
        let mut slots = locked(&self.slots);
        slots.entry((file.url.clone(), file.pinned)).or_default().clone()
    }

    fn note(&self, text: String) {
        locked(&self.notes).insert(text);
    }

    fn client(&self, file: &RemoteFile) -> Result<&Client> {
        let start = || {
            Ok(Client {
                runtime: Runtime::start("sources").map_err(|err| format!("cannot start a thread: {err}"))?,
                web: web::Web::new(self.timing)?,
            })
        };
        self.client.get_or_init(start).as_ref().map_err(|reason| Error::File {
            url: file.url.clone(),
            reason: reason.clone(),
            hint: "check the limits and the certificates of this machine".to_owned(),
        })
    }

    /// The contents that are available without a server: pinned contents in the store or its upstream, and
    /// contents that this process has fetched.
    fn at_hand(
        &self,
        store: &Store,
        file: &RemoteFile,
        slot: &Option<FetchedFile>,
    ) -> Result<Option<FetchedFile>> {
        if let Some(known) = slot.as_ref().filter(|known| store.has_here(known.blob())) {
            return Ok(Some(known.clone()));
        }
        let Some(digest) = file.pinned else { return Ok(None) };
        let size = match (local_size(store, digest), store.upstream()) {
            (None, Some(_)) => match store.blob(digest) {
                Ok(blob) => Some(blob.len() as u64),
                Err(err) if err.is_healed_by_recomputing() => None,
                Err(err) => return Err(err),
            },
            (size, _) => size,
        };
        Ok(size.map(|size| FetchedFile {
            url: file.url.clone(),
            blake3: digest,
            size,
            etag: None,
            last_modified: None,
        }))
    }

    /// The contents that were fetched last, if the store still has them.
    fn remembered(&self, store: &Store, file: &RemoteFile) -> Option<FetchedFile> {
        if file.pinned.is_some() {
            return None;
        }
        let known: FetchedFile =
            serde_json::from_slice(&store.load_derived(&memory_name(&file.url))?).ok()?;
        (known.url == file.url && store.has_here(known.blob())).then_some(known)
    }

    fn remember(&self, store: &Store, fetched: &FetchedFile) -> Result<()> {
        let text = serde_json::to_vec(fetched).unwrap_or_default();
        match store.save_derived(&memory_name(&fetched.url), text) {
            Err(err) if err.is_denied() => Ok(()),
            saved => saved,
        }
    }

    /// The contents without a request, as `--offline` requires; `None` when online.
    fn offline(&self, file: &RemoteFile, known: Option<&FetchedFile>) -> Result<Option<FetchedFile>> {
        match (self.is_offline, known) {
            (false, _) => Ok(None),
            (true, Some(known)) => {
                self.note(format!(
                    "{}: the server was not asked (`--offline`); the contents are those fetched last",
                    file.url
                ));
                Ok(Some(known.clone()))
            }
            (true, None) => Err(Error::File {
                url: file.url.clone(),
                reason: "it is not in the store, and `--offline` asks no server".to_owned(),
                hint: "run once without `--offline`".to_owned(),
            }),
        }
    }

    fn error(&self, file: &RemoteFile, failure: Failure) -> Error {
        let (message, hint) = match failure {
            Failure::Local(err) => return err,
            Failure::Stopped | Failure::CircuitOpen => {
                let path = file.url.clone().into();
                return Error::Interrupted { path };
            }
            Failure::NotFound => ("there is no such file".to_owned(), "check the URL"),
            Failure::Permanent { message, hint } => (message, hint),
            Failure::Transient { message, .. } => (
                message,
                "check the network, and try again: what has arrived is kept; `--offline` uses what was \
                fetched before",
            ),
        };
        Error::File {
            url: file.url.clone(),
            reason: self.redactor.get_or_init(Redactor::new).clean(&message),
            hint: hint.to_owned(),
        }
    }
}

impl FetchFiles for SourceFiles {
    fn look(&self, store: &Store, file: &RemoteFile) -> Result<Seen> {
        let slot = self.slot(file);
        let mut slot = locked(&slot);
        if let Some(found) = self.at_hand(store, file, &slot)? {
            return Ok(Seen::Current(found));
        }
        let known = self.remembered(store, file);
        if let Some(found) = self.offline(file, known.as_ref())? {
            return Ok(Seen::Current(slot.insert(found).clone()));
        }
        if file.pinned.is_some() {
            return Ok(Seen::ToFetch(None));
        }
        if let Some(known) = known
            .as_ref()
            .filter(|known| known.etag.is_none() && known.last_modified.is_none())
        {
            self.note(format!(
                "{}: the server says neither ETag nor Last-Modified: it is fetched in each run",
                file.url
            ));
            return Ok(Seen::Current(slot.insert(known.clone()).clone()));
        }
        let client = self.client(file)?;
        let ask = || {
            let origin = Origin::new(file, client, &self.s3, self.timing)?;
            let ask = Ask {
                known: known.as_ref(),
                ..Ask::default()
            };
            download::with_retries(store, self.timing, &mut || origin.get(&client.runtime, store, &ask))
        };
        match ask().map_err(|failure| self.error(file, failure))? {
            Reply::Body(body) => Ok(Seen::ToFetch(body.total)),
            Reply::NotModified => {
                slot.clone_from(&known);
                Ok(known.map_or(Seen::ToFetch(None), Seen::Current))
            }
        }
    }

    fn fetch(&self, store: &Store, file: &RemoteFile, on_bytes: OnBytes<'_>) -> Result<FetchedFile> {
        let slot = self.slot(file);
        let mut slot = locked(&slot);
        if let Some(found) = self.at_hand(store, file, &slot)? {
            return Ok(found);
        }
        let known = self.remembered(store, file);
        if let Some(found) = self.offline(file, known.as_ref())? {
            return Ok(slot.insert(found).clone());
        }
        let client = self.client(file)?;
        let fetch = || {
            let download = Download {
                origin: &Origin::new(file, client, &self.s3, self.timing)?,
                runtime: &client.runtime,
                store,
                file,
                known: known.as_ref(),
                timing: self.timing,
                on_bytes,
            };
            download.run()
        };
        let fetched = match (fetch().map_err(|failure| self.error(file, failure))?, known) {
            (Outcome::Fetched(fetched), _) => {
                self.remember(store, &fetched)?;
                fetched
            }
            (Outcome::NotModified, Some(known)) => known,
            (Outcome::NotModified, None) => {
                return Err(Error::File {
                    url: file.url.clone(),
                    reason: "the server says that a file that was never fetched has not changed".to_owned(),
                    hint: "the server, or a proxy before it, is at fault".to_owned(),
                });
            }
        };
        *slot = Some(fetched.clone());
        Ok(fetched)
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.notes)).into_iter().collect()
    }
}
