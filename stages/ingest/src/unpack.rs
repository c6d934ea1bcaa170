//! Unpacks files into the bytes of tables: plain, gzip, zstd or zip, recognised by the first bytes and not by
//! name.

use crate::files::name_of;
use crate::foreign::refused;
use crate::notes::Notes;
use crate::plain_text::plain;
use crate::whose::listed;
use crate::workbook;
use arrow_array::RecordBatch;
use bytes::Bytes;
use stages_core::StageError;
use stages_table_file::packing::{self, HEADER_LIMIT, Kind, PACKED_ENDINGS, TABLE_ENDINGS, Wanted, kind};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Delimited text.
    Csv,
    /// Parquet.
    Parquet,
    /// A JSON document, or JSON lines.
    Json,
}

/// The numbering of rows in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// By lines of a text; the number is that of the lines before the first line of [`Packed::bytes`], -1 if
    /// that line was added.
    Lines(isize),
    /// By rows, starting at 1; the number is that of the rows before the first.
    RowsAfter(usize),
}

/// Some rows of a Parquet file that is read in parts.
#[derive(Clone, Debug)]
pub struct Part {
    /// The names of all columns of the file.
    pub header: Vec<String>,
    /// The indices of the columns that are read.
    pub columns: Vec<usize>,
    /// The rows of the columns that are read.
    pub batch: RecordBatch,
}

/// The bytes of a table.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The origin of the bytes, for messages: the file, or `archive.zip: entry.csv`.
    pub place: String,
    /// The name of the file or entry without directories and known extensions: `BRK.A` for
    /// `data/BRK.A.csv.gz`.
    pub stem: String,
    /// The path of the file relative to the source's root, followed by that of the entry: its components may
    /// give values that the table lacks.
    pub path: String,
    /// The unpacked bytes; empty if there is a `part`.
    pub bytes: Bytes,
    /// The part of a large Parquet file, if that is what this is.
    pub part: Option<Arc<Part>>,
    /// The format of the bytes.
    pub format: Format,
    /// The numbering of the table's rows.
    pub numbering: Numbering,
    /// The lines of the file on which the rows of a text stand, where they are not consecutive.
    pub lines: Option<Arc<Vec<usize>>>,
    /// The bytes of a text in the file, where `bytes` are others.
    pub raw: Option<Bytes>,
    /// Findings about the reading of the file.
    pub notes: Notes,
}

/// The tables in a file, at least one.
pub fn unpack(path: &Path, bytes: Vec<u8>) -> Result<Vec<Packed>, StageError> {
    let limit = packing::limit(bytes.len() as u64);
    open(path, bytes, limit, Wanted::Tables)
}

/// The first table in a file; of a text, no more than its header needs.
pub fn first(path: &Path, bytes: &[u8]) -> Result<Packed, StageError> {
    let is_plain = refused("", bytes).is_none();
    let bytes = match kind(bytes) {
        Kind::Text if is_plain => &bytes[..bytes.len().min(HEADER_LIMIT as usize)],
        _ => bytes,
    };
    let limit = packing::limit(bytes.len() as u64);
    Ok(open(path, bytes.to_vec(), limit, Wanted::Head)?.remove(0))
}

