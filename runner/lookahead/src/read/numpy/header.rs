//! Headers of NumPy files: a Python dictionary.

/// The type of an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// The kind: `f`, `i`, `u`, `b`, `U`, `S`, `M`, or another, whose bytes are kept.
    pub kind: u8,
    pub size: usize,
    pub big_endian: bool,
    /// Ticks of a date for a day, or microseconds for a tick.
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
pub struct Header {
    /// Its fields, each with its offset within an element; one without a name for a plain array.
    pub fields: Vec<(String, Type, usize)>,
    pub item: usize,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// The value of a key in the header, which is a Python dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))?;
    Some(
        header[at + key.len() + 2..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start(),
    )
}

/// The texts in quotes at the start of a list of fields, up to its closing bracket, and the number of opening
/// brackets between them.
fn quoted(list: &str) -> Option<(Vec<String>, usize)> {
    let (mut texts, mut rest, mut brackets) = (Vec::new(), list, 0);
    loop {
        let at = rest.find(['\'', ']'])?;
        brackets += rest[..at].matches('(').count();
        if rest.as_bytes()[at] == b']' {
            return Some((texts, brackets));
        }
        let end = rest[at + 1..].find('\'')? + at + 1;
        texts.push(rest[at + 1..end].to_owned());
        rest = &rest[end + 1..];
    }
}

/// The header of a file, and the place of its data.
pub fn split(file: &[u8]) -> Result<(Header, &str, usize), String> {
    let bad = || "is a truncated array".to_owned();
    let (from, size): (usize, usize) = match file.get(6).ok_or_else(bad)? {
        1 => (
            10,
            usize::from(u16::from_le_bytes([
                *file.get(8).ok_or_else(bad)?,
                *file.get(9).ok_or_else(bad)?,
            ])),
        ),
        _ => {
            let size: [u8; 4] = file.get(8..12).and_then(|size| size.try_into().ok()).ok_or_else(bad)?;
            (12, u32::from_le_bytes(size) as usize)
        }
    };
    let text = from
        .checked_add(size)
        .and_then(|end| file.get(from..end))
        .ok_or_else(bad)?;
    let text = std::str::from_utf8(text).map_err(|_| "has a header that is not UTF-8".to_owned())?;
    let header = Header::parse(text)?;
    let count = header
        .shape
        .iter()
        .try_fold(header.item, |all, length| all.checked_mul(*length));
    match count {
        Some(count) if count <= file.len() - from - size => Ok((header, text, from + size)),
        _ => Err(bad()),
    }
}

impl Header {
    fn parse(header: &str) -> Result<Self, String> {
        let bad = || format!("has a header that cannot be read: {}", header.trim());
        let descr = entry(header, "descr").ok_or_else(bad)?;
        let mut fields = Vec::new();
        let mut item = 0;
        if descr.starts_with('[') {
            let (texts, brackets) = quoted(descr).ok_or_else(bad)?;
            // Fields that are arrays themselves have a shape, in brackets within the brackets of the field.
            if brackets * 2 != texts.len() {
                return Err(bad());
            }
            for pair in texts.chunks_exact(2) {
                let ty = Type::parse(&pair[1])?;
                let size = ty.size;
                fields.push((pair[0].clone(), ty, item));
                item += size;
            }
        } else {
            let text = descr
                .strip_prefix('\'')
                .and_then(|text| text.split('\'').next())
                .ok_or_else(bad)?;
            let ty = Type::parse(text)?;
            item = ty.size;
            fields.push((String::new(), ty, 0));
        }
        let shape = entry(header, "shape")
            .and_then(|shape| shape.strip_prefix('(')?.split(')').next())
            .ok_or_else(bad)?;
        let lengths = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
        Ok(Self {
            fields,
            item,
            fortran: entry(header, "fortran_order").ok_or_else(bad)?.starts_with("True"),
            shape: lengths
                .map(|part| part.parse().map_err(|_| bad()))
                .collect::<Result<_, _>>()?,
        })
    }
}
