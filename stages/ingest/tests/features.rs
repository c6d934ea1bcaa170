//! `ingest/features`: factors of one's own, as of the days on which they were known.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use cache::Artifact;
use common::{Bench, gzip, text};
use serde_json::{Value, json};
use stages_core::{ConfigProblem, PlanContext, PortType, Provided};
use std::collections::BTreeMap;

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

/// Checks a stage to which bars are connected.
fn check(bench: &Bench, with: Value) -> Result<BTreeMap<String, Provided>, ConfigProblem> {
    let kind = common::kind("ingest/features");
    let bars = Provided::unknown(PortType::Bars);
    let plan = PlanContext {
        base: bench.base(),
        inputs: BTreeMap::from([("bars".to_owned(), vec![bars])]),
    };
    kind.check(&kind.resolve(with)?, &plan)
}

#[test]
fn a_key_of_digits_is_a_text_where_it_is_a_factor_too() {
    let bench = Bench::new();
    bench.file("f.csv", "date,tic,value\n20190528,ABC,1.5\n20190530,ABC,2.5\n");
    let columns = json!({ "day": "date", "value": "value" });
    let (artifact, _) = features(
        &bench,
        json!({ "path": "f.csv", "date_format": "%Y%m%d", "columns": columns }),
    );
    let shown = text(&bench.table(&artifact));
    assert!(shown.contains("ABC 2019-05-29 20190528 1.5\n"), "{shown}");
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
    assert_eq!(warnings, ["there are no bars of 1 symbol of the files: NONE"]);
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
            "rows of ABC on 2019-05-28 have different values",
        ),
        ("date,tic,v\n2019-05-28,ABC,x\n", json!({}), "row 2"),
        ("date,tic,v\n2019-05-28,ABC,inf\n", json!({}), "row 2"),
        ("date,tic,v\n2019-05-28,,1\n", json!({}), "no good row is left"),
        ("date,tic,v\n,ABC,1\n", json!({}), "row 2"),
        ("date,tic,v\n28:05:2019,ABC,1\n", json!({}), "28:05:2019"),
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
        let found = match check(&bench, with.clone()) {
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
    assert!(check(&bench, json!({})).is_err());
    let none = bench
        .check("ingest/features", json!({ "path": "f.csv", "max_age": 0 }))
        .unwrap_err();
    assert_eq!(none.field, "max_age");
    let (_, warnings) = features(&bench, json!({ "path": "f.csv", "columns": ["value"], "lag": 30 }));
    assert!(warnings[1].contains("`value` has no value on any day"), "{warnings:?}");
}

/// Names that the files do not have, by a map.
#[test]
fn columns_get_names() {
    let bench = Bench::new();
    bench.file("f.csv", FACTORS);
    let named = json!({ "path": "f.csv", "columns": { "my_value": "value", "a": "quality" } });
    let (artifact, _) = features(&bench, named.clone());
    assert_eq!(artifact.meta["features"], json!(["a", "my_value"]));
    let rows = text(&bench.table(&artifact));
    assert!(rows.contains("ABC 2019-05-31 7 2.5\n"), "{rows}");
    let provided = check(&bench, named).unwrap();
    assert!(provided["features"].may_have("my_value") && !provided["features"].may_have("value"));
    let problem = bench
        .check(
            "ingest/features",
            json!({ "path": "f.csv", "columns": { "date": "value" } }),
        )
        .unwrap_err();
    assert_eq!(problem.field, "columns.date");
}

/// Cells that are no numbers, rows without a symbol and contradictions are counted, and dropped or refused as
/// configured.
#[test]
fn bad_rows_are_counted() {
    let bench = Bench::new();
    let mut file =
        "date,tic,v\n2019-05-28,ABC,1\n2019-05-29,ABC,n.m.\n2019-05-30,,3\n2019-05-31,ABC,4\n2019-05-31,ABC,\
        5\n"
        .to_owned();
    bench.file("f.csv", file.clone());
    let quality = |artifact: &Artifact| -> Vec<(String, u64, String)> {
        let findings = artifact.meta["quality"].as_array().unwrap().iter();
        findings
            .map(|finding| {
                let text = |key: &str| finding[key].as_str().unwrap().to_owned();
                (text("rule"), finding["rows"].as_u64().unwrap(), text("action"))
            })
            .collect()
    };
    let at = |with: Value| json!({ "path": "f.csv", "lag": 0, "on_bad_rows": with });
    let found = refused(&bench, at(json!("by_rule")));
    assert!(
        found.starts_with("rows of ABC on 2019-05-31 have different values"),
        "{found}"
    );
    let (artifact, warnings) = features(&bench, at(json!({ "contradiction": "drop" })));
    assert_eq!(
        quality(&artifact),
        [
            ("bad_number".to_owned(), 1, "repaired".to_owned()),
            ("missing_symbol".to_owned(), 1, "dropped".to_owned()),
            ("contradiction".to_owned(), 2, "dropped".to_owned()),
        ]
    );
    assert!(warnings[0].starts_with("3 of 5 rows dropped"), "{warnings:?}");
    let rows = text(&bench.table(&artifact));
    assert!(
        rows.contains("ABC 2019-05-29 -\n") && rows.contains("ABC 2019-05-31 -\n"),
        "{rows}"
    );
    let found = refused(&bench, at(json!({ "contradiction": "drop", "bad_number": "fail" })));
    assert!(
        found.contains("1 row breaks the rule `bad_number`") && found.contains("in `v`"),
        "{found}"
    );
    // Of many rows a rule may drop a twentieth.
    for day in 1..=28 {
        for month in ["01", "02", "03", "04"] {
            file.push_str(&format!(
                "2019-{month}-{day:02},{},1\n",
                if day % 10 == 0 { "" } else { "ABC" }
            ));
        }
    }
    bench.file("f.csv", file);
    let found = refused(&bench, at(json!({ "contradiction": "drop" })));
    assert!(
        found.contains("the rule `missing_symbol` drops 9 of 117 rows"),
        "{found}"
    );
    let more =
        json!({ "path": "f.csv", "lag": 0, "on_bad_rows": { "contradiction": "drop" }, "max_dropped": 0.1 });
    features(&bench, more);
}

