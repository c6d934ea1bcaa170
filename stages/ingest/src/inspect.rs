//! For `runner data inspect`: the layout recognised for a file, what its text shows, and proposed stages.

use crate::form::{Looked, filled, formed};
use crate::frame::Frame;
use crate::propose::{Proposal, propose};
use crate::unpack::{self, Format, Packed};
use datasets::layout::{self, Candidate, Form, JsonRows, Recognised, Table, Unrecognised};
use stages_core::{Source, StageError};
use stages_table_file::text::{fields, separator, text_of};

/// The number of rows from which stages are proposed.
const SAMPLED: usize = 5000;
/// The number of lines among which a header is looked for.
const PREAMBLE: usize = 40;
/// The number of rows that are shown as they stand in a file.
const SHOWN: usize = 3;

/// A file, and the layouts that may fit it.
pub struct Inspection {
    /// The name of the file or archive entry, for messages.
    pub place: String,
    /// `CSV`, `JSON` or `Parquet`; empty for a file that cannot be opened.
    pub format: &'static str,
    /// The separator of a text; `None` for other formats.
    pub separator: Option<char>,
    /// The column names in the header; for a JSON document, those of its objects.
    pub header: Vec<String>,
    /// The columns as they are in the file, and the number of rows in the sample.
    pub columns: Vec<RawColumn>,
    /// The rows from which columns and proposals were made.
    pub sampled: usize,
    /// For each kind of table, the candidate layouts, best first, and the layout that `auto` selects.
    pub tables: Vec<(Table, Vec<Candidate>, Result<Recognised, Unrecognised>)>,
    /// The proposed stages, the best first; none for a file that is no table.
    pub proposals: Vec<Proposal>,
    /// The error by which the file is no table.
    pub refused: Option<StageError>,
}

/// A column as it stands in a file.
#[derive(Clone, Debug)]
pub struct RawColumn {
    /// The name in the header.
    pub name: String,
    /// The number of values in the sample.
    pub values: usize,
    /// The number of different values.
    pub distinct: usize,
    /// The first few values.
    pub first: Vec<String>,
}

impl Inspection {
    /// The kinds of tables that the file can be read as, those with the best evidence first.
    pub fn known(&self) -> Vec<(Table, &Recognised)> {
        let mut known: Vec<(usize, Table, &Recognised)> = self
            .tables
            .iter()
            .filter_map(|(table, candidates, found)| {
                let found = found.as_ref().ok()?;
                let score = candidates
                    .iter()
                    .find(|candidate| candidate.layout.name == found.layout.name)
                    .map_or(0, Candidate::score);
                Some((score, *table, found))
            })
            .collect();
        known.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
        known.into_iter().map(|(_, table, found)| (table, found)).collect()
    }

    /// Returns whether the file is a text without columns, or without dates and numbers, or a JSON document
    /// without rows.
    pub fn is_document(&self) -> bool {
        if self.format == "CSV" && self.header.len() == 1 {
            return true;
        }
        let lacks = |proposal: &Proposal, ours: &str| proposal.missing.contains(&ours);
        let is_text = |proposal: &Proposal| lacks(proposal, "instant") && lacks(proposal, "columns");
        let is_none = match self.proposals.as_slice() {
            [] => self.format == "JSON",
            proposals => proposals.iter().all(is_text),
        };
        is_none && self.refused.is_none() && self.known().is_empty()
    }
}

/// Inspects a file, or the first entry of an archive. A file that is no table is inspected, too: the error is
/// part of the result.
///
/// # Errors
/// When the file cannot be read at all.
pub fn inspect(source: &Source) -> Result<Inspection, StageError> {
    let bytes = cache::regular_file::read(&source.path)
        .map_err(|err| crate::files::unreadable(&source.path, &err))?;
    let mut inspection = Inspection {
        place: source.path.display().to_string(),
        format: "",
        separator: None,
        header: Vec::new(),
        columns: Vec::new(),
        sampled: 0,
        tables: Vec::new(),
        proposals: Vec::new(),
        refused: None,
    };
    if let Err(err) = inspection.look(source, bytes) {
        inspection.refused = Some(err);
    }
    Ok(inspection)
}

