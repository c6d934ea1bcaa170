//! A search over a market without anything to find: no figure of its winner says that there was.

use super::table::table_workplace;
use super::*;
use crate::{EvaluatedOn, Overfitting, OverfittingConfig};
use datasets::{Date, DateRange, SnapshotTime};
use rayon::prelude::*;
use stages_env::options::{RewardConfig, RewardKind};
use stages_env::table::{SymbolRows, TableActions, TableConfig, TableCosts, TableSource};
use stages_numerics::random::Random;

/// The standard deviation of a day's return, and the risk aversion.
const VOLATILITY: f64 = 0.01;
const RISK_AVERSION: f64 = 5.0;

/// A price without drift and three columns of noise over 1240 days: 100 to train, 560 to validate on, 559 to
/// test on. The policies hold the price or are short of it, without costs, so that the true utility of each
/// is the same.
fn workplace(seed: u64) -> Workplace {
    let first = Date(18_262);
    let mut random = Random::new(&[seed, 0x6e75_6c6c]);
    let mut close = 100.0;
    let mut values = vec![Vec::new(); 4];
    for _ in 0..1240 {
        close *= 1.0 + VOLATILITY * random.normal();
        values[0].push(close);
        values[1..].iter_mut().for_each(|column| column.push(random.normal()));
    }
    let source = TableSource {
        columns: ["close", "a", "b", "c"].map(str::to_owned).into(),
        symbols: vec![SymbolRows {
            symbol: "NULL".to_owned(),
            times: (0..1240).map(|day| SnapshotTime::of_day(first.plus(day))).collect(),
            values,
        }],
    };
    let days = |from: i32, to: i32| DateRange {
        from: first.plus(from),
        to: first.plus(to),
    };
    let config = TableConfig {
        price: "close".to_owned(),
        observe: ["a", "b", "c"].map(str::to_owned).into(),
        actions: TableActions {
            positions: vec![-1.0, 1.0],
            ..TableActions::default()
        },
        costs: TableCosts { basis_points: 0.0 },
        train: Some(days(0, 99)),
        validation: Some(days(110, 669).into()),
        test: Some(days(680, 1239).into()),
        reward: RewardConfig {
            kind: RewardKind::MeanVariance,
            risk_aversion: RISK_AVERSION,
            ..RewardConfig::default()
        },
        ..TableConfig::default()
    };
    table_workplace(&source, &config)
}

/// The trajectory of a policy with random weights.
fn trial(workplace: &mut Workplace, weights: u64, on: EvaluatedOn) -> Input {
    let spec = workplace.env().spec().clone();
    let architecture = Architecture {
        obs_dim: spec.obs_dim(),
        head: ActionHead::of(&spec.action_space),
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![8],
        vf: vec![4],
    };
    workplace.connect_params(&spec, &architecture, initial(&architecture, false, weights));
    let config = BacktestConfig {
        on,
        rules: false,
        ablations: false,
        baselines: Vec::new(),
        drawn_paths: 1,
        bootstrap_draws: 1,
        ..BacktestConfig::default()
    };
    let digest = workplace.backtest(&config).unwrap()["trajectory"];
    let artifact = workplace.context.store.artifact(digest).unwrap();
    Input { digest, artifact }
}

/// A search of 24 trials, whose winner is the best on validation data, is tested with
/// three other seeds.
fn search(seed: u64) -> Value {
    let mut workplace = workplace(seed);
    let mut of = |first: u64, n: u64, on| -> Vec<Input> {
        (first..first + n)
            .map(|weights| trial(&mut workplace, 1000 * seed + weights, on))
            .collect()
    };
    let trials = of(0, 24, EvaluatedOn::Validation);
    let (fresh, test) = (of(100, 3, EvaluatedOn::Validation), of(100, 3, EvaluatedOn::Test));
    workplace.context.inputs = [("trials", trials), ("selected", fresh), ("test", test)]
        .map(|(port, of)| (port.to_owned(), of))
        .into();
    let config = OverfittingConfig {
        groups: 10,
        bootstrap_draws: 300,
        bootstrap_block: 1.0,
        ..OverfittingConfig::default()
    };
    let outputs = Overfitting.run(&config, &workplace.context).unwrap();
    workplace.context.store.artifact(outputs["metrics"]).unwrap().meta["summary"].clone()
}

#[test]
fn a_search_finds_nothing_where_there_is_nothing() {
    let found: Vec<Value> = (0..20).into_par_iter().map(search).collect();
    let values = |name: &str| -> Vec<f64> {
        found
            .iter()
            .map(|of| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}")))
            .collect()
    };
    let mean = |name: &str| values(name).iter().sum::<f64>() / 20.0;
    let count = |is: &dyn Fn(usize) -> bool| (0..20).filter(|&search| is(search)).count();
    let holds = |name: &str, value: &dyn Fn(usize) -> f64| {
        let (low, high) = (values(&format!("{name}_low")), values(&format!("{name}_high")));
        count(&|search| low[search] <= value(search) && value(search) <= high[search])
    };
    // Of every day in a year.
    let truth = -0.5 * RISK_AVERSION * VOLATILITY * VOLATILITY * 365.0;
    // At most one in ten searches says that there was something.
    for name in ["deflated_sharpe", "selection/deflated_sharpe"] {
        let low = values(name).into_iter().filter(|ratio| *ratio < 0.95).count();
        assert!(low >= 18, "{name}: {:?}", values(name));
    }
    assert!((mean("pbo") - 0.5).abs() < 0.15, "{}", mean("pbo"));
    // Selection owes to chance what the best of 24 trials without skill does, and other seeds and other data
    // give it back.
    let gap = mean("gap/test/utility");
    assert!(
        (gap / mean("no_skill/utility") - 1.0).abs() < 0.2,
        "{gap} {}",
        mean("no_skill/utility")
    );
    let no_skill = values("no_skill/utility");
    assert!(holds("gap/test/utility", &|search| no_skill[search]) >= 18);
    for name in ["fresh/utility", "test/utility"] {
        assert!((mean(name) - truth).abs() < 0.04, "{name}: {} {truth}", mean(name));
        assert!(holds(name, &|_| truth) >= 18, "{name}");
    }
    assert!(mean("selection/utility") - truth > 0.2 && holds("selection/utility", &|_| truth) < 17);
}
