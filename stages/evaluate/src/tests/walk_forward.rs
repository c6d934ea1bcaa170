//! Walk-forwards of folds whose accounts are known.

use super::*;
use crate::performance::{Periods, mean_and_deviation, sharpe};
use crate::{WalkForward, WalkForwardConfig};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use datasets::{Date, SnapshotTime};
use stages_core::table;
use std::sync::Arc;

/// A backtest of 100 days from `first` on: the policy, cash and a strategy of two paths, with returns of the
/// day.
fn fold(workplace: &Workplace, first: i32, baselines: &[(&str, f64)]) -> Input {
    let mut columns: [Vec<f64>; 4] = Default::default();
    let (mut strategies, mut actions, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let runs = [("policy", 0.0)].iter().chain(baselines);
    for &(strategy, path) in runs {
        let mut nav = 1e6;
        for day in 0..=100 {
            strategies.push(strategy);
            actions.push((strategy == "policy" && day < 100).then_some("hold"));
            times.push(SnapshotTime::of_day(Date(first + day)));
            let [paths, navs, underlying, _] = &mut columns;
            paths.push(path);
            navs.push(nav);
            underlying.push(100.0 + f64::from(day % 7));
            nav *= 1.0 + growth(strategy, path, first + day);
        }
    }
    let [paths, navs, underlying, _] = columns;
    let time = table::time_columns(times);
    let mut all: Vec<(&str, ArrayRef, bool)> = vec![
        ("strategy", Arc::new(StringArray::from(strategies)), false),
        ("path", Arc::new(Float64Array::from(paths)), false),
    ];
    all.extend(time.into_iter().map(|(name, array)| (name, array, false)));
    all.push(("action", Arc::new(StringArray::from(actions)), true));
    all.push(("underlying", Arc::new(Float64Array::from(underlying)), false));
    all.push(("nav", Arc::new(Float64Array::from(navs)), false));
    let rows = RecordBatch::try_from_iter_with_nullable(all).unwrap();
    // The days are every day's: a backtest states what else they do not tell.
    let about = json!({ "periods_a_year": { "value": 252.0, "origin": "calendar us" } });
    let mut builder = ArtifactBuilder::new(&workplace.context.store, PortType::Trajectory.name(), about);
    builder
        .bytes("trajectory.parquet", &table::to_parquet(&rows).unwrap())
        .unwrap();
    let digest = builder.finish().unwrap();
    Input {
        digest,
        artifact: workplace.context.store.artifact(digest).unwrap(),
    }
}

/// The return of a strategy from a day to the next.
fn growth(strategy: &str, path: f64, day: i32) -> f64 {
    let wave = f64::from(day * 37 % 23 - 11) * 1e-4;
    match strategy {
        "policy" => 4e-4 + wave,
        "cash" => 1e-4,
        _ => path * 1e-4 + f64::from(day * 13 % 17 - 8) * 1e-4,
    }
}

const BASELINES: [(&str, f64); 3] = [("cash", 0.0), ("random", 0.0), ("random", 1.0)];

fn walk(workplace: &mut Workplace, folds: Vec<Input>) -> Result<(Value, RecordBatch), StageError> {
    workplace.context.inputs.insert("trajectory".to_owned(), folds);
    let outputs = WalkForward.run(&WalkForwardConfig::default(), &workplace.context)?;
    let store = &workplace.context.store;
    let metrics = store.artifact(outputs["metrics"]).unwrap();
    let trajectory = store.artifact(outputs["trajectory"]).unwrap();
    let entry = trajectory.entry("trajectory.parquet").unwrap();
    let rows = table::from_parquet(store.blob(entry.blob).unwrap()).unwrap();
    Ok((metrics.meta["summary"].clone(), rows))
}

#[test]
fn folds_are_one_backtest_in_order_of_time() {
    let mut workplace = Workplace::new();
    let (early, late) = (
        fold(&workplace, 17_000, &BASELINES),
        fold(&workplace, 17_200, &BASELINES),
    );
    let (metrics, rows) = walk(&mut workplace, vec![late.clone(), early.clone()]).unwrap();
    let value = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    let near = |name: &str, wanted: f64| {
        assert!((value(name) - wanted).abs() < 1e-9, "{name}: {} {wanted}", value(name))
    };

    let days: Vec<i32> = (17_000..17_100).chain(17_200..17_300).collect();
    let returns =
        |strategy: &str, path: f64| days.iter().map(|&day| growth(strategy, path, day)).collect::<Vec<_>>();
    let total = |returns: &[f64]| returns.iter().fold(1.0, |nav, r| nav * (1.0 + r)) - 1.0;
    let (policy, cash) = (returns("policy", 0.0), returns("cash", 0.0));
    near("total_return", total(&policy));
    near("baseline/cash/total_return", total(&cash));
    let random = [0.0, 1.0].map(|path| returns("random", path));
    near(
        "baseline/random/total_return",
        (total(&random[0]) + total(&random[1])) / 2.0,
    );
    let excess: Vec<f64> = policy.iter().zip(&cash).map(|(r, free)| r - free).collect();
    near("sharpe", sharpe(&excess, Periods::DAILY));
    near("excess_return", 252.0 * mean_and_deviation(&excess).0);
    assert!(value("sharpe_low") < value("sharpe") && value("sharpe") < value("sharpe_high"));
    near("versus/cash/excess_return", value("excess_return"));
    let mean_random: Vec<f64> = random[0].iter().zip(&random[1]).map(|(a, b)| (a + b) / 2.0).collect();
    let versus = mean_and_deviation(&policy).0 - mean_and_deviation(&mean_random).0;
    near("versus/random/excess_return", 252.0 * versus);
    assert!(value("versus/random/excess_return_low") < 252.0 * versus);
    near("fold/2016-07-18/total_return", total(&policy[..100]));
    near("fold/2017-02-03/baseline/cash/total_return", total(&cash[100..]));
    assert_eq!((value("folds"), value("steps")), (2.0, 200.0));

    // The account of the late fold goes on where the early one ended.
    let nav = table::floats(&rows, "nav").unwrap();
    let dates = table::dates(&rows, "date").unwrap();
    assert_eq!(
        (dates[0], dates[100], dates[101]),
        (Date(17_000), Date(17_100), Date(17_200))
    );
    assert_eq!(nav.value(100), nav.value(101));
    assert!((nav.value(201) / 1e6 - 1.0 - total(&policy)).abs() < 1e-12);
}

/// Backtests of portfolios join as those of options do: the market is their underlying, and what they hold
/// are weights.
#[test]
fn portfolios_walk_forward() {
    let source = stages_env::stocks::synthetic::panel(500, 4, 1, 6);
    let date = |i: usize| source.bars[0].bars[i].date;
    let mut folds = Vec::new();
    for (from, to) in [(250, 370), (371, 499)] {
        let config = stages_env::stocks::StocksConfig {
            test: Some(
                datasets::DateRange {
                    from: date(from),
                    to: date(to),
                }
                .into(),
            ),
            ..Default::default()
        };
        let workplace = stocks::stocks_workplace(std::slice::from_ref(&source), &config);
        let outputs = workplace.backtest(&BacktestConfig::default()).unwrap();
        let digest = outputs["trajectory"];
        let entry = workplace
            .context
            .store
            .artifact(digest)
            .unwrap()
            .entry("trajectory.parquet")
            .unwrap()
            .blob;
        folds.push(workplace.context.store.blob(entry).unwrap().to_vec());
    }
    let mut workplace = Workplace::new();
    let inputs = folds.into_iter().map(|bytes| {
        let mut builder =
            ArtifactBuilder::new(&workplace.context.store, PortType::Trajectory.name(), json!({}));
        builder.bytes("trajectory.parquet", &bytes).unwrap();
        let digest = builder.finish().unwrap();
        let artifact = workplace.context.store.artifact(digest).unwrap();
        Input { digest, artifact }
    });
    let inputs = inputs.collect();
    let (summary, rows) = walk(&mut workplace, inputs).unwrap();
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((of("folds"), of("steps")), (2.0, 248.0));
    // Rebalanced to equal weights, an account follows the market but for its costs.
    assert!(of("baseline/equal_weight/volatility") > 0.0 && of("sharpe").is_finite());
    let level = table::floats(&rows, "underlying").unwrap();
    assert!(level.value(0) == 1.0 && level.value(120) != 1.0 && level.value(121) == 1.0);
}

#[test]
fn folds_that_do_not_join_are_refused() {
    let mut workplace = Workplace::new();
    let early = fold(&workplace, 17_000, &BASELINES);
    let same = fold(&workplace, 17_100, &BASELINES);
    let refused = walk(&mut workplace, vec![early.clone(), same]).unwrap_err();
    assert!(refused.message.contains("2016-10-26"), "{refused}");
    let other = fold(&workplace, 17_200, &BASELINES[..2]);
    let refused = walk(&mut workplace, vec![early.clone(), other]).unwrap_err();
    assert!(refused.message.contains("`random`"), "{refused}");
    let poor = fold(&workplace, 17_200, &[]);
    let refused = walk(&mut workplace, vec![poor]).unwrap_err();
    assert!(refused.message.contains("`cash`"), "{refused}");
}
