//! NumPy's `.npy` and `.npz` files
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

mod array;
mod header;

pub use array::Array;

use super::{Table, UNPACKED_LIMIT};
use crate::moment::{self, Stamp};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use header::Type;
use std::io::{Cursor, Read as _};
use std::sync::Arc;

/// The most columns that the rows of a matrix are shown as; wider rows are one cell of bytes.
const MOST_COLUMNS: usize = 512;

fn column(ty: &Type, cells: &[&[u8]]) -> Result<ArrayRef, String> {
    macro_rules! numbers {
        ($array:ty, $number:ty) => {
            Arc::new(<$array>::from_iter_values(cells.iter().map(|cell| {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(cell);
                if ty.big_endian {
                    <$number>::from_be_bytes(bytes)
                } else {
                    <$number>::from_le_bytes(bytes)
                }
            })))
        };
    }
    Ok(match (ty.kind, ty.size) {
        (b'f', 4) => numbers!(Float32Array, f32),
        (b'f', 8) => numbers!(Float64Array, f64),
        (b'i', 1) => numbers!(Int8Array, i8),
        (b'i', 2) => numbers!(Int16Array, i16),
        (b'i', 4) => numbers!(Int32Array, i32),
        (b'i', 8) => numbers!(Int64Array, i64),
        (b'u', 1) => numbers!(UInt8Array, u8),
        (b'u', 2) => numbers!(UInt16Array, u16),
        (b'u', 4) => numbers!(UInt32Array, u32),
        (b'u', 8) => numbers!(UInt64Array, u64),
        (b'b', 1) => Arc::new(cells.iter().map(|cell| Some(cell[0] != 0)).collect::<BooleanArray>()),
        (b'M', 8) if !ty.unit.is_empty() => dates(ty, cells)?,
        (b'U', _) => {
            let text = |cell: &&[u8]| -> Option<String> {
                let chars = cell.chunks_exact(4).map(|bytes| {
                    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
                    if ty.big_endian {
                        u32::from_be_bytes(bytes)
                    } else {
                        u32::from_le_bytes(bytes)
                    }
                });
                chars.take_while(|&c| c != 0).map(char::from_u32).collect()
            };
            Arc::new(cells.iter().map(text).collect::<StringArray>())
        }
        (b'S', _) => {
            let text = |cell: &&[u8]| Some(String::from_utf8_lossy(cell).trim_end_matches('\0').to_owned());
            Arc::new(cells.iter().map(text).collect::<StringArray>())
        }
        _ => Arc::new(bytes(cells, ty.size)?),
    })
}

/// Cells of any type, as their bytes.
fn bytes(cells: &[&[u8]], size: usize) -> Result<FixedSizeBinaryArray, String> {
    let size = i32::try_from(size).map_err(|_| "has rows that are too large".to_owned())?;
    FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells.iter().map(|cell| Some(*cell)), size)
        .map_err(|err| err.to_string())
}

/// Dates in microseconds. "Not a time" is null.
fn dates(ty: &Type, cells: &[&[u8]]) -> Result<ArrayRef, String> {
    let (times, by) = match ty.unit.as_str() {
        "D" => (86_400_000_000, 1),
        "W" => (7 * 86_400_000_000, 1),
        "h" => (3_600_000_000, 1),
        "m" => (60_000_000, 1),
        "s" => (1_000_000, 1),
        "ms" => (1000, 1),
        "us" => (1, 1),
        "ns" => (1, 1000),
        unit => return Err(format!("holds dates in units of `{unit}`, which cannot be read")),
    };
    let micros = |cell: &&[u8]| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(cell);
        let ticks = if ty.big_endian {
            i64::from_be_bytes(bytes)
        } else {
            i64::from_le_bytes(bytes)
        };
        (ticks != i64::MIN).then(|| ticks.saturating_mul(times).div_euclid(by))
    };
    Ok(Arc::new(
        cells.iter().map(micros).collect::<TimestampMicrosecondArray>(),
    ))
}

/// Reads an array: its first dimension is the rows.
pub fn npy(file: &[u8]) -> Result<Table, String> {
    let (header, _, from) = header::split(file)?;
    let data = &file[from..];
    let rows = header.shape.first().copied().unwrap_or(1);
    let width: usize = header.shape.iter().skip(1).product();
    if header.fortran && header.shape.len() > 2 {
        return Err("is an array of several dimensions in Fortran's order, which cannot be read".to_owned());
    }
    let element = |row: usize, column: usize| {
        let place = if header.fortran {
            column * rows + row
        } else {
            row * width + column
        };
        &data[place * header.item..(place + 1) * header.item]
    };
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    if width > MOST_COLUMNS && !header.fortran {
        let size = width * header.item;
        let cells: Vec<&[u8]> = (0..rows).map(|row| &data[row * size..(row + 1) * size]).collect();
        columns.push(("row".to_owned(), Arc::new(bytes(&cells, size)?)));
    } else {
        for i in 0..width {
            for (name, ty, offset) in &header.fields {
                let cells: Vec<&[u8]> = (0..rows)
                    .map(|row| &element(row, i)[*offset..offset + ty.size])
                    .collect();
                let name = match (name.as_str(), width) {
                    ("", 1) => "value".to_owned(),
                    ("", _) => format!("column {i}"),
                    (name, 1) => name.to_owned(),
                    (name, _) => format!("{name} {i}"),
                };
                columns.push((name, column(ty, &cells)?));
            }
        }
    }
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|err| err.to_string())?;
    let mut table = Table::new(String::new(), batch);
    // The first column of a matrix may hold its dates.
    let is_plain = header.fields.len() == 1 && header.fields[0].0.is_empty();
    if table.stamps.is_none() && is_plain && (2..=MOST_COLUMNS).contains(&width) {
        table.stamps = first_column(table.batch.column(0));
        table.date = table.stamps.as_ref().map(|_| 0);
    }
    Ok(table)
}

