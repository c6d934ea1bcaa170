//! A file on its server: requests, and their answers.

use super::bucket::Bucket;
use super::request::{Ask, Body, Reply};
use super::{Client, Timing, web};
use crate::connector::NoAnswer;
use crate::failure::{Attempt, Failure};
use crate::runtime::Runtime;
use bytes::Bytes;
use cache::{RemoteFile, Store};
use futures_util::StreamExt as _;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The interval of the checks for cancellation.
const TICK: Duration = Duration::from_millis(50);

/// A file on its server.
pub(super) enum Origin<'a> {
    Web(&'a web::Web, &'a str),
    Bucket(Bucket),
}

impl<'a> Origin<'a> {
    pub(super) fn new(
        file: &'a RemoteFile,
        client: &'a Client,
        s3: &[(String, String)],
        timing: Timing,
    ) -> Attempt<Self> {
        match file.url.strip_prefix("s3://") {
            Some(rest) => Bucket::new(rest, s3, timing).map(Self::Bucket),
            None => Ok(Self::Web(&client.web, &file.url)),
        }
    }

    /// Sends a request, and waits until its answer begins.
    pub(super) fn get(&self, runtime: &Runtime, store: &Store, ask: &Ask<'_>) -> Attempt<Reply<'static>> {
        match self {
            Self::Web(web, url) => wait(runtime, store, web.stall(), web.get(url, ask))?,
            Self::Bucket(bucket) => wait(runtime, store, bucket.limit(), bucket.get(ask))?,
        }
    }
}

/// Waits for the next bytes of a body.
pub(super) fn next(
    runtime: &Runtime,
    store: &Store,
    stall: Duration,
    body: &mut Body<'_>,
) -> Attempt<Option<Bytes>> {
    wait(runtime, store, stall, body.bytes.next())?.transpose()
}

/// Waits for a request, for at most `limit`, and only until the store's work is interrupted.
fn wait<T>(
    runtime: &Runtime,
    store: &Store,
    limit: Duration,
    request: impl Future<Output = T>,
) -> Attempt<T> {
    let began = Instant::now();
    runtime.block_on(async {
        let mut request = pin!(request);
        loop {
            if let Ok(done) = timeout(TICK.min(limit), &mut request).await {
                return Ok(done);
            }
            if store.is_interrupted() {
                return Err(Failure::Stopped);
            }
            if began.elapsed() >= limit {
                return Err(Failure::transient(NoAnswer(limit).to_string()));
            }
        }
    })
}
