//! Nights with a champion and challengers.

use crate::Project;
use serde_json::Value;

/// Each night a challenger is trained from the champion, backtested beside it on the same dates, and judged.
const DESK: &str = r#"
version: 1
name: desk
params: { as_of: 2023-12-29, seed: 1 }
schedule: { at: "18:30", calendar: XNYS, from: 2024-01-02, params: { as_of: "${schedule.date}" } }
promote: { policy: desk, stage: verdict }
stages:
  market:
    uses: ingest/simulated_market
    with: { start: 2023-01-03, days: 10000, until: "${params.as_of}", expiries: { weekly: 1, monthly: 1, quarterly_days: 0 } }
  technical: { uses: features/technical, needs: { bars: market.bars }, with: { indicators: [{ log_return: 1 }] } }
  env:
    uses: env/stocks
    needs: { bars: market.bars, rates: market.rates, features: [technical] }
    with: { test_fraction: 0.4, episode_length: 20 }
  train:
    uses: train/ppo
    needs: { env: env, init: { policy: desk@champion, or: none } }
    with: { total_timesteps: 256, n_envs: 4, n_steps: 32, batch_size: 64, seed: "${params.seed}" }
    register: { policy: desk, alias: challenger }
  challenger: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 1, bootstrap_draws: 10, rules: false } }
  champion:
    uses: evaluate/backtest
    needs: { env: env, policy: { policy: desk@champion, or: train } }
    with: { random_paths: 1, bootstrap_draws: 10, rules: false }
  verdict:
    uses: evaluate/compare
    needs: { agent: challenger.trajectory, against: champion.trajectory, metrics: challenger.metrics }
    with: { bootstrap_draws: 200, verdict: { trials: "${policies.desk.tried}", max_drawdown: 0.5 } }
"#;

fn policy(project: &Project) -> Value {
    let list = project.run(&["policy", "list", "desk", "--json"]);
    serde_json::from_str(&list.stdout).unwrap_or_else(|_| panic!("{}", list.text()))
}

#[test]
fn nights_judge_their_challengers_and_an_old_night_stays_as_it_was() {
    let project = Project::new(DESK);
    let due = project.run(&["schedule", "run-due", "p.yaml", "--now", "2024-01-05T23:45:00Z"]);
    assert_eq!(due.code, 0, "{}", due.text());
    let before = policy(&project);
    let verdicts: Vec<String> = before["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            format!(
                "{} version {} against {}: {}, trials {}, moved {}",
                of["as_of"].as_str().unwrap(),
                of["version"],
                of["against"],
                of["verdict"].as_str().unwrap(),
                of["figures"]["trials"],
                of["moved"]
            )
        })
        .collect();
    insta::assert_snapshot!(verdicts.join("\n"), @r#"
    2024-01-02 version 1 against null: noise, trials 1.0, moved true
    2024-01-03 version 2 against 1: worse, trials 2.0, moved false
    2024-01-04 version 3 against 1: noise, trials 3.0, moved false
    2024-01-05 version 3 against 1: noise, trials 4.0, moved false
    "#);
    // An old night that is run again finds all of it cached, and changes nothing.
    let again = project.run(&["exec", "p.yaml", "--night", "2024-01-03", "--json"]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(!again.stdout.contains("\"ran\",\"seconds\""), "{}", again.stdout);
    let ran: Vec<Value> = again
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = ran.iter().find(|event| event["event"] == "run_finished").unwrap();
    assert_eq!(end["ran"], 0, "{end}");
    assert_eq!(policy(&project), before);
    // With other features there is nothing to go on from.
    project.write("p.yaml", DESK.replace("{ log_return: 1 }", "{ rsi: 14 }"));
    let changed = project.run(&["exec", "p.yaml", "train", "--night", "2024-01-08"]);
    assert_eq!(changed.code, 1, "{}", changed.text());
    let refusal = "the policy at `init` was trained on `stocks` and this is `stocks`: its observation 0 is \
        `SIM.log_return_1`, here it is `SIM.rsi_14`";
    assert!(changed.stderr.contains(refusal), "{}", changed.stderr);
    assert_eq!(policy(&project), before);
}

/// Each night a policy is trained on what is known by then, becomes the champion, and decides.
const DECIDES: &str = r#"
version: 1
name: morning
params: { as_of: 2019-06-17 }
schedule:
  at: "18:30"
  calendar: weekends
  from: 2019-06-18
  params: { as_of: "${schedule.date}" }
  then: { act: desk@champion, data: rows.csv, positions: played }
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month, until: "${params.as_of}" } }
  env:
    uses: env/table
    needs: { table: rows }
    with: { symbols: [AAA], observe: [signal], price: close, test_fraction: 0.3, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0, 1] } }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 128, n_steps: 32, n_envs: 2, batch_size: 32 }
    register: { policy: desk, alias: champion, max_age: 90d }
