//! Arrays that are written again with other rows.

use super::header::{self, Header, Type};
use crate::document::Element;

/// An array of rows.
pub struct Array {
    header: Header,
    /// The header's text, in which the number of rows is another one.
    text: String,
    data: Vec<u8>,
    /// The bytes of a row.
    row: usize,
}

impl Array {
    /// Reads an array.
    ///
    /// # Errors
    /// When it is damaged, or its rows are not one after another.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let (header, text, from) = header::split(file)?;
        let width: usize = header.shape.iter().skip(1).product();
        if header.shape.is_empty() || header.fortran && header.shape.len() > 1 && width > 1 {
            return Err("is an array in Fortran's order, whose future cannot be changed".to_owned());
        }
        Ok(Self {
            row: width * header.item,
            text: text.to_owned(),
            data: file[from..].to_vec(),
            header,
        })
    }

    /// The bytes of some rows, some of their elements replaced: `new` is given a column and a place among the
    /// rows.
    pub fn rows(&self, from: &[usize], new: impl Fn(usize, usize) -> Option<Element>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(from.len() * self.row);
        let fields = self.header.fields.len();
        let columns = fields * (self.row / self.header.item.max(1));
        for (place, &row) in from.iter().enumerate() {
            let start = bytes.len();
            bytes.extend_from_slice(&self.data[row * self.row..(row + 1) * self.row]);
            for column in 0..columns {
                let (_, ty, offset) = &self.header.fields[column % fields];
                let at = start + column / fields * self.header.item + offset;
                if let Some(element) = new(column, place) {
                    put(ty, &element, &mut bytes[at..at + ty.size]);
                }
            }
        }
        bytes
    }

    /// The file with old and new rows, each with 0 or 1 and its place among these.
    pub fn write(&self, new: &[u8], picks: &[(usize, usize)]) -> Vec<u8> {
        let shape: Vec<String> = [picks.len()]
            .iter()
            .chain(&self.header.shape[1..])
            .map(ToString::to_string)
            .collect();
        let text = self.text.trim_end();
        let (before, rest) = text.split_once("'shape'").unwrap_or((text, ""));
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        let mut text = format!("{before}'shape': ({},){after}", shape.join(", "));
        // The data begins at a multiple of 64 bytes.
        let wide = text.len() > 60_000;
        let prefix = if wide { 12 } else { 10 };
        text.push_str(&" ".repeat(63 - (prefix + text.len()) % 64));
        text.push('\n');
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([if wide { 2 } else { 1 }, 0]);
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
        bytes.extend_from_slice(if wide { &size } else { &size[..2] });
        bytes.extend_from_slice(text.as_bytes());
        for &(version, row) in picks {
            let data = if version == 0 { &self.data } else { new };
            bytes.extend_from_slice(&data[row * self.row..(row + 1) * self.row]);
        }
        bytes
    }
}

/// Writes an element; one of another type stays.
fn put(ty: &Type, element: &Element, bytes: &mut [u8]) {
    let little: Vec<u8> = match (element, ty.kind, ty.size) {
        (Element::Number(value), b'f', 8) => value.to_le_bytes().to_vec(),
        (Element::Number(value), b'f', 4) => (*value as f32).to_le_bytes().to_vec(),
        (Element::Number(value), b'i', 8) => (*value as i64).to_le_bytes().to_vec(),
        (Element::Number(value), b'i', 4) => (*value as i32).to_le_bytes().to_vec(),
        (Element::Number(value), b'i', 2) => (*value as i16).to_le_bytes().to_vec(),
        (Element::Number(value), b'i', 1) => (*value as i8).to_le_bytes().to_vec(),
        (Element::Number(value), b'u', 8) => (*value as u64).to_le_bytes().to_vec(),
        (Element::Number(value), b'u', 4) => (*value as u32).to_le_bytes().to_vec(),
        (Element::Number(value), b'u', 2) => (*value as u16).to_le_bytes().to_vec(),
        (Element::Number(value), b'u', 1) => vec![*value as u8],
        (Element::Flag(flag), b'b', 1) => vec![u8::from(*flag)],
        (Element::Text(text), b'S', size) => padded(text.as_bytes(), size),
        (Element::Text(text), b'U', size) => {
            // Each character by itself, so that the order of bytes is the element's.
            let chars = text.chars().flat_map(|c| {
                let code = c as u32;
                if ty.big_endian {
                    code.to_be_bytes()
                } else {
                    code.to_le_bytes()
                }
            });
            bytes.copy_from_slice(&padded(&chars.collect::<Vec<u8>>(), size));
            return;
        }
        _ => return,
    };
    bytes.copy_from_slice(&little);
    if ty.big_endian && matches!(element, Element::Number(_)) {
        bytes.reverse();
    }
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut padded = bytes[..bytes.len().min(size)].to_vec();
    padded.resize(size, 0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::array;

    #[test]
    fn rows_are_replaced_removed_and_added() {
        let mut text =
            "{'descr': [('date', '<M8[D]'), ('x', '>f4'), ('s', '<U2')], 'fortran_order': False, 'shape': (3,), }"
                .to_owned();
        text.push_str(&" ".repeat(127 - 10 - text.len()));
        text.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
        file.extend(text.as_bytes());
        for day in 0..3u8 {
            file.extend((19_753 + i64::from(day)).to_le_bytes());
            file.extend(f32::from(day).to_be_bytes());
            file.extend("ab".chars().flat_map(|c| u32::from(c).to_le_bytes()));
        }
        let read = Array::read(&file).unwrap();
        assert_eq!(read.write(&[], &[(0, 0), (0, 1), (0, 2)]), file);
        let new = read.rows(&[2, 2], |column, place| match (column, place) {
            (1, _) => Some(Element::Number(7.5)),
            (2, 1) => Some(Element::Text("c".to_owned())),
            _ => None,
        });
        let table = array(&read.write(&new, &[(0, 0), (1, 1), (1, 0)])).unwrap();
        let cell = |column: usize, row| {
            arrow_cast::display::array_value_to_string(table.batch.column(column), row).unwrap()
        };
        assert_eq!(
            [cell(1, 0), cell(1, 1), cell(2, 0), cell(2, 1), cell(2, 2)],
            ["0.0", "7.5", "ab", "c", "ab"]
        );
        assert_eq!(table.stamps.unwrap()[2].to_string(), "2024-02-02");
        assert_eq!(Array::read(&file[..150]).err().unwrap(), "is a truncated array");
    }
}
