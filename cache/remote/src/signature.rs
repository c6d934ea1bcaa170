//! Records in a remote: the bytes of the local file, followed by a line with their signature.
//!
//! ```text
//! signature ssh-ed25519 AAAA… BASE64
//! ```
//!
//! The line names the signer's public key, so that a reader with several trusted keys verifies only one
//! signature. The signature covers the digest of the folder, the key of the record and its bytes: a record
//! that was changed, or moved to another key, has a wrong signature.

use crate::keys::PublicKey;
use crate::object_name::{DOCUMENTS, document_hex};
use crate::settings::RemoteSettings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cache::{ActionKey, BlobDigest, MemoKey, StoredAction, StoredMemo, checksummed};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// The prefix of the third line of a record.
const SIGNATURE: &str = "signature ";

/// The domain of signatures: no other use of a key signs a message that starts with it.
const DOMAIN: &[u8] = b"runner 2026-11 remote record v2\0";

/// The maximum length of a record that is read, in bytes.
pub(crate) const MAX_LEN: u64 = 64 << 20;

/// The maximum total size of the blobs of a record, in bytes (a pebibyte).
const MAX_TOTAL: u64 = 1 << 50;

/// The reason why a record is not used.
#[derive(Debug, PartialEq)]
pub(crate) enum Rejection {
    /// The checksum is wrong, or no run could have written the contents.
    Damaged,
    /// The record lacks the required signature.
    Unsigned,
    /// The signature is wrong.
    WrongSignature,
    /// The signature is right, but its key is not trusted.
    UnknownSigner(PublicKey),
}

/// The message that is signed for a record.
fn message(folder: &str, name: &str, record: &[u8]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for field in [folder.as_bytes(), name.as_bytes(), record] {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    [DOMAIN, hasher.finalize().as_bytes()].concat()
}

/// Signs a record: returns its bytes in the remote, where `record` is the contents of its local file.
pub(crate) fn sign(record: &[u8], folder: &str, name: &str, settings: &RemoteSettings) -> Vec<u8> {
    let mut bytes = record.to_vec();
    if let Some(key) = &settings.sign_key
        && let Some(signature) = key.sign(&message(folder, name, record))
    {
        let signature = STANDARD.encode(signature);
        bytes.extend_from_slice(format!("{SIGNATURE}{} {signature}\n", key.public()).as_bytes());
    }
    bytes
}

/// Finds the key that signed a record.
///
/// # Errors
/// [`Rejection::Unsigned`] or [`Rejection::WrongSignature`].
pub(crate) fn signer(bytes: &[u8], folder: &str, name: &str) -> Result<PublicKey, Rejection> {
    let (record, line) = split(bytes);
    let line = line.ok_or(Rejection::Unsigned)?;
    let parts = std::str::from_utf8(line).ok().and_then(|line| line.rsplit_once(' '));
    let (key, signature) = parts.ok_or(Rejection::WrongSignature)?;
    let key = PublicKey::parse(key).map_err(|_| Rejection::WrongSignature)?;
    match STANDARD.decode(signature) {
        Ok(signature) if key.verifies(&message(folder, name, record), &signature) => Ok(key),
        _ => Err(Rejection::WrongSignature),
    }
}

/// Reads the record of the key `name`.
fn read<T: DeserializeOwned>(
    bytes: &[u8],
    folder: &str,
    name: &str,
    settings: &RemoteSettings,
) -> Result<T, Rejection> {
    if !settings.trust_unsigned {
        let signer = signer(bytes, folder, name)?;
        if !settings.trusts(&signer) {
            return Err(Rejection::UnknownSigner(signer));
        }
    }
    checksummed::decode(split(bytes).0).ok_or(Rejection::Damaged)
}

/// Reads the record of an action.
pub(crate) fn action(
    bytes: &[u8],
    key: ActionKey,
    settings: &RemoteSettings,
) -> Result<StoredAction, Rejection> {
    checked(
        read(bytes, "actions", &key.to_hex(), settings),
        |stored: &StoredAction| stored.record.key == key && is_plausible(stored),
    )
}

/// Reads the record of a memo.
pub(crate) fn memo(bytes: &[u8], key: MemoKey, settings: &RemoteSettings) -> Result<StoredMemo, Rejection> {
    checked(read(bytes, "memos", &key.to_hex(), settings), |stored: &StoredMemo| {
        stored.key == key && stored.value.size <= MAX_TOTAL
    })
}

/// Reads the document whose name has this digest, and returns its name and its contents.
pub(crate) fn document(
    bytes: &[u8],
    hex: &str,
    settings: &RemoteSettings,
) -> Result<(String, Value), Rejection> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
        value: Value,
    }
    let Named { name, value } = read(bytes, DOCUMENTS, hex, settings)?;
    match document_hex(&name) == hex {
        true => Ok((name, value)),
        false => Err(Rejection::Damaged),
    }
}

