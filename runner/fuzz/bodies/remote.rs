//! What a remote answers, whatever bytes it is: records under a key, its index, names of files.

use cache::{ActionKey, MemoKey, untrusted};

/// Reads bytes as each of them.
pub fn check(bytes: &[u8]) {
    let _ = untrusted::remote_action(bytes, ActionKey::from_bytes([0; 32]));
    let _ = untrusted::remote_memo(bytes, MemoKey::from_bytes([0; 32]));
    let _ = untrusted::remote_index(bytes);
    // With the checksum that belongs to it, more is reached than the comparison of checksums.
    let json = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let checksum = cache::BlobRef::of(json).blob.to_hex();
    let sealed = [json, b"\n", checksum.as_bytes(), b"\n"].concat();
    let _ = untrusted::remote_action(&sealed, ActionKey::from_bytes([0; 32]));
    let _ = untrusted::remote_memo(&sealed, MemoKey::from_bytes([0; 32]));
    let _ = untrusted::remote_index(&sealed);
    if let Ok(name) = std::str::from_utf8(bytes) {
        for folder in ["blobs", "actions", "memos"] {
            // What it lists is named by 64 digits, or is nothing.
            let id = untrusted::remote_name(folder, name);
            assert!(id.is_none_or(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        }
    }
}
