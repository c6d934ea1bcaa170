//! Formatting of numbers, tables and foreign text for people.

pub use stages_core::visible::{visible, visible_line};
use std::borrow::Cow;

/// A duration: `0.42 s`, `12.3 s`, `4 min 05 s`, `2 h 03 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 119.95 {
        format!("{seconds:.1} s")
    } else if whole < 7200 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
    }
}

/// A size: `512 B`, `4.0 KiB`, `1.2 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A number with at most five significant digits; integers without a fraction.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() || value.is_infinite() || value.fract() == 0.0 && size < 1e15 {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = (4 - size.log10().floor() as i32).clamp(0, 8);
    let text = format!("{value:.*}", digits as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A stage's id as a file name. Ids that differ have different names.
pub fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for &byte in id.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-_=.,[]".contains(&byte) {
            name.push(byte.into());
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

/// The maximum length of a cell of a table, in characters.
const LONGEST_CELL: usize = 1000;

/// A cell of a table: one line without control characters, cut to [`LONGEST_CELL`].
fn cell(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_CELL) {
        Some((end, _)) => format!("{}…", visible_line(&text[..end])).into(),
        None => visible_line(text),
    }
}

/// The number of columns of a terminal that tables keep to.
pub const WIDTH: usize = 100;

/// The least width to which texts are wrapped.
const NARROW: usize = 10;

/// The length to which the first column, with names, is not wrapped.
const LONGEST_NAME: usize = 44;

/// The least length to which the titles of numbers are wrapped.
const SHORT: usize = 8;

/// A table with aligned columns; those in `right` are right-aligned. Lines have no trailing blanks. Cells may
/// hold any text. Texts are wrapped within their columns, and so are the names of numbers, where the table is
/// wider than [`WIDTH`].
pub fn table(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    table_rows(header, rows, right).concat()
}

/// The header and each row of a [`table`], each of one line or of several.
pub fn table_rows(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let header: Vec<Cow<'_, str>> = header.iter().map(|text| cell(text)).collect();
    let rows: Vec<Vec<Cow<'_, str>>> = rows
        .iter()
        .map(|row| row.iter().map(|text| cell(text)).collect())
        .collect();
    let mut least = vec![0; header.len()];
    for row in &rows {
        for (width, cell) in least.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut widths: Vec<usize> = header
        .iter()
        .zip(&least)
        .map(|(name, width)| name.chars().count().max(*width))
        .collect();
    for (i, least) in least.iter_mut().enumerate() {
        *least = match i {
            // A name and the id of a run stay whole, to be copied.
            0 if !right.contains(&0) => (*least).min(LONGEST_NAME),
            _ if header[i] == "run" => (*least).min(LONGEST_NAME),
            _ if right.contains(&i) => (*least).max(SHORT.min(header[i].chars().count())),
            _ => NARROW,
        };
    }
    narrow(&mut widths, &least);
    let line = |cells: &[Cow<'_, str>]| {
        let mut out = String::new();
        let wrapped: Vec<Vec<&str>> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrap(cell, *width))
            .collect();
        for at in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1) {
            let mut text = String::new();
            for (i, (parts, width)) in wrapped.iter().zip(&widths).enumerate() {
                let cell = parts.get(at).copied().unwrap_or_default();
                if i > 0 {
                    text.push_str("  ");
                }
                if right.contains(&i) {
                    text.push_str(&format!("{cell:>width$}"));
                } else {
                    text.push_str(&format!("{cell:<width$}"));
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    };
    let rows = rows.iter().map(|row| line(row));
    std::iter::once(line(&header)).chain(rows).collect()
}

/// Narrows the widest columns, each to its least width at most, until the table fits.
fn narrow(widths: &mut [usize], least: &[usize]) {
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > WIDTH {
        let wide = (0..widths.len()).filter(|&i| widths[i] > least[i]);
        let Some(widest) = wide.max_by_key(|&i| widths[i]) else {
            return;
        };
        widths[widest] -= 1;
    }
}

/// The number of the first of these columns that fit into [`WIDTH`], one at least.
pub fn fitting(header: &[&str], rows: &[Vec<String>], columns: &[usize]) -> usize {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        let lengths = cells
            .chain(header.get(column).copied())
            .map(|text| text.chars().count());
        lengths.max().unwrap_or(0)
    };
    let mut used = 0;
    let fits = |column: &&usize| {
        used += width(**column) + 2;
        used <= WIDTH + 2
    };
    columns.iter().take_while(fits).count().max(1)
}

/// Lines of at most `width` characters: broken at blanks, or else after punctuation.
pub fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((line, next)) = first_line(rest, width) {
        lines.push(line);
        rest = next;
    }
    lines.push(rest);
    lines
}

