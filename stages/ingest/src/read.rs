//! Reading a stage's files and their headers.

use crate::file_memo::{Reading, unreadable};
use crate::files::name_of;
use crate::frame;
use crate::options::{CustomLayout, LayoutChoice};
use crate::unpack;
use arrow::array::RecordBatch;
use datasets::layout::{Layout, Mapping};
use rayon::prelude::*;
use stages_core::{ConfigProblem, Context, Source, StageError};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of files whose headers the plan reads.
const PEEKED: usize = 16;

/// The number of files read at a time for each thread: enough that threads seldom wait for the largest.
const FILES_PER_THREAD: usize = 4;

/// Reads files in parallel and gives their layouts and tables, in the order of `sources`.
///
/// # Errors
/// When one cannot be read.
pub fn tables<C: CustomLayout>(
    context: &Context,
    reading: &Reading<'_, C>,
    sources: &[Source],
) -> Result<Vec<(Layout, RecordBatch)>, StageError> {
    let mut tables = Vec::with_capacity(sources.len());
    each(context, reading, sources, |layout, batch| {
        tables.push((layout, batch));
        Ok(())
    })?;
    Ok(tables)
}

/// As [`tables`], and passes them on one by one: no more than a few are held at a time.
///
/// # Errors
/// When one cannot be read, or `take` fails.
pub fn each<C: CustomLayout>(
    context: &Context,
    reading: &Reading<'_, C>,
    sources: &[Source],
    mut take: impl FnMut(Layout, RecordBatch) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let done = AtomicU64::new(0);
    let total = sources.len() as u64;
    context.progress(0, Some(total), "reading");
    let read = |source: &Source| {
        context.check_cancelled()?;
        let read = reading.table(context, source)?;
        let name = name_of(source.path.file_name().unwrap_or_default());
        context.progress(
            done.fetch_add(1, Ordering::Relaxed) + 1,
            Some(total),
            format!("reading {name}"),
        );
        Ok(read)
    };
    for sources in sources.chunks(FILES_PER_THREAD * rayon::current_num_threads()) {
        let tables: Vec<Result<_, StageError>> = sources.par_iter().map(read).collect();
        for table in tables {
            let (layout, batch) = table?;
            take(layout, batch)?;
        }
    }
    Ok(())
}

/// As much of a file as [`unpack::first`] needs: of a plain text its beginning.
fn read_head(path: &Path) -> Result<Vec<u8>, StageError> {
    let read = || {
        let mut file = cache::regular_file::open(path)?;
        let mut bytes = Vec::new();
        (&mut file).take(unpack::HEADER_LIMIT).read_to_end(&mut bytes)?;
        if !unpack::is_plain_text(&bytes) {
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().map_err(|err: std::io::Error| unreadable(path, &err))
}

/// Refuses files whose layouts disagree on the table's metadata, which has one value for all rows, unless `set` does.
///
/// # Errors
/// When they do.
pub fn agree<T: PartialEq>(
    layouts: &[Layout],
    what: &str,
    set: bool,
    fact: impl Fn(&Layout) -> T,
) -> Result<(), StageError> {
    let Some((first, rest)) = layouts.split_first().filter(|_| !set) else {
        return Ok(());
    };
    match rest.iter().find(|layout| fact(layout) != fact(first)) {
        None => Ok(()),
        Some(other) => Err(StageError::new(format!(
            "the files are of layouts `{}` and `{}`, whose {what} differ",
            first.name, other.name
        ))
        .hint("read them in two stages")),
    }
}

/// The layouts of files, and which of our columns they hold, from their headers alone.
///
/// # Errors
/// When a file cannot be read, or its layout is not known.
pub fn peek<C: CustomLayout>(
    field: &str,
    sources: &[Source],
    choice: &LayoutChoice<C>,
) -> Result<Vec<(Layout, BTreeSet<String>)>, ConfigProblem> {
    let step = sources.len().div_ceil(PEEKED).max(1);
    let mut found = Vec::new();
    for source in sources.iter().step_by(step) {
        let look = || {
            let first = unpack::first(&source.path, &read_head(&source.path)?)?;
            let header = frame::header(&first)?;
            let layout = choice.resolve(&first.place, &header)?;
            let wanted = wanted(&layout);
            frame::check_unique(&first.place, &header, |name| wanted.contains(name))?;
            let present = columns(&layout, &header);
            Ok((layout, present))
        };
        found.push(look().map_err(|err: StageError| ConfigProblem {
            field: field.to_owned(),
            message: err.message,
            hint: err.hint,
        })?);
    }
    Ok(found)
}

/// The columns of ours that a file with this header fills.
fn columns(layout: &Layout, header: &[String]) -> BTreeSet<String> {
    let header: BTreeSet<_> = header.iter().map(|name| datasets::layout::normal(name)).collect();
    layout
        .columns
        .iter()
        .filter(|column| header.contains(&datasets::layout::normal(&column.theirs)))
        .map(|column| column.ours.to_string())
        .collect()
}

/// The first of a layout's columns for one of ours that the frame has.
pub fn source_of<'a>(layout: &'a Layout, frame: &frame::Frame, ours: &'a str) -> Option<&'a Mapping> {
    layout.sources(ours).find(|mapping| frame.has(&mapping.theirs))
}

/// As [`source_of`], for a column that there must be.
///
/// # Errors
/// When the file has none of them.
pub fn needed<'a>(
    layout: &'a Layout,
    frame: &frame::Frame,
    place: &str,
    ours: &'a str,
) -> Result<&'a Mapping, StageError> {
    source_of(layout, frame, ours).ok_or_else(|| {
        let theirs: Vec<_> = layout
            .sources(ours)
            .map(|mapping| format!("`{}`", mapping.theirs))
            .collect();
        if theirs.is_empty() {
            StageError::new(format!(
                "layout `{}` does not say which column is `{ours}`",
                layout.name
            ))
        } else {
            StageError::new(format!("`{place}` has no column {} for `{ours}`", theirs.join(" or "))).hint(format!(
                "layout `{}` was used; `layout: {{ columns: … }}` describes another",
                layout.name
            ))
        }
    })
}

