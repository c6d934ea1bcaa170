//! Growth of the work of commands with what they are given. The work is counted in instructions, by valgrind,
//! at three sizes that double: of work `a + b·n^p` the differences double `p` times. Nothing is counted, nor
//! checked, where valgrind is missing.
//!
//! | what grows | command | exponent |
//! | --- | --- | --- |
//! | stages | `exec`, nothing to do | 1 |
//! | stages | `plan`, all cached | 1 |
//! | points of a sweep | `compare` with all it can write | 1 |
//! | earlier runs | `runs` | 1 |
//! | earlier runs | `exec`, nothing to do | 0 |
//! | rows of a file | `data inspect` | 1 |
//! | trials | `exec` of a search, all recorded | 1 |
//! | symbols, days, worlds | each stage of `MARKETS` | 1 |

#![allow(clippy::print_stdout, reason = "the counts of a test")]

use crate::Project;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The tolerance of an exponent, for logarithms and the doubling of buffers.
const TOLERANCE: f64 = 0.25;

/// The instructions of a command of this program, with a single thread in its pools and `input` as its open
/// standard input; `None` without valgrind.
fn instructions(project: &Project, args: &str, input: &str) -> Option<u64> {
    let (log, ours) = (project.path("valgrind.log"), project.command(args));
    let mut command = Command::new("valgrind");
    let mut child = project
        .at_home(&mut command)
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(format!("--log-file={}", log.display()))
        .arg(ours.get_program())
        .args(ours.get_args())
        .envs([("RAYON_NUM_THREADS", "1"), ("POLARS_MAX_THREADS", "1")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let status = child.wait().unwrap();
    drop(stdin);
    let log = fs::read_to_string(log).unwrap();
    assert!(status.success(), "{args}: {log}");
    let (_, count) = log.split_once("I   refs:").expect("a count of instructions");
    let count = count.lines().next().unwrap().replace(',', "");
    Some(count.trim().parse().unwrap())
}

/// Checks that the work of a command grows with at most this exponent from `prepare(1)` over `prepare(2)` to
/// `prepare(4)`.
fn grows(exponent: f64, args: &str, mut prepare: impl FnMut(usize) -> Project) {
    let counted = [1, 2, 4].map(|times| instructions(&prepare(times), args, ""));
    match counted {
        [Some(one), Some(two), Some(four)] => check(exponent, args, [one, two, four]),
        _ => println!("not counted: valgrind is missing"),
    }
}

/// Checks the growth of work that was counted at sizes that double.
fn check(exponent: f64, what: &str, counts: [u64; 3]) {
    let counts = counts.map(|count| count as f64);
    // Less work than at the size before, within the noise of a few threads, is no growth.
    let (first, second) = (counts[1] - counts[0], counts[2] - counts[1]);
    let flat = second <= 0.05 * counts[0];
    let found = (second / first.max(1.0)).log2();
    println!("{what}: {counts:?}, exponent {found:.2}");
    assert!(
        flat || found <= exponent + TOLERANCE,
        "{what}: {counts:?}, exponent {found:.2}"
    );
    assert!(
        !flat || exponent == 0.0,
        "{what}: {counts:?} does not grow: nothing is measured"
    );
}

/// A project that has run a pipeline of stages in ten chains. Those of a chain are the same action, which
/// runs once.
fn chains(stages: usize) -> Project {
    let mut text = "version: 1\nname: chains\nstages:\n".to_owned();
    for i in 0..stages {
        let needs = i
            .checked_sub(10)
            .map(|before| format!("    needs: {{ a: s{before} }}\n"));
        let needs = needs.unwrap_or_default();
        let _ = write!(
            text,
            "  s{i}:\n    run: echo 1 > ${{outputs.x}}\n    outputs: {{ x: x.txt }}\n{needs}"
        );
    }
    let project = Project::new(text);
    project.exec("p.yaml");
    project
}

#[test]
fn a_run_with_nothing_to_do_grows_with_its_stages() {
    grows(1.0, "exec -q p.yaml", |times| chains(200 * times));
    grows(1.0, "plan p.yaml", |times| chains(200 * times));
}

#[test]
fn a_comparison_grows_with_its_points() {
    grows(1.0, "compare latest --json --html all.html", |times| {
        let rates: Vec<usize> = (0..25 * times).collect();
        let project = Project::new(format!(
            "version: 1\nname: s\nstages:\n  m:\n    matrix: {{ lr: {rates:?}, seed: [1, 2, 3, 4] }}\n    \
            run: echo '{{\"name\":\"return\",\"step\":1,\"value\":${{matrix.lr}}.${{matrix.seed}}}}' > \
            ${{outputs.metrics}}\n    outputs: {{ metrics: metrics.jsonl }}\n"
        ));
        project.exec("p.yaml --isolation none");
        project
    });
}

/// A project of one run, and copies of it at earlier hours.
fn history(runs: usize) -> Project {
    let project = Project::new(
        "version: 1\nname: h\nstages: { a: { run: 'echo > ${outputs.x}', outputs: { x: x } } }\n",
    );
    let id = project.exec("p.yaml");
    let dir = project.path("home/runs");
    let events = fs::read_to_string(dir.join(&id).join("events.jsonl")).unwrap();
    for n in 0..runs {
        let copy = format!("2020{:02}{:02}T{:02}0000-{n:04}", 1 + n / 672, 1 + n / 24 % 28, n % 24);
        let mut lines = String::new();
        for line in events.lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().remove("checksum");
            if event["run"].is_string() {
                event["run"] = copy.as_str().into();
            }
            let _ = writeln!(lines, "{event}");
        }
        fs::create_dir(dir.join(&copy)).unwrap();
        fs::write(dir.join(&copy).join("events.jsonl"), lines).unwrap();
        fs::hard_link(
            dir.join(&id).join("pipeline.json"),
            dir.join(&copy).join("pipeline.json"),
        )
        .unwrap();
    }
    project
}

#[test]
fn a_history_costs_what_is_read_of_it() {
    grows(1.0, "runs --json", |times| history(200 * times));
    grows(0.0, "exec -q p.yaml", |times| history(200 * times));
}

#[test]
fn the_inspection_of_a_file_grows_with_its_rows() {
    grows(1.0, "data inspect bars.csv --json", |times| {
        let project = Project::new("");
        let mut bars = "date,open,high,low,close,volume\n".to_owned();
        for i in 0..5000 * times {
            let date = format!("{}-{:02}-{:02}", 1900 + i / 336, 1 + i / 28 % 12, 1 + i % 28);
            let _ = writeln!(bars, "{date},{i}.5,{i}.75,{i}.25,{i}.5,{}", 1000 + i % 7);
        }
        project.write("bars.csv", bars);
        project
    });
}

/// A search whose trials are all in its record.
const SEARCH: &str = r#"version: 1
name: searched
params: { x: 0.5, seed: 1, trials: 1 }
stages:
  m:
    run: echo '{"name":"score","step":1,"value":${params.x}000${params.seed}}' > ${outputs.metrics}
    outputs: { metrics: { path: m.jsonl, type: metrics } }
search:
  over: { x: { uniform: [0, 1] } }
  objective: { maximize: m.score }
  seeds: { count: 1, set: seed }
  trials: ${params.trials}
  sampler: tpe
"#;

#[test]
fn a_recorded_search_grows_with_its_trials() {
    grows(1.0, "exec -q p.yaml", |times| {
        let project = Project::new(SEARCH.replace("trials: 1 }", &format!("trials: {} }}", 25 * times)));
        project.exec("p.yaml --isolation none");
        project
    });
}

/// Worlds of stocks with an indicator, an environment, a training of as many steps whatever the data, and an
/// evaluation without what it repeats.
const MARKETS: &str = r#"version: 1
name: markets
params: { stocks: 8, worlds: 8, days: 400 }
stages:
  market:
    uses: ingest/simulated_panel
    with: { stocks: "${params.stocks}", worlds: "${params.worlds}", days: "${params.days}" }
  technical:
    uses: features/technical
    needs: { bars: market.bars }
    with: { indicators: [{ rsi: 14 }] }
  env:
    uses: env/stocks
    needs: { bars: market.bars, actions: market.actions, rates: market.rates, features: [technical] }
    with: { world_separator: ":", test: { worlds: 2 }, validation: { worlds: 1 } }
  train:
    uses: train/ppo
    needs: { env: env }
    with:
      total_timesteps: 512
      n_envs: 4
      n_steps: 64
      batch_size: 128
      n_epochs: 1
      policy_kwargs: { net_arch: { pi: [8], vf: [8] } }
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { random_paths: 1, drawn_paths: 1, bootstrap_draws: 1, ablations: false, rules: false, baselines: [cash] }
"#;

/// The instructions of each stage of [`MARKETS`], computed again by a worker that stands alone: the workers
/// of `exec` are no children that valgrind can follow.
fn stages(set: &str) -> Option<Vec<(String, u64)>> {
    let project = Project::new(MARKETS);
    let id = project.exec(&format!("p.yaml --set {set}"));
    let run = project.path("home/runs").join(id);
    let json = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let pipeline = json(&fs::read_to_string(run.join("pipeline.json")).unwrap());
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let finished = events
        .lines()
        .map(json)
        .filter(|event| event["event"] == "stage_finished");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let keys: BTreeMap<String, String> = finished
        .map(|event| (text(&event["stage"]), text(&event["key"])))
        .collect();
    let counted = |stage: &Value| {
        let id = text(&stage["id"]);
        let (shard, rest) = keys[&id].split_at(2);
        let record = fs::read_to_string(project.path("home/actions").join(shard).join(rest)).unwrap();
        let record = json(record.lines().next().unwrap());
        let job = json!({
            "key": keys[&id], "stage": id, "home": project.path("home"), "sources": [], "threads": 1,
            "work": {
                "kind": { "name": stage["kind"], "version": stage["version"], "config": stage["config"] }
            },
            "inputs": record["record"]["recipe"]["inputs"], "fresh": true, "log": project.path("log"),
        });
        let count = instructions(&project, "worker", &format!("{job}\n"))?;
        Some((id, count))
    };
    pipeline["stages"].as_array().unwrap().iter().map(counted).collect()
}

fn stages_grow_with(param: &str, base: usize) {
    let counted = [1, 2, 4].map(|times| stages(&format!("{param}={}", base * times)));
    let [Some(one), Some(two), Some(four)] = counted else {
        return println!("not counted: valgrind is missing");
    };
    for (((stage, one), (_, two)), (_, four)) in one.into_iter().zip(two).zip(four) {
        check(1.0, &format!("{stage} by {param}"), [one, two, four]);
    }
}

#[test]
fn stages_grow_with_their_symbols() {
    stages_grow_with("stocks", 16);
}

#[test]
fn stages_grow_with_their_days() {
    stages_grow_with("days", 400);
}

#[test]
fn stages_grow_with_their_worlds() {
    stages_grow_with("worlds", 16);
}