/// The first of the lines of a text, and the text after it; `None` if the text is one line.
fn first_line(text: &str, width: usize) -> Option<(&str, &str)> {
    let (end, _) = text.char_indices().nth(width.max(1))?;
    let (part, next) = (&text[..end], text[end..].chars().next());
    let punctuation = |c: char| matches!(c, '.' | ',' | '/' | '_' | '=' | '-' | ';' | ']');
    let blank = if next == Some(' ') {
        Some(end)
    } else {
        part.rfind(' ').filter(|at| *at > 0)
    };
    let cut = blank
        .or_else(|| part.rfind(punctuation).map(|at| at + 1))
        .unwrap_or(end);
    Some((text[..cut].trim_end(), text[cut..].trim_start()))
}

/// Text whose lines have at most [`WIDTH`] columns; what does not fit follows, indented by four more.
pub fn folded(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim_end) {
        let mut rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let mut margin = indent;
        while let Some((first, next)) = first_line(rest, WIDTH.saturating_sub(margin).max(NARROW)) {
            out.push_str(&format!("{:margin$}{first}\n", ""));
            rest = next;
            margin = indent + 4;
        }
        out.push_str(&format!("{:margin$}{rest}\n", ""));
    }
    out
}

/// A table after a blank line; empty if it has no rows.
pub fn block(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", table(header, rows, right)),
    }
}

/// `a, b and 3 more`: the first `most` of the names.
pub fn some<'t>(names: impl IntoIterator<Item = &'t str>, most: usize) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names[..most.min(names.len())].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `1 stage`, `2 stages`.
pub fn count(n: impl TryInto<u64>, what: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let durations: Vec<String> = [0.0, 0.123, 9.99, 10.0, 119.9, 119.96, 245.0, 7199.0, 7200.0, 7380.0]
            .map(duration)
            .into();
        assert_eq!(
            durations.join(", "),
            "0.00 s, 0.12 s, 9.99 s, 10.0 s, 119.9 s, 2 min 00 s, 4 min 05 s, 119 min 59 s, 2 h 00 min, 2 h \
            03 min"
        );
        assert_eq!(
            [0, 1023, 1024, 1 << 20, 5 << 29].map(size).join(", "),
            "0 B, 1023 B, 1.0 KiB, 1.0 MiB, 2.5 GiB"
        );
        let figures: Vec<String> = [
            0.0,
            -3.0,
            0.123456,
            -12.34567,
            98765.4321,
            0.25,
            1.99999999,
            1234567.8,
            3e-5,
            1e20,
            f64::NAN,
        ]
        .map(figure)
        .into();
        assert_eq!(
            figures.join(", "),
            "0, -3, 0.12346, -12.346, 98765, 0.25, 2, 1234568, 3.000e-5, 1.000e20, NaN"
        );
        assert_eq!(some(["a", "b"], 2), "a, b");
        assert_eq!(some(["a", "b", "c"], 1), "a and 2 more");
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long".to_owned(), "22".to_owned()],
        ];
        assert_eq!(table(&["name", "n"], &rows, &[1]), "name   n\na      1\nlong  22\n");
    }

    #[test]
    fn tables_of_any_text() {
        let rows = [vec!["x".repeat(66_000), "\u{1b}]0;evil\u{7}\nforged".to_owned()]];
        let shown = table(&["a", "b"], &rows, &[]);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest == Some(WIDTH) && shown.len() < 2500, "{shown}");
        assert!(shown.contains("\\u001b]0;evil\\u0007 forged"), "{shown}");
    }

    #[test]
    fn long_lines_are_folded() {
        let long = format!("  {}", "needs chain.greeks, ".repeat(12));
        let shown = folded(&format!("short\n\n{long}\n"));
        assert_eq!(shown.split_whitespace().count(), 1 + 24);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert_eq!(lines[..2], ["short", ""]);
        assert!(
            lines[2].starts_with("  needs") && lines[3].starts_with("      "),
            "{shown}"
        );
        let word = format!("  {}\n      {}\n", "x".repeat(98), "x".repeat(52));
        assert_eq!(folded(&format!("  {}", "x".repeat(150))), word);
    }

    #[test]
    fn wide_tables_are_wrapped() {
        let reason = "with.learning_rate: 0.0003 -> 0.0001, and its input env differs in 2 of 12 parts, which \
            the run before had";
        let rows = [vec!["train[seed=1]".to_owned(), "1.5".to_owned(), reason.to_owned()]];
        let shown = table(
            &["stage", "evaluate.charts/episodic_return_of_a_long_name", "why"],
            &rows,
            &[1],
        );
        assert_eq!(
            shown,
            "stage          evaluate.charts/episodic_return_of_a_long_  why\n                                 \
            \x20                   name\ntrain[seed=1]                                         1.5  \
            with.learning_rate: 0.0003 -> 0.0001, and\n                                                 \
            \x20         its input env differs in 2 of 12 parts,\n                                     \
            \x20                     which the run before had\n"
        );
    }
}