impl Inspection {
    fn look(&mut self, source: &Source, bytes: Vec<u8>) -> Result<(), StageError> {
        let packed = unpack::first(&source.path, &bytes)?.named(&source.name);
        // A JSON document is unpacked completely.
        let packed = match packed.format {
            Format::Json => unpack::unpack(&source.path, bytes)?.remove(0).named(&source.name),
            _ => packed,
        };
        self.place.clone_from(&packed.place);
        self.format = match packed.format {
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Parquet => "Parquet",
        };
        let looked = Looked::new(&packed)?;
        self.tables = (Table::ALL.iter())
            .map(|&table| {
                let candidates = layout::candidates(table, &packed.path, |form| looked.header(form));
                let found = layout::recognise(table, &packed.path, |form| looked.header(form));
                (table, candidates, found)
            })
            .collect();
        let form = form_of(&looked, &packed);
        let header = form.as_ref().and_then(|form| looked.header(form));
        self.header = header.unwrap_or_else(|| looked.shown_header());
        if packed.format == Format::Csv {
            self.separator = text_lines(&packed).first().map(|line| char::from(separator(line)));
        }
        let Some(form) = form else { return Ok(()) };
        if !form.header.is_empty() {
            self.header.clone_from(&form.header);
        }
        let columns = sample(&packed, &form)?;
        self.sampled = columns.first().map_or(0, |(_, values)| values.len());
        self.columns = columns
            .iter()
            .map(|(name, values)| RawColumn::new(name, values))
            .collect();
        self.proposals = propose(&columns, &form);
        Ok(())
    }
}

impl RawColumn {
    fn new(name: &str, values: &[String]) -> Self {
        let present = || values.iter().filter(|value| !value.is_empty());
        Self {
            name: name.to_owned(),
            values: present().count(),
            distinct: present().collect::<std::collections::BTreeSet<_>>().len(),
            first: present().take(SHOWN).cloned().collect(),
        }
    }
}

/// The first lines of a text.
fn text_lines(packed: &Packed) -> Vec<String> {
    let text = text_of(&packed.bytes);
    let text = String::from_utf8_lossy(&text[..text.len().min(1 << 16)]);
    text.lines().take(PREAMBLE).map(str::to_owned).collect()
}

/// The form in which the file is a table: a text with lines before its header or without one, or the first
/// list of objects in a JSON document.
fn form_of(looked: &Looked<'_>, packed: &Packed) -> Option<Form> {
    let json = |rows: &str| Form {
        json: Some(JsonRows {
            rows: rows.to_owned(),
            ..JsonRows::default()
        }),
        ..Form::default()
    };
    let mut forms = match packed.format {
        Format::Csv => vec![text_form(&text_lines(packed))],
        _ => vec![Form::default(), json("")],
    };
    forms.extend(looked.lists().iter().map(|path| json(path)));
    forms.into_iter().find(|form| looked.header(form).is_some())
}

/// The form of a text by its first lines.
fn text_form(lines: &[String]) -> Form {
    let counts: Vec<usize> = lines.iter().map(|line| fields(line, separator(line)).len()).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    // The header is the first line with as many fields as most lines have, at least half of them filled.
    let is_header = |(line, count): (&String, &usize)| *count == most && filled(line) * 2 > most;
    let before = lines.iter().zip(&counts).position(is_header).unwrap_or(0);
    let has_rows = counts[before.min(counts.len())..]
        .iter()
        .filter(|count| **count == most)
        .count()
        > 1;
    let skip_lines = if most > 1 && has_rows { before } else { 0 };
    let first = lines.get(skip_lines).map_or("", String::as_str);
    let cells = fields(first, separator(first));
    let is_number = |cell: &String| cell.trim().parse::<f64>().is_ok();
    let numbers = cells.iter().filter(|cell| is_number(cell)).count();
    // A line of numbers alone, but for a day and a time, is one of data.
    if skip_lines > 0
        || numbers < 2
        || numbers + 3 < cells.len()
        || cells.iter().any(|cell| cell.trim().is_empty())
    {
        return Form {
            skip_lines,
            ..Form::default()
        };
    }
    Form {
        header: crate::propose::names_of(&cells),
        ..Form::default()
    }
}

/// The first rows of a file, as columns of text.
fn sample(packed: &Packed, form: &Form) -> Result<Vec<(String, Vec<String>)>, StageError> {
    let prepared = formed(&packed.beginning(), form)?;
    let header = crate::frame::header(&prepared)?;
    let frame = Frame::read(&prepared, |_| true)?;
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for name in header {
        let mut values = Vec::new();
        frame.texts(&name, |row, text| {
            if row < SAMPLED {
                values.push(text.to_owned());
            }
            Ok(())
        })?;
        columns.push((name.trim().to_owned(), values));
    }
    Ok(columns)
}
