//! Records as a remote has them: the bytes of the local file, and a line that signs them.

use super::settings::SignKey;
use crate::sealed;
use serde::de::DeserializeOwned;

/// What begins the third line.
const SIGNATURE: &str = "signature ";

/// The longest record that is read, in bytes.
pub(crate) const LONGEST: u64 = 64 << 20;

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
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], folder: &str, name: &str, key: Option<&SignKey>) -> Signed<T> {
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
    use serde_json::Value;

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
        assert_eq!(read(&signed, "another", Some(&mine)), Signed::Forged, "moved to another key");
        assert!(!format!("{mine:?}").contains(char::is_numeric));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), signed in any::<bool>()) {
            let key = key("k");
            let key = signed.then_some(&key);
            let found = read::<crate::record::StoredAction>(&bytes, "actions", "k", key);
            prop_assert!(!matches!(found, Signed::Intact(_)));
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
