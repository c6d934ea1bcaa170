//! Normalises the forms of vendors' files: JSON, preambles, missing headers, repeated names and joined tables
//! all become plain text with a header.

use crate::frame::{self, Frame, Stated};
use crate::header::{self, JOINED, Names, is_class, numeric, wanted};
use crate::symbol_header;
use crate::text_settings::TextSettings;
use crate::unpack::{Format, Numbering, Packed, Part};
use crate::whose::Partitions;
use datasets::layout::{
    self, ColumnSource, ColumnSources, Form, Join, JsonRows, Layout, LayoutFile, Named, OTHERS, Pattern,
    Table, normal,
};
use serde_json::Value;
use stages_core::StageError;
use stages_table_file::json;
use stages_table_file::text::{fields, first_line, separator, text_of};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A file whose layout is to be recognised; a JSON document is parsed once for all layouts.
pub(crate) struct Looked<'p> {
    packed: &'p Packed,
    document: Option<Value>,
}

impl<'p> Looked<'p> {
    /// Prepares a file for recognition.
    pub(crate) fn new(packed: &'p Packed) -> Result<Self, StageError> {
        let document = match packed.format {
            Format::Json => Some(document(packed)?),
            _ => {
                frame::header(packed)?;
                None
            }
        };
        Ok(Self { packed, document })
    }

    /// The column names that the file has if read in this form; `None` if it cannot have the form.
    pub(crate) fn header(&self, form: &Form) -> Option<Vec<String>> {
        let mut header = self.own_header(form)?;
        let stated = Partitions::of(&self.packed.path).columns(&header);
        header.extend(stated.into_iter().map(|(name, _)| name));
        Some(header)
    }

    fn own_header(&self, form: &Form) -> Option<Vec<String>> {
        match (self.packed.format, &form.json) {
            (Format::Json, Some(_)) => json::names(self.document.as_ref()?, place(form)?),
            (Format::Json, None) | (_, Some(_)) => None,
            (Format::Parquet, None) => match form.header.is_empty() && form.skip_lines == 0 {
                true => frame::header(self.packed).ok(),
                false => None,
            },
            (Format::Csv, None) if !form.header.is_empty() => {
                let packed = self.packed.stated(&form.encoding).ok()?;
                let line = first_line(below(text_of(&packed.bytes), form.skip_lines));
                let line = std::str::from_utf8(line).ok()?;
                let names = fields(line, separator(line));
                // A first line that begins with a digit is data.
                let is_data = names
                    .first()?
                    .trim_start_matches('"')
                    .starts_with(|c: char| c.is_ascii_digit());
                (is_data || has_names(&names, form)).then_some(names)
            }
            (Format::Csv, None) if form.symbols_in_header => {
                let packed = self.packed.stated(&form.encoding).ok()?;
                Some(symbol_header::Header::of(text_of(&packed.bytes))?.names())
            }
            (Format::Csv, None) => {
                let packed = self.packed.stated(&form.encoding).ok()?;
                let text = text_of(&packed.bytes);
                let (at, _) = header_line(text, form.skip_lines)?;
                let names = names_in(text.get(at..)?, form)?;
                Some(names)
            }
        }
    }

    /// The JSON document.
    pub(crate) fn document(&self) -> Option<&Value> {
        self.document.as_ref()
    }

    /// The paths of the lists of objects in a JSON document, at most three names deep.
    pub(crate) fn lists(&self) -> Vec<String> {
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
        if let Some(document) = &self.document {
            walk("", document, 3, &mut found);
        }
        found
    }

    /// The column names to show in messages.
    pub(crate) fn shown_header(&self) -> Vec<String> {
        match self.packed.format {
            Format::Json => match &self.document {
                Some(Value::Object(map)) => map.keys().cloned().collect(),
                _ => Vec::new(),
            },
            _ => frame::header(self.packed).unwrap_or_default(),
        }
    }
}

/// Parses a JSON document; JSON lines become a list.
fn document(packed: &Packed) -> Result<Value, StageError> {
    json::document(&packed.bytes).map_err(|err| {
        StageError::new(format!("cannot read `{}`: {err}", packed.place))
            .hint("the JSON document may be damaged or incomplete")
    })
}

/// The place of the rows in a JSON document.
fn place(form: &Form) -> Option<json::Place<'_>> {
    let JsonRows { rows, key, columns } = form.json.as_ref()?;
    Some(json::Place {
        rows,
        key,
        columns: *columns,
        names: &form.header,
    })
}

/// Returns whether a first line has the names of a form for files without a header.
fn has_names(names: &[String], form: &Form) -> bool {
    let same = |(a, b): (&String, &String)| normal(a) == normal(b);
    names.len() == form.header.len() && names.iter().zip(&form.header).all(same)
}

