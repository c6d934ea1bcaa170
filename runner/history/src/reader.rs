//! Reads the history of runs.

use super::builder::Builder;
use super::{ResolvedPipeline, Run};
use rayon::prelude::*;
use runner_engine::{Failure, RunStatus, Stamped};
use std::fs::{File, TryLockError};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;

/// The ids of all runs, oldest first.
///
/// # Errors
/// When the folder cannot be read. It need not exist.
pub fn ids(runs: &Path) -> Result<Vec<String>, Failure> {
    let failed = |err: std::io::Error| Failure::caused(format!("cannot read `{}`", runs.display()), &err);
    let entries = match std::fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(failed(err)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.path().join("events.jsonl").is_file() {
            ids.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    ids.sort();
    Ok(ids)
}

/// All runs, oldest first, without their metrics. Runs that cannot be read are left out.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(runs: &Path) -> Result<Vec<Run>, Failure> {
    Ok(survey(runs)?.0)
}

/// All runs, oldest first, without their metrics; and the ids of those that cannot be read.
///
/// # Errors
/// When the folder cannot be read.
pub fn survey(runs: &Path) -> Result<(Vec<Run>, Vec<String>), Failure> {
    let ids = ids(runs)?;
    let read: Vec<Option<Run>> = ids.par_iter().map(|id| brief(runs, id)).collect();
    let broken = ids.into_iter().zip(&read).filter(|(_, run)| run.is_none());
    let broken = broken.map(|(id, _)| id).collect();
    Ok((read.into_iter().flatten().collect(), broken))
}

/// A run without its metrics; `None` when it cannot be read.
pub fn brief(runs: &Path, id: &str) -> Option<Run> {
    read(runs, id, false).ok().flatten()
}

/// A run with its metrics.
///
/// # Errors
/// When it is not there, or its events cannot be read.
pub fn load(runs: &Path, id: &str) -> Result<Run, Failure> {
    read(runs, id, true)?.ok_or_else(|| {
        Failure::usage(format!("run `{id}` has no events")).hint(format!(
            "it was killed as it began; remove `{}`",
            runs.join(id).display()
        ))
    })
}

/// A run, with its metrics or without; `None` when it has no events.
pub(super) fn read(runs: &Path, id: &str, metrics: bool) -> Result<Option<Run>, Failure> {
    let dir = runs.join(id);
    let path = dir.join("events.jsonl");
    let failed = |err: std::io::Error| Failure::caused(format!("cannot read `{}`", path.display()), &err);
    let file = File::open(&path).map_err(failed)?;
    let alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let pipeline: Option<ResolvedPipeline> = std::fs::read(dir.join("pipeline.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut builder = Builder::new(id, &dir);
    if let Some(pipeline) = pipeline {
        builder.pipeline(pipeline.into());
    }
    let mut events = BufReader::new(&file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if events.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        // Metrics are nearly all of a training run's lines.
        if !metrics && line.starts_with(br#"{"event":"metric""#) {
            continue;
        }
        if let Some(stamped) = Stamped::from_line(&String::from_utf8_lossy(&line)) {
            builder.take(&stamped);
        }
    }
    let mut run = builder.finish();
    if let Some(run) = &mut run
        && run.status == RunStatus::Running
        && !alive
    {
        run.status = RunStatus::Killed;
    }
    Ok(run)
}
