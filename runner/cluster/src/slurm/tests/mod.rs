//! The executor on a simulated Slurm, which fails, lies late and loses jobs.

mod adoption;
mod many;
mod simulation;

use super::OnSlurm;
use super::driver::Times;
use super::judge::Bounds;
use super::tools::Tools;
use crate::Launch;
use crate::settings::Slurm;
use cache::{ActionKey, ArtifactBuilder, ArtifactDigest, KeyHasher, Store};
use runner_engine::executor::{Job, JobStore, JobWork, Limits, Request};
use serde_json::json;
use simulation::{Simulation, World};
use stages_core::{CancelToken, EventSink, Settings, StageEvent};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A home, and an output that all jobs have.
struct Home {
    dir: TempDir,
    store: Store,
    output: ArtifactDigest,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("a home's")).unwrap();
        let mut artifact = ArtifactBuilder::new(&store, "file", json!({}));
        artifact.bytes("x.txt", b"x").unwrap();
        let output = artifact.finish().unwrap();
        Self { dir, store, output }
    }

    fn slurm(&self, world: World) -> Simulation {
        Simulation::start(self.dir.path().join("slurm"), self.output, world)
    }

    fn executor(&self, slurm: &Simulation, settings: &Slurm) -> OnSlurm {
        let launch = Launch {
            name: "hpc".to_owned(),
            pipeline: "a $(pipeline)".to_owned(),
            store: self.store.clone(),
            program: "/usr/bin/env".into(),
        };
        let times = Times {
            tick: Duration::from_millis(20),
            collect: Duration::from_millis(20),
            poll: (Duration::from_millis(250), Duration::from_secs(1)),
            list: Duration::from_millis(100),
            bounds: Bounds {
                sure: Duration::from_secs(3),
                unsure: Duration::from_millis(300),
            },
            away: Duration::from_secs(60),
        };
        let tools = Tools {
            directory: Some(slurm.programs()),
        };
        OnSlurm::start(settings, launch, tools, times).unwrap()
    }

    fn job(&self, name: &str) -> Job {
        Job {
            key: key(name),
            stage: name.to_owned(),
            home: self.store.root().to_owned(),
            store: JobStore::Shared {
                takeover: Duration::from_secs(90),
            },
            request: Request::default(),
            work: JobWork::Kind {
                name: "test/simulated".to_owned(),
                version: 1,
                config: Settings::default(),
            },
            inputs: BTreeMap::new(),
            sources: Vec::new(),
            threads: 1,
            part: None,
            has_parts: false,
            fresh: false,
            log: "/nowhere".into(),
            upstream: None,
        }
    }
}

fn settings() -> Slurm {
    Slurm {
        program: Some("/bin/true".into()),
        retries: 10,
        ..Slurm::default()
    }
}

fn key(name: &str) -> ActionKey {
    KeyHasher::new("test").field(name).action_key()
}

fn limits() -> Limits {
    Limits {
        cancel: CancelToken::default(),
        kill: CancelToken::default(),
        timeout: None,
        grace: Duration::from_secs(1),
    }
}

/// A sink that keeps all events.
#[derive(Default)]
struct Events(Mutex<Vec<StageEvent>>);

impl EventSink for Events {
    fn emit(&self, event: StageEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Events {
    fn metrics(&self) -> usize {
        let events = self.0.lock().unwrap();
        events
            .iter()
            .filter(|event| matches!(event, StageEvent::Metric { .. }))
            .count()
    }

    fn text(&self) -> String {
        format!("{:?}", self.0.lock().unwrap())
    }
}
