//! The HTTP client of the remotes over `object_store`: redirects stay on their host, and every attempt ends.

use async_trait::async_trait;
use object_store::ClientConfigKey;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, NoProxy, Proxy};
use std::time::Duration;
use tokio::time::timeout;

/// The upload rate in bytes per second below which a connection counts as hung.
const MIN_RATE: u64 = 64 << 10;
/// The time limit of a server that joins the parts of an object.
const JOIN: Duration = Duration::from_secs(60);
/// The largest number of redirects of one request.
const REDIRECTS: usize = 5;

/// Limits the time of each attempt until its answer begins, so that an attempt on a hung connection is
/// retried, too.
///
/// The client is built here in place of object_store's own, which follows redirects to any host: a remote
/// could make this machine send requests to hosts that only it can reach. object_store itself needs no
/// redirect; a web server may redirect to another path, or from `http` to `https`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connector {
    /// The longest time without an answer.
    pub stall: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        let failed = |source: reqwest::Error| object_store::Error::Generic {
            store: "HTTP client",
            source: Box::new(source),
        };
        let option = |key: ClientConfigKey| options.get_config_value(&key);
        let is_set = |key: ClientConfigKey| option(key).is_some_and(|value| value == "true");
        let mut builder = plain_client(self.stall)
            .redirect(Policy::custom(same_host))
            .danger_accept_invalid_certs(is_set(ClientConfigKey::AllowInvalidCertificates))
            .https_only(!is_set(ClientConfigKey::AllowHttp));
        if let Some(url) = option(ClientConfigKey::ProxyUrl) {
            let excluded =
                option(ClientConfigKey::ProxyExcludes).and_then(|hosts| NoProxy::from_string(&hosts));
            builder = builder.proxy(Proxy::all(url).map_err(failed)?.no_proxy(excluded));
        }
        if let Some(certificate) = option(ClientConfigKey::ProxyCaCertificate) {
            builder =
                builder.add_root_certificate(Certificate::from_pem(certificate.as_bytes()).map_err(failed)?);
        }
        Ok(HttpClient::new(TimedClient {
            client: HttpClient::new(builder.build().map_err(failed)?),
            stall: self.stall,
        }))
    }
}

/// Creates a client that requests bodies without compression: bytes are stored, and compared with their
/// digest, as the server has them.
pub(crate) fn plain_client(stall: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("runner/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(stall)
        .http1_only()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}

/// Follows a redirect to the same host, including one from `http` to `https`.
fn same_host(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let to = attempt.url();
    let is_same = attempt.previous().first().is_some_and(|from| {
        let upgraded = from.scheme() == "http" && to.scheme() == "https" && to.port().is_none();
        from.host() == to.host()
            && (upgraded
                || (from.scheme() == to.scheme()
                    && from.port_or_known_default() == to.port_or_known_default()))
    });
    if !is_same {
        return attempt.error("it redirects to another host, which is not followed");
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("it redirects again and again");
    }
    attempt.follow()
}

#[derive(Debug)]
struct TimedClient {
    client: HttpClient,
    stall: Duration,
}

#[async_trait]
impl HttpService for TimedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let upload = Duration::from_secs(request.body().content_length() as u64 / MIN_RATE);
        let query = request.uri().query().unwrap_or_default();
        let joins_parts =
            (request.method() == "POST" && query.contains("uploadId")) || query.contains("comp=blocklist");
        let limit = if joins_parts {
            self.stall.max(JOIN)
        } else {
            self.stall + upload
        };
        match timeout(limit, self.client.execute(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::new(HttpErrorKind::Timeout, NoAnswer(limit))),
        }
    }
}

/// An attempt or a body timed out.
#[derive(Debug)]
pub(crate) struct NoAnswer(pub Duration);

impl std::error::Error for NoAnswer {}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no response within {:.1} s", self.0.as_secs_f64())
    }
}
