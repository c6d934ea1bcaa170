//! Records on disk: one line of JSON, and a line with its BLAKE3 digest; or bytes, and their digest. What fails the check was
//! never written.

use crate::{Error, Result, publish};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// What a record file holds.
pub(crate) enum Sealed<T> {
    /// There is none.
    Absent,
    /// One that cannot be trusted.
    Damaged(Metadata),
    /// The record, and what the system knows of its file.
    Intact(T, Metadata),
}

/// Writes a record in place of the one that is there.
pub(crate) fn write(root: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    publish::publish(root, file(root, path, value)?, path)
}

/// [`write`] of a record that a power failure must not cost: what takes the place of one is on the disk before.
pub(crate) fn write_lasting(root: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    match publish::publish_new(root, file(root, path, value)?, path)? {
        None => Ok(()),
        Some(file) => {
            file.as_file().sync_data().map_err(Error::io("flush", file.path()))?;
            publish::publish(root, file, path)
        }
    }
}

fn file(root: &Path, path: &Path, value: &impl Serialize) -> Result<NamedTempFile> {
    let text = text(value).map_err(|err| Error::io("encode", path)(err.into()))?;
    written(root, text.as_bytes())
}

fn written(root: &Path, bytes: &[u8]) -> Result<NamedTempFile> {
    let mut file = publish::temporary(root)?;
    file.write_all(bytes).map_err(Error::io("write", file.path()))?;
    Ok(file)
}

/// [`write`] of bytes.
pub(crate) fn write_bytes(root: &Path, path: &Path, mut bytes: Vec<u8>) -> Result<()> {
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    publish::publish(root, written(root, &bytes)?, path)
}

/// Reads what [`write_bytes`] wrote, and checks it.
pub(crate) fn read_bytes(path: &Path) -> Result<Sealed<Vec<u8>>> {
    let Some((mut bytes, meta)) = contents(path)? else {
        return Ok(Sealed::Absent);
    };
    Ok(match bytes.split_last_chunk::<32>() {
        Some((inside, checksum)) if blake3::hash(inside) == *checksum => {
            bytes.truncate(bytes.len() - 32);
            Sealed::Intact(bytes, meta)
        }
        _ => Sealed::Damaged(meta),
    })
}

fn contents(path: &Path) -> Result<Option<(Vec<u8>, Metadata)>> {
    let Some(mut file) = publish::found(File::open(path), "read", path)? else {
        return Ok(None);
    };
    let meta = file.metadata().map_err(Error::io("read", path))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    Ok(Some((bytes, meta)))
}

/// What is written for a value.
pub(crate) fn text(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(value)?;
    let checksum = blake3::hash(text.as_bytes()).to_hex();
    text.push('\n');
    text.push_str(&checksum);
    text.push('\n');
    Ok(text)
}

/// Reads a record and checks it.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Sealed<T>> {
    let Some((bytes, meta)) = contents(path)? else {
        return Ok(Sealed::Absent);
    };
    Ok(match open(&bytes) {
        Some(value) => Sealed::Intact(value, meta),
        None => Sealed::Damaged(meta),
    })
}

/// The value that these bytes were written for, if they were.
pub(crate) fn open<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n')?;
    let (json, checksum) = (&bytes[..end], &bytes[end + 1..]);
    if blake3::Hash::from_hex(checksum).ok()? != blake3::hash(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}
