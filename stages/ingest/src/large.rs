//! Reads tables in parts from files that are too large to hold in memory.
//!
//! A text (plain, gzip or zstd) is cut between records, with the header repeated before every part; a Parquet
//! file is decoded some rows at a time. Zip archives, JSON documents and layouts that need the whole file
//! (preambles, joined tables) are read whole.

use crate::files::name_of;
use crate::files::unreadable;
use crate::frame::guarded;
use crate::header::wanted;
use crate::unpack::{self, Format, Numbering, Packed, Part};
use arrow_array::RecordBatch;
use datasets::layout::{Layout, normal};
use memchr::{memchr, memchr2_iter};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use stages_core::{Source, StageError};
use stages_table_file::packing::{self, HEADER_LIMIT, Kind};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// The sizes that decide which files are large, and how large their parts are.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// The number of bytes from which a file is large.
    pub large: u64,
    /// The size of a text part, in bytes.
    pub text: usize,
    /// The number of rows of a Parquet part.
    pub rows: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            large: 8 << 20,
            text: 24 << 20,
            rows: 1 << 18,
        }
    }
}

/// The number of rows in the beginning of a Parquet file.
const FIRST_ROWS: usize = 1 << 14;

/// A function that receives the parts of a file.
pub(crate) type Take<'a> = dyn FnMut(Packed) -> Result<(), StageError> + 'a;

impl Sizes {
    /// Opens a file if it is large, and detects its kind from the first bytes.
    fn open(self, path: &Path) -> Result<Option<(File, Kind)>, StageError> {
        let open = || {
            let mut file = cache::regular_file::open(path)?;
            if file.metadata()?.len() < self.large {
                return Ok(None);
            }
            let mut begin = Vec::new();
            (&mut file).take(4096).read_to_end(&mut begin)?;
            std::io::Seek::rewind(&mut file)?;
            Ok(Some((file, packing::kind(&begin))))
        };
        open().map_err(|err: std::io::Error| unreadable(path, &err))
    }

    /// The beginning of a large file, enough for its header; `None` if the file is not large or must be read
    /// whole.
    pub(crate) fn first(self, path: &Path) -> Result<Option<Packed>, StageError> {
        let Some((file, kind)) = self.open(path)? else {
            return Ok(None);
        };
        let place = path.display().to_string();
        let name = name_of(path.file_name().unwrap_or_default());
        match kind {
            Kind::Text => {
                let mut bytes = Vec::new();
                let read = file.take(HEADER_LIMIT).read_to_end(&mut bytes);
                read.map_err(|err| unreadable(path, &err))?;
                unpack::first(path, &bytes).map(Some)
            }
            Kind::Gzip | Kind::Zstd => {
                let limit = limit_of(&file, path)?;
                let bytes = packing::decoder(kind, BufReader::new(file))
                    .and_then(|reader| packing::inflate(reader, limit, true))
                    .map_err(|fault| StageError::of_fault(&place, &fault))?;
                let packed = unpack::text_table(unpack::table(place, &name, "", bytes), true)?;
                Ok((packed.format == Format::Csv).then_some(packed))
            }
            Kind::Parquet => {
                let builder = guarded(&place, || ParquetRecordBatchReaderBuilder::try_new(file))?;
                let names = builder.schema().fields().iter().map(|field| field.name().clone());
                let header: Vec<String> = names.collect();
                let schema = Arc::clone(builder.schema());
                let reader = builder.with_batch_size(FIRST_ROWS).build();
                let mut reader = guarded(&place, || reader)?;
                let first = guarded(&place, || reader.next().transpose())?;
                let part = Part {
                    columns: (0..header.len()).collect(),
                    header,
                    batch: first.unwrap_or_else(|| RecordBatch::new_empty(schema)),
                };
                Ok(Some(packed_part(path, part, 0)))
            }
            Kind::Zip | Kind::Json => Ok(None),
        }
    }

