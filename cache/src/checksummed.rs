//! Files with a checksum: one line of JSON and a line with its BLAKE3 digest, or bytes followed by their
//! digest. A file that fails the check counts as never written.
//!
//! JSON that other programs read, such as the events of runs, has its checksum in its last field
//! ([`add_checksum`]).

use crate::atomic_write::{self, TempFile};
use crate::error::{Error, Result};
use crate::flush::flush;
use crate::regular_file::{Opened, open_own, read_opened};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::Metadata;
use std::io::Write;
use std::path::Path;

/// The contents of a checksummed file.
pub(crate) enum Checksummed<T> {
    /// The file does not exist.
    Absent,
    /// The checksum or the contents are wrong, or the path is not a regular file.
    Damaged(Metadata),
    /// The value, and the file's metadata.
    Intact(T, Metadata),
}

/// Writes a value to a checksummed file, replacing an existing one.
pub(crate) fn write(root: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    atomic_write::persist(root, json_file(root, path, value)?, path)
}

/// Writes a record that must survive a power failure: a replacement is flushed before it overwrites the
/// existing record.
pub(crate) fn write_durable(root: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    match atomic_write::persist_new(root, json_file(root, path, value)?, path)? {
        None => Ok(()),
        Some(file) => {
            flush(file.as_file()).map_err(Error::io("flush", file.path()))?;
            atomic_write::persist(root, file, path)
        }
    }
}

/// Writes a file of the store's own bookkeeping, which needs no flush because its readers tolerate its loss.
pub(crate) fn replace(root: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    let text = encode(value).map_err(|err| Error::io("encode", path)(err.into()))?;
    atomic_write::replace(root, path, &text)
}

fn json_file(root: &Path, path: &Path, value: &impl Serialize) -> Result<TempFile> {
    let text = encode(value).map_err(|err| Error::io("encode", path)(err.into()))?;
    file_of(root, text.as_bytes())
}

fn file_of(root: &Path, bytes: &[u8]) -> Result<TempFile> {
    let mut file = atomic_write::temp_file(root)?;
    file.write_all(bytes).map_err(Error::io("write", file.path()))?;
    Ok(file)
}

/// Writes bytes followed by their digest, replacing an existing file.
pub(crate) fn write_bytes(root: &Path, path: &Path, mut bytes: Vec<u8>) -> Result<()> {
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    atomic_write::persist(root, file_of(root, &bytes)?, path)
}

/// Reads and checks the output of [`write_bytes`].
pub(crate) fn read_bytes(path: &Path) -> Result<Checksummed<Vec<u8>>> {
    let (mut bytes, meta) = match contents(path)? {
        Checksummed::Intact(bytes, meta) => (bytes, meta),
        other => return Ok(other),
    };
    Ok(match bytes.split_last_chunk::<32>() {
        Some((inside, checksum)) if blake3::hash(inside) == *checksum => {
            bytes.truncate(bytes.len() - 32);
            Checksummed::Intact(bytes, meta)
        }
        _ => Checksummed::Damaged(meta),
    })
}

/// Reads a file without checking its contents. Anything but a regular file counts as damaged.
fn contents(path: &Path) -> Result<Checksummed<Vec<u8>>> {
    Ok(match open_own(path)? {
        Opened::Absent => Checksummed::Absent,
        Opened::Foreign(meta) => Checksummed::Damaged(meta),
        Opened::Regular(file, meta) => Checksummed::Intact(read_opened(path, file, &meta)?, meta),
    })
}

/// Reads and checks the output of [`write`].
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Checksummed<T>> {
    Ok(match contents(path)? {
        Checksummed::Absent => Checksummed::Absent,
        Checksummed::Damaged(meta) => Checksummed::Damaged(meta),
        Checksummed::Intact(bytes, meta) => match decode(&bytes) {
            Some(value) => Checksummed::Intact(value, meta),
            None => Checksummed::Damaged(meta),
        },
    })
}

/// Serialises a value to JSON, followed by its checksum.
pub fn encode(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(value)?;
    let checksum = blake3::hash(text.as_bytes()).to_hex();
    text.push('\n');
    text.push_str(&checksum);
    text.push('\n');
    Ok(text)
}

/// The last field of a JSON object with a checksum, up to its digits.
const FIELD: &str = ",\"checksum\":\"";

/// The number of hex digits of a checksum in a field: 64 bits.
const DIGITS: usize = 16;

/// Appends to the text of a JSON object the checksum of the text so far, as its last field. An empty object
/// is left unchanged.
pub fn add_checksum(object: &mut String) {
    let Some(fields) = object
        .strip_suffix('}')
        .map(str::trim_end)
        .filter(|fields| *fields != "{")
    else {
        return;
    };
    let (digits, length) = (blake3::hash(fields.as_bytes()).to_hex(), fields.len());
    object.truncate(length);
    object.push_str(FIELD);
    object.push_str(&digits[..DIGITS]);
    object.push_str("\"}");
}

/// False if the text of a JSON object does not match the checksum in its last field. An object without a
/// checksum was written by an earlier version, and is accepted.
pub fn matches_checksum(object: &[u8]) -> bool {
    let Some((fields, digits)) = split(object) else {
        return true;
    };
    blake3::hash(fields).to_hex().as_bytes()[..DIGITS] == *digits
}

/// Splits the text of a JSON object into the text before its checksum and the digits of the checksum.
fn split(object: &[u8]) -> Option<(&[u8], &[u8; DIGITS])> {
    let object = object.trim_ascii_end().strip_suffix(b"\"}")?;
    let (fields, digits) = object.split_last_chunk()?;
    Some((fields.strip_suffix(FIELD.as_bytes())?, digits))
}

/// Reads the output of [`encode`]; `None` when the checksum or the JSON is wrong.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n')?;
    let (json, checksum) = (&bytes[..end], &bytes[end + 1..]);
    if blake3::hash(json).to_hex().as_bytes() != checksum {
        return None;
    }
    serde_json::from_slice(json).ok()
}
