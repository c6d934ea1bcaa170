//! Rules of visible features: what was planted is found, and neither test data nor hidden columns matter.

use super::stocks::stocks_workplace;
use super::table::table_workplace;
use super::*;
use datasets::{Date, SnapshotTime};
use stages_env::BaselineName;
use stages_env::stocks::synthetic::panel;
use stages_env::stocks::{PanelSource, StocksConfig, SymbolFeature};
use stages_env::table::{SymbolRows, TableSource};
use stages_numerics::random::Random;

const DAYS: usize = 700;
const SYMBOLS: usize = 8;
/// The first day of the test range.
const TESTED: usize = 525;

/// A panel whose returns follow one of four features, with noise; and the number of that feature.
fn planted(seed: u64, edge: f64) -> (PanelSource, usize) {
    let mut source = panel(DAYS, SYMBOLS, 4, seed);
    let mut random = Random::new(&[seed, 77]);
    let which = random.below(4) as usize;
    let mut expected = Vec::new();
    for (of, shown) in source.bars.iter_mut().zip(&mut source.symbol_features[which].values) {
        let (mut signal, mut drift) = (random.normal(), 0.0);
        let mut hidden = Vec::new();
        for (bar, (_, shown)) in of.bars.iter_mut().zip(shown) {
            for price in [&mut bar.open, &mut bar.close, &mut bar.adjusted_close] {
                *price *= f64::exp(drift);
            }
            *shown = signal + 0.5 * random.normal();
            hidden.push((bar.date, edge * signal));
            drift += edge * signal;
            signal = 0.95 * signal + (1.0 - 0.95 * 0.95_f64).sqrt() * random.normal();
        }
        expected.push(hidden);
    }
    source.hidden.push(SymbolFeature {
        name: "expected_return".to_owned(),
        values: expected,
    });
    (source, which)
}

fn config(more: Value) -> StocksConfig {
    let mut config = json!({
        "actions": { "largest": 0.25 },
        "fills": { "basis_points": 5, "lot": 0 },
        "reward": "return - market_return",
    });
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    serde_json::from_value(config).unwrap()
}

/// A backtest with as little beside the rules as can be.
fn small() -> BacktestConfig {
    BacktestConfig {
        baselines: vec![BaselineName::EqualWeight, BaselineName::Oracle],
        ablations: false,
        drawn_paths: 1,
        bootstrap_draws: 20,
        ..BacktestConfig::default()
    }
}

/// The rules by name, and the metrics.
fn found(workplace: &Workplace) -> (Value, Value) {
    let outputs = workplace.backtest(&small()).unwrap();
    let metrics = workplace.context.store.artifact(outputs["metrics"]).unwrap();
    (metrics.meta["rules"].clone(), metrics.meta["summary"].clone())
}

fn text<'a>(rules: &'a Value, name: &str) -> &'a str {
    let rule = rules.as_array().unwrap().iter().find(|rule| rule["name"] == name);
    rule.unwrap()["text"].as_str().unwrap()
}

/// The excess return of a baseline over equal weights.
fn over(summary: &Value, baseline: &str) -> f64 {
    let of = |name: &str| summary[format!("baseline/{name}/excess_return")].as_f64().unwrap();
    of(baseline) - of("equal_weight")
}

#[test]
fn a_planted_feature_is_found_and_the_oracle_is_above_it() {
    let (mut named, mut earned, mut below) = (0, 0, 0);
    for seed in 0..10 {
        let (source, which) = planted(seed, 0.002);
        let workplace = stocks_workplace(&[source], &config(json!({})));
        let (rules, summary) = found(&workplace);
        named += usize::from(text(&rules, "best_rule").contains(&format!("`indicator_{which}`")));
        earned += usize::from(over(&summary, "best_rule") > 0.0);
        below += usize::from(over(&summary, "oracle") > over(&summary, "best_rule"));
        assert!(summary["share_of_rule"].is_number() && summary["share_of_oracle_low"].is_number());
    }
    assert!(named >= 9 && earned >= 9 && below >= 9, "{named} {earned} {below}");
}

/// Without an edge the rules that are found earn nothing beyond noise on test data.
#[test]
fn without_an_edge_a_rule_earns_nothing() {
    let earned: Vec<f64> = (0..10)
        .map(|seed| {
            let workplace = stocks_workplace(&[planted(seed, 0.0).0], &config(json!({})));
            over(&found(&workplace).1, "best_rule")
        })
        .collect();
    let mean = earned.iter().sum::<f64>() / 10.0;
    let variance = earned.iter().map(|earned| (earned - mean).powi(2)).sum::<f64>() / 9.0;
    assert!(mean < 2.0 * (variance / 10.0).sqrt(), "{earned:?}");
}

