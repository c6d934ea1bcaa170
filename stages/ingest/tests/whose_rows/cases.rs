//! Small cases: files of parts, factors, copies and corporate actions.

use super::*;
use std::collections::BTreeSet;

#[test]
fn files_of_dates_and_parts_need_a_symbol() {
    let days = weekdays("2022-12-01", 60);
    let closes = panel(&["A"], &days)["A"].clone();
    let bench = Bench::new();
    let (one, two): (BTreeMap<_, _>, BTreeMap<_, _>) =
        closes.iter().partition(|(date, _)| date.ymd().0 == 2022);
    let text =
        |part: BTreeMap<&Date, &f64>| csv(&part.into_iter().map(|(date, close)| (*date, *close)).collect());
    bench.file("data/2022.csv", text(one)).file("data/2023.csv", text(two));
    let found = refused(&bench, "ingest/bars", json!({ "path": "data" }));
    assert!(
        found.contains("name no symbol") && found.contains("`symbol: NAME`"),
        "{found}"
    );
    let (found, told) = bars(&bench, json!({ "path": "data", "symbol": "A", "calendar": "none" }));
    assert_eq!((&found["A"], told.as_str()), (&closes, ""));
    // A table of one series in several files is one.
    let (outputs, warnings) = bench.run_with("ingest/table", json!({ "path": "data" }), &[]).unwrap();
    assert_eq!(
        (&outputs["table"].meta["symbols"], warnings.len()),
        (&json!(["table"]), 0)
    );
    // Contracts whose names end like dates, on the same days, are not one series.
    let other: BTreeMap<Date, f64> = closes.iter().map(|(date, close)| (*date, close * 1.1)).collect();
    bench
        .file("f/CL_202301.csv", csv(&closes))
        .file("f/CL_202302.csv", csv(&other));
    let found = refused(&bench, "ingest/bars", json!({ "path": "f" }));
    assert!(
        found.contains("both taken for `CL`") && found.contains("`symbol=NAME`"),
        "{found}"
    );
}

/// A column of texts that is not read: in factors, it is that of symbols where its values are.
#[test]
fn factors_are_of_the_whole_market_only_where_nothing_says_otherwise() {
    let bench = Bench::new();
    let days = weekdays("2023-02-13", 20);
    let mut rows = "symbol,date,close\n".to_owned();
    for (symbol, closes) in panel(&["AAA", "BBB"], &days) {
        for (date, close) in closes {
            writeln!(rows, "{symbol},{date},{close}").unwrap();
        }
    }
    bench.file("bars.csv", rows);
    let market = bench
        .run("ingest/bars", json!({ "path": "bars.csv", "currency": "USD" }))
        .unwrap()
        .artifact;
    let run = |with: Value| bench.run_with("ingest/features", with, &[("bars", &market)]);
    let with = |symbol: &str| json!({ "path": "f.csv", "columns": ["value"], "symbol": symbol });
    bench.file("f.csv", "date,who,value\n2023-02-13,AAA,1\n2023-02-14,AAA,2\n");
    let (_, warnings) = run(with("")).unwrap();
    assert_eq!(
        warnings,
        [
            "the symbols are taken from the column `who` (`AAA`): its values are those of the days' data",
            "there are no rows of BBB: their features are null"
        ]
    );
    let (outputs, warnings) = run(with("none")).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let values = closes(&bench, &outputs["features"], "value");
    assert_eq!(values["BBB"][&days[1]], 1.0);
    bench.file(
        "f.csv",
        "date,who,value\n2023-02-13,X,1\n2023-02-13,Y,2\n2023-02-14,X,2\n2023-02-14,Y,2\n",
    );
    let err = run(with("")).unwrap_err();
    assert!(err.hint.unwrap().contains("`symbol: \"who\"`"));
    // A file of each symbol, by its name.
    for symbol in ["AAA", "BBB"] {
        bench.file(
            &format!("g/{symbol}.csv"),
            format!("date,value\n2023-02-13,{}\n", symbol.len()),
        );
    }
    bench.file("g/BBB.csv", "date,value\n2023-02-14,7\n");
    let (outputs, warnings) = run(json!({ "path": "g" })).unwrap();
    assert!(
        warnings[0].contains("`g") || warnings[0].contains("`AAA.csv` is of `AAA`"),
        "{warnings:?}"
    );
    let values = closes(&bench, &outputs["features"], "value");
    assert_eq!((values["AAA"][&days[3]], values["BBB"][&days[3]]), (3.0, 7.0));
    let symbols: BTreeSet<&String> = values.keys().collect();
    assert_eq!(symbols.len(), 2);
}

