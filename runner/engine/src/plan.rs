//! The plan of a run, computed without running anything.

use crate::cost::{self, CostWarning};
use crate::executor::{JobStore, inputs};
use crate::explain::{self, Nearest};
use crate::key::{Recipe, leaves};
use crate::options::Options;
use crate::placement;
use crate::prepare::{self, Prepared, prepare_with};
use crate::remote_sources::{self, ToFetch};
use cache::{ActionKey, ActionRecord, ArtifactDigest, Hit, Store};
use runner_pipeline::{Node, Pipeline, Work};
use serde::{Deserialize, Serialize};
use stages_core::error::Cause;
use stages_core::event::Silent;
use stages_core::{Given, Share, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The plan of one stage.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Planned {
    /// The stage's index in the pipeline.
    #[serde(skip)]
    pub node: usize,
    /// The stage's id.
    pub stage: String,
    /// The predicted outcome.
    pub prediction: Prediction,
    /// The reason for the prediction.
    pub reason: String,
    /// The action key, if the stage's inputs are known.
    pub key: Option<ActionKey>,
    /// The share of the work that is already in the store (partitions, columns, steps), for a stage that
    /// runs.
    pub share: Option<Share>,
    /// The duration of the stage's last computation, in seconds.
    pub took_seconds: Option<f64>,
    /// The expected duration in seconds: the last duration, scaled by the work units of the stage's kind,
    /// less the share that is cached. Zero for a cached stage.
    pub expected_seconds: Option<f64>,
    /// The total size of the stage's inputs that are not in the local store, in bytes.
    pub fetch_bytes: u64,
    /// The total size of the stage's outputs when it last ran, in bytes, for a stage that runs.
    pub store_bytes: Option<u64>,
    /// The most similar earlier action, for a stage that is not cached.
    pub nearest: Option<Nearest>,
    /// The last run of the stage.
    pub last_run: Option<String>,
    /// The job that the stage requests of another machine, if it runs on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<PlannedJob>,
    /// The warning that the stage is expected to cost much more than usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<CostWarning>,
    /// The number of the stage's source files that are hashed in every run, because their file system has no
    /// reliable modification times.
    pub always_hashed: usize,
}

/// The job of a stage on another machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlannedJob {
    /// The executor's name.
    pub executor: String,
    /// The requested number of threads.
    pub threads: usize,
    /// The requested memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The requested number of GPUs.
    #[serde(skip_serializing_if = "stages_core::is_default")]
    pub gpus: u32,
    /// The requested run time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_seconds: Option<u64>,
    /// The total size of the known inputs that the remote store does not hold yet, in bytes; 0 where the
    /// machines share the store.
    pub move_bytes: u64,
}

/// The predicted outcome of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prediction {
    /// The stage's result is in the store.
    Cached,
    /// The stage runs.
    #[default]
    Runs,
    /// One of the stage's needs runs; the stage is cached if that need reproduces the same bytes as the last
    /// time.
    Depends,
}

impl Prediction {
    /// The prediction's name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Runs => "would run",
            Self::Depends => "depends",
        }
    }
}

/// Plans the chosen nodes.
///
/// # Errors
/// If a source file of a stage, or the store, cannot be read.
pub fn plan(
    pipeline: &Pipeline,
    chosen: &[usize],
    store: &Store,
    options: &Options,
) -> Result<Vec<Planned>, StageError> {
    let mut hits: BTreeMap<usize, Hit> = BTreeMap::new();
    let mut planned = Vec::new();
    for &i in chosen {
        let (stage, hit) = stage(pipeline, i, &hits, store, options)?;
        hits.extend(hit.map(|hit| (i, hit)));
        planned.push(stage);
    }
    Ok(planned)
}

