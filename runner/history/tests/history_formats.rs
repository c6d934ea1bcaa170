//! No byte of a run's directory is outside a checksum: one changed bit anywhere is detected,
//! or reads as the same value.

#![allow(clippy::unwrap_used, reason = "tests")]

use runner_engine::{Reporter as _, RunStatus, Stamped};
use runner_history::{ResolvedPipeline, Writer, list, load, marks, survey};
use std::path::{Path, PathBuf};

const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";
const ID: &str = "20261120T213045-k3f9";

/// A run with every kind of file.
fn run() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    let pipeline: ResolvedPipeline = serde_json::from_value(serde_json::json!({
        "name": "p", "file": "/p.yaml", "params": { "lr": 0.1 },
        "stages": [{
            "id": "train", "stage": "train", "point": {}, "kind": "train/ppo", "version": 2,
                "config": { "lr": 0.1 },
            "needs": { "init": ["20261119T213045-k3f9/train.policy"] }, "outputs": { "policy": "policy" },
                "resources": {},
        }],
    }))
    .unwrap();
    let mut writer = Writer::create(&runs, ID).unwrap();
    writer.pipeline(pipeline);
    for line in [
        format!(
            r#"{{"event":"run_started","time":"2026-11-20T21:30:45.123Z","run":"{ID}","pipeline":"p","file":"/p.yaml","params":{{"lr":0.1}},"stages":["train"],"program":"runner"}}"#
        ),
        format!(
            r#"{{"event":"stage_started","time":"2026-11-20T21:30:46.123Z","stage":"train","key":"{KEY}","threads":1,"reason":"new"}}"#
        ),
        r#"{"event":"metric","time":"2026-11-20T21:30:46.123Z","stage":"train","name":"charts/SPS","step":1,"value":10.5}"#.to_owned(),
        format!(
            r#"{{"event":"stage_finished","time":"2026-11-20T21:30:47.5Z","stage":"train","key":"{KEY}","status":"ran","seconds":1.25,"outputs":{{"policy":"{KEY}"}}}}"#
        ),
        format!(
            r#"{{"event":"run_finished","time":"2026-11-20T21:30:48.123Z","run":"{ID}","status":"done","seconds":3.0,"cached":0,"ran":1,"failed":0,"skipped":0}}"#
        ),
    ] {
        writer.report(&Stamped::from_line(&line).unwrap());
    }
    writer.flush();
    writer.check().unwrap();
    drop(writer);
    marks::edit(&runs, ID, |marks| {
        marks.name = Some("best".to_owned());
        marks.tags.insert("good".to_owned());
    })
    .unwrap();
    (home, runs)
}

/// The file with each of its bits changed in turn; every `step`-th bit.
fn flip(path: &Path, step: usize, mut check: impl FnMut(&str)) {
    let intact = std::fs::read(path).unwrap();
    for bit in (0..intact.len() * 8).step_by(step) {
        let mut bytes = intact.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, bytes).unwrap();
        check(&format!("bit {} of byte {} of `{}`", bit % 8, bit / 8, path.display()));
    }
    std::fs::write(path, intact).unwrap();
}

#[test]
fn every_bit_of_a_run_is_inside_a_checksum() {
    let (_home, runs) = run();
    let folder = runs.join(ID);
    let intact = load(&runs, ID).unwrap();
    assert_eq!((intact.damaged, intact.status), (0, RunStatus::Done));
    let intact = format!("{intact:?}");
    for file in ["events.jsonl", "pipeline.json"] {
        flip(&folder.join(file), 1, |place| {
            let Ok(found) = load(&runs, ID) else { return };
            // A kill truncates the last line too: the run counts as killed.
            let is_detected = found.damaged > 0 || found.status == RunStatus::Killed;
            assert!(is_detected || format!("{found:?}") == intact, "{place}: {found:?}");
        });
    }
    let marked = marks::read(&runs, ID).unwrap();
    flip(&folder.join("marks.json"), 1, |place| {
        let found = marks::read(&runs, ID);
        assert!(
            found.as_ref().is_ok_and(|found| *found == marked) || found.is_err(),
            "{place}: {found:?}"
        );
    });
}

#[test]
fn a_damaged_run_is_not_indexed_and_says_so() {
    let (_home, runs) = run();
    let path = runs.join(ID).join("events.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"seconds\":1.25", "\"seconds\":9.25")).unwrap();
    for _ in 0..2 {
        let (found, unreadable) = survey(&runs).unwrap();
        assert_eq!((found[0].damaged, found[0].stages[0].seconds), (1, 0.0));
        assert!(unreadable.is_empty());
    }
    // An event log of an earlier version has no checksums.
    let bare: String = text
        .lines()
        .map(|line| format!("{}}}\n", line.split(",\"checksum\"").next().unwrap()))
        .collect();
    std::fs::write(&path, bare).unwrap();
    assert_eq!(load(&runs, ID).unwrap().damaged, 0);
}

/// A brief answers as its run does, or not at all.
#[test]
fn every_bit_of_a_brief_is_inside_its_checksum() {
    let (_home, runs) = run();
    let listed = format!("{:?}", list(&runs).unwrap());
    flip(&runs.join(ID).join("brief.json"), 61, |place| {
        assert_eq!(format!("{:?}", list(&runs).unwrap()), listed, "{place}");
    });
}
