//! Parquet files of the types that other programs write, golden digests, and bytes that are no table.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, TimestampNanosecondArray,
};
use common::{Bench, gzip, text, zip_of};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

const DAY: i64 = 86_400_000_000_000;

fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    stages_core::table::to_parquet(&RecordBatch::try_from_iter(columns).unwrap()).unwrap()
}

#[test]
fn times_integers_and_single_precision() {
    let bench = Bench::new();
    let bytes = parquet(vec![
        (
            "quote_date",
            Arc::new(TimestampNanosecondArray::from(vec![18_047 * DAY; 2])),
        ),
        ("root", Arc::new(LargeStringArray::from(vec!["ABC"; 2]))),
        ("expiration", Arc::new(Date32Array::from(vec![18_068; 2]))),
        ("strike", Arc::new(Float32Array::from(vec![2.2, 2.3]))),
        ("type", Arc::new(StringArray::from(vec!["C", "P"]))),
        ("bid", Arc::new(Int64Array::from(vec![1, 2]))),
        ("ask", Arc::new(Int64Array::from(vec![Some(2), None]))),
        ("underlying_last", Arc::new(Float32Array::from(vec![2.5; 2]))),
    ]);
    for (name, bytes) in [
        ("a.parquet", bytes.clone()),
        ("b.parquet.gz", gzip(&bytes)),
        ("c.zip", zip_of(&[("c.parquet", &bytes)])),
    ] {
        bench.file(name, bytes);
        let with = json!({ "path": name, "on_bad_rows": { "crossed_quote": "keep" } });
        let done = bench.run("ingest/option_chain", with).unwrap();
        assert_eq!(done.artifact.meta["layout"], json!(["cboe_panel"]));
        assert_eq!(
            text(&bench.rows(&done)),
            "ABC 2019-05-31 2019-06-21 ABC 2.2 call 1 2 - - - 2.5 -\nABC 2019-05-31 2019-06-21 ABC 2.3 put \
            2 - - - - 2.5 -\n"
        );
    }
}

/// The tables that this project writes can be read back.
#[test]
fn our_own_tables() {
    let bench = Bench::new();
    let bytes = parquet(vec![
        ("symbol", Arc::new(StringArray::from(vec!["ABC"; 2]))),
        ("date", Arc::new(Date32Array::from(vec![18_047; 2]))),
        ("expiry", Arc::new(Date32Array::from(vec![18_068; 2]))),
        ("strike", Arc::new(Int64Array::from(vec![10, 10]))),
        ("call", Arc::new(BooleanArray::from(vec![false, true]))),
        ("bid", Arc::new(Float32Array::from(vec![1.0, 1.5]))),
        ("ask", Arc::new(Float32Array::from(vec![1.25, 1.75]))),
    ]);
    bench.file("a.parquet", bytes);
    let done = bench
        .run("ingest/option_chain", json!({ "path": "a.parquet" }))
        .unwrap();
    let first = text(&bench.rows(&done));
    assert!(
        first.starts_with("ABC 2019-05-31 2019-06-21 ABC 10 call 1.5 1.75"),
        "{first}"
    );
    let again = Bench::new();
    let blob = bench.store.blob(done.artifact.entries[0].blob).unwrap();
    again.file("b.parquet", &blob[..]);
    let done = again
        .run("ingest/option_chain", json!({ "path": "b.parquet" }))
        .unwrap();
    assert_eq!(text(&again.rows(&done)), first);
}

#[test]
fn wrong_types_and_damage() {
    let bench = Bench::new();
    let bytes = parquet(vec![
        ("date", Arc::new(Date32Array::from(vec![18_047]))),
        ("close", Arc::new(BooleanArray::from(vec![true]))),
    ]);
    bench
        .file("a.parquet", &bytes)
        .file("b.parquet", &bytes[..bytes.len() / 2]);
    let err = bench.run("ingest/bars", json!({ "path": "a.parquet" })).err().unwrap();
    assert!(
        err.message.contains("column `close`: holds bool and not numbers"),
        "{err}"
    );
    assert!(
        bench
            .check("ingest/bars", json!({ "path": "b.parquet" }))
            .unwrap_err()
            .message
            .contains("cannot be read")
    );
    let nulls = parquet(vec![
        ("date", Arc::new(Date32Array::from(vec![Some(18_047), None]))),
        ("close", Arc::new(Int64Array::from(vec![1, 2]))),
    ]);
    bench.file("c.parquet", nulls);
    let err = bench.run("ingest/bars", json!({ "path": "c.parquet" })).err().unwrap();
    assert!(
        err.message
            .ends_with("c.parquet`, row 2, column `date`: the date is missing"),
        "{err}"
    );
}

