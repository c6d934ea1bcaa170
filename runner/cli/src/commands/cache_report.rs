//! `runner cache status|verify|gc`: the contents of the store, its integrity, and the removal of objects that
//! no kept run needs.
//!
//! Each function returns the text for standard output, plain or as one JSON document.

use cache::{ActionKey, Count, GcPlan, GcReport, Status, Store, VerifyProgress, VerifyReport};
use runner_engine::{Failure, text};
use runner_history::{AllMarks, Run, StageRun, removable, remove, size};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The runs and files that `gc` keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keep {
    /// The number of last runs whose objects are kept.
    pub last_runs: usize,
    /// The full ids of the runs whose objects are kept.
    pub runs: BTreeSet<String>,
    /// Further actions whose objects are kept: those of registered policies.
    pub actions: BTreeSet<ActionKey>,
    /// Objects written or used within this time are kept, and those of runs that began within it.
    pub younger_than: Duration,
}

impl Keep {
    /// True if it keeps `run`, the `from_last`-th from the last (0 is the last).
    fn keeps(&self, run: &Run, from_last: usize, now: SystemTime) -> bool {
        let age = now.duration_since(run.started.into()).unwrap_or_default();
        from_last < self.last_runs || self.runs.contains(&run.id) || age < self.younger_than
    }

    /// The ids of the runs that it keeps, and the actions that these need. `runs` are oldest first.
    fn roots(&self, runs: &[Run], now: SystemTime) -> (Vec<String>, BTreeSet<ActionKey>) {
        let kept: Vec<&Run> = runs
            .iter()
            .enumerate()
            .filter(|(i, run)| self.keeps(run, runs.len() - 1 - i, now))
            .map(|(_, run)| run)
            .collect();
        let by_id: HashMap<&str, &Run> = runs.iter().map(|run| (run.id.as_str(), run)).collect();
        let mut keys = self.actions.clone();
        let mut stages: Vec<&StageRun> = kept.iter().flat_map(|run| &run.stages).collect();
        while let Some(stage) = stages.pop() {
            let is_new = stage.key.is_none_or(|key| keys.insert(key));
            if is_new {
                let needs = stage.needs.values().flatten();
                stages.extend(needs.filter_map(|need| earlier_stage(&by_id, need)));
            }
        }
        (kept.iter().map(|run| run.id.clone()).collect(), keys)
    }
}

/// The stage of an earlier run that a need names as `RUN/STAGE.OUTPUT`.
fn earlier_stage<'r>(runs: &HashMap<&str, &'r Run>, need: &str) -> Option<&'r StageRun> {
    let (run, output) = need.split_once('/')?;
    let run = runs.get(run).copied()?;
    let made = |stage: &&StageRun| output.strip_prefix(&stage.id).is_some_and(|rest| rest.starts_with('.'));
    run.stages.iter().find(made)
}

/// The contents of the store.
pub(super) fn status(store: &Store, as_json: bool) -> Result<String, Failure> {
    let status = store.status()?;
    if as_json {
        let facts = [("home", json!(store.root())), ("bytes", json!(status.bytes()))];
        return document(&status, facts);
    }
    Ok(status_text(&status))
}

fn status_text(status: &Status) -> String {
    let mut rows = vec![
        row("blobs", status.blobs),
        row("  unreferenced", status.unreferenced),
        row("action records", status.actions),
        row("memos", status.memos),
        row("checkpoints of unfinished work", status.scratch),
        row("digests of source files", status.stat),
        row("temporary files", status.tmp),
        row("damaged files", status.damaged),
    ];
    // Only a home whose stages ran on a cluster has them.
    for (what, count) in [
        ("jobs of clusters", status.jobs),
        ("copies of the program", status.programs),
    ] {
        rows.extend((count.count > 0).then(|| row(what, count)));
    }
    rows.push(vec!["total".to_owned(), String::new(), text::size(status.bytes())]);
    let mut out = text::table(&["what", "count", "size"], &rows, &[1, 2]);
    if !status.artifacts.is_empty() {
        let rows: Vec<_> = status.artifacts.iter().map(|(kind, count)| row(kind, *count)).collect();
        out.push('\n');
        out.push_str(&text::table(&["artifacts", "count", "size"], &rows, &[1, 2]));
    }
    out
}

/// Rehashes a share of the blobs, all of them at 1. Also returns true if everything is intact; damaged
/// objects are removed, and recomputed on demand. `on_progress` is called from several threads.
pub(super) fn verify(
    store: &Store,
    share: f64,
    as_json: bool,
    on_progress: impl Fn(VerifyProgress) + Sync,
) -> Result<(String, bool), Failure> {
    let report = store.verify_sample(share, on_progress)?;
    let clean = report.is_clean();
    let out = if as_json {
        document(&report, [("clean", json!(clean))])?
    } else {
        verify_text(&report)
    };
    Ok((out, clean))
}

