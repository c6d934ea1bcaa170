//! Reading files as the stage of their table does, in a store of its own.

use crate::registry;
use crate::session::{Session, temporary_directory};
use arrow_array::RecordBatch;
use cache::{Artifact, ArtifactDigest, KeyHasher, Store};
use clap::{Args, ValueEnum};
use datasets::layout::Table;
use runner_engine::Failure;
use serde_json::{Value, json};
use stages_core::{ConfigProblem, Context, Input, PlanContext, StageError, table};
use stages_ingest::files::Paths;
use stages_ingest::inspect::Inspection;
use std::collections::BTreeMap;

/// A table that files are read into.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TableName {
    /// Option chains.
    Chain,
    /// Daily bars.
    Bars,
    /// Interest rates.
    Rates,
}

impl From<TableName> for Table {
    fn from(name: TableName) -> Self {
        match name {
            TableName::Chain => Self::Chain,
            TableName::Bars => Self::Bars,
            TableName::Rates => Self::Rates,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    /// A file, a directory or a glob.
    pub path: String,
    /// The layout: a name, or the path of a layout file [default: auto].
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<String>,
    /// The table to read, where the files fit several.
    #[arg(long = "as", value_name = "TABLE")]
    pub table: Option<TableName>,
    /// The symbol, for files that do not name it.
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
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
    /// The store, as long as it is needed.
    pub store: Store,
    /// The table.
    pub artifact: Artifact,
    digest: ArtifactDigest,
    /// The directory of the store, which goes with the first to read from it.
    _home: Option<tempfile::TempDir>,
}

fn failed(err: StageError) -> Failure {
    let failure = Failure::usage(err.message);
    match err.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn wrong(problem: ConfigProblem) -> Failure {
    let failure = Failure::usage(match problem.field.as_str() {
        "path" => problem.message,
        field => format!("{field}: {}", problem.message),
    });
    match problem.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Looks at the first of the files.
pub(super) fn look(session: &Session, args: &ReadArgs) -> Result<Looked, Failure> {
    let sources = Paths::one(args.path.as_str())
        .find("path", &session.current)
        .map_err(wrong)?;
    if sources.iter().any(|source| source.remote.is_some()) {
        return Err(
            Failure::usage("this command reads files of this machine, not of servers")
                .hint("download the file, or run a pipeline whose stage has the URL as its `path:`"),
        );
    }
    // The largest says most; unless it is a second table, or a note.
    let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut by_size: Vec<_> = sources.iter().collect();
    by_size.sort_by_key(|source| std::cmp::Reverse(size(&source.path)));
    let mut looked: Option<Inspection> = None;
    for source in by_size.into_iter().take(TRIED) {
        let inspection = stages_ingest::inspect::inspect(source).map_err(failed)?;
        let is_known = !inspection.known().is_empty();
        if is_known || looked.is_none() {
            looked = Some(inspection);
        }
        if is_known {
            break;
        }
    }
    let first = looked.ok_or_else(|| Failure::usage(format!("`{}` holds no file", args.path)))?;
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
                Some(table) => table.into(),
                None => (Table::ALL.iter().copied())
                    .find(|table| datasets::layout::find(*table, name).is_some())
                    .unwrap_or(Table::Chain),
            };
            return Ok((table, "named on the command line".to_owned()));
        }
        let wanted: Option<Table> = args.table.map(Into::into);
        if let Some((table, found)) = known
            .iter()
            .find(|(table, _)| wanted.is_none_or(|wanted| wanted == *table))
        {
            return Ok((*table, found.why.clone()));
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
}

/// The configuration of the stage that reads the files.
pub(super) fn config(args: &ReadArgs, table: Table) -> Value {
    let mut with = json!({ "path": args.path });
    if let Some(layout) = &args.layout {
        with["layout"] = json!(layout);
    }
    if let Some(symbol) = args.symbol.as_ref().filter(|_| table != Table::Rates) {
        with["symbol"] = json!(symbol);
    }
    with
}

/// Runs a stage in a store of its own.
fn run(
    session: &Session,
    store: &Store,
    name: &str,
    with: Value,
    inputs: BTreeMap<String, Vec<Input>>,
) -> Result<(ArtifactDigest, Artifact), Failure> {
    let kind =
        registry::find(name).ok_or_else(|| Failure::usage(format!("there is no stage kind `{name}`")))?;
    let config = kind.resolve(with).map_err(wrong)?;
    if inputs.is_empty() {
        let plan = PlanContext {
            base: &session.current,
            inputs: BTreeMap::new(),
        };
        kind.check(&config, &plan).map_err(wrong)?;
    }
    let mut context = Context::new(KeyHasher::new("runner data").action_key(), store.clone());
    context.sources = kind.sources(&config, &session.current).map_err(wrong)?;
    context.inputs = inputs;
    let outputs = kind.run(&config, &context).map_err(failed)?;
    let digest = outputs
        .values()
        .next()
        .ok_or_else(|| Failure::usage(format!("`{name}` has no output")))?;
    Ok((*digest, store.artifact(*digest)?))
}

/// Reads the files into a table.
pub(super) fn read(session: &Session, args: &ReadArgs, table: Table) -> Result<Read, Failure> {
    read_configured(session, table, config(args, table))
}

/// Reads files into a table, by the configuration of its stage.
pub(super) fn read_configured(session: &Session, table: Table, config: Value) -> Result<Read, Failure> {
    let home = temporary_directory()?;
    let store = Store::open(&home.path().join("home"))?;
    let (digest, artifact) = run(session, &store, table.stage_kind(), config, BTreeMap::new())?;
    Ok(Read {
        store,
        artifact,
        digest,
        _home: Some(home),
    })
}

impl Read {
    /// The table's rows, partition by partition.
    pub(super) fn partitions(&self) -> Result<Vec<RecordBatch>, Failure> {
        let read = |entry: &cache::Entry| -> Result<RecordBatch, Failure> {
            table::from_parquet(self.store.blob(entry.blob)?).map_err(failed)
        };
        self.artifact.entries.iter().map(read).collect()
    }

    /// The chain with our own implied volatilities.
    pub(super) fn with_volatilities(&self, session: &Session) -> Result<Self, Failure> {
        let input = Input {
            digest: self.digest,
            artifact: self.artifact.clone(),
        };
        let inputs = BTreeMap::from([("chain".to_owned(), vec![input])]);
        let (digest, artifact) = run(session, &self.store, "greeks/implied_volatility", json!({}), inputs)?;
        Ok(Self {
            store: self.store.clone(),
            artifact,
            digest,
            _home: None,
        })
    }
}
