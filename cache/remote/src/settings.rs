//! The configuration of a remote.

use crate::address::Address;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The secret key that signs records: readers ignore records that were written without it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignKey([u8; 32]);

impl SignKey {
    /// The key of a secret text, without white space around it. `None` for an empty one.
    pub fn new(secret: &[u8]) -> Option<Self> {
        let secret = secret.trim_ascii();
        (!secret.is_empty()).then(|| Self(blake3::derive_key("runner 2026-11 remote signature v1", secret)))
    }

    pub(crate) fn sign(&self, folder: &str, name: &str, record: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for field in [folder.as_bytes(), name.as_bytes(), record] {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for SignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignKey(…)")
    }
}

/// The configuration of a remote. Credentials of clouds are no part of it: they come from the environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`, an absolute path, or `http(s)://…`, which is only read.
    pub url: String,
    /// Signs written records; records without its signature are ignored.
    pub sign_key: Option<SignKey>,
    /// If set, nothing is written to it.
    pub read_only: bool,
    /// The server of an S3-compatible store (`https://host:port`), where it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// If set, connections without encryption are allowed.
    pub allow_http: bool,
    /// The time without an answer after which a run continues without the remote.
    pub timeout: Duration,
    /// The longest wait for unfinished uploads at the end of a run.
    pub upload_time: Duration,
}

impl RemoteSettings {
    /// The default settings for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            sign_key: None,
            read_only: false,
            endpoint: None,
            region: None,
            allow_http: false,
            timeout: Duration::from_secs(5),
            upload_time: Duration::from_secs(300),
        }
    }

    /// Checks the URL and the endpoint; a relative path is resolved against `base`.
    ///
    /// # Errors
    /// The field and the reason, a fragment that follows its name. It repeats nothing that may be secret.
    pub fn check(&self, base: &Path) -> Result<(), (&'static str, String)> {
        Address::parse(&self.url, base).map_err(|reason| ("url", reason))?;
        match self.endpoint.as_deref().map(|endpoint| Address::parse(endpoint, base)) {
            None => Ok(()),
            Some(Ok(address)) if address.is_web_server() => Ok(()),
            Some(Ok(_)) => Err(("endpoint", "it is not an `https://` URL".to_owned())),
            Some(Err(reason)) => Err(("endpoint", reason)),
        }
    }
}

/// Without the signing key and credentials.
impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Address::parse(&self.url, Path::new("")).map(|address| address.shown());
        f.debug_struct("RemoteSettings")
            .field("url", &url.unwrap_or_default())
            .field("signed", &self.sign_key.is_some())
            .field("read_only", &self.read_only)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
