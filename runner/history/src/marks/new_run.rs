//! The name and the tags of a new run.

use super::{Marks, check_name, check_tag, edit, named, read};
use crate::reader::load;
use runner_engine::{Failure, RunStatus};
use std::path::Path;

/// Checks that a new run may have this name and these tags. The name of a failed run may be reused.
pub fn check(runs: &Path, name: Option<&str>, tags: &[String]) -> Result<(), Failure> {
    if let Some(name) = name
        && failed_with(runs, name)?.is_none()
    {
        check_name(runs, name)?;
    }
    tags.iter().try_for_each(|tag| check_tag(tag))
}

/// The run with the name `name`, if it failed, was interrupted or killed, and is not kept.
fn failed_with(runs: &Path, name: &str) -> Result<Option<String>, Failure> {
    let Some(id) = named(runs, name)? else {
        return Ok(None);
    };
    let has_failed = load(runs, &id).is_ok_and(|run| {
        matches!(
            run.status,
            RunStatus::Failed | RunStatus::Interrupted | RunStatus::Killed
        )
    });
    let is_kept = read(runs, &id).is_ok_and(|marks| marks.kept);
    Ok((has_failed && !is_kept).then_some(id))
}

/// Marks a new run. If another run has taken the name in the meantime, the directory of the new run is
/// removed.
pub fn begin(runs: &Path, id: &str, name: Option<&str>, tags: &[String]) -> Result<(), Failure> {
    if name.is_none() && tags.is_empty() {
        return Ok(());
    }
    if let Some(name) = name
        && let Some(failed) = failed_with(runs, name)?
    {
        edit(runs, &failed, |marks| {
            // Another command may have just renamed the run.
            if marks.name.as_deref() == Some(name) {
                marks.name = None;
            }
        })?;
    }
    let marked = edit(runs, id, |marks: &mut Marks| {
        marks.name = name.map(ToOwned::to_owned);
        marks.tags.extend(tags.iter().cloned());
    });
    if marked.is_err() {
        let _ = std::fs::remove_dir_all(runs.join(id));
    }
    marked.map(drop)
}
