//! `ingest/features`: factors of one's own, as of the days on which they were known.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use cache::Artifact;
use common::{Bench, gzip, text};
use serde_json::{Value, json};

const FACTORS: &str = "\
,date,tic,value,quality
0,2019-05-28,ABC,1.5,
1,2019-05-30,ABC,2.5,7
2,2019-06-01,ABC,3.5,8
3,2019-05-27,XYZ,-1,0
4,2019-05-29,NONE,4,4
";

/// Bars of two symbols on the weekdays from 28 May to 5 June 2019, XYZ without 30 May.
fn bars(bench: &Bench) -> Artifact {
    let mut rows = "symbol,date,close\n".to_owned();
    for day in ["05-28", "05-29", "05-30", "05-31", "06-03", "06-04", "06-05"] {
        for symbol in ["ABC", "XYZ"] {
            if (symbol, day) != ("XYZ", "05-30") {
                rows.push_str(&format!("{symbol},2019-{day},10\n"));
            }
        }
    }
    bench.file("bars.csv", rows);
    bench
        .run("ingest/bars", json!({ "path": "bars.csv", "partition": "month" }))
        .unwrap()
        .artifact
}

fn features(bench: &Bench, with: Value) -> (Artifact, Vec<String>) {
    let bars = bars(bench);
    let (mut outputs, warnings) = bench.run_with("ingest/features", with, &[("bars", &bars)]).unwrap();
    (outputs.remove("features").unwrap(), warnings)
}

fn refused(bench: &Bench, with: Value) -> String {
    let bars = bars(bench);
    let err = bench
        .run_with("ingest/features", with, &[("bars", &bars)])
        .err()
        .unwrap();
    format!("{} ({})", err.message, err.hint.unwrap_or_default())
}