    /// Passes the parts of a large file to `take`. Returns false, without passing any, if the file must be
    /// read whole.
    pub(crate) fn parts(
        self,
        source: &Source,
        layout: &Layout,
        take: &mut Take<'_>,
    ) -> Result<bool, StageError> {
        let form = &layout.form;
        let is_plain = form.json.is_none()
            && form.header.is_empty()
            && form.skip_lines == 0
            && !form.number_repeated
            && form.encoding.is_empty()
            && !form.symbols_in_header;
        if !is_plain || layout.join.is_some() {
            return Ok(false);
        }
        let path = &source.path;
        let Some((file, kind)) = self.open(path)? else {
            return Ok(false);
        };
        match kind {
            Kind::Text => self.text(BufReader::new(file), u64::MAX, path, take),
            Kind::Gzip | Kind::Zstd => {
                let limit = limit_of(&file, path)?;
                let reader = packing::decoder(kind, BufReader::new(file));
                let reader =
                    reader.map_err(|fault| StageError::of_fault(&path.display().to_string(), &fault))?;
                self.text(reader, limit, path, take)
            }
            Kind::Parquet => self.rows(file, path, layout, take),
            Kind::Zip | Kind::Json => Ok(false),
        }
    }

    fn text(
        self,
        mut reader: impl Read,
        limit: u64,
        path: &Path,
        take: &mut Take<'_>,
    ) -> Result<bool, StageError> {
        let place = path.display().to_string();
        let name = name_of(path.file_name().unwrap_or_default());
        let mut read = 0;
        let mut fill = |buffer: &mut Vec<u8>, len: usize| -> Result<bool, StageError> {
            let wanted = len.saturating_sub(buffer.len()) as u64;
            let found = (&mut reader).take(wanted).read_to_end(buffer).map_err(|err| {
                StageError::new(format!("cannot read `{place}`: {err}"))
                    .hint("the file may be damaged or incomplete")
            })?;
            read += found as u64;
            if read > limit {
                return Err(StageError::of_fault(&place, &packing::too_large(limit)));
            }
            Ok((found as u64) < wanted)
        };
        let mut size = self.text;
        let mut rest = Vec::new();
        let mut is_end = fill(&mut rest, size)?;
        if packing::kind(&rest) != Kind::Text
            || crate::foreign::refused(&place, &rest).is_some()
            || crate::plain_text::must_be_whole(&rest[..rest.len().min(HEADER_LIMIT as usize)])
        {
            return Ok(false);
        }
        if rest.starts_with(b"\xef\xbb\xbf") {
            rest.drain(..3);
        }
        let header: Vec<u8> = match memchr(b'\n', &rest) {
            Some(end) => rest.drain(..=end).collect(),
            None if is_end => std::mem::take(&mut rest),
            None => return Ok(false),
        };
        let mut lines = 0;
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            let end = if is_end { rest.len() } else { records_end(&rest) };
            if end == 0 && !is_end {
                // A record may be longer than a part.
                size *= 2;
                is_end = fill(&mut rest, size)?;
                continue;
            }
            let part = [header.as_slice(), &rest[..end]].concat();
            let packed = Packed {
                numbering: Numbering::Lines(lines),
                format: Format::Csv,
                ..unpack::table(place.clone(), &name, "", part)
            };
            take(packed)?;
            lines += rest[..end].iter().filter(|byte| **byte == b'\n').count() as isize;
            rest.drain(..end);
            is_end = is_end || fill(&mut rest, size)?;
            is_first = false;
        }
        Ok(true)
    }

    fn rows(self, file: File, path: &Path, layout: &Layout, take: &mut Take<'_>) -> Result<bool, StageError> {
        let place = path.display().to_string();
        let builder = guarded(&place, || ParquetRecordBatchReaderBuilder::try_new(file))?;
        let header: Vec<String> = builder.schema().fields().iter().map(|f| f.name().clone()).collect();
        let wanted = wanted(layout);
        let columns: Vec<usize> = (0..header.len())
            .filter(|i| wanted.contains(&normal(&header[*i])))
            .collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let reader = builder.with_projection(mask).with_batch_size(self.rows);
        let mut reader = guarded(&place, || reader.build())?;
        let empty = RecordBatch::new_empty(arrow_array::RecordBatchReader::schema(&reader));
        let mut part = |batch: RecordBatch, before: usize| {
            let part = Part {
                header: header.clone(),
                columns: columns.clone(),
                batch,
            };
            take(packed_part(path, part, before))
        };
        let mut before = 0;
        while let Some(batch) = guarded(&place, || reader.next().transpose())? {
            let rows = batch.num_rows();
            part(batch, before)?;
            before += rows;
        }
        if before == 0 {
            part(empty, 0)?;
        }
        Ok(true)
    }
}

