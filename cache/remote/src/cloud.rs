//! Remotes behind the `object_store` crate: S3, Google, Azure, and web servers.

use crate::address::Address;
use crate::backend::{Attempt, Backend, Fault, Part, Sink};
use crate::settings::RemoteSettings;
use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    ClientConfigKey, ClientOptions, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutPayload,
    RetryConfig,
};
use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Longer ones are written in parts of half this length, or more where there would be too many of them.
const IN_PARTS: usize = 16 << 20;
/// S3 takes 10,000.
const MOST_PARTS: usize = 9_000;
/// A slower upload counts as one that hangs, in bytes a second.
const SLOWEST: u64 = 64 << 10;
/// The client has a limit for a whole request, which says nothing here: what counts is whether bytes come.
const NO_LIMIT: &str = "7days";

pub(crate) struct Cloud {
    store: Arc<dyn ObjectStore>,
    parts: Option<Arc<dyn MultipartStore>>,
    prefix: String,
    /// How long nothing may happen.
    stall: Duration,
    runtime: Driven,
}

/// A runtime whose one thread does what goes on between requests; whoever asks waits for his own.
struct Driven {
    handle: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Driven {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (_stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("remote".to_owned())
            .spawn(move || drop(runtime.block_on(stopped)))?;
        Ok(Self { handle, _stop })
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

impl Cloud {
    /// The client for an address. Credentials are looked for where each cloud's own tools look, as far as they are in the
    /// environment.
    pub fn new(address: &Address, settings: &RemoteSettings) -> Result<Self, String> {
        let stall = settings.timeout / 2;
        let connect = format!("{}ms", stall.as_millis());
        // Patience is one thing for all kinds of remote, and lies elsewhere.
        let retry = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let failed = |err: Error| message(&err);
        let (store, parts, prefix): (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>, &str) = match address {
            Address::S3 { bucket, prefix } => {
                let key = AmazonS3ConfigKey::Client;
                let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                if let Some(region) = &settings.region {
                    builder = builder.with_region(region);
                }
                if settings.allow_http {
                    builder = builder.with_allow_http(true);
                }
                let store = builder
                    .with_config(key(ClientConfigKey::Timeout), NO_LIMIT)
                    .with_config(key(ClientConfigKey::ConnectTimeout), connect)
                    .with_retry(retry)
                    .build();
                let store = Arc::new(store.map_err(failed)?);
                (store.clone(), Some(store), prefix)
            }
            Address::Google { bucket, prefix } => {
                let key = GoogleConfigKey::Client;
                let store = GoogleCloudStorageBuilder::from_env()
                    .with_bucket_name(bucket)
                    .with_config(key(ClientConfigKey::Timeout), NO_LIMIT)
                    .with_config(key(ClientConfigKey::ConnectTimeout), connect)
                    .with_retry(retry)
                    .build();
                let store = Arc::new(store.map_err(failed)?);
                (store.clone(), Some(store), prefix)
            }
            Address::Azure { container, prefix } => {
                let key = AzureConfigKey::Client;
                let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
                if let Some(endpoint) = &settings.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                if settings.allow_http {
                    builder = builder.with_allow_http(true);
                }
                let store = builder
                    .with_config(key(ClientConfigKey::Timeout), NO_LIMIT)
                    .with_config(key(ClientConfigKey::ConnectTimeout), connect)
                    .with_retry(retry)
                    .build();
                let store = Arc::new(store.map_err(failed)?);
                (store.clone(), Some(store), prefix)
            }
            Address::Http(url) => {
                let options = ClientOptions::new()
                    .with_allow_http(true)
                    .with_timeout_disabled()
                    .with_connect_timeout(stall);
                let store = HttpBuilder::new()
                    .with_url(url)
                    .with_client_options(options)
                    .with_retry(retry)
                    .build();
                (Arc::new(store.map_err(failed)?), None, "")
            }
            Address::Directory(_) => return Err("a folder needs no client".to_owned()),
        };
        let runtime = Driven::start().map_err(|err| format!("cannot start a thread: {err}"))?;
        Ok(Self {
            store,
            parts,
            prefix: prefix.to_owned(),
            stall,
            runtime,
        })
    }

    fn path(&self, name: &str) -> Path {
        if self.prefix.is_empty() {
            Path::from(name)
        } else {
            Path::from(format!("{}/{name}", self.prefix))
        }
    }

    /// Runs one request, for at most as long as `limit`.
    fn request<T>(&self, limit: Duration, future: impl Future<Output = object_store::Result<T>>) -> Attempt<T> {
        let request = async { tokio::time::timeout(limit, future).await };
        match self.runtime.block_on(request) {
            Ok(result) => result.map_err(fault),
            Err(_) => Err(stalled(limit)),
        }
    }

    /// How long an upload of so many bytes may take.
    fn upload_limit(&self, len: usize) -> Duration {
        self.stall + Duration::from_secs(len as u64 / SLOWEST)
    }

    fn in_parts(&self) -> Attempt<&dyn MultipartStore> {
        let parts = self.parts.as_deref();
        parts.ok_or_else(|| Fault::Permanent("it takes no uploads in parts".to_owned()))
    }
}

fn stalled(limit: Duration) -> Fault {
    Fault::Transient(format!("no answer within {:.1} s", limit.as_secs_f64()))
}

fn fault(err: Error) -> Fault {
    match err {
        Error::NotFound { .. } => Fault::NotFound,
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => Fault::Permanent(message(&err)),
        _ => Fault::Transient(message(&err)),
    }
}

/// What lies deepest says most; what lies above it repeats the URL.
fn message(err: &Error) -> String {
    let mut deepest = err.to_string();
    let mut source = err.source();
    while let Some(err) = source {
        deepest = err.to_string();
        source = err.source();
    }
    deepest
}

impl Backend for Cloud {
    fn size(&self, name: &str) -> Attempt<u64> {
        let path = self.path(name);
        self.request(self.stall, self.store.head(&path)).map(|meta| meta.size)
    }

    fn read(&self, name: &str, from: u64, sink: &mut dyn Sink) -> Attempt<()> {
        let path = self.path(name);
        let options = |from: u64| GetOptions {
            range: (from > 0).then_some(GetRange::Offset(from)),
            ..GetOptions::default()
        };
        let mut begun = self.request(self.stall, self.store.get_opts(&path, options(from)));
        let no_range = |fault: &Fault| match fault {
            Fault::Permanent(_) => true,
            Fault::Transient(message) => message.contains("416"),
            _ => false,
        };
        if from > 0 && begun.as_ref().is_err_and(no_range) {
            // A server without ranges, or a piece that is longer than the whole.
            begun = self.request(self.stall, self.store.get_opts(&path, options(0)));
        }
        let got = begun?;
        sink.begin(got.range.start, got.meta.size).map_err(Fault::Local)?;
        let mut stream = got.into_stream();
        loop {
            let next = async { tokio::time::timeout(self.stall, stream.next()).await };
            match self.runtime.block_on(next) {
                Ok(Some(Ok(bytes))) => sink.take(&bytes).map_err(Fault::Local)?,
                Ok(Some(Err(err))) => return Err(fault(err)),
                Ok(None) => return Ok(()),
                Err(_) => return Err(stalled(self.stall)),
            }
        }
    }

    fn write(&self, name: &str, bytes: Bytes) -> Attempt<()> {
        let path = self.path(name);
        let limit = self.upload_limit(bytes.len());
        let written = self.request(limit, self.store.put(&path, PutPayload::from_bytes(bytes)));
        written.map(|_| ()).map_err(no_bucket)
    }

    fn list(&self, folder: &str, most: usize) -> Attempt<Vec<String>> {
        let prefix = self.path(folder);
        let strip = format!("{}/", self.prefix);
        let mut stream = self.store.list(Some(&prefix));
        let mut names = Vec::new();
        loop {
            let next = async { tokio::time::timeout(self.stall, stream.next()).await };
            match self.runtime.block_on(next) {
                Ok(Some(Ok(meta))) => {
                    let name = meta.location.as_ref();
                    names.push(name.strip_prefix(&strip).unwrap_or(name).to_owned());
                    if names.len() >= most {
                        return Ok(names);
                    }
                }
                Ok(Some(Err(err))) => return Err(fault(err)),
                Ok(None) => return Ok(names),
                Err(_) => return Err(stalled(self.stall)),
            }
        }
    }

    fn part_size(&self, len: usize) -> Option<usize> {
        (self.parts.is_some() && len > IN_PARTS).then(|| (IN_PARTS / 2).max(len.div_ceil(MOST_PARTS)))
    }

    fn begin_parts(&self, name: &str) -> Attempt<String> {
        let path = self.path(name);
        self.request(self.stall, self.in_parts()?.create_multipart(&path))
            .map_err(no_bucket)
    }

    fn part(&self, name: &str, id: &str, index: usize, bytes: Bytes) -> Attempt<Part> {
        let (path, id) = (self.path(name), id.to_owned());
        let limit = self.upload_limit(bytes.len());
        let part = self
            .in_parts()?
            .put_part(&path, &id, index, PutPayload::from_bytes(bytes));
        self.request(limit, part).map(|part| Part(part.content_id))
    }

    fn end_parts(&self, name: &str, id: &str, parts: &[Part]) -> Attempt<()> {
        let (path, id) = (self.path(name), id.to_owned());
        let parts = parts.iter().map(|Part(content_id)| PartId {
            content_id: content_id.clone(),
        });
        // Putting many parts together takes a server its time.
        let limit = self.stall.max(Duration::from_secs(60));
        self.request(limit, self.in_parts()?.complete_multipart(&path, &id, parts.collect()))
            .map(|_| ())
    }

    fn drop_parts(&self, name: &str, id: &str) {
        let (path, id) = (self.path(name), id.to_owned());
        if let Ok(parts) = self.in_parts() {
            // A store drops them by itself after a while, as far as it is told to.
            let _ = self.request(self.stall, parts.abort_multipart(&path, &id));
        }
    }
}

/// Where nothing can be absent, its bucket is.
fn no_bucket(fault: Fault) -> Fault {
    match fault {
        Fault::NotFound => Fault::Permanent("there is no such bucket".to_owned()),
        other => other,
    }
}
