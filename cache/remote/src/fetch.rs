//! Fetching one blob: into a partial file, which is checked and then renamed.

use crate::backend::Sink;
use crate::client::Client;
use crate::failure::{Attempt, Failure};
use crate::object_name::object_name;
use cache::{BlobDigest, Error, PartialBlob, Result};
use std::time::{Duration, Instant};

/// The download rate in bytes per second below which a transfer that breaks again and again counts as hung.
const MIN_RATE: u64 = 8 << 10;

/// Fetches a blob. Returns true if it is in the local store afterwards. Bytes that arrived before a transfer
/// was interrupted, in this process or an earlier one, are not fetched again.
///
/// # Errors
/// [`Error::Damaged`] when the bytes do not match the digest; the blob is not requested again.
pub(crate) fn fetch(client: &Client, digest: BlobDigest) -> Result<bool> {
    if !client.is_available() || client.known().is_rejected(digest) {
        return Ok(false);
    }
    let mut download = Download {
        partial: client.store.partial_blob(digest)?,
        total: None,
        expected: client.known().size(digest).or_else(|| client.expected_size(digest)),
        client,
        has_room: true,
    };
    // Another thread or process may have completed the blob meanwhile.
    if client.store.blob_path(digest).exists() {
        return download.partial.discard().map(|()| true);
    }
    let name = object_name("blobs", &digest.to_hex());
    // The bytes left by an earlier process may be the damaged ones.
    let mut may_restart = !download.partial.is_empty();
    let (began, start) = (Instant::now(), download.partial.len());
    let is_hung = |len: u64| {
        let bytes = Duration::from_secs(len.saturating_sub(start) / MIN_RATE);
        began.elapsed() > client.settings.timeout * 2 + bytes
    };
    loop {
        let fetched = client.request(|backend| {
            loop {
                let before = download.partial.len();
                let read = backend.read(&name, before, &mut download);
                match read.and_then(|()| download.check_complete()) {
                    // A transfer that breaks after some progress is resumed, however often. object_store
                    // itself resumes a transfer only within its retry timeout from the start, and only from a
                    // server that sends ETags.
                    Err(Failure::Transient { .. })
                        if download.partial.len() > before && !is_hung(download.partial.len()) =>
                    {
                        client.reads.succeeded();
                    }
                    read => break read,
                }
            }
        });
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(err) => {
                // On a full disk, the partial blob is not kept.
                download.partial.discard()?;
                return Err(err);
            }
        };
        if fetched.is_none() {
            if client.is_available() {
                let mut known = client.known();
                known.invalidate();
                known.reject(digest);
            }
            download.partial.suspend()?;
            return Ok(false);
        }
        if download.partial.is_intact() {
            let len = download.partial.len();
            download.partial.persist()?;
            client.stats.fetched(len);
            return Ok(true);
        }
        if !std::mem::take(&mut may_restart) {
            break;
        }
        download.partial.restart()?;
    }
    download.partial.discard()?;
    if client.known().reject(digest) {
        client.warnings.add("damaged blob", || {
            format!(
                "{name} in the remote {} does not match its digest and is ignored; its action runs again",
                client.name
            )
        });
    }
    Err(Error::damaged("remote blob", digest))
}

/// A blob that is being fetched.
struct Download<'a> {
    partial: PartialBlob,
    /// The length of the object.
    total: Option<u64>,
    /// The length according to a record or a manifest.
    expected: Option<u64>,
    client: &'a Client,
    /// False if the object is longer than the free space of the disk. Nothing is written then.
    has_room: bool,
}

impl Download<'_> {
    fn check_complete(&self) -> Attempt<()> {
        let len = self.partial.len();
        if self.client.is_stopped() {
            return Err(Failure::Stopped);
        }
        match self.total {
            Some(total)
                if self.has_room && len < total && self.expected.is_none_or(|expected| expected == total) =>
            {
                Err(Failure::transient(format!(
                    "the connection ended after {len} of {total} bytes"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Sink for Download<'_> {
    fn begin(&mut self, offset: u64, total: u64) -> Result<()> {
        self.total = Some(total);
        let rest = total
            .saturating_sub(self.partial.len())
            .min(self.expected.unwrap_or(u64::MAX));
        self.has_room = self.client.store.free_space().is_none_or(|free| rest <= free);
        if offset != self.partial.len() {
            self.partial.restart()?;
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        if !self.has_room || self.client.is_stopped() {
            return Ok(false);
        }
        let limit = self.expected.or(self.total).unwrap_or(u64::MAX);
        // One byte too many shows that the blob is damaged; the rest is not needed.
        let room = limit.saturating_add(1).saturating_sub(self.partial.len());
        let bytes = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        self.partial.append(bytes)?;
        self.client.stats.moved(bytes.len());
        Ok(self.partial.len() <= limit)
    }
}
