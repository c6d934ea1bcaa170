//! Run ids, which sort by start time to the millisecond.

use super::marks::{self, AllMarks};
use super::reader::{folders, has_events};
use cache::shared;
use chrono::{DateTime, Utc};
use runner_engine::Failure;
use runner_pipeline::suggest;
use std::path::Path;
use std::time::SystemTime;

/// A new id: `20261120T213045-k3f9` (UTC); two characters encode the millisecond, two are random.
fn new_id() -> String {
    let now = SystemTime::now();
    let time: DateTime<Utc> = now.into();
    // The only unseeded randomness: it names a directory and reaches no result.
    let nanos = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let hash = blake3::hash(format!("{nanos} {}", std::process::id()).as_bytes());
    let millis = time.timestamp_subsec_millis().min(999) as usize;
    let digits = [
        millis / 32,
        millis % 32,
        usize::from(hash.as_bytes()[0] % 32),
        usize::from(hash.as_bytes()[1] % 32),
    ];
    let suffix: String = digits
        .map(|digit| char::from(b"0123456789abcdefghjkmnpqrstvwxyz"[digit]))
        .iter()
        .collect();
    format!("{}-{suffix}", time.format("%Y%m%dT%H%M%S"))
}

/// Creates the directory of a new run and returns the run's id.
pub fn new_run(runs: &Path) -> Result<String, Failure> {
    let failed = |path: &Path, err: std::io::Error| {
        Failure::at("cannot create", path)(err)
            .hint("set `RUNNER_HOME` to a writable directory with free disk space")
    };
    shared::create_dir_all(runs).map_err(|err| failed(runs, err))?;
    loop {
        let id = new_id();
        let dir = runs.join(&id);
        match shared::create_dir(&dir) {
            Ok(()) => return Ok(id),
            // Two runs began in the same millisecond with the same random characters.
            Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(err) => return Err(failed(&dir, err)),
        }
    }
}

/// The number of runs after the one that `latest` (0), `latest~1` (1), … means; `None` for another name.
fn after(name: &str) -> Option<usize> {
    match name.strip_prefix("latest")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// Resolves `name` to a run id: `latest`, `latest~1` (the run before it), an id, the name of a run, or a
/// unique prefix or suffix of an id.
///
/// # Errors
/// When it matches no run, or several.
pub fn resolve(runs: &Path, name: &str) -> Result<String, Failure> {
    if let Some(after) = after(name) {
        let newest_first = folders(runs)?.into_iter().rev();
        let mut recorded = newest_first.filter(|id| has_events(runs, id)).peekable();
        let hint = match recorded.peek() {
            Some(_) => "`runner runs` lists them",
            None => "`runner exec PIPELINE` starts one",
        };
        return recorded.nth(after).ok_or_else(|| {
            let missing = if after == 0 {
                "there are no runs".to_owned()
            } else {
                format!("there is no run `{name}`")
            };
            Failure::usage(format!("{missing} in `{}`", runs.display())).hint(hint)
        });
    }
    let is_plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
    if is_plain && has_events(runs, name) {
        return Ok(name.to_owned());
    }
    // Names begin with a letter; ids do not.
    if name.starts_with(|c: char| c.is_ascii_alphabetic())
        && let Some(id) = marks::named(runs, name)?
    {
        return Ok(id);
    }
    let ids = folders(runs)?;
    let found: Vec<&String> = ids
        .iter()
        .filter(|id| !name.is_empty() && (id.starts_with(name) || id.ends_with(name)) && has_events(runs, id))
        .collect();
    match found.as_slice() {
        [id] => Ok((*id).clone()),
        [] => {
            // An index that is not writable may lack a name.
            let marks = AllMarks::read(runs)?;
            if let Some(id) = marks.named(name) {
                return Ok(id.to_owned());
            }
            let names = marks.of.values().filter_map(|marks| marks.name.as_deref());
            let hint = suggest(name, "runs", ids.iter().map(String::as_str).chain(names));
            let near = hint.starts_with("did you mean").then_some(hint);
            let hint = near.unwrap_or_else(|| {
                "`runner runs` lists them; `latest` is the last one, `latest~1` the one before".to_owned()
            });
            Err(Failure::usage(format!("there is no run `{name}` in `{}`", runs.display())).hint(hint))
        }
        several => {
            let shown: Vec<&str> = several.iter().rev().take(5).map(|id| id.as_str()).collect();
            Err(Failure::usage(format!("`{name}` matches {} runs", several.len()))
                .hint(format!("give more of the id: {}", shown.join(", "))))
        }
    }
}
