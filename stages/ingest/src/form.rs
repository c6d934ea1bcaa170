//! The forms of vendors' files made one: JSON, lines before the header, files without a header, names that
//! are repeated, and joined tables become plain text with a header.

use crate::csv_text::{fields, first_line, separator, text_of};
use crate::frame;
use crate::json_text;
use crate::unpack::{Format, Numbering, Packed};
use datasets::layout::{Form, Join, Layout, Named, normal};
use serde_json::Value;
use stages_core::StageError;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The prefix of the names of joined columns.
pub(crate) const JOINED: &str = "joined.";

/// A file whose layout is looked for: a JSON document is read once for all layouts.
pub(crate) struct Looked<'p> {
    packed: &'p Packed,
    document: OnceCell<Option<Value>>,
}

impl<'p> Looked<'p> {
    /// A file.
    ///
    /// # Errors
    /// When it is a damaged JSON document, or a table without a header.
    pub fn new(packed: &'p Packed) -> Result<Self, StageError> {
        let document = OnceCell::new();
        match packed.format {
            Format::Json => {
                let _ = document.set(Some(json_text::document(packed)?));
            }
            _ => {
                frame::header(packed)?;
            }
        }
        Ok(Self { packed, document })
    }

    /// The names in its header where it has a form; `None` where it cannot have it.
    pub fn header(&self, form: &Form) -> Option<Vec<String>> {
        match (self.packed.format, &form.json) {
            (Format::Json, Some(json)) => json_text::names(self.document.get()?.as_ref()?, json),
            (Format::Json, None) | (_, Some(_)) => None,
            (Format::Parquet, None) => match form.header.is_empty() && form.skip_lines == 0 {
                true => frame::header(self.packed).ok(),
                false => None,
            },
            (Format::Csv, None) if !form.header.is_empty() => {
                let names = frame::header(self.packed).ok()?;
                // The first line is one of data: it begins with a digit.
                names
                    .first()?
                    .starts_with(|c: char| c.is_ascii_digit())
                    .then_some(names)
            }
            (Format::Csv, None) => {
                let text = text_of(&self.packed.bytes);
                let (at, _) = header_line(text, form.skip_lines)?;
                let names = names_in(text.get(at..)?, form)?;
                Some(names)
            }
        }
    }

    /// The paths of the lists of objects in a document, down to three names.
    pub fn lists(&self) -> Vec<String> {
        fn walk(prefix: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
            let Value::Object(map) = value else { return };
            for (name, value) in map {
                let path = format!("{prefix}{name}");
                match value {
                    Value::Array(list) if list.first().is_some_and(Value::is_object) => found.push(path),
                    Value::Object(_) if depth > 1 => walk(&format!("{path}."), value, depth - 1, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        if let Some(Some(document)) = self.document.get() {
            walk("", document, 3, &mut found);
        }
        found
    }

    /// The header to show in messages.
    pub fn shown_header(&self) -> Vec<String> {
        match self.packed.format {
            Format::Json => match self.document.get() {
                Some(Some(Value::Object(map))) => map.keys().cloned().collect(),
                _ => Vec::new(),
            },
            _ => frame::header(self.packed).unwrap_or_default(),
        }
    }
}

/// The place of the header among the first lines, and how many lines stand before it: the line with the most
/// fields of the first `skip` + 1.
fn header_line(text: &[u8], skip: usize) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, usize)> = None;
    let mut at = 0;
    for number in 0..=skip {
        let line = first_line(text.get(at..)?);
        let as_text = std::str::from_utf8(line).ok()?;
        let count = fields(as_text, separator(as_text)).len();
        if best.is_none_or(|(most, ..)| count > most) {
            best = Some((count, at, number));
        }
        at += line.len() + 1;
        if at >= text.len() {
            break;
        }
    }
    best.map(|(_, at, number)| (at, number))
}

fn names_in(text: &[u8], form: &Form) -> Option<Vec<String>> {
    let line = std::str::from_utf8(first_line(text)).ok()?;
    let mut names = fields(line, separator(line));
    if form.number_repeated {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for name in &mut names {
            let count = seen.entry(normal(name)).or_insert(0);
            *count += 1;
            if *count > 1 {
                *name = format!("{}#{count}", name.trim());
            }
        }
    }
    Some(names)
}

/// A second table, by its key.
pub struct Lookup {
    names: Vec<String>,
    rows: HashMap<String, Vec<String>>,
    /// The digest of its files, as text: part of the key of what is joined to it.
    pub digest: String,
}

impl Lookup {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            names: Vec::new(),
            rows: HashMap::new(),
            digest: String::new(),
        }
    }

