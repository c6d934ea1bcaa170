//! Parquet files of the types that other programs write, golden digests, and bytes that are no table.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    TimestampNanosecondArray,
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
            "ABC 2019-05-31 2019-06-21 ABC 2.2 call 1 2 - - - 2.5 -\nABC 2019-05-31 2019-06-21 ABC 2.3 put 2 - - - - 2.5 -\n"
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
            .contains("cannot read")
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes, a stage ends with a table or an error.
    #[test]
    fn any_bytes(body in prop::collection::vec(prop::sample::select(b"0129.,-/\"\n\r;CPx \xc3\xa9\xff".to_vec()), 0..200), cut in 0_usize..60) {
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