/// A rule is found on training dates alone: whatever the test dates hold, it is the same. A validation range
/// takes part; hidden columns do not.
#[test]
fn test_data_and_hidden_columns_leave_the_rule_as_it_is() {
    let validated = json!({ "validation": { "from": "2019-06-03", "to": "2019-10-31" } });
    for more in [json!({}), validated] {
        let (source, _) = planted(3, 0.002);
        let (rules, summary) = found(&stocks_workplace(std::slice::from_ref(&source), &config(more.clone())));
        let mut other = source.clone();
        let mut random = Random::new(&[8]);
        for bar in other.bars.iter_mut().flat_map(|of| &mut of.bars[TESTED..]) {
            (bar.open, bar.close) = (10.0 + random.uniform(), 10.0 + random.uniform());
        }
        for feature in &mut other.symbol_features {
            for (_, value) in feature.values.iter_mut().flat_map(|values| &mut values[TESTED..]) {
                *value = random.normal();
            }
        }
        let (same, changed) = found(&stocks_workplace(&[other], &config(more.clone())));
        assert_eq!(text(&rules, "best_rule"), text(&same, "best_rule"));
        assert_ne!(
            summary["baseline/best_rule/sharpe"],
            changed["baseline/best_rule/sharpe"]
        );
        let mut shuffled = source;
        shuffled.hidden[0].values.reverse();
        let (same, _) = found(&stocks_workplace(&[shuffled], &config(more)));
        assert_eq!(text(&rules, "best_rule"), text(&same, "best_rule"));
        assert_ne!(text(&rules, "oracle"), text(&same, "oracle"));
    }
}

#[test]
fn the_same_rules_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let workplace = stocks_workplace(&[planted(5, 0.001).0], &config(json!({})));
        pool.install(|| workplace.backtest(&small()).unwrap())
    };
    assert!(run(1) == run(3));
}

/// A table of a price that rises where one of four columns is above a threshold, and falls elsewhere.
fn planted_table(seed: u64) -> (TableSource, usize) {
    let first: Date = "2015-01-01".parse().unwrap();
    let mut random = Random::new(&[seed, 78]);
    let which = random.below(4) as usize;
    let rows = 1200;
    let mut columns: Vec<Vec<f64>> = (0..4).map(|_| (0..rows).map(|_| random.normal()).collect()).collect();
    let mut price = 100.0;
    let mut prices = Vec::new();
    for t in 0..rows {
        prices.push(price);
        let drift = if columns[which][t] > 0.6 { 0.004 } else { -0.001 };
        price *= f64::exp(drift + 0.01 * random.normal());
    }
    columns.push(prices);
    let source = TableSource {
        columns: ["a", "b", "c", "d", "close"].map(str::to_owned).into(),
        symbols: vec![SymbolRows {
            symbol: "X".to_owned(),
            times: (0..rows as i32)
                .map(|day| SnapshotTime::of_day(first.plus(day)))
                .collect(),
            values: columns,
        }],
    };
    (source, which)
}

#[test]
fn a_planted_threshold_of_a_table_is_found_whatever_the_test_rows_hold() {
    let (mut named, mut earned) = (0, 0);
    let config = serde_json::from_value(json!({
        "price": "close",
        "observe": ["a", "b", "c", "d"],
        "costs": { "basis_points": 1 },
        "reward": "return",
    }));
    let config = config.unwrap();
    for seed in 0..10 {
        let (mut source, which) = planted_table(seed);
        let (rules, summary) = found(&table_workplace(&source, &config));
        let name = ["a", "b", "c", "d"][which];
        named += usize::from(text(&rules, "best_rule").contains(&format!("`{name}` is above")));
        earned += usize::from(summary["baseline/best_rule/excess_return"].as_f64().unwrap() > 0.0);
        for values in &mut source.symbols[0].values {
            values[900..].reverse();
        }
        let (same, _) = found(&table_workplace(&source, &config));
        assert_eq!(text(&rules, "best_rule"), text(&same, "best_rule"));
    }
    assert!(named >= 9 && earned >= 9, "{named} {earned}");
}