/// A text without the lines at its end that fit a pattern of `footer`, or are empty.
fn without_footer<'t>(text: &'t [u8], footer: &[Pattern]) -> &'t [u8] {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_ascii_end();
        let start = memchr::memrchr(b'\n', trimmed).map_or(0, |at| at + 1);
        let line = String::from_utf8_lossy(&trimmed[start..]);
        let line = line.trim_matches(|c: char| c == '"' || c == ',' || c.is_whitespace());
        match start > 0 && footer.iter().any(|pattern| pattern.find(line).is_some()) {
            true => rest = &rest[..start],
            false => return rest,
        }
    }
}

/// The rows of a JSON document as columns of text.
pub(crate) fn json_part(packed: &Packed, form: &Form) -> Result<Part, StageError> {
    let document = document(packed)?;
    let table = place(form)
        .and_then(|place| json::table(&document, place))
        .ok_or_else(|| {
            let place = match form.json.as_ref().map_or("", |json| &json.rows) {
                "" => "the document",
                rows => rows,
            };
            let wanted = match form.header.len() {
                0 => "a list of objects".to_owned(),
                names => format!("a list of lists of {names} values"),
            };
            StageError::new(format!("`{}`: `{place}` is not {wanted}", packed.place)).hint(
                "`json: { rows: data.options }` of the layout says where the rows are; `key` names the \
                keys of a map",
            )
        })?;
    let batch = table?;
    Ok(Part {
        header: batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect(),
        columns: (0..batch.num_columns()).collect(),
        batch,
    })
}

/// The text below its first lines.
fn below(mut text: &[u8], lines: usize) -> &[u8] {
    for _ in 0..lines {
        text = text.get(first_line(text).len() + 1..).unwrap_or_default();
    }
    text
}

/// The number of cells of a line up to its last one with a text: spreadsheets fill every line of a preamble
/// up with separators.
pub(crate) fn filled(line: &str) -> usize {
    let cells = fields(line, separator(line));
    let last = cells
        .iter()
        .rposition(|cell| !cell.trim_matches(|c: char| c == '"' || c.is_whitespace()).is_empty());
    last.map_or(0, |last| last + 1)
}

/// The offset of the header in the text, and the number of lines before it. The header is the line with the
/// most fields among the first `skip` + 1 lines; of several, the last that has names alone.
fn header_line(text: &[u8], skip: usize) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, usize)> = None;
    let mut at = 0;
    for number in 0..=skip {
        let line = first_line(text.get(at..)?);
        let as_text = std::str::from_utf8(line).ok()?;
        let count = filled(as_text);
        let has_names = count > 1 && !as_text.contains(|c: char| c.is_ascii_digit());
        if best.is_none_or(|(most, ..)| count > most || count == most && has_names) {
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

/// The second table of a joined pair, indexed by its key.
#[derive(Default)]
pub struct Lookup {
    names: Vec<String>,
    rows: HashMap<String, Vec<String>>,
    /// The hex digest of the table's files, part of the key of results that depend on it.
    pub digest: String,
}

impl Lookup {
    /// Adds the rows of a file. The last row of each key wins, since a definition may be replaced.
    pub fn add(&mut self, packed: &Packed, join: &Join, digest: &str) -> Result<(), StageError> {
        let header = frame::header(packed)?;
        let names: Vec<String> = header.iter().map(|name| normal(name)).collect();
        if !self.names.is_empty() && self.names != names {
            return Err(StageError::new(format!(
                "`{}` has other columns than the other files that are joined",
                packed.place
            )));
        }
        let key = names.iter().position(|name| *name == normal(&join.on));
        let key = key.ok_or_else(|| no_key(&packed.place, join))?;
        let frame = Frame::read(packed, |_| true)?;
        let column = |name: &String| frame.map(name, |text| Ok(text.to_owned()));
        let columns: Vec<Vec<String>> = names.iter().map(column).collect::<Result<_, StageError>>()?;
        for row in 0..frame.rows() {
            let values = columns.iter().map(|column| column[row].clone()).collect();
            self.rows.insert(columns[key][row].clone(), values);
        }
        self.names = names;
        self.digest.push_str(digest);
        Ok(())
    }

    /// The names that the table's columns have in a table to which it is joined.
    fn joined(&self) -> impl Iterator<Item = String> {
        self.names.iter().map(|name| format!("{JOINED}{name}"))
    }
}

/// Returns whether a file with this header is the second table of a layout.
pub(crate) fn is_joined(join: &Join, header: &[String]) -> bool {
    let names: HashSet<String> = header.iter().map(|name| normal(name)).collect();
    !join.headers.is_empty() && join.headers.iter().all(|name| names.contains(&normal(name)))
}

/// A file as a plain table, with the values taken from its name and preamble.
pub(crate) struct Prepared<'p> {
    pub packed: Cow<'p, Packed>,
    pub given: BTreeMap<String, Named>,
}

impl TextSettings {
    /// A table below some lines, or one whose columns the settings name, as a table with a header.
    pub(crate) fn with_header<'p>(&self, packed: &'p Packed) -> Result<Cow<'p, Packed>, StageError> {
        if self.skip_lines == 0 && self.header.is_empty() {
            return Ok(Cow::Borrowed(packed));
        }
        let form = Form {
            skip_lines: self.skip_lines,
            header: self.header.clone(),
            ..Form::default()
        };
        formed(packed, &form).map(Cow::Owned)
    }
}

