//! A table of one's own, from files or a program, through `env/table` to an evaluation.

use crate::Project;
use runner_testkit::Ended;
use serde_json::Value;

fn shipped() -> String {
    std::fs::read_to_string("../../pipelines/own_table.yaml").unwrap()
}

fn show(project: &Project, what: &str) -> Value {
    let output = project.command(&["show", "--json", what]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The example of the documentation: in seconds PPO earns what no constant position does, and without the
/// edge it does not.
#[test]
fn a_policy_beats_every_constant_position_where_there_is_an_edge() {
    let project = Project::new(shipped());
    let ended = project.exec(&[]);
    assert_eq!(
        ended.stages("ran"),
        ["program", "rows", "env", "train", "evaluate"],
        "{}",
        ended.text()
    );
    assert!(!ended.stderr.contains("not in its key"), "{}", ended.stderr);
    let summary = show(&project, "latest/evaluate.metrics")["meta"]["summary"].clone();
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}: {summary}"));
    let best = ["-1", "0", "1"]
        .map(|position| of(&format!("baseline/always_position_{position}/total_return")))
        .into_iter()
        .fold(f64::MIN, f64::max);
    assert!(of("total_return") > best + 1.0, "{} {best}", of("total_return"));
    assert!(of("sharpe") > 3.0);
    let nothing = project.exec(&["--set", "edge=0"]);
    assert_eq!(nothing.code, 0, "{}", nothing.text());
    let summary = show(&project, "latest/evaluate.metrics")["meta"]["summary"].clone();
    assert!(summary["sharpe"].as_f64().unwrap().abs() < 1.5, "{summary}");
}

const PIPELINE: &str = "\
version: 1
name: own
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month } }
  env:
    uses: env/table
    needs: { table: rows }
    with: { price: close, test_fraction: 0.3, episode_length: 20, purge: 0, embargo: 0, ACTIONS }
  policy: { uses: TRAINER }
  evaluate: \
{ uses: evaluate/backtest, needs: { env: env, policy: policy }, with: { random_paths: 2, bootstrap_draws: 10 } }
";

const PPO: &str =
    "train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 }";

fn pipeline(actions: &str, trainer: &str) -> String {
    PIPELINE.replace("ACTIONS", actions).replace("TRAINER", trainer)
}

/// Rows of two symbols on so many weekdays from 2019-01-02 on.
fn rows(count: usize) -> String {
    let first: datasets::Date = "2019-01-02".parse().unwrap();
    let days = (0..).map(|i| first.plus(i)).filter(|date| !date.is_weekend());
    let mut text = "date,symbol,close,signal\n".to_owned();
    for (i, day) in days.take(count).enumerate() {
        for (s, symbol) in ["AAA", "BBB"].iter().enumerate() {
            let close = 50.0 + ((i * (s + 3)) % 17) as f64;
            text.push_str(&format!("{day},{symbol},{close},{}\n", (i * 7 + s * 3) % 11));
        }
    }
    text
}

/// The sentence of a stage about its parts.
fn computed(ended: &Ended, stage: &str) -> String {
    let events = ended.events();
    let mut lines = events
        .iter()
        .filter(|event| event["event"] == "log" && event["stage"] == stage)
        .filter_map(|event| event["line"].as_str().map(str::to_owned));
    lines.find(|line| line.starts_with("computed ")).unwrap_or_default()
}

