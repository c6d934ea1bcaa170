//! Features of many symbols together: against FinRL's numbers and pandas' definitions, and only what a change
//! reaches is computed again.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use cache::{ArtifactDigest, Store};
use common::{bars, context, open, read, run, store_apart, store_together, try_run};
use datasets::Date;
use datasets::schema::BARS;
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::{PortType, table};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const SYMBOLS: [(&str, Range<i32>); 4] = [("AAA", 0..120), ("BBB", 70..120), ("CCC", 0..95), ("DDD", 0..120)];

fn same(_: &str, _: i32, _: &str) -> f64 {
    1.0
}

/// The columns of FinRL's table, by ticker.
fn finrl() -> BTreeMap<String, Vec<(Date, f64, f64)>> {
    let text = include_str!("../../../tests/reference/finrl_features.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let (date, tic, close, turbulence) = (at("date"), at("tic"), at("close"), at("turbulence"));
    let mut tickers: BTreeMap<String, Vec<(Date, f64, f64)>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        tickers.entry(cells[tic].to_owned()).or_default().push((
            cells[date].parse().unwrap(),
            cells[close].parse().unwrap(),
            cells[turbulence].parse().unwrap(),
        ));
    }
    tickers
}

fn closes(tickers: &BTreeMap<String, Vec<(Date, f64, f64)>>) -> RecordBatch {
    let rows = tickers
        .iter()
        .flat_map(|(ticker, rows)| rows.iter().map(move |row| (ticker, row)));
    let symbols: Vec<&str> = rows.clone().map(|(ticker, _)| ticker.as_str()).collect();
    let dates: Vec<i32> = rows.clone().map(|(_, row)| row.0.0).collect();
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(symbols)), Arc::new(Date32Array::from(dates))];
    for column in &BARS[2..] {
        let value =
            |(_, row): (&String, &(Date, f64, f64))| if column.name == "close" { row.1 } else { f64::NAN };
        arrays.push(Arc::new(table::nullable(
            &rows.clone().map(value).collect::<Vec<f64>>(),
        )));
    }
    RecordBatch::try_new(table::schema(BARS), arrays).unwrap()
}

#[test]
fn turbulence_is_that_of_finrl() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let tickers = finrl();
    let bars = store_apart(&store, &closes(&tickers));
    let (digest, _) = run(
        &store,
        &[("bars", bars)],
        "features/turbulence",
        json!({ "method": "finrl" }),
    );
    let table = read(&store, digest, "MARKET");
    let values = table::floats_or_nan(&table, "turbulence").unwrap();
    let reference: Vec<f64> = tickers["AAA"].iter().map(|row| row.2).collect();
    assert_eq!(values.len(), reference.len());
    assert!(reference.iter().filter(|x| **x > 0.0).count() > 20);
    for (i, (ours, theirs)) in values.iter().zip(&reference).enumerate() {
        assert!(
            (ours - theirs).abs() <= 1e-9 * theirs.max(1.0),
            "date {i}: {ours} instead of {theirs}"
        );
    }
}

/// However bars are partitioned, and with a memo for each month: a day appended computes one month again.
#[test]
fn a_day_appended_costs_its_month() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let all = bars(&SYMBOLS, same);
    let dates = table::dates(&all, "date").unwrap();
    let last = dates.iter().max().unwrap();
    let keep: Vec<bool> = dates.iter().map(|date| date < last).collect();
    let before = arrow_select::filter::filter_record_batch(&all, &keep.into()).unwrap();
    for (name, with) in [
        ("features/turbulence", json!({ "window": 20 })),
        ("features/turbulence", json!({ "window": 20, "method": "finrl" })),
        (
            "features/cross_section",
            json!({ "beta": [20], "correlation": [10, 20], "index": "DDD" }),
        ),
    ] {
        let first = run(&store, &[("bars", store_together(&store, &before))], name, with.clone());
        assert_eq!(first.1, 4, "{name}: a memo for each of four months");
        let appended = run(&store, &[("bars", store_together(&store, &all))], name, with.clone());
        assert_eq!(appended.1, 1, "{name}: the last month alone");
        let other = tempfile::tempdir().unwrap();
        let fresh = Store::open(other.path()).unwrap();
        let whole = run(&fresh, &[("bars", store_apart(&fresh, &all))], name, with);
        assert_eq!(appended.0, whole.0, "{name}: the same bytes as at once");
    }
}

