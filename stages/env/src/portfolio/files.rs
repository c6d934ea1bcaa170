//! The files that the tables of all markets have in common.

use crate::env_artifact::Files;
use crate::ipc;
use crate::parts;
use crate::spec::{EnvSpec, Normalisation};
use crate::split::Splits;
use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// Shows observations in another normalisation than their own, where one is given and they have one.
pub(crate) fn normalise_as(spec: &mut EnvSpec, other: Option<&Normalisation>) {
    if let (Some(other), Some(own)) = (other, &mut spec.normalisation) {
        *own = other.clone();
    }
}

/// The files of parts, in order.
pub(crate) fn part_batches(
    file: impl Files,
    table: &str,
    parts: &[String],
) -> Result<Vec<RecordBatch>, StageError> {
    let read = |part: &String| {
        let name = parts::file(table, part);
        ipc::read(&name, file(&name)?)
    };
    parts.iter().map(read).collect()
}

/// A world of symbols side by side. Snapshots are numbered from its first one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub name: String,
    /// The symbols `[N]`.
    pub symbols: Vec<String>,
    /// The first snapshot at which every feature has had a value.
    pub warm_up: usize,
    pub splits: Splits,
}

/// An error of a world: where there are several, it begins with the world's name.
pub(crate) fn in_world(several: bool, name: &str, err: StageError) -> StageError {
    match several {
        true => StageError {
            message: format!("{name}: {}", err.message),
            ..err
        },
        false => err,
    }
}