"#;

/// Weekdays until 2019-06-19 with a price and a signal.
fn rows() -> String {
    let first = datasets::Date::from_ymd(2019, 1, 1).unwrap();
    let mut text = "date,symbol,close,signal\n".to_owned();
    for day in (0..170).filter(|day| !matches!((day + 1) % 7, 5 | 6)) {
        let wave = f64::from(day * 37 % 23) / 23.0;
        text.push_str(&format!(
            "{},AAA,{:.2},{wave:.3}\n",
            first.plus(day),
            100.0 + 5.0 * wave
        ));
    }
    text
}

#[test]
fn a_night_decides_with_its_champion_and_keeps_the_orders() {
    let project = Project::new(DECIDES);
    project.write("rows.csv", rows());
    let due = ["schedule", "run-due", "p.yaml", "--now", "2019-06-19T19:00:00Z"];
    let ended = project.run(&due);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]).stdout;
    let log: Vec<Value> = serde_json::from_str(&log).unwrap();
    let mut digests = Vec::new();
    for (night, version) in log.iter().zip(1..) {
        let date = night["night"].as_str().unwrap();
        // Rows after the night are in the file, and it does not see them.
        assert_eq!(
            night["decision"].as_str().unwrap().split(": ").next().unwrap(),
            format!("{date} of desk@{version}")
        );
        let run = night["run"].as_str().unwrap();
        let decision = decided(&project, run);
        assert_eq!(decision["date"], date);
        assert!(decision["orders"]["orders"].is_array(), "{decision}");
        digests.push(decision["policy"].as_str().unwrap().to_owned());
        let shown = shown(&project, run);
        let lineage = shown["lineage"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap());
        assert_eq!(
            lineage.collect::<Vec<_>>(),
            [
                "then (policy/act v1) <- policy = train.policy",
                "  train (train/ppo v6) <- env = env.env",
                "    env (env/table v3) <- table = rows.table",
                "      rows (ingest/table v3)"
            ]
        );
        let stage = project.run(&["show", &format!("{run}/then")]).stdout;
        for part in [
            "kind policy/act v1",
            "needs policy: train.policy",
            "\"act\": \"desk@champion\"",
        ] {
            assert!(stage.contains(part), "{part}: {stage}");
        }
        assert!(project.run(&["show", run]).stdout.contains("policy/act"));
    }
    assert_eq!(digests.len(), 2);
    assert_ne!(digests[0], digests[1]);
    assert!(project.run(&due).text().contains("nothing is due"));
}

fn shown(project: &Project, run: &str) -> Value {
    let shown = project.run(&["show", &format!("{run}/then.decision"), "--json"]);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.text()))
}

/// The document of a night's decision, from the artifact.
fn decided(project: &Project, run: &str) -> Value {
    let folder = format!("out/{run}");
    let exported = project.run(&["export", &format!("{run}/then"), &folder]);
    assert_eq!(exported.code, 0, "{}", exported.text());
    let read = |name: &str| std::fs::read_to_string(project.path(&folder).join(name)).unwrap();
    let document: Value = serde_json::from_str(&read("decision.json")).unwrap();
    let (orders, table) = (document["orders"]["orders"].as_array().unwrap(), read("orders.csv"));
    assert!(table.starts_with("instrument,symbol,"), "{table}");
    assert_eq!(table.lines().count(), orders.len() + 1, "{table}");
    document
}

