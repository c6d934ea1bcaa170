//! Factors that a program writes, from there to a policy.

use crate::Project;
use crate::incremental::{Market, market};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PIPELINE: &str = "\
version: 1
name: own
stages:
  market: { uses: ingest/simulated_panel, with: { stocks: 4, days: 300, seed: 3 } }
  program:
    run: cat factors.txt > ${outputs.factors}
    files: [factors.txt]
    outputs: { factors: factors.csv }
  factors:
    uses: ingest/features
    needs: { table: program.factors, bars: market.bars }
  ranks:
    uses: features/cross_section
    needs: { bars: market.bars, features: factors }
    with: { columns: [value], transforms: [rank] }
  env:
    uses: env/stocks
    needs: { bars: market.bars, features: [factors, ranks] }
    with: { test_fraction: 0.3, episode_length: 20 }
  policy: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }
";

/// A factor of four stocks at five dates; the values of the last, known from the first bar of 2011 on, times
/// `last`.
fn factors(last: f64) -> String {
    let mut rows = "date,symbol,value\n".to_owned();
    for (i, date) in ["2010-01-05", "2010-03-02", "2010-06-01", "2010-09-01", "2010-12-31"]
        .iter()
        .enumerate()
    {
        for stock in 0..4 {
            let value = if i == 4 { last } else { 1.0 } * (1 + (stock * 3 + i) % 5) as f64;
            rows.push_str(&format!("{date},SIM:S{:02},{value}\n", stock + 1));
        }
    }
    rows
}

#[test]
fn factors_of_a_program_reach_training() {
    let project = Project::new(PIPELINE);
    project.write("factors.txt", factors(1.0));
    let first = project.exec(&[]);
    assert_eq!(first.code, 0, "{}", first.text());
    let shown = |what: &str| -> Value {
        let output = project.command(&["show", "--json", what]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let blobs = || -> Vec<Value> {
        let entries = shown("latest/factors.features")["entries"].clone();
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["blob"].clone())
            .collect()
    };
    let before = blobs();
    // Other values at the end are another table for the last year alone.
    project.write("factors.txt", factors(2.0));
    let second = project.exec(&[]);
    assert_eq!(
        second.stages("ran"),
        ["program", "factors", "ranks", "env", "policy"],
        "{}",
        second.text()
    );
    let after = blobs();
    assert_eq!((before.len(), after.len()), (2, 2));
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

#[test]
fn a_factor_that_the_files_lack_is_refused_before_anything_runs() {
    let project = Project::new(PIPELINE.replace(
        "table: program.factors, bars: market.bars }",
        "bars: market.bars }\n    with: { path: factors.txt.csv, columns: [growth] }",
    ));
    project.write("factors.txt", factors(1.0));
    project.write("factors.txt.csv", factors(1.0));
    let refused = project.exec(&[]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("has no column of `growth`"),
        "{}",
        refused.stderr
    );
}

const BY_CONTRACT: &str = "\
version: 1
name: scores
stages:
  quotes: \
{ uses: ingest/option_chain, with: { path: chain, contract: { underlying_kind: index, calendar: us } } }
  bars: { uses: ingest/bars, with: { path: bars, partition: month } }
  chain: { uses: greeks/implied_volatility, needs: { chain: quotes } }
  greeks: { uses: greeks/analytic, needs: { chain: chain } }
  technical: { uses: features/technical, needs: { bars: bars }, with: { indicators: [{ log_return: 1 }] } }
  scores:
    uses: ingest/features
    needs: { chain: quotes }
    with: { path: scores, contract: {}, columns: [score] }
  env:
    uses: env/options
    needs: { chain: chain, greeks: greeks, features: [technical, scores] }
    with: { test_fraction: 0.3, purge: 1, embargo: 0, episode_length: [5, 10], rate: 0.02, capital: 1e6 }
  policy: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: policy } }
";

/// Scores of the contracts of each day, by their terms, a file a month.
fn write_scores(project: &Project, market: &Market, days: usize) {
    let names: Vec<&str> = market.headers[0].split(',').collect();
    let mut months: BTreeMap<&str, String> = BTreeMap::new();
    for (day, lines) in market.chain.iter().take(days) {
        let month = months.entry(&day[..7]);
        let text = month.or_insert_with(|| "date,symbol,root,expiry,strike,call,score\n".to_owned());
        for (i, line) in lines.iter().enumerate().filter(|(i, _)| i % 3 != 0) {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |name: &str| cells[names.iter().position(|other| *other == name).unwrap()];
            let keys = ["date", "symbol", "root", "expiry", "strike", "call"]
                .map(cell)
                .join(",");
            text.push_str(&format!("{keys},{}\n", (i * 7 + text.len()) % 101));
        }
    }
    for (month, text) in months {
        project.write(&format!("scores/{month}.csv"), &text);
    }
}

