//! Searches: what is computed, what is not computed again, and what is refused.

use crate::{Ended, Project};
use std::collections::BTreeMap;

/// The score is best at x = 0.3 and y = 2, and grows with the steps; a trial fails where x is above 0.8.
const PIPELINE: &str = r#"
version: 1
name: tune
params: { x: 0.5, y: 1, steps: 90, seed: 1, trials: 12 }
stages:
  train:
    run: |
      awk -v x=${params.x} -v y=${params.y} -v n=${params.steps} -v s=${params.seed} 'BEGIN {
        if (x > 0.8) exit 3
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

/// The jobs of the only search: a later decision replaces those from its number on.
fn decisions(project: &Project) -> Vec<serde_json::Value> {
    let mut jobs = Vec::new();
    for job in record(project, "decided") {
        jobs.truncate(job["job"].as_u64().unwrap() as usize);
        jobs.push(job);
    }
    jobs
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
    let decided = decisions(&project);
    let more = project.exec(&["--set", "trials=20"]);
    assert!(ran(&more)["train"] <= 2 * (8 + 4 + 2) + 2, "{:?}", ran(&more));
    // After its last proposal, the smaller search promotes what the larger one need not.
    let common = decided.iter().rposition(|job| job["rung"] == 0).unwrap();
    assert_eq!(decisions(&project)[..=common], decided[..=common]);

    // Without its record, the search comes to the same trials, and all of them are cached.
    let all = decisions(&project);
    std::fs::remove_dir_all(project.home().join("searches")).unwrap();
    assert_eq!(ran(&project.exec(&["--set", "trials=20"])), BTreeMap::new());
    assert_eq!(decisions(&project), all);
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
    let all = record(&project, "ended");
    let failed = all.iter().filter(|line| line["error"].is_string()).count();
    assert!(failed > 0, "no trial is above 0.8");
    assert!(ended.text().contains("failed: "), "{}", ended.text());
    // Where all fail, the search ends and says why.
    let none = Project::new(PIPELINE.replace("x > 0.8", "x > -1"));
    let ended = none.exec(&[]);
    assert_ne!(ended.code, 0, "{}", ended.text());
    assert!(
        ended.stderr.contains("the first 5 jobs of the search failed"),
        "{}",
        ended.stderr
    );
}

/// Each sampler, pruner and key of the block ends with a result, and is cached when it is run again.
#[test]
fn every_key_of_a_search_runs_and_runs_again_from_the_cache() {
    for (name, changes) in [
        (
            "synchronous",
            &[("sampler: random", "sampler: tpe\n  synchronous: true\n  batch: 4")][..],
        ),
        (
            "hyperband",
            &[("asha:", "hyperband:"), ("sampler: random", "sampler: sobol")],
        ),
        ("median", &[("asha:", "median:"), ("sampler: random", "sampler: gp")]),
        (
            "cma_es",
            &[
                ("sampler: random", "sampler: cma_es"),
                ("    y: { choice: [1, 2, 3] }\n", ""),
            ],
        ),
        (
            "constraints",
            &[("  seeds:", "  constraints: ['train.score <= -0.02']\n  seeds:")],
        ),
        (
            "several",
            &[(
                "{ maximize: train.score }",
                "[{ maximize: train.score }, { minimize: train.score }]",
            )],
        ),
        (
            "budget",
            &[("trials: ${params.trials}\n", "trials: 100000\n  budget: { wall: 1s }\n")],
        ),
        (
            "when",
            &[
                ("seed: 1,", "seed: 1, way: a,"),
                (
                    "y: { choice: [1, 2, 3] }",
                    "y: { choice: [1, 2, 3], when: { way: a } }\n    way: { choice: [a, b] }",
                ),
            ],
        ),
        ("first", &[("  seeds:", "  first: [{ x: 0.3 }, {}]\n  seeds:")]),
        ("no_fresh_seeds", &[("  seeds:", "  final_seeds: 0\n  seeds:")]),
    ] {
        let text = changes.iter().fold(PIPELINE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{name}: {from}");
            text.replacen(from, to, 1)
        });
        let project = Project::new(text);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{name}: {}", ended.text());
        assert!(!record(&project, "ended").is_empty(), "{name}");
        let runs = record(&project, "ran");
        assert_eq!(runs.last().unwrap()["done"], true, "{name}: {}", ended.text());
        assert_eq!(ran(&project.exec(&[])), BTreeMap::new(), "{name}");
        // The figures of fresh seeds are those of the objective alone.
        for last in record(&project, "final") {
            assert_eq!(last["outcome"]["objectives"][0].as_array().unwrap().len(), 1, "{name}");
        }
    }
}