/// The runs of the nights and the digests of their decisions.
fn decisions(project: &Project) -> Vec<(String, String)> {
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]).stdout;
    let log: Vec<Value> = serde_json::from_str(&log).unwrap();
    let of = |night: &Value| {
        let run = night["run"].as_str().unwrap().to_owned();
        let digest = shown(project, &run)["digest"].as_str().unwrap().to_owned();
        (run, digest)
    };
    log.iter().map(of).collect()
}

#[test]
fn decisions_are_artifacts_that_are_kept_pushed_and_the_same_again() {
    let due = ["schedule", "run-due", "p.yaml", "--now", "2019-06-19T19:00:00Z"];
    let project = Project::new(DECIDES);
    project.write("rows.csv", rows());
    let remote = project.path("remote");
    let remote = format!("remote: {{ url: \"{}\", trust: unsigned }}\n", remote.display());
    project.write("home/config.yaml", &remote);
    assert_eq!(project.run(&due).code, 0);
    let first = decisions(&project);
    assert_eq!(first.len(), 2);
    assert_ne!(first[0].1, first[1].1);
    let digests = |all: &[(String, String)]| all.iter().map(|(_, digest)| digest.clone()).collect::<Vec<_>>();
    // Elsewhere, from a file that has grown: the same bytes.
    let other = Project::new(DECIDES);
    other.write(
        "rows.csv",
        &(rows() + "2019-06-20,AAA,101.00,0.5\n2019-06-21,AAA,99.00,0.1\n"),
    );
    assert_eq!(other.run(&due).code, 0);
    assert_eq!(digests(&decisions(&other)), digests(&first));
    // A night whose process was killed before it had decided, as its log says, is run again, and decides the
    // same.
    let log = project.home().join("schedule/morning.jsonl");
    let lines = std::fs::read_to_string(&log).unwrap();
    let (kept, _) = lines.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&log, format!("{kept}\n")).unwrap();
    assert_eq!(project.run(&due).code, 0);
    let again = decisions(&project);
    assert_ne!(again[1].0, first[1].0);
    assert_eq!(digests(&again), digests(&first));
    let run = project.run(&["show", &again[1].0, "--json"]).stdout;
    let run: Value = serde_json::from_str(&run).unwrap();
    let then = run["stages"].as_array().unwrap().last().unwrap();
    assert_eq!((&then["id"], &then["status"]), (&"then".into(), &"cached".into()));
    // Garbage collection keeps it with its run.
    let gc = project.run(&["cache", "gc", "--keep-last", "10", "--keep-younger-than", "0s"]);
    assert_eq!(gc.code, 0, "{}", gc.text());
    assert_eq!(digests(&decisions(&project)), digests(&first));
    // The night has pushed it to the remote store, from which it goes to another home.
    let copy = project.path("copy");
    let (from, to) = (
        project.home().join("runs").join(&first[0].0),
        copy.join("runs").join(&first[0].0),
    );
    std::fs::create_dir_all(&to).unwrap();
    for name in ["events.jsonl", "pipeline.json"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    std::fs::copy(project.home().join("config.yaml"), copy.join("config.yaml")).unwrap();
    let in_copy = |args: &[&str]| -> runner_testkit::Ended {
        let mut command = project.command(args);
        command.env("RUNNER_HOME", &copy).output().unwrap().into()
    };
    let pulled = in_copy(&["cache", "pull", &first[0].0]);
    assert_eq!(pulled.code, 0, "{}", pulled.text());
    std::fs::remove_file(copy.join("config.yaml")).unwrap();
    let there = in_copy(&["show", &format!("{}/then.decision", first[0].0), "--json"]);
    let there: Value = serde_json::from_str(&there.stdout).unwrap_or_else(|_| panic!("{}", there.text()));
    assert_eq!(there["digest"], *first[0].1);
}