/// A file of this form as a plain table.
pub(crate) fn formed(packed: &Packed, form: &Form) -> Result<Packed, StageError> {
    // Any layout of this form will do, as its columns are not read.
    let column = |ours: &str| {
        let source = ColumnSource::named(ours);
        (ours.to_owned(), ColumnSources(vec![source]))
    };
    let plain = LayoutFile {
        columns: ["date", "close"].map(column).into(),
        json: form.json.clone(),
        skip_lines: form.skip_lines,
        header: form.header.clone(),
        ..LayoutFile::default()
    };
    let plain = plain
        .layout(Table::Bars)
        .map_err(|problem| StageError::new(problem.message))?;
    Ok(prepare(packed, &plain)?.packed.into_owned())
}

/// Converts a file to a plain table.
pub(crate) fn prepare<'p>(packed: &'p Packed, layout: &Layout) -> Result<Prepared<'p>, StageError> {
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
    let stated = packed.stated(&form.encoding)?;
    let cut: Cow<'p, Packed> = match (packed.format, form.footer.is_empty()) {
        (Format::Csv, false) => Cow::Owned(Packed {
            bytes: stated.bytes.slice_ref(without_footer(&stated.bytes, &form.footer)),
            ..stated.into_owned()
        }),
        _ => stated,
    };
    let packed: &Packed = &cut;
    let with = |bytes: Vec<u8>, numbering| Packed {
        bytes: bytes.into(),
        format: Format::Csv,
        numbering,
        ..packed.clone()
    };
    let table = match (packed.format, &form.json) {
        (Format::Json, Some(_)) => Some(Packed {
            part: Some(Arc::new(json_part(packed, form)?)),
            ..packed.clone()
        }),
        (Format::Csv, None)
            if !form.header.is_empty()
                && !frame::header(packed).is_ok_and(|names| has_names(&names, form)) =>
        {
            let quoted = |name: &String| match name.contains([',', '"', '\n', '\r', ';', '\t', '|']) {
                true => format!("\"{}\"", name.replace('"', "'").replace(['\n', '\r'], " ")),
                false => name.clone(),
            };
            let rest = below(text_of(&packed.bytes), form.skip_lines);
            // Names stand with the separator of the rows.
            let by = char::from(separator(&String::from_utf8_lossy(first_line(rest)))).to_string();
            let header = form.header.iter().map(quoted).collect::<Vec<_>>().join(&by) + "\n";
            let bytes = [header.as_bytes(), rest].concat();
            Some(with(bytes, Numbering::Lines(form.skip_lines as isize - 1)))
        }
        (Format::Csv, None) if form.symbols_in_header => {
            let header = symbol_header::Header::of(text_of(&packed.bytes)).ok_or_else(|| {
                StageError::new(format!("`{}` has no header of prices and symbols", packed.place))
                    .hint("`symbols_in_header` is for files of yfinance's `download`")
            })?;
            let (bytes, lines) = header.rows(text_of(&packed.bytes));
            Some(Packed {
                lines: Some(Arc::new(lines)),
                ..with(bytes, Numbering::Lines(0))
            })
        }
        (Format::Csv, None) if form.skip_lines > 0 || form.number_repeated => {
            let text = text_of(&packed.bytes);
            let (at, before) = header_line(text, form.skip_lines).unwrap_or((0, 0));
            for line in String::from_utf8_lossy(&text[..at]).lines() {
                // No pattern is meant for long lines, so they are cut.
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
            Some(with(bytes, Numbering::Lines(before as isize)))
        }
        _ => None,
    };
    let packed = table.map_or(cut, Cow::Owned);
    Ok(Prepared { packed, given })
}

