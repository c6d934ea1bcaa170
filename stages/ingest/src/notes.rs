//! Findings about how a file is read: what was found in it and not stated.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datasets::layout::normal;
use serde_json::{Map, Value, json};
use stages_core::{Context, StageError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The metadata of a table's schema that holds the findings, as a JSON list.
const KEY: &str = "notes";

/// The findings about one file, shared by all that read it.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Found>>);

#[derive(Debug, Default)]
struct Found {
    texts: BTreeSet<String>,
    /// The units in a row below the header, by the names of their columns.
    units: BTreeMap<String, String>,
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the unit of a column, as a row below the header has it.
    pub(crate) fn add_unit(&self, column: &str, unit: &str) {
        self.lock().units.insert(normal(column), unit.to_owned());
    }

    /// The unit of a column in a row below the header.
    pub(crate) fn unit(&self, column: &str) -> Option<String> {
        self.lock().units.get(&normal(column)).cloned()
    }

    /// Adds a finding, such as "dates in `Date` are read as `%d/%m/%Y`".
    pub fn add(&self, note: impl Into<String>) {
        self.lock().texts.insert(note.into());
    }

    /// Removes the findings that begin so.
    pub(crate) fn remove(&self, begin: &str) {
        self.lock().texts.retain(|note| !note.starts_with(begin));
    }

    /// The findings, sorted.
    pub fn list(&self) -> Vec<String> {
        self.lock().texts.iter().cloned().collect()
    }

    /// The table with the findings in its metadata.
    pub(crate) fn attach(&self, batch: RecordBatch) -> Result<RecordBatch, StageError> {
        let list = self.list();
        if list.is_empty() {
            return Ok(batch);
        }
        let schema = Schema::clone(&batch.schema());
        let mut metadata = schema.metadata().clone();
        metadata.insert(KEY.to_owned(), json!(list).to_string());
        Ok(batch.with_schema(Arc::new(schema.with_metadata(metadata)))?)
    }
}

/// The findings in a table's metadata.
pub(crate) fn of_table(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let text = schema.metadata().get(KEY);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// A table without findings in its metadata.
pub(crate) fn without(batch: RecordBatch) -> Result<RecordBatch, StageError> {
    if batch.schema().metadata().is_empty() {
        return Ok(batch);
    }
    let fields = batch.schema().fields().clone();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        batch.columns().to_vec(),
    )?)
}

/// The findings about a stage's files, with the number of files of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices(BTreeMap<String, u64>);

impl Notices {
    /// The findings of each file, together.
    pub(crate) fn of<L: AsRef<[String]>>(files: impl IntoIterator<Item = L>) -> Self {
        let mut all = Self::default();
        for notes in files {
            for note in notes.as_ref() {
                *all.0.entry(note.clone()).or_default() += 1;
            }
        }
        all
    }

    /// Says in one warning what was found, and adds it to the metadata of an output, as `found`.
    pub(crate) fn tell(&self, context: &Context, meta: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        let list: Vec<String> = (self.0.iter())
            .map(|(note, files)| match files {
                1 => note.clone(),
                files => format!("{note} ({files} files)"),
            })
            .collect();
        let shown = match list.len() {
            0..=4 => list.join("; "),
            more => format!("{}; and {} more", list[..4].join("; "), more - 4),
        };
        context.warn(
            format!("found in the files and not stated: {shown}"),
            Some("`layout:` states it (`date_format`, `decimal`, `thousands`, `encoding`)"),
        );
        if let Value::Object(map) = meta {
            let found: Map<String, Value> = self.0.iter().map(|(note, n)| (note.clone(), json!(n))).collect();
            map.insert("found".to_owned(), Value::Object(found));
        }
    }
}
