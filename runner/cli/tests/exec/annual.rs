//! Annual figures take the periods of the data's own calendar and frequency.

use crate::{Ended, Project, artifact, input};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use datasets::Date;
use stages_core::dataset::DataSet;
use std::fmt::Write as _;

const COIN: &str = "\
version: 1
name: coin
stages:
  bars: { uses: ingest/bars, with: { path: BTC.csv, calendar: CALENDAR } }
  found: { uses: features/volatility, needs: { bars: bars }, with: { estimators: [close_close], windows: [20] } }
  stated: { uses: features/volatility, needs: { bars: bars }, \
with: { estimators: [close_close], windows: [20], days_a_year: 252 } }
  env: { uses: env/stocks, needs: { bars: bars }, \
with: { train: { from: 2022-07-01, to: 2022-11-30 }, test: { from: 2022-12-31, to: 2023-12-31 }, episode_length: 20, fills: { lot: 0, basis_points: 0 } } }
  train: { uses: train/ppo, needs: { env: env }, with: { total_timesteps: 128, n_envs: 4, n_steps: 32, batch_size: 64, seed: 1 } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 1, bootstrap_draws: 10, ablations: false } }
";

const HOURS: &str = "\
version: 1
name: hours
stages:
  rows: { uses: ingest/table, with: { path: rows.csv } }
  env: { uses: env/table, needs: { table: rows }, \
with: { observe: [signal], price: close, test_fraction: 0.4, episode_length: 20, purge: 0, embargo: 0, actions: { kind: discrete, positions: [0, 1] } } }
  train: { uses: train/ppo, needs: { env: env }, with: { total_timesteps: 128, n_envs: 4, n_steps: 32, batch_size: 64, seed: 1 } }
  evaluate: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { random_paths: 1, bootstrap_draws: 10, ablations: false } }
";

/// The close on a day, or in an hour.
fn close(i: usize) -> f64 {
    let swing = [0.4, -1.3, 2.1, 0.2, -0.9, 1.7, -2.2][i % 7] + [1.1, -0.8, 0.3][i % 3];
    100.0 * (1.0 + 0.0008 * i as f64) * (1.0 + 0.01 * swing)
}

fn metric(project: &Project, ended: &Ended, name: &str) -> f64 {
    let (_, metrics) = artifact(project, ended, "evaluate.metrics");
    metrics.meta["summary"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {}", metrics.meta))
}

/// The last value of a feature.
fn last(project: &Project, ended: &Ended, stage: &str) -> f64 {
    let (store, features) = input(project, ended, &format!("{stage}.features"));
    let set = DataSet::open(&features).unwrap();
    let rows = set.partitions.last().unwrap().read(&store).unwrap();
    let column = rows
        .column_by_name("close_close_20")
        .unwrap()
        .as_primitive::<Float64Type>();
    column.value(column.len() - 1)
}

/// A coin that is held for a year has the return of the year, whether its calendar is stated or found.
#[test]
fn a_market_that_never_closes_has_365_days_a_year() {
    let first: Date = "2022-07-01".parse().unwrap();
    let days: Vec<Date> = (0..549).map(|day| first.plus(day)).collect();
    for (calendar, keeps, per_year) in [
        ("always", (|_| true) as fn(&Date) -> bool, 365.0),
        ("none", |_| true, 365.0),
        ("auto", |_| true, 365.0),
        ("weekends", |day| !day.is_weekend(), 252.0),
    ] {
        let project = Project::new(COIN.replace("CALENDAR", calendar));
        let mut bars = "symbol,date,open,high,low,close,volume\n".to_owned();
        let mut held = Vec::new();
        for (i, day) in days.iter().enumerate().filter(|(_, day)| keeps(day)) {
            let close = close(i);
            writeln!(bars, "BTC,{day},{close},{close},{close},{close},1000").unwrap();
            if *day >= "2022-12-30".parse().unwrap() {
                held.push((*day, close));
            }
        }
        project.write("BTC.csv", &bars);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        let value = |name: &str| metric(&project, &ended, name);
        assert_eq!(value("periods_a_year"), per_year, "{calendar}");
        let of = |name: &str| value(&format!("baseline/equal_weight_held/{name}"));
        // From the first test date on: the last day of the year before, or the first weekday of the year.
        let test: Date = "2022-12-31".parse().unwrap();
        let closes: Vec<f64> = held
            .iter()
            .filter(|(day, _)| *day >= test)
            .map(|(_, close)| *close)
            .collect();
        let returns: Vec<f64> = closes.windows(2).map(|pair| pair[1] / pair[0] - 1.0).collect();
        let n = returns.len() as f64;
        let total = closes[closes.len() - 1] / closes[0] - 1.0;
        assert!(
            (of("total_return") - total).abs() < 1e-6,
            "{calendar}: {} {total}",
            of("total_return")
        );
        assert!(
            (of("annual_return") - ((1.0 + total).powf(per_year / n) - 1.0)).abs() < 1e-6,
            "{calendar}"
        );
        let mean = returns.iter().sum::<f64>() / n;
        let variance = returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let volatility = (per_year * variance).sqrt();
        assert!(
            (of("volatility") - volatility).abs() < 1e-4 * volatility,
            "{calendar}: {volatility}"
        );
        let sharpe = per_year * mean / volatility;
        assert!(
            (of("sharpe") - sharpe).abs() < 1e-3 * sharpe.abs(),
            "{calendar}: {sharpe}"
        );
        // Of a year of a market that never closes, the year's return is the annual one.
        assert_eq!(
            (of("annual_return") - total).abs() < 1e-6,
            per_year == 365.0,
            "{calendar}"
        );
        let ratio = last(&project, &ended, "found") / last(&project, &ended, "stated");
        assert!((ratio - (per_year / 252.0).sqrt()).abs() < 1e-9, "{calendar}: {ratio}");
        let (_, bars) = artifact(&project, &ended, "bars.bars");
        assert_eq!(bars.meta["periods_a_year"]["value"], per_year, "{calendar}");
        let (_, trajectory) = artifact(&project, &ended, "evaluate.trajectory");
        assert_eq!(trajectory.meta["periods_a_year"]["value"], per_year, "{calendar}");
    }
}

/// A table has no calendar: its instants tell.
#[test]
fn hours_around_the_clock_and_hours_of_sessions() {
    let first: Date = "2023-01-02".parse().unwrap();
    for (name, hours, keeps, per_year) in [
        ("clock", 0..24, (|_| true) as fn(&Date) -> bool, 8_760.0),
        ("sessions", 14..21, |day| !day.is_weekend(), 1_764.0),
        ("daily", 0..1, |day| !day.is_weekend(), 252.0),
        ("weekly", 0..1, |day| day.weekday() == 4, 52.0),
    ] {
        let project = Project::new(HOURS);
        let mut rows = "timestamp,symbol,close,signal\n".to_owned();
        let days = if name == "weekly" { 1_400 } else { 300 };
        let days = (0..days).map(|day| first.plus(day)).filter(keeps);
        let mut i = 0;
        for day in days {
            for hour in hours.clone() {
                writeln!(rows, "{day}T{hour:02}:00:00Z,BTC,{},{}", close(i), i % 11).unwrap();
                i += 1;
            }
        }
        project.write("rows.csv", &rows);
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{name}: {}", ended.text());
        assert_eq!(metric(&project, &ended, "periods_a_year"), per_year, "{name}");
    }
}
