//! Runs stage kinds on small files.
#![allow(dead_code, reason = "each test file uses some of it")]

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use cache::{Artifact, KeyHasher, Store};
use serde_json::Value;
use stages_core::{
    AnyStage, CancelToken, ConfigProblem, Context, EventSink, Input, PlanContext, Provided, StageError,
    StageEvent,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A directory with files, and a store.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub store: Store,
}

/// Numbers that differ by seed, and are the same everywhere (Knuth's generator).
#[derive(Clone)]
pub(crate) struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// A number between 0 and 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number whose mean is 0 and standard deviation is 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The output of a stage.
#[derive(Debug)]
pub(crate) struct Done {
    pub artifact: Artifact,
    pub digest: String,
    /// Memos found and asked for.
    pub memos: (u64, u64),
    /// Its warnings.
    pub warnings: Vec<String>,
}

impl Done {
    /// The number of memos that were computed.
    pub(crate) fn computed(&self) -> u64 {
        self.memos.1 - self.memos.0
    }
}

/// The stage that reads option chains.
pub(crate) const CHAIN: &str = "ingest/option_chain";

/// Runs it with what the store knows; the same files from nothing, with any number of threads, give the same
/// bytes.
pub(crate) fn run_chain(bench: &Bench, with: &Value) -> Done {
    let done = bench.run(CHAIN, with.clone()).unwrap();
    for threads in [1, 3] {
        assert_eq!(
            bench.digest_with(threads, CHAIN, with.clone()),
            done.digest,
            "{threads} threads"
        );
    }
    done
}

/// Keeps warnings.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl EventSink for Warnings {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

pub(crate) fn kind(name: &str) -> Box<dyn AnyStage> {
    stages_ingest::kinds()
        .into_iter()
        .find(|kind| kind.name() == name)
        .unwrap()
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home")).unwrap();
        Self { dir, store }
    }

    pub(crate) fn base(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.base().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    pub(crate) fn check(&self, name: &str, with: Value) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
        let kind = kind(name);
        let config = kind.resolve(with)?;
        let plan = PlanContext {
            base: self.base(),
            inputs: BTreeMap::new(),
        };
        kind.check(&config, &plan)
    }

    pub(crate) fn run(&self, name: &str, with: Value) -> Result<Done, StageError> {
        self.run_in(&self.store, name, with)
    }

    fn run_in(&self, store: &Store, name: &str, with: Value) -> Result<Done, StageError> {
        let kind = kind(name);
        let problem =
            |problem: ConfigProblem| StageError::new(format!("{}: {}", problem.field, problem.message));
        let config = kind.resolve(with).map_err(problem)?;
        let warnings = Arc::new(Warnings::default());
        let context = Context {
            key: KeyHasher::new("test").action_key(),
            store: store.clone(),
            inputs: BTreeMap::new(),
            sources: kind.sources(&config, self.base()).map_err(problem)?,
            threads: rayon::current_num_threads(),
            events: warnings.clone(),
            cancel: CancelToken::default(),
            fresh: false,
            memos: Default::default(),
            parts: None,
            numerics_class: Default::default(),
        };
        let outputs = kind.run(&config, &context)?;
        let digest = *outputs.values().next().unwrap();
        Ok(Done {
            artifact: store.artifact(digest).unwrap(),
            digest: digest.to_hex(),
            memos: context.memos.counts(),
            warnings: warnings.0.lock().unwrap().clone(),
        })
    }

    /// Runs a kind with inputs: its outputs by port, and its warnings.
    pub(crate) fn run_with(
        &self,
        name: &str,
        with: Value,
        inputs: &[(&str, &Artifact)],
    ) -> Result<(BTreeMap<String, Artifact>, Vec<String>), StageError> {
        let kind = kind(name);
        let problem =
            |problem: ConfigProblem| StageError::new(format!("{}: {}", problem.field, problem.message));
        let config = kind.resolve(with).map_err(problem)?;
        let warnings = Arc::new(Warnings::default());
        let mut context = Context::new(KeyHasher::new("test").action_key(), self.store.clone());
        context.sources = kind.sources(&config, self.base()).map_err(problem)?;
        context.events = warnings.clone();
        context.inputs = inputs
            .iter()
            .map(|(port, artifact)| {
                let input = Input {
                    digest: self.store.put_artifact(artifact).unwrap(),
                    artifact: (*artifact).clone(),
                };
                ((*port).to_owned(), vec![input])
            })
            .collect();
        let outputs = kind.run(&config, &context)?;
        let outputs = outputs
            .into_iter()
            .map(|(port, digest)| (port, self.store.artifact(digest).unwrap()))
            .collect();
        let warnings = std::mem::take(&mut *warnings.0.lock().unwrap());
        Ok((outputs, warnings))
    }

    /// All rows of an artifact's tables.
    pub(crate) fn table(&self, artifact: &Artifact) -> RecordBatch {
        let batches: Vec<_> = artifact
            .entries
            .iter()
            .map(|entry| stages_core::table::from_parquet(self.store.blob(entry.blob).unwrap()).unwrap())
            .collect();
        arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap()
    }

    /// The digest of a run from the same files in a fresh store, in a pool of a given number of threads.
    pub(crate) fn digest_with(&self, threads: usize, name: &str, with: Value) -> String {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("home")).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| self.run_in(&store, name, with).unwrap().digest)
    }

    /// The digest of an artifact without an entry of its metadata.
    pub(crate) fn digest_without(&self, done: &Done, entry: &str) -> String {
        let mut artifact = done.artifact.clone();
        artifact.meta.as_object_mut().unwrap().remove(entry);
        self.store.put_artifact(&artifact).unwrap().to_hex()
    }

    /// All rows of an artifact.
    pub(crate) fn rows(&self, done: &Done) -> RecordBatch {
        self.table(&done.artifact)
    }
}

