//! The metrics that cached stages reported in the runs that computed them: times are only in events, never in
//! an artifact.

use super::index::{EventFile, Index};
use super::reader::load;
use super::{LastMetrics, Run, StageRun};
use cache::{ActionKey, Store};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Finds, by action key, the metrics of the run that computed an action: in the index, or else in the event
/// log of the run that the action record names. No other run is read, and no run is read twice.
pub struct ComputedMetrics {
    runs: PathBuf,
    store: Store,
    index: OnceCell<Option<RefCell<Index>>>,
    /// The metrics read so far, by run and action.
    read: RefCell<HashMap<String, HashMap<ActionKey, LastMetrics>>>,
}

impl ComputedMetrics {
    /// Searches the runs in the directory `runs`, whose results are in `store`.
    pub fn new(runs: &Path, store: &Store) -> Self {
        Self {
            runs: runs.to_owned(),
            store: store.clone(),
            index: OnceCell::new(),
            read: RefCell::default(),
        }
    }

    /// The last value of each metric that this stage reported when it was computed; empty if unknown.
    pub fn of(&self, stage: &StageRun) -> LastMetrics {
        self.find(stage).unwrap_or_default()
    }

    fn find(&self, stage: &StageRun) -> Option<LastMetrics> {
        let key = stage.key?;
        let index = self
            .index
            .get_or_init(|| Index::open(&self.runs).map(RefCell::new))
            .as_ref();
        let computed = index.and_then(|index| index.borrow().computed(key));
        let id = match computed {
            Some((_, Some(metrics))) => return Some(metrics),
            Some((id, None)) => id,
            None => {
                let record = self.store.recorded(key).ok()??;
                record.info.get("run")?.as_str()?.to_owned()
            }
        };
        let mut read = self.read.borrow_mut();
        let of_run = read
            .entry(id)
            .or_insert_with_key(|id| self.read(id, index).unwrap_or_default());
        of_run.get(&key).cloned()
    }

    /// Reads the last values of the metrics of every stage that a run computed, and adds them to the index.
    fn read(&self, id: &str, index: Option<&RefCell<Index>>) -> Option<HashMap<ActionKey, LastMetrics>> {
        let file = EventFile::of(&self.runs, id)?;
        let mut run = load(&self.runs, id).ok()?;
        if let Some(index) = index {
            index.borrow_mut().add_with_metrics(&file, &mut run);
        }
        Some(run.computed().map(|(key, stage)| (key, stage.last_metrics())).collect())
    }
}

/// The size in bytes of an event log that can be read in about 10 ms.
const READ_BYTES: f64 = 400_000.0;

/// Adds a run that has just ended to the index, with its metrics, if that takes at most about 1 % of the
/// run's time. Otherwise the first command that needs the entry adds it.
pub fn index_run(runs: &Path, ended: &Run) {
    let is_cheap = |file: &EventFile| ended.seconds >= 1.0 && file.bytes as f64 <= ended.seconds * READ_BYTES;
    if let Some(file) = EventFile::of(runs, &ended.id).filter(is_cheap)
        && let Ok(mut run) = load(runs, &ended.id)
        && let Some(mut index) = Index::open(runs)
    {
        index.add_with_metrics(&file, &mut run);
    }
}
