//! For `runner data inspect`: the layout recognised for a file, or a proposed mapping if no layout fits.

use crate::form::{Looked, prepare};
use crate::frame::Frame;
use crate::propose::{Proposal, propose};
use crate::unpack::{self, Format, Packed};
use datasets::layout::{self, Candidate, Form, JsonRows, LayoutFile, Recognised, Table, Unrecognised};
use stages_core::{Source, StageError};
use stages_table_file::packing::HEADER_LIMIT;

/// The number of rows from which a mapping is proposed.
const SAMPLED: usize = 500;

/// A file, and the layouts that may fit it.
pub struct Inspection {
    /// The name of the file or archive entry, for messages.
    pub place: String,
    /// `CSV`, `JSON` or `Parquet`.
    pub format: &'static str,
    /// The column names in the header; for a JSON document, those of its objects.
    pub header: Vec<String>,
    /// For each kind of table, the candidate layouts, best first, and the layout that `auto` selects.
    pub tables: Vec<(Table, Vec<Candidate>, Result<Recognised, Unrecognised>)>,
    /// A proposed mapping, if no layout is selected.
    pub proposal: Option<Proposal>,
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
}

/// Inspects a file, or the first entry of an archive.
pub fn inspect(source: &Source) -> Result<Inspection, StageError> {
    let bytes = cache::regular_file::read(&source.path)
        .map_err(|err| crate::files::unreadable(&source.path, &err))?;
    let packed = unpack::first(&source.path, &bytes)?.named(&source.name);
    // A JSON document is unpacked completely.
    let packed = match packed.format {
        Format::Json => unpack::unpack(&source.path, bytes)?.remove(0).named(&source.name),
        _ => packed,
    };
    let looked = Looked::new(&packed)?;
    let tables: Vec<_> = (Table::ALL.iter())
        .map(|&table| {
            let candidates = layout::candidates(table, &packed.path, |form| looked.header(form));
            let found = layout::recognise(table, &packed.path, |form| looked.header(form));
            (table, candidates, found)
        })
        .collect();
    let is_known = tables.iter().any(|(.., found)| found.is_ok());
    let form = plain_form(&looked);
    let header = form.as_ref().and_then(|form| looked.header(form));
    let proposal = match (is_known, &form) {
        (false, Some(form)) => Some(propose_for(&packed, form)?),
        _ => None,
    };
    Ok(Inspection {
        place: packed.place.clone(),
        format: match packed.format {
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Parquet => "Parquet",
        },
        header: header.unwrap_or_else(|| looked.shown_header()),
        tables,
        proposal,
    })
}

/// The form in which the file is a table: plain text, or the first list of objects in a JSON document.
fn plain_form(looked: &Looked<'_>) -> Option<Form> {
    let json = |rows: &str| Form {
        json: Some(JsonRows {
            rows: rows.to_owned(),
            ..JsonRows::default()
        }),
        ..Form::default()
    };
    let mut forms = vec![Form::default(), json("")];
    forms.extend(looked.lists().iter().map(|path| json(path)));
    forms.into_iter().find(|form| looked.header(form).is_some())
}

/// Proposes a mapping from the first rows of a file.
fn propose_for(packed: &Packed, form: &Form) -> Result<Proposal, StageError> {
    // Any layout of this form will do, as its columns are not read.
    let plain = LayoutFile {
        columns: [("date", "date"), ("close", "close")]
            .map(|(ours, theirs)| {
                let source = layout::ColumnSource::named(theirs);
                (ours.to_owned(), layout::ColumnSources(vec![source]))
            })
            .into(),
        json: form.json.clone(),
        ..LayoutFile::default()
    };
    let plain = plain
        .layout(Table::Bars)
        .map_err(|problem| StageError::new(problem.message))?;
    let prepared = prepare(&whole_lines(packed), &plain)?.packed.into_owned();
    let header = crate::frame::header(&prepared)?;
    let frame = Frame::read(&prepared, |_| true)?;
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for name in header {
        let mut values = Vec::new();
        frame.texts(&name, |row, text| {
            if row < SAMPLED && !text.is_empty() {
                values.push(text.to_owned());
            }
            Ok(())
        })?;
        columns.push((name.trim().to_owned(), values));
    }
    Ok(propose(&columns, form.json.as_ref()))
}

/// The text without its last line, which may be incomplete.
fn whole_lines(packed: &Packed) -> Packed {
    let mut packed = packed.clone();
    if packed.format == Format::Csv
        && packed.bytes.len() as u64 >= HEADER_LIMIT
        && let Some(end) = packed.bytes.iter().rposition(|b| *b == b'\n')
    {
        packed.bytes.truncate(end + 1);
    }
    packed
}
