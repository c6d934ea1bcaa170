//! Drift of features, of the quality of data, and of fills.

use super::*;
use crate::{Drift, DriftConfig, DriftLimits};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use datasets::Date;
use datasets::quality::{self, Tally};
use stages_core::dataset::{Period, partition, write};
use stages_core::table;
use stages_numerics::random::Random;

/// A feature of 400 days that moves by `shift` deviations in the last 40, and of which every `hole`-th value
/// is missing there.
fn features(workplace: &mut Workplace, shift: f64, hole: usize) {
    let random = &mut Random::new(&[7]);
    let first = Date::from_ymd(2020, 1, 1).unwrap();
    let days: Vec<Date> = (0..400).map(|day| first.plus(day)).collect();
    let value = |i: usize, random: &mut Random| match i >= 360 {
        true if (i + 1).is_multiple_of(hole) => f64::NAN,
        is_last => random.normal() + if is_last { shift } else { 0.0 },
    };
    let values: Vec<f64> = (0..400).map(|i| value(i, random)).collect();
    let symbol: StringArray = days.iter().map(|_| Some("A")).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![("symbol", Arc::new(symbol))];
    columns.extend(table::time_columns(
        days.iter().map(|day| datasets::SnapshotTime::of_day(*day)),
    ));
    columns.push(("x", Arc::new(table::nullable(&values))));
    let steady: Float64Array = (0..400).map(|i| Some(f64::from(i % 5))).collect();
    columns.push(("steady", Arc::new(steady)));
    let nullable = columns.into_iter().map(|(name, column)| (name, column, name == "x"));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
    let store = &workplace.context.store;
    let partitions = partition(store, &batch, Period::Year, "A").unwrap();
    let digest = write(
        store,
        PortType::Features,
        json!({ "features": ["x", "steady"] }),
        partitions,
    )
    .unwrap();
    workplace.connect("features", digest);
}

fn config() -> DriftConfig {
    DriftConfig {
        recent: 40,
        ..DriftConfig::default()
    }
}

fn drift(workplace: &Workplace, config: &DriftConfig) -> Result<(Value, String), StageError> {
    let outputs = Drift.run(config, &workplace.context)?;
    let store = &workplace.context.store;
    let metrics = store.artifact(outputs["metrics"]).unwrap();
    let blob = store.blob(metrics.entry("drift.csv").unwrap().blob).unwrap();
    Ok((
        metrics.meta["summary"].clone(),
        std::str::from_utf8(&blob).unwrap().to_owned(),
    ))
}

/// The state of each sample.
fn states(table: &str) -> Vec<String> {
    let state = |line: &str| line.split(',').take(2).collect::<Vec<_>>().join(" ").replace('"', "");
    table.lines().skip(1).map(state).collect()
}

#[test]
fn a_feature_that_moved_is_told_from_one_that_did_not() {
    let mut workplace = Workplace::new();
    features(&mut workplace, 0.0, 1_000);
    let (summary, table) = drift(&workplace, &config()).unwrap();
    assert_eq!(summary["drifted"], json!(0.0), "{table}");
    features(&mut workplace, 2.0, 2);
    let (summary, table) = drift(&workplace, &config()).unwrap();
    assert_eq!(
        states(&table),
        [
            "feature/steady ok",
            "feature/x warn",
            "quality/features/missing/steady ok",
            "quality/features/missing/x warn"
        ]
    );
    assert_eq!((&summary["drifted"], &summary["samples"]), (&json!(2.0), &json!(4.0)));
    // As a failure, it names the sample and its numbers.
    let strict = DriftConfig {
        fail: Some(DriftLimits::default()),
        ..config()
    };
    let failed = drift(&workplace, &strict).unwrap_err();
    assert!(
        failed
            .message
            .starts_with("the data has drifted: feature/x has a stability index of"),
        "{failed}"
    );
    assert!(failed.message.contains("and 1 more"), "{failed}");
    // Of a reference that is too short nothing is said.
    let short = DriftConfig {
        from: Some(Date::from_ymd(2020, 12, 20).unwrap()),
        ..config()
    };
    let (summary, table) = drift(&workplace, &short).unwrap();
    assert_eq!(summary["samples"], json!(0.0), "{table}");
    let none_left = DriftConfig {
        recent: 400,
        ..config()
    };
    assert!(
        drift(&workplace, &none_left)
            .unwrap_err()
            .message
            .contains("none is left")
    );
}

#[test]
fn limits_of_before_have_their_old_keys() {
    let config: DriftConfig = serde_json::from_value(json!({ "fail": { "psi": 6.0, "ks": 0.9 } })).unwrap();
    assert_eq!(json!(config.fail), json!({ "psi": 6.0, "ks": 0.9 }));
    let config: DriftConfig = serde_json::from_value(json!({ "fail": { "share": 0.5 } })).unwrap();
    assert_eq!(json!(config.fail), json!({ "psi": 0.25, "ks": 0.3, "share": 0.5 }));
}

#[test]
fn golden() {
    let mut workplace = Workplace::new();
    features(&mut workplace, 0.5, 4);
    let outputs = Drift.run(&config(), &workplace.context).unwrap();
    assert_eq!(
        outputs["metrics"].to_hex(),
        "c016c38a9fb1e4fa013366ee39faaaa32e8961642d5079ef8c3b26813b5f634c"
    );
}

