//! A record of any bytes is believed only with its checksum.

use cache::untrusted;

/// Reads bytes as a record; then their beginning with the checksum that belongs to it, so that more is
/// reached than the comparison of checksums.
pub(crate) fn check(bytes: &[u8]) {
    if untrusted::action_record(bytes) || untrusted::memo_record(bytes) {
        let mut changed = bytes.to_vec();
        changed[0] ^= 1;
        assert!(!untrusted::action_record(&changed) && !untrusted::memo_record(&changed));
    }
    let json = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let checksum = cache::BlobRef::of(json).blob.to_hex();
    let sealed = [json, b"\n", checksum.as_bytes(), b"\n"].concat();
    let _ = untrusted::action_record(&sealed);
    let _ = untrusted::memo_record(&sealed);
}
