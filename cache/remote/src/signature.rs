//! Records in a remote: the bytes of the local file, followed by a line with their signature.

use crate::settings::SignKey;
use cache::{ActionKey, BlobDigest, MemoKey, StoredAction, StoredMemo, checksummed};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// The prefix of the third line.
const SIGNATURE: &str = "signature ";

/// The longest record that is read, in bytes.
pub(crate) const MAX_LEN: u64 = 64 << 20;

/// The largest total size of the blobs of a record, in bytes (a pebibyte).
const MAX_TOTAL: u64 = 1 << 50;

/// The reason why a record is not used.
#[derive(Debug, PartialEq)]
pub(crate) enum Rejection {
    /// The checksum is wrong, or no run could have written the contents.
    Damaged,
    /// It lacks the required signature.
    Unsigned,
    /// The signature is wrong.
    WrongSignature,
}

/// The bytes in a remote of a record whose local file holds `record`.
pub(crate) fn sign(record: &[u8], folder: &str, name: &str, key: Option<&SignKey>) -> Vec<u8> {
    let mut bytes = record.to_vec();
    if let Some(key) = key {
        bytes.extend_from_slice(format!("{SIGNATURE}{}\n", key.sign(folder, name, record).to_hex()).as_bytes());
    }
    bytes
}

/// Reads the record of the key `name`.
fn read<T: DeserializeOwned>(bytes: &[u8], folder: &str, name: &str, key: Option<&SignKey>) -> Result<T, Rejection> {
    let (record, signature) = split(bytes);
    if let Some(key) = key {
        let Some(signature) = signature else {
            return Err(Rejection::Unsigned);
        };
        // `blake3::Hash` compares in constant time.
        if blake3::Hash::from_hex(signature).ok() != Some(key.sign(folder, name, record)) {
            return Err(Rejection::WrongSignature);
        }
    }
    checksummed::decode(record).ok_or(Rejection::Damaged)
}

/// Reads the record of an action.
pub(crate) fn action(bytes: &[u8], key: ActionKey, sign: Option<&SignKey>) -> Result<StoredAction, Rejection> {
    checked(read(bytes, "actions", &key.to_hex(), sign), |stored: &StoredAction| {
        stored.record.key == key && is_plausible(stored)
    })
}

/// Reads the record of a memo.
pub(crate) fn memo(bytes: &[u8], key: MemoKey, sign: Option<&SignKey>) -> Result<StoredMemo, Rejection> {
    checked(read(bytes, "memos", &key.to_hex(), sign), |stored: &StoredMemo| {
        stored.key == key && stored.value.size <= MAX_TOTAL
    })
}

fn checked<T>(record: Result<T, Rejection>, is_right: impl Fn(&T) -> bool) -> Result<T, Rejection> {
    record.and_then(|record| is_right(&record).then_some(record).ok_or(Rejection::Damaged))
}

/// True if a run could have written the record: its readers may rely on that. Its blobs are named by digest alone; paths
/// occur only in manifests, which are checked where they are read.
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
    use proptest::prelude::*;

    fn key(secret: &str) -> SignKey {
        SignKey::new(secret.as_bytes()).unwrap()
    }

    fn encoded(value: &Value) -> Vec<u8> {
        checksummed::encode(value).unwrap().into_bytes()
    }

    #[test]
    fn signatures() {
        let value = serde_json::json!({"a": 1});
        let (mine, other) = (key("mine\n"), key("other"));
        assert_eq!(mine, key("  mine"));
        assert!(SignKey::new(b" \n").is_none());
        let signed = sign(&encoded(&value), "actions", "k", Some(&mine));
        let plain = sign(&encoded(&value), "actions", "k", None);
        let read = |bytes: &[u8], name: &str, key: Option<&SignKey>| read::<Value>(bytes, "actions", name, key);
        assert_eq!(read(&signed, "k", Some(&mine)), Ok(value.clone()));
        assert_eq!(read(&signed, "k", None), Ok(value.clone()));
        assert_eq!(read(&plain, "k", None), Ok(value));
        assert_eq!(read(&plain, "k", Some(&mine)), Err(Rejection::Unsigned));
        assert_eq!(read(&signed, "k", Some(&other)), Err(Rejection::WrongSignature));
        assert_eq!(
            read(&signed, "another", Some(&mine)),
            Err(Rejection::WrongSignature),
            "moved to another key"
        );
        assert!(!format!("{mine:?}").contains(char::is_numeric));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), signed in any::<bool>()) {
            let sign = key("k");
            let sign = signed.then_some(&sign);
            prop_assert!(action(&bytes, ActionKey::from_bytes([1; 32]), sign).is_err());
            prop_assert!(memo(&bytes, MemoKey::from_bytes([1; 32]), sign).is_err());
        }

        #[test]
        fn any_json_with_a_checksum_is_read_without_harm(text in r#"[{}\[\]":,a-z0-9. -]{0,60}"#, size in any::<u64>(), seconds in any::<f64>()) {
            let id = ActionKey::from_bytes([1; 32]);
            for json in [text, format!(
                r#"{{"record":{{"key":"{id}","recipe":null,"outputs":{{}},"log":null,"seconds":{seconds:e},"peak_memory":null,"numerics_class":"","program":""}},"blobs":[["{id}",{size}],["{id}",{size}]]}}"#
            )] {
                let bytes = format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex());
                if let Ok(found) = action(bytes.as_bytes(), id, None) {
                    prop_assert!(found.blobs().all(|blob| blob.size <= MAX_TOTAL) && found.record.seconds >= 0.0);
                    prop_assert!(action(bytes.as_bytes(), ActionKey::from_bytes([2; 32]), None).is_err());
                }
            }
        }

        #[test]
        fn a_changed_byte_is_found(text in "[a-z ]{0,40}", at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let value = Value::String(text);
            let mut bytes = sign(&encoded(&value), "memos", "k", Some(&key("k")));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = read::<Value>(&bytes, "memos", "k", Some(&key("k")));
            // A digit of a checksum or signature may change its case and mean the same.
            prop_assert!(found == Ok(value) || found.is_err());
        }
    }
}
