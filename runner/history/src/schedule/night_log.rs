//! The log of a schedule's nights: `HOME/schedule/NAME.jsonl`, one line with a checksum for each change of a
//! night.
//!
//! A run's outcome is in its own events. The log repeats it for nights whose runs are removed from the
//! history; a lost log is rebuilt from the runs.

use super::due::Due;
use super::night::{Night, NightStatus};
use crate::document::{self, Locked};
use crate::reader::{is_running, list, load};
use cache::{checksummed, regular_file, shared};
use chrono::{DateTime, TimeDelta, Utc};
use runner_engine::{Failure, RunStatus, timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    time: String,
    #[serde(flatten)]
    change: Change,
    #[serde(flatten)]
    of: Option<Named>,
}

/// The night of a line.
#[derive(Debug, Serialize, Deserialize)]
struct Named {
    night: String,
    due: String,
}

/// A change of a night.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Change {
    /// The pipeline file of the nights that follow; of no night.
    File { file: PathBuf },
    /// The night's data is not there yet.
    Waiting { why: String },
    /// The night's run starts.
    Started { run: String },
    /// The night reached its final state.
    Ended {
        status: NightStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        #[serde(flatten)]
        end: Ended,
    },
    /// A person skips the night, which need not be due.
    Skipped { why: String },
}

/// The end of a night: the reason for its state, and the decision made after it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ended {
    /// The reason for the night's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The decision made after the night's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}

impl Ended {
    /// An end with a reason and without a decision.
    pub(super) fn because(why: String) -> Self {
        Self {
            why: Some(why),
            decision: None,
        }
    }
}

/// The nights of a schedule.
#[derive(Debug)]
pub struct NightLog {
    path: PathBuf,
    /// True if the last line is incomplete.
    is_torn: bool,
    /// True if there is no log file, and the nights were derived from runs.
    is_of_runs: bool,
    file: Option<PathBuf>,
    nights: BTreeMap<String, Night>,
}

/// The directory of the schedules' logs.
fn folder(home: &Path) -> PathBuf {
    home.join("schedule")
}

/// The names of the schedules that have nights, sorted.
///
/// # Errors
/// If the directory cannot be read. The directory need not exist.
pub fn names(home: &Path) -> Result<Vec<String>, Failure> {
    let entries = document::entries(&folder(home))?;
    let names = entries.iter().filter_map(|(name, _)| name.strip_suffix(".jsonl"));
    Ok(names.map(ToOwned::to_owned).collect())
}

/// Locks a schedule; `None` if another process holds the lock.
pub(super) fn lock(home: &Path, name: &str) -> Result<Option<Locked>, Failure> {
    document::lock(&folder(home), name)
}

