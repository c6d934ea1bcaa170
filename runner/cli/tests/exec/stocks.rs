//! Panels of stocks through pipelines: the layouts that they come in, listings and delistings.

use crate::Project;
use runner_testkit::pipeline;
use std::fmt::Write as _;

/// Closes of three symbols by date: the second lacks a date, the third is listed late.
fn closes() -> Vec<(String, [Option<f64>; 3])> {
    let mut rows = Vec::new();
    let mut day = 0;
    for date in 0..120 {
        // Weekdays from 2019-01-02, a Wednesday; holidays are bars like any other to a calendar of weekends.
        while (day + 2) % 7 >= 5 {
            day += 1;
        }
        let (month, of_month) = match day {
            0..=29 => (1, day + 2),
            30..=57 => (2, day - 29),
            58..=88 => (3, day - 57),
            89..=118 => (4, day - 88),
            119..=149 => (5, day - 118),
            _ => (6, day - 149),
        };
        let wave = |k: usize| 50.0 + 10.0 * k as f64 + ((date * (k + 3)) % 17) as f64;
        let of = [
            Some(wave(0)),
            (date != 40).then(|| wave(1)),
            (date >= 30).then(|| wave(2)),
        ];
        rows.push((format!("2019-{month:02}-{of_month:02}"), of));
        day += 1;
    }
    rows
}

const SYMBOLS: [&str; 3] = ["AAA", "BBB", "CCC"];

/// The same bars as FinRL writes them and as a folder of Yahoo's files are the same environment; so are
/// closes in a wide and in a long table.
#[test]
fn layouts_of_a_panel_make_one_environment() {
    let mut digests = Vec::new();
    for (path, layout) in [
        ("finrl.csv", "auto"),
        ("yahoo", "auto"),
        ("wide.csv", "{ columns: { date: Date, close: \"*\" } }"),
        ("long.csv", "auto"),
    ] {
        let project = Project::new(
            pipeline("panel")
                .uses("bars", "ingest/bars")
                .with("path", path)
                .with("layout", layout)
                .with("calendar", "none")
                .uses("env", "env/stocks")
                .needs("bars", "bars")
                .with("test_fraction", 0.4)
                .with("episode_length", 20)
                .with("purge", 0)
                .with("embargo", 0),
        );
        let rows = closes();
        let mut finrl = ",date,open,high,low,close,adj_close,volume,tic,day\n".to_owned();
        let mut long = "date,symbol,close\n".to_owned();
        let mut wide = format!("Date,{}\n", SYMBOLS.join(","));
        let mut yahoo = SYMBOLS.map(|_| "Date,Open,High,Low,Close,Adj Close,Volume\n".to_owned());
        let mut bars = 0;
        for (date, of) in &rows {
            let cell = |close: &Option<f64>| close.map_or(String::new(), |close| close.to_string());
            writeln!(wide, "{date},{}", of.each_ref().map(cell).join(",")).unwrap();
            for (i, close) in of.iter().enumerate() {
                if let Some(c) = close {
                    writeln!(finrl, "{bars},{date},{c},{c},{c},{c},{c},1000,{},0", SYMBOLS[i]).unwrap();
                    writeln!(long, "{date},{},{c}", SYMBOLS[i]).unwrap();
                    writeln!(yahoo[i], "{date},{c},{c},{c},{c},{c},1000").unwrap();
                    bars += 1;
                }
            }
        }
        project.write("finrl.csv", &finrl);
        project.write("wide.csv", &wide);
        project.write("long.csv", &long);
        for (symbol, text) in SYMBOLS.iter().zip(&yahoo) {
            project.write(&format!("yahoo/{symbol}.csv"), text);
        }
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{path}: {}{}", ended.stdout, ended.stderr);
        let shown = project.run(&["show", "latest/bars.bars", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["meta"]["rows"], bars, "{path}: missing days stay missing");
        digests.push(ended.digests()["env"].clone());
    }
    assert_eq!(digests[0], digests[1]);
    // Without opens.
    assert_eq!(digests[2], digests[3]);
    assert_ne!(digests[0], digests[2]);
}

/// The listings and delistings of a simulated panel reach the accounts: equal weights lose by some.
#[test]
fn delistings_of_a_simulated_panel_are_settled() {
    let pipeline = |hazard: f64| {
        format!(
            "\
version: 1
name: panel
stages:
  market:
    uses: ingest/simulated_panel
    with: {{ stocks: 8, days: 700, listing: {{ hazard: {hazard}, at_start: 0.6 }} }}
  env:
    uses: env/stocks
    needs: {{ bars: market.bars, actions: market.actions, rates: market.rates, features: [market.features] }}
    with: {{ test_fraction: 0.6, episode_length: 60 }}
  train: {{ uses: train/ppo, needs: {{ env: env }}, with: {{ total_timesteps: 1 }} }}
  evaluate:
    uses: evaluate/backtest
    needs: {{ env: env, policy: train.policy }}
    with: {{ random_paths: 2, bootstrap_draws: 10 }}
"
        )
    };
    let delistings = |hazard: f64| {
        let project = Project::new(pipeline(hazard));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let shown = project.run(&["show", "latest/evaluate.metrics", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let summary = &shown["meta"]["summary"];
        let of = |name: &str| summary[name].as_f64().unwrap();
        (
            of("delistings"),
            of("profit/delisting_loss"),
            of("baseline/equal_weight/total_return"),
        )
    };
    let (none, no_loss, all) = delistings(0.0);
    assert_eq!((none, no_loss.abs()), (0.0, 0.0));
    let (some, loss, fewer) = delistings(1.0);
    assert!(some > 0.0 && loss < 0.0, "{some} {loss}");
    assert!(fewer < all - 0.1, "{fewer} {all}");
}