fn verify_text(report: &VerifyReport) -> String {
    let mut out = format!(
        "read {} ({}), {} and {}\n",
        text::count(report.blobs, "blob"),
        text::size(report.bytes),
        text::count(report.actions, "action record"),
        text::count(report.memos, "memo"),
    );
    for blob in &report.damaged {
        out.push_str(&format!("damaged  blob    {blob}\n"));
    }
    for blob in &report.missing {
        out.push_str(&format!("missing  blob    {blob}\n"));
    }
    for key in &report.actions_removed {
        out.push_str(&format!("removed  action  {key}\n"));
    }
    for key in &report.memos_removed {
        out.push_str(&format!("removed  memo    {key}\n"));
    }
    out.push_str(if report.is_clean() {
        "no damage found\n"
    } else {
        "the removed objects are recomputed when they are needed\n"
    });
    out
}

/// Removes objects that are not recent and that no kept run needs, and then from the directory `history` the
/// runs that are neither kept nor marked. `runs` are all runs, oldest first, as [`runner_history::list`]
/// returns them.
pub(super) fn gc(
    store: &Store,
    history: &Path,
    (runs, marks): (&[Run], &AllMarks),
    keep: &Keep,
    dry_run: bool,
    as_json: bool,
) -> Result<String, Failure> {
    let known: HashSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    if let Some(unknown) = keep.runs.iter().find(|id| !known.contains(id.as_str())) {
        return Err(Failure::usage(format!("there is no run `{unknown}`"))
            .hint("nothing was removed; `runner runs` lists the runs"));
    }
    let now = SystemTime::now();
    let (kept, keep_actions) = keep.roots(runs, now);
    let report = store.gc(&GcPlan {
        keep_actions,
        keep_younger_than: keep.younger_than,
        now,
        dry_run,
    })?;
    let dropped = removable(runs, marks, |run, from_last| keep.keeps(run, from_last, now));
    let dropped_bytes = dropped.iter().map(|run| size(&run.dir)).sum();
    let dropped: Vec<String> = dropped.iter().map(|run| run.id.clone()).collect();
    if !dry_run {
        remove(history, &dropped)?;
    }
    if as_json {
        let facts = [
            ("dry_run", json!(dry_run)),
            ("bytes", json!(report.bytes())),
            ("runs_kept", json!(kept)),
            ("runs_dropped", json!(dropped)),
        ];
        return document(&report, facts);
    }
    let dropped = Count {
        count: dropped.len() as u64,
        bytes: dropped_bytes,
    };
    Ok(gc_text(&report, dropped, kept.len(), dry_run))
}

fn gc_text(report: &GcReport, dropped: Count, runs: usize, dry_run: bool) -> String {
    let rows: Vec<_> = [
        ("runs", dropped),
        ("blobs", report.blobs),
        ("action records", report.actions),
        ("memos", report.memos),
        ("checkpoints of unfinished work", report.scratch),
        ("jobs of clusters", report.jobs),
        ("copies of the program", report.programs),
        ("digests of source files", report.stat),
        ("temporary files", report.tmp),
        ("damaged files", report.damaged),
    ]
    .into_iter()
    .filter(|(_, count)| count.count > 0)
    .map(|(what, count)| row(what, count))
    .collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&text::table(
            &[if dry_run { "would drop" } else { "dropped" }, "count", "size"],
            &rows,
            &[1, 2],
        ));
    }
    out.push_str(&format!(
        "{} {}; {} ({}) stay, for {} and by age\n",
        text::size(report.bytes() + dropped.bytes),
        if dry_run { "would be freed" } else { "freed" },
        text::count(report.kept.count, "blob"),
        text::size(report.kept.bytes),
        text::count(runs, "run"),
    ));
    out
}

fn row(what: &str, count: Count) -> Vec<String> {
    vec![what.to_owned(), count.count.to_string(), text::size(count.bytes)]
}

