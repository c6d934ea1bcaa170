//! Packed files: gzip, zstd, and zip archives. The kind of a file is detected by its first bytes, not by its
//! name.

use crate::{DAMAGED, Fault};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::borrow::Cow;
use std::io::{BufRead, Cursor, Read, Write as _};
use zip::ZipArchive;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

/// The maximum unpacked size of a file in bytes (4 GiB), as a limit against decompression bombs.
pub const UNPACKED_LIMIT: u64 = 4 << 30;

/// The maximum ratio of unpacked to packed size. Market data in text form packs to a fifth or a twentieth of
/// its size, a decompression bomb to a thousandth.
pub const RATIO_LIMIT: u64 = 200;

/// The unpacked size that is allowed for every file, in bytes (64 MiB).
pub const UNPACKED_FREE: u64 = 64 << 20;

/// The maximum number of entries of a zip archive.
pub const ENTRY_LIMIT: usize = 100_000;

/// The file name extensions of tables.
pub const TABLE_ENDINGS: [&str; 7] = ["csv", "txt", "tsv", "parquet", "json", "jsonl", "ndjson"];

/// The file name extensions of packed files.
pub const PACKED_ENDINGS: [&str; 3] = ["gz", "zst", "zip"];

/// The number of bytes of a text file that are searched for its header.
pub const HEADER_LIMIT: u64 = 1 << 20;

/// The kind of a file, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// A zip archive.
    Zip,
    /// Parquet.
    Parquet,
    /// A JSON document, or JSON lines.
    Json,
    /// Anything else, taken for text.
    Text,
}

/// The kind of a file with these bytes; the first few are sufficient.
pub fn kind(bytes: &[u8]) -> Kind {
    match bytes {
        [0x1f, 0x8b, ..] => Kind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Kind::Zstd,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Kind::Zip,
        [b'P', b'A', b'R', b'1', ..] => Kind::Parquet,
        _ if begins_json(bytes) => Kind::Json,
        _ => Kind::Text,
    }
}

/// Returns whether a text begins like a JSON document. A bracket alone is no proof, since names in a header
/// may be in brackets.
fn begins_json(bytes: &[u8]) -> bool {
    let text = crate::text::text_of(bytes);
    let mut signs = text.iter().filter(|b| !b.is_ascii_whitespace());
    match signs.next() {
        Some(b'{') => true,
        Some(b'[') => matches!(signs.next(), Some(b'{' | b'[' | b']')),
        _ => false,
    }
}

/// The packing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not packed.
    Plain,
    /// Packed with gzip.
    Gzip,
    /// Packed with Zstandard.
    Zstd,
    /// A zip archive.
    Zip,
}

/// The files of an archive that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All files, in the order of the archive.
    All,
    /// The tables, sorted by name.
    Tables,
    /// The first table by name; of a text, no more than its header needs.
    Head,
}

/// The maximum unpacked size of a file with `packed` bytes.
pub fn limit(packed: u64) -> u64 {
    packed.saturating_mul(RATIO_LIMIT).clamp(UNPACKED_FREE, UNPACKED_LIMIT)
}

/// Unpacked files, each with its name and bytes.
pub type Entries<'a> = Vec<(String, Cow<'a, [u8]>)>;

/// Unpacks a file. Returns how it is packed, and the wanted files in it with their names in the archive; a
/// file that is not an archive gives a single entry without a name.
///
/// # Errors
/// When the file is damaged, unpacks to more than `limit` bytes in total, or is an archive without a wanted
/// file.
pub fn unpack(bytes: &[u8], limit: u64, wanted: Wanted) -> Result<(Packing, Entries<'_>), Fault> {
    let is_head = wanted == Wanted::Head;
    match kind(bytes) {
        packed @ (Kind::Gzip | Kind::Zstd) => {
            let unpacked = inflate(decoder(packed, bytes)?, limit, is_head)?;
            match (kind(&unpacked), packed) {
                (Kind::Zip | Kind::Gzip | Kind::Zstd, _) => {
                    Err(Fault::new("is an archive within an archive", "unpack it once"))
                }
                (_, Kind::Gzip) => Ok((Packing::Gzip, vec![(String::new(), Cow::Owned(unpacked))])),
                _ => Ok((Packing::Zstd, vec![(String::new(), Cow::Owned(unpacked))])),
            }
        }
        Kind::Zip => Ok((Packing::Zip, unzip(bytes, limit, wanted)?)),
        _ => Ok((Packing::Plain, vec![(String::new(), Cow::Borrowed(bytes))])),
    }
}

fn unzip(bytes: &[u8], limit: u64, wanted: Wanted) -> Result<Entries<'_>, Fault> {
    let damaged = |err: ZipError| Fault::new(format!("cannot be unpacked: {err}"), DAMAGED);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    if archive.has_duplicate_names() {
        return Err(Fault::new(
            "has two entries of one name, of which only one can be read",
            "unpack it, keep the right one, and pack it again",
        ));
    }
    if archive.len() > ENTRY_LIMIT {
        return Err(Fault::new(format!("has more than {ENTRY_LIMIT} entries"), "split it"));
    }
    let mut entries = Vec::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        if entry.is_file() && (wanted == Wanted::All || is_table(&name)) {
            entries.push((name, i));
        }
    }
    match wanted {
        Wanted::All => {}
        Wanted::Tables => entries.sort(),
        Wanted::Head => {
            let first = entries
                .into_iter()
                .min_by_key(|(name, i)| (is_readme(name), name.clone(), *i));
            entries = first.into_iter().collect();
        }
    }
    if entries.is_empty() && wanted != Wanted::All {
        return Err(Fault::new(
            "holds no table",
            "an archive's entries count when they end in .csv, .txt, .tsv, .parquet, .json, .jsonl, .ndjson",
        ));
    }
    let mut files = Vec::new();
    let mut left = limit;
    for (name, i) in entries {
        let entry = archive.by_index(i).map_err(damaged)?;
        let bytes = inflate(entry, left, wanted == Wanted::Head).map_err(|fault| match left < limit {
            true => too_large(limit),
            false => Fault {
                entry: Some(name.clone()),
                ..fault
            },
        })?;
        left -= bytes.len() as u64;
        files.push((name, Cow::Owned(bytes)));
    }
    Ok(files)
}

