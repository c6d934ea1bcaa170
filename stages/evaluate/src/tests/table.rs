//! Backtests on `env/table`: accounts that add up, baselines with known results, and episodes of reward
//! columns.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use datasets::{Date, SnapshotTime};
use stages_env::table::{SymbolRows, TableActionKind, TableActions, TableConfig, TableCosts, TableSource};
use stages_numerics::random::Random;

/// Two symbols of 300 days: prices that rise by 1 % and fall by 1 % a day, noise, and the payoffs of two
/// choices, 1 and -2.
pub(super) fn source() -> TableSource {
    let first: Date = "2020-01-01".parse().unwrap();
    let mut random = Random::new(&[1]);
    let mut of = |symbol: &str, growth: f64| SymbolRows {
        symbol: symbol.to_owned(),
        times: (0..300).map(|day| SnapshotTime::of_day(first.plus(day))).collect(),
        values: vec![
            (0..300).map(|day| 10.0 * growth.powi(day)).collect(),
            (0..300).map(|_| random.normal()).collect(),
            vec![1.0; 300],
            vec![-2.0; 300],
        ],
    };
    TableSource {
        columns: ["close", "noise", "good", "bad"].map(str::to_owned).into(),
        symbols: vec![of("DOWN", 0.99), of("UP", 1.01)],
    }
}

pub(super) fn workplace(config: &TableConfig) -> Workplace {
    table_workplace(&source(), config)
}

pub(super) fn table_workplace(source: &TableSource, config: &TableConfig) -> Workplace {
    let mut workplace = Workplace::new();
    let built = stages_env::table::build(source, config).unwrap();
    let meta = json!({ "family": "table", "format": 1 });
    let mut builder = ArtifactBuilder::new(&workplace.context.store, PortType::Env.name(), meta);
    for (name, bytes) in &built.files {
        builder.bytes(name, bytes).unwrap();
    }
    let digest = builder.finish().unwrap();
    workplace.connect("env", digest);
    let spec = workplace.env().spec().clone();
    workplace.connect_policy(&spec);
    workplace
}

pub(super) fn price(kind: TableActionKind) -> TableConfig {
    TableConfig {
        price: "close".to_owned(),
        observe: vec!["noise".to_owned()],
        actions: TableActions {
            kind,
            ..TableActions::default()
        },
        costs: TableCosts { basis_points: 10.0 },
        ..TableConfig::default()
    }
}

#[test]
fn constant_positions_earn_what_prices_do() {
    let workplace = workplace(&TableConfig {
        symbols: vec!["UP".to_owned()],
        ..price(TableActionKind::Discrete)
    });
    let (summary, table) = workplace.results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(of("worlds"), 1.0);
    // 75 of 300 rows are tested: 74 steps, and a tenth of a per cent once.
    // The costs are borrowed, and paid back at the next step for a millionth.
    let held = 1.01_f64.powi(73) * (1.01 - 0.001) - 1.0;
    for name in ["underlying", "always_position_1"] {
        assert!(
            (of(&format!("baseline/{name}/total_return")) - held).abs() < 4e-6,
            "{name}"
        );
    }
    for name in ["cash", "always_position_0"] {
        assert_eq!(of(&format!("baseline/{name}/total_return")), 0.0);
    }
    assert!(
        of("baseline/random/total_return").is_finite()
            && of("baseline/always_position_-1/total_return").is_finite()
    );
    assert!(summary["baseline/equal_weight/total_return"].is_null());
    assert!((of("profit/prices") + of("profit/costs") - of("total_return")).abs() < 1e-9);
    for name in ["nav", "position", "costs", "date", "world"] {
        assert!(table.column_by_name(name).is_some(), "{name}");
    }
    assert_eq!(workplace.results(&BacktestConfig::default()), (summary, table));
}

#[test]
fn weights_are_compared_with_equal_weights() {
    let (summary, table) = workplace(&price(TableActionKind::Weights)).results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    // Half of each at first, for a twentieth of a per cent of each.
    let held = 0.5 * 1.01_f64.powi(74) + 0.5 * 0.99_f64.powi(74) - 0.001 - 1.0;
    assert!((of("baseline/equal_weight_held/total_return") - held).abs() < 2e-3);
    // Rebalanced, gains and losses of a per cent offset each other but for costs.
    assert!(of("baseline/equal_weight/total_return").abs() < 5e-3);
    assert!(summary["baseline/underlying/total_return"].is_null());
    assert!(table.column_by_name("position.UP").is_some());
}

#[test]
fn reward_columns_are_summed_over_episodes() {
    let config = TableConfig {
        action_rewards: ["bad", "good"].map(str::to_owned).into(),
        observe: vec!["noise".to_owned()],
        costs: TableCosts { basis_points: 0.0 },
        ..TableConfig::default()
    };
    let (summary, table) = workplace(&config).results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((of("episodes"), of("episodic_length")), (2.0, 74.0));
    assert_eq!(of("baseline/always_good/episodic_return"), 74.0);
    assert_eq!(of("baseline/always_bad/episodic_return"), -148.0);
    assert_eq!(of("baseline/best_rule/episodic_return"), 74.0);
    assert!(of("baseline/random/episodic_return") < 0.0);
    assert!((-148.0..=74.0).contains(&of("episodic_return")));
    assert_eq!(table.num_rows(), 5 * 2 * 74);
    let totals = table.column_by_name("total").unwrap().as_primitive::<Float64Type>();
    assert_eq!(totals.value(2 * 74 + 2 * 73), -148.0);
    let one = TableConfig {
        action_rewards: Vec::new(),
        reward_column: "good".to_owned(),
        actions: TableActions {
            kind: TableActionKind::Continuous,
            ..TableActions::default()
        },
        ..config
    };
    let (summary, _) = workplace(&one).results(&BacktestConfig::default());
    assert_eq!(summary["baseline/underlying/episodic_return"], 74.0);
    assert_eq!(summary["baseline/cash/episodic_return"], 0.0);
}
