//! Headers of NumPy files, which are Python dictionaries.

use serde::Deserialize;

/// The type of an element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Type {
    /// The kind: `f`, `i`, `u`, `b`, `U`, `S`, `M`, or another, whose bytes are kept.
    pub kind: u8,
    pub size: usize,
    pub big_endian: bool,
    /// The unit of a date: `D`, `ns`, …
    pub unit: String,
}

impl Type {
    fn parse(descr: &str) -> Result<Self, String> {
        let (text, big_endian) = match descr.as_bytes().first() {
            Some(b'>') => (&descr[1..], true),
            Some(b'<' | b'|' | b'=') => (&descr[1..], false),
            _ => (descr, false),
        };
        let bad = || format!("holds elements of type `{descr}`, which cannot be read");
        let kind = *text.as_bytes().first().ok_or_else(bad)?;
        if kind == b'O' {
            return Err("holds Python objects, which cannot be read".to_owned());
        }
        let (size, unit) = match text[1..].split_once('[') {
            Some((size, unit)) => (size, unit.trim_end_matches(']').to_owned()),
            None => (&text[1..], String::new()),
        };
        let size: usize = size.parse().map_err(|_| bad())?;
        let size = if kind == b'U' { size * 4 } else { size };
        Ok(Self {
            kind,
            size,
            big_endian,
            unit,
        })
    }
}

/// The header of an array.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The header's text, in which the number of rows is the first length of the shape.
    text: String,
    /// The fields, each with its offset within an element; a plain array has a single field without a name.
    pub fields: Vec<(String, Type, usize)>,
    pub item: usize,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// The dictionary of a header.
#[derive(Deserialize)]
struct Dictionary {
    descr: Descr,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// The type of the elements, or the names and types of their fields.
#[derive(Deserialize)]
#[serde(untagged)]
enum Descr {
    Plain(String),
    Fields(Vec<(String, String)>),
}

/// A dictionary of Python as JSON: of its literals, NumPy writes texts, tuples, lists, numbers and truth
/// values.
fn json(header: &str) -> String {
    let mut json = String::new();
    let mut rest = header.trim();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' => {
                let (text, after) = rest.split_once(c).unwrap_or((rest, ""));
                json += &serde_json::Value::from(text).to_string();
                rest = after;
            }
            'T' | 'F' => json.push(c.to_ascii_lowercase()),
            '(' => json.push('['),
            // A comma may follow the last item.
            ')' | ']' | '}' => {
                json.truncate(json.trim_end_matches(',').len());
                json.push(if c == '}' { '}' } else { ']' });
            }
            c if c.is_whitespace() => {}
            c => json.push(c),
        }
    }
    json
}

/// Splits a file into its header and its data.
pub(super) fn split(file: &[u8]) -> Result<(Header, &[u8]), String> {
    let bad = || "is a truncated array".to_owned();
    // The header's size takes two bytes in the first version of the format, and four in later versions.
    let from = if *file.get(6).ok_or_else(bad)? == 1 { 10 } else { 12 };
    let mut size = [0; 4];
    size[..from - 8].copy_from_slice(file.get(8..from).ok_or_else(bad)?);
    let (text, data) = file[from..]
        .split_at_checked(u32::from_le_bytes(size) as usize)
        .ok_or_else(bad)?;
    let text = std::str::from_utf8(text).map_err(|_| "has a header that is not UTF-8".to_owned())?;
    let header = Header::parse(text)?;
    let mut lengths = header.shape.iter();
    let count = lengths.try_fold(header.item, |all, length| all.checked_mul(*length));
    match count {
        Some(count) if count <= data.len() => Ok((header, data)),
        _ => Err(bad()),
    }
}

impl Header {
    pub(super) fn parse(header: &str) -> Result<Self, String> {
        let bad = || format!("has a header that cannot be read: {}", header.trim());
        let read: Dictionary = serde_json::from_str(&json(header)).map_err(|_| bad())?;
        let named = match read.descr {
            Descr::Plain(ty) => vec![(String::new(), ty)],
            Descr::Fields(fields) => fields,
        };
        let mut item = 0;
        let mut fields = Vec::new();
        for (name, ty) in named {
            let ty = Type::parse(&ty)?;
            let offset = item;
            item += ty.size;
            fields.push((name, ty, offset));
        }
        Ok(Self {
            text: header.trim_end().to_owned(),
            fields,
            item,
            fortran: read.fortran_order,
            shape: read.shape,
        })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The number of elements in a row.
    pub(crate) fn width(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// True if rows are contiguous, so that the array can be written with other rows.
    pub(crate) fn is_by_rows(&self) -> bool {
        let is_by_columns = self.fortran && self.shape.len() > 1 && self.width() > 1;
        !self.shape.is_empty() && !is_by_columns
    }

    /// The beginning of a file with the given number of rows, up to its data.
    pub(crate) fn with_rows(&self, rows: usize) -> Vec<u8> {
        let lengths = [rows].into_iter().chain(self.shape[1..].iter().copied());
        let shape: Vec<String> = lengths.map(|length| length.to_string()).collect();
        let (before, rest) = self.text.split_once("'shape'").unwrap_or((&self.text, ""));
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        let mut text = format!("{before}'shape': ({},){after}", shape.join(", "));
        // The data begins at a multiple of 64 bytes.
        let version = if text.len() > 60_000 { 2 } else { 1 };
        let size_bytes = 2 * usize::from(version);
        text.push_str(&" ".repeat(63 - (8 + size_bytes + text.len()) % 64));
        text.push('\n');
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
        bytes.extend_from_slice(&size[..size_bytes]);
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }
}