/// Technical features, and their places among the symbols of a date.
#[test]
fn a_cross_section_is_of_the_symbols_that_have_a_bar() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let bars = store_together(&store, &bars(&SYMBOLS, same));
    let features = run(
        &store,
        &[("bars", bars)],
        "features/technical",
        json!({ "indicators": [{ "roc": 5 }] }),
    )
    .0;
    let sectors = json!({ "AAA": "one", "BBB": "two", "CCC": "one", "DDD": "two" });
    let neutral = json!({ "columns": ["roc_5"], "transforms": ["zscore"], "sectors": sectors });
    let inputs = [("bars", bars), ("features", features)];
    let (digest, _) = run(
        &store,
        &inputs,
        "features/cross_section",
        json!({ "columns": ["roc_5"] }),
    );
    let (neutral, _) = run(&store, &inputs, "features/cross_section", neutral);
    let values = |digest: ArtifactDigest, symbol: &str, column: &str| -> BTreeMap<Date, f64> {
        let table = read(&store, digest, symbol);
        let dates = table::dates(&table, "date").unwrap();
        dates
            .into_iter()
            .zip(table::floats_or_nan(&table, column).unwrap())
            .collect()
    };
    let raw: Vec<BTreeMap<Date, f64>> = SYMBOLS.iter().map(|(s, _)| values(features, s, "roc_5")).collect();
    let ranks: Vec<BTreeMap<Date, f64>> =
        SYMBOLS.iter().map(|(s, _)| values(digest, s, "roc_5_rank")).collect();
    let scores: Vec<BTreeMap<Date, f64>> = SYMBOLS
        .iter()
        .map(|(s, _)| values(neutral, s, "roc_5_zscore"))
        .collect();
    let mut compared = 0;
    for (&date, &rank) in &ranks[0] {
        let known: Vec<f64> = raw
            .iter()
            .filter_map(|of| of.get(&date))
            .copied()
            .filter(|x| !x.is_nan())
            .collect();
        let own = raw[0][&date];
        if own.is_nan() {
            assert!(rank.is_nan());
            continue;
        }
        let below = known.iter().filter(|x| **x <= own).count() as f64;
        assert!((rank - below / known.len() as f64).abs() < 1e-12, "{date}");
        // Of two symbols in a sector the scores are opposite.
        if let (Some(&a), Some(&c)) = (scores[0].get(&date), scores[2].get(&date))
            && known.len() > 2
        {
            assert!((a + c).abs() < 1e-9, "{date}: {a} {c}");
            compared += 1;
        }
    }
    assert!(compared > 20);
    assert_eq!(
        open(&store, digest).symbols(&store).unwrap(),
        ["AAA", "BBB", "CCC", "DDD"]
    );
    assert_eq!(ranks[1].len(), SYMBOLS[1].1.len());
}

/// A change of the last close changes nothing before it.
#[test]
fn nothing_depends_on_later_bars() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let changed = |_: &str, day: i32, column: &str| if day >= 100 && column == "close" { 1.5 } else { 1.0 };
    for (name, symbol, with) in [
        ("features/turbulence", "MARKET", json!({ "window": 20 })),
        (
            "features/turbulence",
            "MARKET",
            json!({ "window": 20, "method": "finrl" }),
        ),
        (
            "features/cross_section",
            "AAA",
            json!({ "beta": [20], "correlation": [20] }),
        ),
    ] {
        let of = |batch: &RecordBatch| {
            read(
                &store,
                run(&store, &[("bars", store_together(&store, batch))], name, with.clone()).0,
                symbol,
            )
        };
        let (one, other) = (of(&bars(&SYMBOLS, same)), of(&bars(&SYMBOLS, changed)));
        let dates = table::dates(&one, "date").unwrap();
        let n = dates.iter().take_while(|date| date.0 < common::FIRST.0 + 100).count();
        assert_eq!(one.slice(0, n), other.slice(0, n), "{name}");
        assert_ne!(one, other, "{name}");
    }
}

#[test]
fn worlds_are_apart_and_mistakes_are_named() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let names = ["m0/A", "m0/B", "m1/A", "m1/B"];
    let symbols: Vec<(&str, Range<i32>)> = names.iter().map(|name| (*name, 0..60)).collect();
    let batch = bars(&symbols, |symbol, day, _| {
        if symbol.starts_with("m1") {
            1.0 + 0.01 * f64::from(day % 7)
        } else {
            1.0
        }
    });
    let partitions = dataset::partition(&store, &batch, Period::Year, "").unwrap();
    let bars = dataset::write(&store, PortType::Bars, json!({}), partitions).unwrap();
    let with = json!({ "window": 20, "world_separator": "/" });
    let (digest, _) = run(&store, &[("bars", bars)], "features/turbulence", with);
    assert_eq!(open(&store, digest).symbols(&store).unwrap(), ["m0", "m1"]);
    assert_ne!(
        read(&store, digest, "m0").column(2),
        read(&store, digest, "m1").column(2)
    );
    let context = context(&store, &[("bars", bars)]);
    let taken = try_run(&context, "features/turbulence", json!({ "symbol": "m0/A" })).unwrap_err();
    assert!(taken.message.contains("is a symbol of the bars"), "{taken}");
    let index = try_run(
        &context,
        "features/cross_section",
        json!({ "beta": [5], "index": "SPY" }),
    )
    .unwrap_err();
    assert!(index.message.contains("`SPY`"), "{index}");
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION (and the memo's), then pin
/// the new digests.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let bars = [("bars", store_together(&store, &bars(&SYMBOLS, same)))];
    let digests = [
        run(&store, &bars, "features/turbulence", json!({ "window": 20 })).0,
        run(
            &store,
            &bars,
            "features/turbulence",
            json!({ "window": 20, "method": "finrl" }),
        )
        .0,
        run(
            &store,
            &bars,
            "features/cross_section",
            json!({ "beta": [20], "correlation": [10] }),
        )
        .0,
    ];
    assert_eq!(
        digests.map(|digest| digest.short()),
        ["a200176b36", "65c2975c9c", "9543a07f35"]
    );
}
