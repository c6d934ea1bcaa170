//! Reads a stage's files and their headers.

use crate::file_memo::{File, Read, Reading, Why};
use crate::files::name_of;
use crate::files::unreadable;
use crate::form::{Looked, Lookup, prepare};
use crate::frame;
use crate::header::{self, Names};
use crate::header::{source_of, wanted};
use crate::large::Sizes;
use crate::layout_choice::{Chosen, Role};
use crate::options::is_there;
use crate::unpack::{self, Format, Packed};
use crate::whose::{Columns, Places, unread, with_column};
use arrow_array::RecordBatch;
use datasets::Date;
use datasets::layout::{Layout, Table, normal};
use rayon::prelude::*;
use serde::Serialize;
use stages_core::table::dates;
use stages_core::{ConfigProblem, Context, Source, StageError};
use stages_table_file::packing::{self, HEADER_LIMIT, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of files whose headers are read for a plan.
const PEEKED: usize = 16;

/// The number of files read at a time per thread: enough that threads seldom wait for the largest file.
const FILES_PER_THREAD: usize = 4;

/// The layout chosen for some of a stage's files, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The layout's name.
    pub layout: String,
    /// The reason, in a sentence.
    pub why: String,
    /// The number of files.
    pub files: u64,
}

/// The table of a file, with the file's layout.
pub type OfLayout = (Layout, RecordBatch);

/// Reads files in parallel. Returns their layouts and tables, in the order of `sources`, and the reasons for
/// the layouts. Files without rows dated `until` or earlier are left out.
pub fn tables(
    context: &Context,
    reading: &Reading<'_>,
    sources: &[Source],
    until: Option<Date>,
) -> Result<(Vec<OfLayout>, Vec<Reason>), StageError> {
    let mut tables = Vec::with_capacity(sources.len());
    let table = |file: &mut File<'_>| file.table(context);
    let reasons = each(context, reading, sources, table, |layout, batch| {
        let has_rows = match until {
            None => true,
            Some(_) => dates(&batch, "date")?.into_iter().any(|date| is_there(date, until)),
        };
        if has_rows {
            tables.push((layout, batch));
        }
        Ok(has_rows)
    })?;
    Ok((tables, reasons))
}

