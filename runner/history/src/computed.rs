//! The metrics that cached stages reported in the runs that computed them: times are only in events, never in
//! an artifact.

use super::reader::load;
use super::{LastMetrics, StageRun};
use cache::{ActionKey, Store};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Finds, by action key, the metrics of the run that computed an action, which the action record names. No
/// run is read twice.
pub struct ComputedMetrics {
    runs: PathBuf,
    store: Store,
    /// The metrics read so far, by run and action.
    read: RefCell<HashMap<String, HashMap<ActionKey, LastMetrics>>>,
}

impl ComputedMetrics {
    /// Searches the runs in the directory `runs`, whose results are in `store`.
    pub fn new(runs: &Path, store: &Store) -> Self {
        Self {
            runs: runs.to_owned(),
            store: store.clone(),
            read: RefCell::default(),
        }
    }

    /// The last value of each metric that this stage reported when it was computed; empty if unknown.
    pub fn of(&self, stage: &StageRun) -> LastMetrics {
        self.find(stage).unwrap_or_default()
    }

    fn find(&self, stage: &StageRun) -> Option<LastMetrics> {
        let key = stage.key?;
        let record = self.store.recorded(key).ok()??;
        let mut read = self.read.borrow_mut();
        let metrics = read
            .entry(record.info.get("run")?.as_str()?.to_owned())
            .or_insert_with_key(|id| {
                let run = load(&self.runs, id);
                let metrics = |(key, stage): (ActionKey, &StageRun)| (key, stage.last_metrics());
                run.map(|run| run.computed().map(metrics).collect()).unwrap_or_default()
            });
        metrics.get(&key).cloned()
    }
}
