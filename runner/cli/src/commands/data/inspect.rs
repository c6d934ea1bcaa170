//! `runner data inspect`.

use super::attempt::{Attempt, attempt as tried, left_out, questions};
use super::chain;
use super::contents::{Range, contents, days, first_rows, ranges};
use super::read::{self, Looked, Read, path_of};
use super::trial::Scratch;
use crate::commands::data::read::ReadArgs;
use crate::output;
use crate::session::Session;
use arrow_array::RecordBatch;
use clap::Args;
use datasets::Date;
use datasets::layout::Table;
use runner_engine::{Failure, text};
use serde_json::{Value, json};
use stages_core::StageError;
use stages_ingest::propose::scalar;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Show what files are taken for and why, and their contents.
///
/// Also their quality, and the YAML of a stage that reads them.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner data inspect data/spx_eod_202312.txt
  runner data inspect data/options --layout ./my_vendor.yaml
  runner data inspect unknown.csv      # proposes a mapping")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub read: ReadArgs,
}

pub(crate) fn inspect(session: &Session, args: &ReadArgs) -> Result<(), Failure> {
    let scratch = Scratch::new(&session.current)?;
    let shown = Shown::new(session, &scratch, args)?;
    match session.json {
        true => output::print_json(&shown.json()),
        false => output::print(&shown.text(&scratch)?),
    }
}

/// Files, and what became of them.
struct Shown {
    args: ReadArgs,
    looked: Looked,
    /// The files of other headers.
    others: Vec<String>,
    attempt: Option<Attempt>,
    /// The error of files that no stage is proposed for.
    refused: Option<StageError>,
    batches: Vec<RecordBatch>,
    columns: Vec<Range>,
    days: BTreeSet<Date>,
}

impl Shown {
    fn new(session: &Session, scratch: &Scratch, args: &ReadArgs) -> Result<Self, Failure> {
        let mut args = args.clone();
        let mut looked = read::look(&session.current, &args)?;
        let mut attempt = tried(scratch, &args, &looked)?;
        // Files of several headers are several tables: the one with most bytes is shown.
        let mut others = Vec::new();
        if attempt.as_ref().is_none_or(|attempt| attempt.read.is_none())
            && let [path] = args.paths.as_slice()
            && let [(_, first), rest @ ..] = read::by_header(&session.current, path)?.as_slice()
            && !rest.is_empty()
        {
            others = rest.iter().flat_map(|(_, paths)| paths.clone()).collect();
            args.paths.clone_from(first);
            looked = read::look(&session.current, &args)?;
            attempt = tried(scratch, &args, &looked)?;
        }
        let batches = match attempt.as_ref().and_then(|attempt| attempt.read.as_ref()) {
            Some(read) => read.partitions()?,
            None => Vec::new(),
        };
        let table = attempt.as_ref().and_then(|attempt| attempt.table);
        Ok(Self {
            refused: attempt.is_none().then(|| looked.refusal(&args)),
            columns: ranges(table, &batches),
            days: days(&batches),
            args,
            looked,
            others,
            attempt,
            batches,
        })
    }

    fn read(&self) -> Option<&Read> {
        self.attempt.as_ref()?.read.as_ref()
    }

    fn meta(&self) -> Option<&Value> {
        self.read().map(|read| &read.artifact.meta)
    }

    fn finding(&self) -> Option<&StageError> {
        match &self.attempt {
            Some(attempt) => attempt.finding.as_ref(),
            None => self.refused.as_ref(),
        }
    }

    fn json(&self) -> Value {
        let (first, attempt) = (&self.looked.first, self.attempt.as_ref());
        let (known, proposed) = match attempt {
            Some(attempt) if attempt.is_proposed => (None, Some(attempt)),
            attempt => (attempt, None),
        };
        json!({
            "files": self.looked.files,
            "files_of_other_headers": self.others,
            "format": first.format,
            "separator": first.separator,
            "header": first.header,
            "table": known.and_then(|attempt| attempt.table),
            "proposed_table": proposed.map(|attempt| &attempt.name),
            "kind": attempt.map(|attempt| &attempt.kind),
            "why": attempt.map(|attempt| &attempt.why),
            "candidates": candidates(&self.looked),
            "columns": self.columns,
            "first_rows": first_rows(&self.batches),
            "first_day": self.days.first(),
            "last_day": self.days.last(),
            "days": self.days.len(),
            "missing": attempt.map(|attempt| &attempt.missing),
            "doubts": attempt.map(|attempt| &attempt.doubts),
            "finding": self.finding().map(|err| &err.message),
            "hint": self.finding().and_then(|err| err.hint.as_ref()),
            "questions": attempt.map(|attempt| questions(&attempt.yaml)),
            "read_with": attempt.map(|attempt| &attempt.under),
            "meta": self.meta(),
            "stage": attempt.map(|attempt| &attempt.yaml),
        })
    }

