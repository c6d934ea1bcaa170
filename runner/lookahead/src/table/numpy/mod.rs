//! NumPy's `.npy` files as tables, and back
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

mod header;

pub(super) use header::Header;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use header::Type;
use std::sync::Arc;

/// The maximum number of columns as which the rows of a matrix are shown; wider rows become one cell of
/// bytes.
pub(super) const MOST_COLUMNS: usize = 512;

/// Reads an array, whose first dimension is the rows.
pub(super) fn read(file: &[u8]) -> Result<(Header, RecordBatch), String> {
    let (header, data) = header::split(file)?;
    let (rows, width, item) = (header.rows(), header.width(), header.item);
    if header.fortran && header.shape.len() > 2 {
        return Err("is an array of several dimensions in Fortran's order, which cannot be read".to_owned());
    }
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    if width > MOST_COLUMNS && !header.fortran {
        let cells: Vec<&[u8]> = (0..rows)
            .map(|row| &data[row * width * item..][..width * item])
            .collect();
        columns.push(("row".to_owned(), opaque(&cells, width * item)?));
    } else {
        for i in 0..width {
            for (name, ty, offset) in &header.fields {
                let place = |row| {
                    if header.fortran {
                        i * rows + row
                    } else {
                        row * width + i
                    }
                };
                let cells: Vec<&[u8]> = (0..rows)
                    .map(|row| &data[place(row) * item + offset..][..ty.size])
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
    Ok((header, super::batch(columns, rows)))
}

/// The numeric value of an element.
fn bytes<const N: usize>(ty: &Type, cell: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(cell);
    if ty.big_endian {
        bytes.reverse();
    }
    bytes
}

fn column(ty: &Type, cells: &[&[u8]]) -> Result<ArrayRef, String> {
    macro_rules! numbers {
        ($array:ty, $number:ty) => {{
            let numbers = cells.iter().map(|cell| <$number>::from_le_bytes(bytes(ty, cell)));
            Arc::new(<$array>::from_iter_values(numbers))
        }};
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
        (b'M', 8) if !ty.unit.is_empty() => {
            let (unit, by) = unit(ty)?;
            let ticks = cells.iter().map(|cell| i64::from_le_bytes(bytes(ty, cell)));
            // NumPy's "not a time" becomes null.
            let ticks = ticks.map(|ticks| (ticks != i64::MIN).then(|| ticks.saturating_mul(by)));
            let ticks: ArrayRef = Arc::new(ticks.collect::<Int64Array>());
            cast(&ticks, &DataType::Timestamp(unit, None)).map_err(|err| err.to_string())?
        }
        (b'U', _) => {
            let text = |cell: &&[u8]| -> Option<String> {
                let codes = cell.chunks_exact(4).map(|code| u32::from_le_bytes(bytes(ty, code)));
                codes.take_while(|code| *code != 0).map(char::from_u32).collect()
            };
            Arc::new(cells.iter().map(text).collect::<StringArray>())
        }
        (b'S', _) => {
            let text = |cell: &&[u8]| Some(String::from_utf8_lossy(cell).trim_end_matches('\0').to_owned());
            Arc::new(cells.iter().map(text).collect::<StringArray>())
        }
        _ => opaque(cells, ty.size)?,
    })
}

/// Returns cells of any type as their bytes.
fn opaque(cells: &[&[u8]], size: usize) -> Result<ArrayRef, String> {
    let size = i32::try_from(size).map_err(|_| "has rows that are too large".to_owned())?;
    let cells = cells.iter().map(|cell| Some(*cell));
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells, size);
    Ok(Arc::new(array.map_err(|err| err.to_string())?))
}

/// The unit of Arrow timestamps that can hold dates of a NumPy unit, and the number of its ticks in one NumPy
/// unit.
fn unit(ty: &Type) -> Result<(TimeUnit, i64), String> {
    Ok(match ty.unit.as_str() {
        "W" => (TimeUnit::Second, 7 * 86_400),
        "D" => (TimeUnit::Second, 86_400),
        "h" => (TimeUnit::Second, 3600),
        "m" => (TimeUnit::Second, 60),
        "s" => (TimeUnit::Second, 1),
        "ms" => (TimeUnit::Millisecond, 1),
        "us" => (TimeUnit::Microsecond, 1),
        "ns" => (TimeUnit::Nanosecond, 1),
        unit => return Err(format!("holds dates in units of `{unit}`, which cannot be read")),
    })
}

/// Writes rows of an array with this header.
pub(super) fn write(header: &Header, batch: &RecordBatch) -> Result<Vec<u8>, String> {
    let mut file = header.with_rows(batch.num_rows());
    let columns: Vec<Vec<u8>> = batch
        .columns()
        .iter()
        .enumerate()
        .map(|(i, column)| elements(&header.fields[i % header.fields.len()].1, column))
        .collect::<Result<_, _>>()?;
    for row in 0..batch.num_rows() {
        for column in &columns {
            let size = column.len() / batch.num_rows();
            file.extend_from_slice(&column[row * size..(row + 1) * size]);
        }
    }
    Ok(file)
}

/// The bytes of a column's elements, in order.
fn elements(ty: &Type, column: &ArrayRef) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(column.len() * ty.size);
    match column.data_type() {
        DataType::FixedSizeBinary(_) => {
            let cells = column.as_fixed_size_binary();
            (0..cells.len()).for_each(|row| bytes.extend_from_slice(cells.value(row)));
            return Ok(bytes);
        }
        DataType::Boolean => bytes.extend(column.as_boolean().values().iter().map(u8::from)),
        DataType::Utf8 => {
            for text in column.as_string::<i32>() {
                let mut element: Vec<u8> = match (ty.kind, text.unwrap_or_default()) {
                    (b'U', text) => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
                    (_, text) => text.as_bytes().to_vec(),
                };
                element.resize(ty.size, 0);
                bytes.extend(element);
            }
        }
        DataType::Timestamp(..) => {
            let (_, by) = unit(ty)?;
            let ticks = cast(column, &DataType::Int64).map_err(|err| err.to_string())?;
            let ticks = ticks.as_primitive::<Int64Type>();
            bytes.extend(
                ticks
                    .iter()
                    .flat_map(|ticks| ticks.map_or(i64::MIN, |ticks| ticks / by).to_le_bytes()),
            );
        }
        _ => {
            let data = column.to_data();
            let values = data.buffers().first().map_or(&[][..], |values| values.as_slice());
            bytes.extend_from_slice(&values[data.offset() * ty.size..][..data.len() * ty.size]);
        }
    }
    if ty.big_endian {
        // Each character of a text has its own byte order.
        let size = if ty.kind == b'U' { 4 } else { ty.size };
        bytes
            .chunks_exact_mut(size.max(1))
            .filter(|_| ty.kind != b'S')
            .for_each(<[u8]>::reverse);
    }
    Ok(bytes)
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
        match read(&file(header, data)) {
            Ok((_, batch)) => {
                let cells = |row| {
                    batch
                        .columns()
                        .iter()
                        .map(|column| array_value_to_string(column, row).unwrap())
                        .collect::<Vec<_>>()
                };
                let rows: Vec<String> = (0..batch.num_rows()).map(|row| cells(row).join(" ")).collect();
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
        assert_eq!(shown(&header, &record), "2024-01-31T00:00:00 2.0");
        let header = shape("[('True (x),', '<M8[D]'), (\"a'b\", '<f4')]", "False", "1, ");
        assert_eq!(shown(&header, &record), "2024-01-31T00:00:00 2.0");
        let parsed = Header::parse(&header).unwrap();
        assert_eq!(
            parsed.fields.iter().map(|field| field.0.as_str()).collect::<Vec<_>>(),
            ["True (x),", "a'b"]
        );
        assert_eq!(
            shown(&shape("'|O'", "False", "1,"), &[]),
            "holds Python objects, which cannot be read"
        );
        assert_eq!(shown(&shape("'<f8'", "False", "9,"), &floats), "is a truncated array");
    }

    #[test]
    fn rows_are_written_as_they_were_read() {
        let mut text = "{'descr': [('date', '<M8[D]'), ('x', '>f4'), ('s', '>U2'), ('z', '<c8')], \
                        'fortran_order': False, 'shape': (3,), }"
            .to_owned();
        text.push_str(&" ".repeat(127 - 10 - text.len()));
        text.push('\n');
        let mut data = Vec::new();
        for day in 0..3u8 {
            data.extend((19_753 + i64::from(day)).to_le_bytes());
            data.extend(f32::from(day).to_be_bytes());
            data.extend("ab".chars().flat_map(|c| u32::from(c).to_be_bytes()));
            data.extend([day; 8]);
        }
        let file = file(&text, &data);
        let (header, batch) = read(&file).unwrap();
        assert_eq!(write(&header, &batch).unwrap(), file);
        let rows = UInt32Array::from(vec![0, 2, 2, 1]);
        let taken = arrow_select::take::take_record_batch(&batch, &rows).unwrap();
        let (_, again) = read(&write(&header, &taken).unwrap()).unwrap();
        assert_eq!(again, taken);
        assert_eq!(read(&file[..150]).err().unwrap(), "is a truncated array");
    }
}