impl Done {
    /// The rows that broke a rule, on how many days, and the action taken.
    pub(crate) fn finding(&self, rule: &str) -> (u64, u64, String) {
        let finding = self.line(rule);
        (
            finding["rows"].as_u64().unwrap(),
            finding["days"].as_u64().unwrap(),
            finding["action"].as_str().unwrap().to_owned(),
        )
    }

    pub(crate) fn examples(&self, rule: &str) -> Vec<String> {
        serde_json::from_value(self.line(rule)["examples"].clone()).unwrap()
    }

    /// The example rows of a rule.
    pub(crate) fn sample(&self, rule: &str) -> Vec<Value> {
        serde_json::from_value(self.line(rule)["sample"].clone()).unwrap()
    }

    fn line(&self, rule: &str) -> Value {
        let table = self.artifact.meta["quality"].as_array().unwrap();
        table
            .iter()
            .find(|line| line["rule"] == rule)
            .unwrap_or_else(|| panic!("no rule {rule}"))
            .clone()
    }
}

/// A table as text, a line a row, `-` for null.
pub(crate) fn text(batch: &RecordBatch) -> String {
    let mut out = String::new();
    for row in 0..batch.num_rows() {
        let cells: Vec<String> = batch
            .columns()
            .iter()
            .zip(batch.schema().fields())
            // Its own tests look at it.
            .filter(|(_, field)| field.name() != "tradable")
            .map(|(column, _)| {
                if column.is_null(row) {
                    return "-".to_owned();
                }
                if let Some(texts) = column.as_string_opt::<i32>() {
                    texts.value(row).to_owned()
                } else if let Some(days) = column.as_primitive_opt::<Date32Type>() {
                    datasets::Date(days.value(row)).to_string()
                } else if let Some(bools) = column.as_boolean_opt() {
                    if bools.value(row) { "call" } else { "put" }.to_owned()
                } else {
                    column.as_primitive::<Float64Type>().value(row).to_string()
                }
            })
            .collect();
        out.push_str(&cells.join(" "));
        out.push('\n');
    }
    out
}

pub(crate) fn floats(batch: &RecordBatch, name: &str) -> Vec<f64> {
    stages_core::table::floats_or_nan(batch, name).unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