#[test]
fn fills_of_a_backtest_are_samples() {
    let mut workplace = options_workplace(300, &OptionsConfig::default());
    let outputs = workplace
        .backtest(&BacktestConfig {
            bootstrap_draws: 10,
            ..BacktestConfig::default()
        })
        .unwrap();
    workplace.connect("trajectory", outputs["trajectory"]);
    let (summary, table) = drift(&workplace, &config()).unwrap();
    let names: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|line| line.split('"').nth(1).unwrap())
        .collect();
    assert_eq!(names, ["fill/cost_rate", "fill/turnover"], "{table}");
    assert!(summary["largest/ks"].as_f64().unwrap() < 1.0, "{summary}");
}

/// Bars of `days` days from day `from` of 2020 on, of which these rows break these rules.
fn bars(workplace: &mut Workplace, port: &str, (from, days): (i32, i32), rows: u64, broken: &[(&str, u64)]) {
    let first = Date::from_ymd(2020, 1, 1).unwrap().plus(from);
    let dates: Vec<Date> = (0..days).map(|day| first.plus(day)).collect();
    let symbol: StringArray = dates.iter().map(|_| Some("A")).collect();
    let close: Float64Array = dates.iter().map(|date| Some(f64::from(date.0 % 7))).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![("symbol", Arc::new(symbol))];
    columns.extend(table::time_columns(
        dates.iter().map(|day| datasets::SnapshotTime::of_day(*day)),
    ));
    columns.push(("close", Arc::new(close)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut tally = Tally::new(quality::BARS);
    for (rule, rows) in broken {
        tally.add(rule, first, *rows);
    }
    let meta = json!({ "rows_read": rows, "rows": rows, "quality": tally.findings(|rule| rule.action) });
    let store = &workplace.context.store;
    let partitions = partition(store, &batch, Period::Year, "A").unwrap();
    let digest = write(store, PortType::Bars, meta, partitions).unwrap();
    workplace.connect(port, digest);
}

#[test]
fn rules_that_more_rows_break_than_before_are_told() {
    let mut workplace = Workplace::new();
    let mut compare = |now: (i32, i32), rows: u64, broken: &[(&str, u64)], config: &DriftConfig| {
        let before = [("zero_volume", 100), ("copied_bar", 3), ("missing_day", 9)];
        bars(&mut workplace, "bars_before", (0, 300), 30_000, &before);
        bars(&mut workplace, "bars", now, rows, broken);
        drift(&workplace, config)
    };
    let rules = |table: &str| -> Vec<String> {
        let all = states(table).into_iter();
        all.filter_map(|line| Some(line.strip_prefix("quality/bars/rule/")?.to_owned()))
            .collect()
    };
    // The same files until a later date: 100 rows more, of which 12 are of no volume where one in 300 was.
    let night = [("zero_volume", 112), ("copied_bar", 3), ("missing_day", 30)];
    let (summary, table) = compare((0, 301), 30_100, &night, &config()).unwrap();
    assert_eq!(rules(&table), ["copied_bar ok", "zero_volume warn"], "{table}");
    assert_eq!(summary["drifted"], json!(1.0), "{table}");
    let row = table.lines().find(|line| line.contains("zero_volume")).unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(cells[4], "0.116667");
    assert_eq!(cells[7..], ["0.120000", "0.003333", "100", "30000"]);
    // As a failure, it names the rule and its shares.
    let strict = DriftConfig {
        fail: Some(DriftLimits {
            share: 0.1,
            ..DriftLimits::default()
        }),
        ..config()
    };
    let failed = compare((0, 301), 30_100, &night, &strict).unwrap_err();
    assert!(
        failed.message.starts_with(
            "the data has drifted: quality/bars/rule/zero_volume is broken by 12.000 % of 100 rows, before \
            by 0.333 % of 30000"
        ),
        "{failed}"
    );
    // A clean night, and a file of the new date alone with as many of them.
    let clean = [("zero_volume", 101), ("copied_bar", 3)];
    let (_, table) = compare((0, 301), 30_100, &clean, &strict).unwrap();
    assert_eq!(rules(&table), ["copied_bar ok", "zero_volume ok"], "{table}");
    let (_, table) = compare((300, 20), 100, &[("zero_volume", 12)], &config()).unwrap();
    assert_eq!(rules(&table), ["copied_bar ok", "zero_volume warn"], "{table}");
    // One row of 20 may be chance.
    let (_, table) = compare((300, 20), 20, &[("negative_count", 1)], &config()).unwrap();
    assert_eq!(
        rules(&table),
        ["copied_bar ok", "negative_count ok", "zero_volume ok"],
        "{table}"
    );
    // What is no continuation is refused.
    for (now, rows, broken) in [
        ((10, 291), 30_100, &night[..]),
        ((0, 300), 30_000, &night),
        ((0, 301), 29_000, &night),
        ((0, 301), 30_100, &[("copied_bar", 1)]),
    ] {
        let refused = compare(now, rows, broken, &config()).unwrap_err();
        assert!(
            refused.message.contains("does not go on from that at `bars_before`"),
            "{refused}"
        );
    }
}