/// The columns that a layout reads, as [`frame::Frame::read`] asks for them.
pub fn wanted(layout: &Layout) -> BTreeSet<String> {
    layout
        .columns
        .iter()
        .flat_map(|column| {
            let divisor = match &column.unit {
                datasets::layout::Unit::DividedBy(other) => Some(other),
                _ => None,
            };
            std::iter::once(&column.theirs).chain(divisor)
        })
        .map(|name| datasets::layout::normal(name))
        .collect()
}

/// The columns among them that hold nothing but numbers for us.
pub fn numeric(layout: &Layout) -> BTreeSet<String> {
    use datasets::schema::{BARS, OPTION_CHAIN, RATES, Type};
    let all = [BARS, OPTION_CHAIN, RATES];
    let is_number = |ours: &str| {
        let mut columns = all.into_iter().flatten().filter(|column| column.name == ours);
        columns.next().is_some_and(|column| column.ty == Type::Float)
    };
    let (numbers, others): (Vec<&Mapping>, Vec<&Mapping>) =
        layout.columns.iter().partition(|column| is_number(&column.ours));
    let name = |mapping: &&Mapping| datasets::layout::normal(&mapping.theirs);
    let others: BTreeSet<String> = others.iter().map(name).collect();
    numbers.iter().map(name).filter(|name| !others.contains(name)).collect()
}

/// Builds the mappings of a layout described in a pipeline file, refusing columns that are not ours.
///
/// # Errors
/// The first name that is not one of `known`, or one of `needed` that is not there.
pub fn mappings<'a>(
    columns: impl IntoIterator<Item = (&'a String, &'a String)>,
    known: &[&str],
    needed: &[&str],
    factor: impl Fn(&str) -> Option<f64>,
) -> Result<Vec<Mapping>, ConfigProblem> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for (ours, theirs) in columns {
        if !known.contains(&ours.as_str()) {
            return Err(
                ConfigProblem::new(format!("layout.columns.{ours}"), format!("there is no column `{ours}`"))
                    .hint(crate::options::suggestion(ours, known)),
            );
        }
        mappings.push(Mapping {
            ours: ours.clone().into(),
            theirs: theirs.clone().into(),
            unit: match factor(ours) {
                Some(factor) => datasets::layout::Unit::Times(factor),
                None => datasets::layout::Unit::AsIs,
            },
            tenor_years: None,
        });
    }
    for needed in needed {
        if !mappings.iter().any(|mapping| mapping.ours == *needed) {
            return Err(
                ConfigProblem::new("layout.columns", format!("no column is given for `{needed}`"))
                    .hint(format!("add `{needed}: <the name in the files' header>`")),
            );
        }
    }
    Ok(mappings)
}
