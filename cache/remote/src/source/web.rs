//! Files of web servers.

use super::Timing;
use super::request::{Ask, Body, Reply};
use crate::connector::plain_client;
use crate::failure::{Attempt, Failure, innermost};
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::header::{
    CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED,
    RANGE, RETRY_AFTER,
};
use reqwest::redirect::{Action, Attempt as Redirect, Policy};
use reqwest::{Response, StatusCode};
use std::time::Duration;
use url::Url;

/// The maximum number of redirects of one request.
const REDIRECTS: usize = 10;
/// The maximum wait that a server may request.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The maximum length of a validator that is kept, in bytes.
const LONGEST_HEADER: usize = 1024;

/// The client of web servers.
pub(super) struct Web {
    client: reqwest::Client,
    timing: Timing,
}

impl Web {
    pub(super) fn new(timing: Timing) -> Result<Self, String> {
        let client = plain_client(timing.stall)
            .redirect(Policy::custom(follow))
            .referer(false)
            .build()
            .map_err(|err| innermost(&err))?;
        Ok(Self { client, timing })
    }

    /// The maximum time without an answer.
    pub(super) fn stall(&self) -> Duration {
        self.timing.stall
    }

    /// Sends a request.
    pub(super) async fn get(&self, url: &str, ask: &Ask<'_>) -> Attempt<Reply<'static>> {
        let mut request = self.client.get(url);
        if let Some(known) = ask.known {
            let etag = known.etag.as_ref().map(|etag| (IF_NONE_MATCH, etag));
            let date = known.last_modified.as_ref().map(|date| (IF_MODIFIED_SINCE, date));
            if let Some((name, value)) = etag.or(date) {
                request = request.header(name, value);
            }
        }
        if ask.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", ask.from));
            if let Some(version) = ask.version {
                request = request.header(IF_RANGE, version);
            }
        }
        let answer = request.send().await.map_err(failure)?;
        let status = answer.status();
        match status {
            StatusCode::NOT_MODIFIED if ask.known.is_some() => Ok(Reply::NotModified),
            StatusCode::OK => Ok(body(0, answer.content_length(), answer)),
            StatusCode::PARTIAL_CONTENT if ask.from > 0 => match content_range(answer.headers()) {
                Some((offset, total)) if offset == ask.from => Ok(body(offset, total, answer)),
                _ => Err(Failure::out_of_range(
                    "the answer is of another range than was asked for",
                )),
            },
            _ => Err(refused(status, answer.headers())),
        }
    }
}

fn follow(attempt: Redirect<'_>) -> Action {
    match check_redirect(attempt.previous(), attempt.url()) {
        Ok(()) => attempt.follow(),
        Err(reason) => attempt.error(reason),
    }
}

/// Refuses a redirect from `https` to another scheme: a request sent over an encrypted connection stays
/// encrypted.
fn check_redirect(previous: &[Url], to: &Url) -> Result<(), &'static str> {
    let is_secure = previous.iter().any(|from| from.scheme() == "https");
    if is_secure && to.scheme() != "https" {
        return Err("it redirects from https to http, which is not followed");
    }
    if previous.len() > REDIRECTS {
        return Err("it redirects again and again");
    }
    Ok(())
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= LONGEST_HEADER).then(|| value.to_owned())
}

/// The first byte and the total length in `bytes FROM-TO/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = header(headers, CONTENT_RANGE)?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

fn body(offset: u64, total: Option<u64>, answer: Response) -> Reply<'static> {
    let headers = answer.headers();
    let (etag, last_modified) = (header(headers, ETAG), header(headers, LAST_MODIFIED));
    let chunks = stream::try_unfold(answer, |mut answer| async move {
        let chunk = answer.chunk().await.map_err(failure)?;
        Ok(chunk.map(|chunk| (chunk, answer)))
    });
    Reply::Body(Body {
        offset,
        total,
        etag,
        last_modified,
        bytes: chunks.boxed(),
    })
}

/// The failure of a request without an answer. The error's URL is not shown: it may come from a redirect,
/// with credentials in its query.
fn failure(err: reqwest::Error) -> Failure {
    let is_redirect = err.is_redirect();
    let message = innermost(&err.without_url());
    if is_redirect {
        return Failure::permanent(message, "give the URL that it leads to, if that is trusted");
    }
    Failure::transient(message)
}

/// The failure that a status denotes.
fn refused(status: StatusCode, headers: &HeaderMap) -> Failure {
    let message = format!("the server answers with status {}", status.as_u16());
    let message = match status.canonical_reason() {
        Some(reason) => format!("{message} {reason}"),
        None => message,
    };
    let is_transient = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_EARLY
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::RANGE_NOT_SATISFIABLE
        );
    if is_transient {
        let wait = header(headers, RETRY_AFTER).and_then(|text| text.parse().ok());
        return Failure::Transient {
            message,
            wait: wait.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT)),
            out_of_range: status == StatusCode::RANGE_NOT_SATISFIABLE,
        };
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            "it asks for credentials: fetch the file in a `run:` stage with `network: true` and `secrets:`, \
            whose output is the input `table`"
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            "check the URL; `--offline` uses what was fetched from it before"
        }
        _ => "open the URL in a browser to see what the server says",
    };
    Failure::permanent(message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_connection_stays_encrypted() {
        let url = |text: &str| Url::parse(text).unwrap();
        let check = |previous: &[&str], to: &str| {
            let previous: Vec<Url> = previous.iter().map(|text| url(text)).collect();
            check_redirect(&previous, &url(to)).is_ok()
        };
        assert!(check(&["https://a/x"], "https://b/x"));
        assert!(check(&["http://a/x"], "http://b/x"));
        assert!(check(&["http://a/x"], "https://a/x"));
        assert!(!check(&["https://a/x"], "http://a/x"));
        assert!(!check(&["http://a/x", "https://a/x"], "http://a/x"));
        assert!(!check(&["http://a/x"; 11], "http://a/x"));
    }
}
