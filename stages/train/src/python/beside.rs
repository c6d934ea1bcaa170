//! Files beside a checkpoint: the function's state, and the best policy in validation. They are written once,
//! under the names of their digests; the checkpoint that is renamed into place after them says which ones
//! belong to it.

use crate::checkpoint;
use cache::{BlobDigest, BlobRef};
use serde::{Deserialize, Serialize};
use stages_core::StageError;
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
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&from, &to))
        .map_err(|err| checkpoint::failed("write checkpoint", &to, &err))?;
    Ok(digest)
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
