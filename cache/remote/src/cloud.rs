//! Remotes over the `object_store` crate: S3, Google Cloud Storage, Azure Blob Storage, and web servers.
//!
//! Requests are retried by `object_store`, with exponential backoff and jitter. Two limits that it lacks are
//! added: one for an attempt without an answer ([`Connector`]; its own limits apply to a whole request with
//! its body, however long that is), and one for a body without progress, or with next to none. Its
//! `parse_url_opts` takes neither a `RetryConfig` nor a connector; the builders do.

use crate::address::Address;
use crate::backend::{Backend, Sink};
use crate::connector::{Connector, NoAnswer};
use crate::failure::{Attempt, Failure, innermost};
use crate::runtime::Runtime;
use crate::settings::RemoteSettings;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _,
    ObjectStoreScheme, PutPayload, RetryConfig,
};
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// The length in bytes from which an object is written in parts of half this length, or of more if there
/// would be too many parts.
const MULTIPART: usize = 16 << 20;
/// The largest number of parts; S3 takes 10,000.
const MAX_PARTS: usize = 9_000;
/// The number of concurrent parts of one object.
const PARTS: usize = 4;
/// The download rate in bytes per second below which a connection counts as hung, once a request's usual time
/// has passed.
const MIN_RATE: u64 = 8 << 10;
/// The time limit given to object_store for a whole request with its body.
pub(crate) const NO_LIMIT: &str = "7days";

/// A remote over `object_store`.
pub(crate) struct Cloud {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    /// The longest time without progress.
    stall: Duration,
    /// The maximum duration of a request without a body, including its retries.
    deadline: Duration,
    runtime: Runtime,
    /// True once reads were stopped.
    stop_reads: watch::Receiver<bool>,
}

impl Cloud {
    /// Creates the client for an address. Credentials come from the environment variables of each cloud's own
    /// tools.
    ///
    /// # Errors
    /// The reason, when the address or the settings are wrong.
    pub(crate) fn new(
        address: &Address,
        settings: &RemoteSettings,
        stop_reads: watch::Receiver<bool>,
    ) -> Result<Self, String> {
        let Address::Object { scheme, url, prefix } = address else {
            return Err("a directory needs no client".to_owned());
        };
        // A hung attempt is retried once, and a request ends after about the timeout.
        let stall = settings.timeout / 2;
        let retry = RetryConfig {
            backoff: BackoffConfig {
                max_backoff: (settings.timeout / 5).min(Duration::from_secs(1)),
                ..BackoffConfig::default()
            },
            // Only the time limit ends the retries.
            max_retries: usize::MAX,
            retry_timeout: settings.timeout * 2 / 3,
        };
        macro_rules! build {
            ($builder:expr, $key:expr) => {
                $builder
                    .with_url(url.as_str())
                    .with_config($key(ClientConfigKey::Timeout), NO_LIMIT)
                    .with_config(
                        $key(ClientConfigKey::ConnectTimeout),
                        format!("{}ms", stall.as_millis()),
                    )
                    .with_http_connector(Connector { stall })
                    .with_retry(retry)
                    .build()
                    .map(|store| Box::new(store) as Box<dyn ObjectStore>)
            };
        }
        let store = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                let mut builder = AmazonS3Builder::from_env();
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                if let Some(region) = &settings.region {
                    builder = builder.with_region(region);
                }
                if settings.allow_http {
                    builder = builder.with_allow_http(true);
                }
                build!(builder, AmazonS3ConfigKey::Client)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                build!(GoogleCloudStorageBuilder::from_env(), GoogleConfigKey::Client)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let mut builder = MicrosoftAzureBuilder::from_env();
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                if settings.allow_http {
                    builder = builder.with_allow_http(true);
                }
                build!(builder, AzureConfigKey::Client)
            }
            _ => build!(
                HttpBuilder::new().with_config(ClientConfigKey::AllowHttp, "true"),
                std::convert::identity
            ),
        };
        Ok(Self {
            store: store.map_err(|err| innermost(&err))?,
            prefix: prefix.clone(),
            stall,
            deadline: settings.timeout * 2,
            runtime: Runtime::start("remote").map_err(|err| format!("cannot start a thread: {err}"))?,
            stop_reads,
        })
    }

    fn path(&self, name: &str) -> Path {
        let parts = Path::from(name);
        self.prefix.parts().chain(parts.parts()).collect()
    }

    fn wait<T>(&self, request: impl Future<Output = object_store::Result<T>>) -> Attempt<T> {
        self.unless_stopped(request)?.map_err(|err| failure(&err))
    }

    /// Waits for the end of a read, or until reads are stopped.
    fn unless_stopped<T>(&self, read: impl Future<Output = T>) -> Attempt<T> {
        let mut stop = self.stop_reads.clone();
        self.runtime.block_on(async {
            match select(pin!(stop.wait_for(|stop| *stop)), pin!(read)).await {
                Either::Left(_) => Err(Failure::Stopped),
                Either::Right((read, _)) => Ok(read),
            }
        })
    }

    /// Waits for the next item of a stream, for at most `limit`.
    fn next<T>(
        &self,
        limit: Duration,
        stream: &mut BoxStream<'_, object_store::Result<T>>,
    ) -> Attempt<Option<T>> {
        // A timeout must be created inside the runtime.
        match self.unless_stopped(async { timeout(limit, stream.next()).await })? {
            Ok(item) => item.transpose().map_err(|err| failure(&err)),
            Err(_) => Err(Failure::transient(NoAnswer(limit).to_string())),
        }
    }

    async fn write_parts(&self, path: &Path, bytes: &Bytes, on_part: &dyn Fn(usize) -> bool) -> Attempt<()> {
        let len = bytes.len();
        let size = (MULTIPART / 2).max(len.div_ceil(MAX_PARTS));
        let mut upload = self
            .store
            .put_multipart(path)
            .await
            .map_err(|err| write_failure(&err))?;
        let sent = {
            let parts = (0..len)
                .step_by(size)
                .map(|start| bytes.slice(start..len.min(start + size)));
            let mut sent = stream::iter(parts)
                .map(|part| {
                    let len = part.len();
                    upload
                        .put_part(PutPayload::from(part))
                        .map(move |sent| sent.map(|()| len))
                })
                .buffer_unordered(PARTS);
            loop {
                match sent.next().await {
                    None => break Ok(()),
                    Some(Ok(len)) if on_part(len) => {}
                    Some(Ok(_)) => break Err(Failure::Stopped),
                    Some(Err(err)) => break Err(failure(&err)),
                }
            }
        };
        let joined = match sent {
            Ok(()) => match upload.complete().await {
                // The answer to an earlier attempt may have been lost.
                Err(Error::NotFound { .. })
                    if self.store.head(path).await.is_ok_and(|meta| meta.size == len as u64) =>
                {
                    Ok(())
                }
                joined => joined.map(|_| ()).map_err(|err| failure(&err)),
            },
            Err(failure) => Err(failure),
        };
        if joined.is_err() {
            // If the abort fails, the store drops the parts by its own rules.
            let _ = upload.abort().await;
        }
        joined
    }
}

