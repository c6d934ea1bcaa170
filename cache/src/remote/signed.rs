//! Records as a remote has them: the bytes of the local file, and a line that signs them.

use super::settings::SignKey;
use crate::record::{StoredAction, StoredMemo};
use crate::{ActionKey, BlobDigest, MemoKey, sealed};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// What begins the third line.
const SIGNATURE: &str = "signature ";

/// The longest record that is read, in bytes.
pub(crate) const LONGEST: u64 = 64 << 20;

/// No record names more than this, in bytes (a pebibyte).
const LARGEST: u64 = 1 << 50;

/// What a remote's record is.
#[derive(Debug, PartialEq)]
pub(crate) enum Signed<T> {
    /// One that may be used.
    Intact(T),
    /// Not what was written.
    Damaged,
    /// Without the signature that was asked for.
    Unsigned,
    /// With a wrong one.
    Forged,
}

/// What is written for a record whose local file holds `sealed`.
pub(crate) fn write(sealed: &[u8], folder: &str, name: &str, key: Option<&SignKey>) -> Vec<u8> {
    let mut bytes = sealed.to_vec();
    if let Some(key) = key {
        bytes.extend_from_slice(format!("{SIGNATURE}{}\n", key.sign(folder, name, sealed).to_hex()).as_bytes());
    }
    bytes
}

/// Reads a record that has the key `name`. Whatever the bytes are, this neither fails nor reads anything else.
fn read<T: DeserializeOwned>(bytes: &[u8], folder: &str, name: &str, key: Option<&SignKey>) -> Signed<T> {
    let (sealed, signature) = split(bytes);
    if let Some(key) = key {
        let Some(signature) = signature else {
            return Signed::Unsigned;
        };
        // Compared in constant time.
        if blake3::Hash::from_hex(signature).ok() != Some(key.sign(folder, name, sealed)) {
            return Signed::Forged;
        }
    }
    sealed::open(sealed).map_or(Signed::Damaged, Signed::Intact)
}

/// Reads the record of an action from a remote.
pub(crate) fn action(bytes: &[u8], key: ActionKey, sign: Option<&SignKey>) -> Signed<StoredAction> {
    checked(read(bytes, "actions", &key.to_hex(), sign), |stored: &StoredAction| {
        stored.record.key == key && is_sensible(stored)
    })
}

/// Reads the record of a memo from a remote.
pub(crate) fn memo(bytes: &[u8], key: MemoKey, sign: Option<&SignKey>) -> Signed<StoredMemo> {
    checked(read(bytes, "memos", &key.to_hex(), sign), |stored: &StoredMemo| {
        stored.key == key && stored.value.size <= LARGEST
    })
}

/// Whether a remote's bytes are a record of an action that may be used.
pub(crate) fn reads_action(bytes: &[u8], key: ActionKey) -> bool {
    matches!(action(bytes, key, None), Signed::Intact(_))
}

/// Likewise, of a memo.
pub(crate) fn reads_memo(bytes: &[u8], key: MemoKey) -> bool {
    matches!(memo(bytes, key, None), Signed::Intact(_))
}

fn checked<T>(found: Signed<T>, is_right: impl Fn(&T) -> bool) -> Signed<T> {
    match found {
        Signed::Intact(record) if !is_right(&record) => Signed::Damaged,
        found => found,
    }
}

/// Whether a record is one that a run could have written: what others make of it may rest on that. Its blobs are named by
/// digest alone; paths stand only in manifests, which are checked where they are read.
fn is_sensible(stored: &StoredAction) -> bool {
    let record = &stored.record;
    let blobs: BTreeSet<BlobDigest> = stored.blobs.iter().map(|(blob, _)| *blob).collect();
    let total = stored
        .blobs()
        .chain(record.log)
        .try_fold(0_u64, |sum, blob| sum.checked_add(blob.size));
    let is_plain = |text: &str| text.len() <= 4096 && !text.contains(char::is_control);
    let is_plain_value = |value: &Value| value.as_str().is_none_or(is_plain);
    total.is_some_and(|total| total <= LARGEST)
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

    fn sealed(value: &Value) -> Vec<u8> {
        sealed::text(value).unwrap().into_bytes()
    }

    #[test]
    fn signatures() {
        let value = serde_json::json!({"a": 1});
        let (mine, other) = (key("mine\n"), key("other"));
        assert_eq!(mine, key("  mine"));
        assert!(SignKey::new(b" \n").is_none());
        let signed = write(&sealed(&value), "actions", "k", Some(&mine));
        let plain = write(&sealed(&value), "actions", "k", None);
        let read = |bytes: &[u8], name: &str, key: Option<&SignKey>| read::<Value>(bytes, "actions", name, key);
        assert_eq!(read(&signed, "k", Some(&mine)), Signed::Intact(value.clone()));
        assert_eq!(read(&signed, "k", None), Signed::Intact(value.clone()));
        assert_eq!(read(&plain, "k", None), Signed::Intact(value));
        assert_eq!(read(&plain, "k", Some(&mine)), Signed::Unsigned);
        assert_eq!(read(&signed, "k", Some(&other)), Signed::Forged);
        assert_eq!(
            read(&signed, "another", Some(&mine)),
            Signed::Forged,
            "moved to another key"
        );
        assert!(!format!("{mine:?}").contains(char::is_numeric));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), signed in any::<bool>()) {
            let sign = key("k");
            let sign = signed.then_some(&sign);
            prop_assert!(!matches!(action(&bytes, ActionKey::from_bytes([1; 32]), sign), Signed::Intact(_)));
            prop_assert!(!matches!(memo(&bytes, MemoKey::from_bytes([1; 32]), sign), Signed::Intact(_)));
        }

        #[test]
        fn any_sealed_json_is_read_without_harm(text in r#"[{}\[\]":,a-z0-9. -]{0,60}"#, size in any::<u64>(), seconds in any::<f64>()) {
            let id = ActionKey::from_bytes([1; 32]);
            for json in [text, format!(
                r#"{{"record":{{"key":"{id}","recipe":null,"outputs":{{}},"log":null,"seconds":{seconds:e},"peak_memory":null,"numerics_class":"","program":""}},"blobs":[["{id}",{size}],["{id}",{size}]]}}"#
            )] {
                let bytes = format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex());
                if let Signed::Intact(found) = action(bytes.as_bytes(), id, None) {
                    prop_assert!(found.blobs().all(|blob| blob.size <= LARGEST) && found.record.seconds >= 0.0);
                    prop_assert!(!matches!(action(bytes.as_bytes(), ActionKey::from_bytes([2; 32]), None), Signed::Intact(_)));
                }
            }
        }

        #[test]
        fn a_changed_byte_is_found(text in "[a-z ]{0,40}", at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let value = Value::String(text);
            let mut bytes = write(&sealed(&value), "memos", "k", Some(&key("k")));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let found = read::<Value>(&bytes, "memos", "k", Some(&key("k")));
            // A digit of a checksum or signature may change its case and mean the same.
            prop_assert!(found == Signed::Intact(value) || !matches!(found, Signed::Intact(_)));
        }
    }
}