/// The dates of the first column of a matrix: numbers such as 20240131, or whole minutes since 1970, in
/// order.
fn first_column(column: &ArrayRef) -> Option<Vec<Stamp>> {
    let floats = arrow_cast::cast(column, &DataType::Float64).ok()?;
    let values = floats.as_primitive_opt::<Float64Type>()?.values();
    let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < 9e15;
    if values.len() < 2 || !values.iter().all(is_whole) {
        return None;
    }
    let numbers: Vec<i64> = values.iter().map(|value| *value as i64).collect();
    let stamps = moment::of_integers(numbers.iter().copied(), true)?;
    let is_time = stamps.iter().all(|stamp| stamp.start % 60_000_000 == 0);
    (is_time && stamps.is_sorted() && stamps.first() < stamps.last()).then_some(stamps)
}

/// Reads the arrays of an archive. One of dates gives its dates to all others of its length.
pub fn npz(file: &[u8]) -> Result<Vec<Table>, String> {
    let damaged = |err: zip::result::ZipError| format!("cannot be unpacked: {err}");
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).map_err(damaged)?;
    let mut tables = Vec::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let Some(short) = name.strip_suffix(".npy") else {
            return Err(format!("is an archive with `{name}`, which is no array"));
        };
        let mut bytes = Vec::new();
        entry
            .by_ref()
            .take(UNPACKED_LIMIT)
            .read_to_end(&mut bytes)
            .map_err(|err| format!("cannot be unpacked: {err}"))?;
        let mut table = npy(&bytes).map_err(|reason| format!("`{name}` {reason}"))?;
        short.clone_into(&mut table.name);
        tables.push(table);
    }
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    let dates = shared_dates(&tables);
    if let Some(dates) = dates {
        for table in &mut tables {
            if table.stamps.is_none() && table.batch.num_rows() == dates.len() {
                table.stamps = Some(dates.clone());
            }
        }
    }
    Ok(tables)
}

/// The dates of an archive of arrays: those of the array that holds dates alone.
fn shared_dates(tables: &[Table]) -> Option<Vec<Stamp>> {
    tables
        .iter()
        .find(|table| table.stamps.is_some() && table.batch.num_columns() == 1)
        .and_then(|table| table.stamps.clone())
        .or_else(|| {
            // Numbers are dates where the array's name says so.
            let named = tables
                .iter()
                .find(|table| moment::is_date_name(&table.name) && table.batch.num_columns() == 1)?;
            moment::of_column(named.batch.column(0).as_ref(), true)
        })
}

/// The dates of the arrays of an archive, by name.
///
/// # Errors
/// When one cannot be read.
pub fn dates_of_arrays(files: &[(String, Vec<u8>)]) -> Result<Option<Vec<Stamp>>, String> {
    let mut tables = Vec::new();
    for (name, bytes) in files {
        let mut table = npy(bytes).map_err(|reason| format!("`{name}` {reason}"))?;
        name.trim_end_matches(".npy").clone_into(&mut table.name);
        tables.push(table);
    }
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(shared_dates(&tables))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_cast::display::array_value_to_string;

    /// A file as `numpy.save` writes it.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn shown(header: &str, data: &[u8]) -> String {
        match npy(&file(header, data)) {
            Ok(table) => {
                let cells = |row| {
                    table
                        .batch
                        .columns()
                        .iter()
                        .map(|column| array_value_to_string(column, row).unwrap())
                        .collect::<Vec<_>>()
                };
                let rows: Vec<String> = (0..table.batch.num_rows()).map(|row| cells(row).join(" ")).collect();
                rows.join(", ")
            }
            Err(reason) => reason,
        }
    }

    #[test]
    fn arrays_are_tables() {
        let floats: Vec<u8> = [1.5f64, 2.5, 3.5, 4.5]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let shape = |descr: &str, fortran: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': ({shape}), }}\n")
        };
        assert_eq!(shown(&shape("'<f8'", "False", "4,"), &floats), "1.5, 2.5, 3.5, 4.5");
        let matrix = "1.5 2.5, 3.5 4.5";
        assert_eq!(shown(&shape("'<f8'", "False", "2, 2"), &floats), matrix);
        let transposed: Vec<u8> = [1.5f64, 3.5, 2.5, 4.5]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        assert_eq!(shown(&shape("'<f8'", "True", "2, 2"), &transposed), matrix);
        let big = [258i32.to_be_bytes(), 3i32.to_be_bytes()].concat();
        assert_eq!(shown(&shape("'>i4'", "False", "2,"), &big), "258, 3");
        let mut record = 19_753i64.to_le_bytes().to_vec();
        record.extend(2.0f32.to_le_bytes());
        let header = shape("[('date', '<M8[D]'), ('x', '<f4')]", "False", "1,");
        let table = npy(&file(&header, &record)).unwrap();
        assert_eq!(table.stamps.unwrap()[0].to_string(), "2024-01-31");
        assert_eq!(
            shown(&shape("'|O'", "False", "1,"), &[]),
            "holds Python objects, which cannot be read"
        );
        assert_eq!(shown(&shape("'<f8'", "False", "9,"), &floats), "is a truncated array");
    }
}