/// The columns of a file that its layout reads, limited to the rows that the layout selects.
pub(crate) struct Opened {
    pub place: String,
    /// The name of the file or archive entry without known extensions.
    pub stem: String,
    /// The names of all columns.
    pub header: Vec<String>,
    pub frame: Frame,
    /// The values taken from the file's name and preamble.
    pub given: BTreeMap<String, Named>,
}

/// Reads a file in the form of its layout.
pub(crate) fn open(packed: &Packed, layout: &Layout, lookup: Option<&Lookup>) -> Result<Opened, StageError> {
    let Prepared { packed, given } = prepare(packed, layout)?;
    let place = &packed.place;
    let mut header = frame::header(&packed)?;
    let join = match (&layout.join, lookup) {
        (Some(join), Some(lookup)) => {
            if !header.iter().any(|name| normal(name) == normal(&join.on)) {
                return Err(no_key(place, join));
            }
            header.extend(lookup.joined());
            Some((join, lookup))
        }
        (Some(join), None) => {
            return Err(StageError::new(format!(
                "`{place}` is of layout `{}`, which needs a second table, and no file of it is among the \
                stage's",
                layout.name
            ))
            .hint(format!(
                "add the file with the columns {} to `path`",
                join.headers.join(", ")
            )));
        }
        (None, _) => None,
    };
    let stated = Partitions::of(&packed.path).columns(&header);
    let all_names: Vec<String> = header
        .iter()
        .cloned()
        .chain(stated.into_iter().map(|(name, _)| name))
        .collect();
    header::check(place, layout, &Names::new(&all_names, false))?;
    let (wanted, numeric) = (wanted(layout), numeric(layout));
    // Every other column may be the column of a symbol.
    let all = layout.mappings().any(|mapping| mapping.theirs == OTHERS);
    if all && !layout.is_described {
        without_rates(&packed, &mut header);
    }
    let states_class = layout.contract_symbol.is_some()
        || (layout.mappings().filter(|mapping| mapping.ours == "root"))
            .any(|mapping| all_names.iter().any(|name| normal(name) == normal(&mapping.theirs)));
    let is_wanted = |name: &str| all || wanted.contains(name) || !states_class && is_class(layout, name);
    let is_key = |name: &str| join.is_some_and(|(join, _)| normal(&join.on) == name);
    let is_number = |name: &str| {
        if all {
            !wanted.contains(name)
        } else {
            numeric.contains(name)
        }
    };
    // Stated separators make other numbers of plain ones.
    let is_plain = layout.decimal.is_empty() && layout.thousands.is_empty();
    let is_number = |name: &str| is_plain && is_number(name) && !is_key(name);
    let frame = Frame::read_with_numbers(&packed, |name| is_wanted(name) || is_key(name), is_number)?;
    let mut frame = frame
        .with_missing(&layout.missing)
        .with_stated(Stated::of_layout(layout));
    if let Some((join, lookup)) = join {
        let names = lookup.joined().map(|name| (normal(&name), is_wanted(&normal(&name))));
        let found = frame.join(&join.on, names, |key| lookup.rows.get(key).map(Vec::as_slice))?;
        if found == 0 && frame.rows() > 0 {
            return Err(StageError::new(format!(
                "no row of `{place}` has a `{}` of the joined table",
                join.on
            ))
            .hint("name the files of both tables of the same days"));
        }
    }
    if let Some(condition) = &layout.condition {
        frame.keep(condition)?;
    }
    Ok(Opened {
        place: packed.place.clone(),
        stem: packed.stem.clone(),
        header,
        frame,
        given,
    })
}

/// Leaves rates out of the columns of a known layout that takes every other column for prices: those that a
/// known layout of rates reads in the same file.
fn without_rates(packed: &Packed, header: &mut Vec<String>) {
    let found = layout::recognise(Table::Rates, &packed.path, |form| {
        (*form == Form::default()).then(|| header.clone())
    });
    let Ok(rates) = found else { return };
    let names: HashSet<String> = rates.layout.sources("rate").map(|rate| normal(&rate.theirs)).collect();
    let (left_out, kept): (Vec<String>, Vec<String>) = std::mem::take(header)
        .into_iter()
        .partition(|name| names.contains(&normal(name)));
    *header = kept;
    if !left_out.is_empty() {
        let left_out: Vec<String> = left_out.iter().map(|name| format!("`{}`", name.trim())).collect();
        packed.notes.add(format!(
            "{} are rates, and left out: `ingest/rates` reads them",
            left_out.join(", ")
        ));
    }
}

fn no_key(place: &str, join: &Join) -> StageError {
    StageError::new(format!("`{place}` has no column `{}` to join on", join.on))
}
