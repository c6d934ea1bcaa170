//! Packed files: gzip, and archives of files.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::borrow::Cow;
use std::io::{Cursor, Read, Write as _};

/// The most that a compressed file may unpack to, in bytes.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// The packing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Zip,
}

/// A file in a packed one: its name and bytes.
pub type Member<'a> = (String, Cow<'a, [u8]>);

/// The packing of a file, and the named files in it.
///
/// # Errors
/// When it is damaged, or unpacks to more than 4 GiB.
pub fn unpack<'a>(path: &str, bytes: &'a [u8]) -> Result<(Packing, Vec<Member<'a>>), String> {
    let damaged = |err: zip::result::ZipError| format!("cannot be unpacked: {err}");
    match bytes {
        [0x1f, 0x8b, ..] => {
            let name = path.strip_suffix(".gz").unwrap_or(path).to_owned();
            Ok((
                Packing::Gzip,
                vec![(name, Cow::Owned(limited(MultiGzDecoder::new(bytes))?))],
            ))
        }
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => {
            let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
            let mut files = Vec::new();
            for i in 0..archive.len() {
                let entry = archive.by_index(i).map_err(damaged)?;
                files.push((entry.name().map_err(damaged)?.into_owned(), Cow::Owned(limited(entry)?)));
            }
            Ok((Packing::Zip, files))
        }
        _ => Ok((Packing::Plain, vec![(path.to_owned(), Cow::Borrowed(bytes))])),
    }
}

fn limited(packed: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = packed.take(UNPACKED_LIMIT).read_to_end(&mut bytes);
    match read.map_err(|err| format!("cannot be unpacked: {err}"))? as u64 {
        UNPACKED_LIMIT => Err("unpacks to more than 4 GiB".to_owned()),
        _ => Ok(bytes),
    }
}

impl Packing {
    /// Packs files, of which there is one unless this is an archive.
    ///
    /// # Errors
    /// When the archive cannot be written.
    pub fn pack(self, mut files: Vec<(&str, Cow<'_, [u8]>)>) -> Result<Vec<u8>, String> {
        if self == Self::Zip {
            let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let stored =
                zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            for (name, bytes) in files {
                writer.start_file(name, stored).map_err(|err| err.to_string())?;
                writer.write_all(&bytes).map_err(|err| err.to_string())?;
            }
            return Ok(writer.finish().map_err(|err| err.to_string())?.into_inner());
        }
        let bytes = files.pop().map(|(_, bytes)| bytes.into_owned()).unwrap_or_default();
        if self == Self::Plain {
            return Ok(bytes);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder
            .write_all(&bytes)
            .and_then(|()| encoder.finish())
            .map_err(|err| err.to_string())
    }
}
