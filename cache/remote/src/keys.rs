//! Ed25519 keys that sign records, in the formats of OpenSSH: `ssh-keygen -t ed25519` creates them.
//!
//! A public key is the line of a `.pub` file, `ssh-ed25519 AAAA… comment`; a private key is an OpenSSH key
//! file without a passphrase (its format is specified in OpenSSH's `PROTOCOL.key`). Messages never quote a
//! key: the user may have written a private key in place of a public one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of the algorithm.
const ALGORITHM: &str = "ssh-ed25519";

const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

const NOT_PUBLIC: &str = "is not a public key of the form `ssh-ed25519 AAAA… name`";
const NOT_PRIVATE: &str = "is not an OpenSSH private key";
const OTHER_ALGORITHM: &str = "is not an Ed25519 key";

/// A public key, which verifies signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Parses a line of the form `ssh-ed25519 AAAA… comment`.
    ///
    /// # Errors
    /// The reason, a fragment that follows the location of the key in a message.
    pub fn parse(line: &str) -> Result<Self, &'static str> {
        let mut words = line.split_whitespace();
        match words.next() {
            Some(ALGORITHM) => {}
            Some(other)
                if other.starts_with("ssh-") || other.starts_with("ecdsa-") || other.starts_with("sk-") =>
            {
                return Err(OTHER_ALGORITHM);
            }
            _ => return Err(NOT_PUBLIC),
        }
        let bytes = words
            .next()
            .and_then(|text| STANDARD.decode(text).ok())
            .ok_or(NOT_PUBLIC)?;
        Self::from_wire(&bytes).ok_or(NOT_PUBLIC)
    }

    /// Parses the keys in the lines of a file; empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// The line's number and the reason.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>, (usize, &'static str)> {
        let is_key = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
        let lines = text.lines().map(str::trim).enumerate().filter(is_key);
        lines
            .map(|(i, line)| Self::parse(line).map_err(|reason| (i + 1, reason)))
            .collect()
    }

    fn from_wire(bytes: &[u8]) -> Option<Self> {
        let mut wire = Wire(bytes);
        let is_ours = wire.string()? == ALGORITHM.as_bytes();
        let key = wire.string()?.try_into().ok()?;
        (is_ours && wire.0.is_empty()).then_some(Self(key))
    }

    fn to_wire(self) -> Vec<u8> {
        let mut wire = Vec::with_capacity(51);
        for field in [ALGORITHM.as_bytes(), &self.0] {
            wire.extend_from_slice(&(field.len() as u32).to_be_bytes());
            wire.extend_from_slice(field);
        }
        wire
    }

    /// The key's fingerprint as `ssh-keygen -l` shows it: `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, &self.to_wire())))
    }

    /// True if the signature of the message was made with this key.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(message, signature)
            .is_ok()
    }
}

/// Formats the key as the line of a `.pub` file, without a comment.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM} {}", STANDARD.encode(self.to_wire()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

/// A private key, which signs records.
#[derive(Clone, PartialEq, Eq)]
pub struct SignKey {
    seed: [u8; 32],
    public: PublicKey,
}

impl SignKey {
    /// Parses an OpenSSH key file without a passphrase.
    ///
    /// # Errors
    /// The reason, a fragment that follows the location of the key in a message.
    pub fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| NOT_PRIVATE)?;
        let body = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.split_once(END));
        let (body, _) = body.ok_or(NOT_PRIVATE)?;
        let body: String = body.split_whitespace().collect();
        let bytes = STANDARD.decode(body).map_err(|_| NOT_PRIVATE)?;
        Self::from_file(&bytes).ok_or(NOT_PRIVATE)?
    }

    /// Parses the decoded contents of a key file; `None` if the structure is wrong.
    fn from_file(bytes: &[u8]) -> Option<Result<Self, &'static str>> {
        let mut wire = Wire(bytes.strip_prefix(b"openssh-key-v1\0")?);
        if wire.string()? != b"none" {
            return Some(Err("has a passphrase"));
        }
        let (_kdf, _options, count) = (wire.string()?, wire.string()?, wire.number()?);
        let _public = wire.string()?;
        let mut private = Wire(wire.string()?);
        if count != 1 || private.number()? != private.number()? {
            return None;
        }
        if private.string()? != ALGORITHM.as_bytes() {
            return Some(Err(OTHER_ALGORITHM));
        }
        let public = private.string()?;
        let seed = private.string()?.first_chunk::<32>()?;
        let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).ok()?;
        let public = PublicKey(pair.public_key().as_ref().try_into().ok()?);
        Some(Ok(Self { seed: *seed, public }))
    }

    /// The public key, which readers list as trusted.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a message; `None` only if the key is invalid, which [`SignKey::parse`] rules out.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let pair = Ed25519KeyPair::from_seed_and_public_key(&self.seed, &self.public.0).ok()?;
        pair.sign(message).as_ref().try_into().ok()
    }
}

