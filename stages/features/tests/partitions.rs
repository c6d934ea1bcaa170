//! Partitions of many symbols: the same values as with a partition for each symbol, and only what a change
//! reaches is computed again.

mod common;

use arrow_array::RecordBatch;
use cache::Store;
use common::{bars, context, open, read, run, store_apart, store_together, try_run};
use serde_json::{Value, json};
use stages_core::PortType;
use stages_core::dataset::{self, Period};
use std::ops::Range;

fn same(_: &str, _: i32, _: &str) -> f64 {
    1.0
}

/// Three symbols, one of which enters in the third month and one of which leaves in the second.
const SYMBOLS: [(&str, Range<i32>); 3] = [("AAA", 0..100), ("BBB", 70..100), ("CCC", 0..45)];

/// The state of the first holds two bars, that of the second all of them; the third reads the volume too.
fn features() -> Value {
    json!({ "indicators": [{ "sma": 3 }, { "ema": 50 }, "obv"] })
}

#[test]
fn the_values_are_those_of_a_partition_for_each_symbol() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let batch = bars(&SYMBOLS, same);
    for (name, with) in [
        ("features/technical", features()),
        ("features/technical", json!({})),
        ("features/volatility", json!({})),
    ] {
        let together = run(&store, &[("bars", store_together(&store, &batch))], name, with.clone()).0;
        let apart = run(&store, &[("bars", store_apart(&store, &batch))], name, with).0;
        for (symbol, days) in SYMBOLS {
            let rows = read(&store, together, symbol);
            assert_eq!(rows, read(&store, apart, symbol), "{name} {symbol}");
            assert_eq!(rows.num_rows(), days.len());
        }
        let paths: Vec<String> = open(&store, together).partitions.iter().map(|p| p.key.path()).collect();
        assert_eq!(
            paths,
            [
                "AAA..CCC/2019-01-01_2019-01-31.parquet",
                "AAA..CCC/2019-02-01_2019-02-28.parquet",
                "AAA..BBB/2019-03-01_2019-03-31.parquet",
                "AAA..BBB/2019-04-01_2019-04-30.parquet",
            ]
        );
        assert_eq!(open(&store, together).symbols(&store).unwrap(), ["AAA", "BBB", "CCC"]);
    }
}

/// The first month of AAA, or one in the middle, has no volume.
#[test]
fn a_partition_without_volume_is_no_series_without_volume() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let months: [Range<i32>; 2] = [0..31, 31..59];
    for month in months {
        let gap = |symbol: &str, day: i32, column: &str| match (symbol, column) {
            ("AAA", "volume") if month.contains(&day) => f64::NAN,
            _ => 1.0,
        };
        let batch = bars(&SYMBOLS, gap);
        let rows = |period| {
            let partitions = dataset::partition_symbols(&store, &batch, period).unwrap();
            let source = dataset::write(&store, PortType::Bars, json!({}), partitions).unwrap();
            let features = run(&store, &[("bars", source)], "features/technical", features()).0;
            read(&store, features, "AAA")
        };
        assert_eq!(rows(Period::Month), rows(Period::Year));
    }
    let batch = bars(&SYMBOLS, |symbol, _, column| match (symbol, column) {
        ("AAA", "volume") => f64::NAN,
        _ => 1.0,
    });
    let context = context(&store, &[("bars", store_together(&store, &batch))]);
    let err = try_run(&context, "features/technical", features()).unwrap_err();
    assert_eq!(
        err.message,
        "`obv` needs `volume`, which the bars of AAA have no values of"
    );
}