    /// Adds the rows of a table. Of rows with one key the last counts: a definition may be replaced.
    ///
    /// # Errors
    /// When it is damaged, or its columns are others than before.
    pub fn add(&mut self, packed: &Packed, join: &Join, digest: &str) -> Result<(), StageError> {
        let header = frame::header(packed)?;
        let names: Vec<String> = header.iter().map(|name| normal(name)).collect();
        if !self.names.is_empty() && self.names != names {
            return Err(StageError::new(format!(
                "`{}` has other columns than the other files that are joined",
                packed.place
            )));
        }
        let key = names.iter().position(|name| *name == normal(&join.on)).ok_or_else(|| {
            StageError::new(format!("`{}` has no column `{}` to join on", packed.place, join.on))
        })?;
        let frame = frame::Frame::read(packed, |_| true)?;
        let mut columns: Vec<Vec<String>> = vec![Vec::with_capacity(frame.rows()); names.len()];
        for (column, name) in columns.iter_mut().zip(&names) {
            frame.texts(name, |_, text| {
                column.push(text.to_owned());
                Ok(())
            })?;
        }
        for row in 0..frame.rows() {
            let values = columns.iter().map(|column| column[row].clone()).collect();
            self.rows.insert(columns[key][row].clone(), values);
        }
        self.names = names;
        self.digest.push_str(digest);
        Ok(())
    }

    /// The table's columns added to those of a CSV text.
    fn join(&self, packed: &Packed, join: &Join) -> Result<Vec<u8>, StageError> {
        let text = text_of(&packed.bytes);
        let line = String::from_utf8_lossy(first_line(text));
        let separator = separator(&line);
        let header = fields(&line, separator);
        let key = header
            .iter()
            .position(|name| normal(name) == normal(&join.on))
            .ok_or_else(|| {
                StageError::new(format!("`{}` has no column `{}` to join on", packed.place, join.on))
            })?;
        let mut out = Vec::with_capacity(text.len() * 2);
        let mut found = 0_usize;
        for (number, line) in text.split(|b| *b == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                // Kept, so that messages name the right lines.
                if number > 0 {
                    out.push(b'\n');
                }
                continue;
            }
            out.extend_from_slice(line);
            let values: Cow<'_, [String]> = if number == 0 {
                self.names.iter().map(|name| format!("{JOINED}{name}")).collect()
            } else {
                let row = fields(&String::from_utf8_lossy(line), separator);
                match row.get(key).and_then(|key| self.rows.get(key.trim())) {
                    Some(values) => {
                        found += 1;
                        Cow::Borrowed(values)
                    }
                    None => Cow::Owned(vec![String::new(); self.names.len()]),
                }
            };
            for value in values.iter() {
                out.push(separator);
                out.extend(value.bytes().filter(|b| *b != separator && *b != b'"' && *b != b'\n'));
            }
            out.push(b'\n');
        }
        if found == 0 && out.iter().filter(|b| **b == b'\n').count() > 1 {
            return Err(StageError::new(format!(
                "no row of `{}` has a `{}` of the joined table",
                packed.place, join.on
            ))
            .hint("name the files of both tables of the same days"));
        }
        Ok(out)
    }
}

