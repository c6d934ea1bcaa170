//! Texts as other programs write them, made into UTF-8 lines: encodings, line ends of old computers, a
//! separator at the end of every row, and remarks below the table.

use crate::column_names::is_known;
use crate::notes::Notes;
use crate::value::Dates;
use crate::whose::listed;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use datasets::calendar::{is_currency, of_hundredths};
use datasets::layout::normal;
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, ISO_8859_2, KOI8_R, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE,
    WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1254,
};
use memchr::{memchr, memchr_iter, memmem};
use stages_core::StageError;
use stages_table_file::text::{fields, first_line, separator, text_of};

/// Encodings that are tried for names of columns that are known.
const ENCODINGS: [&Encoding; 11] = [
    GB18030,
    BIG5,
    SHIFT_JIS,
    EUC_JP,
    EUC_KR,
    WINDOWS_1252,
    WINDOWS_1251,
    WINDOWS_1250,
    WINDOWS_1254,
    ISO_8859_2,
    KOI8_R,
];

/// The most lines of remarks below a table.
const REMARKS: usize = 3;

/// The bytes of a text as UTF-8 lines, with the number of lines left out before the header; `None` if they
/// are so already. Of a head, the last line may be cut off. `encoding` is the stated one, or empty.
pub(crate) fn plain(
    place: &str,
    bytes: &[u8],
    encoding: &str,
    is_head: bool,
    notes: &Notes,
) -> Result<Option<(Vec<u8>, isize)>, StageError> {
    let decoded = decoded(place, bytes, encoding, is_head, notes)?;
    let text = decoded.as_deref().map_or(bytes, str::as_bytes);
    if let Some(at) = memchr(0, text) {
        let row = 1 + memchr_iter(b'\n', &text[..at]).count();
        return Err(
            StageError::new(format!("`{place}`, row {row}: the text has bytes of value 0"))
                .hint("the file is damaged, or is not text: `tr -d '\\000' < FILE > NEW` removes them"),
        );
    }
    let changed = lines(text, is_head, notes);
    Ok(match (changed, decoded) {
        (Some(changed), _) => Some(changed),
        (None, Some(decoded)) => Some((decoded.into_bytes(), 0)),
        (None, None) => None,
    })
}

/// The text in UTF-8; `None` if it is UTF-8, or no encoding is found.
fn decoded(
    place: &str,
    bytes: &[u8],
    encoding: &str,
    is_head: bool,
    notes: &Notes,
) -> Result<Option<String>, StageError> {
    // The last sign of a head may be cut off.
    let whole = match is_head {
        true => &bytes[..memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)],
        false => bytes,
    };
    if !encoding.is_empty() {
        let Some(stated) = Encoding::for_label(encoding.as_bytes()) else {
            return Err(StageError::new(format!("there is no encoding `{encoding}`"))
                .hint("such as utf-8, utf-16le, gb18030, big5, shift_jis, euc-kr, windows-1252"));
        };
        let wide = if stated == UTF_16LE || stated == UTF_16BE {
            even(bytes)
        } else {
            whole
        };
        let (text, _, has_errors) = stated.decode(wide);
        if has_errors {
            return Err(StageError::new(format!("`{place}` is not a text in {}", stated.name()))
                .hint("leave `encoding` out to have it found, or state another"));
        }
        return Ok(Some(text.into_owned()));
    }
    if let Some(wide) = wide(bytes) {
        let (text, has_errors) = wide.decode_with_bom_removal(even(bytes));
        if !has_errors {
            notes.add(format!("the text is {}", wide.name()));
            return Ok(Some(text.into_owned()));
        }
    }
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(err) => is_head && err.error_len().is_none(),
    };
    if is_utf8 {
        return Ok(None);
    }
    let Some(found) = found(whole) else { return Ok(None) };
    let (text, _) = found.decode_without_bom_handling(whole);
    notes.add(format!("the text is read as {}", found.name()));
    Ok(Some(text.into_owned()))
}

