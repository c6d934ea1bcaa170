//! Scans delimited text: its separator, its fields, the first fault in it, and the lines on which rows begin.

use crate::Fault;
use memchr::{memchr, memchr_iter, memchr2_iter};
use rayon::prelude::*;
use std::borrow::Cow;

/// The separators considered in text tables.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The minimum number of bytes of a text that is checked in one piece.
const PART: usize = 1 << 20;

/// Returns whether a text is UTF-8, has no empty line, and all its records have this number of fields. Its
/// parts are checked in parallel.
pub fn is_regular(text: &[u8], separator: u8, fields: usize) -> bool {
    let is_even = |part: &[u8]| {
        if memchr(b'"', part).is_some() {
            let mut is_even = true;
            records(part, separator, |_, found| {
                is_even = found == fields;
                is_even
            });
            return is_even && !begins_empty(part) && !has_empty_line(part);
        }
        let part = part.strip_suffix(b"\n").unwrap_or(part);
        let mut start = 0;
        memchr_iter(b'\n', part).chain([part.len()]).all(|end| {
            let line = &part[std::mem::replace(&mut start, end + 1)..end];
            !matches!(line, b"" | b"\r") && count_of(separator, line) + 1 == fields
        })
    };
    parts(text)
        .par_iter()
        .all(|part| std::str::from_utf8(part).is_ok() && is_even(part))
}

/// Cuts a text into parts of whole records.
fn parts(text: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let least = PART.min(rest.len());
        let mut quoted = memchr_iter(b'"', &rest[..least]).count() % 2 == 1;
        let end = memchr2_iter(b'"', b'\n', &rest[least..]).find(|at| {
            let is_quote = rest[least + at] == b'"';
            quoted ^= is_quote;
            !is_quote && !quoted
        });
        let (part, later) = rest.split_at(end.map_or(rest.len(), |end| least + end + 1));
        parts.push(part);
        rest = later;
    }
    parts
}

/// The first line of a text that is not UTF-8 or, if all are, the first record with another number of fields
/// than the header.
pub fn fault(text: &[u8], separator: u8, header: usize) -> Option<Fault> {
    if let Err(err) = std::str::from_utf8(text) {
        return Some(not_text(
            text,
            1 + memchr_iter(b'\n', &text[..err.valid_up_to()]).count(),
        ));
    }
    let mut uneven = None;
    records(text, separator, |row, found| {
        uneven = (found != header).then_some((row, found));
        uneven.is_none()
    });
    uneven.map(|(row, found)| Fault {
        row: Some(row),
        ..Fault::new(
            format!("{found} fields under a header of {header}"),
            match found > header {
                true => "every column needs a name in the header, and a text that holds the separator quotes",
                false => "the file is cut off here, or ends in totals or notes: remove these rows",
            },
        )
    })
}

/// The fault of a file whose text is not UTF-8 on the line `row`.
pub fn not_text(bytes: &[u8], row: usize) -> Fault {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Fault::new("is UTF-16, and not UTF-8", "convert it: `iconv -f UTF-16 -t UTF-8`");
    }
    let hint = "CSV and JSON (plain, gzip, zstd or zip), Excel workbooks and Parquet files are read; `encoding:` of a \
        layout names the encoding of a text (gb18030, big5, shift_jis, euc-kr, windows-1252)";
    Fault {
        row: Some(row),
        ..Fault::new("the text is not UTF-8", hint)
    }
}

/// The number of occurrences of a byte in a text, counted eight bytes at a time, since lines are too short
/// for wider steps.
fn count_of(byte: u8, text: &[u8]) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_in_any_part() {
        for line in ["12,345\n", "\"1\n2\",345\n"] {
            let (breaks, lines) = (line.matches('\n').count(), 3 * PART / line.len());
            assert!(is_regular(line.repeat(lines).as_bytes(), b',', 2));
            assert!(is_regular(line.repeat(lines).trim_end().as_bytes(), b',', 2));
            for place in [1, lines / 2, lines - 1] {
                let with = |wrong: &[u8]| {
                    let lines = [line.repeat(place), line.repeat(lines - place)];
                    [lines[0].as_bytes(), wrong, lines[1].as_bytes()].concat()
                };
                for wrong in ["12\n", "1,2,3\n"] {
                    let text = with(wrong.as_bytes());
                    assert!(!is_regular(&text, b',', 2));
                    let found = fault(&text, b',', 2).unwrap();
                    assert_eq!(found.row, Some(breaks * place + 1));
                    assert!(found.what.starts_with(&wrong.split(',').count().to_string()));
                }
                assert!(!is_regular(&with(b"\n"), b',', 2));
                assert_eq!(fault(&with(b"\n"), b',', 2), None);
                let text = with(b"\xff,2\n");
                assert!(!is_regular(&text, b',', 2));
                assert_eq!(fault(&text, b',', 2), Some(not_text(&text, breaks * place + 1)));
            }
        }
    }

    #[test]
    fn separators_are_counted() {
        for text in [
            "",
            ",",
            "a,b",
            "1,2,3,4,5,6,7,,",
            "012345,,",
            "\u{2c2c},\u{ac2c},,,,,,,",
        ] {
            assert_eq!(count_of(b',', text.as_bytes()), text.matches(',').count());
        }
    }
}