#[test]
fn a_stage_is_not_called_as_the_decision_is() {
    let project = Project::new(
        DECIDES
            .replace("  rows: {", "  then: {")
            .replace("table: rows", "table: then"),
    );
    project.write("rows.csv", rows());
    let checked = project.run(&["plan", "p.yaml"]);
    assert_eq!(checked.code, 2, "{}", checked.text());
    assert!(
        checked.stderr.contains("a stage is called `then`"),
        "{}",
        checked.stderr
    );
}

#[test]
fn a_policy_that_is_too_old_does_not_act() {
    let project = Project::new(DECIDES.replace("max_age: 90d", "max_age: 10d"));
    project.write("rows.csv", rows());
    let ended = project.run(&[
        "schedule",
        "run-due",
        "p.yaml",
        "--now",
        "2019-06-18T19:00:00Z",
        "--json",
    ]);
    assert_eq!(ended.code, 1, "{}", ended.text());
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let night = &json[0]["nights"][0];
    assert_eq!(night["status"], "failed");
    let why = night["why"].as_str().unwrap();
    assert!(
        why.starts_with("its run is done, and `then` failed: the policy is too old"),
        "{why}"
    );
    assert!(why.contains("`max_age` of `desk@1` is 10 days"), "{why}");
    // An option goes before what the registry says.
    let act = [
        "policy",
        "act",
        "desk@champion",
        "--data",
        "rows.csv",
        "--max-age",
        "90d",
    ];
    let acted = project.run(&act);
    assert_eq!(acted.code, 0, "{}", acted.text());
}

/// Each night the bars of its day are compared with all before.
const DEFECTS: &str = r#"
version: 1
name: defects
params: { as_of: 2024-03-27, before: 2024-03-26 }
notify: [{ command: "cat >> told.jsonl; echo >> told.jsonl", on: drift }]
schedule:
  at: "18:30"
  calendar: weekends
  from: 2024-03-28
  params: { as_of: "${schedule.date}", before: "${schedule.previous}" }
stages:
  bars: { uses: ingest/bars, with: { path: bars, until: "${params.as_of}" } }
  trained_on: { uses: ingest/bars, with: { path: bars, until: "${params.before}" } }
  drift:
    uses: evaluate/drift
    needs: { bars: bars, bars_before: trained_on }
    with: { recent: 10 }
"#;

/// Bars of 30 symbols on the weekdays until 2024-04-01, a file each. One of 151 rows has no volume, and on
/// 2024-03-29 twelve more.
fn write_bars(project: &Project) {
    let first = datasets::Date::from_ymd(2024, 1, 2).unwrap();
    for (k, day) in (0..91).filter(|day| !matches!((day + 1) % 7, 5 | 6)).enumerate() {
        let date = first.plus(day).to_string();
        let mut text = "symbol,date,open,high,low,close,volume\n".to_owned();
        for symbol in 0..30 {
            let price = 100 + symbol + k * 7 % 5;
            let is_defect = (k * 30 + symbol) % 151 == 0 || date == "2024-03-29" && symbol < 12;
            let volume = if is_defect {
                0
            } else {
                1000 + (k * 13 + symbol * 7) % 50
            };
            text.push_str(&format!(
                "S{symbol:02},{date},{price},{},{},{price}.5,{volume}\n",
                price + 1,
                price - 1
            ));
        }
        project.write(&format!("bars/{date}.csv"), &text);
    }
}

