//! Comparison of an action with earlier ones: the differences, and the most similar earlier action.

use crate::key::{Difference, Recipe};
use crate::prepare::Prepared;
use cache::{ActionKey, Artifact, ArtifactDigest, BlobDigest, Store};
use serde::Serialize;
use std::collections::BTreeMap;

/// The earlier action of a stage that differs from the current action in the fewest fields.
#[derive(Clone, Debug, Serialize)]
pub struct Nearest {
    /// The newest run that had this action.
    pub run: String,
    /// The earlier action's key.
    pub key: ActionKey,
    /// The total number of fields: kind, version, configuration, inputs and files.
    pub fields: usize,
    /// The fields that differ, the most significant first.
    pub differences: Vec<Difference>,
    /// For each input that differs, the parts in which it differs.
    pub parts: Vec<Parts>,
}

/// The parts in which an input differs from the same input of an earlier action: partitions of a data set, or
/// files of any other artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// The input: `needs.chain`.
    pub input: String,
    /// The current number of parts.
    pub total: usize,
    /// The parts that differ, by path, each `new`, `gone` or `changed`.
    pub changed: Vec<(String, &'static str)>,
    /// True if the artifact's metadata differs, such as its schema or its quality.
    pub about: bool,
}

/// Finds the nearest of the earlier actions, which are given newest first; `None` if no action has a record
/// left.
pub(crate) fn nearest(
    store: &Store,
    past: &[(String, ActionKey)],
    prepared: &Prepared,
    fields: usize,
) -> Option<Nearest> {
    let candidates = past
        .iter()
        .filter(|(_, key)| *key != prepared.key)
        .filter_map(|(run, key)| {
            let record = store.recorded(*key).ok()??;
            let recipe = Recipe::from_json(&record.recipe)?;
            let differences = prepared.recipe.differences(&recipe);
            Some((run, *key, recipe, differences))
        });
    let (run, key, recipe, differences) = candidates.min_by_key(|(.., differences)| differences.len())?;
    let parts = prepared
        .recipe
        .inputs
        .iter()
        .flat_map(|(port, new)| {
            let old = recipe.inputs.get(port).map(Vec::as_slice).unwrap_or_default();
            new.iter().zip(old).map(move |(new, old)| (port, *new, *old))
        })
        .filter(|(_, new, old)| new != old)
        .filter_map(|(port, new, old)| parts(store, port, new, old))
        .collect();
    Some(Nearest {
        run: run.clone(),
        key,
        fields,
        differences,
        parts,
    })
}

fn parts(store: &Store, port: &str, new: ArtifactDigest, old: ArtifactDigest) -> Option<Parts> {
    let (new, old) = (store.artifact(new).ok()?, store.artifact(old).ok()?);
    let by_path = |artifact: &Artifact| -> BTreeMap<String, BlobDigest> {
        let entries = artifact.entries.iter();
        entries.map(|entry| (entry.path.clone(), entry.blob)).collect()
    };
    let (now, then) = (by_path(&new), by_path(&old));
    let mut changed: Vec<(String, &'static str)> = now
        .iter()
        .filter_map(|(path, blob)| match then.get(path) {
            None => Some((path.clone(), "new")),
            Some(before) if before != blob => Some((path.clone(), "changed")),
            Some(_) => None,
        })
        .collect();
    changed.extend(
        then.keys()
            .filter(|path| !now.contains_key(*path))
            .map(|path| (path.clone(), "gone")),
    );
    changed.sort();
    Some(Parts {
        input: format!("needs.{port}"),
        total: now.len(),
        changed,
        about: new.meta != old.meta,
    })
}

/// The reason why an action is not cached, relative to the stage's last action.
pub(crate) fn reason(store: &Store, last: Option<&(String, ActionKey)>, prepared: &Prepared) -> String {
    let Some((run, key)) = last else {
        return "never ran before".to_owned();
    };
    if *key == prepared.key {
        return "its result is no longer in the store".to_owned();
    }
    let old = store
        .recorded(*key)
        .ok()
        .flatten()
        .and_then(|record| Recipe::from_json(&record.recipe));
    match old {
        Some(old) => in_words(&prepared.recipe.differences(&old)),
        None => format!("differs from run {run}, whose record is no longer in the store"),
    }
}

/// The first differences, on one line.
pub(crate) fn in_words(differences: &[Difference]) -> String {
    let shown: Vec<String> = differences.iter().take(3).map(ToString::to_string).collect();
    let more = differences.len().saturating_sub(3);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &more
}