fn open(path: &Path, bytes: Vec<u8>, limit: u64, wanted: Wanted) -> Result<Vec<Packed>, StageError> {
    let place = path.display().to_string();
    let name = name_of(path.file_name().unwrap_or_default());
    let is_head = wanted == Wanted::Head;
    if !matches!(kind(&bytes), Kind::Gzip | Kind::Zstd | Kind::Zip) {
        return Ok(vec![text_table(table(place, &name, "", bytes), is_head)?]);
    }
    if workbook::is_workbook(&bytes) {
        let sheet = workbook::sheet(&place, &bytes)?;
        let packed = Packed {
            numbering: Numbering::Lines(sheet.above),
            format: Format::Csv,
            ..table(format!("{place}: {}", sheet.name), &name, "", sheet.text)
        };
        packed.notes.add(match sheet.others.as_slice() {
            [] => "an Excel workbook: its first sheet with a table is read".to_owned(),
            others => format!(
                "an Excel workbook: the sheet `{}` is read, the first with a table; the other sheets are left \
                out: {}",
                sheet.name,
                listed(&others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
            ),
        });
        sheet.notes.iter().for_each(|note| packed.notes.add(note));
        return Ok(vec![text_table(packed, is_head)?]);
    }
    if let Some(what) = workbook::other(&bytes) {
        return Err(StageError::new(format!("`{place}` is {what}, which is not read"))
            .hint("save it as .xlsx or as CSV: `libreoffice --headless --convert-to xlsx FILE`"));
    }
    let (_, mut files) =
        packing::unpack(&bytes, limit, wanted).map_err(|fault| StageError::of_fault(&place, &fault))?;
    let all = files.len();
    if files.iter().any(|(entry, _)| !packing::is_readme(entry)) {
        files.retain(|(entry, _)| !packing::is_readme(entry));
    }
    let left_out = all - files.len();
    let table = |(entry, bytes): (String, Cow<'_, [u8]>)| {
        let packed = match entry.as_str() {
            "" => table(place.clone(), &name, "", bytes.into_owned()),
            entry => table(
                format!("{place}: {entry}"),
                entry,
                &format!("/{entry}"),
                bytes.into_owned(),
            ),
        };
        if left_out > 0 {
            packed
                .notes
                .add("texts about the others in an archive (README.txt) are left out");
        }
        text_table(packed, is_head)
    };
    files.into_iter().map(table).collect()
}

/// A table whose text is made plain; other files than tables are refused.
pub(crate) fn text_table(packed: Packed, is_head: bool) -> Result<Packed, StageError> {
    if packed.format == Format::Parquet {
        return Ok(packed);
    }
    if let Some(refused) = refused(&packed.place, &packed.bytes) {
        return Err(refused);
    }
    // Lines mean nothing in a JSON document.
    if packed.format == Format::Json && std::str::from_utf8(&packed.bytes).is_ok() {
        return Ok(packed);
    }
    in_encoding(packed, "", is_head)
}

/// A table whose text is read in an encoding; empty to find it.
fn in_encoding(mut packed: Packed, encoding: &str, is_head: bool) -> Result<Packed, StageError> {
    let raw = packed.raw.clone().unwrap_or_else(|| packed.bytes.clone());
    let Some((bytes, before)) = plain(&packed.place, &raw, encoding, is_head, &packed.notes)? else {
        return Ok(packed);
    };
    packed.format = match kind(&bytes) {
        Kind::Json => Format::Json,
        _ => packed.format,
    };
    if let Numbering::Lines(lines) = &mut packed.numbering {
        *lines += before;
    }
    packed.bytes = bytes.into();
    packed.raw = Some(raw);
    Ok(packed)
}

pub(crate) fn table(place: String, name: &str, entry: &str, bytes: Vec<u8>) -> Packed {
    let path = if entry.is_empty() {
        name.to_owned()
    } else {
        entry.to_owned()
    };
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let (format, numbering) = match kind(&bytes) {
        Kind::Parquet => (Format::Parquet, Numbering::RowsAfter(0)),
        Kind::Json => (Format::Json, Numbering::RowsAfter(0)),
        _ => (Format::Csv, Numbering::Lines(0)),
    };
    Packed {
        place,
        path,
        stem: stem(name).to_owned(),
        bytes: bytes.into(),
        part: None,
        format,
        numbering,
        lines: None,
        raw: None,
        notes: Notes::default(),
    }
}

impl Packed {
    /// The beginning of a table, without the last line of a text, which may be incomplete.
    pub(crate) fn beginning(&self) -> Self {
        let mut packed = self.clone();
        if packed.format == Format::Csv && packed.bytes.len() as u64 >= HEADER_LIMIT {
            let begin = &packed.bytes[..HEADER_LIMIT as usize];
            let end = begin.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            packed.bytes.truncate(end);
        }
        packed
    }

    /// The table as a layout reads it that states the encoding.
    pub(crate) fn stated(&self, encoding: &str) -> Result<Cow<'_, Self>, StageError> {
        if encoding.is_empty() || self.part.is_some() || self.format == Format::Parquet {
            return Ok(Cow::Borrowed(self));
        }
        // What was found about the encoding does not count.
        self.notes.remove("the text is");
        in_encoding(self.clone(), encoding, self.bytes.len() as u64 >= HEADER_LIMIT).map(Cow::Owned)
    }

    /// Sets the path of the file relative to the source's root.
    #[must_use]
    pub fn named(mut self, file: &str) -> Self {
        // For an archive entry the path so far is `/` and the entry's name.
        self.path = match self.path.strip_prefix('/') {
            Some(entry) => format!("{file}/{entry}"),
            None => file.to_owned(),
        };
        self
    }
}