/// Reads files in parallel with `one`, and passes the result for each to `take`, in the order of `sources`.
/// Files that need a second table come last. `take` returns false for a file that does not count.
pub fn each<T: Send>(
    context: &Context,
    reading: &Reading<'_>,
    sources: &[Source],
    one: impl Fn(&mut File<'_>) -> Result<T, StageError> + Sync,
    mut take: impl FnMut(Layout, T) -> Result<bool, StageError>,
) -> Result<Vec<Reason>, StageError> {
    let done = AtomicU64::new(0);
    let total = sources.len() as u64;
    context.progress(0, Some(total), "reading");
    let places = Places::of_sources(sources);
    let read = |source: &Source, lookup: Option<Option<&Lookup>>| {
        context.check_cancelled()?;
        let read = reading.read(context, source, places.get(&source.name), lookup, &one)?;
        let name = name_of(source.path.file_name().unwrap_or_default());
        context.progress(
            (done.fetch_add(1, Ordering::Relaxed) + 1).min(total),
            Some(total),
            format!("reading {name}"),
        );
        Ok(read)
    };
    let mut reasons: Vec<Reason> = Vec::new();
    let mut notes: BTreeMap<String, u64> = BTreeMap::new();
    let mut taken = |layout: Layout, why: Why, table: T| -> Result<(), StageError> {
        let name = layout.name.clone();
        let Why {
            layout: why,
            symbol: note,
        } = why;
        if !take(layout, table)? {
            return Ok(());
        }
        if let Some(note) = note {
            *notes.entry(note).or_default() += 1;
        }
        match reasons
            .iter_mut()
            .find(|reason| reason.layout == name && reason.why == why)
        {
            Some(reason) => reason.files += 1,
            None => {
                context.log(format!("layout `{name}`: {why}"));
                reasons.push(Reason {
                    layout: name,
                    why,
                    files: 1,
                });
            }
        }
        Ok(())
    };
    let (mut joined, mut waiting): (Vec<(Source, Layout)>, Vec<Source>) = Default::default();
    let mut pass = |sources: &[Source], lookup, joined: &mut Vec<_>, waiting: &mut Vec<_>| {
        for sources in sources.chunks(FILES_PER_THREAD * rayon::current_num_threads()) {
            let tables: Vec<Result<_, StageError>> =
                sources.par_iter().map(|source| read(source, lookup)).collect();
            for (source, table) in sources.iter().zip(tables) {
                match table? {
                    Read::Table(layout, why, table) => taken(*layout, why, table)?,
                    Read::Joined(layout) => joined.push((source.clone(), *layout)),
                    Read::Waits => waiting.push(source.clone()),
                }
            }
        }
        Ok::<(), StageError>(())
    };
    pass(sources, None, &mut joined, &mut waiting)?;
    if !waiting.is_empty() {
        let lookup = lookup(&joined)?;
        pass(&waiting, Some(lookup.as_ref()), &mut Vec::new(), &mut Vec::new())?;
    } else if let Some((source, layout)) = joined.first() {
        return Err(alone(source, &layout.name));
    }
    for (note, files) in notes {
        let of = if files == 1 {
            String::new()
        } else {
            format!(" (of {files} files)")
        };
        context.warn(format!("{note}{of}"), None);
    }
    Ok(reasons)
}

/// The second table of a joined pair, from its files.
fn lookup(joined: &[(Source, Layout)]) -> Result<Option<Lookup>, StageError> {
    let mut lookup = Lookup::default();
    for (source, layout) in joined {
        let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
        let digest = cache::BlobRef::of(&bytes).blob;
        source.check(digest)?;
        for packed in unpack::unpack(&source.path, bytes)? {
            if let Some(join) = &layout.join {
                lookup.add(&packed, join, &digest.to_hex())?;
            }
        }
    }
    Ok((!joined.is_empty()).then_some(lookup))
}

/// Reads as much of a file as [`unpack::first`] needs: only the beginning if it is plain text.
fn read_head(path: &Path) -> Result<Vec<u8>, StageError> {
    let read = || {
        let mut file = cache::regular_file::open(path)?;
        let mut bytes = Vec::new();
        (&mut file).take(HEADER_LIMIT).read_to_end(&mut bytes)?;
        if packing::kind(&bytes) != Kind::Text {
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().map_err(|err: std::io::Error| unreadable(path, &err))
}

/// The error of a stage without a file to read.
pub fn no_file(until: Option<Date>) -> StageError {
    match until {
        None => StageError::new("there is no file to read"),
        Some(until) => StageError::new(format!("no file has rows on or before {until}"))
            .hint("`until` leaves out what came after it"),
    }
}

/// An evenly spaced sample of a stage's files, whose headers stand for all files in a plan; without those of
/// 0 bytes, which a run leaves out, unless all are.
pub fn some(sources: &[Source]) -> impl Iterator<Item = &Source> {
    let sample = || sources.iter().step_by(sources.len().div_ceil(PEEKED).max(1));
    let is_empty = |source: &&Source| std::fs::metadata(&source.path).is_ok_and(|meta| meta.len() == 0);
    let all_are = sample().all(|source| is_empty(&source));
    sample().filter(move |source| all_are || !is_empty(source))
}

/// The first table in a file, with its header and at least some of its rows.
pub fn first(source: &Source) -> Result<Packed, StageError> {
    let first = match Sizes::default().first(&source.path)? {
        Some(first) => first,
        None => unpack::first(&source.path, &read_head(&source.path)?)?,
    };
    Ok(first.named(&source.name))
}

/// Determines from headers alone the layouts of files, and which of our columns they hold.
pub fn peek(
    field: &str,
    sources: &[Source],
    table: Table,
    chosen: &Chosen,
    symbol: &str,
) -> Result<Vec<(Layout, BTreeSet<String>)>, ConfigProblem> {
    let step = sources.len().div_ceil(PEEKED).max(1);
    let mut found = Vec::new();
    let mut joined = None;
    for source in some(sources) {
        let mut look = || {
            let first = first(source)?;
            let layout = match chosen.resolve(table, &first)? {
                Role::Table(layout, _) => layout,
                Role::Joined(name) => {
                    joined = Some((source, name));
                    return Ok(None);
                }
            };
            let whose = Columns::of(&layout, &first)?;
            if let Some(suspect) = whose.suspect.filter(|suspect| symbol.is_empty() && !suspect.goes_on) {
                return Err(unread(&first.place, &suspect));
            }
            let layout = match whose.symbol {
                Some(symbol) => Box::new(with_column(*layout, "symbol", &symbol)),
                None => layout,
            };
            let header = Looked::new(&first)?.header(&layout.form);
            let header = header.ok_or_else(|| not_in_form(&first, &layout))?;
            let header = if layout.form.header.is_empty() {
                header
            } else {
                layout.form.header.clone()
            };
            let names = Names::new(&header, layout.join.is_some());
            header::check(&first.place, &layout, &names)?;
            let wanted = wanted(&layout);
            frame::check_unique(&first.place, &header, |name| wanted.contains(name))?;
            check_dates(&first, &layout)?;
            let present = header::filled(&layout, &names);
            Ok(Some((*layout, present)))
        };
        found.extend(look().map_err(|err: StageError| err.at(field))?);
    }
    match joined {
        Some((source, name)) if found.is_empty() && step == 1 => {
            let err = alone(source, &name);
            Err(err.at(field))
        }
        _ => Ok(found),
    }
}

/// Fails if the head of a file is the whole of it, and does not tell the day of its dates from the month.
fn check_dates(packed: &Packed, layout: &Layout) -> Result<(), StageError> {
    let is_whole = packed.format == Format::Csv && (packed.bytes.len() as u64) < HEADER_LIMIT;
    if !is_whole || layout.join.is_some() || layout.states_dates {
        return Ok(());
    }
    let prepared = prepare(packed, layout)?.packed;
    let names: BTreeSet<String> = layout.sources("date").map(|mapping| normal(&mapping.theirs)).collect();
    let frame = frame::Frame::read(&prepared, |name| names.contains(name));
    // Other faults of the rows are found in the run.
    let Ok(frame) = frame else { return Ok(()) };
    let frame = frame.with_stated(frame::Stated::of_layout(layout));
    match source_of(layout, &frame, "date") {
        Some(mapping) => frame.check_order(&mapping.theirs, &layout.dates, &layout.zone),
        None => Ok(()),
    }
}

/// The error for a second table without a first one.
fn alone(source: &Source, layout: &str) -> StageError {
    StageError::new(format!(
        "`{}` is the second table of layout `{layout}`, and no file of its first is among the stage's",
        source.path.display()
    ))
    .hint("add the files with the prices to `path`")
}

/// The error for a file that is not in the form of its layout.
fn not_in_form(packed: &Packed, layout: &Layout) -> StageError {
    let form = match (&layout.form.json, packed.format) {
        (Some(json), Format::Json) => format!("it has no list of objects at `{}`", json.rows),
        (Some(_), _) => "it is not a JSON document".to_owned(),
        (None, Format::Json) => "it is a JSON document".to_owned(),
        (None, _) if layout.form.header.is_empty() => "it has no header".to_owned(),
        (None, _) => "its first line is not one of data".to_owned(),
    };
    StageError::new(format!(
        "`{}` has not the form of layout `{}`: {form}",
        packed.place, layout.name
    ))
    .hint("`layout: auto` finds another; `runner data inspect` says what the file is")
}