/// `value` with additional fields, as one line.
fn document<const N: usize>(value: &impl Serialize, facts: [(&str, Value); N]) -> Result<String, Failure> {
    let mut value =
        serde_json::to_value(value).map_err(|err| Failure::caused("cannot write the result", &err))?;
    for (name, fact) in facts {
        value[name] = fact;
    }
    Ok(format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::{ActionRecord, KeyHasher};
    use runner_engine::RunStatus;
    use runner_history::ResolvedStage;
    use std::collections::BTreeMap;

    impl Default for Keep {
        fn default() -> Self {
            Self {
                last_runs: 10,
                runs: BTreeSet::new(),
                actions: BTreeSet::new(),
                younger_than: Duration::from_secs(7 * 24 * 3600),
            }
        }
    }

    fn key(name: &str) -> ActionKey {
        KeyHasher::new("test").field(name).action_key()
    }

    /// A run that began `days` ago, with one stage.
    fn run(id: &str, days: u64) -> Run {
        let resolved = ResolvedStage {
            id: "only".to_owned(),
            stage: "only".to_owned(),
            kind: "run".to_owned(),
            version: 1,
            ..ResolvedStage::default()
        };
        let stage = StageRun {
            key: Some(key(id)),
            started: true,
            ..StageRun::new(resolved.into())
        };
        Run {
            id: id.to_owned(),
            dir: id.into(),
            pipeline: "p".to_owned(),
            file: "p.yaml".into(),
            params: BTreeMap::new(),
            program: "runner".to_owned(),
            night: None,
            accounts: Vec::new(),
            status: RunStatus::Done,
            started: (SystemTime::now() - Duration::from_secs(days * 24 * 3600)).into(),
            seconds: 1.0,
            stages: vec![stage],
            lookahead: None,
            damaged: 0,
        }
    }

    fn record(store: &Store, id: &str) {
        store
            .put_action(&ActionRecord {
                key: key(id),
                recipe: Value::Null,
                outputs: BTreeMap::new(),
                log: Some(store.put(format!("log of {id}").as_bytes()).unwrap()),
                seconds: 1.0,
                peak_memory: None,
                numerics_class: String::new(),
                program: String::new(),
                sources: Vec::new(),
                info: BTreeMap::new(),
            })
            .unwrap();
    }

    #[test]
    fn kept_are_the_last_the_named_and_the_young() {
        let runs = [run("a", 30), run("b", 20), run("c", 9), run("d", 8), run("e", 1)];
        let keep = |last_runs, name: &str, days: u64| {
            let keep = Keep {
                last_runs,
                runs: BTreeSet::from([name.to_owned()]),
                actions: BTreeSet::new(),
                younger_than: Duration::from_secs(days * 24 * 3600),
            };
            let (ids, keys) = keep.roots(&runs, SystemTime::now());
            assert_eq!(keys, ids.iter().map(|id| key(id)).collect());
            ids.concat()
        };
        assert_eq!(keep(0, "", 0), "");
        assert_eq!(keep(2, "", 0), "de");
        assert_eq!(keep(9, "", 0), "abcde");
        assert_eq!(keep(1, "b", 0), "be");
        assert_eq!(keep(0, "a", 10), "acde");
    }

    #[test]
    fn the_commands_say_what_they_did() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        record(&store, "a");
        record(&store, "b");
        let runs = [run("a", 30), run("b", 20)];
        let keep = Keep {
            last_runs: 1,
            younger_than: Duration::ZERO,
            ..Keep::default()
        };
        let shown: Value = serde_json::from_str(&status(&store, true).unwrap()).unwrap();
        assert_eq!(shown["blobs"], json!({"count": 2, "bytes": 16}));
        assert!(status(&store, false).unwrap().starts_with("what "));

        let marks = AllMarks::default();
        let gc = |runs: &[Run], keep: &Keep, dry_run, as_json| {
            gc(&store, &dir.path().join("runs"), (runs, &marks), keep, dry_run, as_json)
        };
        let foreseen: Value = serde_json::from_str(&gc(&runs, &keep, true, true).unwrap()).unwrap();
        assert_eq!(foreseen["dry_run"], true);
        assert_eq!(foreseen["runs_kept"], json!(["b"]));
        assert_eq!(foreseen["runs_dropped"], json!(["a"]));
        let done: Value = serde_json::from_str(&gc(&runs, &keep, false, true).unwrap()).unwrap();
        assert_eq!(done["bytes"], foreseen["bytes"]);
        assert!(store.action(key("a")).unwrap().is_none() && store.action(key("b")).unwrap().is_some());
        assert_eq!(
            gc(&runs[1..], &keep, false, false).unwrap(),
            "0 B freed; 1 blob (8 B) stay, for 1 run and by age\n"
        );

        let unknown = Keep {
            runs: BTreeSet::from(["zzz".to_owned()]),
            ..keep
        };
        let err = gc(&runs, &unknown, false, false).unwrap_err();
        assert_eq!(err.code, runner_engine::exit::WRONG_USAGE);

        let (text, clean) = verify(&store, 1.0, false, |_| {}).unwrap();
        assert_eq!(
            text,
            "read 1 blob (8 B), 1 action record and 0 memos\nno damage found\n"
        );
        assert!(clean);
        let log = store.action(key("b")).unwrap().unwrap().log.unwrap();
        let path = store.blob_path(log.blob);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"log of x").unwrap();
        let (text, clean) = verify(&store, 1.0, true, |_| {}).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert!(!clean && report["clean"] == false);
        assert_eq!(report["damaged"], json!([log.blob]));
    }
}
