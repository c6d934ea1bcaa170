//! The outputs of a stage as tables.

use super::environment;
use super::moment::Stamp;
use super::table::{self, Form, Packing, Table};
use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use cache::{Artifact, ArtifactDigest, BlobDigest, Store};
use runner_engine::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of the artifacts whose tables are kept for the next comparison.
const KEPT: u64 = 1 << 30;

/// A table of an output, or the reason why it cannot be read.
#[derive(Clone)]
pub struct Output {
    /// The file, and the table in it where there are several; unique within the artifact.
    pub name: String,
    /// The same for the same bytes.
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
    empty: Arc<Table>,
}

/// Reads the tables of artifacts, each once.
#[derive(Default)]
pub struct Reader {
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

impl Reader {
    /// The tables of an artifact of the first run.
    pub fn kept(&self, store: &Store, digest: ArtifactDigest) -> Result<Arc<Vec<Output>>, Failure> {
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
    pub fn version(
        &self,
        store: &Store,
        artifact: &Artifact,
        was: &[Output],
        until: i64,
    ) -> Result<Vec<Output>, Failure> {
        if is_environment(artifact) {
            return tables(store, artifact);
        }
        let same: HashMap<(&str, BlobDigest), &Output> = was
            .iter()
            .filter_map(|output| Some(((output.name.as_str(), output.blob?), output)))
            .collect();
        let mut outputs = Vec::new();
        for entry in &artifact.entries {
            if let Some(output) = same.get(&(entry.path.as_str(), entry.blob)) {
                outputs.push((*output).clone());
                continue;
            }
            let late = locked(&self.late)
                .get(&entry.blob)
                .filter(|late| late.first > until)
                .cloned();
            if let Some(late) = late {
                let (name, table) = (entry.path.clone(), Ok(late.empty));
                outputs.push(Output {
                    name,
                    table,
                    blob: None,
                });
                continue;
            }
            let read = file(store, artifact, entry.path.as_str(), entry.blob)?;
            if let [
                Output {
                    table: Ok(table),
                    blob: Some(blob),
                    ..
                },
            ] = read.as_slice()
                && let Some(first) = table.stamps.iter().flatten().map(|stamp| stamp.end).min()
            {
                let empty = Arc::new(empty(table));
                locked(&self.late).insert(*blob, Late { first, empty });
            }
            outputs.extend(read);
        }
        Ok(outputs)
    }
}

fn empty(table: &Table) -> Table {
    Table {
        name: table.name.clone(),
        batch: RecordBatch::new_empty(table.batch.schema()),
        date: table.date,
        stamps: Some(Vec::<Stamp>::new()),
    }
}

fn is_environment(artifact: &Artifact) -> bool {
    artifact.kind == "env" && artifact.entries.iter().any(|entry| entry.path == "env.json")
}

/// The tables of an artifact, in order.
pub fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Output>, Failure> {
    if is_environment(artifact) {
        let output = |table: Table| Output {
            name: table.name.clone(),
            table: Ok(Arc::new(table)),
            blob: None,
        };
        return Ok(match environment::tables(store, artifact) {
            Ok(tables) => tables.into_iter().map(output).collect(),
            Err(reason) => vec![Output {
                name: "env.json".to_owned(),
                table: Err(reason),
                blob: None,
            }],
        });
    }
    let mut outputs = Vec::new();
    for entry in &artifact.entries {
        outputs.extend(file(store, artifact, &entry.path, entry.blob)?);
    }
    Ok(outputs)
}

/// The tables of a file.
fn file(store: &Store, artifact: &Artifact, path: &str, blob: BlobDigest) -> Result<Vec<Output>, Failure> {
    let bytes = store.blob(blob)?;
    let output = |mut table: Table| {
        if artifact.kind == "trajectory" {
            table = without_oracle(table);
        }
        let (name, blob) = match table.name.is_empty() {
            true => (path.to_owned(), Some(blob)),
            false => (format!("{path}/{}", table.name), None),
        };
        Output {
            name,
            table: Ok(Arc::new(table)),
            blob,
        }
    };
    Ok(match read(path, &bytes) {
        Ok(tables) => tables.into_iter().map(output).collect(),
        Err(reason) => vec![Output {
            name: path.to_owned(),
            table: Err(reason),
            blob: None,
        }],
    })
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

/// A trajectory without the rows of an oracle, which knows what nobody can.
fn without_oracle(mut table: Table) -> Table {
    let strategies = table.batch.column_by_name("strategy");
    let Some(strategies) = strategies.and_then(|column| column.as_string_opt::<i32>()) else {
        return table;
    };
    let keep: BooleanArray = strategies.iter().map(|name| Some(name != Some("oracle"))).collect();
    if keep.true_count() == keep.len() {
        return table;
    }
    if let Ok(batch) = arrow_select::filter::filter_record_batch(&table.batch, &keep) {
        table.batch = batch;
        let of_kept = |stamps: Vec<Stamp>| stamps.into_iter().zip(keep.values()).filter(|(_, keep)| *keep);
        table.stamps = table
            .stamps
            .map(|stamps| of_kept(stamps).map(|(stamp, _)| stamp).collect());
    }
    table
}
