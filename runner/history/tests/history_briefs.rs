//! The briefs of runs against the runs themselves.

#![allow(clippy::unwrap_used, reason = "tests")]

use runner_engine::RunStatus;
use runner_history::{AllMarks, Library, Question, Run, list, load, marks, survey};
use std::fs;
use std::path::{Path, PathBuf};

const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// A run that computed (`ran`) or found (`cached`) a training.
fn write(runs: &Path, id: &str, status: &str) {
    let dir = runs.join(id);
    fs::create_dir_all(&dir).unwrap();
    let mut events = format!(
        r#"{{"event":"run_started","time":"2026-11-20T21:30:45.123Z","run":"{id}","pipeline":"p","file":"p.yaml","params":{{"lr":0.1}},"stages":["env","train[seed=1]"],"program":"runner"}}
{{"event":"stage_finished","time":"2026-11-20T21:30:46.123Z","stage":"env","status":"cached","seconds":0.1,"outputs":{{"env":"{KEY}"}}}}
"#
    );
    if status == "ran" {
        events += &format!(
            r#"{{"event":"stage_started","time":"2026-11-20T21:30:46.123Z","stage":"train[seed=1]","key":"{KEY}","threads":1,"reason":"never ran before"}}
{{"event":"metric","time":"2026-11-20T21:30:46.123Z","stage":"train[seed=1]","name":"charts/SPS","step":1,"value":10.0}}
{{"event":"metric","time":"2026-11-20T21:30:46.123Z","stage":"train[seed=1]","name":"charts/SPS","step":2,"value":12.5}}
"#
        );
    }
    events += &format!(
        r#"{{"event":"stage_finished","time":"2026-11-20T21:30:47.5Z","stage":"train[seed=1]","key":"{KEY}","status":"{status}","seconds":1.25,"outputs":{{"metrics":"{KEY}"}}}}
{{"event":"run_finished","time":"2026-11-20T21:30:48.123Z","run":"{id}","status":"done","seconds":3.0,"cached":1,"ran":1,"failed":0,"skipped":0}}
"#
    );
    fs::write(dir.join("events.jsonl"), events).unwrap();
    let stage = |id: &str, kind: &str| {
        serde_json::json!({
            "id": id, "stage": id.split('[').next(), "point": {}, "kind": kind, "version": 1,
                "config": {"lr": 0.1},
            "needs": {}, "outputs": {"metrics": "metrics"}, "resources": {},
        })
    };
    let pipeline = serde_json::json!({
        "name": "p", "file": "p.yaml", "params": {},
        "stages": [stage("env", "env/classic"), stage("train[seed=1]", "train/ppo")],
    });
    fs::write(dir.join("pipeline.json"), pipeline.to_string()).unwrap();
}

fn history(runs: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("runs");
    for i in 0..runs {
        write(&folder, &id(i), if i == 0 { "ran" } else { "cached" });
    }
    (dir, folder)
}

fn id(i: usize) -> String {
    format!("20261120T2130{:02}-k{:03}", i / 1000, i % 1000)
}

/// Everything that is known of runs.
fn text(runs: &[Run]) -> Vec<String> {
    runs.iter().map(|run| format!("{run:?}")).collect()
}

