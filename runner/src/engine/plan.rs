//! What a run would do, found without running anything.

use super::coordinator::reason;
use super::{Options, Prepared, prepare};
use crate::key::{Difference, Recipe};
use crate::pipeline::Pipeline;
use cache::{ActionKey, ActionRecord, ArtifactDigest, Store};
use serde::Serialize;
use stages_core::StageError;
use std::collections::BTreeMap;

/// What a run would do with one stage.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Its index in the pipeline.
    #[serde(skip)]
    pub node: usize,
    /// Its id.
    pub stage: String,
    /// What would happen.
    pub prediction: Prediction,
    /// Why.
    pub reason: String,
    /// Its action key, where its inputs are known.
    pub key: Option<ActionKey>,
    /// How long it took the last time it was computed, in seconds.
    pub expected_seconds: Option<f64>,
    /// What differs from the last time.
    pub differences: Vec<Difference>,
    /// The run of the last time.
    pub last_run: Option<String>,
}

/// What would happen with a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Prediction {
    /// Its result is in the store.
    Cached,
    /// It would run.
    Runs,
    /// Something that it needs would run; it is cached if that gives the same bytes as the last time.
    Depends,
}

impl Prediction {
    /// For people.
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
/// When a file that a stage reads cannot be read, or the store cannot.
pub fn plan(
    pipeline: &Pipeline,
    chosen: &[usize],
    store: &Store,
    options: &Options,
) -> Result<Vec<Planned>, StageError> {
    let mut outputs: BTreeMap<usize, BTreeMap<String, ArtifactDigest>> = BTreeMap::new();
    let mut planned = Vec::new();
    for &i in chosen {
        let node = &pipeline.nodes[i];
        let last = options.last.get(&node.id);
        let record: Option<ActionRecord> = match last {
            Some((_, key)) => store.action(*key)?,
            None => None,
        };
        let old = record.as_ref().and_then(|record| Recipe::from_json(&record.recipe));
        let mut inputs: BTreeMap<String, Vec<ArtifactDigest>> = BTreeMap::new();
        let mut unknown: Vec<&str> = Vec::new();
        for (port, refs) in &node.needs {
            let found: Option<Vec<_>> = refs
                .iter()
                .map(|need| {
                    outputs
                        .get(&need.node)
                        .and_then(|outputs| outputs.get(&need.output))
                        .copied()
                })
                .collect();
            match found {
                Some(digests) => {
                    inputs.insert(port.clone(), digests);
                }
                None => {
                    // For the comparison with the last time, an unknown input stands for itself.
                    if let Some(digests) = old.as_ref().and_then(|old| old.inputs.get(port)) {
                        inputs.insert(port.clone(), digests.clone());
                    }
                    let missing = refs.iter().filter(|need| !outputs.contains_key(&need.node));
                    unknown.extend(missing.map(|need| pipeline.nodes[need.node].id.as_str()));
                }
            }
        }
        node.add_earlier(&mut inputs);
        unknown.sort_unstable();
        unknown.dedup();
        let prepared: Prepared = prepare(pipeline, node, inputs, store)?;
        let differences = old
            .as_ref()
            .map(|old| prepared.recipe.differences(old))
            .unwrap_or_default();
        let forced = options.force.contains(&i);
        let known = unknown.is_empty();
        let found = if known && !forced {
            store.action(prepared.key)?
        } else {
            None
        };
        let waits = match unknown.as_slice() {
            [first, second, third, rest @ ..] if rest.len() > 1 => {
                format!("waits for {first}, {second}, {third} and {} more", rest.len())
            }
            few => format!("waits for {}", few.join(", ")),
        };
        let (prediction, reason) = match &found {
            Some(found) => {
                let when = found.info.get("run").and_then(|run| run.as_str());
                (
                    Prediction::Cached,
                    when.map_or_else(|| "in the store".to_owned(), |run| format!("computed in run {run}")),
                )
            }
            None if forced => (Prediction::Runs, "forced".to_owned()),
            None if known => (Prediction::Runs, reason(store, last, &prepared)),
            None if last.is_none() => (Prediction::Runs, format!("never ran before; {waits}")),
            None if !differences.is_empty() => {
                (Prediction::Runs, format!("{}; {waits}", reason(store, last, &prepared)))
            }
            None => (Prediction::Depends, waits),
        };
        if let Some(found) = &found {
            outputs.insert(i, found.outputs.clone());
        }
        planned.push(Planned {
            node: i,
            stage: node.id.clone(),
            prediction,
            reason,
            key: known.then_some(prepared.key),
            expected_seconds: found.as_ref().or(record.as_ref()).map(|record| record.seconds),
            differences,
            last_run: last.map(|(run, _)| run.clone()),
        });
    }
    Ok(planned)
}
