//! Fetching one file: into a partial file, resumed after a break, retried with exponential backoff.

use super::Timing;
use super::origin::{Origin, next};
use super::request::{Ask, Body, Reply};
use crate::failure::{Attempt, Failure};
use crate::runtime::Runtime;
use cache::{FetchedFile, OnBytes, PartialBlob, RemoteFile, Store};
use std::time::{Duration, Instant};

/// The progress, in bytes, after which the count of retries starts again.
const PROGRESS: u64 = 1 << 20;
/// The download rate in bytes per second below which a connection counts as hung.
const MIN_RATE: u64 = 8 << 10;
/// The number of bytes after which the free space of the disk is checked again.
const ROOM: u64 = 64 << 20;
/// The interval of the checks for cancellation.
const TICK: Duration = Duration::from_millis(50);

/// The outcome of a download.
pub(super) enum Outcome {
    /// The contents in the store are current.
    NotModified,
    /// The contents, which are now in the store.
    Fetched(FetchedFile),
}

/// A download.
pub(super) struct Download<'a> {
    pub origin: &'a Origin<'a>,
    pub runtime: &'a Runtime,
    pub store: &'a Store,
    pub file: &'a RemoteFile,
    /// The contents that the store already has.
    pub known: Option<&'a FetchedFile>,
    pub timing: Timing,
    pub on_bytes: OnBytes<'a>,
}

/// The bytes received so far.
struct Partial {
    blob: PartialBlob,
    /// The version of the file that the bytes belong to, if the server names it.
    version: Option<String>,
    /// The number of bytes that an earlier transfer left.
    left_before: u64,
}

/// Calls `request` until it succeeds, with at most the number of retries that the timing allows.
pub(super) fn with_retries<T>(
    store: &Store,
    timing: Timing,
    request: &mut dyn FnMut() -> Attempt<T>,
) -> Attempt<T> {
    let mut retries = Retries::new(timing);
    loop {
        match request() {
            Err(failure) => retries.wait(store, failure)?,
            done => return done,
        }
    }
}

/// Counts the retries since the last progress.
struct Retries {
    timing: Timing,
    count: u32,
}

impl Retries {
    fn new(timing: Timing) -> Self {
        Self { timing, count: 0 }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The failure, if a retry cannot resolve it or the retries are used up.
    fn wait(&mut self, store: &Store, failure: Failure) -> Attempt<()> {
        let Failure::Transient { wait, .. } = &failure else {
            return Err(failure);
        };
        if self.count >= self.timing.retries {
            return Err(failure);
        }
        let backoff = self.timing.backoff * 2u32.saturating_pow(self.count);
        self.count += 1;
        let until = Instant::now() + wait.unwrap_or_default().max(backoff);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if store.is_interrupted() {
                return Err(Failure::Stopped);
            }
            std::thread::sleep(left.min(TICK));
        }
        Ok(())
    }
}