impl Default for Lookup {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether a file with this header is the second table of a layout.
pub(crate) fn is_joined(join: &Join, header: &[String]) -> bool {
    let names: HashSet<String> = header.iter().map(|name| normal(name)).collect();
    !join.headers.is_empty() && join.headers.iter().all(|name| names.contains(&normal(name)))
}

/// A file as a plain table, with the values that its name and the lines before its header give.
pub(crate) struct Prepared<'p> {
    pub packed: Cow<'p, Packed>,
    pub given: BTreeMap<String, Named>,
}

/// Makes a plain table of a file.
///
/// # Errors
/// When it has not the form of the layout.
pub(crate) fn prepare<'p>(
    packed: &'p Packed,
    layout: &Layout,
    lookup: Option<&Lookup>,
) -> Result<Prepared<'p>, StageError> {
    let form = &layout.form;
    let mut given: BTreeMap<String, Named> = layout
        .values
        .iter()
        .map(|(ours, text)| {
            let named = Named {
                text: text.clone(),
                format: String::new(),
                per: 1.0,
            };
            (ours.clone(), named)
        })
        .collect();
    let mut add = |found: BTreeMap<String, Named>| {
        for (ours, named) in found {
            given.entry(ours).or_insert(named);
        }
    };
    if let Some(found) = layout
        .paths
        .iter()
        .find_map(|pattern| pattern.find_in_path(&packed.path))
    {
        add(found);
    }
    let with = |bytes: Vec<u8>, numbering| Packed {
        bytes: bytes.into(),
        format: Format::Csv,
        numbering,
        ..packed.clone()
    };
    let plain = match (packed.format, &form.json) {
        (Format::Json, Some(json)) => Cow::Owned(with(json_text::csv(packed, json)?, Numbering::Rows)),
        (Format::Csv, None) if !form.header.is_empty() => {
            let mut bytes = Vec::new();
            json_text::write_line(&mut bytes, form.header.iter().map(String::as_str), form.header.len());
            bytes.extend_from_slice(text_of(&packed.bytes));
            Cow::Owned(with(bytes, Numbering::Lines(-1)))
        }
        (Format::Csv, None) if form.skip_lines > 0 || form.number_repeated => {
            let text = text_of(&packed.bytes);
            let (at, before) = header_line(text, form.skip_lines).unwrap_or((0, 0));
            for line in String::from_utf8_lossy(&text[..at]).lines() {
                // Long lines are none that a pattern is for.
                let line: String = line.chars().filter(|c| *c != '"').take(400).collect();
                for found in form.preamble.iter().filter_map(|pattern| pattern.find(line.trim())) {
                    add(found);
                }
            }
            let rest = &text[at..];
            let mut bytes = Vec::with_capacity(rest.len() + 64);
            match names_in(rest, form) {
                Some(names) => {
                    let separator = [separator(&String::from_utf8_lossy(first_line(rest)))];
                    let separator = String::from_utf8_lossy(&separator).into_owned();
                    bytes.extend_from_slice(names.join(&separator).as_bytes());
                    bytes.push(b'\n');
                    bytes.extend_from_slice(rest.get(first_line(rest).len() + 1..).unwrap_or_default());
                }
                None => bytes.extend_from_slice(rest),
            }
            Cow::Owned(with(bytes, Numbering::Lines(before as isize)))
        }
        _ => Cow::Borrowed(packed),
    };
    let packed = match (&layout.join, lookup) {
        (Some(join), Some(lookup)) => {
            let bytes = lookup.join(&plain, join)?;
            Cow::Owned(Packed {
                bytes: bytes.into(),
                ..plain.into_owned()
            })
        }
        (Some(join), None) => {
            return Err(StageError::new(format!(
                "`{}` is of layout `{}`, which needs a second table, and no file of it is among the stage's",
                plain.place, layout.name
            ))
            .hint(format!(
                "add the file with the columns {} to `path`",
                join.headers.join(", ")
            )));
        }
        (None, _) => plain,
    };
    Ok(Prepared { packed, given })
}
