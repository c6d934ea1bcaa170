//! TensorBoard event files with scalars and hyperparameters: records of [TFRecord] around an `Event` of
//! TensorFlow's `event.proto`. Existing crates for them bring an image decoder and a protocol compiler, which
//! these few bytes do not need.
//!
//! Hyperparameters are in the format of TensorBoard's plugin [HParams]: a session begins with them and ends
//! with a status.
//!
//! [TFRecord]: https://www.tensorflow.org/tutorials/load_data/tfrecord
//! [HParams]: https://github.com/tensorflow/tensorboard/blob/master/tensorboard/plugins/hparams/plugin_data.proto

use serde_json::Value;
use std::collections::BTreeMap;

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

/// The start of a session with its hyperparameters. Numbers, texts and switches keep their types; others are
/// texts of JSON.
pub(super) fn session_start(wall_time: f64, hparams: &BTreeMap<String, Value>) -> Vec<u8> {
    let mut info = Vec::new();
    for (name, value) in hparams {
        let mut encoded = Vec::new();
        match value {
            Value::Bool(value) => encoded.extend([4 << 3, u8::from(*value)]),
            Value::Number(value) => double(&mut encoded, 2, value.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => bytes(&mut encoded, 3, text.as_bytes()),
            other => bytes(&mut encoded, 3, other.to_string().as_bytes()),
        }
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &encoded);
        bytes(&mut info, 1, &entry);
    }
    double(&mut info, 5, wall_time);
    hparams_event(wall_time, "_hparams_/session_start_info", 3, &info)
}

pub(super) fn session_end(wall_time: f64, is_done: bool) -> Vec<u8> {
    // `STATUS_SUCCESS` and `STATUS_FAILURE`.
    let mut info = vec![1 << 3, if is_done { 1 } else { 2 }];
    double(&mut info, 2, wall_time);
    hparams_event(wall_time, "_hparams_/session_end_info", 4, &info)
}

/// A summary whose metadata is `data`, field `field` of `HParamsPluginData`, and whose tensor is an empty
/// vector of type `DT_FLOAT`.
fn hparams_event(wall_time: f64, tag: &str, field: u8, data: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    bytes(&mut content, field, data);
    let mut plugin = Vec::new();
    bytes(&mut plugin, 1, b"hparams");
    bytes(&mut plugin, 2, &content);
    let mut metadata = Vec::new();
    bytes(&mut metadata, 1, &plugin);
    let mut entry = Vec::new();
    bytes(&mut entry, 1, tag.as_bytes());
    bytes(&mut entry, 8, &[1 << 3, 1, 2 << 3 | 2, 2, 2 << 3 | 2, 0]);
    bytes(&mut entry, 9, &metadata);
    let mut summary = Vec::new();
    bytes(&mut summary, 1, &entry);
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
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
        insta::assert_snapshot!(hex(header(1.5)), @r"1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
        insta::assert_snapshot!(hex(scalar(1_700_000_000.25, 300, "charts/SPS", -2.5)), @r"2100000000000000017becf60900001040fc54d94110ac022a130a110a0a6368617274732f53505315000020c06805c845");
        let hparams = serde_json::json!({ "a": 0.5, "b": "relu", "c": true });
        let hparams = serde_json::from_value(hparams).unwrap();
        insta::assert_snapshot!(hex(session_start(2.5, &hparams)), @r"73000000000000000d737cc80900000000000004402a680a660a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f42060801120212004a3e0a3c0a0768706172616d7312311a2f0a0e0a0161120911000000000000e03f0a0b0a016212061a0472656c750a070a01631202200129000000000000044070b8f49c");
        insta::assert_snapshot!(hex(session_end(2.5, true)), @r"4d000000000000003d63d4a60900000000000004402a420a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f42060801120212004a1a0a180a0768706172616d73120d220b0801110000000000000440dcd10fd4");
    }
}
