//! Sources on servers: fetched into the store before the key of their stage is computed.

use crate::text;
use cache::{FetchFiles, FetchedFile, OnBytes, Seen, Store, Workspace};
use stages_core::{EventSink, Source, StageError, StageEvent};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval of progress events.
const INTERVAL: Duration = Duration::from_millis(100);

/// The files that a stage fetches before its key is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToFetch {
    /// The first one's URL.
    pub first: String,
    /// Their number.
    pub count: usize,
    /// Their size in bytes, as far as servers tell.
    pub bytes: u64,
}

fn files(store: &Store) -> Result<&dyn FetchFiles, StageError> {
    store.files().ok_or_else(|| {
        StageError::new("files on servers are not fetched here").hint("`runner exec` fetches them")
    })
}

/// The sources that would be fetched; `None` if all are in the store. Fetches nothing.
pub(crate) fn to_fetch(sources: &[Source], store: &Store) -> Result<Option<ToFetch>, StageError> {
    let mut found: Option<ToFetch> = None;
    for remote in sources.iter().filter_map(|source| source.remote.as_ref()) {
        if let Seen::ToFetch(size) = files(store)?.look(store, remote)? {
            let found = found.get_or_insert_with(|| ToFetch {
                first: remote.url.clone(),
                count: 0,
                bytes: 0,
            });
            found.count += 1;
            found.bytes += size.unwrap_or(0);
        }
    }
    Ok(found)
}

/// Fetches the sources on servers that the store does not have, and points them at their contents: links in
/// the directory that is returned.
///
/// # Errors
/// If one cannot be fetched, or the store cannot be written.
pub fn fetch(
    sources: &mut [Source],
    store: &Store,
    events: &dyn EventSink,
) -> Result<(Vec<FetchedFile>, Option<Arc<Workspace>>), StageError> {
    let mut fetched = Vec::new();
    let mut links: Option<Workspace> = None;
    for (place, source) in sources.iter_mut().enumerate() {
        let Some(remote) = &source.remote else { continue };
        let name = remote.file_name();
        let last = Mutex::new(None::<Instant>);
        let on_bytes: OnBytes<'_> = &|done, total| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| last.elapsed() < INTERVAL) {
                return;
            }
            *last = Some(Instant::now());
            events.emit(StageEvent::Progress {
                done,
                total,
                message: format!("fetching {name}"),
            });
        };
        let found = files(store)?.fetch(store, remote, on_bytes)?;
        events.emit(StageEvent::Log {
            line: described(&found),
        });
        if links.is_none() {
            links = match store.workspace() {
                // Whoever may only read the store runs what is cached in it, which reads no file.
                Err(err) if err.is_denied() => None,
                links => Some(links?),
            };
        }
        source.path = match &links {
            // Two URLs may end in one name.
            Some(links) => links.link(store, found.blake3, &format!("{place}/{name}"))?,
            None => store.blob_path(found.blake3),
        };
        source.digest = Some(found.blake3);
        fetched.push(found);
    }
    Ok((fetched, links.map(Arc::new)))
}

/// A line about the contents of a source.
pub fn described(file: &FetchedFile) -> String {
    let mut line = format!(
        "source {}: {}, blake3 {}",
        file.url,
        text::size(file.size),
        file.blake3.to_hex()
    );
    if let Some(etag) = &file.etag {
        line.push_str(&format!(", ETag {etag}"));
    } else if let Some(date) = &file.last_modified {
        line.push_str(&format!(", Last-Modified {date}"));
    }
    line
}
