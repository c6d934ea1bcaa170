//! Today's rows, held against the history that they follow: what is there twice, missing, moved, copied or of
//! something else.

mod findings;
mod found;
mod rows;
mod rules;
mod values;

pub(super) use self::findings::Today;
use self::found::Found;
use self::rows::{DAYS, DAYS_OF_CHAINS};
use cache::{Artifact, ArtifactDigest, Store};
use datasets::Date;
use runner_engine::Failure;
use serde_json::Value;
use stages_core::dataset::{DataSet, Partition};
use stages_core::{Input, periods};
use std::collections::{BTreeMap, BTreeSet};

/// A stage's new rows, and the history that they follow.
pub(super) struct Followed<'a> {
    pub store: &'a Store,
    /// The stage.
    pub id: &'a str,
    /// The outputs of the stage over its history, and over the new files alone.
    pub history: &'a BTreeMap<String, ArtifactDigest>,
    pub new: &'a BTreeMap<String, ArtifactDigest>,
    /// The day of the decision.
    pub at: Date,
    /// True where the new files have the history, too.
    pub replaces: bool,
}

impl Followed<'_> {
    /// Adds what is found.
    pub(super) fn examine(&self, today: &mut Today) -> Result<(), Failure> {
        for (name, new) in self.new {
            let Some(history) = self.history.get(name) else {
                continue;
            };
            if new == history {
                continue;
            }
            let Ok(artifact) = self.store.artifact(*history) else {
                today.notes.push(format!(
                    "`{}`: its history is in the store no longer, and the new rows were not held against it",
                    self.id
                ));
                continue;
            };
            let open = |digest: ArtifactDigest, artifact: Artifact| -> Result<_, Failure> {
                let set = DataSet::open(&Input {
                    digest,
                    artifact: artifact.clone(),
                })?;
                Ok((artifact, set))
            };
            let history = open(*history, artifact)?;
            self.compare(&history, &open(*new, self.store.artifact(*new)?)?, today)?;
        }
        Ok(())
    }

    fn compare(
        &self,
        (old, history): &(Artifact, DataSet),
        (of_new, new): &(Artifact, DataSet),
        today: &mut Today,
    ) -> Result<(), Failure> {
        for key in ["currency", "multiplier", "unit"] {
            let of = |meta: &Value| said(&meta["facts"][key]).or_else(|| said(&meta[key]));
            let (theirs, ours) = (of(&of_new.meta), of(&old.meta));
            if let (Some(theirs), Some(ours)) = (theirs, ours)
                && theirs != ours
            {
                today.wrong.push((
                    format!(
                        "the {key} of the rows given to `{}` is {theirs}, and that of its history {ours}",
                        self.id
                    ),
                    "give rows of the same market, or state the fact in the stage",
                ));
            }
        }
        // What is the same in both needs no look.
        let known: BTreeSet<(String, &[u8])> = history
            .partitions
            .iter()
            .map(|part| (part.key.name(), &part.blob.blob.as_bytes()[..]))
            .collect();
        let is_other =
            |part: &&Partition| !known.contains(&(part.key.name(), &part.blob.blob.as_bytes()[..]));
        let new: Vec<&Partition> = new.partitions.iter().filter(is_other).collect();
        let first = new.iter().map(|part| part.key.range.from).min().unwrap_or(self.at);
        let back = if old.kind == "option_chain" {
            DAYS_OF_CHAINS
        } else {
            DAYS
        };
        // The last part of each symbol counts, however long ago it is.
        let mut last: BTreeMap<String, Date> = BTreeMap::new();
        let of = |part: &Partition| format!("{:?}", part.key.symbols);
        for part in &history.partitions {
            let to = last.entry(of(part)).or_insert(part.key.range.to);
            *to = part.key.range.to.max(*to);
        }
        let recent = history.partitions.iter().filter(|part| {
            let to = part.key.range.to;
            to >= first.plus(-back) || last.get(&of(part)) == Some(&to)
        });
        let mut columns = Vec::new();
        let history = self.read(recent, &mut columns)?;
        let new = self.read(new.into_iter(), &mut columns)?;
        let close = columns.iter().position(|name| name == "close");
        self.quality(&old.meta, &of_new.meta, today);
        self.contradicted(&of_new.meta, [&history, &new], close, today);
        let found = Found {
            id: self.id,
            columns: &columns,
            calendar: periods::calendar(&old.meta),
            history: &history,
            new: &new,
            at: self.at,
            replaces: self.replaces,
            by_tenor: old.kind == "rates",
        };
        found.add(today);
        Ok(())
    }
}

/// A fact of metadata as text: a value, or one with its origin.
fn said(fact: &Value) -> Option<String> {
    match fact {
        Value::Null => None,
        Value::Object(map) => map.get("value").and_then(said),
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
