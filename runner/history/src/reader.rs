//! Reads runs.

use super::builder::Builder;
use super::document;
use super::{ResolvedPipeline, ResolvedStage, Run};
use cache::parallel::locked;
use cache::{checksummed, regular_file};
use rayon::prelude::*;
use runner_engine::{Failure, RunStatus, Stamped};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{DirEntry, File, TryLockError};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

/// The names of the run directories, oldest first. The directories are not opened: a directory without an
/// event log is not yet a run.
pub(super) fn folders(runs: &Path) -> Result<Vec<String>, Failure> {
    // Links to directories count. A leading dot marks a run that is being removed.
    let is_run = |(name, entry): &(String, DirEntry)| {
        entry.file_type().is_ok_and(|ty| !ty.is_file()) && !name.starts_with('.')
    };
    let entries = document::entries(runs)?.into_iter().filter(is_run);
    Ok(entries.map(|(name, _)| name).collect())
}

/// True if a run has an event log.
pub(super) fn has_events(runs: &Path, id: &str) -> bool {
    runs.join(id).join("events.jsonl").is_file()
}

/// True if the process of a run is alive.
pub(super) fn is_running(runs: &Path, id: &str) -> bool {
    regular_file::open(&runs.join(id).join("events.jsonl")).is_ok_and(|file| is_locked(&file))
}

