//! Walk-forwards of folds whose accounts are known.

use super::*;
use crate::account::{Account, Accounts, CLOSING_COST, STEPS, SUMS};
use crate::performance::tests::sharpe;
use crate::performance::{Periods, mean_and_deviation};
use crate::trajectory;
use crate::{WalkForward, WalkForwardConfig};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use datasets::{Date, DateRange, SnapshotTime};
use stages_core::table;
use stages_env::options::HeldOut;
use stages_env::stocks::StocksConfig;
use stages_env::table::{TableActionKind, TableConfig, TableCosts};
use std::sync::Arc;

/// The costs of closing at the end of a fold, as a fraction of the capital at its start.
const CLOSING: f64 = 0.01;

/// A backtest of 100 days from `first` on: the policy, cash and a strategy of two paths, with returns of the
/// day.
fn fold(workplace: &Workplace, first: i32, runs: &[(&str, f64)], trials: usize) -> Input {
    let mut columns: Vec<(&str, Vec<f64>)> = ["path", "nav", "episode", CLOSING_COST]
        .into_iter()
        .chain(SUMS)
        .chain(STEPS)
        .map(|name| (name, Vec::new()))
        .collect();
    let (mut strategies, mut actions, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for &(strategy, path) in runs {
        let mut nav = 1e6;
        for day in 0..=100 {
            strategies.push(strategy);
            actions.push((strategy == "policy" && day < 100).then_some("hold"));
            times.push(SnapshotTime::of_day(Date(first + day)));
            let (free, market) = match day {
                0 => (0.0, 0.0),
                day => (1e-4, growth("market", 0.0, first + day - 1)),
            };
            for (name, values) in &mut columns {
                values.push(match *name {
                    "path" => path,
                    "nav" => nav,
                    CLOSING_COST if strategy == "policy" => 1e6 * CLOSING,
                    "costs" => f64::from(day),
                    "risk_free" => free,
                    "underlying_return" => market,
                    _ => 0.0,
                });
            }
            nav *= 1.0 + growth(strategy, path, first + day);
        }
    }
    let rows = strategies.len();
    let texts = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let mut all: Vec<(&str, ArrayRef, bool)> = vec![
        ("strategy", texts(strategies), false),
        ("world", texts(vec!["A"; rows]), false),
        ("action", Arc::new(StringArray::from(actions)), true),
    ];
    all.extend(
        table::time_columns(times)
            .into_iter()
            .map(|(name, array)| (name, array, false)),
    );
    for (name, values) in columns {
        all.push((name, Arc::new(Float64Array::from(values)), false));
    }
    let rows = RecordBatch::try_from_iter_with_nullable(all).unwrap();
    // The days are every day's: a backtest states what else they do not tell.
    let about = json!({ "periods_a_year": { "value": 252.0, "origin": "calendar us" }, "trials": trials });
    stored(workplace, &table::to_parquet(&rows).unwrap(), about)
}

fn stored(workplace: &Workplace, parquet: &[u8], about: Value) -> Input {
    let store = &workplace.context.store;
    let mut builder = ArtifactBuilder::new(store, PortType::Trajectory.name(), about);
    builder.bytes("trajectory.parquet", parquet).unwrap();
    let digest = builder.finish().unwrap();
    let artifact = store.artifact(digest).unwrap();
    Input { digest, artifact }
}

/// The return of a strategy from a day to the next.
fn growth(strategy: &str, path: f64, day: i32) -> f64 {
    let wave = f64::from(day * 37 % 23 - 11) * 1e-4;
    match strategy {
        "policy" => 4e-4 + wave,
        "cash" => 1e-4,
        "market" => f64::from(day * 7 % 19 - 9) * 1e-4,
        _ => path * 1e-4 + f64::from(day * 13 % 17 - 8) * 1e-4,
    }
}

const RUNS: [(&str, f64); 4] = [("policy", 0.0), ("cash", 0.0), ("random", 0.0), ("random", 1.0)];

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
    let (early, late) = (fold(&workplace, 17_000, &RUNS, 3), fold(&workplace, 17_100, &RUNS, 40));
    let (metrics, rows) = walk(&mut workplace, vec![late.clone(), early.clone()]).unwrap();
    let value = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    let near = |name: &str, wanted: f64| {
        assert!((value(name) - wanted).abs() < 1e-9, "{name}: {} {wanted}", value(name))
    };

    let returns = |strategy: &str, path: f64| {
        (17_000..17_200)
            .map(|day| growth(strategy, path, day))
            .collect::<Vec<_>>()
    };
    let total = |returns: &[f64]| returns.iter().fold(1.0, |nav, r| nav * (1.0 + r)) - 1.0;
    // The policy's last step of the early fold pays for closing, the late fold for nothing.
    let mut policy = returns("policy", 0.0);
    let early_end = total(&policy[..100]);
    policy[99] -= CLOSING / (1.0 + total(&policy[..99]));
    assert!((total(&policy[..100]) - (early_end - CLOSING)).abs() < 1e-12);
    let cash = returns("cash", 0.0);
    near("total_return", total(&policy));
    near("closing_cost", CLOSING);
    near("profit/closing_cost", -CLOSING);
    near("costs", 1e-4 + CLOSING + 1e-4 * (1.0 + total(&policy[..100])));
    near("baseline/cash/closing_cost", 0.0);
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
    let ratio = value("volatility") / value("baseline/random/volatility");
    near("baseline/random/leverage", ratio);
    near(
        "versus/random/matched_excess_return",
        value("excess_return") - ratio * value("baseline/random/excess_return"),
    );
    // Of 40 trials, as the late fold says.
    assert_eq!(value("trials"), 40.0);
    assert!(value("deflated_sharpe") < value("probabilistic_sharpe"));
    near("fold/2016-07-18/total_return", early_end);
    near("fold/2016-10-26/baseline/cash/total_return", total(&cash[100..]));
    assert_eq!((value("folds"), value("steps")), (2.0, 200.0));

    // A row for each date, on which the late fold decides; the account goes on where the early one ended.
    let nav = table::floats(&rows, "nav").unwrap();
    let dates = table::dates(&rows, "date").unwrap();
    assert!(dates[..=200].windows(2).all(|pair| pair[1] == pair[0].plus(1)));
    let folds = table::texts(&rows, "fold").unwrap();
    assert_eq!((folds.value(99), folds.value(100)), ("2016-07-18", "2016-10-26"));
    assert!((nav.value(100) / 1e6 - 1.0 - (early_end - CLOSING)).abs() < 1e-12);
    assert!((nav.value(200) / 1e6 - 1.0 - total(&policy)).abs() < 1e-12);
}

