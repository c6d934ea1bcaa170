//! The record of a search: `HOME/searches/ID.jsonl`, a line with a checksum for each job that was decided and
//! each that ended. The search is a function of its settings and of the results, so that the record is a
//! convenience: without it, the same search comes to the same jobs, whose stages are cached.

use crate::sampler::Observed;
use crate::study::{Job, Outcome};
use cache::{checksummed, regular_file, shared};
use chrono::{DateTime, Utc};
use runner_engine::{Failure, stamp};
use runner_history::document::{self, unwritable};
use runner_pipeline::Search;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// The search; the first line. A later one holds from there on, such as of more trials.
    Search(Box<Header>),
    /// A job was decided. It replaces the job with its number and all after it.
    Decided(Job),
    /// A job ended. A later line is of a later run, where the result was another one.
    Ended {
        /// The job's number.
        job: u32,
        /// The outcome.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// A run of the search ended.
    Ran(Ran),
    /// The best trial was trained again on fresh seeds.
    Final(Final),
}

/// A run of a search that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The run's id.
    pub run: String,
    /// The time that the run took, in seconds.
    pub seconds: f64,
    /// True if the search is done.
    pub done: bool,
}

/// The best trial, trained again on fresh seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Final {
    /// The trial's number.
    pub trial: u32,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The objectives of each seed, on the data of the search's own objective.
    pub outcome: Outcome,
}

/// The description of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The search's id: its pipeline's name, and the first digits of the digest of its settings and of all
    /// that its trials depend on, but for the number of trials and the budget.
    pub id: String,
    /// The digest of the space, the objective and the pipeline's settings outside the space: searches with
    /// the same one can take over each other's trials.
    pub space: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The pipeline file.
    pub file: PathBuf,
    /// The block `search:`.
    pub search: Search,
    /// The values of the resource at the rungs; the last is the full one. One rung without a value where no
    /// trial is stopped early.
    pub rungs: Vec<Option<u64>>,
    /// True if a rung is computed from the start, as the resource is not the steps of a training.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// The file's own settings in the space.
    pub own: crate::Settings,
    /// The trials of earlier searches that it began with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warm: Vec<Observed>,
}

/// A line and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stamped {
    #[serde(flatten)]
    line: Line,
    #[serde(with = "stamp")]
    time: DateTime<Utc>,
}

/// The record of a search, as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The search.
    pub header: Header,
    /// The time of its first line.
    pub started: DateTime<Utc>,
    /// The jobs, in their order, each with the time at which it was decided.
    pub jobs: Vec<(Job, DateTime<Utc>)>,
    /// The outcomes by job, each with the time at which it ended.
    pub outcomes: BTreeMap<u32, (Outcome, DateTime<Utc>)>,
    /// The runs that ended, oldest first.
    pub runs: Vec<(Ran, DateTime<Utc>)>,
    /// The best trial on fresh seeds, if it was trained again.
    pub last: Option<Final>,
}

/// The path of the record of a search.
pub fn path(home: &Path, id: &str) -> PathBuf {
    home.join("searches").join(format!("{id}.jsonl"))
}

/// The path of the file that asks a search to end after the jobs under way.
pub fn stop_file(home: &Path, id: &str) -> PathBuf {
    home.join("searches").join(format!("{id}.stop"))
}

/// The records of a home, the newest first: by the time of the last line of each.
///
/// # Errors
/// If the directory or a record cannot be read.
pub fn list(home: &Path) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    for (name, entry) in document::entries(&home.join("searches"))? {
        if name.ends_with(".jsonl") {
            records.extend(Record::read(&entry.path())?);
        }
    }
    records.sort_by_key(|record| (std::cmp::Reverse(record.latest()), record.header.id.clone()));
    Ok(records)
}

