//! Drift that begins or ends: the samples of a night's stages `evaluate/drift` beside those of the nights
//! before. Drift that lasts is told once.

use cache::Store;
use runner_engine::StageStatus;
use runner_history::{self as history, Run, StageRun};
use std::collections::BTreeMap;

/// The stage kind that measures drift.
const KIND: &str = "evaluate/drift";

/// The table of samples among its metrics.
const TABLE: &str = "drift.csv";

/// The most earlier runs that are looked at.
const MOST: usize = 200;

/// The state of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Within its limits.
    Ok,
    /// Within its limits, too near to say that drift has ended.
    Near,
    /// Beyond its limits.
    Drifted,
}

/// A stage and one of its samples; without one, the stage itself, which drift may fail.
type Sample = (String, Option<String>);

/// A line for each stage whose samples begin to drift, and for each whose samples do no longer. What was
/// before is known from the runs of earlier nights; a run that is of no night begins anew.
pub(super) fn changes(run: &Run, store: &Store) -> Vec<String> {
    let now = states(run, store);
    if now.is_empty() {
        return Vec::new();
    }
    let earlier = earlier(run);
    let mut read: Vec<BTreeMap<Sample, State>> = Vec::new();
    let mut had_drifted = |sample: &Sample| {
        for (i, run) in earlier.iter().enumerate() {
            if i == read.len() {
                read.push(states(run, store));
            }
            match read[i].get(sample) {
                Some(State::Drifted) => return true,
                Some(State::Ok) => return false,
                Some(State::Near) | None => {}
            }
        }
        false
    };
    let mut lines: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (sample, state) in &now {
        let change = match (state, had_drifted(sample)) {
            (State::Drifted, false) => "begins",
            (State::Ok, true) => "ends",
            _ => continue,
        };
        let (stage, name) = (&sample.0, sample.1.as_deref().unwrap_or("drift that fails it"));
        lines.entry((stage, change)).or_default().push(name);
    }
    let line =
        |((stage, change), samples): (_, Vec<&str>)| format!("{stage}: {change}: {}", samples.join(", "));
    lines.into_iter().map(line).collect()
}

/// The runs of earlier nights, the latest first.
fn earlier(run: &Run) -> Vec<Run> {
    let (Some(night), Some(runs)) = (&run.night, run.dir.parent()) else {
        return Vec::new();
    };
    let (mut earlier, _) = history::last(runs, MOST).unwrap_or_default();
    earlier.retain(|other| {
        other.pipeline == run.pipeline && other.night.as_ref().is_some_and(|other| other < night)
    });
    earlier.sort_by(|a, b| (&b.night, &b.id).cmp(&(&a.night, &a.id)));
    earlier
}

fn states(run: &Run, store: &Store) -> BTreeMap<Sample, State> {
    let mut all = BTreeMap::new();
    for stage in run.stages.iter().filter(|stage| stage.of.kind == KIND) {
        let has_failed = stage.status == Some(StageStatus::Failed);
        let samples = table(stage, store);
        if !has_failed && samples.is_none() {
            continue;
        }
        let state = if has_failed { State::Drifted } else { State::Ok };
        all.insert((stage.of.id.clone(), None), state);
        for (sample, state) in samples.into_iter().flatten() {
            all.insert((stage.of.id.clone(), Some(sample)), state);
        }
    }
    all
}

/// The samples of a stage that succeeded.
fn table(stage: &StageRun, store: &Store) -> Option<Vec<(String, State)>> {
    let artifact = store.artifact(*stage.outputs.get("metrics")?).ok()?;
    let blob = store.blob(artifact.entry(TABLE)?.blob).ok()?;
    let text = std::str::from_utf8(&blob).ok()?;
    let sample = |line: &str| {
        let (name, rest) = line.strip_prefix('"')?.split_once("\",")?;
        let state = match rest.split(',').next()? {
            "warn" | "fail" => State::Drifted,
            "near" => State::Near,
            "ok" => State::Ok,
            _ => return None,
        };
        Some((name.replace("\"\"", "\""), state))
    };
    Some(text.lines().skip(1).filter_map(sample).collect())
}
