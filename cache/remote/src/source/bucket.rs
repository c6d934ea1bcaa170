//! Files in S3 buckets. Credentials, region and endpoint come from the environment variables of the AWS
//! tools.

use super::Timing;
use super::request::{Ask, Body, Reply};
use crate::cloud::{NO_LIMIT, failure};
use crate::connector::Connector;
use crate::failure::{Attempt, Failure, innermost};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, GetOptions, GetRange, ObjectStore as _, RetryConfig,
};
use std::time::Duration;

/// The number of retries within object_store: none. It would resume a broken body with a request whose answer
/// it takes for the rest, whatever range the answer covers; the download retries instead, and checks the
/// range.
const RETRIES: usize = 0;

/// An object in a bucket.
pub(super) struct Bucket {
    store: AmazonS3,
    key: Path,
    limit: Duration,
}

impl Bucket {
    /// Creates the object at `BUCKET/KEY`; settings are given by the names of their environment variables.
    pub(super) fn new(place: &str, settings: &[(String, String)], timing: Timing) -> Attempt<Self> {
        let hint = "check AWS_REGION, AWS_ENDPOINT_URL and the credentials in the environment";
        let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
        let key = Path::from_url_path(key).map_err(|err| {
            Failure::permanent(
                format!("the key is not one of an object: {err}"),
                "write s3://bucket/key",
            )
        })?;
        let client = AmazonS3ConfigKey::Client;
        let mut builder = AmazonS3Builder::new();
        for (name, value) in settings {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder
            .with_bucket_name(bucket)
            .with_config(client(ClientConfigKey::Timeout), NO_LIMIT)
            .with_config(
                client(ClientConfigKey::ConnectTimeout),
                format!("{}ms", timing.stall.as_millis()),
            )
            .with_http_connector(Connector { stall: timing.stall })
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: RETRIES,
                retry_timeout: timing.stall,
            })
            .build()
            .map_err(|err| Failure::permanent(innermost(&err), hint))?;
        Ok(Self {
            store,
            key,
            limit: timing.stall,
        })
    }

    /// The maximum duration of a request, including its retries.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Sends a request.
    pub(super) async fn get(&self, ask: &Ask<'_>) -> Attempt<Reply<'static>> {
        let options = GetOptions {
            if_none_match: ask.known.and_then(|known| known.etag.clone()),
            // S3 does not support `If-Range`: an object that has changed is refused, and then fetched from
            // its start.
            if_match: ask.version.filter(|_| ask.from > 0).map(str::to_owned),
            range: (ask.from > 0).then_some(GetRange::Offset(ask.from)),
            ..GetOptions::default()
        };
        match self.store.get_opts(&self.key, options).await {
            Ok(found) => Ok(Reply::Body(Body {
                offset: found.range.start,
                total: Some(found.meta.size),
                etag: found.meta.e_tag.clone(),
                last_modified: None,
                bytes: found
                    .into_stream()
                    .map_err(|err| Failure::transient(innermost(&err)))
                    .boxed(),
            })),
            Err(Error::NotModified { .. }) if ask.known.is_some() => Ok(Reply::NotModified),
            Err(err) => Err(refused(&err)),
        }
    }
}

fn refused(err: &Error) -> Failure {
    let credentials = "check the credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, \
                       AWS_REGION); a public \
                       bucket needs AWS_SKIP_SIGNATURE=true";
    match (failure(err), err) {
        (Failure::NotFound, _) => Failure::permanent(
            "there is no such bucket or object",
            "check the URL; `--offline` uses what was fetched from it before",
        ),
        (
            Failure::Permanent { message, .. },
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. },
        ) => Failure::permanent(format!("access is denied: {message}"), credentials),
        (Failure::Permanent { message, .. }, _) => Failure::transient(message),
        (other, _) => other,
    }
}
