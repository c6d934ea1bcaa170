//! The choice of the states that become checkpoints: the state at the start of an update, at most once per
//! interval, and after a divergence the last good state.

use crate::checkpoint::Writer;
use crate::train_state::TrainState;
use stages_core::StageError;
use stages_env::BatchEnv;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between snapshots, since a snapshot may be as large as the data of an update.
const SNAPSHOT: Duration = Duration::from_secs(1);

pub(crate) struct Checkpointer {
    interval: Duration,
    /// The state when the running update began, or shortly before.
    snapshot: Arc<TrainState>,
    snapshot_at: Instant,
    /// The last snapshot whose parameters have given a finite loss and gradient: the step of Adam before a
    /// later snapshot may have spoiled its parameters.
    good: Option<Arc<TrainState>>,
    diverged: bool,
    writer: Writer,
    written: Instant,
}

impl Checkpointer {
    /// Keeps a checkpoint in `folder`, written every `interval` seconds.
    pub(crate) fn new(folder: &Path, interval: f64, state: &TrainState) -> Result<Self, StageError> {
        let now = Instant::now();
        Ok(Self {
            interval: Duration::try_from_secs_f64(interval).unwrap_or(Duration::MAX),
            snapshot: Arc::new(state.clone()),
            snapshot_at: now,
            good: None,
            diverged: false,
            writer: Writer::new(folder)?,
            written: now,
        })
    }

    /// The step of the checkpoint on disk; 0 if this training has written none yet.
    pub(crate) fn durable(&self) -> u64 {
        self.writer.durable()
    }

    /// True if it is time for another snapshot.
    pub(crate) fn is_due(&self) -> bool {
        self.snapshot_at.elapsed() >= self.interval.min(SNAPSHOT)
    }

    /// Takes a snapshot at the start of an update, and begins to write it in the background, if it is time.
    pub(crate) fn snapshot(&mut self, state: &mut TrainState, env: &dyn BatchEnv) {
        state.env = env.save();
        self.snapshot = Arc::new(state.clone());
        self.snapshot_at = Instant::now();
        if self.written.elapsed() >= self.interval && self.writer.offer(&self.snapshot) {
            self.written = Instant::now();
        }
    }

    /// Records that the present snapshot's parameters have given a finite loss and gradient.
    pub(crate) fn mark_good(&mut self) {
        self.good = Some(self.snapshot.clone());
    }

    /// Records that the present snapshot's parameters have diverged, and names the checkpoint that will
    /// remain.
    pub(crate) fn mark_diverged(&mut self) -> String {
        self.diverged = true;
        match &self.good {
            Some(good) => format!(
                "the last good checkpoint (step {}) is `{}`",
                good.step,
                self.writer.path().display()
            ),
            None => "there is no good checkpoint".to_owned(),
        }
    }

    /// Writes the checkpoint of a training that failed: the state at the start of the update, or after a
    /// divergence the last good one.
    pub(crate) fn finish_failed(&mut self) -> Result<(), StageError> {
        let state = if self.diverged {
            self.good.clone()
        } else {
            Some(self.snapshot.clone())
        };
        state.map_or(Ok(()), |state| self.writer.finish(&state))
    }

    /// Writes the last checkpoint.
    pub(crate) fn finish(&mut self, state: &TrainState) -> Result<(), StageError> {
        self.writer.finish(state)
    }
}
