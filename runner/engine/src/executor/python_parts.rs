//! The parts that a function is called with, and their memos.
//!
//! | declared | a part | in its key |
//! | --- | --- | --- |
//! | `by="symbol"` alone | a symbol | its rows |
//! | `by="symbol"` with `lookback` or `state`, `by="partition"` | a partition | the partition, the rows of the lookback, the state |

use super::command_run::Run;
use cache::{Artifact, BlobDigest, BlobRef, MemoKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::row_digest::SymbolRows;
use stages_core::{StageError, memo_key};
use std::collections::BTreeMap;

const NAME: &str = "python stage v2";

/// The name of a state in memo keys.
pub(super) const STATE: &str = "state";

/// The name of an output in memo keys.
pub(super) fn output_name(name: &str) -> String {
    format!("output {name}")
}

/// One call has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Symbol,
    Partition,
}

/// The declaration of a function that is called by parts, as the driver reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Way {
    /// The input that is cut into parts.
    of: String,
    by: By,
    /// The number of rows of a symbol that are given before those of the partition.
    lookback: Option<usize>,
    /// True if a state is carried from one part to the next.
    pub state: bool,
}

/// The driver's report.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reported {
    #[serde(flatten)]
    pub way: Way,
    /// False if a check found nothing to compare yet.
    pub checked: bool,
}

/// The part of the input that a call is given.
#[derive(Debug)]
pub(super) struct Part {
    /// The name of its result.
    pub name: String,
    /// The rows of the part.
    rows: BlobDigest,
    /// The rows of the lookback.
    before: Option<BlobDigest>,
}

/// The cached results of a part.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub outputs: BTreeMap<String, BlobRef>,
    pub state: Option<BlobRef>,
}

/// The parts of a function, and their cached results.
pub(super) struct Cached {
    pub way: Way,
    pub is_checked: bool,
    pub parts: Vec<Part>,
    /// For each part, its results if they are cached.
    pub known: Vec<Option<Known>>,
}

impl Way {
    fn key(run: &Run<'_>) -> MemoKey {
        memo_key(NAME, &[run.program.code.as_bytes(), b"way"])
    }

    /// Stores the way in which the code is called.
    pub(super) fn store(self, run: &Run<'_>, checked: bool) -> Result<(), StageError> {
        let reported = json!(Reported { way: self, checked });
        let value = run.store.put(reported.to_string().as_bytes())?;
        run.store.put_memo(Self::key(run), value)?;
        Ok(())
    }
}

impl Part {
    /// The memo key of one output, or of the state, for this part. `state` is the state that it begins with.
    pub(super) fn key(&self, run: &Run<'_>, way: &Way, state: Option<BlobDigest>, what: &str) -> MemoKey {
        let others: BTreeMap<&str, Vec<String>> = run
            .inputs
            .iter()
            .filter(|(port, _)| **port != way.of)
            .map(|(port, inputs)| {
                let digests = inputs.iter().map(|input| input.digest.to_hex());
                (port.as_str(), digests.collect())
            })
            .collect();
        let others = json!(others).to_string();
        let hex = |digest: Option<BlobDigest>| digest.map(|digest| digest.to_hex()).unwrap_or_default();
        memo_key(
            NAME,
            &[
                run.program.code.as_bytes(),
                b"part",
                others.as_bytes(),
                way.of.as_bytes(),
                self.name.as_bytes(),
                self.rows.as_bytes(),
                hex(self.before).as_bytes(),
                hex(state).as_bytes(),
                what.as_bytes(),
            ],
        )
    }
}

/// The parts of the input, in the order of the calls, as `driver_parts.py` derives them.
pub(super) fn parts(run: &Run<'_>, way: &Way) -> Result<Vec<Part>, StageError> {
    let artifact = partitioned(run, way)?;
    let mut entries: Vec<&cache::Entry> = artifact.entries.iter().collect();
    // By date, then by symbol.
    entries.sort_by_key(|entry| {
        let name = entry.path.strip_suffix(".parquet").unwrap_or(&entry.path);
        (name.rsplit_once('/').map_or(name, |(_, range)| range), name)
    });
    let blobs: Vec<BlobDigest> = entries.iter().map(|entry| entry.blob).collect();
    if way.by == By::Symbol && way.lookback.is_none() && !way.state {
        let rows = SymbolRows::read(run.store, &blobs)?;
        let part = |(symbol, rows): (&str, BlobDigest)| Part {
            name: format!("{symbol}.parquet"),
            rows,
            before: None,
        };
        return Ok(rows.by_symbol()?.into_iter().map(part).collect());
    }
    let before = match way.lookback.filter(|lookback| *lookback > 0) {
        Some(lookback) => SymbolRows::read(run.store, &blobs)?.before(lookback)?,
        None => Vec::new(),
    };
    let part = |(i, entry): (usize, &&cache::Entry)| Part {
        name: entry.path.clone(),
        rows: entry.blob,
        before: before.get(i).copied(),
    };
    Ok(entries.iter().enumerate().map(part).collect())
}

/// The artifact by whose parts the function is called.
fn partitioned<'r>(run: &'r Run<'_>, way: &Way) -> Result<&'r Artifact, StageError> {
    let found = run.inputs.get(&way.of).and_then(|inputs| inputs.first());
    found
        .map(|input| &input.artifact)
        .ok_or_else(|| StageError::new(format!("the stage has no input `{}`", way.of)))
}

/// The cached parts, if an earlier run of the same code reported that the function is called by parts.
pub(super) fn cached(run: &Run<'_>) -> Result<Option<Cached>, StageError> {
    let store = run.store;
    let Some(way) = store.memo(Way::key(run))? else {
        return Ok(None);
    };
    let Ok(Reported { way, checked }) = serde_json::from_slice(&store.blob(way.blob)?) else {
        return Ok(None);
    };
    if partitioned(run, &way).is_err() {
        return Ok(None);
    }
    let parts = parts(run, &way)?;
    let mut known: Vec<Option<Known>> = vec![None; parts.len()];
    let mut before: Option<BlobDigest> = None;
    for (i, part) in parts.iter().enumerate() {
        let memo = |what: &str| store.memo(part.key(run, &way, before, what));
        let mut outputs = BTreeMap::new();
        for name in run.command.types.keys() {
            if let Some(blob) = memo(&output_name(name))? {
                outputs.insert(name.clone(), blob);
            }
        }
        let state = match way.state {
            true => memo(STATE)?,
            false => None,
        };
        let is_whole = outputs.len() == run.command.types.len() && state.is_some() == way.state;
        if is_whole {
            before = state.map(|blob| blob.blob);
            known[i] = Some(Known { outputs, state });
        } else if way.state {
            // The next part has no key without the state that it begins with.
            break;
        }
    }
    Ok(Some(Cached {
        way,
        is_checked: checked,
        parts,
        known,
    }))
}
