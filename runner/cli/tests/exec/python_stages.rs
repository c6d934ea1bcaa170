//! Stages in Python: `uses: python`.
//!
//! They need an interpreter with pyarrow and pandas: `RUNNER_TEST_PYTHON`.

use crate::{Ended, Project, wait_for};
use runner_testkit::{PipelineText, pipeline};
use std::fmt::Write as _;
use std::process::Stdio;

/// Bars that a program writes, and a function of them with these outputs.
fn with_outputs(python: &str, outputs: &str) -> PipelineText {
    pipeline("python")
        .run("market", "cp bars.csv ${outputs.bars}")
        .set("files", "[bars.csv]")
        .output("bars", "{ path: out.csv, type: bars }")
        .uses("factors", "python")
        .set("call", "my_stages:make")
        .set("python", python)
        .needs("bars", "market")
        .with("window", 2)
        .set("seed", 7)
        .set("outputs", outputs)
}

/// Bars that a program writes, and factors that a function computes of them.
pub(crate) fn with_function(python: &str) -> PipelineText {
    with_outputs(python, "{ factors: features }")
}

const MODULE: &str = "\
import pandas as pd
from helpers.windows import change

def make(ctx, bars, window):
    frame = bars.to_pandas()
    frame['momentum'] = change(frame, window)
    ctx.log('rows', len(frame), 'seed', ctx.seed)
    ctx.progress(1, 2, 'half way')
    ctx.metric('data/rows', len(frame), step=3)
    return {'factors': frame.dropna(subset=['momentum'])[['symbol', 'date', 'momentum']]}
";

const HELPER: &str = "\
def change(frame, window):
    return frame.groupby('symbol', observed=True)['close'].diff(window)
";

/// The interpreter, or a message.
pub(crate) fn python() -> Option<String> {
    let python = std::env::var("RUNNER_TEST_PYTHON").ok();
    if python.is_none() {
        eprintln!("skipped: RUNNER_TEST_PYTHON names no interpreter with pyarrow and pandas");
    }
    python
}

/// Bars of these symbols on these days, whose closes differ.
pub(crate) fn bars(symbols: usize, days: &[&str]) -> String {
    let mut text = "symbol,date,close\n".to_owned();
    for symbol in 0..symbols {
        for (i, day) in days.iter().enumerate() {
            writeln!(text, "S{symbol:03},{day},{}", 10 + symbol + i * i).unwrap();
        }
    }
    text
}

pub(crate) const DAYS: [&str; 6] = [
    "2019-12-30",
    "2019-12-31",
    "2020-01-02",
    "2020-01-03",
    "2020-01-06",
    "2020-01-07",
];

pub(crate) fn project(python: &str, module: &str) -> Project {
    let project = Project::new(with_function(python));
    project.write("my_stages.py", module);
    project.write("helpers/__init__.py", "");
    project.write("helpers/windows.py", HELPER);
    project.write("bars.csv", bars(3, &DAYS));
    project
}

/// The rows of `factors` in the last run, by symbol and date, read by pyarrow: symbol and value.
pub(crate) fn rows(project: &Project, python: &str) -> Vec<(String, f64)> {
    const READ: &str = "\
import sys, pyarrow.parquet as pq, pathlib
for path in sorted(pathlib.Path(sys.argv[1]).rglob('*.parquet')):
    for row in pq.ParquetFile(path).read().to_pylist():
        values = [value for name, value in row.items() if name not in ('symbol', 'date')]
        print(row['symbol'], *values)
";
    let dest = tempfile::tempdir().unwrap();
    let at = dest.path().join("out");
    ok(&project.run(&["export", "latest/factors.factors", at.to_str().unwrap()]));
    let read = std::process::Command::new(python)
        .args(["-c", READ])
        .arg(&at)
        .output()
        .unwrap();
    let text = String::from_utf8(read.stdout).unwrap();
    let row = |line: &str| {
        let (symbol, value) = line.split_once(' ').unwrap();
        (symbol.to_owned(), value.parse().unwrap())
    };
    text.lines().map(row).collect()
}

pub(crate) fn ok(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.text());
}

/// The `memo` events: hits and look-ups.
fn memos(ended: &Ended) -> Vec<(u64, u64)> {
    let events = ended.events();
    let memos = events
        .iter()
        .filter(|event| event["event"] == "stage_memo" || event["event"] == "memo");
    memos
        .map(|event| (event["hits"].as_u64().unwrap(), event["total"].as_u64().unwrap()))
        .collect()
}

