//! A run in progress, followed through its event log.

use crate::reporter::StageProgress;
use chrono::{DateTime, Utc};
use runner_engine::{Event, Failure, RunStatus, StageEvent, Stamped};
use runner_history::{Builder, Follower, Run, log_file, resolved_pipeline, tail};

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// The number of log lines that are kept.
const LINES: usize = 400;

/// The maximum number of running programs whose logs are shown, and the maximum number of bytes of each log.
const PROGRAMS: usize = 4;
const TAIL: u64 = 8 << 10;

/// The maximum number of points of a metric that are drawn.
const POINTS: usize = 4_000;

/// A run that is followed.
pub struct LiveRun {
    dir: PathBuf,
    follower: Follower,
    builder: Builder,
    is_resolved: bool,
    /// The progress of the running stages.
    pub progress: BTreeMap<String, StageProgress>,
    /// The last lines of logs and warnings, with their stages.
    pub log: VecDeque<(String, String)>,
    /// The time of the run's last event.
    last: Option<DateTime<Utc>>,
    /// The run's status: [`RunStatus::Killed`] once its process has exited without a last event.
    status: RunStatus,
}

impl LiveRun {
    /// Opens the run `id` in the directory `runs`, and reads what has been written so far.
    pub fn open(runs: &Path, id: &str) -> Result<Self, Failure> {
        let dir = runs.join(id);
        let mut run = Self {
            follower: Follower::new(runs, id)?,
            builder: Builder::new(id, &dir),
            dir,
            is_resolved: false,
            progress: BTreeMap::new(),
            log: VecDeque::new(),
            last: None,
            status: RunStatus::Running,
        };
        run.advance()?;
        Ok(run)
    }

    /// Reads what has been written since the last call.
    pub fn advance(&mut self) -> Result<(), Failure> {
        // Queried first: events written before the run ended are read below.
        let status = self.follower.status();
        for stamped in self.follower.events()? {
            self.take(&stamped);
        }
        if !self.is_resolved
            && self.builder.run().is_some()
            && let Ok(Some(pipeline)) = resolved_pipeline(&self.dir)
        {
            self.builder.resolve(Some(pipeline));
            self.is_resolved = true;
        }
        self.status = match self.builder.run().map(|run| run.status) {
            Some(RunStatus::Running) | None => status,
            Some(ended) => ended,
        };
        Ok(())
    }

    fn take(&mut self, stamped: &Stamped) {
        self.last = Some(stamped.time);
        self.builder.take(stamped);
        match &stamped.event {
            Event::StageStarted { stage, .. } => {
                self.progress.insert(stage.clone(), StageProgress::new(stamped.time));
            }
            Event::StageFinished { stage, error, .. } => {
                self.progress.remove(stage);
                if let Some(error) = error {
                    self.say(stage, format!("error: {error}"));
                }
            }
            Event::Stage { stage, event } => match event {
                StageEvent::Log { line } => self.say(stage, line.clone()),
                StageEvent::Warning { message, .. } => self.say(stage, format!("warning: {message}")),
                event => {
                    if let Some(progress) = self.progress.get_mut(stage) {
                        progress.take(event, stamped.time);
                    }
                }
            },
            _ => {}
        }
    }

    /// The last lines of the logs of running programs, with their stages.
    pub fn programs(&self) -> Vec<(String, String)> {
        let running = self.progress.keys().take(PROGRAMS);
        let lines = running.flat_map(|stage| {
            let text = tail(&log_file(&self.dir, stage), TAIL);
            text.lines()
                .map(|line| (stage.clone(), line.to_owned()))
                .collect::<Vec<_>>()
        });
        lines.collect()
    }

    fn say(&mut self, stage: &str, line: String) {
        if self.log.len() == LINES {
            self.log.pop_front();
        }
        self.log.push_back((stage.to_owned(), line));
    }

    /// The run so far; `None` when it has no events.
    pub fn run(&self) -> Option<&Run> {
        self.builder.run()
    }

    /// The status of the run.
    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// The seconds since an instant: until now for a run in progress, otherwise until the run's last event.
    pub fn seconds_since(&self, since: DateTime<Utc>) -> f64 {
        let now = match (self.status, self.last) {
            (RunStatus::Running, _) | (_, None) => Utc::now(),
            (_, Some(last)) => last,
        };
        (now - since).num_milliseconds().max(0) as f64 / 1e3
    }

    /// The curves of the metrics that a stage has reported in this run, by name.
    pub fn curves(&self, stage: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
        let Some(stage) = self.run().and_then(|run| run.stage(stage)) else {
            return BTreeMap::new();
        };
        let curve = |points: &Vec<runner_history::Metric>| {
            let every = points.len().div_ceil(POINTS).max(1);
            let last = points.len().saturating_sub(1);
            let kept = points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last);
            kept.map(|(_, point)| (point.step as f64, point.value)).collect()
        };
        stage
            .metrics
            .iter()
            .map(|(name, points)| (name.clone(), curve(points)))
            .collect()
    }
}