fn checked<T>(record: Result<T, Rejection>, is_right: impl Fn(&T) -> bool) -> Result<T, Rejection> {
    record.and_then(|record| is_right(&record).then_some(record).ok_or(Rejection::Damaged))
}

/// True if a run could have written the record; readers of the record may rely on that. Its blobs are named
/// by digest alone; paths occur only in manifests, which are checked when they are read.
fn is_plausible(stored: &StoredAction) -> bool {
    let record = &stored.record;
    let blobs: BTreeSet<BlobDigest> = stored.blobs.iter().map(|(blob, _)| *blob).collect();
    let total = stored
        .blobs()
        .chain(record.log)
        .try_fold(0_u64, |sum, blob| sum.checked_add(blob.size));
    let is_plain = |text: &str| text.len() <= 4096 && !text.contains(char::is_control);
    let is_plain_value = |value: &Value| value.as_str().is_none_or(is_plain);
    total.is_some_and(|total| total <= MAX_TOTAL)
        && record
            .outputs
            .values()
            .all(|output| blobs.contains(&BlobDigest::from(*output)))
        && record.outputs.keys().all(|name| is_plain(name))
        && record.seconds.is_finite()
        && record.seconds >= 0.0
        && is_plain(&record.numerics_class)
        && is_plain(&record.program)
        && record
            .info
            .iter()
            .all(|(name, value)| is_plain(name) && is_plain_value(value))
}