fn is_table(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let ending = base.rsplit_once('.').map_or("", |(_, ending)| ending);
    !base.starts_with('.')
        && !name.starts_with("__MACOSX/")
        && TABLE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Returns whether an entry's name is that of a text about the others: `README.txt`, `License.txt`.
pub fn is_readme(name: &str) -> bool {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
    let words = [
        "readme",
        "read me",
        "read_me",
        "license",
        "licence",
        "terms",
        "notice",
        "disclaimer",
        "changelog",
        "about",
        "copying",
        "citation",
        "contributing",
        "requirements",
    ];
    base.ends_with(".txt") && words.iter().any(|word| base.starts_with(word))
}

/// The unpacked bytes of a file of this kind; those of any but a gzip or zstd file are as they are.
///
/// # Errors
/// When there is no memory for the decoder.
pub fn decoder<'a>(kind: Kind, reader: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, Fault> {
    Ok(match kind {
        Kind::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Kind::Zstd => Box::new(
            zstd::stream::read::Decoder::with_buffer(reader)
                .map_err(|err| Fault::new(format!("cannot be unpacked: {err}"), DAMAGED))?,
        ),
        _ => Box::new(reader),
    })
}

/// Decompresses up to `limit` bytes; with `is_head`, a text ends after enough bytes for its header.
pub fn inflate(mut reader: impl Read, limit: u64, is_head: bool) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut more = |limit: u64, bytes: &mut Vec<u8>| {
        let read = (&mut reader).take(limit).read_to_end(bytes);
        read.map_err(|err| Fault::new(format!("cannot be unpacked: {err}"), DAMAGED))
    };
    if is_head {
        more(HEADER_LIMIT, &mut bytes)?;
        if kind(&bytes) == Kind::Text {
            return Ok(bytes);
        }
    }
    more((limit + 1).saturating_sub(bytes.len() as u64), &mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(too_large(limit)),
        false => Ok(bytes),
    }
}

/// The fault of a file that unpacks to more than `limit` bytes.
pub fn too_large(limit: u64) -> Fault {
    Fault::new(
        format!("unpacks to more than {limit} bytes, and was not read to its end"),
        "it may have been made to fill the memory; if it is what it should be, split it or unpack it first",
    )
}

impl Packing {
    /// Packs files in this way; only an archive may hold other than one file.
    pub fn pack(self, files: Vec<(&str, Cow<'_, [u8]>)>) -> Result<Vec<u8>, Fault> {
        let first = |mut files: Vec<(&str, Cow<'_, [u8]>)>| files.pop().map(|(_, bytes)| bytes.into_owned());
        let packed = match self {
            Self::Plain => return Ok(first(files).unwrap_or_default()),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                let written = encoder.write_all(&first(files).unwrap_or_default());
                written.and_then(|()| encoder.finish()).map_err(ZipError::from)
            }
            Self::Zstd => {
                let bytes = first(files).unwrap_or_default();
                zstd::stream::encode_all(&*bytes, 1).map_err(ZipError::from)
            }
            Self::Zip => zip_of(files),
        };
        packed.map_err(|err| Fault::new(format!("cannot be packed: {err}"), "see whether there is memory"))
    }
}

fn zip_of(files: Vec<(&str, Cow<'_, [u8]>)>) -> Result<Vec<u8>, ZipError> {
    let options = SimpleFileOptions::default().compression_level(Some(1));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(name, options.large_file(bytes.len() as u64 >= 1 << 32))?;
        writer.write_all(&bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let files = files.iter().map(|(name, bytes)| (*name, Cow::Borrowed(*bytes)));
        Packing::Zip.pack(files.collect()).unwrap()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let text = b"1,2\n".repeat(1000);
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd, Packing::Zip] {
            let packed = packing.pack(vec![("a.csv", Cow::Borrowed(&text))]).unwrap();
            let (found, files) = unpack(&packed, 4000, Wanted::All).unwrap();
            assert_eq!((found, &*files[0].1), (packing, &*text));
            assert_eq!(packing == Packing::Plain, packed.len() > 200, "{packing:?} compresses");
        }
    }

    #[test]
    fn the_files_of_an_archive_count_together() {
        let packed = archive(&[("b.npy", &[1; 600]), ("a.csv", &[b'1'; 600])]);
        let names = |wanted| {
            let files = unpack(&packed, 1200, wanted).unwrap().1;
            files.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(Wanted::All), ["b.npy", "a.csv"]);
        assert_eq!(names(Wanted::Tables), ["a.csv"]);
        let fault = unpack(&packed, 1000, Wanted::All).unwrap_err();
        assert_eq!(fault, too_large(1000));
        let fault = unpack(&packed, 500, Wanted::All).unwrap_err();
        assert_eq!(fault.of("z.zip"), format!("`z.zip: b.npy` {}", too_large(500).what));
    }
}