/// The last lines of the log of `factors` in the last run.
pub(crate) fn log(project: &Project) -> String {
    project.run(&["show", "latest/factors"]).text()
}

#[test]
fn a_function_is_a_stage_whose_modules_are_in_its_key() {
    let Some(python) = python() else { return };
    let project = project(&python, MODULE);
    let first = project.exec(&[]);
    ok(&first);
    let rows = rows(&project, &python);
    assert_eq!(rows.len(), 3 * 4, "{rows:?}");
    assert!(first.stdout.contains("data/rows"), "{}", first.stdout);
    assert!(log(&project).contains("rows 18 seed 7"), "{}", log(&project));

    let again = project.exec(&[]);
    assert_eq!(again.stages("ran"), Vec::<String>::new(), "{}", again.text());

    // A module that it imports is in the key; one that nothing imports is not.
    project.write("unused.py", "x = 1\n");
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    project.write("helpers/windows.py", HELPER.replace("diff(window)", "diff(window) * 2"));
    let why = project.run(&["why", "p.yaml", "factors"]).text();
    assert!(why.contains("helpers/windows.py"), "{why}");
    let edited = project.exec(&[]);
    assert_eq!(edited.stages("ran"), ["factors"], "{}", edited.text());
    let set = ["--set", "factors.with.window=1"];
    let why = project.run(&[&["why", "p.yaml", "factors"], &set[..]].concat()).text();
    assert!(why.contains("python.with.window"), "{why}");
    let set = project.exec(&set);
    assert_eq!(set.stages("ran"), ["factors"], "{}", set.text());
}

/// Modules that fail, and what is said of each.
const FAULTS: [(&str, &str); 11] = [
    (
        "def make(ctx, bars, window):\n    return {'factors': helper(bars)}\n\ndef helper(bars):\n    raise \
        KeyError('no such column')\n",
        "`my_stages:make` raised KeyError: 'no such column'",
    ),
    (
        "def make(ctx, bars, window):\n    return {'factors': bars.select(['symbol', 'close'])}\n",
        "has no column `date`",
    ),
    (
        "def make(ctx, bars, window):\n    return {'factors': (row for row in [1])}\n",
        "is of the type `generator`, which is no table",
    ),
    (
        "def make(ctx, bars, window):\n    return {'other': bars}\n",
        "returned `other`, which is no output of the stage",
    ),
    (
        "import ctypes\ndef make(ctx, bars, window):\n    ctypes.string_at(0)\n",
        "was killed by signal 11 (SIGSEGV)",
    ),
    (
        "import os\ndef make(ctx, bars, window):\n    os._exit(0)\n",
        "ended the interpreter before it returned",
    ),
    (
        "import nowhere_at_all\ndef make(ctx, bars, window):\n    pass\n",
        "there is no module `nowhere_at_all`",
    ),
    ("def made(ctx, bars, window):\n    pass\n", "it has made"),
    (
        "def make(ctx, bars):\n    pass\n",
        "cannot be called: got an unexpected keyword argument 'window'",
    ),
    (
        "raise RuntimeError('at import')\n",
        "cannot be imported: RuntimeError: at import",
    ),
    (
        "import threading\nfrom runner import stage\n\n@stage(by='partition', state=True)\ndef make(ctx, \
         bars, window):\n    ctx.state = \
         threading.Lock()\n    return {'factors': bars.select(['symbol', 'date', 'close'])}\n",
        "cannot be stored: cannot pickle '_thread.lock' object",
    ),
];

#[test]
fn a_failure_is_said_in_its_own_words_and_nothing_is_cached() {
    let Some(python) = python() else { return };
    let project = project(&python, MODULE);
    for (module, expected) in FAULTS {
        project.write("my_stages.py", module);
        for _ in 0..2 {
            let failed = project.exec(&[]);
            let text = failed.text();
            assert_eq!(failed.code, 1, "{module}: {text}");
            assert!(text.contains(expected), "{module}: {text}");
            assert!(
                module.contains("ctypes") || !text.contains("driver.py"),
                "{module}: {text}"
            );
        }
    }
    // The frames of an exception are those of the stage.
    project.write("my_stages.py", FAULTS[0].0);
    let text = project.exec(&[]).text();
    assert!(text.contains("line 5, in helper"), "{text}");
    project.write("my_stages.py", MODULE);
    ok(&project.exec(&[]));
}