/// A file name without the extensions of packed files and of tables, in any case. Other dots belong to the
/// name.
pub(crate) fn stem(name: &str) -> &str {
    fn without<'n>(name: &'n str, endings: &[&str]) -> Option<&'n str> {
        let (stem, ending) = name.rsplit_once('.')?;
        let is_known = endings.iter().any(|known| ending.eq_ignore_ascii_case(known));
        is_known.then_some(stem)
    }
    let name = without(name, &PACKED_ENDINGS).unwrap_or(name);
    without(name, &TABLE_ENDINGS)
        .or_else(|| without(name, &["xlsx"]))
        .unwrap_or(name)
}

/// A file name without the extension of a packed file.
pub fn without_packing(name: &str) -> &str {
    name.strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stages_table_file::packing::{RATIO_LIMIT, UNPACKED_FREE, UNPACKED_LIMIT, limit};
    use std::io::{Cursor, Write};

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    pub(crate) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer
                .start_file(*name, zip::write::SimpleFileOptions::default())
                .unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn plain_gzip_and_zip() {
        let csv = b"a,b\n1,2\n";
        let path = Path::new("d/AAPL.csv.gz");
        for bytes in [csv.to_vec(), gzip(csv), [gzip(b"a,b\n"), gzip(b"1,2\n")].concat()] {
            let tables = unpack(path, bytes).unwrap();
            assert_eq!((tables.len(), tables[0].stem.as_str()), (1, "AAPL"));
            assert_eq!(tables[0].bytes, &csv[..]);
        }
        let zip = zip_of(&[("x/b.csv", csv), ("x/a.csv", b"a,b\n"), ("read.me", b"no")]);
        let tables = unpack(Path::new("z.zip"), zip.clone()).unwrap();
        assert_eq!(tables[0].place, "z.zip: x/a.csv");
        assert_eq!(tables[0].clone().named("2019/z.zip").path, "2019/z.zip/x/a.csv");
        assert_eq!(tables[1].bytes, &csv[..]);
        assert_eq!(first(Path::new("z.zip"), &zip).unwrap().stem, "a");
    }

    #[test]
    fn stems_lose_known_endings_alone() {
        for (name, wanted) in [
            ("AAPL.csv", "AAPL"),
            ("BRK.A.csv", "BRK.A"),
            ("BRK.B.CSV.GZ", "BRK.B"),
            ("BRK.B.csv.zst", "BRK.B"),
            ("aapl.us.txt", "aapl.us"),
            ("SPY.zip", "SPY"),
            ("SPY.parquet", "SPY"),
            ("GC=F", "GC=F"),
            ("BRK.A", "BRK.A"),
            ("上证50.csv", "上证50"),
            ("沪深300.csv.gz", "沪深300"),
            ("e\u{301}.csv", "e\u{301}"),
            ("é.csv", "é"),
            (".csv", ""),
            ("", ""),
        ] {
            assert_eq!(stem(name), wanted);
        }
    }

    #[test]
    fn json_is_told_from_names_in_brackets() {
        for (text, wanted) in [
            ("{\"a\": 1}", Format::Json),
            (" [ {\"a\": 1}]", Format::Json),
            ("[]", Format::Json),
            ("[QUOTE_UNIXTIME], [STRIKE]\n", Format::Csv),
            ("a,b\n", Format::Csv),
        ] {
            assert_eq!(unpack(Path::new("x"), text.into()).unwrap()[0].format, wanted, "{text}");
        }
    }

    #[test]
    fn a_repeated_entry_is_refused() {
        let mut zip = zip_of(&[("a.csv", b"a,b\n1,2\n"), ("b.csv", b"a,b\n3,4\n")]);
        while let Some(at) = zip.windows(5).position(|name| name == b"b.csv") {
            zip[at] = b'a';
        }
        let err = unpack(Path::new("z.zip"), zip).unwrap_err();
        assert!(err.message.contains("`z.zip` has two entries of one name"), "{err}");
        assert!(err.hint.is_some());
    }

    #[test]
    fn what_is_refused() {
        let path = Path::new("x.gz");
        let bomb = gzip(&vec![b'1'; 100_000]);
        let err = open(path, bomb.clone(), 1000, Wanted::Tables).unwrap_err();
        assert!(err.message.contains("more than 1000 bytes"), "{err}");
        let zip = zip_of(&[("a.csv", &[b'1'; 600]), ("b.csv", &[b'1'; 600])]);
        assert!(
            open(path, zip, 1000, Wanted::Tables)
                .unwrap_err()
                .message
                .contains("more than 1000")
        );
        assert!(
            open(path, gzip(&bomb), 1 << 20, Wanted::Tables)
                .unwrap_err()
                .message
                .contains("within")
        );
        // Within the free size or within the ratio, and never more than the limit for the whole file.
        assert_eq!(limit(100), UNPACKED_FREE);
        assert_eq!(limit(1 << 20), 200 << 20);
        assert_eq!(limit(1 << 30), UNPACKED_LIMIT);
        assert!(open(path, bomb[..50].to_vec(), 1 << 20, Wanted::Tables).is_err());
        assert!(open(path, zip_of(&[("a.md", b"x")]), 1000, Wanted::Tables).is_err());
        assert!(open(path, b"PK\x03\x04 not a zip".to_vec(), 1000, Wanted::Tables).is_err());
    }

    /// Some kilobytes that unpack to twice the free size.
    #[test]
    fn bombs_are_not_unpacked_to_their_end() {
        let zeros = vec![b'0'; (UNPACKED_FREE as usize) * 2];
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&zeros).unwrap();
        let (gz, zip) = (encoder.finish().unwrap(), zip_of(&[("a.csv", &zeros)]));
        for (name, bomb) in [("bomb.csv.gz", gz), ("bomb.zip", zip)] {
            assert!(bomb.len() as u64 * RATIO_LIMIT < zeros.len() as u64);
            let err = unpack(Path::new(name), bomb).unwrap_err();
            assert!(
                err.message.contains(name) && err.message.contains("unpacks to more than"),
                "{err}"
            );
            assert!(err.hint.unwrap().contains("unpack it first"));
        }
        // Many entries, each of which is harmless by itself.
        let parts: Vec<(String, &[u8])> = (0..16)
            .map(|i| (format!("{i}.csv"), &zeros[..zeros.len() / 16]))
            .collect();
        let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        let err = unpack(Path::new("parts.zip"), zip_of(&parts)).unwrap_err();
        assert!(err.message.contains("`parts.zip` unpacks to more than"), "{err}");
    }

    /// An entry's path is never written to; its name is only searched for a symbol.
    #[test]
    fn entries_that_lead_elsewhere_are_only_names() {
        let csv: &[u8] = b"a,b\n1,2\n";
        let zip = zip_of(&[
            ("../../up.csv", csv),
            ("/root.csv", csv),
            ("C:\\drive\\back.csv", csv),
            ("a/../../.csv", csv),
        ]);
        let tables = unpack(Path::new("z.zip"), zip).unwrap();
        let stems: Vec<&str> = tables.iter().map(|table| table.stem.as_str()).collect();
        assert_eq!(stems, ["up", "root", "back"]);
    }
}
