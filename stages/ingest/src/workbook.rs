//! Excel workbooks (.xlsx) as delimited text: the first sheet with a table.

use calamine::{Data, ExcelDateTime, Reader as _, Xlsx};
use stages_core::StageError;
use stages_table_file::guarded;
use stages_table_file::packing::{self, Wanted};
use std::io::Cursor;

/// The name of the entry that a workbook has in its archive.
const ENTRY: &[u8] = b"xl/workbook.xml";

/// Returns whether a zip archive is a workbook.
pub(crate) fn is_workbook(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") && memchr::memmem::find(bytes, ENTRY).is_some()
}

/// What another office file is: those that are archives, too.
pub(crate) fn other(bytes: &[u8]) -> Option<&'static str> {
    let has = |text: &[u8]| memchr::memmem::find(bytes, text).is_some();
    if !bytes.starts_with(b"PK\x03\x04") {
        return None;
    }
    if bytes
        .get(..200)
        .unwrap_or(bytes)
        .windows(11)
        .any(|at| at == b"opendocumen")
    {
        return Some("a LibreOffice document (.ods)");
    }
    (has(b"xl/workbook.bin")).then_some("a binary Excel workbook (.xlsb)")
}

/// A sheet as delimited text.
pub(crate) struct Sheet {
    pub name: String,
    pub text: Vec<u8>,
    /// The number of rows above the first of the text.
    pub above: isize,
}

/// The first sheet that has at least two rows and two columns.
pub(crate) fn sheet(place: &str, bytes: &[u8]) -> Result<Sheet, StageError> {
    // calamine unpacks without a limit.
    packing::unpack(bytes, packing::limit(bytes.len() as u64), Wanted::All)
        .map_err(|fault| StageError::of_fault(place, &fault))?;
    let read = || -> Result<Option<Sheet>, calamine::XlsxError> {
        let mut book = Xlsx::new(Cursor::new(bytes))?;
        for sheet in book.sheet_names() {
            let range = book.worksheet_range(&sheet)?;
            let (rows, columns) = range.get_size();
            if rows < 2 || columns < 2 {
                continue;
            }
            let above = range.start().map_or(0, |(row, _)| row as isize);
            let mut out = String::new();
            for row in range.rows() {
                // A title or a remark is one text in its row; an empty row is an empty line.
                let mut filled = row.iter().enumerate().filter(|(_, cell)| **cell != Data::Empty);
                let kept = match (filled.next(), filled.next()) {
                    (None, _) => 0,
                    (Some((at, Data::String(_))), None) => at + 1,
                    _ => row.len(),
                };
                for (i, cell) in row.iter().take(kept).enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    push(&mut out, cell);
                }
                out.push('\n');
            }
            let text = out.into_bytes();
            return Ok(Some(Sheet {
                name: sheet,
                text,
                above,
            }));
        }
        Ok(None)
    };
    guarded(read)
        .map_err(|fault| {
            StageError::new(format!("`{place}`, an Excel workbook, {}", fault.what))
                .hint("open it in a spreadsheet program, and save its sheet as CSV (UTF-8)")
        })?
        .ok_or_else(|| StageError::new(format!("no sheet of `{place}` has a table")))
}

fn push(out: &mut String, cell: &Data) {
    match cell {
        Data::Empty | Data::Error(_) => {}
        Data::Int(number) => out.push_str(&number.to_string()),
        Data::Float(number) => out.push_str(&number.to_string()),
        Data::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Data::DateTime(time) => out.push_str(&time_text(time)),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => push_text(out, text),
    }
}

/// A text as a field: always in quotes, since it may hold the separator.
fn push_text(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(&text.replace('"', "\"\"").replace(['\r', '\n'], " "));
    out.push('"');
}

/// A date or a time as ISO 8601 writes it; a date at midnight has no time.
fn time_text(time: &ExcelDateTime) -> String {
    if !time.is_datetime() {
        return time.as_f64().to_string();
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    match (hour, minute, second, milli) {
        (0, 0, 0, 0) => date,
        (_, _, _, 0) => format!("{date} {hour:02}:{minute:02}:{second:02}"),
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}.{milli:03}"),
    }
}
