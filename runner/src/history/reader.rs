//! Reads the history of runs.

use super::{Metric, ResolvedPipeline, Run, StageRun};
use crate::engine::{Event, RunStatus, StageStatus, Stamped};
use crate::error::Failure;
use cache::ActionKey;
use std::collections::{BTreeMap, BTreeSet};
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
    Ok(ids(runs)?
        .iter()
        .filter_map(|id| read(runs, id, false).ok().flatten())
        .collect())
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

/// The run and the action key of the last time that each of `stages` ended well, in the runs of that pipeline; at most the
/// last hundred runs are looked at, leaving out the run `except`.
///
/// # Errors
/// When the history cannot be read.
pub fn last_actions<'a>(
    runs: &Path,
    pipeline: &str,
    stages: impl IntoIterator<Item = &'a str>,
    except: Option<&str>,
) -> Result<BTreeMap<String, (String, ActionKey)>, Failure> {
    let mut wanted: BTreeSet<&str> = stages.into_iter().collect();
    let mut found = BTreeMap::new();
    for id in ids(runs)?.into_iter().rev().take(100) {
        if wanted.is_empty() {
            break;
        }
        if except == Some(id.as_str()) {
            continue;
        }
        let Ok(Some(run)) = read(runs, &id, false) else {
            continue;
        };
        if run.pipeline != pipeline {
            continue;
        }
        for stage in &run.stages {
            let ended_well = matches!(stage.status, Some(StageStatus::Cached | StageStatus::Ran));
            if let Some(key) = stage.key.filter(|_| ended_well)
                && wanted.remove(stage.id.as_str())
            {
                found.insert(stage.id.clone(), (id.clone(), key));
            }
        }
    }
    Ok(found)
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
    let mut run: Option<Run> = None;
    for line in BufReader::new(&file).split(b'\n') {
        let line = line.map_err(failed)?;
        let line = String::from_utf8_lossy(&line);
        // Metrics are nearly all of a training run's lines.
        if !metrics && line.starts_with(r#"{"event":"metric""#) {
            continue;
        }
        let Some(stamped) = Stamped::from_line(&line) else {
            continue;
        };
        match &mut run {
            Some(run) => apply(run, stamped),
            None => run = begin(id, &dir, pipeline.as_ref(), stamped),
        }
    }
    if let Some(run) = &mut run
        && run.status == RunStatus::Running
        && !alive
    {
        run.status = RunStatus::Killed;
    }
    Ok(run)
}

fn begin(id: &str, dir: &Path, resolved: Option<&ResolvedPipeline>, stamped: Stamped) -> Option<Run> {
    let Event::RunStarted {
        pipeline,
        file,
        params,
        stages,
        program,
        ..
    } = stamped.event
    else {
        return None;
    };
    let stages = stages
        .into_iter()
        .map(|id| {
            let known = resolved.and_then(|pipeline| pipeline.stages.iter().find(|stage| stage.id == id));
            StageRun {
                stage: known.map_or_else(|| id.clone(), |stage| stage.stage.clone()),
                point: known.map(|stage| stage.point.clone()).unwrap_or_default(),
                kind: known.map(|stage| stage.kind.clone()).unwrap_or_default(),
                version: known.map(|stage| stage.version).unwrap_or_default(),
                config: known.map(|stage| stage.config.clone()).unwrap_or_default(),
                needs: known.map(|stage| stage.needs.clone()).unwrap_or_default(),
                types: known.map(|stage| stage.outputs.clone()).unwrap_or_default(),
                id,
                key: None,
                status: None,
                started: false,
                reason: None,
                seconds: 0.0,
                computed_seconds: None,
                peak_memory: None,
                outputs: Default::default(),
                log: None,
                error: None,
                hint: None,
                memo: None,
                doing: None,
                metrics: Default::default(),
            }
        })
        .collect();
    Some(Run {
        id: id.to_owned(),
        dir: dir.to_owned(),
        pipeline,
        file,
        params,
        program,
        status: RunStatus::Running,
        started: stamped.time,
        seconds: 0.0,
        stages,
    })
}

fn apply(run: &mut Run, stamped: Stamped) {
    let elapsed = (stamped.time - run.started).num_milliseconds() as f64 / 1e3;
    run.seconds = run.seconds.max(elapsed);
    fn find<'r>(run: &'r mut Run, name: &str) -> Option<&'r mut StageRun> {
        run.stages.iter_mut().find(|stage| stage.id == name)
    }
    match stamped.event {
        Event::RunStarted { .. } => {}
        Event::StageStarted { stage, key, reason, .. } => {
            if let Some(stage) = find(run, &stage) {
                stage.key = Some(key);
                stage.started = true;
                stage.reason = Some(reason);
                stage.status = None;
                stage.metrics.clear();
            }
        }
        Event::Progress { stage, message, .. } => {
            if let Some(stage) = find(run, &stage) {
                stage.doing = Some(message);
            }
        }
        Event::Metric {
            stage,
            name,
            step,
            value,
        } => {
            if let Some(stage) = find(run, &stage) {
                stage.metrics.entry(name).or_default().push(Metric {
                    step,
                    value,
                    seconds: elapsed,
                });
            }
        }
        Event::Memo { stage, hits, total } => {
            if let Some(stage) = find(run, &stage) {
                stage.memo = Some((hits, total));
            }
        }
        Event::StageFinished {
            stage,
            key,
            status,
            seconds,
            outputs,
            computed_seconds,
            peak_memory,
            log,
            error,
            hint,
        } => {
            if let Some(stage) = find(run, &stage) {
                stage.key = key.or(stage.key);
                stage.status = Some(status);
                stage.seconds = seconds;
                stage.outputs = outputs;
                stage.computed_seconds = computed_seconds;
                stage.peak_memory = peak_memory;
                stage.log = log;
                stage.error = error;
                stage.hint = hint;
            }
        }
        Event::RunFinished { status, seconds, .. } => {
            run.status = status;
            run.seconds = seconds;
        }
        Event::Log { .. } | Event::StageWaiting { .. } | Event::StageRetried { .. } | Event::StageHealing { .. } => {}
    }
}
