//! Reading files as the stage of their table does, in a store of its own.

use super::trial::{Scratch, of_problem};
use crate::session::Session;
use arrow_array::RecordBatch;
use cache::{Artifact, Store};
use clap::{Args, ValueEnum};
use datasets::layout::Table;
use runner_engine::Failure;
use serde_json::Value;
use stages_core::{Input, Source, StageError, table};
use stages_ingest::files::Paths;
use stages_ingest::inspect::Inspection;
use stages_ingest::propose::scalar;
use std::path::Path;

/// A table that files are read into.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TableName {
    /// Option chains.
    Chain,
    /// Daily bars.
    Bars,
    /// Interest rates.
    Rates,
    /// Corporate actions.
    Actions,
    /// Your own factors, by date.
    Factors,
    /// Any other table of numbers.
    Rows,
}

impl TableName {
    /// The table of layouts; `None` for files without layouts.
    pub(super) const fn table(self) -> Option<Table> {
        match self {
            Self::Chain => Some(Table::Chain),
            Self::Bars => Some(Table::Bars),
            Self::Rates => Some(Table::Rates),
            Self::Actions | Self::Factors | Self::Rows => None,
        }
    }

    /// The stage kind that reads it.
    pub(super) fn stage_kind(self) -> &'static str {
        match self {
            Self::Actions => "ingest/corporate_actions",
            Self::Factors => "ingest/features",
            Self::Rows => "ingest/table",
            _ => self.table().map_or("", Table::stage_kind),
        }
    }
}

/// The files of a table, and how they are read.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    /// A file, a directory or a glob; several of one table.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<String>,
    /// The layout: a name, or the path of a layout file [default: auto].
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<String>,
    /// The table to read, where the files fit several.
    #[arg(long = "as", value_name = "TABLE")]
    pub table: Option<TableName>,
    /// The symbol, for files that do not name it; of files with several, the one to read.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}

