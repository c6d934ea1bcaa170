//! Backtests on `env/stocks`: profits that add up, weights that are those of the account, and its own
//! baselines.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use stages_env::stocks::synthetic::{eventful, panel};
use stages_env::stocks::{PanelSource, Rules, StocksConfig};

pub(super) fn stocks_workplace(sources: &[PanelSource], config: &StocksConfig) -> Workplace {
    let mut workplace = Workplace::new();
    let built = stages_env::stocks::build(sources, config).unwrap();
    let meta = json!({ "family": "stocks", "format": 2 });
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

fn of_policy(table: &RecordBatch, name: &str) -> Vec<f64> {
    let strategies = table.column_by_name("strategy").unwrap().as_string::<i32>();
    let values = table.column_by_name(name).unwrap().as_primitive::<Float64Type>();
    (0..table.num_rows())
        .filter(|&row| strategies.value(row) == "policy")
        .map(|row| values.value(row))
        .collect()
}

/// Splits, dividends, late listings and delistings: each cause is a line of its own, and all add up to the
/// return.
#[test]
fn profits_add_up() {
    let config = StocksConfig {
        test_fraction: 0.6,
        ..StocksConfig::default()
    };
    let workplace = stocks_workplace(&[eventful(400, 5, 2, 3)], &config);
    let (summary, table) = workplace.results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64().unwrap();
    let sum: f64 = [
        "prices",
        "dividends",
        "interest",
        "debit_interest",
        "borrow_cost",
        "commission",
        "spread_cost",
        "impact_cost",
        "delisting_loss",
    ]
    .iter()
    .map(|name| of(&format!("profit/{name}")))
    .sum();
    assert!((sum - of("total_return")).abs() < 1e-9);
    assert!(of("profit/dividends") > 0.0 && of("profit/spread_cost") <= 0.0);
    let (nav, cash) = (of_policy(&table, "nav"), of_policy(&table, "cash"));
    let weights: Vec<Vec<f64>> = (0..5).map(|k| of_policy(&table, &format!("weight.S{k:02}"))).collect();
    assert!(weights.iter().flatten().any(|weight| *weight > 0.0));
    for (t, (nav, cash)) in nav.iter().zip(&cash).enumerate() {
        let held: f64 = weights.iter().map(|weights| weights[t]).sum();
        assert!((held * nav + cash - nav).abs() < 1e-9 * nav, "{t}");
    }
}

/// A hedged portfolio has the hedge among the causes of profit, which still add up, and its exposure and beta
/// without and with it.
#[test]
fn a_hedge_is_a_cause_of_profit() {
    let mut config = StocksConfig {
        test_fraction: 0.6,
        ..StocksConfig::default()
    };
    config.hedge.instrument = stages_env::stocks::synthetic::FUND.to_owned();
    let mut source = eventful(500, 5, 2, 3);
    let Some(stages_env::stocks::HedgeBars::Symbol(fund)) = &source.hedge else {
        panic!("a fund")
    };
    // The symbols move with the fund.
    let fund = fund.bars.clone();
    for bar in source.bars.iter_mut().flat_map(|of| &mut of.bars) {
        if let Some(at) = fund.iter().rposition(|other| other.date <= bar.date) {
            let split = if bar.date >= fund[275.min(fund.len() - 1)].date {
                2.0
            } else {
                1.0
            };
            bar.close *= fund[at].close * split / fund[0].close;
        }
    }
    let workplace = stocks_workplace(&[source], &config);
    let (summary, table) = workplace.results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    let causes: Vec<f64> = summary
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("profit/") && *name != "profit/total")
        .map(|(_, value)| value.as_f64().unwrap())
        .collect();
    assert_eq!(causes.len(), 14);
    assert!((causes.iter().sum::<f64>() - of("total_return")).abs() < 1e-9);
    assert!(of("profit/hedge_prices") != 0.0 && of("profit/hedge_spread_cost") < 0.0);
    let before = of("hedge/exposure_before");
    assert!(before > 0.0 && of("hedge/exposure_after").abs() < 0.2 * before);
    assert!(of("hedge/beta_after").abs() < 0.5 * of("hedge/beta_before").abs());
    let (units, value) = (of_policy(&table, "hedge_units"), of_policy(&table, "hedge_value"));
    assert!(
        units.iter().zip(&value).all(|(units, value)| units * value >= 0.0) && units.iter().any(|u| *u < 0.0)
    );
    assert!(table.column_by_name("profit_hedge_prices").is_some());
}

#[test]
fn baselines_are_those_of_stocks() {
    let workplace = stocks_workplace(&[panel(700, 6, 1, 4)], &StocksConfig::default());
    let (summary, table) = workplace.results(&BacktestConfig::default());
    let of = |name: &str| summary[name].as_f64();
    for name in [
        "cash",
        "equal_weight_held",
        "equal_weight",
        "minimum_variance",
        "momentum",
        "random",
    ] {
        assert!(of(&format!("baseline/{name}/total_return")).is_some(), "{name}");
        assert!(of(&format!("versus/{name}/utility")).is_some(), "{name}");
    }
    assert!(of("baseline/short_straddle/total_return").is_none());
    // The market is the mean of the symbols: rebalanced to equal weights an account follows it, but for its
    // costs.
    assert!((of("baseline/equal_weight/beta").unwrap() - 1.0).abs() < 0.02);
    assert!(of("baseline/cash/volatility").unwrap() < 1e-12);
    assert!(
        of("baseline/minimum_variance/volatility").unwrap() < of("baseline/momentum/volatility").unwrap()
    );
    assert!(
        of("baseline/equal_weight/turnover").unwrap() > of("baseline/equal_weight_held/turnover").unwrap()
    );
    // Of a policy that has learned nothing, other markets' features cost nothing that counts.
    assert!(
        of("ablation/other_world/loss_utility").is_some()
            && of("ablation/shuffled_stocks/loss_utility").is_some()
    );
    let again = workplace.results(&BacktestConfig::default());
    assert_eq!((summary, table), again);
}

/// FinRL's rules have no ablations, whose observations are prices and account in one; baselines act under its
/// rules.
#[test]
fn finrl_rules() {
    let config = StocksConfig {
        rules: Rules::Finrl,
        ..StocksConfig::default()
    };
    let mut source = panel(700, 4, 2, 6);
    source.features.clear();
    let workplace = stocks_workplace(&[source], &config);
    let outputs = workplace.backtest(&BacktestConfig::default()).unwrap();
    let artifact = |port: &str| workplace.context.store.artifact(outputs[port]).unwrap();
    assert_eq!(artifact("trajectory").meta["rules"], "finrl");
    let summary = &artifact("metrics").meta["summary"];
    assert!(summary["ablation/other_world/loss_utility"].is_null());
    assert!(summary["baseline/equal_weight/sharpe"].is_number());
}