fn stage(
    pipeline: &Pipeline,
    i: usize,
    hits: &BTreeMap<usize, Hit>,
    store: &Store,
    options: &Options,
) -> Result<(Planned, Option<Hit>), StageError> {
    let node = &pipeline.nodes[i];
    let past = options.past.all(&node.id);
    let last = past.first();
    let record: Option<ActionRecord> = match last {
        Some((_, key)) => store.recorded(*key)?,
        None => None,
    };
    let old = record.as_ref().and_then(|record| Recipe::from_json(&record.recipe));
    let mut inputs: BTreeMap<String, Vec<ArtifactDigest>> = BTreeMap::new();
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for (port, refs) in &node.needs {
        let found: Option<Vec<_>> = refs
            .iter()
            .map(|need| hits.get(&need.node)?.outputs.get(&need.output).copied())
            .collect();
        if let Some(digests) = found {
            inputs.insert(port.clone(), digests);
            continue;
        }
        // For the comparison with earlier actions, an unknown input takes its last digest.
        if let Some(digests) = old.as_ref().and_then(|old| old.inputs.get(port)) {
            inputs.insert(port.clone(), digests.clone());
        }
        let missing = refs.iter().filter(|need| !hits.contains_key(&need.node));
        unknown.extend(missing.map(|need| pipeline.nodes[need.node].id.as_str()));
    }
    node.add_earlier(&mut inputs);
    let sources = prepare::sources(node)?;
    if let Some(to_fetch) = remote_sources::to_fetch(&sources, store)? {
        return Ok((fetches(i, node, &to_fetch, last), None));
    }
    let prepared = prepare_with(node, sources, inputs, store, options.verify_inputs, &Silent)?;
    let forced = options.force.contains(&i);
    let known = unknown.is_empty();
    let hit = if known && !forced {
        store.hit(prepared.key)?
    } else {
        None
    };
    let nearest = match hit {
        Some(_) => None,
        None => explain::nearest(store, &past, &prepared, fields(node, &prepared)),
    };
    let (prediction, reason) = if let Some(hit) = &hit {
        let found = store.recorded(prepared.key)?;
        let run = found.as_ref().and_then(|found| found.info.get("run")?.as_str());
        let mut reason =
            run.map_or_else(|| "in the store".to_owned(), |run| format!("computed in run {run}"));
        if !hit.blobs().all(|blob| store.has_here(blob)) {
            reason.push_str(", in the remote");
        }
        (Prediction::Cached, reason)
    } else if forced {
        (Prediction::Runs, "forced".to_owned())
    } else {
        let same = past.iter().any(|(_, key)| *key == prepared.key);
        let why = || match &nearest {
            Some(nearest) => against(nearest, last),
            None => explain::reason(store, last, &prepared),
        };
        match known {
            true if same => (Prediction::Runs, "its result is no longer in the store".to_owned()),
            true => (Prediction::Runs, why()),
            false if same => (Prediction::Depends, waits(&unknown)),
            false => (Prediction::Runs, format!("{}; {}", why(), waits(&unknown))),
        }
    };
    let share = match (&hit, &node.work) {
        (None, Work::Kind { .. }) if known && !forced => cached_share(node, &prepared, store)?,
        _ => None,
    };
    let recorded = record.as_ref().map(|record| record.seconds);
    let took = hit.as_ref().map(|hit| hit.seconds).or(recorded);
    let left = left_of(share.as_ref());
    let work = left * old.as_ref().and_then(|old| cost::work_ratio(node, old)).unwrap_or(1.0);
    let warning = match hit {
        Some(_) => None,
        None => cost::warning(node, old.as_ref(), recorded, left),
    };
    let runs = prediction != Prediction::Cached;
    let needs: BTreeSet<usize> = node.needs.values().flatten().map(|need| need.node).collect();
    let inputs = needs.iter().filter_map(|need| hits.get(need)).flat_map(Hit::blobs);
    let before = match last {
        Some((_, key)) if runs => store.hit(*key)?,
        _ => None,
    };
    let expected = took.map(|took| took * work);
    let job = match runs {
        true => job(node, &prepared, hits, store, options, expected)?,
        false => None,
    };
    let planned = Planned {
        job,
        node: i,
        stage: node.id.clone(),
        prediction,
        reason,
        key: known.then_some(prepared.key),
        share,
        took_seconds: took,
        expected_seconds: if runs { expected } else { Some(0.0) },
        fetch_bytes: if runs {
            inputs.filter(|blob| !store.has_here(*blob)).map(|blob| blob.size).sum()
        } else {
            0
        },
        store_bytes: before.map(|hit| hit.blobs().map(|blob| blob.size).sum()),
        nearest,
        last_run: last.map(|(run, _)| run.clone()),
        warning,
        always_hashed: (prepared.sources.iter())
            .filter(|source| source.remote.is_none() && !cache::has_reliable_times(&source.path))
            .count(),
    };
    Ok((planned, hit))
}