fn ids(runs: &Path) -> Vec<String> {
    let mut ids: Vec<String> = fs::read_dir(runs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    ids.sort();
    ids
}

/// The runs as their event logs describe them, without the index.
fn truth(runs: &Path) -> Vec<String> {
    let read = |id: &String| {
        let mut run = load(runs, id).unwrap();
        run.stages.iter_mut().for_each(|stage| stage.metrics.clear());
        run
    };
    text(&ids(runs).iter().map(read).collect::<Vec<_>>())
}

fn brief(runs: &Path, id: &str) -> PathBuf {
    runs.join(id).join("brief.json")
}

/// The briefs of all runs, but for the times of their event logs.
fn dump(runs: &Path) -> Vec<String> {
    let texts = ids(runs)
        .into_iter()
        .filter_map(|id| fs::read_to_string(brief(runs, &id)).ok());
    let run = |text: String| {
        let run = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["run"];
        run.to_string()
    };
    texts.map(run).collect()
}

#[test]
fn briefs_made_again_are_those_that_grew() {
    let (_dir, runs) = history(0);
    for i in 0..40 {
        write(&runs, &id(i), if i % 10 == 0 { "ran" } else { "cached" });
        if i % 7 == 0 {
            list(&runs).unwrap();
        }
    }
    // One is gone, and one has other events than when it was read.
    fs::remove_dir_all(runs.join(id(3))).unwrap();
    let events = runs.join(id(5)).join("events.jsonl");
    let text_of = fs::read_to_string(&events).unwrap();
    fs::write(&events, text_of.replace("\"seconds\":3.0", "\"seconds\":33.0")).unwrap();
    assert_eq!(text(&list(&runs).unwrap()), truth(&runs));
    let grown = dump(&runs);
    assert!(grown[4].contains("33.0") && grown.len() == 39);
    ids(&runs)
        .iter()
        .for_each(|id| fs::remove_file(brief(&runs, id)).unwrap());
    assert_eq!(text(&list(&runs).unwrap()), truth(&runs));
    assert_eq!(dump(&runs), grown);
}

#[test]
fn a_known_run_is_not_read_again() {
    let (_dir, runs) = history(5);
    let before = text(&list(&runs).unwrap());
    // Files of the same size and time are not looked into.
    let events = runs.join(id(2)).join("events.jsonl");
    let (meta, bytes) = (fs::metadata(&events).unwrap(), fs::read(&events).unwrap());
    fs::write(&events, vec![b'x'; bytes.len()]).unwrap();
    let file = fs::File::options().write(true).open(&events).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    fs::remove_file(runs.join(id(1)).join("pipeline.json")).unwrap();
    assert_eq!(text(&list(&runs).unwrap()), before);
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let (left, broken) = survey(&runs).unwrap();
    assert_eq!((left.len(), broken), (4, vec![id(2)]));
}

#[test]
fn runs_that_go_on_are_not_taken() {
    let (_dir, runs) = history(2);
    let events = runs.join(id(1)).join("events.jsonl");
    let whole = fs::read_to_string(&events).unwrap();
    let begun: String = whole.lines().take(1).map(|line| format!("{line}\n")).collect();
    fs::write(&events, begun).unwrap();
    let writer = fs::File::open(&events).unwrap();
    writer.lock().unwrap();
    let status = |runs: &Path| list(runs).unwrap()[1].status;
    assert_eq!(status(&runs), RunStatus::Running);
    assert_eq!(dump(&runs).len(), 1);
    drop(writer);
    assert_eq!(status(&runs), RunStatus::Killed);
    assert_eq!(dump(&runs).len(), 2);
}

#[test]
fn damaged_and_foreign_briefs_are_made_again_silently() {
    let (_dir, runs) = history(3);
    let expected = truth(&runs);
    let path = brief(&runs, &id(1));
    list(&runs).unwrap();
    let sound = fs::read(&path).unwrap();
    let mut damages: Vec<Vec<u8>> =
        vec![b"no document".to_vec(), Vec::new(), sound[..sound.len() / 2].to_vec()];
    // A flipped bit anywhere.
    for i in 0..200 {
        let mut flipped = sound.clone();
        flipped[i * (sound.len() / 200)] ^= 1 << (i % 8);
        damages.push(flipped);
    }
    for (i, damage) in damages.iter().enumerate() {
        fs::write(&path, damage).unwrap();
        for _ in 0..2 {
            assert_eq!(text(&list(&runs).unwrap()), expected, "damage {i}");
        }
        assert_eq!(fs::read(&path).unwrap(), sound, "damage {i}");
    }
}

#[test]
fn a_brief_that_cannot_be_written_costs_only_itself() {
    let (_dir, runs) = history(3);
    fs::create_dir_all(brief(&runs, &id(1)).join("full")).unwrap();
    for _ in 0..2 {
        assert_eq!(text(&list(&runs).unwrap()), truth(&runs));
    }
    assert_eq!(dump(&runs).len(), 2);
    assert_eq!(marks::named(&runs, "best").unwrap(), None);
    marks::edit(&runs, &id(2), |marks| marks.name = Some("best".to_owned())).unwrap();
    assert_eq!(marks::named(&runs, "best").unwrap(), Some(id(2)));
}

#[test]
fn many_write_at_once() {
    let (_dir, runs) = history(300);
    let expected = truth(&runs);
    std::thread::scope(|scope| {
        for t in 0..6 {
            let (runs, expected) = (&runs, &expected);
            scope.spawn(move || {
                for round in 0..5 {
                    assert_eq!(&text(&list(runs).unwrap())[..300], &expected[..]);
                    write(runs, &id(1000 + t * 10 + round), "cached");
                    marks::edit(runs, &id(t), |marks| marks.name = Some(format!("name{t}-{round}"))).unwrap();
                }
            });
        }
    });
    assert_eq!(text(&list(&runs).unwrap()), truth(&runs));
    assert_eq!(dump(&runs).len(), 330);
    for t in 0..6 {
        assert_eq!(marks::named(&runs, &format!("name{t}-4")).unwrap(), Some(id(t)));
        assert_eq!(marks::named(&runs, &format!("name{t}-3")).unwrap(), None);
    }
}

#[test]
fn names_are_found_without_a_look_at_other_runs() {
    let (_dir, runs) = history(20);
    marks::edit(&runs, &id(7), |marks| marks.name = Some("best".to_owned())).unwrap();
    assert_eq!(marks::named(&runs, "best").unwrap(), Some(id(7)));
    // Behind the back of this program: it would be seen, were the other runs looked at.
    fs::write(runs.join(id(8)).join("marks.json"), r#"{"name":"hidden"}"#).unwrap();
    assert_eq!(marks::named(&runs, "hidden").unwrap(), None);
    assert_eq!(AllMarks::read(&runs).unwrap().named("hidden"), Some(id(8).as_str()));
    // A run that is gone has no name.
    fs::remove_dir_all(runs.join(id(7))).unwrap();
    assert_eq!(marks::named(&runs, "best").unwrap(), None);
}

#[test]
fn a_copied_run_has_the_name_of_its_directory() {
    let (_dir, runs) = history(3);
    list(&runs).unwrap();
    fs::rename(runs.join(id(1)), runs.join(id(9))).unwrap();
    let found: Vec<String> = list(&runs).unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(found, [id(0), id(2), id(9)]);
}

#[test]
fn the_first_of_many_are_the_first_of_all() {
    let (_dir, runs) = history(300);
    let first = |filter: &str, sort: &str, n: usize, is_newest: bool| {
        let sort: Vec<String> = sort.split_whitespace().map(str::to_owned).collect();
        let question = Question::new((!filter.is_empty()).then_some(filter), &sort, &[]).unwrap();
        let whole = Library::read(&runs, None, &mut |_| {}).unwrap();
        let all = whole.choose(&question, None).map(|chosen| {
            let mut ids: Vec<String> = chosen.into_iter().map(|chosen| chosen.run.id.clone()).collect();
            if is_newest {
                ids.reverse();
            }
            (ids.iter().take(n).cloned().collect::<Vec<_>>(), ids.len())
        });
        let some = Library::first(&runs, &question, (n, is_newest), None, &mut |_| {});
        let some = some.map(|(some, count)| {
            let ids: Vec<String> = some.all.iter().map(|run| run.id.clone()).collect();
            (ids, count)
        });
        let some = some.map_err(|failure| failure.to_string());
        assert_eq!(some, all.map_err(|failure| failure.to_string()));
        some
    };
    for is_newest in [false, true] {
        assert_eq!(first("status = done", "", 3, is_newest).unwrap().1, 300);
        assert_eq!(first("id ~ k1", "", 3, is_newest).unwrap().1, 100);
        assert_eq!(first("id ~ none", "", 3, is_newest).unwrap().1, 0);
    }
    assert_eq!(first("", "-id", 280, false).unwrap().0[0], id(299));
    assert_eq!(first("duration > 1", "status id", 5, false).unwrap().0[4], id(4));
    assert!(first("nothing.here > 1", "", 3, true).is_err());
}
