//! The outputs of a stage as tables.

use super::environment;
use super::table::{self, Form, Table};
use arrow_array::BooleanArray;
use arrow_array::cast::AsArray;
use arrow_select::filter::filter_record_batch;
use cache::{Artifact, ArtifactDigest, BlobDigest, Store};
use runner_engine::Failure;
use stages_table_file::packing::Packing;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of the artifacts whose tables are kept for the next comparison.
const KEPT: u64 = 1 << 30;

/// A table of an output, or the reason why it cannot be read.
#[derive(Clone)]
pub(crate) struct Output {
    /// The file, and the table in it where there are several; unique within the artifact.
    pub name: String,
    /// One table for each content: the same pointer for the same bytes.
    pub table: Result<Arc<Table>, String>,
    /// The file's bytes, if the table is all that it holds.
    blob: Option<BlobDigest>,
}

/// A table whose rows are all later than a moment.
#[derive(Clone)]
struct Late {
    /// The first moment at which a row is known.
    first: i64,
    /// The table without its rows.
    empty: Table,
}

/// Reads the tables of artifacts, each once.
#[derive(Default)]
pub(crate) struct Reader {
    kept: Mutex<Kept>,
    late: Mutex<HashMap<BlobDigest, Late>>,
}

#[derive(Default)]
struct Kept {
    tables: HashMap<ArtifactDigest, Arc<Vec<Output>>>,
    bytes: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    /// The tables of a file, or the reason why it cannot be read.
    pub(crate) fn file(path: &str, bytes: &[u8]) -> Vec<Self> {
        match read(path, bytes) {
            Ok(tables) => tables
                .into_iter()
                .map(|table| match table.name.is_empty() {
                    true => Self::new(path, Ok(table)),
                    false => Self::new(&format!("{path}/{}", table.name), Ok(table)),
                })
                .collect(),
            Err(reason) => vec![Self::new(path, Err(reason))],
        }
    }

    fn new(name: &str, table: Result<Table, String>) -> Self {
        Self {
            name: name.to_owned(),
            table: table.map(Arc::new),
            blob: None,
        }
    }
}

impl Reader {
    /// The tables of an artifact of the first run.
    pub(crate) fn kept(&self, store: &Store, digest: ArtifactDigest) -> Result<Arc<Vec<Output>>, Failure> {
        if let Some(found) = locked(&self.kept).tables.get(&digest) {
            return Ok(Arc::clone(found));
        }
        let artifact = store.artifact(digest)?;
        let tables = Arc::new(tables(store, &artifact)?);
        let mut kept = locked(&self.kept);
        let bytes = artifact.entries.iter().map(|entry| entry.size).sum::<u64>();
        if kept.bytes + bytes <= KEPT {
            kept.bytes += bytes;
            kept.tables.insert(digest, Arc::clone(&tables));
        }
        Ok(tables)
    }

    /// The tables of an artifact of a version: files that are the same as in `was` are not read, nor are
    /// those whose rows are all later than the moment.
    pub(crate) fn version(
        &self,
        store: &Store,
        artifact: &Artifact,
        was: &[Output],
        until: i64,
    ) -> Result<Vec<Output>, Failure> {
        if is_environment(artifact) {
            return tables(store, artifact);
        }
        let same = was
            .iter()
            .filter_map(|output| Some(((output.name.as_str(), output.blob?), output)));
        let same: HashMap<(&str, BlobDigest), &Output> = same.collect();
        let mut outputs = Vec::new();
        for entry in &artifact.entries {
            if let Some(output) = same.get(&(entry.path.as_str(), entry.blob)) {
                outputs.push((*output).clone());
                continue;
            }
            if let Some(late) = locked(&self.late).get(&entry.blob).filter(|late| late.first > until) {
                outputs.push(Output::new(&entry.path, Ok(late.empty.clone())));
                continue;
            }
            let read = file(store, artifact, &entry.path, entry.blob)?;
            if let [
                Output {
                    table: Ok(table),
                    blob: Some(blob),
                    ..
                },
            ] = read.as_slice()
                && let Some(first) = table.stamps.iter().flatten().map(|stamp| stamp.end).min()
            {
                let empty = Table {
                    batch: table.batch.slice(0, 0),
                    stamps: Some(Vec::new()),
                    ..(**table).clone()
                };
                locked(&self.late).insert(*blob, Late { first, empty });
            }
            outputs.extend(read);
        }
        Ok(outputs)
    }
}

