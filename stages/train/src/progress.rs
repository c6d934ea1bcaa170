//! Progress of a running training: its report, and the check for cancellation.

use crate::train_state::TrainState;
use stages_core::{Context, StageError};
use std::time::{Duration, Instant};

/// The interval at which progress within a rollout is shown.
const INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct Progress<'a> {
    context: &'a Context,
    /// The number of steps after which training ends.
    end: u64,
    /// The time and the step at which this process started.
    began: (Instant, u64),
    shown: Instant,
}

impl<'a> Progress<'a> {
    /// The progress of a training that starts from `state` in this process.
    pub(crate) fn new(context: &'a Context, end: u64, state: &TrainState) -> Self {
        let now = Instant::now();
        Self {
            context,
            end,
            began: (now, state.step),
            shown: now,
        }
    }

    /// Shows progress if the interval has passed; `more` is the number of steps since the last update.
    pub(crate) fn tick(&mut self, state: &TrainState, more: u64) -> Result<(), StageError> {
        self.check_cancelled()?;
        self.show_at_intervals(state, more);
        Ok(())
    }

    /// Shows progress if the interval has passed, as [`Progress::tick`] does.
    pub(crate) fn show_at_intervals(&mut self, state: &TrainState, more: u64) {
        if self.shown.elapsed() > INTERVAL {
            self.show(state, more);
        }
    }

    /// Fails if training is cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), StageError> {
        self.context.check_cancelled()
    }

    /// Shows progress; `more` is the number of steps since the last update.
    pub(crate) fn show(&mut self, state: &TrainState, more: u64) {
        self.shown = Instant::now();
        let mut message = String::new();
        if let Some((value, _)) = state.recent_mean() {
            message = format!("episode return {value:.4}, ");
        }
        if let Some(best) = &state.selection.best {
            message.push_str(&format!("best in validation {:.4} (step {}), ", best.value, best.step));
        }
        message.push_str(&format!("{:.0} steps/s", self.speed(state, more)));
        let done = (state.step + more).min(self.end);
        self.context.progress(done, Some(self.end), message);
    }

    /// Reports steps and updates per second, for updates of `rollout` steps each.
    pub(crate) fn report_speed(&self, state: &TrainState, rollout: u64) {
        let speed = self.speed(state, 0);
        self.context.metric("charts/SPS", state.step, speed);
        self.context.metric("charts/IPS", state.step, speed / rollout as f64);
    }

    /// Environment steps per second since this process took over.
    pub(crate) fn speed(&self, state: &TrainState, more: u64) -> f64 {
        (state.step + more - self.began.1) as f64 / self.began.0.elapsed().as_secs_f64().max(1e-9)
    }
}