#[test]
fn a_night_whose_rows_break_more_rules_than_those_before_is_told_or_fails() {
    let nights = |pipeline: &str| {
        let project = Project::new(pipeline);
        write_bars(&project);
        let ended = project.run(&["schedule", "run-due", "p.yaml", "--now", "2024-04-01T19:00:00Z"]);
        let log = project.run(&["schedule", "log", "p.yaml", "--json"]).stdout;
        let log: Vec<Value> = serde_json::from_str(&log).unwrap();
        (project, ended.code, log)
    };
    let (project, code, log) = nights(DEFECTS);
    assert_eq!((code, log.len()), (0, 3));
    let tables = log.iter().map(|night| {
        let to = format!("out/{}", night["night"].as_str().unwrap());
        let run = night["run"].as_str().unwrap();
        let exported = project.run(&["export", &format!("{run}/drift"), &to]);
        assert_eq!(exported.code, 0, "{}", exported.text());
        let table = std::fs::read_to_string(project.path(&to).join("drift.csv")).unwrap();
        let rules = table.lines().filter(|line| line.contains("/rule/"));
        rules.collect::<Vec<_>>().join("\n")
    });
    insta::assert_snapshot!(tables.collect::<Vec<_>>().join("\n"), @r#"
    "quality/bars/rule/zero_volume",ok,0.029307,0.366740,0.006989,,1.000000,0.000000,0.006989,30,1860
    "quality/bars/rule/zero_volume",warn,1.795393,0.366648,0.393122,,0.000000,0.400000,0.006878,30,1890
    "quality/bars/rule/zero_volume",ok,0.063084,0.366558,0.013021,,1.000000,0.000000,0.013021,30,1920
    "#);
    // Drift is told when it begins and when it ends.
    let told = std::fs::read_to_string(project.path("told.jsonl")).unwrap();
    let told = told.lines().map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", message["night"].as_str().unwrap(), message["drift"])
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r#"
    2024-03-29 ["drift: begins: quality/bars/rule/zero_volume"]
    2024-04-01 ["drift: ends: quality/bars/rule/zero_volume"]
    "#);
    let strict = DEFECTS.replace("recent: 10", "recent: 10, fail: { psi: 6, ks: 0.95, share: 0.2 }");
    let (_, code, log) = nights(&strict);
    assert_eq!(code, 1);
    let states: Vec<&str> = log.iter().map(|night| night["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["done", "failed", "done"]);
    let why = log[1]["why"].as_str().unwrap();
    assert!(why.contains("quality/bars/rule/zero_volume is broken by 4"), "{why}");
}

/// Each night a challenger is made, judged against the champion on the same dates, and both decide.
const TWO_FORMS: &str = r#"
version: 1
name: forms
params: { as_of: 2019-06-03 }
schedule:
  at: "18:30"
  calendar: weekends
  from: 2019-06-04
  params: { as_of: "${schedule.date}" }
  then: { act: desk@champion, data: rows.csv, positions: played }
promote: { policy: desk, stage: verdict }
stages:
  rows: { uses: ingest/table, with: { path: rows.csv, partition: month, until: "${params.as_of}" } }
  env:
    uses: env/table
    needs: { table: rows }
    with: { symbols: [AAA], observe: [signal], price: close, test_fraction: 0.7, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0, 1] } }
  made: MADE
  challenger: { uses: evaluate/backtest, needs: { env: env, policy: made }, with: { random_paths: 1, bootstrap_draws: 10, rules: false } }
  champion:
    uses: evaluate/backtest
    needs: { env: env, policy: { policy: desk@champion, or: made } }
    with: { random_paths: 1, bootstrap_draws: 10, rules: false }
  verdict:
    uses: evaluate/compare
    needs: { agent: challenger.trajectory, against: champion.trajectory, metrics: challenger.metrics }
    with: { bootstrap_draws: 200, verdict: {} }
"#;

/// The price of a low signal rises: a rule that a desk would write.
const RULE: &str = "{ uses: policy/rule, needs: { env: env }, register: { policy: desk, alias: challenger }, \
    with: { name: reversal, rules: [{ when: \"signal < 0.4\", do: position 1 }], otherwise: position 0 } }";
const TRAINED: &str = "{ uses: train/ppo, needs: { env: env }, register: { policy: desk, alias: challenger }, \
    with: { total_timesteps: 128, n_steps: 32, n_envs: 2, batch_size: 32 } }";

/// Ten nights with the champion that one pipeline registered, and the challengers of another.
fn ten_nights(champion: &str, challenger: &str, modules: &[(&str, &str)]) -> (Project, Value) {
    let project = Project::new(TWO_FORMS.replace("MADE", champion));
    modules.iter().for_each(|(name, text)| project.write(name, text));
    project.write("rows.csv", rows());
    let first = project.run(&["exec", "p.yaml"]);
    assert_eq!(first.code, 0, "{}", first.text());
    project.write("p.yaml", TWO_FORMS.replace("MADE", challenger));
    let due = project.run(&["schedule", "run-due", "p.yaml", "--now", "2019-06-17T23:00:00Z"]);
    assert_eq!(due.code, 0, "{}", due.text());
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]).stdout;
    let log: Vec<Value> = serde_json::from_str(&log).unwrap();
    let nights: Vec<&str> = log.iter().map(|night| night["status"].as_str().unwrap()).collect();
    assert_eq!(nights, ["done"; 10]);
    let found = policy(&project);
    assert_eq!(found["verdicts"].as_array().unwrap().len(), 11, "{found}");
    // Both decide of one day, whatever they are.
    for name in ["desk@champion", "desk@challenger"] {
        let act = ["policy", "act", name, "--data", "rows.csv", "--json"];
        let acted = project.run(&act);
        assert_eq!(acted.code, 0, "{name}: {}", acted.text());
        let acted: Value = serde_json::from_str(&acted.stdout).unwrap();
        assert_eq!(acted["date"], "2019-06-19", "{acted}");
    }
    (project, found)
}