/// A walk-forward of one fold has every measure of its backtest, ablations and spreads among them.
#[test]
fn one_fold_has_the_measures_of_its_backtest() {
    let source = stages_env::stocks::synthetic::panel(500, 4, 1, 6);
    let workplaces = [
        stocks::stocks_workplace(&[source], &StocksConfig::default()),
        options_workplace(320, &OptionsConfig::default()),
        worlds::worlds_workplace(true),
    ];
    for mut workplace in workplaces {
        let outputs = workplace.backtest(&worlds::config()).unwrap();
        let summary = |outputs: &Outputs| {
            let artifact = workplace.context.store.artifact(outputs["metrics"]).unwrap();
            artifact.meta["summary"].as_object().unwrap().clone()
        };
        let wanted = summary(&outputs);
        let digest = outputs["trajectory"];
        let artifact = workplace.context.store.artifact(digest).unwrap();
        let input = Input { digest, artifact };
        let found = {
            workplace.context.inputs.insert("trajectory".to_owned(), vec![input]);
            let config = WalkForwardConfig {
                bootstrap_draws: worlds::config().bootstrap_draws,
                ..WalkForwardConfig::default()
            };
            summary(&WalkForward.run(&config, &workplace.context).unwrap())
        };
        let mut compared = 0;
        for (name, value) in &wanted {
            let Some(theirs) = found.get(name) else {
                // Measures of one market alone.
                let own = ["masked/", "hedge/"].iter().any(|prefix| name.starts_with(prefix))
                    || !name.contains('/') && !name.contains("sharpe") && !name.contains("return");
                assert!(own, "no {name}");
                continue;
            };
            compared += 1;
            match (value.as_f64(), theirs.as_f64()) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "{name}: {a} {b}"),
                (a, b) => assert_eq!(a, b, "{name}"),
            }
        }
        assert!(compared > 200, "{compared}");
        for name in [
            "ablation/other_world/loss_utility_low",
            "blind",
            "double_spread/sharpe",
            "alpha_low",
        ] {
            assert!(found.contains_key(name), "{name}");
        }
    }
}