/// True if a process is writing the record of a search.
pub fn is_running(home: &Path, id: &str) -> bool {
    let file = File::open(path(home, id));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Record {
    /// Reads a record; `None` without a file, or without a first line. Torn and damaged lines are left out.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        match regular_file::read(path) {
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            bytes => Ok(Self::parse(&bytes.map_err(Failure::at("cannot read", path))?)),
        }
    }

    /// Parses the lines of a record.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let sound = lines.filter(|line| checksummed::matches_checksum(line));
        let stamped = sound.filter_map(|line| serde_json::from_slice::<Stamped>(line).ok());
        let mut record: Option<Self> = None;
        for Stamped { line, time } in stamped {
            match (line, &mut record) {
                (Line::Search(header), Some(record)) => record.header = *header,
                (Line::Search(header), None) => {
                    record = Some(Self {
                        header: *header,
                        started: time,
                        jobs: Vec::new(),
                        outcomes: BTreeMap::new(),
                        runs: Vec::new(),
                        last: None,
                    });
                }
                (_, None) => {}
                (Line::Decided(job), Some(record)) => {
                    // After a line that is missing, the decisions are not those of this search's order.
                    if job.job as usize <= record.jobs.len() {
                        record.jobs.truncate(job.job as usize);
                        record.outcomes.retain(|other, _| *other < job.job);
                        record.jobs.push((job, time));
                    }
                }
                (Line::Ended { job, outcome }, Some(record)) => {
                    if (job as usize) < record.jobs.len() {
                        record.outcomes.insert(job, (outcome, time));
                    }
                }
                (Line::Ran(ran), Some(record)) => record.runs.push((ran, time)),
                (Line::Final(last), Some(record)) => record.last = Some(last),
            }
        }
        record
    }

    /// The time of the last line that is not of the best trial's fresh seeds.
    pub fn latest(&self) -> DateTime<Utc> {
        let decided = self.jobs.iter().map(|(_, time)| *time);
        let ended = self.outcomes.values().map(|(_, time)| *time);
        let ran = self.runs.iter().map(|(_, time)| *time);
        decided.chain(ended).chain(ran).fold(self.started, DateTime::max)
    }

    /// True if the search came to its end, and nothing was decided since.
    pub fn is_done(&self) -> bool {
        let decided = self.jobs.iter().map(|(_, time)| *time).max();
        self.runs
            .last()
            .is_some_and(|(ran, time)| ran.done && decided <= Some(*time))
    }
}

/// Appends to the record of a search. One process at a time writes a record.
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Opens the record of a search, which need not exist.
    ///
    /// # Errors
    /// If it cannot be written, or another process is writing it.
    pub fn open(home: &Path, id: &str) -> Result<Self, Failure> {
        let path = path(home, id);
        let open = || {
            let dir = home.join("searches");
            match shared::create_dir(&dir) {
                Err(err) if err.kind() != ErrorKind::AlreadyExists => return Err(err),
                _ => {}
            }
            let file = File::options().create(true).append(true).open(&path)?;
            // Only the file's owner can share it.
            let _ = shared::share_file(&path);
            Ok(file)
        };
        let file = open().map_err(unwritable(&path))?;
        let mut tries = 0;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, path }),
                // A reader that asks whether the search is running holds the lock for a moment.
                Err(TryLockError::WouldBlock) if tries < 20 => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("the search `{id}` is running in another process");
                    let hint = format!("wait for it, or end it with `runner search stop {id}`");
                    return Err(Failure::machine(message).hint(hint));
                }
                Err(TryLockError::Error(err)) => return Err(unwritable(&path)(err)),
            }
        }
    }

    /// Appends lines in a single write, so that concurrent readers see whole lines.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, lines: &[Line], time: DateTime<Utc>) -> Result<(), Failure> {
        // A line that another process left torn ends here.
        let mut text = String::from("\n");
        for line in lines {
            let stamped = Stamped {
                line: line.clone(),
                time,
            };
            let line = document::text(&stamped).map_err(unwritable(&self.path))?;
            text += &(line + "\n");
        }
        self.file.write_all(text.as_bytes()).map_err(unwritable(&self.path))
    }
}