/// Without bars: the trading days of a calendar, from a symbol's first row until the last of all is known.
#[test]
fn features_of_a_calendar() {
    let bench = Bench::new();
    bench.file(
        "f.csv",
        "date,tic,v\n2019-06-28,ABC,1\n2019-07-03,ABC,2\n2019-07-02,XYZ,3\n",
    );
    let run = |with: Value| bench.run_with("ingest/features", with, &[]);
    let (outputs, _) = run(json!({ "path": "f.csv", "calendar": "us" })).unwrap();
    assert_eq!(
        text(&bench.table(&outputs["features"])),
        "\
ABC 2019-06-28 -
ABC 2019-07-01 1
ABC 2019-07-02 1
ABC 2019-07-03 1
ABC 2019-07-05 2
XYZ 2019-07-02 -
XYZ 2019-07-03 3
XYZ 2019-07-05 3
"
    );
    assert_eq!(
        outputs["features"].entries[0].path,
        "ABC..XYZ/2019-01-01_2019-12-31.parquet"
    );
    let problem = bench.check("ingest/features", json!({ "path": "f.csv" })).unwrap_err();
    assert_eq!(problem.field, "calendar");
    let problem = check(&bench, json!({ "path": "f.csv", "calendar": "us" })).unwrap_err();
    assert_eq!(problem.field, "calendar");
    bench.file("m.csv", "date,v\n2019-06-28,1\n");
    let err = run(json!({ "path": "m.csv", "calendar": "us" })).err().unwrap();
    assert!(err.message.contains("no column of symbols"), "{}", err.message);
}

/// The snapshots of a chain: with several a day, a row is known from the first of a later day.
#[test]
fn features_of_a_chain() {
    let bench = Bench::new();
    bench.file("f.csv", "date,tic,v\n2019-05-28,ABC,1\n2019-05-29,ABC,2\n");
    let chain = |times: &[&str]| {
        let mut rows = "symbol,date,expiry,strike,call,bid,ask".to_owned();
        rows.push_str(if times.is_empty() { "\n" } else { ",snapshot\n" });
        for day in ["2019-05-28", "2019-05-29", "2019-05-30"] {
            for strike in [10, 11] {
                let row = format!("ABC,{day},2019-06-21,{strike},true,1,2");
                match times {
                    [] => rows.push_str(&format!("{row}\n")),
                    _ => times
                        .iter()
                        .for_each(|time| rows.push_str(&format!("{row},{day}T{time}Z\n"))),
                }
            }
        }
        let file = stages_core::typed_output::WrittenFile {
            name: "chain.csv".to_owned(),
            bytes: rows.into(),
        };
        let events = stages_core::event::Silent;
        let digest = stages_core::typed_output::write(
            &bench.store,
            PortType::OptionChain,
            &[file],
            &BTreeMap::new(),
            &[],
            &|| Ok(()),
            &events,
        )
        .unwrap();
        bench.store.artifact(digest).unwrap()
    };
    let run = |chain: &Artifact, lag: u32| {
        let with = json!({ "path": "f.csv", "lag": lag });
        let (mut outputs, _) = bench.run_with("ingest/features", with, &[("chain", chain)])?;
        let artifact = outputs.remove("features").unwrap();
        assert_eq!(
            artifact.entries[0].path, chain.entries[0].path,
            "the partitions of the chain"
        );
        let rows = bench.table(&artifact);
        let values = stages_core::table::floats_or_nan(&rows, "v")?;
        let times = stages_core::table::snapshot_times(&rows)?;
        let row = |(time, value): (&datasets::SnapshotTime, &f64)| format!("{time}: {value}");
        Ok::<Vec<String>, stages_core::StageError>(times.iter().zip(&values).map(row).collect())
    };
    let daily = chain(&[]);
    assert_eq!(
        run(&daily, 1).unwrap(),
        ["2019-05-28: NaN", "2019-05-29: 1", "2019-05-30: 2"]
    );
    assert_eq!(
        run(&daily, 0).unwrap(),
        ["2019-05-28: 1", "2019-05-29: 2", "2019-05-30: 2"]
    );
    let intraday = chain(&["14:00:00", "19:45:00"]);
    assert_eq!(
        run(&intraday, 1).unwrap(),
        [
            "2019-05-28 14:00:00 UTC: NaN",
            "2019-05-28 19:45:00 UTC: NaN",
            "2019-05-29 14:00:00 UTC: 1",
            "2019-05-29 19:45:00 UTC: 1",
            "2019-05-30 14:00:00 UTC: 2",
            "2019-05-30 19:45:00 UTC: 2",
        ]
    );
    assert!(run(&intraday, 0).unwrap_err().message.contains("`lag: 0`"));
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