#[test]
fn a_rule_is_a_champion_against_trained_challengers_and_the_other_way_round() {
    let (project, found) = ten_nights(RULE, TRAINED, &[]);
    assert_eq!(found["aliases"]["champion"], 1, "{found}");
    assert!(found["versions"].as_array().unwrap().len() > 3, "{found}");
    let verdicts = found["verdicts"].as_array().unwrap();
    assert!(
        verdicts[1..]
            .iter()
            .all(|of| of["verdict"] != "better" && of["moved"] == false),
        "{found}"
    );
    let shown = project.run(&["policy", "show", "desk@champion"]).stdout;
    assert!(
        shown.contains("form rule") && shown.contains("1. when signal < 0.4: position 1"),
        "{shown}"
    );
    let (project, found) = ten_nights(TRAINED, RULE, &[]);
    // The same rule every night is one version, which takes the place of the first.
    assert_eq!(found["versions"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["aliases"]["champion"], 2, "{found}");
    let verdict = &found["verdicts"][1];
    assert_eq!(
        (&verdict["verdict"], &verdict["moved"]),
        (&"better".into(), &true.into()),
        "{found}"
    );
    let log = project.run(&["schedule", "log", "p.yaml", "--json"]).stdout;
    let log: Vec<Value> = serde_json::from_str(&log).unwrap();
    assert!(log[9]["decision"].as_str().unwrap().contains("desk@2"), "{}", log[9]);
}

/// A policy with a memory, in Python.
const TRANSFORMER: &str = "{ uses: train/python, needs: { env: env }, register: { policy: desk, alias: challenger }, \
    with: { call: \"transformer:train\", python: PYTHON, total_timesteps: 128, n_envs: 4 } }";

#[test]
fn a_transformer_in_torch_is_a_challenger_and_then_the_champion_of_rules() {
    let Ok(python) = std::env::var("RUNNER_TEST_TORCH") else {
        eprintln!("skipped: RUNNER_TEST_TORCH names no interpreter with torch");
        return;
    };
    let transformer = TRANSFORMER.replace("PYTHON", &python);
    let module = ("transformer.py", include_str!("../../../../docs/agents/transformer.py"));
    let (project, found) = ten_nights(RULE, &transformer, &[module]);
    assert_eq!(found["aliases"]["champion"], 1, "{found}");
    assert!(found["versions"].as_array().unwrap().len() > 3, "{found}");
    let shown = project.run(&["policy", "show", "desk@challenger"]).stdout;
    assert!(shown.contains("form python"), "{shown}");
    let (_, found) = ten_nights(&transformer, RULE, &[module]);
    assert_eq!(found["aliases"]["champion"], 2, "{found}");
}
