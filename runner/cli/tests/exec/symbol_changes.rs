//! Options on an underlying that changes its symbol.

use super::incremental::{Days, Market, market};
use super::*;
use serde_json::Value;

const PIPELINE: &str = "\
version: 1
name: changed
stages:
  quotes: \
{ uses: ingest/option_chain, with: { path: chain, contract: { underlying_kind: index, calendar: us } } }
  bars: { uses: ingest/bars, with: { path: bars, partition: month } }
  chain: { uses: greeks/implied_volatility, needs: { chain: quotes } }
  greeks: { uses: greeks/analytic, needs: { chain: chain } }
  actions:
    uses: ingest/corporate_actions
    with: { actions: [{ symbol: OLD, date: DATE, kind: symbol_change, new_symbol: NEW }] }
  technical:
    uses: features/technical
    needs: { bars: bars }
    with: { indicators: [{ log_return: 1 }, { rsi: 5 }, { ema: 8 }] }
  env:
    uses: env/options
    needs: { chain: chain, greeks: greeks, features: technical, actions: actions.actions }
    with: { test_fraction: 0.3, purge: 1, embargo: 0, episode_length: [5, 10], rate: 0.02, capital: 1e6 }
  policy: \
{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 256, n_steps: 32, n_envs: 4, batch_size: 64 } }
  test: { uses: evaluate/backtest, needs: { env: env, policy: policy.policy } }
";

/// The market under the symbol OLD before a day, and NEW from then on.
fn changed(market: &Market, date: &str, bars_too: bool) -> Market {
    let column = |header: &str, name: &str| header.split(',').position(|other| other == name);
    let rename = |header: &str, days: &Days, date: &str| {
        let names = [column(header, "symbol"), column(header, "root")];
        let of_day = |(day, lines): (&String, &Vec<String>)| {
            let symbol = if day.as_str() < date { "OLD" } else { "NEW" };
            let of_line = |line: &String| {
                let mut cells: Vec<&str> = line.split(',').collect();
                for at in names.into_iter().flatten() {
                    if cells[at] == "SIM" {
                        cells[at] = symbol;
                    }
                }
                cells.join(",")
            };
            (day.clone(), lines.iter().map(of_line).collect())
        };
        days.iter().map(of_day).collect()
    };
    let [chain, bars] = &market.headers;
    Market {
        headers: market.headers.clone(),
        chain: rename(chain, &market.chain, date),
        bars: rename(bars, &market.bars, if bars_too { date } else { "" }),
    }
}

/// A project that has run on the market.
fn run(market: &Market, date: &str) -> Project {
    let project = Project::new(PIPELINE.replace("DATE", date));
    market.write(&project, 50);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    project
}

fn shown(project: &Project, what: &str) -> Value {
    let output = project.command(&["show", "--json", what]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The digests of the environment's tables, in order.
fn tables(project: &Project) -> Vec<String> {
    let env = shown(project, "latest/env.env");
    assert_eq!(env["meta"]["worlds"], serde_json::json!(["NEW"]));
    let entries = env["entries"].as_array().unwrap().iter();
    let tables = entries.filter(|entry| entry["path"].as_str().unwrap().ends_with(".arrow"));
    tables.map(|entry| entry["blob"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_symbol_change_leaves_positions_as_they_are() {
    let market = market();
    let plain = run(&changed(&market, "", false), "2018-03-01");
    // Every metric of the test, at every step.
    let metrics = |project: &Project| shown(project, "latest/test.metrics")["entries"].clone();
    for bars_too in [false, true] {
        // Partitions end with the month, so that all tables are the same.
        let project = run(&changed(&market, "2018-03-01", bars_too), "2018-03-01");
        assert_eq!(tables(&project).len(), 6);
        if !bars_too {
            assert_eq!(tables(&project), tables(&plain));
        }
    }
    // The world has either name.
    let named = Project::new(
        PIPELINE
            .replace("DATE", "2018-03-01")
            .replace("capital: 1e6 }", "capital: 1e6, symbol: OLD }"),
    );
    changed(&market, "2018-03-01", false).write(&named, 50);
    assert_eq!(named.exec(&["env"]).code, 0);
    assert_eq!(tables(&named), tables(&plain));
    // In the midst of a month, histories go on from one partition to the next: what is learned and tested is
    // the same. The test holds the last 15 days.
    for date in ["2018-02-12", "2018-03-07"] {
        let project = run(&changed(&market, date, false), date);
        assert_eq!(
            tables(&project).len(),
            8,
            "a partition of each symbol in the month of the change"
        );
        assert_eq!(metrics(&project), metrics(&plain), "{date}");
    }
}

#[test]
fn rows_of_other_companies_are_left_out() {
    let market = market();
    let day = market.chain.keys().nth(30).unwrap().clone();
    let mut both = changed(&market, &day, false);
    let before = run(&both, &day);
    // Another company had the new symbol until a week before, and one takes the old symbol on the day of the
    // change.
    let all: Vec<(String, Vec<String>)> = both
        .chain
        .iter()
        .map(|(day, lines)| (day.clone(), lines.clone()))
        .collect();
    for (i, (date, lines)) in all.iter().enumerate() {
        let (from, to) = if date.as_str() < day.as_str() {
            ("OLD", "NEW")
        } else {
            ("NEW", "OLD")
        };
        if (10..24).contains(&i) || i >= 30 {
            let others = lines.iter().map(|line| line.replace(from, to));
            both.chain.get_mut(date).unwrap().extend(others);
        }
    }
    let after = run(&both, &day);
    assert_eq!(tables(&after), tables(&before));
}

#[test]
fn a_change_that_cannot_be_followed_is_refused() {
    let market = changed(&market(), "2018-02-12", false);
    let project = Project::new(PIPELINE.replace(
        "symbol: OLD, date: DATE, kind: symbol_change, new_symbol: \
        NEW",
        "symbol: OLD, date: 2018-02-12, kind: symbol_change, new_symbol: NEW }, \
        { symbol: NEW, date: 2018-03-07, kind: symbol_change, new_symbol: OLD",
    ));
    market.write(&project, 50);
    let ended = project.exec(&[]);
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("a symbol that it had before"), "{}", ended.stderr);
    // Without the change, it is not known which of the two is meant.
    let project = Project::new(
        PIPELINE
            .replace("DATE", "2018-02-12")
            .replace(", actions: actions.actions", ""),
    );
    market.write(&project, 50);
    let ended = project.exec(&[]);
    assert!(
        ended.stderr.contains("several underlyings: NEW, OLD"),
        "{}",
        ended.stderr
    );
}