impl NightLog {
    /// Reads the nights of a schedule. A night whose run ended without a line in the log takes the state of
    /// its run.
    pub fn read(home: &Path, name: &str) -> Result<Self, Failure> {
        let path = folder(home).join(format!("{name}.jsonl"));
        let mut log = Self {
            is_torn: false,
            is_of_runs: false,
            file: None,
            nights: BTreeMap::new(),
            path,
        };
        let runs = home.join("runs");
        match regular_file::read(&log.path) {
            Ok(bytes) => {
                log.is_torn = bytes.last().is_some_and(|last| *last != b'\n');
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    // A torn or damaged line counts as never written.
                    if checksummed::matches_checksum(line)
                        && let Ok(line) = serde_json::from_slice::<Line>(line)
                    {
                        log.apply(line);
                    }
                }
            }
            Err(err) if err.kind() == ErrorKind::NotFound => log.take_from_runs(&runs, name)?,
            Err(err) => return Err(Failure::at("cannot read", &log.path)(err)),
        }
        for night in log.nights.values_mut() {
            if night.status == NightStatus::Running {
                settle(night, &runs);
                night.is_of_run = !log.is_of_runs;
            }
        }
        Ok(log)
    }

    /// Derives the nights from the runs in the history.
    fn take_from_runs(&mut self, runs: &Path, name: &str) -> Result<(), Failure> {
        self.is_of_runs = true;
        for run in list(runs)? {
            if run.pipeline == name
                && let Some(night) = run.night
            {
                self.file = Some(run.file);
                let known = self.nights.get(&night);
                // A night that is done stays done.
                if known.is_some_and(|night| {
                    load(runs, night.run.as_deref().unwrap_or_default())
                        .is_ok_and(|run| run.status == RunStatus::Done)
                }) {
                    continue;
                }
                let rebuilt = Night {
                    status: NightStatus::Running,
                    started: Some(run.started),
                    run: Some(run.id),
                    attempts: known.map_or(0, |night| night.attempts) + 1,
                    ..Night::new(night.clone(), run.started)
                };
                self.nights.insert(night, rebuilt);
            }
        }
        Ok(())
    }

    /// The nights, in order of time.
    pub fn nights(&self) -> impl DoubleEndedIterator<Item = &Night> {
        self.nights.values()
    }

    /// The night with the name `night`.
    pub fn get(&self, night: &str) -> Option<&Night> {
        self.nights.get(night)
    }

    /// The pipeline file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Records the pipeline file, if it has changed.
    pub(super) fn set_file(&mut self, now: DateTime<Utc>, file: &Path) -> Result<(), Failure> {
        match self.file() == Some(file) {
            true => Ok(()),
            false => self.write_first(now, None, Change::File { file: file.to_owned() }),
        }
    }

    /// Records a change of a night.
    pub(super) fn add(&mut self, now: DateTime<Utc>, due: &Due, change: Change) -> Result<(), Failure> {
        let of = Named {
            night: due.night.clone(),
            due: timestamp(due.at),
        };
        self.write_first(now, Some(of), change)
    }

    /// Writes a line, after those of the nights that were derived from runs.
    fn write_first(&mut self, now: DateTime<Utc>, of: Option<Named>, change: Change) -> Result<(), Failure> {
        if self.is_of_runs {
            let written = self.known().iter().try_for_each(|line| self.write(line));
            written.map_err(document::unwritable(&self.path))?;
            self.is_of_runs = false;
        }
        let time = timestamp(now);
        let line = Line { time, change, of };
        self.write(&line).map_err(document::unwritable(&self.path))?;
        self.apply(line);
        Ok(())
    }

    /// The log lines that represent the current nights.
    fn known(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for night in self.nights.values() {
            let mut add = |time: DateTime<Utc>, change| {
                let of = Named {
                    night: night.night.clone(),
                    due: timestamp(night.due),
                };
                let time = timestamp(time);
                lines.push(Line {
                    time,
                    change,
                    of: Some(of),
                });
            };
            if let (Some(started), Some(run)) = (night.started, night.run.clone()) {
                add(started, Change::Started { run });
            }
            let ended = Change::Ended {
                status: night.status,
                run: night.run.clone(),
                end: Ended {
                    why: night.why.clone(),
                    decision: night.decision.clone(),
                },
            };
            add(night.ended.unwrap_or(night.due), ended);
        }
        lines
    }

    fn write(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = document::text(line)? + "\n";
        if self.is_torn {
            text.insert(0, '\n');
        }
        if let Some(folder) = self.path.parent() {
            shared::create_dir_all(folder)?;
        }
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        // Only the file's owner can share it.
        let _ = shared::share_file(&self.path);
        self.is_torn = true;
        file.write_all(text.as_bytes())?;
        self.is_torn = false;
        Ok(())
    }

    fn apply(&mut self, line: Line) {
        let time = instant(&line.time);
        if let Change::File { file } = line.change {
            self.file = Some(file);
            return;
        }
        let Some(Named { night, due }) = line.of else { return };
        let is_new = !self.nights.contains_key(&night);
        let night = self
            .nights
            .entry(night.clone())
            .or_insert_with(|| Night::new(night, instant(&due)));
        match line.change {
            Change::File { .. } => {}
            Change::Waiting { why } => {
                night.status = NightStatus::Waiting;
                night.why = Some(why);
                night.ended = None;
            }
            Change::Started { run } => {
                *night = Night {
                    status: NightStatus::Running,
                    started: Some(time),
                    run: Some(run),
                    attempts: night.attempts + 1,
                    ..Night::new(night.night.clone(), night.due)
                };
            }
            Change::Ended { status, run, end } => {
                night.status = status;
                night.ended = Some(time);
                night.run = run.or(night.run.take());
                (night.why, night.decision) = (end.why, end.decision);
            }
            Change::Skipped { why } => {
                night.status = NightStatus::Skipped;
                night.ended = Some(time);
                night.why = Some(why);
                night.is_ahead = is_new;
            }
        }
    }
}

/// The instant that a line's text denotes; the checksum guarantees that it is valid.
fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).map_or(DateTime::UNIX_EPOCH, |time| time.to_utc())
}

/// Derives the state of a night from its started run.
fn settle(night: &mut Night, runs: &Path) {
    let Some(id) = &night.run else { return };
    if is_running(runs, id) {
        return;
    }
    let Ok(run) = load(runs, id) else {
        night.status = NightStatus::Killed;
        night.why = Some("its run is not in the history".to_owned());
        return;
    };
    let seconds = TimeDelta::milliseconds((run.seconds * 1e3) as i64);
    night.ended = Some(run.started + seconds);
    (night.status, night.why) = match run.status {
        RunStatus::Done => (NightStatus::Done, None),
        RunStatus::Failed => (NightStatus::Failed, run.first_error()),
        RunStatus::Interrupted => (NightStatus::Killed, Some("its run was interrupted".to_owned())),
        RunStatus::Running | RunStatus::Killed => {
            (NightStatus::Killed, Some("its run was killed".to_owned()))
        }
    };
}