/// Dates that no calendar has are bad rows, and not days of 1970.
#[test]
fn dates_beyond_their_range_are_counted() {
    use arrow_array::{
        Date64Array, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray,
    };
    const SECOND: i64 = 86_400;
    let day = 18_047;
    let columns: [(&str, ArrayRef); 6] = [
        (
            "date32",
            Arc::new(Date32Array::from(vec![day as i32, i32::MAX, i32::MIN, 10_000_000])),
        ),
        (
            "date64",
            Arc::new(Date64Array::from(vec![
                day * SECOND * 1000,
                i64::MAX,
                i64::MIN,
                i64::MAX / 2,
            ])),
        ),
        (
            "s",
            Arc::new(TimestampSecondArray::from(vec![
                day * SECOND,
                i64::MAX,
                i64::MIN,
                1 << 50,
            ])),
        ),
        // Nanoseconds that were written as milliseconds.
        (
            "ms",
            Arc::new(TimestampMillisecondArray::from(vec![
                day * SECOND * 1000,
                i64::MAX,
                i64::MIN,
                day * DAY,
            ])),
        ),
        (
            "us",
            Arc::new(TimestampMicrosecondArray::from(vec![
                day * SECOND * 1_000_000,
                i64::MAX,
                i64::MIN,
                day * DAY,
            ])),
        ),
        // All that nanoseconds can tell is from 1677 to 2262.
        (
            "ns",
            Arc::new(TimestampNanosecondArray::from(vec![
                day * DAY,
                i64::MAX,
                i64::MIN,
                90_000 * DAY,
            ])),
        ),
    ];
    let bench = Bench::new();
    for (name, dates) in columns {
        let bars = parquet(vec![
            ("date", dates.clone()),
            ("close", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ]);
        let chain = parquet(vec![
            ("symbol", Arc::new(StringArray::from(vec!["ABC"; 4]))),
            ("date", Arc::new(Date32Array::from(vec![day as i32 - 1; 4]))),
            ("expiry", dates.clone()),
            ("strike", Arc::new(Int64Array::from(vec![10, 11, 12, 13]))),
            ("call", Arc::new(BooleanArray::from(vec![true; 4]))),
            ("bid", Arc::new(Int64Array::from(vec![1; 4]))),
            ("ask", Arc::new(Int64Array::from(vec![2; 4]))),
        ]);
        let rates = parquet(vec![
            ("date", dates),
            ("rate", Arc::new(Float32Array::from(vec![2.0; 4]))),
        ]);
        bench
            .file("ABC.parquet", bars)
            .file("c.parquet", chain)
            .file("r.parquet", rates);
        let layout = json!({ "columns": { "date": "date", "0.25": "rate" } });
        for (kind, with) in [
            (
                "ingest/bars",
                json!({ "path": "ABC.parquet", "dates": { "from": "2019-01-01", "to": "2019-12-31" } }),
            ),
            ("ingest/option_chain", json!({ "path": "c.parquet" })),
            ("ingest/rates", json!({ "path": "r.parquet", "layout": layout })),
        ] {
            let done = bench.run(kind, with.clone()).unwrap();
            assert_eq!(
                done.finding("date_out_of_range"),
                (3, 0, "dropped".to_owned()),
                "{kind} {name}"
            );
            assert_eq!(bench.rows(&done).num_rows(), 1, "{kind} {name}");
            assert_eq!(
                (&done.artifact.meta["rows_read"], &done.artifact.meta["rows"]),
                (&json!(4), &json!(1))
            );
            let mut with = with;
            with["on_bad_rows"] = json!({ "date_out_of_range": "fail" });
            let err = bench.run(kind, with).err().unwrap();
            assert!(
                err.message.starts_with("3 rows break the rule `date_out_of_range`: "),
                "{err}"
            );
        }
    }
}

/// The names of files are the symbols: none is cut at a dot, and none is like another.
#[test]
fn file_names_in_any_script_are_symbols() {
    let bench = Bench::new();
    let names = [
        "BRK.A",
        "BRK.B",
        "brk.a",
        "上证50",
        "沪深300",
        "é",
        "e\u{301}",
        "Газпром",
    ];
    for (i, name) in names.iter().enumerate() {
        bench.file(
            &format!("bars/{name}.csv"),
            format!("date,close\n2019-05-30,{}\n", i + 1),
        );
    }
    let done = bench.run("ingest/bars", json!({ "path": "bars" })).unwrap();
    let mut wanted: Vec<&str> = names.to_vec();
    wanted.sort_unstable();
    assert_eq!(done.artifact.meta["symbols"], json!(wanted));
    let found = text(&bench.rows(&done));
    for (i, name) in names.iter().enumerate() {
        assert!(
            found.contains(&format!("{name} 2019-05-30 - - - {} ", i + 1)),
            "{name}: {found}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes, a stage ends with a table or an error.
    #[test]
    fn any_bytes(
        body in prop::collection::vec(
            prop::sample::select(b"0129.,-/\"\n\r;CPx \xc3\xa9\xff".to_vec()),
            0..200
        ),
        cut in 0_usize..60,
    ) {
        let bench = Bench::new();
        let header = b"quote_date,type,expiration,strike,close\n";
        let good = b"2019-05-31,C,2019-06-21,2.5,0.1\n";
        bench.file("a.csv", [header.as_slice(), good, &body].concat());
        let _ = bench.run("ingest/option_chain", json!({ "path": "a.csv" }));
        bench.file("b.csv", &body);
        let layout = json!({ "columns": { "date": "x", "close": "9" } });
        let _ = bench.run("ingest/bars", json!({ "path": "b.csv", "layout": layout }));
        bench.file("c.csv.gz", &gzip(&body)[..cut.min(gzip(&body).len())]);
        let _ = bench.check("ingest/rates", json!({ "path": "c.csv.gz" }));
    }
}
