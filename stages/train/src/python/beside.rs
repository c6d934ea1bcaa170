//! Files beside a checkpoint: the function's state, and the best policy in validation. They are written once,
//! under the names of their digests; the checkpoint that is renamed into place after them says which ones
//! belong to it.

use crate::checkpoint::{self, Saved};
use crate::stored_states::{SavedState, StoredStates};
use crate::train_state::TrainState;
use cache::{BlobDigest, BlobRef, Store};
use serde::{Deserialize, Serialize};
use stages_core::{Context, StageError};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

/// The part of a train state that only a function in Python has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Beside {
    /// The file of the function's state.
    pub state: Option<BlobDigest>,
    /// The file of the best policy in validation.
    pub best: Option<BlobDigest>,
    /// The step of the last metric.
    pub logged: Option<u64>,
    /// The step of the last call of `ctx.validate`.
    pub asked: u64,
    /// True once the environments have been reset.
    pub has_begun: bool,
}

/// The path of a file that the process names, which must be in the folder.
pub(super) fn named(folder: &Path, name: &str) -> Result<PathBuf, StageError> {
    let mut parts = Path::new(name).components();
    let is_inner = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    StageError::new(format!("the process of the function names the file `{name}`"))
        .hint("the function talks to the engine by `ctx` and `env` alone")
        .when(!is_inner)?;
    Ok(folder.join(name))
}

/// The path of a kept file.
pub(super) fn path(folder: &Path, digest: BlobDigest) -> PathBuf {
    folder.join(format!("{}.bin", digest.to_hex()))
}

/// Keeps a file that the process wrote.
pub(super) fn keep(folder: &Path, name: &str) -> Result<BlobDigest, StageError> {
    let from = named(folder, name)?;
    let digest = BlobRef::of_file(&from)?.blob;
    let to = path(folder, digest);
    File::open(&from)
        .and_then(|file| cache::flush(&file))
        .and_then(|()| fs::rename(&from, &to))
        .map_err(|err| checkpoint::failed("write checkpoint", &to, &err))?;
    Ok(digest)
}

/// Stores the checkpoint in `folder`, if there is one, with the files beside it: the length of each, and the
/// file.
pub(super) fn keep_state(stored: &StoredStates, store: &Store, folder: &Path) -> Result<(), StageError> {
    let Saved::State(state) = checkpoint::read(folder)? else {
        return Ok(());
    };
    let mut data = Vec::new();
    for digest in files_of(&state) {
        let path = path(folder, digest);
        let bytes = fs::read(&path).map_err(|err| checkpoint::failed("read checkpoint", &path, &err))?;
        data.extend((bytes.len() as u64).to_le_bytes());
        data.extend(bytes);
    }
    let saved = SavedState {
        train_state: checkpoint::encode(&state)?,
        data: Some(data),
    };
    stored.put(store, state.step, &saved)
}

/// Writes the furthest stored state up to a step to `folder`, where that has none that is further.
pub(super) fn restore(
    stored: &StoredStates,
    context: &Context,
    folder: &Path,
    last: u64,
) -> Result<(), StageError> {
    let here = checkpoint::step(folder).filter(|&step| step <= last);
    let found = stored.furthest(context, here.unwrap_or(0) + 1..=last, |_| true)?;
    let Some((state, Some(data))) = found else {
        return Ok(());
    };
    let mut rest = &*data;
    for digest in files_of(&state) {
        let Some((length, after)) = rest.split_first_chunk() else {
            return Ok(());
        };
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((bytes, after)) = after.split_at_checked(length) else {
            return Ok(());
        };
        let path = path(folder, digest);
        fs::write(&path, bytes).map_err(|err| checkpoint::failed("write checkpoint", &path, &err))?;
        rest = after;
    }
    checkpoint::write(folder, &state)
}

/// The files that a checkpoint names.
fn files_of(state: &TrainState) -> Vec<BlobDigest> {
    let beside: Option<(Beside, u64)> = serde_json::from_str(&state.beside).ok();
    let files = beside.map(|(beside, _)| [beside.state, beside.best]);
    files.into_iter().flatten().flatten().collect()
}

/// True if a kept file is there and intact.
pub(super) fn is_intact(folder: &Path, digest: BlobDigest) -> bool {
    BlobRef::of_file(&path(folder, digest)).is_ok_and(|found| found.blob == digest)
}

/// Removes kept files that the checkpoint does not name.
pub(super) fn remove_others(folder: &Path, beside: &Beside) {
    let kept: BTreeSet<PathBuf> = [beside.state, beside.best]
        .into_iter()
        .flatten()
        .map(|digest| path(folder, digest))
        .collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "bin") && !kept.contains(&path) {
            // One that stays is removed after the next checkpoint.
            drop(fs::remove_file(path));
        }
    }
}