/// The encoding of two bytes a sign that a text has: by its mark, or by the zeros beside signs of ASCII.
fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [0xff, 0xfe, rest @ ..] if !rest.starts_with(&[0, 0]) => return Some(UTF_16LE),
        [0xfe, 0xff, ..] => return Some(UTF_16BE),
        _ => {}
    }
    let begin = &bytes[..bytes.len().min(1 << 12)];
    memchr(0, begin)?;
    let zeros = |first: usize| begin.iter().skip(first).step_by(2).filter(|b| **b == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    let many = begin.len() / 8;
    // Signs of other scripts may have zeros in the other half.
    match (even, odd) {
        (even, odd) if odd > many.max(1) && odd > 4 * even => Some(UTF_16LE),
        (even, odd) if even > many.max(1) && even > 4 * odd => Some(UTF_16BE),
        _ => None,
    }
}

/// The bytes that are whole signs of two bytes.
fn even(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() & !1]
}

/// The encoding of a text that is not UTF-8: one in which a name of the header is a known one, or else the
/// one that its signs suggest.
fn found(text: &[u8]) -> Option<&'static Encoding> {
    // Other control characters than tabs and line ends are not in a text.
    if text.iter().any(|b| *b < 9 || (14..32).contains(b) && *b != 0x1a) {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(text, true);
    let guess = match detector.guess(None, Utf8Detection::Deny) {
        // GBK is a part of it.
        guess if guess == GBK => GB18030,
        guess => guess,
    };
    let whole = |encoding: &&'static Encoding| {
        encoding
            .decode_without_bom_handling_and_without_replacement(text)
            .is_some()
    };
    let header = first_line(text);
    let has_known = |encoding: &&'static Encoding| {
        let Some(line) = encoding.decode_without_bom_handling_and_without_replacement(header) else {
            return false;
        };
        let names = fields(&line, separator(&line));
        names.iter().any(|name| !name.is_ascii() && is_known(name))
    };
    std::iter::once(guess)
        .chain(ENCODINGS)
        .find(|encoding| has_known(encoding) && whole(encoding))
        .or_else(|| Some(guess).filter(|guess| *guess != UTF_8 && whole(guess)))
}

/// The text without what is no table in it; `None` if there is no such thing.
fn lines(text: &[u8], is_head: bool, notes: &Notes) -> Option<(Vec<u8>, isize)> {
    let mut text = std::borrow::Cow::Borrowed(text);
    let mut before = 0;
    let mut is_changed = false;
    if memchr(b'\n', &text).is_none() && memchr(b'\r', &text).is_some() {
        let unix = text.iter().map(|b| if *b == b'\r' { b'\n' } else { *b }).collect();
        (text, is_changed) = (std::borrow::Cow::Owned(unix), true);
        notes.add("lines end in CR");
    } else if first_line(&text).ends_with(b"\r\r") {
        let unix = String::from_utf8_lossy(&text).replace("\r\r\n", "\n").into_bytes();
        (text, is_changed) = (std::borrow::Cow::Owned(unix), true);
    }
    // Excel's own line about the separator.
    let first = text_of(&text);
    if first_line(first).len() <= 7 && first.get(..4).is_some_and(|sep| sep.eq_ignore_ascii_case(b"sep=")) {
        let rest = first.get(first_line(first).len() + 1..).unwrap_or_default().to_vec();
        (text, is_changed, before) = (std::borrow::Cow::Owned(rest), true, 1);
    }
    if let Some(named) = unnamed_dates(&text) {
        (text, is_changed) = (std::borrow::Cow::Owned(named), true);
        notes.add("the first column has dates and no name, and is read as `date`");
    }
    if let Some(bare) = without_units(&text, notes) {
        (text, is_changed) = (std::borrow::Cow::Owned(bare), true);
    }
    if let Some(priced) = without_actions(&text) {
        (text, is_changed) = (std::borrow::Cow::Owned(priced), true);
        notes.add("rows of dividends and splits among those of prices are left out");
    }
    if let Some(even) = trailing(&text) {
        (text, is_changed) = (std::borrow::Cow::Owned(even), true);
        notes.add("the separator at the end of rows is left out");
    }
    if !is_head && let Some(end) = remarks(&text, notes) {
        (text, is_changed) = (std::borrow::Cow::Owned(text[..end].to_vec()), true);
    }
    is_changed.then(|| (text.into_owned(), before))
}

