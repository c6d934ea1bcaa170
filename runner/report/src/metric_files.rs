//! The metrics of a run as plain files in the layout of DVCLive, which DVC and `git diff` can compare:
//! `metrics.json` with the final values, `plots/STAGE/METRIC.tsv` with the curves.

use super::replace::replace;
use cache::Store;
use runner_engine::{Failure, StageStatus, text};
use runner_history::Run;
use runner_history::figures::{Curve, Figures, is_time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The numbers of values and of curves that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricFiles {
    /// The number of final values in `metrics.json`.
    pub values: usize,
    /// The number of curves in `plots`.
    pub curves: usize,
}

/// Writes the metrics of the stages that succeeded to `dir`, replacing those of an earlier run; curves of the
/// earlier run that this run lacks are removed.
///
/// Times, speeds and values that are not finite are omitted, so that runs with the same results write the
/// same bytes. `run` must have been read with metrics.
pub fn write_metric_files(run: &Run, store: &Store, dir: &Path) -> Result<MetricFiles, Failure> {
    let plots = dir.join("plots");
    let mut values = BTreeMap::new();
    let mut written = BTreeSet::new();
    let done = |status| matches!(status, Some(StageStatus::Cached | StageStatus::Ran));
    for stage in run.stages.iter().filter(|stage| done(stage.status)) {
        let mut figures = Figures::of(stage, store);
        figures.values.retain(|name, _| name != "seconds" && !is_time(name));
        if !figures.values.is_empty() {
            values.insert(stage.id.as_str(), figures.values);
        }
        for (name, curve) in figures.curves.iter().filter(|(name, _)| !is_time(name)) {
            let path = plots.join(text::file_name(&stage.id)).join(relative(name));
            write(&path, &table(&path, curve))?;
            written.insert(path);
        }
    }
    remove_others(&plots, &written)?;
    let json =
        serde_json::to_string_pretty(&values).map_err(|err| Failure::caused("metrics are not JSON", &err))?;
    write(&dir.join("metrics.json"), &(json + "\n"))?;
    Ok(MetricFiles {
        values: values.values().map(BTreeMap::len).sum(),
        curves: written.len(),
    })
}

/// The relative path of a metric's file: `losses/entropy.tsv`, never outside its directory.
fn relative(metric: &str) -> PathBuf {
    let part = |part: &str| match part {
        "" => "%".to_owned(),
        "." | ".." => part.replace('.', "%2E"),
        part => text::file_name(part),
    };
    let parts: Vec<String> = metric.split('/').map(part).collect();
    PathBuf::from(parts.join("/") + ".tsv")
}

/// Formats a curve as two columns: the step and the value, whose column is named after the file.
fn table(path: &Path, curve: &Curve) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut out = format!("step\t{name}\n");
    for (step, value) in curve.iter().filter(|(_, value)| value.is_finite()) {
        let _ = writeln!(out, "{step}\t{value}");
    }
    out
}

fn unwritable(path: &Path, err: std::io::Error) -> Failure {
    Failure::at("cannot write", path)(err).hint("give another directory")
}

fn write(path: &Path, content: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| replace(path, content))
        .map_err(|err| unwritable(path, err))
}

/// Removes the curves below `dir` that are not among `kept`, and directories that become empty.
fn remove_others(dir: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_others(&path, kept)?;
            // Fails unless the directory is empty.
            let _ = fs::remove_dir(&path);
        } else if path.extension().is_some_and(|extension| extension == "tsv") && !kept.contains(&path) {
            fs::remove_file(&path).map_err(|err| unwritable(&path, err))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_stay_in_their_directory() {
        let path = |name| relative(name).display().to_string();
        assert_eq!(path("losses/value_loss"), "losses/value_loss.tsv");
        assert_eq!(path("../../etc/x"), "%2E%2E/%2E%2E/etc/x.tsv");
        assert_eq!(path("/a b"), "%/a%20b.tsv");
    }

    #[test]
    fn only_curves_of_other_runs_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a/x.tsv", "a/y.tsv", "b/c/z.tsv", "b/notes.md"] {
            write(
                &at(name),
                &table(&at(name), &vec![(1.0, 0.5), (2.0, f64::NAN), (4096.0, 1e-7)]),
            )
            .unwrap();
        }
        remove_others(dir.path(), &BTreeSet::from([at("a/x.tsv")])).unwrap();
        assert_eq!(
            fs::read_to_string(at("a/x.tsv")).unwrap(),
            "step\tx\n1\t0.5\n4096\t0.0000001\n"
        );
        assert!(!at("a/y.tsv").exists() && !at("b/c").exists() && at("b/notes.md").exists());
    }
}