impl fmt::Debug for SignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignKey({:?})", self.public)
    }
}

/// Reads the binary encoding of SSH: numbers of four bytes, and strings preceded by their length.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (string, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = include_str!("../tests/keys/one");
    const ONE_PUB: &str = include_str!("../tests/keys/one.pub");
    const TWO_PUB: &str = include_str!("../tests/keys/two.pub");

    #[test]
    fn keys_of_ssh_keygen() {
        let key = SignKey::parse(ONE.as_bytes()).unwrap();
        let (one, two) = (PublicKey::parse(ONE_PUB).unwrap(), PublicKey::parse(TWO_PUB).unwrap());
        assert_eq!(key.public(), one);
        assert_eq!(format!("{one} ci@example.com\n"), ONE_PUB);
        // As `ssh-keygen -l` shows it.
        assert_eq!(one.fingerprint(), "SHA256:zBCQdIBM2XkIe2tbxeQZ7SaGnKfM7iU7uJts+eu3EgM");
        let signature = key.sign(b"message").unwrap();
        assert!(one.verifies(b"message", &signature));
        assert!(!one.verifies(b"massage", &signature) && !two.verifies(b"message", &signature));
        assert!(!format!("{key:?}").contains(&STANDARD.encode(key.seed)[..10]));
        let file = format!("# signers\n\n{ONE_PUB}{TWO_PUB}");
        assert_eq!(PublicKey::parse_lines(&file), Ok(vec![one, two]));
        assert_eq!(PublicKey::parse_lines(&format!("{ONE_PUB}x\n")), Err((2, NOT_PUBLIC)));
    }

    #[test]
    fn other_keys_are_refused() {
        let private = |text: &str| SignKey::parse(text.as_bytes()).unwrap_err();
        assert_eq!(private(include_str!("../tests/keys/passphrase")), "has a passphrase");
        assert_eq!(private(include_str!("../tests/keys/ecdsa")), OTHER_ALGORITHM);
        for text in ["", "hard to guess", ONE_PUB, BEGIN, &ONE.replace("AAAA", "AAAB")] {
            assert_eq!(private(text), NOT_PRIVATE);
        }
        let public = |text: &str| PublicKey::parse(text).unwrap_err();
        assert_eq!(public(include_str!("../tests/keys/ecdsa.pub")), OTHER_ALGORITHM);
        for text in ["", "ssh-ed25519", "ssh-ed25519 AAAA", "hard to guess", ONE] {
            assert_eq!(public(text), NOT_PUBLIC);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_key_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            flip in 1u8..=255,
        ) {
            prop_assert!(SignKey::parse(&bytes).is_err());
            prop_assert!(PublicKey::from_wire(&bytes).is_none());
            let base64: String = ONE.lines().filter(|line| !line.starts_with('-')).collect();
            let mut file = STANDARD.decode(base64).unwrap();
            let at = at.index(file.len());
            file[at] ^= flip;
            // The comment, the padding, the first copy of the public key and the names of unused fields may
            // differ.
            if let Some(Ok(key)) = SignKey::from_file(&file) {
                prop_assert_eq!(key.public(), PublicKey::parse(ONE_PUB).unwrap());
            }
        }
    }
}