/// True if the event log is locked: its writer holds the lock for as long as it is alive.
fn is_locked(events: &File) -> bool {
    matches!(events.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Reads all runs, oldest first, without metrics. Unreadable runs are omitted.
pub fn list(runs: &Path) -> Result<Vec<Run>, Failure> {
    Ok(survey(runs)?.0)
}

/// Reads all runs, oldest first, without metrics, and returns the ids of the unreadable runs with them.
pub fn survey(runs: &Path) -> Result<(Vec<Run>, Vec<String>), Failure> {
    Ok(read_files(runs, files(runs)?))
}

/// The event logs of all runs, oldest first.
pub(super) fn files(runs: &Path) -> Result<Vec<EventFile>, Failure> {
    let folders = folders(runs)?;
    Ok(folders.par_iter().filter_map(|id| EventFile::of(runs, id)).collect())
}

/// Reads runs without metrics, and returns the ids of the unreadable runs with them.
pub(super) fn read_files(runs: &Path, files: Vec<EventFile>) -> (Vec<Run>, Vec<String>) {
    let read = briefs(runs, &files);
    apart(files, read)
}

/// Reads the last `n` readable runs, oldest first, without metrics, and returns the ids of the unreadable
/// runs among them.
pub fn last(runs: &Path, n: usize) -> Result<(Vec<Run>, Vec<String>), Failure> {
    let mut wanted = n;
    loop {
        let mut files = last_files(runs, wanted)?;
        let is_all = files.len() < wanted;
        let mut read = briefs(runs, &files);
        let readable: Vec<usize> = (0..read.len()).filter(|i| read[*i].is_some()).collect();
        if let Some(spare) = readable.len().checked_sub(n) {
            let first = readable.get(spare).copied().unwrap_or(read.len());
            read.drain(..first);
            files.drain(..first);
            return Ok(apart(files, read));
        }
        if is_all {
            return Ok(apart(files, read));
        }
        // Few looks, even if many of the newest runs are unreadable.
        wanted *= 2;
    }
}

/// The event logs of the last `n` runs, oldest first.
pub(super) fn last_files(runs: &Path, n: usize) -> Result<Vec<EventFile>, Failure> {
    let folders = folders(runs)?;
    let mut files: Vec<EventFile> = folders
        .iter()
        .rev()
        .filter_map(|id| EventFile::of(runs, id))
        .take(n)
        .collect();
    files.reverse();
    Ok(files)
}

fn apart(files: Vec<EventFile>, read: Vec<Option<Run>>) -> (Vec<Run>, Vec<String>) {
    let broken = files.into_iter().zip(&read).filter(|(_, run)| run.is_none());
    let broken = broken.map(|(file, _)| file.id).collect();
    (read.into_iter().flatten().collect(), broken)
}

/// The stages as resolved, by their text in a brief: many runs have the same.
type Stages = Mutex<HashMap<String, Arc<[Arc<ResolvedStage>]>>>;

fn briefs(runs: &Path, files: &[EventFile]) -> Vec<Option<Run>> {
    let stages = Stages::default();
    files.par_iter().map(|file| brief(runs, file, &stages)).collect()
}

fn resolved(stages: &Stages, text: String) -> Option<Arc<[Arc<ResolvedStage>]>> {
    let mut stages = locked(stages);
    if let Some(known) = stages.get(&text) {
        return Some(known.clone());
    }
    let read: Vec<Arc<ResolvedStage>> = serde_json::from_str::<Vec<ResolvedStage>>(&text)
        .ok()?
        .into_iter()
        .map(Arc::new)
        .collect();
    Some(stages.entry(text).or_insert(read.into()).clone())
}

/// The event log of a run on disk.
#[derive(Clone, Debug)]
pub(super) struct EventFile {
    /// The run.
    pub id: String,
    /// The size in bytes, and the modification time in nanoseconds since 1970.
    version: (u64, i64),
}

impl EventFile {
    /// The event log of a run; `None` if there is none.
    fn of(runs: &Path, id: &str) -> Option<Self> {
        let meta = std::fs::metadata(runs.join(id).join("events.jsonl")).ok()?;
        let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        meta.is_file().then(|| Self {
            id: id.to_owned(),
            version: (meta.len(), modified.as_nanos() as i64),
        })
    }
}

/// `brief.json`: a run without its metrics, as an event log of this size and time has it.
#[derive(Serialize, Deserialize)]
struct Brief<R> {
    version: (u64, i64),
    run: R,
    /// The stages as resolved, a list in JSON.
    stages: String,
}

/// Reads a run without metrics, which are most of its event log, from its `brief.json`, or else from its
/// events; `None` when it is unreadable.
fn brief(runs: &Path, file: &EventFile, stages: &Stages) -> Option<Run> {
    let path = runs.join(&file.id).join("brief.json");
    if let Ok(Some(brief)) = document::read::<Brief<Run>>(&path, "")
        && brief.version == file.version
        && let Some(stages) = resolved(stages, brief.stages)
    {
        let mut run = Run {
            // The directory may have another name than when the brief was written.
            id: file.id.clone(),
            dir: runs.join(&file.id),
            ..brief.run
        };
        for (stage, of) in run.stages.iter_mut().zip(stages.iter()) {
            stage.of = of.clone();
        }
        return Some(run);
    }
    let run = read(runs, &file.id, false).ok().flatten()?;
    if run.status != RunStatus::Running && run.damaged == 0 {
        let stages: Vec<&ResolvedStage> = run.stages.iter().map(|stage| &*stage.of).collect();
        let brief = Brief {
            version: file.version,
            run: &run,
            stages: serde_json::to_string(&stages).unwrap_or_default(),
        };
        // Without it, the events are read again the next time.
        let _ = document::write_new(&path, &brief);
    }
    Some(run)
}

/// Reads a run with its metrics.
pub fn load(runs: &Path, id: &str) -> Result<Run, Failure> {
    read(runs, id, true)?.ok_or_else(|| {
        Failure::usage(format!("run `{id}` has no events")).hint(format!(
            "it was killed at its start; remove `{}`",
            runs.join(id).display()
        ))
    })
}

/// Reads a run with or without metrics; `None` when it has no events.
pub(super) fn read(runs: &Path, id: &str, metrics: bool) -> Result<Option<Run>, Failure> {
    let dir = runs.join(id);
    let path = dir.join("events.jsonl");
    let failed = |err: std::io::Error| {
        Failure::caused(format!("cannot read `{}`", path.display()), &err)
            .hint(format!("remove the run, whose events are lost: `{}`", dir.display()))
    };
    let file = regular_file::open(&path).map_err(failed)?;
    let alive = is_locked(&file);
    let mut damaged = 0;
    let pipeline = resolved_pipeline(&dir).unwrap_or_else(|_| {
        damaged += 1;
        None
    });
    let mut builder = Builder::new(id, &dir);
    let mut events = BufReader::new(&file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if events.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        // Nearly all lines of a training run are metrics.
        if !metrics && line.starts_with(br#"{"event":"metric""#) {
            continue;
        }
        match Stamped::from_line(&String::from_utf8_lossy(&line)) {
            Some(stamped) => builder.take(&stamped),
            // An event of a later version has an unknown name; a kill truncates the last line.
            None => damaged += u64::from(line.ends_with(b"\n") && is_damaged(&line)),
        }
    }
    let mut run = builder.finish(pipeline);
    if let Some(run) = &mut run {
        run.damaged = damaged;
    }
    if let Some(run) = &mut run
        && run.status == RunStatus::Running
        && !alive
    {
        run.status = RunStatus::Killed;
    }
    Ok(run)
}

/// The `pipeline.json` in the directory of a run; `None` if there is none (yet).
pub fn resolved_pipeline(dir: &Path) -> Result<Option<ResolvedPipeline>, Failure> {
    let path = dir.join("pipeline.json");
    match regular_file::open(&path) {
        Ok(_) => document::read(&path, "")
            .map_err(|_| Failure::machine(format!("`{}` is damaged", path.display()))),
        Err(_) => Ok(None),
    }
}

/// True if a line of an event log does not match its checksum.
fn is_damaged(line: &[u8]) -> bool {
    !checksummed::matches_checksum(line) || serde_json::from_slice::<serde_json::Value>(line).is_err()
}
