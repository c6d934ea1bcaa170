//! The configuration of a remote.

use crate::address::Address;
use crate::keys::{PublicKey, SignKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The reason why a remote is not used: its records could come from anyone who can write to the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// Records are written without a signature.
    NoSignKey,
    /// No key is trusted to have signed the records that are read.
    NoTrustedKeys,
    /// Keys are listed although records without a signature are accepted.
    Contradiction,
}

impl Untrusted {
    /// A hint on how to fix the configuration.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoSignKey => {
                "`ssh-keygen -t ed25519 -N '' -f sign.key` makes a key, which `sign_key_file: sign.key` \
                 names; or write \
                 `read_only: true`; or `trust: unsigned`, if everyone who can write to it may run programs \
                 as you"
            }
            Self::NoTrustedKeys => {
                "list the public keys of its writers, `trusted_keys: [ssh-ed25519 AAAA…]`, or a file of \
                 them; or write `trust: unsigned`, \
                 if everyone who can write to it may run programs as you"
            }
            Self::Contradiction => "keep one of `trusted_keys` and `trust: unsigned`",
        }
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSignKey => "the remote is written to, and no key signs what is written",
            Self::NoTrustedKeys => "the remote is read, and no key is trusted to have signed what is read",
            Self::Contradiction => "the remote has trusted keys, and accepts records without a signature",
        })
    }
}

/// The configuration of a remote. Credentials of clouds are not part of it: they come from the environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`, an absolute path, or `http(s)://…`,
    /// which is only read.
    pub url: String,
    /// Signs the records that are written; its public key is trusted like one of `trusted_keys`. Worker
    /// processes do not receive this key.
    #[serde(skip)]
    pub sign_key: Option<SignKey>,
    /// The keys whose signed records are used.
    pub trusted_keys: Vec<PublicKey>,
    /// If set, records are used whoever wrote them, with or without a signature.
    pub trust_unsigned: bool,
    /// If set, nothing is written to the remote.
    pub read_only: bool,
    /// The endpoint of an S3-compatible store (`https://host:port`), if it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// If set, connections without encryption are allowed.
    pub allow_http: bool,
    /// The time without an answer after which a run continues without the remote.
    pub timeout: Duration,
    /// The maximum wait for unfinished uploads at the end of a run.
    pub upload_time: Duration,
}

impl RemoteSettings {
    /// Creates the default settings for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            sign_key: None,
            trusted_keys: Vec::new(),
            trust_unsigned: false,
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
    /// The field, and the reason as a fragment that follows the field's name. The reason repeats nothing that
    /// may be secret.
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

impl RemoteSettings {
    /// Checks that the keys suffice.
    ///
    /// # Errors
    /// When records written by anyone would be used, or records would be written without a signature, and
    /// `trust_unsigned` is not set; or when keys are trusted although `trust_unsigned` is set.
    pub fn check_trust(&self) -> Result<(), Untrusted> {
        let is_written = !self.read_only
            && !Address::parse(&self.url, Path::new("/")).is_ok_and(|url| url.is_web_server());
        match (self.trust_unsigned, &self.sign_key) {
            (true, _) if !self.trusted_keys.is_empty() => Err(Untrusted::Contradiction),
            (false, None) if is_written => Err(Untrusted::NoSignKey),
            (false, None) if self.trusted_keys.is_empty() => Err(Untrusted::NoTrustedKeys),
            _ => Ok(()),
        }
    }

    /// True if records signed by this key are used.
    pub(crate) fn trusts(&self, key: &PublicKey) -> bool {
        self.trust_unsigned || self.trusted_keys.contains(key) || self.is_own(key)
    }

    /// True if this key is the one that signs records here.
    pub(crate) fn is_own(&self, key: &PublicKey) -> bool {
        self.sign_key.as_ref().is_some_and(|own| own.public() == *key)
    }
}

/// Formats the settings without the signing key and credentials.
impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Address::parse(&self.url, Path::new("")).map(|address| address.shown());
        f.debug_struct("RemoteSettings")
            .field("url", &url.unwrap_or_default())
            .field("sign_key", &self.sign_key)
            .field("trusted_keys", &self.trusted_keys)
            .field("trust_unsigned", &self.trust_unsigned)
            .field("read_only", &self.read_only)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