    fn text(&self, scratch: &Scratch) -> Result<String, Failure> {
        let looked = &self.looked;
        let mut out = opening(&self.args, looked);
        if !self.others.is_empty() {
            let _ = writeln!(
                out,
                "files with other headers are left out (inspect them by themselves; `runner init` takes all): \
                 {}",
                self.others.join(", ")
            );
        }
        let header = looked.first.header.join(", ");
        match &self.attempt {
            Some(attempt) if !attempt.is_proposed => {
                let layouts = self.read().map(layouts_of).filter(|layouts| !layouts.is_empty());
                let layouts = layouts.map(|layouts| format!("{layouts} of ")).unwrap_or_default();
                let _ = writeln!(
                    out,
                    "header: {header}\ntaken for {layouts}{}: {}",
                    attempt.name, attempt.why
                );
                write_candidates(&mut out, looked, 4);
            }
            Some(attempt) => {
                let _ = writeln!(out, "no known layout has this header: {header}");
                write_candidates(&mut out, looked, 3);
                let _ = writeln!(out, "taken for {} ({}): {}", attempt.name, attempt.kind, attempt.why);
            }
            None => write_candidates(&mut out, looked, 4),
        }
        if let Some(err) = self.finding() {
            let _ = writeln!(out, "\nfinding: {}", err.message);
            if let Some(hint) = &err.hint {
                let _ = writeln!(out, "  hint: {hint}");
            }
        }
        if let Some(attempt) = &self.attempt {
            doubts(&mut out, attempt);
        }
        match self.meta() {
            Some(meta) => contents(&mut out, meta, &self.batches, &self.columns, &self.days),
            None => raw(&mut out, looked),
        }
        if let Some(attempt) = &self.attempt {
            if let Some(read) = attempt.read.as_ref().filter(|_| attempt.table == Some(Table::Chain)) {
                out.push('\n');
                out.push_str(&chain::plots(scratch, read)?);
            }
            // The stage is copied as it stands.
            out = text::folded(&out);
            let proposed = if attempt.is_proposed { "proposed, to" } else { "to" };
            let _ = write!(out, "\n{proposed} paste below `stages:`\n{}", attempt.yaml);
        }
        Ok(out)
    }
}

/// The files, their format and their separator.
fn opening(args: &ReadArgs, looked: &Looked) -> String {
    let first = &looked.first;
    let mut out = format!("{}: {}", args.paths.join(", "), text::count(looked.files.len(), "file"));
    if !first.format.is_empty() {
        let _ = write!(out, ", {}", first.format);
    }
    match first.separator {
        Some('\t') => out.push_str(" separated by tabs"),
        Some(separator) if separator != ',' => {
            let _ = write!(out, " separated by `{separator}`");
        }
        _ => {}
    }
    out.push('\n');
    out
}

/// Points to check, and what the rows below were read with.
fn doubts(out: &mut String, attempt: &Attempt) {
    if !attempt.missing.is_empty() {
        let _ = writeln!(out, "missing, but needed: {}", attempt.missing.join(", "));
    }
    for doubt in &attempt.doubts {
        let _ = writeln!(out, "check: {doubt}");
    }
    for line in left_out(&attempt.yaml) {
        let _ = writeln!(out, "{line}");
    }
    for question in questions(&attempt.yaml) {
        let _ = writeln!(out, "question: {question}");
    }
    for warning in &attempt.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    if !attempt.under.is_empty() && attempt.read.is_some() {
        let _ = writeln!(out, "what follows was read with `{}`", attempt.under.join("`, `"));
    }
}

/// The candidates of all tables: name, names found, names asked for, reason.
fn candidates(looked: &Looked) -> Vec<(String, usize, usize, String)> {
    let mut all: Vec<_> = looked
        .first
        .tables
        .iter()
        .flat_map(|(_, candidates, _)| candidates)
        .filter(|candidate| candidate.fits || candidate.score() >= 2 || candidate.name_fits)
        .map(|candidate| {
            let of = candidate.found.len() + candidate.lacks.len();
            (
                candidate.fits,
                candidate.layout.name.clone(),
                candidate.score(),
                of,
                candidate.reason(),
            )
        })
        .collect();
    all.sort_by_key(|(fits, _, score, of, _)| {
        std::cmp::Reverse((*fits, if *fits { *score } else { score * 1000 / of.max(&1) }))
    });
    all.into_iter()
        .map(|(_, name, score, of, reason)| (name, score, of, reason))
        .collect()
}

fn write_candidates(out: &mut String, looked: &Looked, most: usize) {
    for (name, score, of, reason) in candidates(looked).into_iter().take(most) {
        let _ = writeln!(out, "  {name:24} {score:2} of {of:2}  {reason}");
    }
}

fn layouts_of(read: &Read) -> String {
    let names = read.artifact.meta["layout"].as_array();
    let names: Vec<_> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A file that no stage reads, as it stands.
fn raw(out: &mut String, looked: &Looked) {
    let first = &looked.first;
    if !first.header.is_empty() {
        let _ = writeln!(out, "\nheader: {}", first.header.join(", "));
    }
    if first.columns.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "columns of the first {} rows, as they are in the file",
        first.sampled
    );
    for column in &first.columns {
        let _ = writeln!(
            out,
            "  {:25} {:>6} values, {:>6} different  {}",
            column.name,
            column.values,
            column.distinct,
            column.first.join(", ")
        );
    }
}

/// The stage that reads the files, to be pasted.
pub(super) fn stage_yaml(args: &ReadArgs, table: Table) -> String {
    let mut out = format!(
        "  {}:\n    uses: {}\n    with:\n      path: {}\n",
        table.name(),
        table.stage_kind(),
        path_of(&args.paths)
    );
    if let Some(layout) = &args.layout {
        let _ = writeln!(out, "      layout: {}", scalar(layout));
    }
    if let Some(symbol) = args.symbol.as_ref().filter(|_| table != Table::Rates) {
        let _ = writeln!(out, "      symbol: {}", scalar(symbol));
    }
    out
}
