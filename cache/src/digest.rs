//! Digests and keys, each with its own type, so that they cannot be confused.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Creates a value from raw bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }
            /// The raw bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
            /// Formats the value as 64 lowercase hex digits.
            pub fn to_hex(&self) -> String {
                blake3::Hash::from_bytes(self.0).to_hex().to_string()
            }
            /// Formats the first ten hex digits, for display.
            pub fn short(&self) -> String {
                blake3::Hash::from_bytes(self.0).to_hex()[..10].to_owned()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.to_hex())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.short())
            }
        }
        impl FromStr for $name {
            type Err = blake3::HexError;
            fn from_str(hex: &str) -> Result<Self, Self::Err> {
                Ok(Self(*blake3::Hash::from_hex(hex)?.as_bytes()))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // A text without escapes is borrowed from the input.
                let hex = Hex::deserialize(deserializer)?;
                hex.0.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

#[derive(Deserialize)]
struct Hex<'a>(#[serde(borrow)] Cow<'a, str>);

id_type!(
    /// The BLAKE3 digest of a blob's bytes.
    BlobDigest
);
id_type!(
    /// The digest of an artifact's canonical manifest, which is stored as a blob of the same digest.
    ArtifactDigest
);
id_type!(
    /// The digest of everything that an action's result depends on.
    ActionKey
);
id_type!(
    /// The digest of everything that a sub-computation's result depends on.
    MemoKey
);

impl From<ArtifactDigest> for BlobDigest {
    fn from(digest: ArtifactDigest) -> Self {
        Self(digest.0)
    }
}

/// Hashes a sequence of fields, each preceded by its length, under a domain: different sequences never hash
/// the same bytes.
pub struct KeyHasher {
    domain: &'static str,
    /// The encoded fields. Keys are short, and a [`blake3::Hasher`] of two kilobytes would be moved with each
    /// field.
    bytes: Vec<u8>,
}

impl KeyHasher {
    /// Starts a key. `domain` names the kind of key and its version, such as `runner 2026-11 action v1`.
    pub fn new(domain: &'static str) -> Self {
        Self {
            domain,
            bytes: Vec::with_capacity(256),
        }
    }

    /// Adds one field.
    #[must_use]
    pub fn field(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.bytes.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// The key of an action.
    pub fn action_key(self) -> ActionKey {
        ActionKey(blake3::derive_key(self.domain, &self.bytes))
    }

    /// The key of a memo.
    pub fn memo_key(self) -> MemoKey {
        MemoKey(blake3::derive_key(self.domain, &self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_key_is_pinned() {
        // A change here invalidates every cache: raise the domain's version if that is intended.
        let key = KeyHasher::new("runner 2026-11 action v1")
            .field("greeks/analytic")
            .field(1u32.to_le_bytes())
            .field(r#"{"model":"black_scholes_merton"}"#)
            .field([7; 32])
            .action_key();
        insta::assert_snapshot!(key, @"d680997ff619cf120499460cda839736faa9572c30c9c77f857dd961f4f39a92");
    }

    #[test]
    fn fields_do_not_run_together() {
        let key = |fields: &[&str]| {
            fields
                .iter()
                .fold(KeyHasher::new("test v1"), |hasher, field| hasher.field(field))
                .memo_key()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab"]), key(&["ab", ""]));
        assert_ne!(
            KeyHasher::new("test v1").memo_key(),
            KeyHasher::new("test v2").memo_key()
        );
    }

    #[test]
    fn hex_reads_back() {
        let digest = BlobDigest::from_bytes(*blake3::hash(b"x").as_bytes());
        assert_eq!(digest.to_hex().parse::<BlobDigest>().unwrap(), digest);
        assert_eq!(digest.to_hex().to_uppercase().parse::<BlobDigest>().unwrap(), digest);
        for wrong in [
            "xyz",
            &digest.to_hex()[1..],
            &digest.to_hex().replace('0', "g"),
            &format!("{digest}00"),
        ] {
            assert!(wrong.parse::<BlobDigest>().is_err(), "{wrong}");
        }
        assert_eq!(digest.short(), digest.to_hex()[..10]);
        assert_eq!(
            serde_json::from_str::<BlobDigest>(&serde_json::to_string(&digest).unwrap()).unwrap(),
            digest
        );
    }
}
