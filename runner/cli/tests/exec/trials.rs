//! Trials: the policies that were evaluated on the same test data, by any pipeline of a home.

use crate::{Ended, Project, artifact};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PIPELINE: &str = "\
version: 1
name: sweep
stages:
  rows: { uses: ingest/table, with: { path: FILE } }
  env:
    uses: env/table
    needs: { table: rows }
    with:
      observe: [a, b, c, d]
      price: close
      test: { from: 2021-01-01, to: 2021-12-31 }
      episode_length: 20
      costs: { basis_points: 0 }
      actions: { kind: discrete, positions: [-1, 0, 1] }
  train:
    uses: train/ppo
    needs: { env: env }
    matrix: { seed: [SEEDS] }
    with: { total_timesteps: 64, n_envs: 2, n_steps: 32, batch_size: 64, n_epochs: 1, seed: '${matrix.seed}' }
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { random_paths: 1, drawn_paths: 1, bootstrap_draws: 2, ablations: false, rules: false, baselines: [cash] }
";

fn pipeline(file: &str, seeds: std::ops::RangeInclusive<u32>) -> String {
    let seeds: Vec<String> = seeds.map(|seed| seed.to_string()).collect();
    PIPELINE.replace("FILE", file).replace("SEEDS", &seeds.join(", "))
}

/// Weekdays from 2019-01-02 to 2022: prices without an edge, and signals that mean nothing.
pub(crate) fn rows() -> String {
    let first: datasets::Date = "2019-01-02".parse().unwrap();
    let (mut state, mut price) = (7_u64, 100.0);
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    };
    let mut text = "date,symbol,close,a,b,c,d\n".to_owned();
    let days = (0..1461).map(|day| first.plus(day));
    for day in days.filter(|day| !day.is_weekend()) {
        price *= 1.0 + 0.02 * uniform();
        let _ = write!(text, "{day},AAA,{price:.4}");
        for _ in 0..4 {
            let _ = write!(text, ",{:.4}", uniform());
        }
        text.push('\n');
    }
    text
}

/// A metric of each evaluation of a run.
fn metrics(project: &Project, ended: &Ended, name: &str) -> BTreeMap<String, f64> {
    assert_eq!(ended.code, 0, "{}", ended.text());
    let stages = ["cached", "ran"].map(|status| ended.stages(status)).concat();
    let evaluations = stages.into_iter().filter(|stage| stage.starts_with("evaluate"));
    evaluations
        .map(|stage| {
            let (_, found) = artifact(project, ended, &format!("{stage}.metrics"));
            let value = found.meta["summary"][name].as_f64();
            (stage, value.unwrap_or_else(|| panic!("{name}: {}", found.meta)))
        })
        .collect()
}

fn all(project: &Project, ended: &Ended) -> Vec<f64> {
    let mut trials: Vec<f64> = metrics(project, ended, "trials").into_values().collect();
    trials.dedup();
    trials
}

/// In a market without an edge, the best of a sweep looks good by itself, and not as the best of so many.
#[test]
fn a_sweep_counts_as_many_trials_as_it_has_policies() {
    let project = Project::new(pipeline("rows.csv", 1..=20));
    project.write("rows.csv", rows());
    let first = project.exec(&[]);
    assert_eq!(all(&project, &first), [20.0]);
    let best =
        |ended: &Ended, name: &str| metrics(&project, ended, name).into_values().fold(f64::MIN, f64::max);
    let looks = |ended: &Ended| (best(ended, "probabilistic_sharpe"), best(ended, "deflated_sharpe"));
    let (alone, of_all) = looks(&first);
    println!("20 seeds: probabilistic {alone:.4}, deflated {of_all:.4}");
    assert!(alone > 0.9 && of_all < 0.5, "{alone} {of_all}");
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());

    project.write("p.yaml", pipeline("rows.csv", 1..=200));
    let planned = project.run(&["plan", "p.yaml"]);
    assert!(planned.stdout.contains("with.trials: 20 -> 200"), "{}", planned.stdout);
    let sweep = project.exec(&[]);
    assert_eq!(all(&project, &sweep), [200.0]);
    assert_eq!(metrics(&project, &sweep, "trials").len(), 200);
    let (alone, of_all) = looks(&sweep);
    println!("200 seeds: probabilistic {alone:.4}, deflated {of_all:.4}");
    assert!(alone > 0.95 && of_all < 0.8, "{alone} {of_all}");
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    // A part of the sweep is of as many trials.
    let part = project.exec(&["evaluate[seed=7]"]);
    assert_eq!((part.stages("ran"), all(&project, &part)), (Vec::new(), vec![200.0]));

    // Another pipeline with another seed, by the same file at another path.
    std::os::unix::fs::symlink(project.path("rows.csv"), project.path("other.csv")).unwrap();
    project.write("p.yaml", pipeline("other.csv", 1000..=1000).replace("sweep", "another"));
    let another = project.exec(&[]);
    assert_eq!(all(&project, &another), [201.0]);
    let by = |test: &str| project.exec(&["--set", &format!("env.with.test.{test}")]);
    // Dates that do not overlap are another test; a year less or more is not.
    let apart = by("from=2022-01-01");
    assert_eq!(apart.code, 2, "from is after to");
    let apart = project.exec(&["--set", "env.with.test={ from: 2022-01-01, to: 2022-12-31 }"]);
    assert_eq!(all(&project, &apart), [1.0]);
    assert_eq!(all(&project, &by("from=2021-06-01")), [202.0]);
    // What was tried stays tried.
    assert_eq!(project.run(&["runs", "prune", "--keep", "1"]).code, 0);
    assert_eq!(all(&project, &by("from=2021-06-01")), [202.0]);
    // What is typed is a lower bound.
    let typed = |trials: u32| project.exec(&["--set", &format!("evaluate.with.trials={trials}")]);
    assert_eq!(all(&project, &typed(2)), [202.0]);
    assert_eq!(all(&project, &typed(500)), [500.0]);
}