#[test]
fn a_day_that_is_appended_recomputes_one_partition() {
    let project = Project::new(pipeline("actions: { kind: discrete }", PPO));
    project.write("rows.csv", rows(200));
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    let partitions = || -> Vec<String> {
        let entries = show(&project, "latest/rows.table")["entries"].clone();
        let entries = entries.as_array().unwrap().iter();
        entries
            .map(|entry| format!("{} {}", entry["path"].as_str().unwrap(), entry["blob"]))
            .collect()
    };
    let before = partitions();
    assert_eq!(before.len(), 10, "January to October: {before:?}");
    assert!(project.exec(&[]).stages("ran").is_empty());
    project.write("rows.csv", rows(201));
    let appended = project.exec(&[]);
    assert_eq!(
        appended.stages("ran"),
        ["rows", "env", "policy", "evaluate"],
        "{}",
        appended.text()
    );
    assert_eq!(
        computed(&appended, "rows"),
        "computed 2 of 11 parts: 2019-10-01_2019-10-31, rows.csv (rows)"
    );
    let after = partitions();
    assert_eq!(before[..9], after[..9]);
    assert_ne!(before[9], after[9]);
    // The same rows in another order: the environment is that of before. A policy of other bytes is one more
    // trial until it is trained, so that the evaluation is deflated anew.
    let text = rows(201);
    let (header, lines) = text.split_once('\n').unwrap();
    let lines: Vec<&str> = lines.lines().rev().collect();
    project.write("rows.csv", format!("{header}\n{}\n", lines.join("\n")));
    let reversed = project.exec(&[]);
    assert_eq!(reversed.stages("ran"), ["rows", "evaluate"], "{}", reversed.text());
}

/// Every kind of trainer takes the actions that it knows, and the evaluation has the baselines of each.
#[test]
fn trainers_and_actions() {
    let off_policy = "needs: { env: env }, with: { total_timesteps: 200, learning_starts: 100 }";
    for (actions, trainer, baseline) in [
        (
            "actions: { kind: discrete, positions: [0, 1] }",
            PPO.to_owned(),
            "always_position_1",
        ),
        (
            "actions: { kind: discrete }",
            "train/recurrent_ppo, needs: { env: env }, with: { total_timesteps: 256, n_envs: 4 }".to_owned(),
            "underlying",
        ),
        (
            "actions: { kind: continuous }",
            format!("train/sac, {off_policy}"),
            "underlying",
        ),
        (
            "actions: { kind: continuous, low: 0 }",
            format!("train/td3, {off_policy}"),
            "cash",
        ),
        ("actions: { kind: weights }", PPO.to_owned(), "equal_weight"),
        (
            "actions: { kind: weights, low: 0 }",
            format!("train/sac, {off_policy}"),
            "equal_weight_held",
        ),
    ] {
        let project = Project::new(pipeline(actions, &trainer));
        project.write("rows.csv", rows(200));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{actions} {trainer}: {}", ended.text());
        let summary = show(&project, "latest/evaluate.metrics")["meta"]["summary"].clone();
        let name = format!("baseline/{baseline}/total_return");
        assert!(summary[&name].is_number(), "{actions} {trainer} {name}: {summary}");
    }
}

/// Columns of rewards in place of a price: one for each unit of position, or one for each choice.
#[test]
fn reward_columns() {
    for (instead, names) in [
        (
            "reward_column: signal, reward: paid - 0.1 * turnover",
            ["always_position_-1", "always_position_1"],
        ),
        (
            "action_rewards: [close, signal], observe: [close]",
            ["always_close", "always_signal"],
        ),
    ] {
        let project =
            Project::new(pipeline("costs: { basis_points: 1 }", PPO).replace("price: close", instead));
        project.write("rows.csv", rows(200));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let summary = show(&project, "latest/evaluate.metrics")["meta"]["summary"].clone();
        for name in names {
            let name = format!("baseline/{name}/episodic_return");
            assert!(summary[&name].is_number(), "{name}: {summary}");
        }
        assert_eq!(summary["episodes"], 2.0);
    }
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    for (from, to, wanted) in [
        ("price: close", "price: closed", "did you mean `close`?"),
        (
            "price: close",
            "price: close, reward: returns",
            "unknown name `returns`",
        ),
        ("price: close", "observe: [signal]", "nothing says what a step pays"),
        (
            "price: close",
            "price: close, terminate: drawdown",
            "is a number, not a condition",
        ),
        ("needs: { table: rows }\n    with", "with", "no table is connected"),
        (
            "path: rows.csv",
            "path: rows.csv, columns: [close, sgnal]",
            "has no column of `sgnal`",
        ),
        (
            "path: rows.csv",
            "path: rows.csv, zone: Mars",
            "there is no time zone `Mars`",
        ),
    ] {
        let project = Project::new(pipeline("actions: { kind: discrete }", PPO).replace(from, to));
        project.write("rows.csv", rows(50));
        let refused = project.exec(&[]);
        assert_eq!(refused.code, 2, "{to}: {}", refused.text());
        assert!(refused.stderr.contains(wanted), "{to}: {}", refused.stderr);
        assert!(refused.stages("ran").is_empty());
    }
    // What only the rows tell fails the stage, with place and remedy.
    let project = Project::new(pipeline("actions: { kind: discrete }", PPO));
    project.write("rows.csv", rows(50).replace("2019-01-10,BBB,57,", "2019-01-10,BBB,,"));
    let failed = project.exec(&[]);
    assert_eq!(
        failed.error("env"),
        "`close` of `BBB` has no value at 2019-01-10; so it is at 1 of 50 instants",
        "{}",
        failed.text()
    );
}

