//! Incremental to the row: what is computed again when days are appended, a value is corrected, or a training
//! goes on longer.

use crate::{Ended, Project};
use arrow_cast::display::array_value_to_string;
use cache::{KeyHasher, Store};
use runner_testkit::{PipelineText, pipeline};
use serde_json::{Value, json};
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, table};
use std::collections::BTreeMap;
use std::sync::Arc;

const DAILY: &str = "\
version: 1
name: daily
stages:
  quotes: \
{ uses: ingest/option_chain, with: { path: chain, contract: { underlying_kind: index, calendar: us } } }
  bars: { uses: ingest/bars, with: { path: bars, partition: month } }
  chain: { uses: greeks/implied_volatility, needs: { chain: quotes } }
  greeks: { uses: greeks/analytic, needs: { chain: chain } }
  technical:
    uses: features/technical
    needs: { bars: bars }
    with: { indicators: [{ log_return: 1 }, { rsi: 5 }, { ema: 8 }] }
  surface:
    uses: features/options_surface
    needs: { chain: chain, greeks: greeks }
    with: { realised_window: 5 }
  env:
    uses: env/options
    needs: { chain: chain, greeks: greeks, features: [technical, surface] }
    with: { test_fraction: 0.3, purge: 1, embargo: 0, episode_length: [5, 10], rate: 0.02, capital: 1e6 }
";

/// Rows of a table as lines of CSV, by day.
pub(super) type Days = BTreeMap<String, Vec<String>>;

pub(super) struct Market {
    pub headers: [String; 2],
    pub chain: Days,
    pub bars: Days,
}

/// Fifty days of an index and its options.
pub(super) fn market() -> Market {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let kind = runner::registry::find("ingest/simulated_market").unwrap();
    let context = Context {
        key: KeyHasher::new("test").action_key(),
        store: store.clone(),
        inputs: BTreeMap::new(),
        sources: Vec::new(),
        threads: 2,
        events: Arc::new(Silent),
        cancel: CancelToken::default(),
        fresh: false,
        memos: Default::default(),
        parts: None,
        numerics_class: Default::default(),
    };
    let config = kind.resolve(json!({ "days": 50, "seed": 5 })).unwrap();
    let outputs = kind.run(&config, &context).unwrap();
    let days = |port: &str| {
        let mut days = Days::new();
        let mut header = String::new();
        for entry in &store.artifact(outputs[port]).unwrap().entries {
            let batch = table::from_parquet(store.blob(entry.blob).unwrap()).unwrap();
            let schema = batch.schema();
            header = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect::<Vec<_>>()
                .join(",");
            let date = schema.index_of("date").unwrap();
            for row in 0..batch.num_rows() {
                let cell = |column: usize| array_value_to_string(batch.column(column), row).unwrap();
                let line: Vec<String> = (0..batch.num_columns()).map(cell).collect();
                days.entry(cell(date)).or_default().push(line.join(","));
            }
        }
        (header, days)
    };
    let ((chain_header, chain), (bars_header, bars)) = (days("chain"), days("bars"));
    Market {
        headers: [chain_header, bars_header],
        chain,
        bars,
    }
}

impl Market {
    /// Writes the days before this many, a file a month.
    pub(crate) fn write(&self, project: &Project, count: usize) {
        for (folder, header, days) in [
            ("chain", &self.headers[0], &self.chain),
            ("bars", &self.headers[1], &self.bars),
        ] {
            let mut months: BTreeMap<&str, String> = BTreeMap::new();
            for (day, lines) in days.iter().take(count) {
                let text = months.entry(&day[..7]).or_insert_with(|| format!("{header}\n"));
                lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            }
            for (month, text) in months {
                let name = format!("{folder}/{month}.csv");
                if std::fs::read_to_string(project.path(&name)).is_ok_and(|known| known == text) {
                    continue;
                }
                project.write(&name, &text);
            }
        }
    }
}

