//! `ingest/table`: any table of one's own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Bench, gzip, text};
use serde_json::{Value, json};
use stages_core::table;

const KIND: &str = "ingest/table";

const ROWS: &str = "\
,date,ticker,close,signal
0,2019-12-31,XYZ,20,1
1,2019-12-30,ABC,10.5,
2,2019-12-31,ABC,11,2
3,2020-01-02,ABC,12,3
4,2020-01-02,XYZ,21,4
";

fn refused(bench: &Bench, with: Value) -> String {
    let err = bench.run(KIND, with).err().unwrap();
    format!("{} ({})", err.message, err.hint.unwrap_or_default())
}

#[test]
fn rows_are_sorted_and_cut_by_period() {
    let bench = Bench::new();
    bench.file("rows.csv", ROWS);
    let done = bench.run(KIND, json!({ "path": "rows.csv" })).unwrap();
    assert_eq!(
        text(&bench.table(&done.artifact)),
        "\
ABC 2019-12-30 10.5 -
ABC 2019-12-31 11 2
XYZ 2019-12-31 20 1
ABC 2020-01-02 12 3
XYZ 2020-01-02 21 4
"
    );
    let paths: Vec<&str> = done.artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "ABC..XYZ/2019-01-01_2019-12-31.parquet",
            "ABC..XYZ/2020-01-01_2020-12-31.parquet"
        ]
    );
    assert_eq!(done.artifact.kind, "table");
    assert_eq!(
        done.artifact.meta,
        json!({ "columns": ["close", "signal"], "rows": 5, "rows_read": 5, "symbols": ["ABC", "XYZ"] })
    );
    // In any number of files, of any form, in any order; rows that two of them have are one.
    let (header, rows) = ROWS.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    bench.file(
        "all/b.csv",
        format!("{header}\n{}\n{}\n{}\n", rows[4], rows[0], rows[1]),
    );
    bench.file(
        "all/a.csv.gz",
        gzip(format!("{header}\n{}\n{}\n{}\n", rows[3], rows[2], rows[0]).as_bytes()),
    );
    let other = bench.run(KIND, json!({ "path": "all" })).unwrap();
    assert_eq!(other.artifact.entries, done.artifact.entries);
    assert_eq!(other.artifact.meta["rows_read"], json!(6));
}

/// Without symbols there is one; `columns` and `instant` choose.
#[test]
fn columns_are_chosen() {
    let bench = Bench::new();
    bench.file("rows.csv", "when,a,b,note\n06/28/2019,1,2,x\n07/01/2019,3,,y\n");
    let done = bench
        .run(
            KIND,
            json!({ "path": "rows.csv", "instant": "when", "instant_format": "%m/%d/%Y", "columns": ["b"],
                "partition": "month" }),
        )
        .unwrap();
    assert_eq!(
        text(&bench.table(&done.artifact)),
        "table 2019-06-28 2\ntable 2019-07-01 -\n"
    );
    assert_eq!(done.artifact.entries.len(), 2);
    let provided = bench
        .check(KIND, json!({ "path": "rows.csv", "instant": "when" }))
        .unwrap();
    let columns = provided["table"].columns.clone().unwrap();
    assert_eq!(
        columns.into_iter().collect::<Vec<_>>(),
        ["a", "b", "date", "note", "symbol"]
    );
}

