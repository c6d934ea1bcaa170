//! Delimited text as Arrow columns, read by polars, which no other crate depends on.
//!
//! It is a crate beside [`stages_table_file`] because polars is heavy, and the stages and the Python package
//! that read and write other tables do without it.

use arrow_array::{ArrayRef, Float64Array, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;
use polars_core::prelude::{Column, DataFrame, DataType, Field, PolarsError, Schema};
use polars_core::utils::arrow::array::Array as _;
use polars_core::utils::arrow::bitmap::Bitmap;
use polars_io::SerReader;
use polars_io::csv::read::{CsvParseOptions, CsvReadOptions};
use rayon::prelude::*;
use stages_table_file::text::{fault, first_line, is_regular, separator, without_empty_lines};
use stages_table_file::{Fault, guarded};
use std::borrow::Cow;
use std::io::Cursor;
use std::sync::Arc;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Reads the columns of a text at the indices `wanted` of its header, each as chunks of strings; null where
/// empty. If the columns at the indices `numbers`, which are among `wanted`, hold plain finite numbers alone,
/// they are read as numbers.
///
/// # Errors
/// The line that is not UTF-8, or has another number of fields than the header.
pub fn read(
    text: &[u8],
    header: &[String],
    wanted: &[usize],
    numbers: &[usize],
) -> Result<Vec<Vec<ArrayRef>>, Fault> {
    let separator = separator(&String::from_utf8_lossy(first_line(text)));
    let mut text = Cow::Borrowed(text);
    // polars takes rows that are too short and, of columns that it does not read, too long.
    if !is_regular(&text, separator, header.len()) {
        if let Some(fault) = fault(&text, separator, header.len()) {
            return Err(fault);
        }
        text = without_empty_lines(&text).into_owned().into();
    }
    if first_line(&text).len() + 1 >= text.len() {
        return Ok(vec![Vec::new(); wanted.len()]);
    }
    let read = |schema: Option<Schema>| {
        // polars panics.
        if wanted.is_empty() {
            return Err(PolarsError::NoData("no column is asked for".into()));
        }
        CsvReadOptions::default()
            .with_has_header(true)
            // Other columns are read as text, so that the caller names the place of a value that is
            // unreadable.
            .with_infer_schema_length(Some(0))
            .with_schema_overwrite(schema.map(Arc::new))
            .with_projection(Some(Arc::new(wanted.to_vec())))
            .with_rechunk(false)
            .with_raise_if_empty(false)
            .with_parse_options(CsvParseOptions::default().with_separator(separator))
            .into_reader_with_file_handle(Cursor::new(&text))
            .finish()
    };
    if !numbers.is_empty() {
        let field = |&i: &usize| Field::new(header[i].as_str().into(), DataType::Float64);
        // If any value is not a plain number, all columns are read as text instead.
        if let Ok(frame) = guarded(|| read(Some(numbers.iter().map(field).collect())))
            && frame.columns().iter().all(is_finite)
        {
            return guarded(|| to_arrow(&frame));
        }
    }
    guarded(|| to_arrow(&read(None)?))
}

/// Reads a text with the types that polars infers, and returns the number of rows: for comparison.
///
/// # Errors
/// When the text is not a table.
pub fn read_inferred(text: &[u8]) -> Result<usize, Fault> {
    let reader = CsvReadOptions::default().into_reader_with_file_handle(Cursor::new(text));
    guarded(|| reader.finish()).map(|frame| frame.height())
}

/// Returns whether a column of numbers has no infinite value, counted without a branch so that the loop is
/// vectorised.
fn is_finite(column: &Column) -> bool {
    let infinite = |values: &[f64]| {
        values
            .iter()
            .fold(0, |count, value| count + u64::from(value.is_infinite()))
    };
    let Ok(numbers) = column.f64() else { return true };
    numbers.downcast_iter().all(|part| infinite(part.values()) == 0)
}

/// The columns of a frame of texts and numbers as Arrow's, in chunks. Numbers and long texts are not copied.
fn to_arrow(frame: &DataFrame) -> Result<Vec<Vec<ArrayRef>>, Error> {
    fn nulls(validity: &Bitmap) -> NullBuffer {
        let (bits, offset, len) = validity.as_slice();
        NullBuffer::new(BooleanBuffer::new(bits.into(), offset, len))
    }
    let chunks = |column: &Column| -> Result<Vec<ArrayRef>, Error> {
        let mut chunks: Vec<ArrayRef> = Vec::new();
        if *column.dtype() == DataType::Float64 {
            for part in column.f64()?.downcast_iter() {
                let bytes = part.values().clone().try_transmute::<u8>();
                let bytes = bytes.map_err(|_| "a column of numbers is not plain memory")?;
                let numbers = ScalarBuffer::new(Bytes::from_owner(bytes).into(), 0, part.len());
                let nulls = part.validity().map(nulls);
                chunks.push(Arc::new(Float64Array::try_new(numbers, nulls)?));
            }
        } else {
            for part in column.str()?.downcast_iter() {
                let views: Vec<u128> = part.views().iter().map(|view| view.as_u128()).collect();
                let buffers = part.data_buffers().iter();
                let buffers: Vec<Buffer> =
                    buffers.map(|buffer| Bytes::from_owner(buffer.clone()).into()).collect();
                let nulls = part.validity().map(nulls);
                // SAFETY: polars has Arrow's views, of strings that it has checked to be UTF-8. (Checking
                // them again takes a tenth of the time of reading.)
                #[expect(unsafe_code, reason = "arrays of another crate, of the same format")]
                let texts = unsafe { StringViewArray::new_unchecked(views.into(), buffers.into(), nulls) };
                chunks.push(Arc::new(texts));
            }
        }
        Ok(chunks)
    };
    frame.columns().par_iter().map(chunks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;

    fn shown(text: &str, header: &[&str], wanted: &[usize], numbers: &[usize]) -> Result<String, String> {
        let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
        let columns = read(text.as_bytes(), &header, wanted, numbers).map_err(|fault| fault.of("t.csv"))?;
        let chunk = |chunk: &ArrayRef| match chunk.as_string_view_opt() {
            Some(texts) => format!("{:?}", texts.iter().collect::<Vec<_>>()),
            None => format!(
                "{:?}",
                chunk
                    .as_primitive::<arrow_array::types::Float64Type>()
                    .values()
                    .to_vec()
            ),
        };
        let column = |chunks: &Vec<ArrayRef>| chunks.iter().map(chunk).collect::<String>();
        Ok(columns.iter().map(column).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn columns_are_texts_or_numbers() {
        let text = "a,b,c\n1,x,\"y,z\"\n\n2.5,,a text of more than twelve bytes\n";
        let header = ["a", "b", "c"];
        assert_eq!(
            shown(text, &header, &[0, 1, 2], &[0]).unwrap(),
            "[1.0, 2.5] [Some(\"x\"), None] [Some(\"y,z\"), Some(\"a text of more than twelve bytes\")]"
        );
        assert_eq!(
            shown("a,b\n1,2\nx,3\n", &["a", "b"], &[0], &[0]).unwrap(),
            r#"[Some("1"), Some("x")]"#
        );
        assert_eq!(
            shown("a,b\ninf,2\n", &["a", "b"], &[0], &[0]).unwrap(),
            r#"[Some("inf")]"#
        );
        assert_eq!(shown("a,b\n", &["a", "b"], &[1], &[]).unwrap(), "");
    }

    /// polars accepts rows that are too short and, where it does not read all columns, too long.
    #[test]
    fn uneven_rows_are_refused_whatever_is_read() {
        for wanted in [&[0][..], &[1], &[0, 1]] {
            let read = |text: &str| shown(text, &["a", "b"], wanted, &[]).unwrap_err();
            assert_eq!(
                read("a,b\n1,2\n1,2,3\n4\n"),
                "`t.csv`, row 3: 3 fields under a header of 2"
            );
            assert_eq!(
                read("a,b\n1,2\n4\n1,2,3\n"),
                "`t.csv`, row 3: 1 fields under a header of 2"
            );
            assert_eq!(
                read("a,b\n\"1\n\",2\n4\n"),
                "`t.csv`, row 4: 1 fields under a header of 2"
            );
        }
    }

    #[test]
    fn missing_numbers_are_null() {
        let columns = read(b"a,b\n1,\n2,3\n", &["a".to_owned(), "b".to_owned()], &[1], &[1]).unwrap();
        let nulls: Vec<bool> = columns[0]
            .iter()
            .flat_map(|part| (0..part.len()).map(|i| part.is_null(i)))
            .collect();
        assert_eq!(nulls, [true, false]);
    }
}