/// A program writes the type itself, with instants; what does not fit names its place.
#[test]
fn a_program_writes_a_table() {
    let text = pipeline("actions: { kind: discrete }", PPO).replace(
        "{ uses: ingest/table, with: { path: rows.csv, partition: month } }",
        "\n    run: cp rows.csv ${outputs.rows}\n    files: [rows.csv]\n    outputs: \
        { rows: { path: out.csv, type: table } }",
    );
    let project = Project::new(&text);
    let mut rows = "snapshot,close,signal\n".to_owned();
    for i in 0..400 {
        let day: datasets::Date = "2019-01-02".parse().unwrap();
        let (day, hour) = (day.plus(i / 4), 9 + 2 * (i % 4));
        rows.push_str(&format!("{day}T{hour:02}:30:00Z,{},{}\n", 50 + i % 7, i % 5));
    }
    project.write("rows.csv", &rows);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let shown = show(&project, "latest/rows.rows");
    assert_eq!(shown["meta"]["columns"], serde_json::json!(["close", "signal"]));
    project.write(
        "rows.csv",
        rows.replace("2019-01-05T09:30:00Z,55,", "2019-01-05T09:30:00Z,high,"),
    );
    let failed = project.exec(&[]);
    let error = failed.error("rows");
    assert!(
        error.starts_with(
            "the output `rows` is not a data set of the type `table`: `out.csv`, row 14, column \
            `close`: `high` is not a number"
        ),
        "{error}"
    );
    let described = project.run(&["stages", "--type", "table"]);
    assert!(
        described
            .stdout
            .contains("a row for each symbol and date, or symbol and snapshot"),
        "{}",
        described.text()
    );
    let refused = project.run(&["stages", "--type", "tabel"]);
    assert_eq!(refused.code, 2, "{}", refused.text());
}

/// The honest pipeline passes; a column that averages with the next row is found where it enters, and in the
/// environment.
#[test]
fn look_ahead_is_checked() {
    let text = pipeline("actions: { kind: discrete }", PPO);
    let project = Project::new(&text);
    project.write("rows.csv", rows(120));
    let passed = project.run(&[
        "check",
        "lookahead",
        "p.yaml",
        "--at",
        "2019-03-01",
        "--at",
        "2019-05-20",
    ]);
    assert_eq!(passed.code, 0, "{}", passed.text());
    let leak = text.replace(
        "  rows: { uses: ingest/table, with: { path: rows.csv, partition: month } }\n",
        "  leak:
    run: >-
      awk -F, 'NR == 1 { print; next } { if (s[$2] != \"\") print d[$2] \",\" $2 \",\" c[$2] \",\" (s[$2] + $4) / 2; d[$2] = $1; c[$2] = $3; s[$2] = $4 }' rows.csv > ${outputs.rows}
    files: [rows.csv]
    outputs: { rows: leak.csv }
  rows: { uses: ingest/table, needs: { table: leak.rows }, with: { partition: month } }
",
    );
    let project = Project::new(&leak);
    project.write("rows.csv", rows(120));
    let found = project.run(&["check", "lookahead", "p.yaml", "--at", "2019-03-01"]);
    assert_eq!(found.code, 1, "{}", found.text());
    for stage in ["leak ", "rows ", "env "] {
        assert!(
            found.stdout.lines().any(|line| line.starts_with(stage)),
            "{stage}: {}",
            found.text()
        );
    }
}