/// The job of a stage that would run on another machine.
fn job(
    node: &Node,
    prepared: &Prepared,
    hits: &BTreeMap<usize, Hit>,
    store: &Store,
    options: &Options,
    expected: Option<f64>,
) -> Result<Option<PlannedJob>, StageError> {
    let requested = placement::requested(node, options.executor.as_deref());
    let Some((name, elsewhere)) = requested.and_then(|name| options.elsewhere.get_key_value(name)) else {
        return Ok(None);
    };
    if placement::stays(node, prepared, elsewhere, store, || expected).is_some() {
        return Ok(None);
    }
    let needs: BTreeSet<usize> = node.needs.values().flatten().map(|need| need.node).collect();
    let mut blobs: Vec<_> = needs
        .iter()
        .filter_map(|need| hits.get(need))
        .flat_map(Hit::blobs)
        .collect();
    blobs.sort_by_key(|blob| blob.blob);
    blobs.dedup();
    let move_bytes = match (&elsewhere.store, store.upstream()) {
        (JobStore::Node { .. }, Some(upstream)) => {
            let held = upstream.contains(&blobs)?;
            let left = blobs.iter().zip(held).filter(|(_, held)| !held);
            left.map(|(blob, _)| blob.size).sum()
        }
        _ => 0,
    };
    Ok(Some(PlannedJob {
        executor: name.clone(),
        threads: node.resources.threads.unwrap_or(elsewhere.threads),
        memory: node.resources.memory.or(elsewhere.memory),
        gpus: node.resources.gpus,
        time_seconds: node.resources.time.or(elsewhere.time).map(|time| time.as_secs()),
        move_bytes,
    }))
}

/// The plan of a stage whose key is not known before its sources are fetched.
fn fetches(i: usize, node: &Node, to_fetch: &ToFetch, last: Option<&(String, ActionKey)>) -> Planned {
    let more = match to_fetch.count {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Planned {
        node: i,
        stage: node.id.clone(),
        reason: format!("fetches {}{more} first", to_fetch.first),
        fetch_bytes: to_fetch.bytes,
        last_run: last.map(|(run, _)| run.clone()),
        ..Planned::default()
    }
}

/// The share of a stage's work that is in the store, if its kind keeps parts.
pub(crate) fn cached_share(
    node: &Node,
    prepared: &Prepared,
    store: &Store,
) -> Result<Option<Share>, StageError> {
    let Work::Kind { kind, config } = &node.work else {
        return Ok(None);
    };
    match inputs(&prepared.recipe.inputs, store) {
        // The producer would rerun first; the cached share of this stage is unknown until then.
        Err(err) if err.cause == Cause::DamagedInput => Ok(None),
        inputs => kind.cached_share(
            config,
            &Given {
                store,
                inputs: &inputs?,
                sources: &prepared.sources,
            },
        ),
    }
}

/// The share of a stage's work that is not in the store, from 0 to 1.
pub(crate) fn left_of(share: Option<&Share>) -> f64 {
    let share = share.filter(|share| share.total > 0);
    share.map_or(1.0, |share| 1.0 - share.cached as f64 / share.total as f64)
}

/// The differences from the nearest earlier action, with that action's run if it is not the last one.
fn against(nearest: &Nearest, last: Option<&(String, ActionKey)>) -> String {
    let words = explain::in_words(&nearest.differences);
    match last {
        Some((_, key)) if *key == nearest.key => words,
        _ => format!("{words} (against run {}, the nearest)", nearest.run),
    }
}

fn waits(unknown: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = unknown.iter().copied().collect();
    match names.as_slice() {
        [first, second, third, rest @ ..] if rest.len() > 1 => {
            format!("waits for {first}, {second}, {third} and {} more", rest.len())
        }
        few => format!("waits for {}", few.join(", ")),
    }
}

/// The number of fields in a key: kind and version, the whole configuration, inputs and files.
fn fields(node: &Node, prepared: &Prepared) -> usize {
    let config = match &node.work {
        Work::Kind { config, .. } => leaves(config).len(),
        Work::Command(_) => leaves(&prepared.recipe.config.value()).len(),
    };
    2 + config + prepared.recipe.inputs.len() + prepared.recipe.sources.len() + prepared.recipe.tools.len()
}