/// The largest unpacked size allowed for a packed file, in bytes.
fn limit_of(file: &File, path: &Path) -> Result<u64, StageError> {
    let meta = file.metadata().map_err(|err| unreadable(path, &err))?;
    Ok(packing::limit(meta.len()))
}

/// The offset after the last complete record of a text that continues.
fn records_end(text: &[u8]) -> usize {
    if memchr(b'"', text).is_none() {
        return memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
    }
    let (mut end, mut quoted) = (0, false);
    for at in memchr2_iter(b'"', b'\n', text) {
        match text[at] {
            b'"' => quoted = !quoted,
            _ if !quoted => end = at + 1,
            _ => {}
        }
    }
    end
}

fn packed_part(path: &Path, part: Part, before: usize) -> Packed {
    let name = name_of(path.file_name().unwrap_or_default());
    Packed {
        part: Some(Arc::new(part)),
        format: Format::Parquet,
        numbering: Numbering::RowsAfter(before),
        ..unpack::table(path.display().to_string(), &name, "", Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::parse;
    use crate::file_memo::Around;
    use crate::unpack::tests::gzip;
    use arrow_select::concat::concat_batches;
    use datasets::layout::{Table, find};

    const SMALL: Sizes = Sizes {
        large: 1,
        text: 300,
        rows: 7,
    };

    fn text(rows: usize) -> String {
        let mut text = "\u{feff}symbol,date,expiry,strike,call,bid,ask,root\n".to_owned();
        for i in 0..rows {
            let root = match i % 5 {
                0 => "\"A\nB\"",
                1 => "\"A,B\"",
                _ => "AB",
            };
            text.push_str(&format!(
                "AB,2019-06-{:02},2019-07-19,{i},call,1,1.5,{root}\n",
                3 + i % 5
            ));
        }
        text
    }

    fn in_parts(name: &str, bytes: &[u8]) -> Result<Vec<RecordBatch>, StageError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let layout = find(Table::Chain, "runner").unwrap();
        let mut parts = Vec::new();
        let is_large = SMALL.parts(&Source::new(name, &path), layout, &mut |packed| {
            parts.push(parse(&packed, layout, &Around::default())?);
            Ok(())
        })?;
        assert!(is_large && SMALL.first(&path)?.is_some());
        Ok(parts)
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        packing::Packing::Zstd.pack(vec![("", bytes.into())]).unwrap()
    }

    fn whole(name: &str, bytes: &[u8]) -> RecordBatch {
        let packed = unpack::unpack(Path::new(name), bytes.to_vec()).unwrap().remove(0);
        parse(&packed, find(Table::Chain, "runner").unwrap(), &Around::default()).unwrap()
    }

    #[test]
    fn parts_are_the_rows_of_the_whole() {
        let csv = text(60);
        let rows = whole("a.csv", csv.as_bytes());
        let parquet = stages_core::table::to_parquet(&rows).unwrap();
        for (name, bytes, least) in [
            ("a.csv", csv.as_bytes(), 10),
            ("a.csv", csv.trim_end().as_bytes(), 10),
            ("a.csv.gz", &gzip(csv.as_bytes()), 10),
            ("a.csv.zst", &zstd(csv.as_bytes()), 10),
            ("a.parquet", &parquet, 9),
        ] {
            let parts = in_parts(name, bytes).unwrap();
            assert!(parts.len() >= least, "{name}: {}", parts.len());
            assert_eq!(
                concat_batches(&rows.schema(), &parts).unwrap(),
                whole(name, bytes),
                "{name}"
            );
        }
        for rows in [0, 1] {
            let parts = in_parts("a.csv", text(rows).as_bytes()).unwrap();
            assert_eq!(parts.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        }
    }

    #[test]
    fn errors_name_the_row_of_the_file() {
        for (from, to) in [
            (",40,call", ",x,call"),
            (",40,call,1", ",40,call"),
            (",40,call", ",40,call\u{1}"),
        ] {
            let csv = text(60).replace(from, to);
            let of_whole = unpack::unpack(Path::new("a.csv"), csv.clone().into_bytes())
                .unwrap()
                .remove(0);
            let layout = find(Table::Chain, "runner").unwrap();
            let wanted = parse(&of_whole, layout, &Around::default()).unwrap_err().message;
            let found = in_parts("a.csv", csv.as_bytes()).unwrap_err().message;
            assert_eq!(found.rsplit('`').next(), wanted.rsplit('`').next());
            assert!(found.contains("row 5"), "{found}");
        }
    }
}