/// Each stage, and how much of it was found in the store.
fn log(ended: &Ended) -> String {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    let mut log = BTreeMap::new();
    for event in ended.events() {
        let stage = event["stage"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "memo" => {
                parts.insert(stage, format!(", {} of {} parts found", event["hits"], event["total"]));
            }
            "stage_finished" => {
                let found = parts.remove(&stage).unwrap_or_default();
                log.insert(stage, format!("{}{found}", event["status"].as_str().unwrap()));
            }
            _ => {}
        }
    }
    log.iter()
        .map(|(stage, how)| format!("{stage}: {how}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The log lines of a stage.
fn said(ended: &Ended, stage: &str) -> Vec<String> {
    let events = ended.events();
    let lines = events
        .iter()
        .filter(|event| event["event"] == "log" && event["stage"] == stage);
    lines.map(|event| event["line"].as_str().unwrap().to_owned()).collect()
}

/// Another home, where nothing is known: the same digests, or something was carried over wrongly.
fn the_same_from_nothing(project: &Project, ended: &Ended) {
    let home = tempfile::tempdir().unwrap();
    let output = project
        .command(&["exec", "p.yaml", "--json", "--jobs", "1"])
        .env("RUNNER_HOME", home.path())
        .output()
        .unwrap();
    let fresh = Ended::from(output);
    assert_eq!(fresh.digests(), ended.digests());
}

#[test]
fn an_appended_day_costs_one_day() {
    let market = market();
    let project = Project::new(DAILY);
    market.write(&project, 48);
    let first = project.exec(&[]);
    insta::assert_snapshot!(log(&first), @r"
    bars: ran, 0 of 9 parts found
    chain: ran, 0 of 6 parts found
    env: ran, 0 of 6 parts found
    greeks: ran, 0 of 3 parts found
    quotes: ran, 0 of 9 parts found
    surface: ran, 0 of 24 parts found
    technical: ran, 0 of 15 parts found
    ");
    // A day more in the last file.
    market.write(&project, 49);
    let second = project.exec(&[]);
    insta::assert_snapshot!(log(&second), @r"
    bars: ran, 6 of 9 parts found
    chain: ran, 4 of 6 parts found
    env: ran, 4 of 6 parts found
    greeks: ran, 2 of 3 parts found
    quotes: ran, 6 of 9 parts found
    surface: ran, 16 of 24 parts found
    technical: ran, 10 of 15 parts found
    ");
    insta::assert_snapshot!(said(&second, "chain").join("\n"), @"computed 2 of 6 parts: \
        SIM/2018-03-01_2018-03-31, SIM/2018-03-01_2018-03-31 (counts)");
    the_same_from_nothing(&project, &second);
    insta::assert_snapshot!(log(&project.exec(&[])), @r"
    bars: cached
    chain: cached
    env: cached
    greeks: cached
    quotes: cached
    surface: cached
    technical: cached
    ");
}

#[test]
fn an_appended_file_leaves_the_old_partitions() {
    let market = market();
    let project = Project::new(DAILY);
    let january_and_february = market.chain.keys().filter(|day| day.as_str() < "2018-03").count();
    market.write(&project, january_and_february);
    project.exec(&[]);
    market.write(&project, 50);
    let second = project.exec(&[]);
    insta::assert_snapshot!(log(&second), @r"
    bars: ran, 6 of 9 parts found
    chain: ran, 4 of 6 parts found
    env: ran, 4 of 6 parts found
    greeks: ran, 2 of 3 parts found
    quotes: ran, 6 of 9 parts found
    surface: ran, 16 of 24 parts found
    technical: ran, 10 of 15 parts found
    ");
    the_same_from_nothing(&project, &second);
}

#[test]
fn a_restated_value_costs_what_it_reaches() {
    let mut market = market();
    let project = Project::new(DAILY);
    market.write(&project, 50);
    let first = project.exec(&[]);
    // A bid of February, corrected.
    let day = market
        .chain
        .keys()
        .find(|day| day.as_str() >= "2018-02-12")
        .unwrap()
        .clone();
    let bid = market.headers[0].split(',').position(|name| name == "bid").unwrap();
    let lines = market.chain.get_mut(&day).unwrap();
    let line = lines
        .iter_mut()
        .find(|line| line.split(',').nth(bid).unwrap().parse::<f64>().unwrap() > 20.0)
        .unwrap();
    let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
    cells[bid] = (cells[bid].parse::<f64>().unwrap() - 0.1).to_string();
    *line = cells.join(",");
    market.write(&project, 50);
    let second = project.exec(&[]);
    insta::assert_snapshot!(log(&second), @r"
    bars: cached
    chain: ran, 4 of 6 parts found
    env: ran, 4 of 6 parts found
    greeks: ran, 2 of 3 parts found
    quotes: ran, 6 of 9 parts found
    surface: ran, 23 of 24 parts found
    technical: cached
    ");
    assert_ne!(first.digests(), second.digests());
    the_same_from_nothing(&project, &second);
    // Other bytes of the same values: the chain ends where they come out equal.
    let file = project.path("chain/2018-02.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    project.write(
        "chain/2018-02.csv",
        text.replace(",SIMW,", ",SIMW ,").replace('\n', "\r\n"),
    );
    let third = project.exec(&[]);
    insta::assert_snapshot!(log(&third), @r"
    bars: cached
    chain: cached
    env: cached
    greeks: cached
    quotes: ran, 7 of 9 parts found
    surface: cached
    technical: cached
    ");
    let chain = |ended: &Ended| ended.digests().remove("chain").unwrap();
    assert_eq!(chain(&second), chain(&third));
}

#[test]
fn a_restated_bar_is_carried_no_further_than_it_matters() {
    let mut market = market();
    let project = Project::new(DAILY);
    market.write(&project, 50);
    project.exec(&["technical"]);
    let day = market
        .bars
        .keys()
        .find(|day| day.as_str() >= "2018-02-12")
        .unwrap()
        .clone();
    let close = market.headers[1].split(',').position(|name| name == "close").unwrap();
    let line = &mut market.bars.get_mut(&day).unwrap()[0];
    let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
    let high = market.headers[1].split(',').position(|name| name == "high").unwrap();
    cells[close] = cells[high].clone();
    *line = cells.join(",");
    market.write(&project, 50);
    let second = project.exec(&["technical"]);
    // A log return looks back a day; the averages of the others remember for ever, and the usual move, by
    // which jumps of bars are judged, a quarter.
    insta::assert_snapshot!(log(&second), @r"
    bars: ran, 5 of 9 parts found
    technical: ran, 7 of 15 parts found
    ");
    insta::assert_snapshot!(said(&second, "technical").join("\n"), @"computed 8 of 15 parts: \
        SIM/2018-02-01_2018-02-28 contents, SIM/2018-02-01_2018-02-28 ema_8, SIM/2018-02-01_2018-02-28 \
        log_return_1, SIM/2018-02-01_2018-02-28 rsi_5, SIM/2018-02-01_2018-02-28 table, \
        SIM/2018-03-01_2018-03-31 ema_8, SIM/2018-03-01_2018-03-31 rsi_5, SIM/2018-03-01_2018-03-31 table");
}

fn training() -> PipelineText {
    pipeline("training")
        .param("steps", 1024)
        .param("lr", "1e-3")
        .param("seed", 1)
        .uses("env", "env/classic")
        .with("id", "CartPole-v1")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .with("seed", "${params.seed}")
        .with("total_timesteps", "${params.steps}")
        .with("learning_rate", "${params.lr}")
        .with("n_envs", 4)
        .with("n_steps", 64)
        .with("batch_size", 64)
        .with("n_epochs", 2)
}

fn policy(ended: &Ended) -> Value {
    let events = ended.events();
    let mut finished = events
        .iter()
        .filter(|event| event["event"] == "stage_finished" && event["stage"] == "train");
    finished.next().unwrap()["outputs"]["policy"].clone()
}

#[test]
fn a_longer_training_goes_on() {
    let project = Project::new(training());
    let short = project.exec(&[]);
    assert!(said(&short, "train").is_empty());
    let longer = project.exec(&["--set", "steps=2048"]);
    assert_eq!(said(&longer, "train"), ["resuming from the checkpoint at step 1024"]);
    // From nothing, the same bytes.
    let forced = project.exec(&["--set", "steps=2048", "--force", "train"]);
    assert!(said(&forced, "train").is_empty());
    assert_eq!(policy(&longer), policy(&forced));
    assert_ne!(policy(&longer), policy(&short));
    // Where a schedule depends on the number of steps, so do the checkpoints.
    let schedule = ["--set", "train.with.learning_rate={ linear: [1e-3, 0] }", "--set"];
    project.exec(&[&schedule[..], &["steps=1024"]].concat());
    let other = project.exec(&[&schedule[..], &["steps=2048"]].concat());
    assert!(said(&other, "train").is_empty());
}

#[test]
fn the_device_is_no_part_of_a_training() {
    let project = Project::new(training());
    project.exec(&[]);
    let again = project.exec(&["--set", "train.with.device=cpu"]);
    insta::assert_snapshot!(log(&again), @r"
    env: cached
    train: cached
    ");
}

#[test]
fn a_training_begins_with_the_policy_of_an_earlier_run() {
    let project = Project::new(training());
    project.exec(&[]);
    let run = std::fs::read_dir(project.home().join("runs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let run = run.file_name().into_string().unwrap();
    let warm = |init: &str| {
        let text = training().needs("init", init).to_string();
        project.write("p.yaml", text.replace("name: training", "name: warm"));
    };
    warm(&format!("{run}/train"));
    let first = project.exec(&["--set", "seed=2"]);
    insta::assert_snapshot!(log(&first), @r"
    env: cached
    train: ran
    ");
    // What it began with is part of the key: another policy is another action, the same one by another name
    // is not.
    warm(&format!("{run}/train.policy"));
    insta::assert_snapshot!(log(&project.exec(&["--set", "seed=2"])), @r"
    env: cached
    train: cached
    ");
    let cold = Project::new(training()).exec(&["--set", "seed=2"]);
    assert_ne!(policy(&first), policy(&cold));
    // Collecting garbage leaves what a kept run began with.
    let gc = project.run(&["cache", "gc", "--keep-last", "1"]);
    assert_eq!(gc.code, 0, "{}", gc.stderr);
    let kept = project.exec(&["--set", "seed=2"]);
    assert_eq!(log(&kept), "env: cached\ntrain: cached");
    warm("20000101T000000-none/train");
    let wrong = project.exec(&[]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("p.yaml:16:"), "{}", wrong.stderr);
}
