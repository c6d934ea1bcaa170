//! Requests of messages.

use super::{Sending, TRIES, Trouble};
use reqwest::{Client, StatusCode, redirect};
use serde_json::Value;
use tokio::runtime::Builder;

/// Sends a document by POST, or without one a GET request.
pub(super) fn send(url: &str, document: Option<&Value>, sending: &Sending) -> Result<(), Trouble> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Trouble::Final(err.to_string()))?;
    let client = Client::builder()
        .user_agent(concat!("runner/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::limited(TRIES as usize))
        .build()
        .map_err(|err| Trouble::Final(told(err)))?;
    let request = match document {
        Some(document) => client
            .post(url)
            .header("content-type", "application/json")
            .body(document.to_string()),
        None => client.get(url),
    };
    let status = runtime.block_on(async {
        let answer = request.timeout(sending.timeout).send().await;
        answer
            .map(|answer| answer.status())
            .map_err(|err| Trouble::Passing(told(err)))
    })?;
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Err(Trouble::Passing(answered(status))),
        status if status.is_server_error() => Err(Trouble::Passing(answered(status))),
        status => Err(Trouble::Final(answered(status))),
    }
}

fn answered(status: StatusCode) -> String {
    format!("the server answered {status}")
}

/// The innermost cause, without the address, which may be a secret.
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