/// The paths as a value of YAML.
pub(super) fn path_of(paths: &[String]) -> String {
    match paths {
        [one] => scalar(one),
        several => {
            let texts: Vec<String> = several.iter().map(|path| scalar(path)).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

/// The files that are looked at, the largest first, until the layout of one is known.
const TRIED: usize = 4;

/// The first of the files, looked at.
pub(super) struct Looked {
    /// The files by name.
    pub files: Vec<String>,
    /// The inspection of the first one.
    pub first: Inspection,
}

/// The table that a stage has read.
pub(super) struct Read {
    pub store: Store,
    pub artifact: Artifact,
    input: Input,
}

/// The failure of a command by a stage's error.
pub(super) fn failed(err: StageError) -> Failure {
    let failure = Failure::usage(err.message);
    match err.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Files of one header: the header, and their paths.
pub(super) type OfHeader = (Vec<String>, Vec<String>);

/// The files at a path by their headers, those of most bytes first; paths are relative to `base` where they
/// are below it.
pub(super) fn by_header(base: &Path, path: &str) -> Result<Vec<OfHeader>, Failure> {
    let sources = Paths::one(path)
        .find("path", base)
        .map_err(|problem| failed(of_problem(problem)))?;
    let mut groups: Vec<(u64, OfHeader)> = Vec::new();
    for source in &sources {
        let path = source.path.strip_prefix(base).unwrap_or(&source.path);
        let path = path.to_string_lossy().into_owned();
        let bytes = std::fs::metadata(&source.path).map_or(0, |meta| meta.len());
        let signature = signature(source);
        match groups.iter_mut().find(|(_, (other, _))| *other == signature) {
            Some((size, (_, paths))) => {
                *size += bytes;
                paths.push(path);
            }
            None => groups.push((bytes, (signature, vec![path]))),
        }
    }
    groups.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    Ok(groups.into_iter().map(|(_, group)| group).collect())
}

/// The names in a file's header, by which files of one table are told from others; the number of fields for a
/// file without one.
fn signature(source: &Source) -> Vec<String> {
    let header = stages_ingest::read::first(source).and_then(|first| stages_ingest::frame::header(&first));
    match header {
        Ok(names)
            if names
                .first()
                .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit())) =>
        {
            vec![names.len().to_string()]
        }
        Ok(names) => names.iter().map(|name| name.trim().to_lowercase()).collect(),
        Err(_) => vec![
            source
                .path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        ],
    }
}

/// Looks at the first of the files, whose paths are relative to `base`.
pub(super) fn look(base: &Path, args: &ReadArgs) -> Result<Looked, Failure> {
    let paths: Paths = serde_json::from_value(Value::from(args.paths.clone()))
        .map_err(|err| Failure::usage(err.to_string()))?;
    let sources = paths
        .find("path", base)
        .map_err(|problem| failed(of_problem(problem)))?;
    if sources.iter().any(|source| source.remote.is_some()) {
        return Err(
            Failure::usage("this command reads files of this machine, not of servers")
                .hint("download the file, or run a pipeline whose stage has the URL as its `path:`"),
        );
    }
    // The largest says most; unless it is a second table, or a note.
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut by_size: Vec<_> = sources.iter().collect();
    by_size.sort_by_key(|source| std::cmp::Reverse(size(&source.path)));
    let mut looked: Option<Inspection> = None;
    for source in by_size.into_iter().take(TRIED) {
        let inspection = stages_ingest::inspect::inspect(source).map_err(failed)?;
        let is_known = !inspection.known().is_empty();
        if is_known || looked.as_ref().is_none_or(|before| before.refused.is_some()) {
            looked = Some(inspection);
        }
        if is_known {
            break;
        }
    }
    let first = looked.ok_or_else(|| Failure::usage(format!("{} hold no file", args.paths.join(", "))))?;
    Ok(Looked {
        files: sources.into_iter().map(|source| source.name).collect(),
        first,
    })
}

impl Looked {
    /// The table that the files are read into, and why.
    pub(super) fn table(&self, args: &ReadArgs) -> Result<(Table, String), Failure> {
        let known = self.first.known();
        let named = args.layout.as_deref().filter(|name| *name != "auto");
        if let Some(name) = named {
            let table = match args.table {
                Some(table) => table.table().unwrap_or(Table::Bars),
                None => (Table::ALL.iter().copied())
                    .find(|table| datasets::layout::find(*table, name).is_some())
                    .unwrap_or(Table::Chain),
            };
            return Ok((table, "named on the command line".to_owned()));
        }
        let wanted: Option<Table> = args.table.and_then(TableName::table);
        if let Some((table, found)) = known
            .iter()
            .find(|(table, _)| wanted.is_none_or(|wanted| wanted == *table))
        {
            return Ok((*table, found.why.clone()));
        }
        if let Some(err) = &self.first.refused {
            return Err(failed(err.clone()));
        }
        let unknown = self
            .first
            .tables
            .iter()
            .filter(|(table, ..)| wanted.is_none_or(|wanted| wanted == *table))
            .find_map(|(_, _, found)| found.as_ref().err());
        let place = &self.first.place;
        Err(match unknown {
            Some(err) => Failure::usage(format!("`{place}`: {}", err.message)).hint(err.hint.clone()),
            None => Failure::usage(format!("`{place}`: no layout is known")),
        })
    }

    /// The error of files that no stage is proposed for.
    pub(super) fn refusal(&self, args: &ReadArgs) -> StageError {
        let failure = match (&self.first.refused, self.table(args)) {
            (Some(err), _) => return err.clone(),
            (None, Err(failure)) => failure,
            (None, Ok((table, _))) => Failure::usage(format!("it is not read as {}", table.name())),
        };
        StageError {
            hint: failure.hint,
            ..StageError::new(failure.message)
        }
    }
}

/// Reads the files into a table, and returns it with the warnings of the reading.
pub(super) fn read(
    session: &Session,
    args: &ReadArgs,
    table: Table,
) -> Result<(Scratch, Read, Vec<String>), Failure> {
    let scratch = Scratch::new(&session.current)?;
    let yaml = super::inspect::stage_yaml(args, table);
    let (read, warnings) = scratch.read(&yaml).map_err(failed)?;
    Ok((scratch, read, warnings))
}

impl Read {
    /// An output in a store.
    pub(super) fn new(store: &Store, input: Input) -> Self {
        Self {
            store: store.clone(),
            artifact: input.artifact.clone(),
            input,
        }
    }

    /// The symbols of the table.
    pub(super) fn symbols(&self) -> Vec<String> {
        let symbols = self.artifact.meta["symbols"].as_array().into_iter().flatten();
        symbols.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The table's rows, partition by partition.
    pub(super) fn partitions(&self) -> Result<Vec<RecordBatch>, Failure> {
        let read = |entry: &cache::Entry| -> Result<RecordBatch, Failure> {
            table::from_parquet(self.store.blob(entry.blob)?).map_err(failed)
        };
        self.artifact.entries.iter().map(read).collect()
    }

    /// The chain with our own implied volatilities.
    pub(super) fn with_volatilities(&self, scratch: &Scratch) -> Result<Self, StageError> {
        let made = scratch.volatilities(self.input.clone())?;
        Ok(Self::new(&self.store, made))
    }
}