/// Runs a pipeline of factors by contract: they are observed slot by slot, without look-ahead, and a new day
/// leaves the files of earlier months as they were. Returns the digest of the environment.
fn check_by_contract(pipeline: &str, market: &Market) -> String {
    let project = Project::new(pipeline);
    let exec = |days: usize| {
        market.write(&project, days);
        write_scores(&project, market, days);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let output = project.command(&["show", "--json", "latest/env.env"]).output().unwrap();
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let file = |entry: &Value| (entry["path"].as_str().unwrap().to_owned(), entry["blob"].clone());
        let entries = shown["entries"].as_array().unwrap().iter();
        let files: BTreeMap<String, Value> = entries.map(file).collect();
        (files, ended.digests()["env"].clone())
    };
    let (before, _) = exec(49);
    let (after, digest) = exec(50);
    let changed: Vec<&String> = after
        .keys()
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    let parts: BTreeSet<&str> = changed
        .iter()
        .filter_map(|path| path.split_once('/'))
        .map(|(part, _)| part)
        .collect();
    assert_eq!(parts.len(), 1, "{changed:?}");
    let at = market.chain.keys().nth(43).unwrap();
    let ended = project.run(&["check", "lookahead", "p.yaml", "env", "--at", at, "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let sources: Vec<&str> = report["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| source["name"].as_str().unwrap())
        .collect();
    assert!(sources.iter().any(|name| name.starts_with("scores: ")), "{sources:?}");
    digest
}

#[test]
fn factors_by_contract_reach_training() {
    check_by_contract(BY_CONTRACT, &market());
}

/// A program's features by contract make the environment that the same rows make by `ingest/features`, each
/// on its own date alone.
#[test]
fn features_by_contract_of_a_program_reach_training() {
    let market = market();
    let ingested = BY_CONTRACT.replace("columns: [score] }", "columns: [score], lag: 0, max_age: 0 }");
    let ingest = "\
    uses: ingest/features
    needs: { chain: quotes }
    with: { path: scores, contract: {}, columns: [score], lag: 0, max_age: 0 }
";
    assert!(ingested.contains(ingest));
    let written = "\
    run: mkdir ${outputs.scores} && cp scores/*.csv ${outputs.scores}
    files: ['scores/*.csv']
    outputs: { scores: { path: scores.d, type: features } }
";
    let by_program = check_by_contract(&ingested.replace(ingest, written), &market);
    assert_eq!(by_program, check_by_contract(&ingested, &market));
}

/// Features of a program that are of other times than the chain are refused, with a remedy.
#[test]
fn features_by_contract_fit_their_chain() {
    let market = market();
    let day = market.chain.keys().next().unwrap();
    for (rows, wanted) in [
        (
            format!(
                "symbol,date,snapshot,expiry,strike,call,score\n\
                 SIM,{day},{day}T20:00:00Z,2030-01-18,100,true,1\n"
            ),
            "the features by contract `score` have snapshots, and the chain has days",
        ),
        (
            format!("symbol,date,expiry,strike,call,score\nOTHER,{day},2030-01-18,100,true,1\n"),
            "the features by contract have no partition SIM/",
        ),
        (
            format!("symbol,date,expiry,strike,call,delta\nSIM,{day},2030-01-18,100,true,1\n"),
            "two features of a slot have the name `delta`",
        ),
    ] {
        let (before, rest) = BY_CONTRACT.split_once("  scores:\n").unwrap();
        let (_, after) = rest.split_once("  env:\n").unwrap();
        let scores = "  scores: \
            { run: 'cat rows.txt > ${outputs.rows}', files: [rows.txt], outputs: { rows: { path: rows.csv, type: features } } }\n  env:\n";
        let project = Project::new(format!("{before}{scores}{after}"));
        market.write(&project, 50);
        project.write("rows.txt", &rows);
        let refused = project.exec(&["env"]);
        assert_eq!(refused.code, 1, "{}", refused.text());
        assert!(refused.text().contains(wanted), "{}", refused.text());
    }
}

/// Where features are taken by symbol, those by contract are refused: by the plan, and where it cannot know.
#[test]
fn factors_by_contract_are_kept_from_what_takes_symbols() {
    let market = market();
    for (stage, code) in [
        (
            "ranks: \
            { uses: features/cross_section, needs: { bars: bars, features: scores }, with: { columns: [score], transforms: [rank] } }",
            2,
        ),
        (
            "stocks: { uses: env/stocks, needs: { bars: bars, features: scores } }",
            2,
        ),
        ("rows: { uses: env/table, needs: { features: scores } }", 2),
        (
            "oracle: { uses: env/options, needs: { chain: chain, greeks: greeks, hidden: scores } }",
            2,
        ),
        (
            "late: { uses: env/stocks, needs: { bars: bars, features: written } }",
            1,
        ),
        (
            "typed: { uses: env/stocks, needs: { bars: bars, features: of_program } }",
            1,
        ),
    ] {
        // The plan does not know the columns of files that a program writes.
        let written = "  files: \
            { run: 'cat scores/MONTH.csv > ${outputs.rows}', files: [scores/MONTH.csv], outputs: { rows: rows.csv } }\n  written: { uses: ingest/features, needs: { chain: quotes, table: files.rows }, with: { contract: {} } }\n  of_program: { run: 'cat scores/MONTH.csv > ${outputs.rows}', files: [scores/MONTH.csv], outputs: { rows: { path: rows.csv, type: features } } }\n";
        let written = written.replace("MONTH", &market.chain.keys().next().unwrap()[..7]);
        let project = Project::new(format!("{BY_CONTRACT}{written}  {stage}\n"));
        market.write(&project, 50);
        write_scores(&project, &market, 50);
        let name = stage.split(':').next().unwrap();
        let refused = project.exec(&[name]);
        assert_eq!(refused.code, code, "{stage}: {}", refused.text());
        assert!(
            refused.text().contains("are by contract, and taken by symbol"),
            "{stage}: {}",
            refused.text()
        );
    }
}
