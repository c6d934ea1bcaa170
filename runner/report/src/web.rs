//! Short requests to web servers that are notified of runs. Failures name no address, since an address may be
//! a secret.

use reqwest::{Client, Method, StatusCode, redirect};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The maximum number of redirects that are followed.
const REDIRECTS: usize = 3;

/// The reason why a request failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Another try may succeed.
    Passing(String),
    /// Another try would fail too.
    Final(String),
    /// The requested resource does not exist.
    Missing,
}

impl Trouble {
    /// The reason in words.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Passing(why) | Self::Final(why) => why,
            Self::Missing => "the server answered 404 Not Found".to_owned(),
        }
    }
}

/// A client that blocks until each answer arrives.
pub(crate) struct Web {
    runtime: Runtime,
    client: Client,
    timeout: Duration,
}

/// The body of a request.
pub(crate) enum Body {
    None,
    Json(String),
    Bytes(Vec<u8>),
}

impl Web {
    /// Creates a client whose requests take at most `timeout`.
    pub(crate) fn new(timeout: Duration) -> Result<Self, Trouble> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|err| Trouble::Final(err.to_string()))?;
        let client = Client::builder()
            .user_agent(concat!("runner/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::limited(REDIRECTS))
            .build()
            .map_err(|err| Trouble::Final(told(err)))?;
        Ok(Self {
            runtime,
            client,
            timeout,
        })
    }

    /// Sends a request, and returns its answer.
    pub(crate) fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(String, String)],
        body: Body,
    ) -> Result<Vec<u8>, Trouble> {
        let mut request = self.client.request(method, url).timeout(self.timeout);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = match body {
            Body::None => request,
            Body::Json(text) => request.header("content-type", "application/json").body(text),
            Body::Bytes(bytes) => request.body(bytes),
        };
        let (status, bytes) = self.runtime.block_on(async {
            let answer = request.send().await.map_err(|err| Trouble::Passing(told(err)))?;
            let status = answer.status();
            let bytes = answer.bytes().await.map_err(|err| Trouble::Passing(told(err)))?;
            Ok((status, bytes.to_vec()))
        })?;
        match status {
            status if status.is_success() => Ok(bytes),
            StatusCode::NOT_FOUND => Err(Trouble::Missing),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(Trouble::Passing(answered(status)))
            }
            status if status.is_server_error() => Err(Trouble::Passing(answered(status))),
            status => Err(Trouble::Final(answered(status))),
        }
    }
}

fn answered(status: StatusCode) -> String {
    format!("the server answered {status}")
}

/// The innermost cause of an error, without the address.
fn told(err: reqwest::Error) -> String {
    if err.is_timeout() {
        return "no answer in time".to_owned();
    }
    let err = err.without_url();
    let mut cause: &dyn std::error::Error = &err;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