/// Trials of another search of the same space are observations, which are written down.
#[test]
fn a_warm_start_begins_with_the_trials_of_another_search() {
    let project = project();
    assert_eq!(project.exec(&[]).code, 0);
    project.write(
        "p.yaml",
        PIPELINE.replace("sampler: random", "sampler: tpe\n  warm_start: true"),
    );
    let warm = project.exec(&["--set", "trials=3"]);
    assert_eq!(warm.code, 0, "{}", warm.text());
    let folder = std::fs::read_dir(project.home().join("searches")).unwrap();
    let texts = folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let headers = texts.filter_map(|text| {
        let first = text.lines().find(|line| !line.is_empty())?.to_owned();
        serde_json::from_str::<serde_json::Value>(&first).ok()
    });
    let counts: Vec<usize> = headers
        .map(|header| header["warm"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!((counts.iter().min(), counts.len()), (Some(&0), 2));
    assert!(counts.iter().max() > Some(&8), "{counts:?}");
}

#[test]
fn a_setting_that_is_set_and_searched_is_refused() {
    let ended = project().exec(&["--set", "x=0.5"]);
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("`x` is set, and is searched"), "{}", ended.stderr);
}

/// Trainings that stop at rungs, on a market without an edge.
const NULL: &str = "\
version: 1
name: null_search
stages:
  rows: { uses: ingest/table, with: { path: rows.csv } }
  env:
    uses: env/table
    needs: { table: rows }
    with:
      observe: [a, b, c, d]
      price: close
      validation: { from: 2020-07-01, to: 2020-12-31 }
      test: { from: 2021-01-15, to: 2021-12-31 }
      episode_length: 20
      costs: { basis_points: 0 }
      actions: { kind: discrete, positions: [-1, 0, 1] }
  train:
    uses: train/ppo
    needs: { env: env }
    with:
      total_timesteps: 512
      n_envs: 2
      n_steps: 32
      batch_size: 64
      n_epochs: 2
      seed: 1
      learning_rate: { linear: [1e-2, 0] }
  validate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { on: validation, QUICK }
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { QUICK }
search:
  over: { train.with.gamma: { uniform: [0.5, 0.99] }, train.with.ent_coef: { log: [1e-4, 0.1] } }
  objective: { maximize: validate.utility }
  trials: 16
  pruner: { asha: { resource: train.total_timesteps, min: 64 } }
";

const QUICK: &str =
    "random_paths: 1, drawn_paths: 1, bootstrap_draws: 20, ablations: false, rules: false, baselines: [cash]";

fn noise() -> Project {
    let project = Project::new(NULL.replace("QUICK", QUICK));
    project.write("rows.csv", crate::trials::rows());
    project
}

#[test]
fn a_search_where_nothing_is_to_be_found_says_so() {
    let project = noise();
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let summary = |stage: &str| {
        let (_, artifact) = crate::artifact(&project, &ended, &format!("{stage}.metrics"));
        artifact.meta["summary"].clone()
    };
    let found = summary("overfitting");
    println!("{found}");
    // The test range was read by the best trial alone, and its deflation knows of all that were tried.
    let value = |name: &str| found[name].as_f64().unwrap();
    assert_eq!(value("trials_given"), 16.0, "{found}");
    assert!(value("trials") >= 16.0, "{found}");
    assert!(value("deflated_sharpe") < 0.95, "{found}");
    assert!(value("test/utility_low") < 0.0, "{found}");
    let tested = ended
        .stages("ran")
        .into_iter()
        .filter(|stage| stage.starts_with("evaluate"));
    assert_eq!(tested.count(), 1);
    assert!(summary("evaluate[seed=2]")["trials"].as_f64().unwrap() >= 16.0);

    // Each stage is compared where it belongs: a training of all steps has no rung, and is in none of them.
    let compared: serde_json::Value =
        serde_json::from_str(&project.run(&["compare", "latest", "--each", "--json"]).stdout).unwrap();
    let rung = |id: &str| Some(id.split_once("rung=")?.1.split([',', ']']).next()?.to_owned());
    let mut shown: Vec<String> = Vec::new();
    for group in compared["groups"].as_array().unwrap() {
        for point in group["points"].as_array().unwrap() {
            for stage in point["stages"].as_array().unwrap() {
                let id = stage["stage"].as_str().unwrap();
                // `overfitting` is of all trials.
                if !id.contains('[') {
                    continue;
                }
                assert_eq!(rung(id), rung(point["point"].as_str().unwrap()), "{point}");
                shown.push(id.to_owned());
            }
        }
    }
    shown.sort();
    let mut trained = ended.stages("ran");
    trained.retain(|id| id.starts_with("train") || id.starts_with("validate") || id.starts_with("evaluate"));
    trained.sort();
    assert_eq!(shown, trained);

    // The policy of a trial that went on from rung to rung is that of a training that was never stopped.
    let decided = record(&project, "decided");
    let last = decided.iter().find(|job| job["rung"] == 2).unwrap();
    let settings = last["settings"].as_object().unwrap();
    let set: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fresh = noise();
    let mut arguments = vec!["train"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let by_hand = fresh.exec(&arguments);
    assert_eq!(by_hand.code, 0, "{}", by_hand.text());
    let id = format!("train[seed=1,trial={}]", last["trial"]);
    assert_eq!(ended.digests()[&id], by_hand.digests()["train"]);
}

#[test]
fn a_search_that_cannot_be_run_is_refused_before_anything_runs() {
    for (from, to, part) in [
        ("train.score", "train.scor", "did you mean `score`?"),
        ("train.score", "trian.score", "did you mean `train`?"),
        (
            "x: { uniform: [0, 1] }",
            "z: { uniform: [0, 1] }",
            "`z` is not a setting of the pipeline",
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

/// Trials of a few thousand steps, whose rungs go on from the states of those below.
const TRAININGS: &str = r#"
version: 1
name: trainings
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { seed: 1, total_timesteps: 8192, n_envs: 8, n_steps: 32, validation: { every: 0 } }
  validate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { on: validation, baselines: [], ablations: false, random_paths: 1, bootstrap_draws: 1 }
search:
  over:
    train.with.learning_rate: { log: [1e-5, 1e-1] }
    train.with.n_epochs: { integer: [1, 20] }
  objective: { maximize: validate.episodic_return }
  seeds: 2
  trials: 24
  pruner: { asha: { resource: train.total_timesteps, min: 911, factor: 3 } }
"#;

#[test]
fn killed_at_any_moment_a_search_ends_in_the_same_trials_and_bytes() {
    // Jobs end in any order, but each with the same result.
    let ended = |project: &Project| {
        let lines = record(project, "ended").into_iter();
        lines
            .map(|line| (line["job"].as_u64(), line))
            .collect::<BTreeMap<_, _>>()
    };
    let whole = Project::new(TRAININGS);
    let began = std::time::Instant::now();
    let reference = whole.exec(&[]);
    assert_eq!(reference.code, 0, "{}", reference.text());
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap();
    let project = Project::new(TRAININGS);
    crate::killed::kill_ten_times(&project, millis, 6);
    let again = project.exec(&[]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert_eq!(record(&project, "decided"), record(&whole, "decided"));
    assert_eq!(ended(&project), ended(&whole));
    assert_eq!(again.digests(), reference.digests());
}
