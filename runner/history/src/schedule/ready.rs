//! The data that a night waits for.

use chrono::{DateTime, TimeDelta, Utc};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Files that a night waits for.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The name of the files in messages: a stage, or a path.
    pub name: String,
    /// The files that exist.
    pub files: Vec<PathBuf>,
    /// True if at least one of the files must have been written on the night's date or later.
    pub is_fresh: bool,
    /// The reason why there are no files.
    pub missing: Option<String>,
}

/// The size in bytes and the modification time of each file.
type Signature = Vec<Option<(u64, SystemTime)>>;

/// The files as they were last seen.
#[derive(Default)]
pub(super) struct Watched(Option<(Signature, DateTime<Utc>)>);

impl Watched {
    /// Checks whether all files exist and have been unchanged for `stable_for`; otherwise returns the reason.
    ///
    /// `date` is the instant at which the night's date begins.
    pub(super) fn check(
        &mut self,
        awaited: &[Awaited],
        date: DateTime<Utc>,
        stable_for: Duration,
        now: DateTime<Utc>,
    ) -> Result<(), String> {
        let signature: Signature = awaited
            .iter()
            .flat_map(|of| &of.files)
            .map(|file| {
                let meta = std::fs::metadata(file).ok()?;
                Some((meta.len(), meta.modified().ok()?))
            })
            .collect();
        let since = match self.0.take() {
            Some((known, since)) if known == signature => since,
            _ => now,
        };
        let seen = self.0.insert((signature, since));
        let mut signatures = seen.0.iter();
        for awaited in awaited {
            let seen: Vec<_> = signatures.by_ref().take(awaited.files.len()).collect();
            if let Some(missing) = &awaited.missing {
                return Err(format!("{}: {missing}", awaited.name));
            }
            let newest = seen.iter().filter_map(|seen| Some(seen.as_ref()?.1)).max();
            let Some(newest) = newest else {
                return Err(format!("{}: there is no file", awaited.name));
            };
            if awaited.is_fresh && DateTime::<Utc>::from(newest) < date {
                return Err(format!("{}: no file was written on that day or later", awaited.name));
            }
        }
        let required = TimeDelta::from_std(stable_for).unwrap_or(TimeDelta::MAX);
        // A file whose modification time is in the future was written before the clock was set back: it must
        // be observed unchanged.
        let is_stable = |seen: &Option<(u64, SystemTime)>| {
            seen.is_some_and(|(_, modified)| now - DateTime::<Utc>::from(modified) >= required)
        };
        if now - since >= required || seen.0.iter().all(is_stable) {
            return Ok(());
        }
        let changing = awaited.iter().find(|of| {
            let modified = |file: &PathBuf| std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
            let is_old = |time: SystemTime| now - DateTime::<Utc>::from(time) >= required;
            !of.files.iter().all(|file| modified(file).is_some_and(is_old))
        });
        let name = changing.map_or("files", |of| &of.name);
        Err(format!("{name}: written less than {} s ago", stable_for.as_secs()))
    }
}
