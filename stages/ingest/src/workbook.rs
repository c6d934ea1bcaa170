//! Excel workbooks (.xlsx) as delimited text: the first sheet with a table.

use crate::whose::{is_symbol, stored_as_numbers};
use calamine::{Data, ExcelDateTime, Reader as _, Xlsx};
use stages_core::StageError;
use stages_table_file::guarded;
use stages_table_file::packing::{self, Wanted};
use std::collections::BTreeSet;
use std::io::Cursor;

/// The name of the entry that a workbook has in its archive.
const ENTRY: &[u8] = b"xl/workbook.xml";

/// Returns whether a zip archive is a workbook.
pub(crate) fn is_workbook(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") && memchr::memmem::find(bytes, ENTRY).is_some()
}

/// The name of another office format: those that are archives, too.
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
    /// The names of the other sheets with tables.
    pub others: Vec<String>,
    /// Remarks about its columns of symbols.
    pub notes: Vec<String>,
}

/// The columns of symbols of a sheet, of which a spreadsheet program may have changed the cells.
#[derive(Default)]
struct Symbols {
    /// Their names by column; `None` above the header.
    names: Option<Vec<Option<String>>>,
    /// The columns with a number.
    numbers: BTreeSet<String>,
    /// The first cell that has become a date or a truth value, and its row.
    changed: Option<(String, String, usize)>,
}

impl Symbols {
    fn add(&mut self, row: &[Data], number: usize) {
        let Some(names) = &self.names else {
            let name = |cell: &Data| match cell {
                Data::String(name) => Some(name.trim().to_owned()).filter(|name| is_symbol(name)),
                _ => None,
            };
            if row.iter().filter(|cell| matches!(cell, Data::String(_))).count() > 1 {
                self.names = Some(row.iter().map(name).collect());
            }
            return;
        };
        for (cell, name) in row.iter().zip(names) {
            let Some(name) = name else { continue };
            match cell {
                Data::Int(_) | Data::Float(_) => {
                    self.numbers.insert(name.clone());
                }
                Data::DateTime(_) | Data::DateTimeIso(_) | Data::Bool(_) if self.changed.is_none() => {
                    let mut text = String::new();
                    push(&mut text, cell);
                    self.changed = Some((name.clone(), text.trim_matches('"').to_owned(), number));
                }
                _ => {}
            }
        }
    }
}

/// The first sheet that has at least two rows and two columns.
pub(crate) fn sheet(place: &str, bytes: &[u8]) -> Result<Sheet, StageError> {
    // calamine unpacks without a limit.
    packing::unpack(bytes, packing::limit(bytes.len() as u64), Wanted::All)
        .map_err(|fault| StageError::of_fault(place, &fault))?;
    let mut symbols = Symbols::default();
    let read = || -> Result<Option<Sheet>, calamine::XlsxError> {
        let mut book = Xlsx::new(Cursor::new(bytes))?;
        let mut found: Option<Sheet> = None;
        symbols = Symbols::default();
        for sheet in book.sheet_names() {
            let range = book.worksheet_range(&sheet)?;
            let (rows, columns) = range.get_size();
            if rows < 2 || columns < 2 {
                continue;
            }
            if let Some(found) = &mut found {
                found.others.push(sheet);
                continue;
            }
            let above = range.start().map_or(0, |(row, _)| row as isize);
            let mut out = String::new();
            for (i, row) in range.rows().enumerate() {
                symbols.add(row, i + 1 + above.max(0) as usize);
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
            found = Some(Sheet {
                name: sheet,
                text,
                above,
                others: Vec::new(),
                notes: Vec::new(),
            });
        }
        Ok(found)
    };
    let mut sheet = guarded(read)
        .map_err(|fault| {
            StageError::new(format!("`{place}`, an Excel workbook, {}", fault.what))
                .hint("open it in a spreadsheet program, and save its sheet as CSV (UTF-8)")
        })?
        .ok_or_else(|| StageError::new(format!("no sheet of `{place}` has a table")))?;
    if let Some((column, text, row)) = symbols.changed {
        return Err(StageError::new(format!(
            "`{place}: {}`, row {row}, column `{column}`: `{text}` is no symbol, and Excel may have made it of one \
            (`MAR1`, `TRUE`)",
            sheet.name
        ))
        .hint("format the column as text, and write the symbols again"));
    }
    sheet.notes = symbols.numbers.iter().map(|column| stored_as_numbers(column)).collect();
    Ok(sheet)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_symbols_that_a_spreadsheet_program_changed() {
        let text = |text: &str| Data::String(text.to_owned());
        let date = Data::DateTime(ExcelDateTime::new(
            44_986.0,
            calamine::ExcelDateTimeType::DateTime,
            false,
        ));
        for (cell, numbers, changed) in [
            (text("0700"), 0, None),
            (Data::Float(700.0), 1, None),
            (date, 0, Some("2023-03-01")),
            (Data::Bool(true), 0, Some("true")),
        ] {
            let mut symbols = Symbols::default();
            symbols.add(&[text("prices"), Data::Empty], 1);
            symbols.add(&[text("date"), text("Ticker")], 2);
            symbols.add(&[Data::Float(1.0), cell], 3);
            let found = symbols.changed.map(|(column, text, row)| {
                assert_eq!((column.as_str(), row), ("Ticker", 3));
                text
            });
            assert_eq!((symbols.numbers.len(), found.as_deref()), (numbers, changed));
        }
    }
}
