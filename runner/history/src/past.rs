//! What the stages of a pipeline were in its earlier runs.

use super::reader::ids;
use cache::ActionKey;
use runner_engine::{Past, StageStatus};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
    /// The ids that were not read yet, oldest first; `None` before the first question.
    left: Option<Vec<String>>,
    /// The actions that ended well, by stage, newest first, each key once.
    actions: HashMap<String, Vec<(String, ActionKey)>>,
    seen: HashSet<(String, ActionKey)>,
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

    /// Reads on, from the newest run back, until `enough` of the stage's actions are known.
    fn until(&self, stage: &str, enough: usize) -> Vec<(String, ActionKey)> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = &mut *read;
        let left = read.left.get_or_insert_with(|| {
            let mut ids = ids(&self.runs).unwrap_or_default();
            ids.drain(..ids.len().saturating_sub(MOST_RUNS));
            ids
        });
        while read.actions.get(stage).map_or(0, Vec::len) < enough {
            let Some(run) = left.pop() else { break };
            for (stage, key) in finished(&self.runs.join(&run).join("events.jsonl"), &self.pipeline) {
                if read.seen.insert((stage.clone(), key)) {
                    read.actions.entry(stage).or_default().push((run.clone(), key));
                }
            }
        }
        read.actions.get(stage).cloned().unwrap_or_default()
    }
}

impl Past for PastRuns {
    fn last(&self, stage: &str) -> Option<(String, ActionKey)> {
        self.until(stage, 1).into_iter().next()
    }

    fn all(&self, stage: &str) -> Vec<(String, ActionKey)> {
        self.until(stage, usize::MAX)
    }
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
    let bytes = std::fs::read(events).unwrap_or_default();
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let ours = lines
        .next()
        .and_then(|line| serde_json::from_slice::<Started>(line).ok())
        .is_some_and(|started| started.pipeline == pipeline);
    if !ours {
        return Vec::new();
    }
    lines
        .filter(|line| line.starts_with(br#"{"event":"stage_finished""#))
        .filter_map(|line| serde_json::from_slice::<Finished>(line).ok())
        .filter(|finished| matches!(finished.status, StageStatus::Cached | StageStatus::Ran))
        .filter_map(|finished| Some((finished.stage.into_owned(), finished.key?)))
        .collect()
}