fn split(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(body) = bytes.strip_suffix(b"\n") else {
        return (bytes, None);
    };
    let start = body.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    match body[start..].strip_prefix(SIGNATURE.as_bytes()) {
        Some(signature) => (&bytes[..start], Some(signature)),
        None => (bytes, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SignKey;
    use proptest::prelude::*;

    fn key(text: &str) -> SignKey {
        SignKey::parse(text.as_bytes()).unwrap()
    }

    fn settings(sign_key: Option<&SignKey>, trusted: &[PublicKey]) -> RemoteSettings {
        RemoteSettings {
            sign_key: sign_key.cloned(),
            trusted_keys: trusted.to_vec(),
            trust_unsigned: sign_key.is_none() && trusted.is_empty(),
            ..RemoteSettings::new("/r")
        }
    }

    fn encoded(value: &Value) -> Vec<u8> {
        checksummed::encode(value).unwrap().into_bytes()
    }

    #[test]
    fn signatures() {
        let value = serde_json::json!({"a": 1});
        let one = key(include_str!("../tests/keys/one"));
        let two = key(include_str!("../tests/keys/two"));
        let anyone = settings(None, &[]);
        let signed = sign(&encoded(&value), "actions", "k", &settings(Some(&one), &[]));
        let plain = sign(&encoded(&value), "actions", "k", &anyone);
        let read = |bytes: &[u8], name: &str, of: &RemoteSettings| read::<Value>(bytes, "actions", name, of);
        let (mine, theirs) = (settings(Some(&one), &[]), settings(Some(&two), &[]));
        let reader = settings(None, &[two.public(), one.public()]);
        for settings in [&mine, &reader, &anyone, &settings(Some(&two), &[one.public()])] {
            assert_eq!(read(&signed, "k", settings), Ok(value.clone()));
        }
        assert_eq!(read(&plain, "k", &anyone), Ok(value.clone()));
        assert_eq!(read(&plain, "k", &reader), Err(Rejection::Unsigned));
        assert_eq!(read(&signed, "k", &theirs), Err(Rejection::UnknownSigner(one.public())));
        // Moved to another key, or among the memos; other bytes under it; the signature of another signer
        // under this one's name.
        assert_eq!(read(&signed, "another", &reader), Err(Rejection::WrongSignature));
        assert_eq!(signer(&signed, "memos", "k"), Err(Rejection::WrongSignature));
        let text = String::from_utf8(signed.clone()).unwrap();
        let (record, line) = text.split_at(text.find(SIGNATURE).unwrap());
        let other = [&encoded(&serde_json::json!({"a": 2})), line.as_bytes()].concat();
        assert_eq!(read(&other, "k", &reader), Err(Rejection::WrongSignature));
        let renamed = text.replace(&one.public().to_string(), &two.public().to_string());
        assert_eq!(read(renamed.as_bytes(), "k", &reader), Err(Rejection::WrongSignature));
        // A signature of earlier versions, by a shared secret.
        let old = format!("{record}{SIGNATURE}{}\n", blake3::hash(b"x").to_hex());
        assert_eq!(read(old.as_bytes(), "k", &reader), Err(Rejection::WrongSignature));
        assert_eq!(
            read(record.as_bytes(), "k", &reader),
            Err(Rejection::Unsigned),
            "stripped"
        );
    }

    #[test]
    fn a_document_is_of_its_name() {
        let one = key(include_str!("../tests/keys/one"));
        let settings = settings(Some(&one), &[]);
        let (desk, book) = (document_hex("desk"), document_hex("book"));
        let value = serde_json::json!({ "versions": [] });
        let named = |name: &str| encoded(&serde_json::json!({ "name": name, "value": value }));
        let signed = |name: &str, hex: &str| sign(&named(name), DOCUMENTS, hex, &settings);
        assert_eq!(
            document(&signed("desk", &desk), &desk, &settings),
            Ok(("desk".to_owned(), value.clone()))
        );
        // Moved to another name, and signed there under its own one.
        assert_eq!(
            document(&signed("desk", &desk), &book, &settings),
            Err(Rejection::WrongSignature)
        );
        assert_eq!(
            document(&signed("desk", &book), &book, &settings),
            Err(Rejection::Damaged)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            signed in any::<bool>(),
        ) {
            let key = key(include_str!("../tests/keys/one"));
            let settings = settings(signed.then_some(&key), &[]);
            prop_assert!(action(&bytes, ActionKey::from_bytes([1; 32]), &settings).is_err());
            prop_assert!(memo(&bytes, MemoKey::from_bytes([1; 32]), &settings).is_err());
        }

        #[test]
        fn any_json_with_a_checksum_is_read_without_harm(
            text in r#"[{}\[\]":,a-z0-9. -]{0,60}"#,
            size in any::<u64>(),
            seconds in any::<f64>(),
        ) {
            let id = ActionKey::from_bytes([1; 32]);
            for json in [text, format!(
                r#"{{"record":{{"key":"{id}","recipe":null,"outputs":{{}},"log":null,"seconds":{seconds:e},"peak_memory":null,"numerics_class":"","program":""}},"blobs":[["{id}",{size}],["{id}",{size}]]}}"#
            )] {
                let bytes = format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex());
                if let Ok(found) = action(bytes.as_bytes(), id, &settings(None, &[])) {
                    prop_assert!(found.blobs().all(|blob| blob.size <= MAX_TOTAL));
                    prop_assert!(found.record.seconds >= 0.0);
                    let other = ActionKey::from_bytes([2; 32]);
                    prop_assert!(action(bytes.as_bytes(), other, &settings(None, &[])).is_err());
                }
            }
        }

        #[test]
        fn a_changed_byte_is_found(
            text in "[a-z ]{0,40}",
            at in any::<prop::sample::Index>(),
            flip in 1u8..=255,
        ) {
            let value = Value::String(text);
            let settings = settings(Some(&key(include_str!("../tests/keys/one"))), &[]);
            let mut bytes = sign(&encoded(&value), "memos", "k", &settings);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = read::<Value>(&bytes, "memos", "k", &settings);
            // A space between two words of the signature may be another white space.
            prop_assert!(found == Ok(value) || found.is_err());
        }
    }
}
