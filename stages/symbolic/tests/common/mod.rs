//! Runs stage kinds of this family on small files.
#![allow(dead_code, reason = "each test file uses some of it")]

use cache::{Artifact, KeyHasher, Store};
use serde_json::Value;
use stages_core::{
    AnyStage, ConfigProblem, Context, EventSink, Input, PlanContext, Provided, StageError, StageEvent,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A directory with files, and a store.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub store: Store,
}

/// The output of a stage.
#[derive(Debug)]
pub(crate) struct Done {
    pub artifact: Artifact,
    pub digest: String,
    /// Memos found and asked for.
    pub memos: (u64, u64),
    pub warnings: Vec<String>,
}

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl EventSink for Warnings {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

fn kind(name: &str) -> Box<dyn AnyStage> {
    let mut kinds = stages_symbolic::kinds().into_iter();
    kinds.find(|kind| kind.name() == name).unwrap()
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
        self.run_with(name, with, &[])
    }

    /// Runs a kind with inputs.
    pub(crate) fn run_with(
        &self,
        name: &str,
        with: Value,
        inputs: &[(&str, &Artifact)],
    ) -> Result<Done, StageError> {
        self.run_in(&self.store, name, with, inputs)
    }

    fn run_in(
        &self,
        store: &Store,
        name: &str,
        with: Value,
        inputs: &[(&str, &Artifact)],
    ) -> Result<Done, StageError> {
        let kind = kind(name);
        let problem =
            |problem: ConfigProblem| StageError::new(format!("{}: {}", problem.field, problem.message));
        let config = kind.resolve(with).map_err(problem)?;
        let warnings = Arc::new(Warnings::default());
        let mut context = Context::new(KeyHasher::new("test").action_key(), store.clone());
        context.sources = kind.sources(&config, self.base()).map_err(problem)?;
        context.events = warnings.clone();
        for (port, artifact) in inputs {
            let input = Input {
                digest: store.put_artifact(artifact).unwrap(),
                artifact: (*artifact).clone(),
            };
            context.inputs.insert((*port).to_owned(), vec![input]);
        }
        let outputs = kind.run(&config, &context)?;
        let digest = *outputs.values().next().unwrap();
        Ok(Done {
            artifact: store.artifact(digest).unwrap(),
            digest: digest.to_hex(),
            memos: context.memos.counts(),
            warnings: warnings.0.lock().unwrap().clone(),
        })
    }

    /// The digest of a run in a fresh store, in a pool of a given number of threads.
    pub(crate) fn digest_with(&self, threads: usize, name: &str, with: Value) -> String {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("home")).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| self.run_in(&store, name, with, &[]).unwrap().digest)
    }
}
