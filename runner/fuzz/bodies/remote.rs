//! Answers of a remote, whatever the bytes: records under a key, the index, object names.

use cache::{ActionKey, MemoKey};
use cache_remote::untrusted;

/// Reads bytes as each of them.
pub(crate) fn check(bytes: &[u8]) {
    let _ = untrusted::action(bytes, ActionKey::from_bytes([0; 32]));
    let _ = untrusted::memo(bytes, MemoKey::from_bytes([0; 32]));
    let _ = untrusted::signed(bytes, ActionKey::from_bytes([0; 32]));
    let _ = untrusted::keys(bytes);
    let _ = cache::untrusted::remote_index(bytes);
    // With the checksum that belongs to it, more is reached than the comparison of checksums.
    let json = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let checksum = cache::BlobRef::of(json).blob.to_hex();
    let record = [json, b"\n", checksum.as_bytes(), b"\n"].concat();
    let _ = untrusted::action(&record, ActionKey::from_bytes([0; 32]));
    let _ = untrusted::memo(&record, MemoKey::from_bytes([0; 32]));
    let _ = cache::untrusted::remote_index(&record);
    if let Ok(name) = std::str::from_utf8(bytes) {
        for folder in ["blobs", "actions", "memos"] {
            // An object of the layout is named by 64 digits.
            let id = untrusted::object_name(folder, name);
            assert!(id.is_none_or(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        }
    }
}