/// Returns whether a text is a unit of prices or volumes.
fn is_unit(text: &str) -> bool {
    const WORDS: [&str; 11] = [
        "shares",
        "share",
        "lots",
        "units",
        "contracts",
        "pence",
        "p",
        "cents",
        "points",
        "pts",
        "number",
    ];
    let bare = text.trim_matches(['(', ')', '[', ']', ' ']);
    is_currency(&bare.to_ascii_uppercase())
        || of_hundredths(bare).is_some()
        || WORDS.contains(&bare.to_lowercase().as_str())
        || text.starts_with(['(', '[', '%', '$', '€', '£', '¥'])
}

/// The text with an empty line in place of a row of units below the header, which are the findings of their
/// columns.
fn without_units(text: &[u8], notes: &Notes) -> Option<Vec<u8>> {
    let header = first_line(text);
    let line = std::str::from_utf8(text_of(header)).ok()?;
    let by = separator(line);
    let rest = text.get(header.len() + 1..)?;
    let second = first_line(rest);
    let units = fields(std::str::from_utf8(second).ok()?, by);
    let begins_with_digits = |line: &[u8]| line.iter().take(9).any(u8::is_ascii_digit);
    let own: Vec<(String, &str)> = (fields(line, by).into_iter().zip(&units).skip(1))
        .map(|(name, unit)| (name, unit.trim()))
        .filter(|(_, unit)| !unit.is_empty())
        .collect();
    let is_row = units
        .first()
        .is_none_or(|first| first.contains(|c: char| c.is_ascii_digit()));
    let third = first_line(rest.get(second.len() + 1..)?);
    if is_row || own.is_empty() || !own.iter().all(|(_, unit)| is_unit(unit)) || !begins_with_digits(third) {
        return None;
    }
    let mut shown = Vec::new();
    for (name, unit) in own {
        notes.add_unit(&name, unit);
        shown.push(format!("`{}` `{unit}`", name.trim()));
    }
    notes.add(format!("the row below the header is one of units: {}", listed(&shown)));
    Some([header, b"\n", &rest[second.len()..]].concat())
}

/// The number of fields in a line.
fn count(line: &[u8], separator: u8) -> usize {
    fields(&String::from_utf8_lossy(line), separator).len()
}

/// The text with empty lines in place of the rows of dividends and splits that Yahoo shows among its prices:
/// `Mar 12, 2021` and `0.22 Dividend`.
fn without_actions(text: &[u8]) -> Option<Vec<u8>> {
    let header = text_of(first_line(text));
    let by = separator(std::str::from_utf8(header).ok()?);
    let names = count(header, by);
    let is_action = |line: &[u8]| {
        let body = line.trim_ascii_end();
        let body = body.strip_suffix(b"\"").unwrap_or(body);
        [
            &b" Dividend"[..],
            b" Split",
            b" Splits",
            b" Stock Split",
            b" Stock Splits",
        ]
        .iter()
        .any(|end| body.ends_with(end))
            && count(line, by) < names
    };
    if names < 4
        || memmem::find(text, b" Dividend")
            .or_else(|| memmem::find(text, b" Split"))
            .is_none()
    {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|b| *b == b'\n') {
        match is_action(line) {
            true => out.push(b'\n'),
            false => out.extend_from_slice(line),
        }
    }
    (out.len() < text.len()).then_some(out)
}

/// The text with `date` as the name of its first column, where that has none and dates below, as an index
/// that pandas writes.
fn unnamed_dates(text: &[u8]) -> Option<Vec<u8>> {
    let text = text_of(text);
    let header = first_line(text);
    let line = std::str::from_utf8(header).ok()?;
    let by = separator(line);
    let names = fields(line, by);
    if names.len() < 2 || !names[0].trim().is_empty() || names.iter().any(|name| normal(name) == "date") {
        return None;
    }
    let second = String::from_utf8_lossy(first_line(text.get(header.len() + 1..)?));
    let first = fields(&second, by).into_iter().next()?;
    let formats = ["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%m/%d/%Y", "%d.%m.%Y"].map(str::to_owned);
    let is_date = first.len() >= 8 && Dates::new(&formats, "").ok()?.parse(&first).is_ok();
    let rest = &header[memchr(by, header)?..];
    is_date.then(|| [b"date", rest, &text[header.len()..]].concat())
}

