//! The outputs of a stage as tables.

use super::environment;
use super::read::{self, Table};
use cache::{Artifact, ArtifactDigest, Store};
use runner_engine::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The most bytes of an artifact whose tables are kept for the next comparison.
const KEPT: u64 = 64 << 20;

/// A table of an output, or the reason why it cannot be read.
pub struct Output {
    /// The file, and the table in it where there are several; unique within the artifact.
    pub name: String,
    pub table: Result<Table, String>,
}

/// Reads the tables of artifacts, those of the first run once.
#[derive(Default)]
pub struct Reader {
    kept: Mutex<HashMap<ArtifactDigest, Arc<Vec<Output>>>>,
}

impl Reader {
    /// The tables of an artifact of the first run.
    pub fn kept(&self, store: &Store, digest: ArtifactDigest) -> Result<Arc<Vec<Output>>, Failure> {
        let lock = || self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(&digest) {
            return Ok(Arc::clone(found));
        }
        let artifact = store.artifact(digest)?;
        let tables = Arc::new(tables(store, &artifact)?);
        if artifact.entries.iter().map(|entry| entry.size).sum::<u64>() <= KEPT {
            lock().insert(digest, Arc::clone(&tables));
        }
        Ok(tables)
    }
}

/// The tables of an artifact, in order.
pub fn tables(store: &Store, artifact: &Artifact) -> Result<Vec<Output>, Failure> {
    if artifact.kind == "env" && artifact.entries.iter().any(|entry| entry.path == "env.json") {
        let output = |table: Table| Output {
            name: table.name.clone(),
            table: Ok(table),
        };
        return Ok(match environment::tables(store, artifact) {
            Ok(tables) => tables.into_iter().map(output).collect(),
            Err(reason) => vec![Output {
                name: "env.json".to_owned(),
                table: Err(reason),
            }],
        });
    }
    let mut outputs = Vec::new();
    for entry in &artifact.entries {
        match read::tables(&entry.path, &store.blob(entry.blob)?) {
            Err(reason) => outputs.push(Output {
                name: entry.path.clone(),
                table: Err(reason),
            }),
            Ok(tables) => outputs.extend(tables.into_iter().map(|table| {
                let name = if table.name.is_empty() {
                    entry.path.clone()
                } else {
                    format!("{}/{}", entry.path, table.name)
                };
                Output { name, table: Ok(table) }
            })),
        }
    }
    Ok(outputs)
}
