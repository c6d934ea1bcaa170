//! One file on its server: requests, and their answers.

use super::bucket::Bucket;
use super::{Client, Timing, web};
use crate::runtime::Runtime;
use bytes::Bytes;
use cache::{FetchedFile, RemoteFile, Store};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The interval of the checks for cancellation.
const TICK: Duration = Duration::from_millis(50);

/// The failure of a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// A later request may succeed, after this time where the server says so.
    Transient { message: String, wait: Option<Duration> },
    /// A later request would fail the same way.
    Permanent { message: String, hint: String },
    /// The work was interrupted.
    Interrupted,
    /// The local store failed.
    Store(cache::Error),
}

impl From<cache::Error> for Failure {
    fn from(err: cache::Error) -> Self {
        Self::Store(err)
    }
}

impl Failure {
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Transient {
            message: message.into(),
            wait: None,
        }
    }

    pub fn permanent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Permanent {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// A request for a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask<'a> {
    /// The contents that the store has: no body is sent if they are current.
    pub known: Option<&'a FetchedFile>,
    /// The offset of the first byte.
    pub from: u64,
    /// The strong ETag of the version that the bytes before `from` are of.
    pub version: Option<&'a str>,
}

/// An answer.
pub(super) enum Reply<'a> {
    /// The contents that the store has are current.
    NotModified,
    /// The bytes of the file.
    Body(Body<'a>),
}

/// The bytes of a file, from `offset` on.
pub(super) struct Body<'a> {
    pub offset: u64,
    /// The length of the whole file.
    pub total: Option<u64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub bytes: BoxStream<'a, Result<Bytes, Failure>>,
}

impl Body<'_> {
    /// The ETag that stands for the same bytes: not a weak one.
    pub fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }
}

/// A file on its server.
pub(super) enum Origin<'a> {
    Web(&'a web::Web, &'a str),
    Bucket(Bucket),
}

impl<'a> Origin<'a> {
    pub fn new(
        file: &'a RemoteFile,
        client: &'a Client,
        s3: &[(String, String)],
        timing: Timing,
    ) -> Result<Self, Failure> {
        match file.url.strip_prefix("s3://") {
            Some(rest) => Bucket::new(rest, s3, timing).map(Self::Bucket),
            None => Ok(Self::Web(&client.web, &file.url)),
        }
    }

    /// Sends a request, and waits until its answer begins.
    pub fn get(&self, runtime: &Runtime, store: &Store, ask: &Ask<'_>) -> Result<Reply<'static>, Failure> {
        match self {
            Self::Web(web, url) => wait(runtime, store, web.stall(), web.get(url, ask))?,
            Self::Bucket(bucket) => wait(runtime, store, bucket.limit(), bucket.get(ask))?,
        }
    }
}

/// The next bytes of a body.
pub(super) fn next(
    runtime: &Runtime,
    store: &Store,
    stall: Duration,
    body: &mut Body<'_>,
) -> Result<Option<Bytes>, Failure> {
    wait(runtime, store, stall, body.bytes.next())?.transpose()
}

/// Waits for a request, at most for `limit`, and not longer than the store's work goes on.
fn wait<T>(runtime: &Runtime, store: &Store, limit: Duration, request: impl Future<Output = T>) -> Result<T, Failure> {
    let began = Instant::now();
    runtime.block_on(async {
        let mut request = pin!(request);
        loop {
            if let Ok(done) = timeout(TICK.min(limit), &mut request).await {
                return Ok(done);
            }
            if store.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            if began.elapsed() >= limit {
                return Err(Failure::transient(format!(
                    "no response within {:.1} s",
                    limit.as_secs_f64()
                )));
            }
        }
    })
}