#[test]
fn rows_are_shown_from_the_day_after_theirs() {
    let bench = Bench::new();
    bench.file("f.csv", FACTORS);
    let (artifact, warnings) = features(&bench, json!({ "path": "f.csv", "columns": ["value", "quality"] }));
    // The row of Saturday 1 June is known on Monday.
    assert_eq!(
        text(&bench.table(&artifact)),
        "\
ABC 2019-05-28 - -
ABC 2019-05-29 1.5 -
ABC 2019-05-30 1.5 -
ABC 2019-05-31 2.5 7
XYZ 2019-05-28 -1 0
XYZ 2019-05-29 -1 0
XYZ 2019-05-31 -1 0
ABC 2019-06-03 3.5 8
ABC 2019-06-04 3.5 8
ABC 2019-06-05 3.5 8
XYZ 2019-06-03 -1 0
XYZ 2019-06-04 -1 0
XYZ 2019-06-05 -1 0
"
    );
    assert_eq!(artifact.entries.len(), 2, "the partitions of the bars");
    assert_eq!(artifact.meta["features"], json!(["value", "quality"]));
    assert_eq!(artifact.meta["symbols_without_bars"], json!(["NONE"]));
    assert!(warnings.is_empty(), "{warnings:?}");
    let at = |with: Value| {
        let (artifact, _) = features(&bench, with);
        let rows = text(&bench.table(&artifact));
        let of_abc = rows.lines().filter(|row| row.starts_with("ABC"));
        of_abc
            .map(|row| row.split(' ').nth(2).unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let columns = json!(["value"]);
    assert_eq!(
        at(json!({ "path": "f.csv", "columns": columns, "lag": 0 })),
        "1.5 1.5 2.5 2.5 3.5 3.5 3.5"
    );
    assert_eq!(
        at(json!({ "path": "f.csv", "columns": columns, "lag": 2 })),
        "- - 1.5 1.5 2.5 3.5 3.5"
    );
    assert_eq!(
        at(json!({ "path": "f.csv", "columns": columns, "lag": 0, "max_age": 0 })),
        "1.5 - 2.5 - - - -"
    );
}

/// Any form, spread and number of threads gives the same bytes.
#[test]
fn files_and_threads() {
    let bench = Bench::new();
    bench.file("f.csv", FACTORS);
    let with = |path: &str| json!({ "path": path, "columns": ["quality", "value"] });
    let (whole, _) = features(&bench, with("f.csv"));
    let lines: Vec<&str> = FACTORS.lines().collect();
    for (i, line) in lines[1..].iter().enumerate() {
        let rows = format!("{}\n{line}\n", lines[0]);
        bench.file(&format!("d/{}.csv.gz", 9 - i), gzip(rows.as_bytes()));
    }
    // A row that is there twice is one.
    bench.file("d/0.csv", format!("{}\n{}\n", lines[0], lines[2]));
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (parts, _) = pool.install(|| features(&bench, with("d")));
        assert_eq!(parts.entries, whole.entries);
    }
}

#[test]
fn factors_of_the_market() {
    let bench = Bench::new();
    bench.file("vix.csv", "Date;vix close\n31.05.2019;18.7\n03.06.2019;.\n");
    let with = json!({ "path": "vix.csv", "date_format": "%d.%m.%Y" });
    let (artifact, _) = features(&bench, with);
    let rows = text(&bench.table(&artifact));
    assert!(rows.contains("ABC 2019-05-31 -\n") && rows.contains("XYZ 2019-05-31 -\n"));
    assert!(rows.contains("ABC 2019-06-03 18.7\n") && rows.contains("XYZ 2019-06-03 18.7\n"));
    assert!(
        rows.contains("ABC 2019-06-04 -\n"),
        "a newer row without a value: {rows}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let bench = Bench::new();
    for (rows, more, wanted) in [
        (
            "date,tic,v\n2019-05-28,ABC,1\n2019-05-28,ABC,2\n",
            json!({}),
            "two rows of ABC on 2019-05-28 have different values",
        ),
        ("date,tic,v\n2019-05-28,ABC,x\n", json!({}), "row 2"),
        ("date,tic,v\n2019-05-28,ABC,inf\n", json!({}), "row 2"),
        ("date,tic,v\n2019-05-28,,1\n", json!({}), "the symbol is missing"),
        ("date,tic,v\n,ABC,1\n", json!({}), "row 2"),
        ("date,tic,v\n28/05/2019,ABC,1\n", json!({}), "28/05/2019"),
        (
            "date,tic,v\n2019-05-28,EUR,1\n",
            json!({}),
            "no symbol of the files has bars: the files hold EUR, the bars ABC, XYZ",
        ),
        ("when,tic,v\n2019-05-28,ABC,1\n", json!({}), "has no column of dates"),
        (
            "date,tic,v\n2019-05-28,ABC,1\n",
            json!({ "columns": ["w", "u"], "symbol": "s" }),
            "no column of `s` for `symbol`, `w`, `u`",
        ),
        (
            "date,tic,v\n2019-05-28,ABC,1\n",
            json!({ "columns": ["date"] }),
            "`date`",
        ),
        ("date,tic\n2019-05-28,ABC\n", json!({}), "no factor"),
        (
            "date,tic,v,name\n2019-05-28,ABC,1,Acme\n",
            json!({}),
            "`columns: [ … ]`",
        ),
    ] {
        bench.file("f.csv", rows);
        let mut with = json!({ "path": "f.csv" });
        with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let found = match bench.check("ingest/features", with.clone()) {
            Err(problem) => format!("{} ({})", problem.message, problem.hint.unwrap_or_default()),
            Ok(_) => refused(&bench, with),
        };
        assert!(found.contains(wanted), "{rows}{found}");
    }
    bench
        .file("f.csv", FACTORS)
        .file("g/a.csv", "date,tic,v\n2019-05-28,ABC,1\n")
        .file("g/b.csv", "date,tic,w\n2019-05-28,ABC,1\n");
    assert!(refused(&bench, json!({ "path": "g" })).contains("one has v, another w"));
    assert!(bench.check("ingest/features", json!({})).is_err());
    let none = bench
        .check("ingest/features", json!({ "path": "f.csv", "max_age": 0 }))
        .unwrap_err();
    assert_eq!(none.field, "max_age");
    let (_, warnings) = features(&bench, json!({ "path": "f.csv", "columns": ["value"], "lag": 30 }));
    assert!(warnings[0].contains("`value` has no value on any day"), "{warnings:?}");
}

/// If a change of code or of a dependency moves it, raise the kind's `VERSION`, and then the digest here.
#[test]
fn golden() {
    let bench = Bench::new();
    bench.file("f.csv", FACTORS);
    let (artifact, _) = features(&bench, json!({ "path": "f.csv", "columns": ["value", "quality"] }));
    let blobs: Vec<String> = artifact.entries.iter().map(|entry| entry.blob.to_hex()).collect();
    assert_eq!(
        blobs,
        [
            "147187431d7aed308dfe0016b53e4c7f0f2a44347c1a5cf2d594fa08e3e87a40",
            "75473df30a5ba2aa46b9010e807fe4e7f84135de1c16727a1e4aa53daa561930"
        ]
    );
}