#[test]
fn instants() {
    let bench = Bench::new();
    let instants = |with: Value| -> Vec<String> {
        let done = bench.run(KIND, with).unwrap();
        let batch = bench.table(&done.artifact);
        let times = table::snapshot_times(&batch).unwrap();
        times.iter().map(|time| format!("{}: {time}", time.date)).collect()
    };
    bench.file(
        "rows.csv",
        "timestamp,x\n2019-06-28 15:45:00,1\n2019-06-28 09:30,2\n2019-06-29T00:00:00,3\n",
    );
    assert_eq!(
        instants(json!({ "path": "rows.csv", "zone": "America/New_York" })),
        [
            "2019-06-28: 2019-06-28 13:30:00 UTC",
            "2019-06-28: 2019-06-28 19:45:00 UTC",
            "2019-06-29: 2019-06-29 04:00:00 UTC"
        ]
    );
    // pandas writes its days so.
    bench.file(
        "days.csv",
        "timestamp,x\n2019-06-28 00:00:00,1\n2019-06-29 00:00:00,2\n",
    );
    assert_eq!(
        instants(json!({ "path": "days.csv" })),
        ["2019-06-28: 2019-06-28", "2019-06-29: 2019-06-29"]
    );
    bench.file("epochs.csv", "timestamp,x\n1561736700000,1\n1561736760000,2\n");
    assert_eq!(
        instants(json!({ "path": "epochs.csv", "instant_format": "epoch_ms" })),
        [
            "2019-06-28: 2019-06-28 15:45:00 UTC",
            "2019-06-28: 2019-06-28 15:46:00 UTC"
        ]
    );
    // NinjaTrader's minutes have no header; titles stand above others.
    bench.file("es.txt", "20190628 093000;2500;10\n20190628 093100;2501;20\n");
    bench.file(
        "titled.csv",
        "Hourly,,\ntimestamp,x,y\n2019-06-28 09:30,1,2\n2019-06-28 09:31,1,2\n",
    );
    for with in [
        json!({ "path": "es.txt", "header": ["at", "close", "volume"], "instant": "at",
            "instant_format": "%Y%m%d %H%M%S" }),
        json!({ "path": "titled.csv", "skip_lines": 1 }),
    ] {
        assert_eq!(
            instants(with),
            [
                "2019-06-28: 2019-06-28 09:30:00 UTC",
                "2019-06-28: 2019-06-28 09:31:00 UTC"
            ]
        );
    }
    bench.file("mixed.csv", "timestamp,x\n2019-06-28 15:45:00,1\n2019-06-29,2\n");
    assert!(
        refused(&bench, json!({ "path": "mixed.csv" }))
            .contains("rows of a day without one (a table has days or instants")
    );
    bench.file("skipped.csv", "timestamp,x\n2024-03-10 02:30,1\n");
    let found = refused(&bench, json!({ "path": "skipped.csv", "zone": "America/New_York" }));
    assert!(
        found.contains(
            "skipped.csv`, row 2, column `timestamp`: `2024-03-10 02:30` is a time that America/New_York \
            skips"
        ),
        "{found}"
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let bench = Bench::new();
    for (name, rows, wanted) in [
        ("text.csv", "date,x\n2019-06-28,a\n", "column `x`"),
        ("date.csv", "date,x\n2019-06-31,1\n", "`2019-06-31` is not a date"),
        ("missing.csv", "date,x\n,1\n", "the date is missing"),
        ("none.csv", "date\n2019-06-28\n", "has no column beside its keys"),
        (
            "undated.csv",
            "x,y\n1,2\n",
            "has no column of instants (datetime, timestamp, date, datadate, day)",
        ),
        ("empty.csv", "date,x\n", "the files have no rows"),
        ("symbol.csv", "date,symbol,x\n2019-06-28,,1\n", "the symbol is missing"),
        (
            "key.csv",
            "timestamp,date,x\n2019-06-28,2019-06-28,1\n",
            "the column `date` has the name of a key",
        ),
        (
            "twice.csv",
            "date,symbol,x\n2019-06-28,A,1\n2019-06-28,A,2\n",
            "two rows of `A` at 2019-06-28 have different values of `x`",
        ),
    ] {
        bench.file(name, rows);
        let found = refused(&bench, json!({ "path": name }));
        assert!(found.contains(wanted), "{name}: {found}");
    }
    bench
        .file("d/a.csv", "date,x\n2019-06-28,1\n")
        .file("d/b.csv", "date,y\n2019-06-29,1\n");
    let found = refused(&bench, json!({ "path": "d" }));
    assert!(
        found.contains("`a.csv` has the column `x`, and `b.csv` has not"),
        "{found}"
    );
    for (with, field) in [
        (json!({ "path": "text.csv", "zone": "Mars" }), "zone"),
        (json!({ "path": "text.csv", "columns": ["x", "x"] }), "columns[1]"),
        (json!({ "path": "text.csv", "columns": ["date"] }), "columns[0]"),
        (json!({ "path": "text.csv", "columns": ["y"] }), "path"),
        (json!({}), "path"),
    ] {
        assert_eq!(bench.check(KIND, with.clone()).unwrap_err().field, field, "{with}");
    }
}

/// A day appended costs the file that has it and its partition; a file added likewise; a value restated, its
/// partition.
#[test]
fn a_day_costs_its_partition() {
    let bench = Bench::new();
    let days = |month: usize, count: usize| -> String {
        (1..=count)
            .map(|day| format!("2019-{month:02}-{day:02},{},1\n", 10 * month + day))
            .collect()
    };
    let header = "date,close,signal\n";
    let months = |last: usize| -> String {
        (1..=11).map(|month| days(month, 28)).collect::<String>() + &days(12, last)
    };
    bench.file("rows.csv", format!("{header}{}", months(10)));
    let with = json!({ "path": "rows.csv", "partition": "month" });
    let first = bench.run(KIND, with.clone()).unwrap();
    assert_eq!((first.artifact.entries.len(), first.computed()), (12, 13));
    let again = bench.run(KIND, with.clone()).unwrap();
    assert_eq!((again.computed(), again.digest.clone()), (0, first.digest.clone()));
    bench.file("rows.csv", format!("{header}{}", months(11)));
    let appended = bench.run(KIND, with.clone()).unwrap();
    assert_eq!(appended.computed(), 2, "the file and its last month");
    assert_eq!(appended.artifact.entries[..11], first.artifact.entries[..11]);
    assert_ne!(appended.artifact.entries[11], first.artifact.entries[11]);
    // A file of its own for the day, beside the first: the same rows.
    bench
        .file("more/0.csv", format!("{header}{}", months(10)))
        .file("more/1.csv", format!("{header}2019-12-11,{},1\n", 131));
    let beside = bench
        .run(KIND, json!({ "path": "more", "partition": "month" }))
        .unwrap();
    assert_eq!(beside.artifact.entries, appended.artifact.entries);
    assert_eq!(
        beside.computed(),
        2,
        "the file of the day, and its month from other cuts"
    );
    // From nothing, with any number of threads.
    for threads in [1, 3] {
        assert_eq!(bench.digest_with(threads, KIND, with.clone()), appended.digest);
    }
}
