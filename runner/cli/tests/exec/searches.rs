//! Searches: what is computed, what is not computed again, and what is refused.

use crate::{Ended, Project};
use std::collections::BTreeMap;

/// The score is best at x = 0.3 and y = 2, and grows with the steps; a trial fails where x is above 0.95.
const PIPELINE: &str = r#"
version: 1
name: tune
params: { x: 0.5, y: 1, steps: 90, seed: 1, trials: 12 }
stages:
  train:
    run: |
      awk -v x=${params.x} -v y=${params.y} -v n=${params.steps} -v s=${params.seed} 'BEGIN {
        if (x > 0.95) exit 3
        score = -(x - 0.3)^2 - (y != 2) - 1 / n + s / 1e6
        printf "{\"name\":\"score\",\"step\":1,\"value\":%.9f}\n", score }' > ${outputs.metrics}
    outputs: { metrics: { path: m.jsonl, type: metrics } }
  final:
    run: cp ${needs.metrics} ${outputs.copy}
    needs: { metrics: train.metrics }
    outputs: { copy: copy.jsonl }
search:
  over:
    x: { uniform: [0, 1] }
    y: { choice: [1, 2, 3] }
  objective: { maximize: train.score }
  seeds: { count: 2, set: seed }
  trials: ${params.trials}
  sampler: random
  pruner: { asha: { resource: steps, min: 10, factor: 3 } }
"#;

fn project() -> Project {
    Project::new(PIPELINE)
}

/// The stages that ran, without points: the number of each.
fn ran(ended: &Ended) -> BTreeMap<String, usize> {
    assert_eq!(ended.code, 0, "{}", ended.text());
    let mut counts = BTreeMap::new();
    for stage in ended.stages("ran") {
        let name = stage.split('[').next().unwrap_or_default().to_owned();
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

/// The lines of the record of the only search, without times.
fn record(project: &Project, event: &str) -> Vec<serde_json::Value> {
    let mut files = std::fs::read_dir(project.home().join("searches")).unwrap();
    let path = files.next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut lines: Vec<_> = lines.filter(|line| line["event"] == event).collect();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        fields.remove("time");
        fields.remove("seconds");
        fields.remove("checksum");
    }
    lines
}

#[test]
fn a_search_computes_each_rung_once_and_the_best_on_fresh_seeds() {
    let project = project();
    let first = project.exec(&[]);
    let counts = ran(&first);
    println!("{}\n{}", first.stderr, first.stdout);
    // Twelve trials, four and one of which go on, with two seeds each; and two fresh seeds of the best.
    assert!(counts["train"] >= 2 * (12 + 4 + 1) - 2 * 3, "{counts:?}");
    assert_eq!(counts["final"], 2, "{counts:?}");
    let finals = record(&project, "final");
    assert_eq!(finals[0]["seeds"], serde_json::json!([3, 4]));

    let again = project.exec(&[]);
    assert_eq!(ran(&again), BTreeMap::new());
    assert_eq!(record(&project, "final").len(), 1);

    // More trials compute the difference alone.
    let decided = record(&project, "decided");
    let more = project.exec(&["--set", "trials=20"]);
    assert!(ran(&more)["train"] <= 2 * (8 + 4 + 2) + 2, "{:?}", ran(&more));
    assert_eq!(record(&project, "decided")[..decided.len()], decided[..]);

    // Without its record, the search comes to the same trials, and all of them are cached.
    let all = record(&project, "decided");
    std::fs::remove_dir_all(project.home().join("searches")).unwrap();
    assert_eq!(ran(&project.exec(&["--set", "trials=20"])), BTreeMap::new());
    assert_eq!(record(&project, "decided"), all);
}

/// Seeds and settings of a trial give the key of the same training outside a search.
#[test]
fn a_trial_in_full_is_a_usual_run() {
    let project = project();
    let search = project.exec(&["--set", "trials=3"]);
    assert_eq!(search.code, 0, "{}", search.text());
    let best = record(&project, "final")[0]["trial"].as_u64().unwrap();
    let decided = record(&project, "decided");
    let job = decided.iter().find(|job| job["trial"] == best).unwrap();
    let (x, y) = (&job["settings"]["x"], &job["settings"]["y"]);
    let by_hand = project.exec(&[
        "train",
        "--set",
        &format!("x={x}"),
        "--set",
        &format!("y={y}"),
        "--set",
        "seed=3",
    ]);
    assert_eq!(by_hand.stages("cached"), ["train"], "{}", by_hand.text());
}

#[test]
fn a_trial_that_fails_is_a_result() {
    let project = project();
    let ended = project.exec(&["--set", "trials=30"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let failed = record(&project, "ended")
        .iter()
        .filter(|line| line["error"].is_string())
        .count();
    assert!(failed > 0, "no trial is above 0.95");
    assert!(ended.stderr.contains("failed: "), "{}", ended.stderr);
    // All fail: the search ends, and says why.
    let all = project.exec(&["--set", "x=0.5", "--set", "trials=9"]);
    assert_eq!(all.code, 2);
}

#[test]
fn a_search_that_cannot_be_run_is_refused_before_anything_runs() {
    for (from, to, part) in [
        ("train.score", "train.scor", "did you mean `score`?"),
        ("train.score", "trian.score", "did you mean `train`?"),
        (
            "x: { uniform: [0, 1] }",
            "z: { uniform: [0, 1] }",
            "`z` is no setting of the pipeline",
        ),
        ("{ uniform: [0, 1] }", "{ uniform: [1, 0] }", "has invalid bounds"),
        ("{ uniform: [0, 1] }", "{ unifrom: [0, 1] }", "did you mean `uniform`?"),
        ("{ choice: [1, 2, 3] }", "{ choice: [1, two] }", "does not fit"),
        ("resource: steps", "resource: step", "did you mean `steps`?"),
        ("min: 10", "min: 100", "the first rung of the search is 100"),
        ("sampler: random", "sampler: cma_es", "cma_es"),
        ("{ count: 2, set: seed }", "2", "trains with a `seed`"),
    ] {
        let project = Project::new(PIPELINE.replace(from, to));
        let ended = project.exec(&[]);
        assert_ne!(ended.code, 0, "{to}: {}", ended.text());
        assert!(ended.stderr.contains(part), "{to}: {}", ended.stderr);
        if part != "did you mean `score`?" {
            assert_eq!(ended.stages("ran"), Vec::<String>::new(), "{to}");
        }
    }
}
