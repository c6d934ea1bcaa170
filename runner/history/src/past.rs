//! What the stages of a pipeline were in its earlier runs.

use super::index::{EventFile, Index};
use super::reader::last_files;
use super::stored::Ending;
use cache::ActionKey;
use runner_engine::{Past, StageStatus};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At most this many of the last runs are looked at.
const MOST_RUNS: usize = 100;

/// The earlier runs of one pipeline. Nothing is read before it is asked for, and no run twice.
pub struct PastRuns {
    runs: PathBuf,
    pipeline: String,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// The events that were not read yet, oldest first; `None` before the first question.
    left: Option<Vec<EventFile>>,
    /// The actions that ended well, by stage, newest first, each key once.
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
    /// The runs of `pipeline` below the folder `runs`.
    pub fn new(runs: &Path, pipeline: &str) -> Self {
        Self {
            runs: runs.to_owned(),
            pipeline: pipeline.to_owned(),
            read: Mutex::default(),
        }
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.left
            .get_or_insert_with(|| last_files(&self.runs, MOST_RUNS).unwrap_or_default());
        read
    }

    fn events(&self, run: &str) -> PathBuf {
        self.runs.join(run).join("events.jsonl")
    }
}

impl Past for PastRuns {
    /// Reads on, from the newest run back, until one had the stage. It is nearly always in the last one: no index is needed.
    fn last(&self, stage: &str) -> Option<(String, ActionKey)> {
        let mut read = self.read();
        while read.of(stage).is_empty() {
            let file = read.left.as_mut()?.pop()?;
            read.add(&file.id, finished(&self.events(&file.id), &self.pipeline));
        }
        read.of(stage).first().cloned()
    }

    /// Reads what is left. Of runs that ended alike, the index shows the first.
    fn all(&self, stage: &str) -> Vec<(String, ActionKey)> {
        let mut read = self.read();
        let left = read.left.replace(Vec::new()).unwrap_or_default();
        if !left.is_empty() {
            let index = Index::open(&self.runs);
            let endings = index.as_ref().map(|index| index.endings(&left)).unwrap_or_default();
            let mut seen = HashSet::new();
            for file in left.iter().rev() {
                let known = endings.get(&file.id);
                if known.is_some_and(|(pipeline, ending)| *pipeline != self.pipeline || !seen.insert(*ending)) {
                    continue;
                }
                let ending = index
                    .as_ref()
                    .zip(known)
                    .and_then(|(index, (_, ending))| index.ending(*ending));
                match ending {
                    Some(stages) => read.add(&file.id, stages.into_iter().filter_map(ended_well)),
                    None => read.add(&file.id, finished(&self.events(&file.id), &self.pipeline)),
                }
            }
        }
        read.of(stage).to_vec()
    }
}

fn ended_well(ending: Ending) -> Option<(String, ActionKey)> {
    let is_well = matches!(ending.status, Some(StageStatus::Cached | StageStatus::Ran));
    Some((ending.id, ending.key.filter(|_| is_well)?))
}

/// As much of a `stage_finished` event as is needed here.
#[derive(Deserialize)]
struct Finished<'a> {
    #[serde(borrow)]
    stage: Cow<'a, str>,
    key: Option<ActionKey>,
    status: StageStatus,
}

#[derive(Deserialize)]
struct Started<'a> {
    #[serde(borrow)]
    pipeline: Cow<'a, str>,
}

/// The actions that ended well in a run, if it is one of `pipeline`. What cannot be read counts for nothing.
fn finished(events: &Path, pipeline: &str) -> Vec<(String, ActionKey)> {
    let Ok(file) = File::open(events) else {
        return Vec::new();
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let _ = reader.read_until(b'\n', &mut line);
    if !serde_json::from_slice::<Started>(&line).is_ok_and(|started| started.pipeline == pipeline) {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let _ = reader.read_to_end(&mut bytes);
    bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| line.starts_with(br#"{"event":"stage_finished""#))
        .filter_map(|line| serde_json::from_slice::<Finished>(line).ok())
        .filter(|finished| matches!(finished.status, StageStatus::Cached | StageStatus::Ran))
        .filter_map(|finished| Some((finished.stage.into_owned(), finished.key?)))
        .collect()
}