#[test]
fn a_change_reaches_only_what_depends_on_it() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let computed = |batch: &RecordBatch| {
        let source = store_together(&store, batch);
        run(&store, &[("bars", source)], "features/technical", features()).1
    };
    // For each of four partitions its contents, three features and the table.
    assert_eq!(computed(&bars(&SYMBOLS, same)), 4 * 5);
    assert_eq!(computed(&bars(&SYMBOLS, same)), 0);
    // A day more: the last partition alone.
    let [a, b, c] = SYMBOLS;
    assert_eq!(computed(&bars(&[(a.0, 0..101), (b.0, 70..101), c], same)), 5);
    // A close of the first month: the contents, three features and the table there, and from there on the
    // exponential average and the table.
    let restated = |symbol: &'static str, day: i32, column: &'static str| {
        bars(
            &SYMBOLS,
            move |s, d, c| if (s, d, c) == (symbol, day, column) { 1.001 } else { 1.0 },
        )
    };
    assert_eq!(computed(&restated("AAA", 10, "close")), 5 + 3 * 2);
    // A volume: the balance alone, which is a sum.
    assert_eq!(computed(&restated("CCC", 10, "volume")), 1 + 2 + 2);
    // A column that no feature reads.
    assert_eq!(computed(&restated("AAA", 10, "open")), 1);
}

/// Beside the tables, a run leaves the states at their ends, not the values again.
#[test]
fn values_are_stored_once() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let batch = bars(&[("AAA", 0..300), ("BBB", 0..300)], same);
    let partitions = dataset::partition_symbols(&store, &batch, Period::Year).unwrap();
    let source = dataset::write(&store, PortType::Bars, json!({}), partitions).unwrap();
    let before = store.status().unwrap().blobs.bytes;
    let digest = run(&store, &[("bars", source)], "features/technical", json!({})).0;
    let written = store.status().unwrap().blobs.bytes - before;
    let returned: u64 = store
        .artifact(digest)
        .unwrap()
        .entries
        .iter()
        .map(|entry| entry.size)
        .sum();
    assert!(returned > 300 * 2 * 11 * 8, "{returned}");
    assert!(written * 2 < returned * 3, "{written} for {returned}");
}

/// A table may be collected before the memos that name it.
#[test]
fn values_whose_table_is_gone_are_computed_again() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let source = store_together(&store, &bars(&SYMBOLS, same));
    let technical = |store: &Store, indicators: Value| {
        let with = json!({ "indicators": indicators });
        run(store, &[("bars", source)], "features/technical", with)
    };
    let one = technical(&store, json!([{ "sma": 3 }])).0;
    // With the tables, the average is found in them; without, it is computed: for each of four partitions.
    let two = json!([{ "sma": 3 }, { "ema": 50 }]);
    let three = json!([{ "sma": 3 }, { "ema": 50 }, "obv"]);
    let found = technical(&store, two.clone());
    assert_eq!(found.1, 4 * 2);
    for entries in [one, found.0].map(|digest| store.artifact(digest).unwrap().entries) {
        for entry in entries {
            std::fs::remove_file(store.blob_path(entry.blob)).unwrap();
        }
    }
    let (digest, computed) = technical(&store, three.clone());
    assert_eq!(computed, 4 * 4);
    let other = tempfile::tempdir().unwrap();
    let fresh = Store::open(other.path()).unwrap();
    store_together(&fresh, &bars(&SYMBOLS, same));
    assert_eq!(technical(&fresh, three).0, digest);
    assert_eq!(technical(&fresh, two).0, found.0);
}

/// The bytes of one symbol are those of a partition for each symbol, whatever the way.
#[test]
fn one_symbol_keeps_its_bytes() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let batch = bars(&SYMBOLS[..1], same);
    assert_eq!(store_together(&store, &batch), store_apart(&store, &batch));
}

#[test]
fn a_plan_counts_what_is_cached() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let stage = common::stage("features/technical");
    let share = |batch: &RecordBatch| {
        let context = context(&store, &[("bars", store_together(&store, batch))]);
        let with = stage.resolve(features()).unwrap();
        let share = stage.cached_share(&with, &context.given()).unwrap().unwrap();
        (share.cached, share.total)
    };
    let batch = bars(&SYMBOLS, same);
    assert_eq!(share(&batch), (0, 12));
    run(
        &store,
        &[("bars", store_together(&store, &batch))],
        "features/technical",
        features(),
    );
    assert_eq!(share(&batch), (12, 12));
    let [a, b, c] = SYMBOLS;
    assert_eq!(share(&bars(&[(a.0, 0..101), (b.0, 70..101), c], same)), (9, 12));
}