/// The text without the separator that ends every row of data, and not the header, or the header alone.
fn trailing(text: &[u8]) -> Option<Vec<u8>> {
    let header = first_line(text);
    let as_text = std::str::from_utf8(text_of(header)).ok()?;
    let separator = separator(as_text);
    let names = fields(as_text, separator);
    let second = first_line(text.get(header.len() + 1..)?);
    let ends = |line: &[u8]| line.trim_ascii_end_of_line().ends_with(&[separator]);
    let found = count(second, separator);
    let (of_rows, of_header) = (found == names.len() + 1 && ends(second) && !ends(header), {
        found + 1 == names.len() && names.len() > 1 && ends(header) && !ends(second)
    });
    if !of_rows && !of_header {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    for (i, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
        let body = line.trim_ascii_end_of_line();
        let is_cut = match (i, of_rows, of_header) {
            (0, false, true) => true,
            (0, ..) | (_, false, true) => false,
            (_, true, _) if body.is_empty() => false,
            (_, true, _) if body.ends_with(&[separator]) && count(body, separator) == names.len() + 1 => true,
            _ => return None,
        };
        out.extend_from_slice(&body[..body.len() - usize::from(is_cut)]);
        out.extend_from_slice(&line[body.len()..]);
    }
    Some(out)
}

/// A line without its end.
trait Line {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl Line for [u8] {
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let line = self.strip_suffix(b"\n").unwrap_or(self);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

/// The length of the text without the remarks below its table: lines of words with fewer fields.
fn remarks(text: &[u8], notes: &Notes) -> Option<usize> {
    let header = String::from_utf8_lossy(text_of(first_line(text))).into_owned();
    let separator = separator(&header);
    if fields(&header, separator).len() < 2 {
        return None;
    }
    let mut end = text.len();
    let mut found = None;
    for _ in 0..=REMARKS * 2 {
        let body = text[..end].trim_ascii_end();
        let start = memchr::memrchr(b'\n', body)? + 1;
        let line = &body[start..];
        let inner = String::from_utf8_lossy(line);
        let inner = inner.trim_matches(|c: char| c == '"' || c.is_whitespace() || c == '\u{feff}');
        let is_remark = inner.split_whitespace().count() >= 3
            && inner.starts_with(|c: char| c.is_alphabetic() || matches!(c, '*' | '#' | '©' | '['))
            && !inner.contains('"')
            // The end of a text over several lines has a quote of its own.
            && line.iter().filter(|b| **b == b'"').count() % 2 == 0
            && count(line, separator) < fields(&header, separator).len();
        if !is_remark {
            break;
        }
        notes.add(format!("left out below the table: `{}`", crate::value::shown(inner)));
        (end, found) = (start, Some(start));
    }
    found
}

/// Returns whether the text begins like one that [`plain`] would change, so that it must be read whole.
pub(crate) fn must_be_whole(begin: &[u8]) -> bool {
    let rest = begin.get(first_line(begin).len() + 1..).unwrap_or_default();
    let end = memchr::memrchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    let has_errors =
        std::str::from_utf8(&rest[..end]).is_err() || std::str::from_utf8(first_line(begin)).is_err();
    has_errors
        || wide(begin).is_some()
        || memchr(b'\n', begin).is_none()
        || first_line(begin).ends_with(b"\r\r")
        || memmem::find(&begin[..begin.len().min(7)].to_ascii_lowercase(), b"sep=").is_some()
        || begin_has_trailing(begin)
}

fn begin_has_trailing(begin: &[u8]) -> bool {
    let end = memchr::memrchr(b'\n', begin).map_or(begin.len(), |end| end + 1);
    let lines: Vec<&[u8]> = begin[..end].split_inclusive(|b| *b == b'\n').take(3).collect();
    trailing(&lines.concat()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (String, Vec<String>) {
        let notes = Notes::default();
        let found = plain("x.csv", bytes, "", false, &notes).unwrap();
        let text = found.map_or_else(|| bytes.to_vec(), |(text, _)| text);
        (String::from_utf8(text).unwrap(), notes.list())
    }

    #[test]
    fn encodings_are_found_and_said() {
        let rows = "2023-02-13,000001,12.04\n2023-02-14,000001,12.14\n";
        for (encoding, header) in [
            (GB18030, "日期,股票代码,收盘\n"),
            (BIG5, "日期,股票代號,收盤價\n"),
            (SHIFT_JIS, "日付,銘柄コード,終値\n"),
            (EUC_KR, "날짜,종목코드,종가\n"),
            (WINDOWS_1252, "Datum,Eröffnung,Schlusskurs\n"),
            (WINDOWS_1251, "Дата,Открытие,Закрытие\n"),
        ] {
            let text = format!("{header}{rows}");
            let (bytes, _, _) = encoding.encode(&text);
            assert_eq!(
                read(&bytes),
                (text, vec![format!("the text is read as {}", encoding.name())]),
                "{}",
                encoding.name()
            );
        }
        let text = format!("date,名前,close\n{rows}");
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little.clone(), [b"\xff\xfe".to_vec(), little].concat()] {
            assert_eq!(read(&bytes), (text.clone(), vec!["the text is UTF-16LE".to_owned()]));
        }
        for bytes in [big.clone(), [b"\xfe\xff".to_vec(), big].concat()] {
            assert_eq!(read(&bytes), (text.clone(), vec!["the text is UTF-16BE".to_owned()]));
        }
        assert_eq!(read(text.as_bytes()), (text, Vec::new()));
    }

    #[test]
    fn a_stated_encoding_holds() {
        let notes = Notes::default();
        let with = |encoding: &str| plain("x.csv", b"\xc8\xd5\xc6\xda,a\n", encoding, false, &notes);
        let text = |encoding: &str| String::from_utf8(with(encoding).unwrap().unwrap().0).unwrap();
        assert_eq!(text("gbk"), "日期,a\n");
        assert_eq!(text("latin1"), "ÈÕÆÚ,a\n");
        assert!(with("klingon").unwrap_err().message.contains("no encoding `klingon`"));
        assert!(with("utf-8").unwrap_err().message.contains("not a text in UTF-8"));
    }

    #[test]
    fn lines_of_other_programs() {
        assert_eq!(read(b"a,b\r1,2\r3,4\r").0, "a,b\n1,2\n3,4\n");
        assert_eq!(read(b"a,b\r\r\n1,2\r\r\n").0, "a,b\n1,2\n");
        assert_eq!(read(b"a,b\n1,2,\n3,4,\n").0, "a,b\n1,2\n3,4\n");
        assert_eq!(read(b"a,b\r\n1,2,\r\n\r\n3,4,").0, "a,b\r\n1,2\r\n\r\n3,4");
        assert_eq!(read(b"a,b,\n1,2\n").0, "a,b\n1,2\n");
        assert_eq!(read(b"sep=;\na;b\n1;2\n").0, "a;b\n1;2\n");
        for same in [
            "a,b\n1,2,\n3,4\n",
            "a,b\n1,2,x\n",
            "a,b\n1,2\n",
            "a,b\n1,2\nAAP",
            "a,b\n1,\"x\ny and more\"\n",
            "a\n",
            "",
        ] {
            assert_eq!(read(same.as_bytes()), (same.to_owned(), Vec::new()));
        }
        let (text, notes) = read(b"a,b\n1,2\n\n\"Downloaded from Barchart.com as of 02-14-2023\"\n");
        assert_eq!(text, "a,b\n1,2\n\n");
        assert!(notes[0].starts_with("left out below the table"));
        let notes = Notes::default();
        assert!(
            plain("x.csv", b"a,b\n1,\x002\n", "", false, &notes)
                .unwrap_err()
                .message
                .contains("row 2")
        );
    }
}