impl Download<'_> {
    /// Fetches the file.
    pub(super) fn run(&self) -> Attempt<Outcome> {
        let mut retries = Retries::new(self.timing);
        let mut partial = match self.file.pinned {
            Some(_) => Some(self.open(None)?),
            None => None,
        };
        // Another process may have fetched the file meanwhile.
        if let (Some(digest), Some(_)) = (self.file.pinned, &partial)
            && let Some(size) = super::local_size(self.store, digest)
        {
            if let Some(partial) = partial {
                partial.blob.discard()?;
            }
            return Ok(Outcome::Fetched(self.fetched(size, digest, None, None)));
        }
        let mut most = partial.as_ref().map_or(0, |partial| partial.blob.len());
        loop {
            match self.attempt(&mut partial) {
                Ok(Some(outcome)) => return Ok(outcome),
                // The partial file now belongs to the right version.
                Ok(None) => {}
                Err(failure) => {
                    // Bytes of another version that arrived before are no progress.
                    let len = partial.as_ref().map_or(0, |partial| partial.blob.len());
                    if len >= most + PROGRESS {
                        (most, retries.count) = (len, 0);
                    }
                    if let Err(failure) = retries.wait(self.store, failure) {
                        match (partial, &failure) {
                            (Some(partial), Failure::Local(_)) => partial.blob.discard()?,
                            (Some(partial), _) => partial.blob.suspend()?,
                            (None, _) => {}
                        }
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Sends one request and receives its body. `None` if the file must be requested again from another
    /// offset.
    fn attempt(&self, partial: &mut Option<Partial>) -> Attempt<Option<Outcome>> {
        let can_resume = |partial: &&mut Partial| self.file.pinned.is_some() || partial.version.is_some();
        let from = partial
            .as_mut()
            .filter(can_resume)
            .map_or(0, |partial| partial.blob.len());
        let ask = Ask {
            known: self.known.filter(|_| partial.is_none()),
            from,
            version: partial.as_ref().and_then(|partial| partial.version.as_deref()),
        };
        let body = match self.origin.get(self.runtime, self.store, &ask) {
            Ok(Reply::NotModified) => return Ok(Some(Outcome::NotModified)),
            Ok(Reply::Body(body)) => body,
            Err(failure) => {
                // The object may have become shorter, or may have been replaced.
                if let (
                    Failure::Transient {
                        out_of_range: true, ..
                    },
                    Some(partial),
                ) = (&failure, partial)
                    && from > 0
                {
                    partial.restart()?;
                }
                return Err(failure);
            }
        };
        let version = body.strong_etag().map(str::to_owned);
        let is_same =
            |partial: &Partial| self.file.pinned.is_some() || version.is_some() && partial.version == version;
        match partial.take() {
            Some(mut found) if is_same(&found) => {
                if body.offset != found.blob.len() {
                    found.restart()?;
                }
                *partial = Some(found);
            }
            other => {
                // The bytes belong to another version, or to a version that cannot be identified.
                if let Some(other) = other {
                    other.blob.discard()?;
                }
                let mut found = self.open(version)?;
                if found.version.is_none() {
                    found.restart()?;
                }
                let is_behind = found.blob.len() != body.offset;
                *partial = Some(found);
                if is_behind {
                    // An earlier process left bytes of this version, or the body is the end of another
                    // version.
                    return Ok(None);
                }
            }
        }
        let Some(found) = partial else { return Ok(None) };
        let (etag, last_modified) = (body.etag.clone(), body.last_modified.clone());
        self.receive(found, body)?;
        let Some(found) = partial.take() else { return Ok(None) };
        self.finish(found, partial, etag, last_modified)
    }

    /// Appends a body to the bytes received so far.
    fn receive(&self, partial: &mut Partial, mut body: Body<'_>) -> Attempt<()> {
        let (began, start) = (Instant::now(), partial.blob.len());
        let mut looked = None;
        loop {
            let len = partial.blob.len();
            if looked.is_none_or(|at| len >= at + ROOM) {
                if let Err(failure) =
                    self.check_room(body.total.map_or(ROOM, |total| total.saturating_sub(len)))
                {
                    // On a full disk, the partial file is not kept.
                    partial.restart()?;
                    return Err(failure);
                }
                looked = Some(len);
            }
            let Some(bytes) = next(self.runtime, self.store, self.timing.stall, &mut body)? else {
                break;
            };
            partial.blob.append(&bytes)?;
            (self.on_bytes)(partial.blob.len(), body.total);
            // A server that sends a byte now and then would otherwise count as making progress.
            let received = partial.blob.len() - start;
            if began.elapsed() > self.timing.stall * 2 + Duration::from_secs(received / MIN_RATE) {
                return Err(Failure::transient(format!("less than {MIN_RATE} bytes per second")));
            }
        }
        let len = partial.blob.len();
        match body.total {
            Some(total) if len > total => {
                partial.restart()?;
                Err(Failure::transient(format!("{len} bytes came in place of {total}")))
            }
            Some(total) if len < total => Err(Failure::transient(format!(
                "the connection ended after {len} of {total} bytes"
            ))),
            _ => Ok(()),
        }
    }

    fn check_room(&self, needed: u64) -> Attempt<()> {
        match self.store.free_space() {
            Some(free) if free < needed => Err(Failure::permanent(
                format!(
                    "there is no room for it: {} MiB are needed, {} MiB free",
                    needed >> 20,
                    free >> 20
                ),
                "`runner cache gc` frees space",
            )),
            _ => Ok(()),
        }
    }

    /// Turns the bytes into a blob. `None` if bytes that an earlier process left were wrong: `partial` is
    /// then empty.
    fn finish(
        &self,
        mut found: Partial,
        partial: &mut Option<Partial>,
        etag: Option<String>,
        last_modified: Option<String>,
    ) -> Attempt<Option<Outcome>> {
        if !found.blob.is_intact() {
            if found.left_before > 0 {
                found.restart()?;
                *partial = Some(found);
                return Ok(None);
            }
            let (digest, len) = (found.blob.digest(), found.blob.len());
            found.blob.discard()?;
            let pinned = self.file.pinned.map(|pinned| pinned.to_hex()).unwrap_or_default();
            return Err(Failure::permanent(
                format!(
                    "its {len} bytes have the BLAKE3 digest {}, not {pinned}",
                    digest.to_hex()
                ),
                "the file on the server is another one than was pinned: look at it, and pin its digest, or \
                get the right one",
            ));
        }
        let (size, digest) = (found.blob.len(), found.blob.digest());
        found.blob.persist()?;
        Ok(Some(Outcome::Fetched(self.fetched(size, digest, etag, last_modified))))
    }

    fn fetched(
        &self,
        size: u64,
        blake3: cache::BlobDigest,
        etag: Option<String>,
        last_modified: Option<String>,
    ) -> FetchedFile {
        FetchedFile {
            url: self.file.url.clone(),
            blake3,
            size,
            etag,
            last_modified,
        }
    }

    /// Opens the partial file of a version. Waits for another process that is fetching it.
    fn open(&self, version: Option<String>) -> Attempt<Partial> {
        let name = format!("{}\0{}", self.file.url, version.as_deref().unwrap_or_default());
        loop {
            if let Some(blob) = self.store.partial_file(self.file.pinned, name.as_bytes())? {
                return Ok(Partial {
                    left_before: blob.len(),
                    blob,
                    version,
                });
            }
            if self.store.is_interrupted() {
                return Err(Failure::Stopped);
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Partial {
    fn restart(&mut self) -> Attempt<()> {
        self.left_before = 0;
        Ok(self.blob.restart()?)
    }
}
