//! What a remote is opened with.

use super::address::Address;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A secret that signs records, so that nobody without it can put one into a shared remote unnoticed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignKey([u8; 32]);

impl SignKey {
    /// The key that a secret text stands for; spaces and line ends around it do not count. `None` for an empty one.
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

/// What a remote is opened with. Credentials of clouds are no part of it: they come from the environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///folder`, an absolute path, or `http(s)://…`, which is only read.
    pub url: String,
    /// Signs what is written, and makes what is not signed with it be ignored.
    pub sign_key: Option<SignKey>,
    /// Writes nothing to it.
    pub read_only: bool,
    /// The server of an S3-compatible store (`https://host:port`), where it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// Whether the server may be spoken to without encryption.
    pub allow_http: bool,
    /// How long a remote may fail to answer before a run goes on without it.
    pub timeout: Duration,
    /// How long a run waits at its end for what is still to be uploaded.
    pub upload_time: Duration,
}

impl RemoteSettings {
    /// The usual settings for a URL.
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

    /// Checks the URL and the endpoint; `base` is what a relative path is relative to.
    ///
    /// # Errors
    /// What is wrong, as a fragment that follows the name of the field. It repeats nothing that may be secret.
    pub fn check(&self, base: &Path) -> Result<(), (&'static str, String)> {
        Address::parse(&self.url, base).map_err(|reason| ("url", reason))?;
        match self.endpoint.as_deref().map(|endpoint| Address::parse(endpoint, base)) {
            None | Some(Ok(Address::Http(_))) => Ok(()),
            Some(Ok(_)) => Err(("endpoint", "it is no `https://` URL".to_owned())),
            Some(Err(reason)) => Err(("endpoint", reason)),
        }
    }
}

/// Shows no password.
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
