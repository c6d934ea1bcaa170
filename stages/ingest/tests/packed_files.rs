//! Every format of tables, packed in every way, gives the same rows.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use common::{Bench, text};
use serde_json::json;
use stages_table_file::Container;
use stages_table_file::packing::Packing;
use std::borrow::Cow;
use std::sync::Arc;

#[test]
fn every_format_in_every_packing() {
    let columns: [(&str, ArrayRef); 3] = [
        ("symbol", Arc::new(StringArray::from(vec!["AB", "AB"]))),
        ("date", Arc::new(StringArray::from(vec!["2019-05-30", "2019-05-31"]))),
        ("close", Arc::new(Float64Array::from(vec![1.5, 2.25]))),
    ];
    let parquet = Container::Parquet
        .write(&RecordBatch::try_from_iter(columns).unwrap())
        .unwrap();
    let lines = "{\"symbol\":\"AB\",\"date\":\"2019-05-30\",\"close\":1.5}\n\
        {\"symbol\":\"AB\",\"date\":\"2019-05-31\",\"close\":2.25}";
    let list = format!("[{}]", lines.replace('\n', ","));
    let csv = "symbol,date,close\nAB,2019-05-30,1.5\nAB,2019-05-31,2.25\n";
    let bench = Bench::new();
    for (ending, bytes) in [
        ("csv", csv.as_bytes()),
        ("txt", csv.replace(',', "|").as_bytes()),
        ("tsv", csv.replace(',', "\t").as_bytes()),
        ("json", list.as_bytes()),
        ("jsonl", lines.as_bytes()),
        ("parquet", &parquet),
    ] {
        for (packing, packed) in [
            (Packing::Plain, ""),
            (Packing::Gzip, ".gz"),
            (Packing::Zstd, ".zst"),
            (Packing::Zip, ".zip"),
        ] {
            let (folder, inner) = (format!("{ending}{packed}"), format!("a.{ending}"));
            let bytes = packing.pack(vec![(&inner, Cow::Borrowed(bytes))]).unwrap();
            bench.file(&format!("{folder}/a.{ending}{packed}"), bytes);
            let mut layout = json!({ "columns": { "symbol": "symbol", "date": "date", "close": "close" } });
            if ending.starts_with("json") {
                layout["json"] = json!({ "rows": "" });
            }
            // The directory is searched for files with these endings.
            let with = json!({ "path": folder, "layout": layout });
            let done = bench
                .run("ingest/bars", with)
                .unwrap_or_else(|err| panic!("{folder}: {err}"));
            let wanted = "AB 2019-05-30 - - - 1.5 - -\nAB 2019-05-31 - - - 2.25 - -\n";
            assert_eq!(text(&bench.rows(&done)), wanted, "{folder}");
        }
    }
}

#[test]
fn a_damaged_zstd_file_is_refused() {
    let bench = Bench::new();
    let csv = "symbol,date,close\nAB,2019-05-30,1.5\n".repeat(99);
    let packed = Packing::Zstd.pack(vec![("", Cow::Borrowed(csv.as_bytes()))]).unwrap();
    bench.file("a.csv.zst", &packed[..packed.len() / 2]);
    let err = bench.check("ingest/bars", json!({ "path": "a.csv.zst" })).unwrap_err();
    assert!(
        err.message.contains("`") && err.message.contains("cannot be unpacked"),
        "{}",
        err.message
    );
    let twice = Packing::Zstd.pack(vec![("", Cow::Borrowed(&packed))]).unwrap();
    bench.file("b.csv.zst", twice);
    let err = bench.check("ingest/bars", json!({ "path": "b.csv.zst" })).unwrap_err();
    assert!(
        err.message.contains("is an archive within an archive"),
        "{}",
        err.message
    );
}
