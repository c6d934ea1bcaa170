//! Scans delimited text: its separator, its fields, rows of the wrong length, empty lines, and the lines on
//! which rows begin.

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;
use std::borrow::Cow;

/// The separators considered in text tables.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// What a scan finds out about a text table.
pub struct Shape {
    /// The first record with another number of fields than the header, and that number.
    pub uneven: Option<(usize, usize)>,
    /// True if there may be empty lines.
    pub has_empty: bool,
}

/// Scans a text in parallel parts; `header` is the number of fields of the header.
///
/// # Errors
/// The row (from 1) at which the text is not a valid table.
pub fn shape(text: &[u8], separator: u8, header: usize) -> Result<Shape, usize> {
    let quoted = memchr(b'"', text).is_some();
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let least = PART.min(rest.len());
        let end = memchr(b'\n', &rest[least..]).map_or(rest.len(), |end| least + end + 1);
        let (part, later) = rest.split_at(end);
        parts.push(part);
        rest = later;
    }
    let look = |part: &[u8]| match std::str::from_utf8(part) {
        Err(err) => Err(1 + lines_in(&part[..err.valid_up_to()])),
        Ok(_) if quoted => Ok(Lines::default()),
        Ok(_) => Ok(Lines::of(part, separator, header)),
    };
    let looked: Vec<Result<Lines, usize>> = parts.par_iter().map(|part| look(part)).collect();
    let mut uneven = None;
    let mut has_empty = false;
    let mut before = 0;
    for (part, lines) in parts.into_iter().zip(looked) {
        // The line numbers of earlier parts are only needed if there is a fault.
        match lines {
            Ok(lines) => {
                has_empty |= lines.has_empty;
                if uneven.is_none()
                    && let Some((line, fields)) = lines.uneven
                {
                    uneven = Some((lines_in(&text[..before]) + line, fields));
                }
            }
            Err(row) => return Err(lines_in(&text[..before]) + row),
        }
        before += part.len();
    }
    if quoted {
        uneven = uneven_row(text, separator, header);
    }
    Ok(Shape {
        uneven,
        has_empty: quoted || (has_empty && has_empty_line(text)),
    })
}

/// The minimum number of bytes of a text that is scanned in one piece.
pub const PART: usize = 1 << 20;

fn lines_in(text: &[u8]) -> usize {
    text.iter().filter(|b| **b == b'\n').count()
}

/// What a scan finds out about lines without quotes.
#[derive(Default)]
struct Lines {
    /// The first line with another number of fields than the header, counted from 1, and that number.
    uneven: Option<(usize, usize)>,
    has_empty: bool,
}

impl Lines {
    fn of(text: &[u8], separator: u8, header: usize) -> Self {
        let mut has_empty = false;
        let mut start = 0;
        // The end of the text also ends a line.
        for (i, end) in memchr_iter(b'\n', text).chain([text.len()]).enumerate() {
            let line = &text[start..end];
            start = end + 1;
            if matches!(line, b"" | b"\r") {
                has_empty |= end < text.len();
            } else {
                let fields = 1 + count_of(separator, line);
                if fields != header {
                    let uneven = Some((i + 1, fields));
                    return Self { uneven, has_empty };
                }
            }
        }
        Self {
            uneven: None,
            has_empty,
        }
    }
}

/// The number of occurrences of a byte in a text, counted eight bytes at a time, since lines are too short
/// for wider steps.
pub fn count_of(byte: u8, text: &[u8]) -> usize {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let all = u64::from(byte) * 0x0101_0101_0101_0101;
    let (words, rest) = text.as_chunks::<8>();
    let in_words = words.iter().fold(0, |count, word| {
        let other = u64::from_le_bytes(*word) ^ all;
        // The high bit of each byte that differs.
        let others = (((other & LOW) + LOW) | other) & !LOW;
        count + 8 - others.count_ones() as usize
    });
    in_words + rest.iter().filter(|b| **b == byte).count()
}

/// Removes the empty lines of a text, which polars would read as rows.
pub fn without_empty_lines(text: &[u8]) -> Cow<'_, [u8]> {
    if !has_empty_line(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut quoted = false;
    for line in text.split_inclusive(|b| *b == b'\n') {
        if quoted || !begins_empty(line) {
            out.extend_from_slice(line);
        }
        quoted ^= line.iter().filter(|b| **b == b'"').count() % 2 == 1;
    }
    Cow::Owned(out)
}

fn begins_empty(rest: &[u8]) -> bool {
    rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
}

/// Returns whether the text has an empty line after its first line.
fn has_empty_line(text: &[u8]) -> bool {
    (0..text.len()).any(|i| text[i] == b'\n' && begins_empty(&text[i + 1..]))
}

/// A text without its byte-order mark, if it has one.
pub fn text_of(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The first line of a text, without its line ending.
pub fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| *b == b'\n').unwrap_or(text.len());
    &text[..end]
}

/// The most frequent separator in a header line, outside quotes.
pub fn separator(line: &str) -> u8 {
    let outside = || line.split('"').step_by(2);
    let count = |s: u8| outside().map(|part| count_of(s, part.as_bytes())).sum::<usize>();
    let mut best = SEPARATORS[0];
    for s in SEPARATORS {
        if count(s) > count(best) {
            best = s;
        }
    }
    best
}

/// The fields of a line, without quotes.
pub fn fields(line: &str, separator: u8) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_end_matches('\r').chars() {
        if c == '"' {
            quoted = !quoted;
        } else if c == char::from(separator) && !quoted {
            out.push(String::new());
        } else if let Some(field) = out.last_mut() {
            field.push(c);
        }
    }
    out
}

/// Visits the records of a text, skipping empty lines, and passes the line on which each begins (from 1) and
/// its number of fields to `take`.
fn records(text: &[u8], separator: u8, mut take: impl FnMut(usize, usize) -> bool) {
    let (mut line, mut start, mut fields, mut quoted, mut empty) = (1, 1, 1, false, true);
    for &b in text {
        match b {
            b'"' => {
                quoted = !quoted;
                empty = false;
            }
            b'\n' => {
                line += 1;
                if !quoted {
                    if !empty && !take(start, fields) {
                        return;
                    }
                    (start, fields, empty) = (line, 1, true);
                }
            }
            b if b == separator && !quoted => {
                fields += 1;
                empty = false;
            }
            b'\r' => {}
            _ => empty = false,
        }
    }
    if !empty {
        take(start, fields);
    }
}

/// The first record with another number of fields than the header, and that number.
fn uneven_row(text: &[u8], separator: u8, header: usize) -> Option<(usize, usize)> {
    let mut found = None;
    records(text, separator, |line, fields| {
        if fields != header {
            found = Some((line, fields));
        }
        found.is_none()
    });
    found
}

/// The line on which data row `row` (counted from 0) begins.
pub fn line_of(text: &[u8], row: usize) -> usize {
    let (mut seen, mut at) = (0, row + 2);
    records(text, 0, |line, _| {
        if seen == row + 1 {
            at = line;
            return false;
        }
        seen += 1;
        true
    });
    at
}
