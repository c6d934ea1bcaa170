//! Runs and plans of pipelines in a temporary directory, with everything that happens as text.

#![allow(dead_code, reason = "each test target uses some of it")]

mod kinds;
mod log;
pub(crate) mod node;
mod player;

pub(crate) use kinds::all as kinds;
pub(crate) use log::log;
pub(crate) use player::Player;

use cache::{ActionKey, ArtifactDigest, Store};
use runner_engine::executor::{Done, Elsewhere, Executor, Job, JobStore, Limits, WorkerProcess};
use runner_engine::{
    Control, Event, Failure, Grow, Options, Outcome, Past, Planned, Reporter, Run, StageStatus, Stamped,
    Summary, plan, run_pipeline,
};
use runner_pipeline::{Isolation, LoadOptions, Pipeline, load_with_sources, named, select};
use stages_core::{EventSink, StageError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A directory with a pipeline, a store, and the memory of earlier runs.
pub(crate) struct Lab {
    dir: TempDir,
    past: Arc<Memory>,
    /// The player of `run:` stages, unless real programs are run.
    player: Option<Player>,
    /// The executor `there`.
    there: There,
}

/// The executor of another machine: a player of its own, or jobs in files as a node runs them.
#[derive(Clone)]
pub(crate) enum There {
    Played(Arc<Player>),
    Node,
}

impl Executor for There {
    fn run(&self, job: &Job, events: &Arc<dyn EventSink>, limits: &Limits) -> Result<Done, StageError> {
        match self {
            Self::Played(player) => player.run(job, events, limits),
            Self::Node => node::run(job, events, limits),
        }
    }
}

/// The arguments of a run or a plan.
pub(crate) struct Setup {
    /// The stages; all if empty.
    pub only: Vec<&'static str>,
    pub set: Vec<&'static str>,
    pub force: Vec<&'static str>,
    pub check: Vec<&'static str>,
    /// The keys that stages must have.
    pub planned: Vec<(&'static str, ActionKey)>,
    pub jobs: usize,
    pub threads: usize,
    pub memory: Option<u64>,
    pub keep_going: bool,
    pub verify_inputs: bool,
    pub isolation: Isolation,
    pub env: Vec<(&'static str, String)>,
    pub grace: Duration,
    /// The executor of stages that name none.
    pub executor: Option<&'static str>,
    /// The properties of the executor `there`; there is none if it takes no jobs.
    pub there: Elsewhere,
    pub control: Control,
}

impl Setup {
    /// Runs these stages and what they need.
    pub(crate) fn only(stages: &[&'static str]) -> Self {
        let only = stages.to_vec();
        Self {
            only,
            ..Self::default()
        }
    }

    /// Runs these stages although they are cached.
    pub(crate) fn force(stages: &[&'static str]) -> Self {
        let force = stages.to_vec();
        Self {
            force,
            ..Self::default()
        }
    }

    /// Sets parameters.
    pub(crate) fn set(arguments: &[&'static str]) -> Self {
        let set = arguments.to_vec();
        Self {
            set,
            ..Self::default()
        }
    }

    /// Runs so many stages at a time.
    pub(crate) fn jobs(jobs: usize) -> Self {
        Self {
            jobs,
            ..Self::default()
        }
    }

    /// Kills stages that have not ended so long after they were asked to.
    pub(crate) fn grace(grace: Duration) -> Self {
        Self {
            grace,
            ..Self::default()
        }
    }

    /// Runs stages on the executor `there`.
    pub(crate) fn there() -> Self {
        Self {
            executor: Some("there"),
            ..Self::default()
        }
    }

    /// Runs programs without isolation: they see the host.
    pub(crate) fn on_host() -> Self {
        let isolation = Isolation::None;
        Self {
            isolation,
            ..Self::default()
        }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            set: Vec::new(),
            force: Vec::new(),
            check: Vec::new(),
            planned: Vec::new(),
            jobs: 1,
            threads: 8,
            memory: None,
            keep_going: false,
            verify_inputs: false,
            isolation: Isolation::Auto,
            env: Vec::new(),
            grace: Duration::from_secs(5),
            executor: None,
            there: Elsewhere {
                jobs: 2,
                threads: 3,
                memory: None,
                time: None,
                small: Duration::from_secs(5),
                store: JobStore::Shared {
                    takeover: Duration::from_secs(90),
                },
            },
            control: Control::default(),
        }
    }
}

/// A run that has ended.
pub(crate) struct Ran {
    pub events: Vec<Stamped>,
    pub summary: Summary,
    /// The number of damaged files that the run found in the store.
    pub damaged: usize,
    /// Every event, a line each.
    pub log: String,
}

impl Ran {
    /// The outputs of a stage that succeeded.
    pub(crate) fn outputs(&self, stage: &str) -> BTreeMap<String, ArtifactDigest> {
        let found = self.events.iter().find_map(|event| match &event.event {
            Event::StageFinished {
                stage: id, outputs, ..
            } if id == stage => Some(outputs.clone()),
            _ => None,
        });
        found.unwrap()
    }

    /// The action key of a stage.
    pub(crate) fn key(&self, stage: &str) -> ActionKey {
        let found = self.events.iter().find_map(|event| match &event.event {
            Event::StageFinished { stage: id, key, .. } if id == stage => *key,
            _ => None,
        });
        found.unwrap()
    }

    /// The error and the hint of a failed stage.
    pub(crate) fn error(&self, stage: &str) -> String {
        let found = self.events.iter().find_map(|event| match &event.event {
            Event::StageFinished {
                stage: id,
                error: Some(error),
                hint,
                ..
            } if id == stage => Some(match hint {
                Some(hint) => format!("{error}\nhint: {hint}"),
                None => error.clone(),
            }),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{stage} did not fail:\n{}", self.log))
    }

    /// The final status of each stage, in the order in which the stages ended.
    pub(crate) fn statuses(&self) -> String {
        let lines = self.events.iter().filter_map(|event| match &event.event {
            Event::StageFinished { stage, status, .. } => Some(format!("{} {stage}", status.name())),
            Event::StageRetried { stage, .. } => Some(format!("retried {stage}")),
            Event::StageHealing { stage, .. } => Some(format!("healing {stage}")),
            _ => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Lab {
    /// A lab whose `run:` stages are played by a [`Player`], and whose stage kinds run in this process.
    pub(crate) fn new() -> Self {
        Self {
            player: Some(Player::default()),
            there: There::Played(Arc::default()),
            ..Self::with_workers()
        }
    }

    /// A lab with real programs and worker processes.
    pub(crate) fn with_workers() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            past: Arc::default(),
            player: None,
            there: There::Node,
        }
    }

    /// The player of this lab's stages.
    pub(crate) fn player(&self) -> &Player {
        self.player.as_ref().expect("the stages are played")
    }

    /// The player of the executor `there`.
    pub(crate) fn there(&self) -> &Player {
        match &self.there {
            There::Played(player) => player,
            There::Node => panic!("the jobs there are not played"),
        }
    }

    /// The path of a file beside the pipeline.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file beside the pipeline.
    pub(crate) fn write(&self, name: &str, text: impl Display) {
        let (path, text) = (self.path(name), text.to_string());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Another thread may read the same pipeline.
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            std::fs::write(path, text).unwrap();
        }
    }

    /// The store, as another process would open it: nothing in it is known to be intact yet.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path("home")).unwrap()
    }

    /// The text of the files of an artifact.
    pub(crate) fn text(&self, digest: ArtifactDigest) -> String {
        log::text(&self.store(), digest)
    }

    /// Overwrites the blob with the contents `text` by other bytes of the same length.
    pub(crate) fn damage(&self, text: &str) {
        let path = self.blob(text);
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
        std::fs::set_permissions(&path, permissions).unwrap();
        std::fs::write(path, "?".repeat(text.len())).unwrap();
    }

    /// The path of the blob with the contents `text`.
    pub(crate) fn blob(&self, text: &str) -> PathBuf {
        let path = self.store().blob_path(cache::BlobRef::of(text.as_bytes()).blob);
        assert!(path.exists(), "no blob has the contents {text:?}");
        path
    }

    /// Resolves a pipeline.
    pub(crate) fn load(&self, text: impl Display, setup: &Setup) -> Pipeline {
        self.write("p.yaml", text);
        let options = LoadOptions {
            set: setup.set.iter().map(|&text| text.to_owned()).collect(),
            env: env(setup),
            ..LoadOptions::new(kinds())
        };
        match load_with_sources(&self.path("p.yaml"), &options) {
            Ok(pipeline) => pipeline,
            Err(errors) => panic!("{errors}"),
        }
    }

    fn options(&self, pipeline: &Pipeline, setup: &Setup) -> Options {
        let nodes = |names: &[&str]| -> BTreeSet<usize> {
            names.iter().flat_map(|name| named(pipeline, name).unwrap()).collect()
        };
        let planned = |(name, key): &(&str, ActionKey)| (named(pipeline, name).unwrap()[0], *key);
        Options {
            run: run_id(self.past.runs.lock().unwrap().len()),
            program: "lab".to_owned(),
            night: None,
            jobs: setup.jobs,
            threads: setup.threads,
            memory: setup.memory,
            keep_going: setup.keep_going,
            verify_inputs: setup.verify_inputs,
            force: nodes(&setup.force),
            check: nodes(&setup.check),
            planned: setup.planned.iter().map(planned).collect(),
            env: env(setup),
            executor: setup.executor.map(str::to_owned),
            elsewhere: BTreeMap::from([("there".to_owned(), setup.there.clone())]),
            isolation: setup.isolation,
            logs: self.path("logs"),
            grace: setup.grace,
            past: self.past.clone(),
        }
    }

    /// Runs a pipeline, one stage at a time, and returns the log of all events.
    pub(crate) fn run(&self, text: impl Display) -> String {
        self.run_with(text, Setup::default()).log
    }

    /// Runs a pipeline.
    pub(crate) fn run_with(&self, text: impl Display, setup: Setup) -> Ran {
        self.watch(text, setup, |_| {})
    }

    /// Runs a pipeline, and calls `on` with each event when it happens.
    pub(crate) fn watch(&self, text: impl Display, setup: Setup, on: impl FnMut(&Event) + Send) -> Ran {
        self.record(text, &setup, None, on)
    }

    /// Runs a pipeline of which nothing runs but what is added.
    pub(crate) fn grow(&self, text: impl Display, setup: Setup, grow: &mut dyn Grow) -> Ran {
        self.record(text, &setup, Some(grow), |_| {})
    }

    fn record(
        &self,
        text: impl Display,
        setup: &Setup,
        grow: Option<&mut dyn Grow>,
        on: impl FnMut(&Event) + Send,
    ) -> Ran {
        let (mut recorder, mut watcher) = (Recorder::default(), Watcher(on));
        let reporters: &mut [&mut (dyn Reporter + Send)] = &mut [&mut recorder, &mut watcher];
        let outcome = self.start(text, setup, grow, reporters).unwrap();
        let events = recorder.0;
        self.past.remember(&events);
        Ran {
            log: log(&events, &self.store(), self.dir.path()),
            summary: outcome.summary,
            damaged: outcome.damaged,
            events,
        }
    }

    /// Runs a pipeline for these reporters.
    pub(crate) fn report(
        &self,
        text: impl Display,
        reporters: &mut [&mut (dyn Reporter + Send)],
    ) -> Result<Outcome, Failure> {
        self.start(text, &Setup::default(), None, reporters)
    }

    fn start(
        &self,
        text: impl Display,
        setup: &Setup,
        grow: Option<&mut dyn Grow>,
        reporters: &mut [&mut (dyn Reporter + Send)],
    ) -> Result<Outcome, Failure> {
        let pipeline = self.load(text, setup);
        let store = self.store();
        std::fs::create_dir_all(self.path("logs")).unwrap();
        let workers = WorkerProcess::new(&store, &[]).unwrap();
        let executor: &dyn Executor = match &self.player {
            Some(player) => player,
            None => &workers,
        };
        let chosen = match &grow {
            Some(_) => Vec::new(),
            None => chosen(&pipeline, setup),
        };
        let mut others: BTreeMap<String, Box<dyn Executor>> = BTreeMap::new();
        if setup.there.jobs > 0 {
            others.insert("there".to_owned(), Box::new(self.there.clone()));
        }
        let run = Run {
            pipeline: &pipeline,
            chosen: &chosen,
            store: &store,
            executor,
            others: &others,
            options: &self.options(&pipeline, setup),
            control: &setup.control,
        };
        run_pipeline(&run, grow, reporters)
    }

    /// Plans a pipeline.
    pub(crate) fn plan_with(&self, text: impl Display, setup: &Setup) -> Vec<Planned> {
        let pipeline = self.load(text, setup);
        let options = self.options(&pipeline, setup);
        plan(&pipeline, &chosen(&pipeline, setup), &self.store(), &options).unwrap()
    }

    /// The plan of a pipeline, a line for each stage.
    pub(crate) fn plan(&self, text: impl Display, setup: &Setup) -> String {
        log::plan(&self.plan_with(text, setup))
    }

    /// Forgets the earlier runs; their results stay in the store.
    pub(crate) fn forget_runs(&self) {
        *self.past.runs.lock().unwrap() = Vec::new();
    }
}

/// The environment of a run: that of its setup, and the paths of programs.
fn env(setup: &Setup) -> BTreeMap<String, String> {
    let own = setup
        .env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let path = std::env::var("PATH").map(|path| ("PATH".to_owned(), path));
    own.chain(path).collect()
}

/// The id of a run before which so many others ran.
fn run_id(before: usize) -> String {
    format!("r{}", before + 1)
}

/// The nodes that run.
fn chosen(pipeline: &Pipeline, setup: &Setup) -> Vec<usize> {
    let names: Vec<String> = setup.only.iter().map(|&name| name.to_owned()).collect();
    select(pipeline, &names).unwrap()
}

/// Remembers the events of a run.
#[derive(Default)]
pub(crate) struct Recorder(pub Vec<Stamped>);

impl Reporter for Recorder {
    fn report(&mut self, event: &Stamped) {
        self.0.push(event.clone());
    }
}

/// Calls a function with each event.
struct Watcher<F>(F);

impl<F: FnMut(&Event)> Reporter for Watcher<F> {
    fn report(&mut self, event: &Stamped) {
        (self.0)(&event.event);
    }
}

/// The stages that succeeded in a run, with their keys.
type Succeeded = (String, BTreeMap<String, ActionKey>);

/// The earlier runs, oldest first.
#[derive(Default)]
struct Memory {
    runs: Mutex<Vec<Succeeded>>,
}

impl Memory {
    fn remember(&self, events: &[Stamped]) {
        let mut runs = self.runs.lock().unwrap();
        let succeeded = events.iter().filter_map(|event| match &event.event {
            Event::StageFinished {
                stage,
                key: Some(key),
                status: StageStatus::Ran | StageStatus::Cached,
                ..
            } => Some((stage.clone(), *key)),
            _ => None,
        });
        let run = run_id(runs.len());
        runs.push((run, succeeded.collect()));
    }
}

impl Past for Memory {
    fn last(&self, stage: &str) -> Option<(String, ActionKey)> {
        self.all(stage).into_iter().next()
    }

    fn all(&self, stage: &str) -> Vec<(String, ActionKey)> {
        let runs = self.runs.lock().unwrap();
        let mut found: Vec<(String, ActionKey)> = Vec::new();
        for (run, stages) in runs.iter().rev() {
            if let Some(key) = stages
                .get(stage)
                .filter(|key| found.iter().all(|(_, known)| known != *key))
            {
                found.push((run.clone(), *key));
            }
        }
        found
    }
}