/// The failure that an error of `object_store` denotes.
pub(crate) fn failure(err: &Error) -> Failure {
    let message = innermost(err);
    match err {
        Error::NotFound { .. } => Failure::NotFound,
        Error::Precondition { .. } => Failure::out_of_range("the object has changed meanwhile"),
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => Failure::permanent(message, ""),
        // `object_store` has no kind for a range that the object does not have.
        _ if message.contains("416") || message.contains("range") => Failure::out_of_range(message),
        _ => Failure::transient(message),
    }
}

/// The failure of a write: only the bucket can be missing.
fn write_failure(err: &Error) -> Failure {
    match failure(err) {
        Failure::NotFound => Failure::permanent("there is no such bucket", ""),
        other => other,
    }
}

impl Backend for Cloud {
    fn size(&self, name: &str) -> Attempt<u64> {
        self.wait(self.store.head(&self.path(name))).map(|meta| meta.size)
    }

    fn read(&self, name: &str, offset: u64, sink: &mut dyn Sink) -> Attempt<()> {
        let path = self.path(name);
        let options = |offset: u64| GetOptions {
            range: (offset > 0).then_some(GetRange::Offset(offset)),
            ..GetOptions::default()
        };
        let mut answer = self.wait(self.store.get_opts(&path, options(offset)));
        let no_range = |failure: &Failure| {
            matches!(
                failure,
                Failure::Permanent { .. }
                    | Failure::Transient {
                        out_of_range: true,
                        ..
                    }
            )
        };
        if offset > 0 && answer.as_ref().is_err_and(no_range) {
            // The server does not support ranges, or the partial blob is longer than the object.
            answer = self.wait(self.store.get_opts(&path, options(0)));
        }
        let object = answer?;
        sink.begin(object.range.start, object.meta.size)?;
        let mut stream = object.into_stream();
        let (began, mut len) = (Instant::now(), 0);
        while let Some(bytes) = self.next(self.stall, &mut stream)? {
            len += bytes.len() as u64;
            if !sink.take(&bytes)? {
                break;
            }
            // A server that sends a byte now and then would otherwise count as making progress.
            if began.elapsed() > self.deadline + Duration::from_secs(len / MIN_RATE) {
                return Err(Failure::transient(format!("less than {MIN_RATE} bytes per second")));
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: Bytes, on_part: &dyn Fn(usize) -> bool) -> Attempt<()> {
        let (path, len) = (self.path(name), bytes.len());
        if len > MULTIPART {
            return self.runtime.block_on(self.write_parts(&path, &bytes, on_part));
        }
        let put = self.store.put(&path, PutPayload::from(bytes));
        self.runtime.block_on(put).map_err(|err| write_failure(&err))?;
        on_part(len);
        Ok(())
    }

    fn list(&self, folder: &str, limit: usize) -> Attempt<Vec<String>> {
        let mut stream = self.store.list(Some(&self.path(folder)));
        let mut names = Vec::new();
        // An item may wait for a page, with its retries.
        while names.len() < limit
            && let Some(meta) = self.next(self.deadline, &mut stream)?
        {
            let name = meta
                .location
                .prefix_match(&self.prefix)
                .map(|parts| parts.collect::<Path>());
            names.extend(name.map(String::from));
        }
        Ok(names)
    }
}
