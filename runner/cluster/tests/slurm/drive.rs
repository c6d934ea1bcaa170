//! A run of jobs, in a process of its own.

use crate::counting::CountConfig;
use cache::{ActionRecord, KeyHasher, Store};
use runner_cluster::settings::Slurm as Settings;
use runner_cluster::{Launch, slurm};
use runner_engine::Control;
use runner_engine::executor::{Executor, Job, JobStore, JobWork, Limits, Request};
use runner_testkit::Slurm;
use serde_json::json;
use stages_core::{EventSink, StageEvent};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const TAKEOVER: Duration = Duration::from_secs(90);

/// Runs of jobs on a Slurm.
pub(crate) struct Driven<'a> {
    slurm: &'a Slurm,
    home: TempDir,
}

/// A run in progress.
pub(crate) struct Running(Child);

impl<'a> Driven<'a> {
    pub(crate) fn new(slurm: &'a Slurm) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { slurm, home }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts a run of jobs.
    pub(crate) fn start(&self, jobs: &[impl AsRef<str>]) -> Running {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg("drive")
            .arg(self.home())
            .args(jobs.iter().map(AsRef::as_ref));
        command.stdout(Stdio::piped());
        Running(self.slurm.at(&mut command).spawn().unwrap())
    }

    /// The messages of a run of jobs, sorted.
    pub(crate) fn run(&self, jobs: &[impl AsRef<str>]) -> String {
        self.start(jobs).end()
    }

    /// The number of batches whose files are in the home.
    pub(crate) fn batches(&self) -> usize {
        std::fs::read_dir(self.home().join("jobs")).map_or(0, Iterator::count)
    }
}

impl Running {
    pub(crate) fn end(self) -> String {
        let output = self.0.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn stop(self) -> String {
        let status = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
        self.end()
    }
}

/// A sink that prints warnings and log lines.
struct Told(String);

impl EventSink for Told {
    fn emit(&self, event: StageEvent) {
        match event {
            StageEvent::Warning { message: line, .. } | StageEvent::Log { line }
                if !line.starts_with("runs on") =>
            {
                say(&format!("{}: {line}", self.0));
            }
            _ => {}
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Runs jobs, and prints what happens. A job is `NAME=VALUE,…`.
pub(crate) fn drive(home: &Path, jobs: &[&str], control: &Control) -> ExitCode {
    let store = Store::open_shared(home, TAKEOVER).unwrap();
    let text = "{\"kind\": \"slurm\", \"max_memory\": \"1GiB\", \"pack\": \"1s\"}";
    let settings: Settings = serde_json::from_str(text).unwrap();
    let launch = Launch {
        name: "hpc".to_owned(),
        pipeline: "test".to_owned(),
        store: store.clone(),
        program: std::env::current_exe().unwrap(),
    };
    let executor = slurm::start(&settings, launch).unwrap();
    std::thread::scope(|scope| {
        for text in jobs {
            let (executor, store) = (&executor, &store);
            scope.spawn(move || say(&format!("{text}: {}", outcome(&**executor, store, text, control))));
        }
    });
    drop(executor);
    ExitCode::SUCCESS
}

fn outcome(executor: &dyn Executor, store: &Store, text: &str, control: &Control) -> String {
    let given: BTreeMap<&str, &str> = text.split(',').filter_map(|word| word.split_once('=')).collect();
    let number = |name| given.get(name).and_then(|text| text.parse::<u64>().ok());
    let word = |name| given.get(name).copied().unwrap_or_default().to_owned();
    let config = CountConfig {
        steps: number("steps").unwrap_or(0),
        act: word("act"),
        name: word("name"),
    };
    let job = Job {
        key: KeyHasher::new("test").field(text).action_key(),
        stage: text.to_owned(),
        home: store.root().to_owned(),
        store: JobStore::Shared { takeover: TAKEOVER },
        request: Request {
            memory: number("memory").map(|mebibytes| mebibytes << 20),
            time: number("time").map(Duration::from_secs),
            ..Request::default()
        },
        work: JobWork::Kind {
            name: "test/count".to_owned(),
            version: 1,
            config: json!(config).into(),
        },
        inputs: BTreeMap::new(),
        sources: Vec::new(),
        threads: 1,
        part: None,
        has_parts: false,
        fresh: false,
        log: store.root().join("log"),
        upstream: None,
    };
    let counted = |outputs: &BTreeMap<String, cache::ArtifactDigest>| {
        let artifact = store.artifact(outputs["x"]).unwrap();
        let blob = store.blob(artifact.entries[0].blob).unwrap();
        format!("done {}", String::from_utf8_lossy(&blob))
    };
    if let Ok(Some(hit)) = store.hit(job.key) {
        return counted(&hit.outputs);
    }
    let limits = Limits {
        cancel: control.cancel.clone(),
        kill: control.kill.clone(),
        timeout: None,
        grace: Duration::from_secs(20),
    };
    let events: Arc<dyn EventSink> = Arc::new(Told(text.to_owned()));
    match executor.run(&job, &events, &limits) {
        Ok(done) => {
            assert!(
                done.place
                    .as_ref()
                    .is_some_and(|place| place.executor == "hpc" && place.job.contains('_'))
            );
            let text = counted(&done.outputs);
            let record = ActionRecord {
                key: job.key,
                recipe: json!({}),
                outputs: done.outputs,
                log: done.log,
                seconds: done.seconds.unwrap(),
                peak_memory: done.peak_memory,
                numerics_class: done.numerics_class.unwrap(),
                program: format!("{:?}", SystemTime::now()),
                sources: Vec::new(),
                info: BTreeMap::new(),
            };
            store.put_action(&record).unwrap();
            text
        }
        Err(err) => format!("{:?}: {}", err.cause, err.message),
    }
}