#[test]
fn what_hangs_is_ended_and_its_place_is_shown() {
    let Some(python) = python() else { return };
    let project = project(
        &python,
        "import time\ndef make(ctx, bars, window):\n    wait()\n\ndef wait():\n    time.sleep(600)\n",
    );
    project.write("p.yaml", with_function(&python).set("timeout", "8s"));
    let text = project.exec(&[]).text();
    assert!(text.contains("time limit of 8"), "{text}");
    assert!(text.contains("in wait"), "{text}");
}

#[test]
fn a_module_that_changes_while_it_runs_is_refused() {
    let Some(python) = python() else { return };
    let module = "\
import os, time
def make(ctx, bars, window):
    open(os.path.join(window, 'started'), 'w').close()
    while not os.path.exists(os.path.join(window, 'edited')):
        time.sleep(0.05)
    return {'factors': bars.select(['symbol', 'date', 'close'])}
";
    let project = project(&python, module);
    let flags = project.path("flags");
    std::fs::create_dir(&flags).unwrap();
    let text = with_function(&python).with("window", flags.display());
    project.write("p.yaml", text.set("isolation", "none"));
    let running = project
        .command(&["exec", "p.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the function to start", || flags.join("started").exists());
    project.write("my_stages.py", format!("{module}# edited\n"));
    project.write("flags/edited", "");
    let ended: Ended = running.wait_with_output().unwrap().into();
    assert_eq!(ended.code, 1, "{}", ended.text());
    assert!(ended.text().contains("my_stages.py"), "{}", ended.text());
    let status = project.exec(&[]);
    assert_eq!(
        status.stages("ran"),
        ["factors"],
        "nothing was cached: {}",
        status.text()
    );
}

const BY_PARTITION: &str = "\
import os
import pyarrow as pa
from runner import stage

calls = 0

@stage(by='partition')
def make(ctx, bars, window):
    global calls
    calls += 1
    ctx.log('interpreter', os.getpid(), 'call', calls)
    return {'factors': bars.select(['symbol', 'date']).append_column('factor', bars['close'])}
";

#[test]
fn a_new_day_recomputes_one_partition() {
    let Some(python) = python() else { return };
    let project = project(&python, BY_PARTITION);
    ok(&project.exec(&[]));
    assert!(
        log(&project).contains("computed 2 of 2 partitions"),
        "{}",
        log(&project)
    );
    project.write("bars.csv", format!("{}S001,2020-01-08,99\n", bars(3, &DAYS)));
    let nightly = project.exec(&[]);
    ok(&nightly);
    assert_eq!(nightly.stages("ran"), ["market", "factors"]);
    let said = log(&project);
    assert!(said.contains("computed 1 of 2 partitions: S000..S002/2020"), "{said}");
    assert_eq!(memos(&nightly), [(1, 2)], "{}", nightly.stdout);
    assert_eq!(rows(&project, &python).len(), 19);

    // From nothing, the same.
    std::fs::remove_dir_all(project.home()).unwrap();
    let whole = project.exec(&[]);
    assert_eq!(whole.digests()["factors"], nightly.digests()["factors"]);
    // Other code: nothing of it is used.
    project.write(
        "my_stages.py",
        BY_PARTITION.replace("import os\n", "import os  # edited\n"),
    );
    ok(&project.exec(&[]));
    assert!(
        log(&project).contains("computed 2 of 2 partitions"),
        "{}",
        log(&project)
    );
}

const WITH_STATE: &str = "\
from runner import stage

@stage(by='partition', of='bars', state=True)
def make(ctx, bars, window):
    totals = ctx.state or {}
    frame = bars.to_pandas()
    frame['total'] = frame.groupby('symbol', observed=True)['close'].cumsum() + \
frame['symbol'].map(totals).fillna(0.0).astype(float)
    ctx.state = {**totals, **frame.groupby('symbol', observed=True)['total'].last().to_dict()}
    return frame[['symbol', 'date', 'total']]
";

#[test]
fn a_state_is_carried_from_year_to_year() {
    let Some(python) = python() else { return };
    let project = project(&python, WITH_STATE);
    ok(&project.exec(&[]));
    let total = |project: &Project, symbol: &str| -> f64 {
        let rows = rows(project, &python);
        rows.iter().rfind(|(of, _)| of == symbol).unwrap().1
    };
    // 10 + (10 + 1) + (10 + 4) + … of six days, and one more of each for the next symbol.
    assert_eq!(total(&project, "S000"), 115.0);
    assert_eq!(total(&project, "S001"), 121.0);
    project.write("bars.csv", format!("{}S001,2020-01-08,1000\n", bars(3, &DAYS)));
    ok(&project.exec(&[]));
    assert!(
        log(&project).contains("computed 1 of 2 partitions"),
        "{}",
        log(&project)
    );
    assert_eq!(total(&project, "S001"), 1121.0);
    // An earlier year changes those that follow.
    let text = bars(3, &DAYS).replace("S001,2019-12-31,12\n", "S001,2019-12-31,13\n");
    project.write("bars.csv", &text);
    let early = project.exec(&[]);
    ok(&early);
    assert!(
        log(&project).contains("computed 2 of 2 partitions"),
        "{}",
        log(&project)
    );
    assert_eq!(total(&project, "S001"), 122.0);
    std::fs::remove_dir_all(project.home()).unwrap();
    assert_eq!(project.exec(&[]).digests()["factors"], early.digests()["factors"]);
}

#[test]
fn hundreds_of_partitions_share_one_interpreter() {
    let Some(python) = python() else { return };
    let project = project(&python, BY_PARTITION);
    let days: Vec<String> = (1800..2200).map(|year| format!("{year}-06-28")).collect();
    project.write(
        "bars.csv",
        bars(3, &days.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    ok(&project.exec(&[]));
    let said = log(&project);
    assert!(said.contains("computed 400 of 400 partitions"), "{said}");
    assert!(said.contains("call 400"), "{said}");
}

#[test]
fn bytes_and_text_are_files() {
    let Some(python) = python() else { return };
    let project = project(
        &python,
        "def make(ctx, bars, window):\n    ctx.outputs['blob'].write_bytes(bytes(3))\n    return \
        {'note': f'{bars.num_rows} rows'}\n",
    );
    let outputs = "{ note: { path: note.txt }, blob: { path: blob.bin } }";
    project.write("p.yaml", with_outputs(&python, outputs));
    ok(&project.exec(&[]));
    assert_eq!(project.output("factors.note"), "18 rows");
}

/// Greeks by partition of the chain, from built-in ones to the environment.
const GREEKS: &str = "\
version: 1
name: own_greeks
stages:
  market: { uses: ingest/simulated_market, with: { days: 60 } }
  chain: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  analytic: { uses: greeks/analytic, needs: { chain: chain } }
  own:
    uses: python
    call: my_stages:make
    python: PYTHON
    needs: { greeks: analytic }
    outputs: { greeks: greeks }
  env: { uses: env/options, needs: { chain: chain, greeks: analytic, rates: market.rates } }
  own_env: { uses: env/options, needs: { chain: chain, greeks: own, rates: market.rates } }
";

#[test]
fn greeks_of_a_function_make_the_environment_of_the_built_in_ones() {
    let Some(python) = python() else { return };
    let project = Project::new(GREEKS.replace("PYTHON", &python));
    for by in ["", "(by='partition')"] {
        project.write(
            "my_stages.py",
            format!(
                "from runner import stage\n@stage{by}\ndef make(ctx, greeks):\n    return \
                greeks.take(list(reversed(range(len(greeks)))))\n"
            ),
        );
        let ended = project.exec(&[]);
        ok(&ended);
        let digests = ended.digests();
        assert_eq!(digests["own_env"], digests["env"], "{by}");
    }
}

const BY_CONTRACT: &str = "\
version: 1
name: by_contract
stages:
  market: { uses: ingest/simulated_market, with: { days: 60, seed: 3 } }
  chain: { uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }
  greeks: { uses: greeks/analytic, needs: { chain: chain } }
  scores:
    uses: python
    call: my_stages:make
    python: PYTHON
    needs: { chain: chain }
    outputs: { scores: features }
  env: { uses: env/options, needs: { chain: chain, greeks: greeks, features: scores, rates: market.rates } }
";

/// A score of each contract with a quote, by the columns of the chain or by the contract's symbol.
const SCORES: &str = "\
from runner import stage

BY
def make(ctx, chain):
    frame = chain.to_pandas()
    frame = frame[frame['bid'] > 0.05]
    frame['score'] = (frame['ask'] - frame['bid']) / (frame['ask'] + frame['bid'])
    return frame[['symbol', 'date', 'score', *COLUMNS]]
";

/// Features by contract of a function, called once or by partition, are observed slot by slot; a new day
/// computes one partition.
#[test]
fn features_by_contract_of_a_function_are_observed() {
    let Some(python) = python() else { return };
    let project = Project::new(BY_CONTRACT.replace("PYTHON", &python));
    let mut digests = Vec::new();
    let symbols = "frame['contract'] = [f\"{r}{e:%y%m%d}{'C' if c else 'P'}{round(1000 * k):08d}\" for r, \
        e, c, k in zip(frame['root'], frame['expiry'], frame['call'], frame['strike'])]\n    return";
    for (by, symbol) in [
        ("", false),
        ("@stage(by='partition')", false),
        ("@stage(by='partition')", true),
    ] {
        let module = SCORES.replace("BY", by);
        let module = match symbol {
            false => module.replace("*COLUMNS", "'expiry', 'root', 'strike', 'call'"),
            true => module.replace("*COLUMNS", "'contract'").replace("return", symbols),
        };
        project.write("my_stages.py", &module);
        let ended = project.exec(&[]);
        ok(&ended);
        digests.push(ended.digests()["env"].clone());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    let shown = project.run(&["show", "--json", "latest/env.env"]);
    assert!(shown.stdout.contains("score"), "{}", shown.stdout);
    let longer = project.exec(&["--set", "market.with.days=61"]);
    ok(&longer);
    let log = project.run(&["show", "latest/scores"]).text();
    assert!(log.contains("computed 1 of "), "{log}");
}

/// A function that cleans a chain keeps the terms of its contracts, called once or by partition.
#[test]
fn a_chain_keeps_its_contracts_in_pandas() {
    let Some(python) = python() else { return };
    let pipeline = pipeline("chain")
        .uses("market", "ingest/simulated_market")
        .with("days", 50)
        .with("seed", 3)
        .uses("cleaned", "python")
        .set("call", "my_stages:make")
        .set("python", &python)
        .needs("chain", "market.chain")
        .output("chain", "option_chain");
    let project = Project::new(&pipeline);
    for by in ["", "(by='partition')"] {
        project.write(
            "my_stages.py",
            format!(
                "from runner import stage\n@stage{by}\ndef make(ctx, chain):\n    frame = \
                chain.to_pandas()\n    return frame[frame['bid'] > 0.05]\n"
            ),
        );
        ok(&project.exec(&[]));
        let meta = |what: &str| {
            let shown = project.run(&["show", "--json", what]);
            let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
            shown["meta"].clone()
        };
        let (given, made) = (meta("latest/market.chain"), meta("latest/cleaned.chain"));
        // The unit of quotes, which the simulated market does not state, is assumed.
        for class in ["SIM", "SIMW"] {
            let (given, made) = (&given["contracts"][class], &made["contracts"][class]);
            let is_kept =
                |term: &(&String, &serde_json::Value)| term.0 == "origin" || made[term.0] == *term.1;
            assert!(
                given.as_object().unwrap().iter().all(|term| is_kept(&term)),
                "{by} {made} {given}"
            );
            for (term, origin) in given["origin"].as_object().unwrap() {
                assert_eq!(made["origin"][term], *origin, "{by} {term}");
            }
        }
        assert_ne!(made["rows"], given["rows"]);
    }
}

/// The check of look-ahead reaches into functions.
#[test]
fn a_function_that_looks_ahead_is_found() {
    let Some(python) = python() else { return };
    let honest = HELPER.to_owned();
    let leaks = HELPER.replace("diff(window)", "diff(-window)");
    let days: Vec<String> = (1..=60)
        .map(|day| format!("2024-{:02}-{:02}", 1 + day / 28, 1 + day % 28))
        .collect();
    for (helper, code) in [(honest, 0), (leaks, 1)] {
        let project = project(&python, MODULE);
        project.write(
            "bars.csv",
            bars(2, &days.iter().map(String::as_str).collect::<Vec<_>>()),
        );
        project.write("helpers/windows.py", &helper);
        let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2024-02-12", "--json"]);
        assert_eq!(ended.code, code, "{}", ended.text());
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let moved = report["moved"].as_array().unwrap();
        assert!(moved.iter().all(|moved| moved["stage"] == "factors"), "{report}");
        assert_eq!(moved.is_empty(), code == 0, "{report}");
    }
}

/// Writes a table with every codec of the two formats.
const CODECS: &str = "\
import gzip, io, pyarrow as pa, pyarrow.parquet as pq

def make(ctx, bars, window):
    table = pa.table({'x': [0.1, None, 3.0], 's': ['a', 'b', 'a']})
    files = {}
    for name in ctx.outputs:
        form, codec = name.split('_')
        to = io.BytesIO()
        if form == 'parquet':
            pq.write_table(table, to, compression=codec)
        elif form == 'csv':
            text = b'x,s\\n0.1,a\\n'
            to.write(gzip.compress(text) if codec == 'gz' else text)
        else:
            options = pa.ipc.IpcWriteOptions(compression=None if codec == 'none' else codec)
            with pa.ipc.new_file(to, table.schema, options=options) as writer:
                writer.write_table(table)
        files[name] = to.getvalue()
    return files
";

#[test]
fn files_of_any_codec_are_shown() {
    let Some(python) = python() else { return };
    let project = project(&python, CODECS);
    let parquet = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"].map(|codec| ("parquet", codec));
    let arrow = ["none", "lz4", "zstd"].map(|codec| ("arrow", codec));
    let names: Vec<(&str, &str)> = parquet.into_iter().chain(arrow).collect();
    let outputs = names
        .iter()
        .map(|(form, codec)| format!("{form}_{codec}: {{ path: {codec}.{form} }}"));
    let texts = ["csv_none: { path: t.csv }", "csv_gz: { path: t.csv.gz }"].map(str::to_owned);
    let outputs: Vec<String> = outputs.chain(texts).collect();
    let outputs = format!("{{ {} }}", outputs.join(", "));
    project.write("p.yaml", with_outputs(&python, &outputs));
    ok(&project.exec(&[]));
    for (form, codec) in names {
        let shown = project.run(&["show", "--json", &format!("latest/factors.{form}_{codec}")]);
        let shown: serde_json::Value =
            serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.text()));
        let expected = serde_json::json!([[0.1, "a"], [null, "b"], [3.0, "a"]]);
        assert_eq!(shown["preview"]["first"], expected, "{form} {codec}");
    }
    for codec in ["none", "gz"] {
        let shown = project.run(&["show", &format!("latest/factors.csv_{codec}")]);
        assert!(shown.stdout.contains("x,s\n0.1,a"), "{codec} {}", shown.text());
    }
}

/// Metrics, a policy and a chain of functions: a dictionary, bytes, and a table.
#[test]
fn a_function_writes_other_types_than_features() {
    let Some(python) = python() else { return };
    let project = project(
        &python,
        "\
import datetime, pyarrow as pa

def make(ctx, bars, window):
    day = datetime.date(2024, 1, 2)
    rows = \
{'symbol': ['XYZ'] * 2, 'date': [day] * 2, 'expiry': [datetime.date(2024, 3, 15)] * 2, 'strike': [100, 100]}
    chain = \
pa.table({**rows, 'call': [True, False], 'bid': [5.0, 4.5], 'ask': [5.1, 4.6], 'forward': [100.5, 100.5]})
    return {'chain': chain, 'metrics': {'rows': len(bars), 'ratio': None}}
",
    );
    let outputs = "{ chain: option_chain, metrics: metrics }";
    project.write("p.yaml", with_outputs(&python, outputs));
    ok(&project.exec(&[]));
    let show = |what: &str| -> serde_json::Value {
        let shown = project.run(&["show", "--json", what]);
        serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.text()))
    };
    assert_eq!(show("latest/factors.chain")["type"], "option_chain");
    let summary = show("latest/factors.metrics")["meta"]["summary"].clone();
    assert!(
        summary["rows"].as_f64().unwrap() > 0.0 && summary["ratio"].is_null(),
        "{summary}"
    );
    // A figure that is no number is null, and said.
    let module = std::fs::read_to_string(project.path("my_stages.py")).unwrap();
    project.write("my_stages.py", module.replace("'ratio': None", "'ratio': float('nan')"));
    let ran = project.exec(&[]);
    ok(&ran);
    assert!(
        ran.text().contains("the value of `ratio` is NaN, and is read as null"),
        "{}",
        ran.text()
    );
    assert!(show("latest/factors.metrics")["meta"]["summary"]["ratio"].is_null());
}