/// A header alone, a copy by the browser, two companies in one directory each, hours given as days.
#[test]
fn what_was_silent_is_told() {
    let days = weekdays("2023-02-13", 40);
    let all = panel(&["AAPL", "MSFT"], &days);
    let bench = Bench::new();
    bench
        .file("data/AAPL.csv", csv(&all["AAPL"]))
        .file("data/AAPL (1).csv", csv(&all["AAPL"]))
        .file("data/MSFT.csv", csv(&all["MSFT"]))
        .file("data/XOM.csv", "Date,Close\n");
    let (found, told) = bars(&bench, json!({ "path": "data", "calendar": "none" }));
    assert_eq!(found, all);
    assert_eq!(
        told,
        "a file is left out: a second download, byte for byte: `AAPL (1).csv` is `AAPL.csv`\na file has no rows: \
        `XOM.csv`"
    );
    // As pandas writes a data set with partitions.
    let parquet = |closes: &BTreeMap<Date, f64>| {
        use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch};
        use std::sync::Arc;
        let dates: ArrayRef = Arc::new(closes.keys().map(|date| Some(date.0)).collect::<Date32Array>());
        let values: ArrayRef = Arc::new(closes.values().copied().map(Some).collect::<Float64Array>());
        stages_core::table::to_parquet(
            &RecordBatch::try_from_iter([("date", dates), ("close", values)]).unwrap(),
        )
        .unwrap()
    };
    let bench = Bench::new();
    let (old, new) = (panel(&["OLD"], &days[..20]), panel(&["NEW"], &days[20..]));
    bench
        .file("data/symbol=OLD/part-0.parquet", parquet(&old["OLD"]))
        .file("data/symbol=NEW/part-0.parquet", parquet(&new["NEW"]));
    let (found, told) = bars(&bench, json!({ "path": "data", "calendar": "none" }));
    assert_eq!(
        (&found["NEW"], &found["OLD"], told.as_str()),
        (&new["NEW"], &old["OLD"], "")
    );
    // Without the key, the folders are symbols, and what is ignored is said.
    bench
        .file("plain/OLD/part-0.parquet", parquet(&old["OLD"]))
        .file("plain/NEW/part-0.parquet", parquet(&new["NEW"]));
    let (found, told) = bars(&bench, json!({ "path": "plain", "calendar": "none" }));
    assert_eq!(found.len(), 2);
    assert_eq!(
        told,
        "the symbol is taken from the folder; the files' names are ignored: `NEW/part-0.parquet` is of `NEW`, \
        `OLD/part-0.parquet` is of `OLD`"
    );
    // Fewer than a hundred hours.
    let mut text = "date,close,volume\n".to_owned();
    for (day, date) in days[..13].iter().enumerate() {
        for hour in 0..7 {
            writeln!(text, "{date} {:02}:30:00,{},{}", 9 + hour, 100 + day, 7000 - hour).unwrap();
        }
    }
    bench.file("small.csv", text);
    let found = refused(&bench, "ingest/bars", json!({ "path": "small.csv" }));
    assert!(
        found.contains(
            "small.csv`, row 3, column `date`: `small` has rows at 09:30 and at 10:30 of 2023-02-13"
        ),
        "{found}"
    );
    let table = json!({ "path": "small.csv", "instant": "date" });
    assert_eq!(
        bench.run("ingest/table", table).unwrap().artifact.meta["rows"],
        json!(91)
    );
}

/// Symbols that differ in case alone, that are there twice, and that are asked for and are not there.
#[test]
fn symbols_that_are_there_twice() {
    let days = weekdays("2023-02-13", 10);
    let closes = panel(&["A"], &days)["A"].clone();
    let mut text = "symbol,date,close\n".to_owned();
    for symbol in ["AAPL ", "aapl", "BRK-B"] {
        for (date, close) in &closes {
            let close = close * if symbol == "BRK-B" { 2.0 } else { 1.0 };
            writeln!(text, "{symbol},{date},{close}").unwrap();
        }
    }
    let bench = Bench::new();
    bench.file("rows.csv", text);
    let with =
        json!({ "path": "rows.csv", "calendar": "none", "symbols": ["AAPL", "aapl", "BRK-B", "BRK.B"] });
    let (found, told) = bars(&bench, with);
    assert_eq!(found.len(), 3);
    assert_eq!(
        told,
        "the rows of several symbols are the same: `AAPL` and `aapl`\nsymbols differ only in case: `AAPL` and \
        `aapl`\nthere are no rows of `BRK.B` (there is `BRK-B`)"
    );
}

/// Corporate actions by directories, other names of columns, and for symbols without bars.
#[test]
fn actions_are_of_their_companies() {
    let bench = Bench::new();
    let days = weekdays("2023-02-13", 10);
    bench.file("BRK-B.csv", csv(&panel(&["X"], &days)["X"]));
    let market = bench
        .run("ingest/bars", json!({ "path": "BRK-B.csv" }))
        .unwrap()
        .artifact;
    let run = |path: &str| {
        bench.run_with(
            "ingest/corporate_actions",
            json!({ "path": path }),
            &[("bars", &market)],
        )
    };
    let symbols = |path: &str| run(path).unwrap().0["actions"].meta["symbols"].clone();
    for symbol in ["AAPL", "MSFT"] {
        bench.file(&format!("a/{symbol}/splits.csv"), "date,ratio\n2023-02-14,2\n");
        bench.file(&format!("b/symbol={symbol}/part-0.csv"), "date,ratio\n2023-02-14,2\n");
    }
    bench.file("c.csv", "date,ts_code,ratio\n2023-02-14,AAPL,2\n2023-02-14,MSFT,3\n");
    for path in ["a", "b", "c.csv"] {
        assert_eq!(symbols(path), json!(["AAPL", "MSFT"]), "{path}");
    }
    bench.file("splits.csv", "date,ratio\n2023-02-14,2\n");
    let err = run("splits.csv").unwrap_err();
    assert!(err.message.contains("names no symbol") && err.hint.unwrap().contains("symbol: AAPL"));
    bench.file("d.csv", "date,symbol,ratio\n2023-02-14,BRK.B,2\n");
    let (_, warnings) = run("d.csv").unwrap();
    assert_eq!(warnings, ["there are no bars of 1 symbol with actions: BRK.B"]);
}
