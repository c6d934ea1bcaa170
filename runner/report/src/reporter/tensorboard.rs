//! TensorBoard event files with scalars: records of [TFRecord] around an `Event` of TensorFlow's
//! `event.proto`. Existing crates for them bring an image decoder and a protocol compiler, which these few bytes do not need.
//!
//! [TFRecord]: https://www.tensorflow.org/tutorials/load_data/tfrecord

/// The header of a file.
pub(super) fn header(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// A scalar event. `wall_time` is in seconds since 1970.
pub(super) fn scalar(wall_time: f64, step: u64, tag: &str, value: f32) -> Vec<u8> {
    let mut entry = Vec::new();
    bytes(&mut entry, 1, tag.as_bytes());
    entry.push(2 << 3 | 5);
    entry.extend_from_slice(&value.to_le_bytes());
    let mut summary = Vec::new();
    bytes(&mut summary, 1, &entry);
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    event.push(2 << 3);
    varint(&mut event, step);
    bytes(&mut event, 5, &summary);
    record(&event)
}

fn double(out: &mut Vec<u8>, field: u8, value: f64) {
    out.push(field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Length, its checksum, the data, their checksum.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked(data).to_le_bytes());
    out
}

fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (RFC 3720, appendix B.4), bit by bit: records are short.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ 0x82f6_3b78 & (crc & 1).wrapping_neg();
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // The check value of its catalogue entry, and RFC 3720's example of 32 zeros.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    /// The bytes that tensorboard 2.21 writes for the same events.
    #[test]
    fn bytes_are_tensorboards() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        insta::assert_snapshot!(hex(header(1.5)), @"1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
        insta::assert_snapshot!(hex(scalar(1_700_000_000.25, 300, "charts/SPS", -2.5)), @"2100000000000000017becf60900001040fc54d94110ac022a130a110a0a6368617274732f53505315000020c06805c845");
    }
}