/// A search chooses by validation data: its evaluations are no trials of the test range, and an
/// environment without such data is refused.
#[test]
fn validation_is_no_trial_of_the_test_range() {
    let (before, evaluate) = PIPELINE.split_once("  evaluate:\n").unwrap();
    let validated = evaluate.replace("random_paths", "on: validation, random_paths");
    let text = format!("{before}  evaluate_validation:\n{validated}  evaluate:\n{evaluate}")
        .replace("FILE", "rows.csv")
        .replace("SEEDS", "1, 2, 3");
    let project = Project::new(text.as_str());
    project.write("rows.csv", rows());
    let planned = project.run(&["plan", "p.yaml"]);
    assert_eq!(planned.code, 2, "{}", planned.text());
    assert!(
        planned.stderr.contains("the environment holds no validation data out"),
        "{}",
        planned.stderr
    );
    assert!(planned.stderr.contains("on: validation"), "{}", planned.stderr);
    let held = "      validation: { from: 2020-07-01, to: 2020-12-15 }\n      test: {";
    project.write("p.yaml", text.replace("      test: {", held));
    let chosen = project.exec(&["evaluate_validation"]);
    assert_eq!(metrics(&project, &chosen, "trials").len(), 3);
    assert_eq!(all(&project, &chosen), [1.0]);
    assert!(!project.home().join("trials.jsonl").exists());
    let tested = project.exec(&["evaluate[seed=2]"]);
    assert_eq!(all(&project, &tested), [1.0]);
    let all_tested = project.exec(&["evaluate"]);
    assert_eq!(all(&project, &all_tested), [3.0]);
    assert_eq!(
        project.exec(&["evaluate_validation"]).stages("ran"),
        Vec::<String>::new()
    );
}

/// A stage that failed has evaluated nothing, and a damaged line is none.
#[test]
fn trials_are_evaluations_that_ended() {
    let project = Project::new(pipeline("rows.csv", 1..=2));
    project.write("rows.csv", rows());
    let failed = project.exec(&[
        "--keep-going",
        "--set",
        "train.with.learning_rate=1e30",
        "--set",
        "train.with.total_timesteps=512",
    ]);
    assert_ne!(failed.code, 0, "{}", failed.text());
    assert_eq!(all(&project, &project.exec(&[])), [2.0]);
    let path = project.home().join("trials.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 2, "{text}");
    std::fs::write(&path, text.replacen("stage", "stagf", 1)).unwrap();
    project.write("p.yaml", pipeline("rows.csv", 3..=3));
    assert_eq!(all(&project, &project.exec(&[])), [2.0]);
}

/// Folds are tests apart: each counts its own seeds.
#[test]
fn folds_of_a_walk_forward_are_counted_apart() {
    let axis = "    matrix: { fold: { from: 2019-01-02, to: 2022-12-31, train: 2y, test: 1y } }
    with:
      train: '${matrix.fold.train}'
      test: '${matrix.fold.test}'
";
    let folds = pipeline("rows.csv", 1..=2)
        .replace("      test: { from: 2021-01-01, to: 2021-12-31 }\n", "")
        .replacen("    with:\n", axis, 1);
    let project = Project::new(folds);
    project.write("rows.csv", rows());
    let ended = project.exec(&[]);
    assert_eq!(metrics(&project, &ended, "trials").len(), 4, "{}", ended.text());
    assert_eq!(all(&project, &ended), [2.0]);
}

/// A registered policy is the one that was trained, wherever it is evaluated.
#[test]
fn a_policy_of_an_earlier_run_is_no_further_trial() {
    let first = pipeline("rows.csv", 1..=1);
    let registered = "    register: { policy: desk, alias: champion }\n    matrix";
    let project = Project::new(first.replace("    matrix", registered));
    project.write("rows.csv", rows());
    assert_eq!(all(&project, &project.exec(&[])), [1.0]);
    let (before, rest) = first.split_once("  train:").unwrap();
    let (_, after) = rest.split_once("  evaluate:").unwrap();
    let acted = format!("{before}  evaluate:{after}").replace("policy: train", "policy: desk@champion");
    project.write("p.yaml", acted.replace("name: sweep", "name: champion"));
    let again = project.exec(&[]);
    assert_eq!(all(&project, &again), [1.0]);
    assert_eq!(again.stages("ran"), Vec::<String>::new());
    project.write("p.yaml", pipeline("rows.csv", 2..=2));
    assert_eq!(all(&project, &project.exec(&[])), [2.0]);
}