fn is_environment(artifact: &Artifact) -> bool {
    artifact.kind == "env" && artifact.entries.iter().any(|entry| entry.path == "env.json")
}

/// The tables of an artifact, in order.
fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Output>, Failure> {
    if is_environment(artifact) {
        return Ok(match environment::tables(store, artifact) {
            Ok(tables) => tables
                .into_iter()
                .map(|table| Output::new(&table.name.clone(), Ok(table)))
                .collect(),
            Err(reason) => vec![Output::new("env.json", Err(reason))],
        });
    }
    let mut outputs = Vec::new();
    for entry in &artifact.entries {
        outputs.extend(file(store, artifact, &entry.path, entry.blob)?);
    }
    Ok(outputs)
}

/// The tables of a file of an artifact.
fn file(store: &Store, artifact: &Artifact, path: &str, blob: BlobDigest) -> Result<Vec<Output>, Failure> {
    let mut outputs = Output::file(path, &store.blob(blob)?);
    if artifact.kind == "trajectory" {
        for output in &mut outputs {
            output.table = output
                .table
                .as_ref()
                .map(|table| Arc::new(of_policies(table)))
                .map_err(Clone::clone);
        }
    }
    if let [only] = outputs.as_mut_slice()
        && only.table.as_ref().is_ok_and(|table| table.name.is_empty())
    {
        only.blob = Some(blob);
    }
    Ok(outputs)
}

fn read(path: &str, bytes: &[u8]) -> Result<Vec<Table>, String> {
    let (packing, files) = table::unpack(path, bytes)?;
    let tables = table::read(path, packing, &files)?;
    let other = tables
        .iter()
        .zip(&files)
        .find(|((form, _), _)| !matches!(form, Form::Array(_)));
    if let (Packing::Zip, Some((_, (name, _)))) = (packing, other) {
        return Err(format!("is an archive with `{name}`, which is not an array"));
    }
    Ok(tables.into_iter().map(|(_, table)| table).collect())
}

/// The strategies of a trajectory that are left out: an oracle knows what nobody can, and the others are
/// found by search on the training data, which may have the test's dates in other worlds.
const SEARCHED: [&str; 4] = ["oracle", "filter", "best_constant", "best_rule"];

/// The columns of a trajectory that are left out: ablations show a policy the features of other dates.
const ABLATIONS: &str = "ablation.";

/// A trajectory without the strategies and columns that depend on other dates by design.
fn of_policies(table: &Table) -> Table {
    let mut table = table.clone();
    let strategies = table.batch.column_by_name("strategy");
    let Some(strategies) = strategies.and_then(|column| column.as_string_opt::<i32>()) else {
        return table;
    };
    let is_kept = |name: Option<&str>| Some(!name.is_some_and(|name| SEARCHED.contains(&name)));
    let keep: BooleanArray = strategies.iter().map(is_kept).collect();
    if let Ok(batch) = filter_record_batch(&table.batch, &keep) {
        table.batch = batch;
        let mut kept = keep.values().iter();
        table
            .stamps
            .iter_mut()
            .for_each(|stamps| stamps.retain(|_| kept.next().unwrap_or(true)));
    }
    let schema = table.batch.schema();
    let columns = schema.fields().iter().enumerate();
    let columns = columns.filter(|(_, field)| !field.name().starts_with(ABLATIONS));
    let columns: Vec<usize> = columns.map(|(at, _)| at).collect();
    if let Ok(batch) = table.batch.project(&columns) {
        table.batch = batch;
    }
    table
}
