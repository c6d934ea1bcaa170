//! Lean's kinds of files of one directory, joined by contract and instant.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Bench, Done, floats, zip_of};
use serde_json::json;
use std::path::Path;

const CHAIN: &str = "ingest/option_chain";

fn sample(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let file = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap();
    std::fs::read(file.path()).unwrap()
}

/// A chain of the samples' quotes, trades and open interest, under names that put them in another order.
fn chain(bench: &Bench, dir: &str, names: [&str; 3], more: &[(&str, &[u8])]) -> Done {
    for (kind, name) in ["quote", "trade", "open_interest"].into_iter().zip(names) {
        bench.file(
            &format!("{dir}/{name}.zip"),
            sample(&format!("lean_option_daily_{kind}")),
        );
    }
    for (name, bytes) in more {
        bench.file(&format!("{dir}/{name}"), bytes);
    }
    let with = json!({ "path": dir, "on_bad_rows": "keep" });
    let planned = bench.check(CHAIN, with.clone()).unwrap();
    for column in ["bid", "last", "open_interest"] {
        assert!(planned["chain"].may_have(column), "{column}");
    }
    bench.run(CHAIN, with).unwrap()
}

fn sum(done: &Done, bench: &Bench, name: &str) -> f64 {
    let values = floats(&bench.rows(done), name);
    values.into_iter().filter(|value| !value.is_nan()).sum()
}

#[test]
fn quotes_trades_and_open_interest_are_one_chain() {
    let bench = Bench::new();
    let done = chain(&bench, "lean", ["a", "b", "c"], &[]);
    assert_eq!(bench.rows(&done).num_rows(), 40);
    for (name, wanted) in [
        ("bid", 556.07),
        ("last", 561.89),
        ("volume", 504.0),
        ("open_interest", 4_800.0),
    ] {
        let found = sum(&done, &bench, name);
        assert!((found - wanted).abs() < 1e-6, "sum of {name} is {found}, not {wanted}");
    }
    assert_eq!(done.artifact.meta["rows_joined"], 80);
    assert_eq!(done.finding("duplicate_key").0, 0);
    let kinds = ["open_interest", "quote", "trade"].map(|kind| format!("lean_option_daily_{kind}"));
    assert_eq!(done.artifact.meta["layout"], json!(kinds));

    let other = chain(&bench, "order", ["c", "a", "b"], &[]);
    assert_eq!(
        other.artifact.entries, done.artifact.entries,
        "the order of files does not matter"
    );
}

/// A contract in one kind of file has a row of its own; the same kind twice is a duplicate, as in one file.
#[test]
fn the_join_is_a_full_outer_one() {
    let bench = Bench::new();
    let alone = zip_of(&[(
        "spy_trade_american_call_5550000_20240216.csv",
        b"20240118 00:00,100,100,100,100,7",
    )]);
    let quotes = sample("lean_option_daily_quote");
    let done = chain(
        &bench,
        "lean",
        ["a", "b", "c"],
        &[("alone.zip", &alone), ("again.zip", &quotes)],
    );
    let rows = bench.rows(&done);
    assert_eq!(rows.num_rows(), 41);
    let at = floats(&rows, "strike")
        .iter()
        .position(|strike| *strike == 555.0)
        .unwrap();
    assert!(floats(&rows, "bid")[at].is_nan());
    assert_eq!((floats(&rows, "last")[at], floats(&rows, "volume")[at]), (0.01, 7.0));
    assert_eq!(done.finding("duplicate_key").0, 40);
    assert!((sum(&done, &bench, "open_interest") - 4_800.0).abs() < 1e-6);
}

/// Minutes are snapshots at the ends of their bars, New York time.
#[test]
fn minutes_are_snapshots() {
    let bench = Bench::new();
    let contract = "american_call_4600000_20240216.csv";
    let quotes = zip_of(&[(
        &*format!("20240118_spy_minute_quote_{contract}"),
        b"34200000,209600,209600,209600,209700,10,213900,213900,213900,214000,12\n\
          34260000,209600,209600,209600,209600,10,213900,213900,213900,213900,12",
    )]);
    let trades = zip_of(&[(
        &*format!("20240118_spy_minute_trade_{contract}"),
        b"34260000,211000,211000,211000,211100,3\n34320000,211000,211000,211000,211200,5",
    )]);
    bench.file("spy/20240118_quote_american.zip", quotes);
    bench.file("spy/20240118_trade_american.zip", trades);
    let with = json!({ "path": "spy", "on_bad_rows": "keep" });
    bench.check(CHAIN, with.clone()).unwrap();
    let done = bench.run(CHAIN, with).unwrap();
    let rows = bench.rows(&done);
    let kinds = ["quote", "trade"].map(|kind| format!("lean_option_minute_{kind}"));
    assert_eq!(done.artifact.meta["layout"], json!(kinds));
    let snapshots = stages_core::table::snapshots(&rows).unwrap().unwrap();
    // 14:31 to 14:33 UTC on 2024-01-18.
    let minute = |minute: i64| (19_740 * 24 * 60 + 14 * 60 + minute) * 60_000_000;
    assert_eq!(snapshots.values().to_vec(), [31, 32, 33].map(minute));
    let text = |name: &str| format!("{:?}", floats(&rows, name));
    assert_eq!(text("bid"), "[20.97, 20.96, NaN]");
    assert_eq!(text("ask"), "[21.4, 21.39, NaN]");
    assert_eq!(text("last"), "[NaN, 21.11, 21.12]");
    assert_eq!(text("volume"), "[NaN, 3.0, 5.0]");
}