/// Without costs, holding a symbol over folds that join is holding it over all of their dates.
#[test]
fn no_step_is_left_out_between_folds() {
    let first: Date = "2020-01-01".parse().unwrap();
    let test = |from: i32, to: i32, closes_after: bool| HeldOut {
        closes_after,
        ..DateRange {
            from: first.plus(from),
            to: first.plus(to),
        }
        .into()
    };
    let run = |test: HeldOut, basis_points: f64| {
        let workplace = super::table::workplace(&TableConfig {
            symbols: vec!["UP".to_owned()],
            test: Some(test),
            costs: TableCosts { basis_points },
            ..super::table::price(TableActionKind::Discrete)
        });
        let outputs = workplace.backtest(&BacktestConfig::default()).unwrap();
        let of = |name: &str| workplace.context.store.artifact(outputs[name]).unwrap();
        let blob = of("trajectory").entry("trajectory.parquet").unwrap().blob;
        let bytes = workplace.context.store.blob(blob).unwrap().to_vec();
        (of("metrics").meta["summary"].clone(), bytes, of("trajectory").meta)
    };
    let mut workplace = Workplace::new();
    let mut joined = |basis_points: f64| {
        let folds = [test(100, 169, true), test(170, 229, true), test(230, 299, false)];
        let inputs = folds.map(|test| {
            let (_, bytes, about) = run(test, basis_points);
            stored(&workplace, &bytes, about)
        });
        walk(&mut workplace, inputs.to_vec()).unwrap()
    };
    let (whole, ..) = run(test(100, 299, false), 0.0);
    let (found, rows) = joined(0.0);
    let value = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(value(&found, "steps"), 199.0);
    for name in [
        "total_return",
        "excess_return",
        "volatility",
        "max_drawdown",
        "annual_return",
        "utility",
    ] {
        let name = format!("baseline/underlying/{name}");
        let (a, b) = (value(&found, &name), value(&whole, &name));
        assert!((a - b).abs() <= 1e-13 * (1.0 + a.abs()), "{name}: {a} {b}");
    }
    assert_eq!(value(&found, "baseline/underlying/closing_cost"), 0.0);
    assert!(rows.num_rows() > 0);

    // At ten basis points each fold pays a thousandth to close what it holds, but the last.
    let (found, _) = joined(10.0);
    let growth = 1.01_f64.powi(70);
    let closing = 1e-3 * growth + 1e-3 * growth * 1.01_f64.powi(60);
    let told = value(&found, "baseline/underlying/closing_cost");
    assert!((told / closing - 1.0).abs() < 0.01, "{told} {closing}");
    assert_eq!(value(&found, "baseline/cash/closing_cost"), 0.0);
}

/// An account that ends in ruin within a fold earns nothing in the folds that follow.
#[test]
fn ruin_lasts() {
    let account = |from: i32, nav: [f64; 3]| Account {
        times: (from..from + 3).map(|day| SnapshotTime::of_day(Date(day))).collect(),
        nav: nav.to_vec(),
        sums: SUMS.map(|_| vec![0.0; 3]),
        closing: vec![0.0; 3],
        steps: STEPS.map(|_| vec![1e-4; 2]),
        regimes: vec![None; 2],
        actions: vec![None; 2],
        ..Account::default()
    };
    let ruined = Account::joined(vec![account(0, [1.0, 0.0, f64::NAN]), account(2, [1.0, 1.1, 1.2])]);
    let returns = ruined.returns(1.0);
    assert_eq!(returns.account, [-1.0, 0.0, 0.0, 0.0]);
    assert_eq!(returns.excess[1..], [0.0; 3]);
    // Where folds do not meet, the step between them earns nothing.
    let apart = Account::joined(vec![account(0, [1.0, 1.5, 2.0]), account(5, [10.0, 20.0, 30.0])]);
    assert_eq!(apart.returns(1.0).account, [0.5, 2.0 / 1.5 - 1.0, 0.0, 1.0, 0.5]);
    assert_eq!(apart.nav, [1.0, 1.5, 2.0, 2.0, 4.0, 6.0]);
}

#[test]
fn folds_that_do_not_join_are_refused() {
    let mut workplace = Workplace::new();
    let early = fold(&workplace, 17_000, &RUNS, 1);
    let same = fold(&workplace, 17_099, &RUNS, 1);
    let refused = walk(&mut workplace, vec![early.clone(), same]).unwrap_err();
    assert!(refused.message.contains("2016-10-26"), "{refused}");
    let other = fold(&workplace, 17_200, &RUNS[..3], 1);
    let refused = walk(&mut workplace, vec![early.clone(), other]).unwrap_err();
    assert!(refused.message.contains("`random`"), "{refused}");
    let poor = fold(&workplace, 17_200, &RUNS[1..], 1);
    let refused = walk(&mut workplace, vec![poor]).unwrap_err();
    assert!(refused.message.contains("policy"), "{refused}");
}

/// A trajectory tells all accounts of a backtest, ablations among them.
#[test]
fn accounts_are_read_as_they_were_written() {
    let workplace = worlds::worlds_workplace(true);
    let (_, rows) = workplace.results(&worlds::config());
    let (accounts, causes) = trajectory::accounts(&rows).unwrap();
    let names: Vec<(&str, usize)> = accounts
        .iter()
        .map(|of: &Accounts| (of.name.as_str(), of.accounts.len()))
        .collect();
    for expected in [
        ("policy", 3),
        ("other_world", 3),
        ("no_memory", 3),
        ("drawn", 3),
        ("random", 6),
    ] {
        assert!(names.contains(&expected), "{names:?}");
    }
    assert_eq!(causes, PROFITS);
    let policy = &accounts[0].accounts[0];
    let profit: f64 = policy.profits.iter().flatten().sum();
    assert!((policy.nav[policy.end()] - policy.nav[0] - profit).abs() < 1e-6 * policy.nav[0]);
    assert!(policy.regimes.iter().all(Option::is_some));
}
