//! The actions of a pipeline's stages in earlier runs.

use super::reader::{EventFile, last_files};
use cache::{ActionKey, checksummed, regular_file};
use rayon::prelude::*;
use runner_engine::{Past, StageStatus};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of last runs that are searched.
const MOST_RUNS: usize = 100;

/// The earlier runs of one pipeline. They are read on demand, each once.
pub struct PastRuns {
    runs: PathBuf,
    pipeline: String,
    run: String,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// The event logs that have not been read yet, oldest first; `None` before the first query.
    left: Option<Vec<EventFile>>,
    /// The successful actions by stage, newest first, each key once.
    actions: HashMap<String, Vec<(String, ActionKey)>>,
    seen: HashSet<(String, ActionKey)>,
}

impl Read {
    fn add(&mut self, run: &str, actions: impl IntoIterator<Item = (String, ActionKey)>) {
        for (stage, key) in actions {
            if self.seen.insert((stage.clone(), key)) {
                self.actions.entry(stage).or_default().push((run.to_owned(), key));
            }
        }
    }

    fn of(&self, stage: &str) -> &[(String, ActionKey)] {
        self.actions.get(stage).map(Vec::as_slice).unwrap_or_default()
    }
}

impl PastRuns {
    /// The earlier runs of `pipeline` in the directory `runs`, excluding the current run `run`.
    pub fn new(runs: &Path, pipeline: &str, run: &str) -> Self {
        Self {
            runs: runs.to_owned(),
            pipeline: pipeline.to_owned(),
            run: run.to_owned(),
            read: Mutex::default(),
        }
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.left.get_or_insert_with(|| {
            let mut files = last_files(&self.runs, MOST_RUNS).unwrap_or_default();
            files.retain(|file| file.id != self.run);
            files
        });
        read
    }

    fn events(&self, run: &str) -> PathBuf {
        self.runs.join(run).join("events.jsonl")
    }
}

impl Past for PastRuns {
    /// Reads backwards from the newest run to the first that had the stage, nearly always the last run.
    fn last(&self, stage: &str) -> Option<(String, ActionKey)> {
        let mut read = self.read();
        while read.of(stage).is_empty() {
            let file = read.left.as_mut()?.pop()?;
            read.add(&file.id, finished(&self.events(&file.id), &self.pipeline));
        }
        read.of(stage).first().cloned()
    }

    /// Reads the remaining runs.
    fn all(&self, stage: &str) -> Vec<(String, ActionKey)> {
        let mut read = self.read();
        let left = read.left.replace(Vec::new()).unwrap_or_default();
        let found: Vec<_> = left
            .par_iter()
            .map(|file| finished(&self.events(&file.id), &self.pipeline))
            .collect();
        for (file, actions) in left.iter().zip(found).rev() {
            read.add(&file.id, actions);
        }
        read.of(stage).to_vec()
    }
}

/// The result of a stage, as its last event has it.
#[derive(Deserialize)]
struct StageEnd {
    stage: String,
    key: Option<ActionKey>,
    status: StageStatus,
}

#[derive(Deserialize)]
struct Started<'a> {
    #[serde(borrow)]
    pipeline: Cow<'a, str>,
}

/// The successful actions of a run, if it is a run of `pipeline`. Unreadable events are ignored.
fn finished(events: &Path, pipeline: &str) -> Vec<(String, ActionKey)> {
    let Ok(file) = regular_file::open(events) else {
        return Vec::new();
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let _ = reader.read_until(b'\n', &mut line);
    let is_of = |started: Started| started.pipeline == pipeline;
    if !checksummed::matches_checksum(&line) || !serde_json::from_slice::<Started>(&line).is_ok_and(is_of) {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let _ = reader.read_to_end(&mut bytes);
    bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| line.starts_with(br#"{"event":"stage_finished""#))
        .filter(|line| checksummed::matches_checksum(line))
        .filter_map(|line| serde_json::from_slice::<StageEnd>(line).ok())
        .filter(|end| matches!(end.status, StageStatus::Cached | StageStatus::Ran))
        .filter_map(|end| Some((end.stage, end.key?)))
        .collect()
}
