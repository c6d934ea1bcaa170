//! `ingest/bars` and `ingest/rates` on small files.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use common::{Bench, floats, gzip, text};
use serde_json::json;

const YAHOO: &str = "\
Date,Open,High,Low,Close,Adj Close,Volume
2019-05-23,10.0,10.5,9.5,10.2,9.9,1000
2019-05-24,10.2,10.6,10.1,10.4,10.1,1100
2019-05-27,10.2,10.6,10.1,10.4,10.1,0
2019-05-28,null,null,null,null,null,null
2019-05-29,10.4,10.3,10.2,10.9,10.4,900
2019-05-31,21.0,22.0,20.0,21.5,21.0,0
2019-06-03,-1.0,22.0,-1.0,21.5,21.0,5
2019-06-04,21.5,21.6,21.4,21.5,21.0,-5
";

#[test]
fn yahoo() {
    let bench = Bench::new();
    bench.file("raw/ABC.csv.gz", gzip(YAHOO.as_bytes()));
    let provided = bench.check("ingest/bars", json!({ "path": "raw" })).unwrap();
    assert!(provided["bars"].may_have("high"));
    let done = bench.run("ingest/bars", json!({ "path": "raw" })).unwrap();
    assert_eq!(
        text(&bench.rows(&done)),
        "\
ABC 2019-05-23 10 10.5 9.5 10.2 1000 9.9
ABC 2019-05-24 10.2 10.6 10.1 10.4 1100 10.1
ABC 2019-05-31 21 22 20 21.5 0 21
ABC 2019-06-04 21.5 21.6 21.4 21.5 - 21
"
    );
    assert_eq!(done.artifact.entries[0].path, "ABC/2019-01-01_2019-12-31.parquet");
    for (rule, rows) in [
        ("non_trading_day", 1),
        ("missing_day", 1),
        ("null_close", 1),
        ("nonpositive_price", 1),
        ("inconsistent_range", 1),
        ("negative_count", 1),
        ("zero_volume", 2),
        ("split_jump", 1),
    ] {
        assert_eq!(done.finding(rule).0, rows, "{rule}");
    }
    assert_eq!(done.examples("missing_day"), ["2019-05-30"]);
    let keep = bench
        .run("ingest/bars", json!({ "path": "raw", "on_bad_rows": "keep" }))
        .unwrap();
    assert_eq!(bench.rows(&keep).num_rows(), 7);
    assert_eq!(keep.finding("null_close").2, "dropped", "the schema needs a close");
    assert_eq!(keep.finding("inconsistent_range").2, "kept");
    let named = bench
        .run("ingest/bars", json!({ "path": "raw/*.gz", "symbol": "XYZ" }))
        .unwrap();
    assert_eq!(named.artifact.meta["symbols"], json!(["XYZ"]));
}

#[test]
fn other_bars() {
    let bench = Bench::new();
    bench
        .file(
            "spy.csv",
            "datadate,tic,prccd,ajexdi,prcod,prchd,prcld,cshtrd\n20090102,SPY,92.96,2.0,90.44,93.44,89.85,\
            227563000.0\n",
        )
        .file("vix.csv", "DATE,CLOSE\n01/02/1990,17.24\n01/16/1990,24.67\n");
    let spy = bench.run("ingest/bars", json!({ "path": "spy.csv" })).unwrap();
    assert_eq!(
        text(&bench.rows(&spy)),
        "SPY 2009-01-02 90.44 93.44 89.85 92.96 227563000 46.48\n"
    );
    let provided = bench.check("ingest/bars", json!({ "path": "vix.csv" })).unwrap();
    assert!(!provided["bars"].may_have("high") && provided["bars"].may_have("close"));
    let vix = bench.run("ingest/bars", json!({ "path": "vix.csv" })).unwrap();
    assert_eq!(
        text(&bench.rows(&vix)),
        "vix 1990-01-02 - - - 17.24 - -\nvix 1990-01-16 - - - 24.67 - -\n"
    );
    let layout = json!({ "columns": { "date": "DATE", "close": "LAST" } });
    let problem = bench
        .check("ingest/bars", json!({ "path": "vix.csv", "layout": layout }))
        .unwrap_err();
    assert!(
        problem
            .message
            .contains("lacks a column of layout `custom`: `LAST` for `close`"),
        "{}",
        problem.message
    );
}

/// A column of closes for each symbol: no bar where a cell is empty.
#[test]
fn a_wide_table_of_closes() {
    let bench = Bench::new();
    bench.file(
        "closes.csv",
        "Date,AAPL, BRK.B,late\n2024-01-16,187.5,360,\n2024-01-17,,361.5,\n2024-01-18,188.63,,10.25\n",
    );
    let with = json!({ "path": "closes.csv", "layout": { "columns": { "date": "Date", "close": "*" } } });
    let provided = bench.check("ingest/bars", with.clone()).unwrap();
    assert!(provided["bars"].may_have("close") && !provided["bars"].may_have("open"));
    let done = bench.run("ingest/bars", with).unwrap();
    assert_eq!(
        text(&bench.rows(&done)),
        "\
AAPL 2024-01-16 - - - 187.5 - -
AAPL 2024-01-18 - - - 188.63 - -
BRK.B 2024-01-16 - - - 360 - -
BRK.B 2024-01-17 - - - 361.5 - -
late 2024-01-18 - - - 10.25 - -
"
    );
    let adjusted = json!({ "path": "closes.csv", "layout": { "columns": { "date": "Date",
        "adjusted_close": "*", "close": "AAPL" } } });
    let refused = bench.check("ingest/bars", adjusted).unwrap_err();
    assert!(refused.message.contains("only closes of bars"), "{refused:?}");
    bench.file("index.csv", ",AAPL\n2024-01-16,187.5\n");
    let with = json!({ "path": "index.csv", "layout": { "columns": { "date": "Date", "close": "*" } } });
    let done = bench.run("ingest/bars", with).unwrap();
    assert_eq!(text(&bench.rows(&done)), "AAPL 2024-01-16 - - - 187.5 - -\n");
    assert!(!done.warnings.is_empty(), "a nameless column that is read is told");
}

#[test]
fn par_yields() {
    let bench = Bench::new();
    bench.file(
        "ust.csv",
        "date,BC_1MONTH,BC_3MONTH,BC_6MONTH,BC_1YEAR,BC_10YEAR,BC_30YEAR,BC_30YEARDISPLAY\n\
         2008-12-09,0.05,0.10,0.20,,2.7,0.0,0.0\n2008-12-10,0.0,0.0,0.21,0.49,2.69,3.09,0.0\n",
    );
    let done = bench.run("ingest/rates", json!({ "path": "ust.csv" })).unwrap();
    let rows = bench.rows(&done);
    assert_eq!(rows.num_rows(), 4 + 6);
    assert_eq!(done.finding("zero_for_missing"), (1, 1, "dropped".to_owned()));
    let (tenors, rates) = (floats(&rows, "tenor_years"), floats(&rows, "rate"));
    assert_eq!((tenors[4], rates[4]), (1.0 / 12.0, 0.0));
    assert!(
        (rates[6] - 2.0 * (1.0 + 0.0021 / 2.0_f64).ln()).abs() < 1e-12,
        "six months are simple"
    );
    assert!(
        (rates[7] - 0.0049).abs() < 2e-5 && rates[9] > 0.0309,
        "zero rates of a rising curve are above par"
    );
    assert_eq!(done.artifact.entries[0].path, "rates/2008-01-01_2008-12-31.parquet");
    assert_eq!(done.artifact.meta["quoted_as"], "par_semiannual");

    bench.file("ois.csv", "d;on;1y\n05.01.2009;1.0;2.0\n");
    let layout = json!({ "columns": { "date": "d", "0": "on", "1": "1y" }, "date_format": "%d.%m.%Y",
        "quote": "zero_continuous" });
    let done = bench
        .run("ingest/rates", json!({ "path": "ois.csv", "layout": layout }))
        .unwrap();
    assert_eq!(text(&bench.rows(&done)), "2009-01-05 0 0.01\n2009-01-05 1 0.02\n");
    let problem = bench.check(
        "ingest/rates",
        json!({ "path": "ois.csv", "layout": { "columns": { "date": "d", "1y": "x" } } }),
    );
    assert_eq!(problem.unwrap_err().field, "layout.columns.1y");
}

/// Adding a file reads that file alone, and threads change nothing.
#[test]
fn files_and_threads() {
    let bench = Bench::new();
    bench
        .file("bars/ABC.csv", YAHOO)
        .file("bars/XYZ.csv.gz", gzip(YAHOO.as_bytes()))
        .file("rates/1.csv", "date,BC_3MONTH,BC_10YEAR\n2008-12-09,0.10,2.7\n");
    for (kind, folder) in [("ingest/bars", "bars"), ("ingest/rates", "rates")] {
        let with = json!({ "path": folder });
        let before = bench.run(kind, with.clone()).unwrap();
        let (new, body) = match folder {
            "bars" => ("bars/DEF.csv", YAHOO.replace("10.", "11.")),
            _ => (
                "rates/2.csv",
                "date,BC_3MONTH,BC_10YEAR\n2008-12-10,0.20,2.8\n".to_owned(),
            ),
        };
        bench.file(new, body);
        let after = bench.run(kind, with.clone()).unwrap();
        assert_eq!(before.memos.0, 0);
        // The rows of a year have changed.
        let years = usize::from(folder == "bars") as u64;
        assert_eq!(after.memos, (before.memos.1 - years, before.memos.1 + 2), "{kind}");
        for threads in [1, 2, 3] {
            assert_eq!(bench.digest_with(threads, kind, with.clone()), after.digest);
        }
    }
    bench
        .file("mixed/a.csv", YAHOO)
        .file("mixed/b.csv", "d;on\n2019-01-02;1.0\n");
    let err = bench.run("ingest/bars", json!({ "path": "mixed" })).err().unwrap();
    assert!(err.message.contains("b.csv`: no known layout"), "{err}");
}

/// Digests of outputs on small input. If a change of code or of a dependency moves one, raise the kind's
/// `VERSION`, and then the digest here.
#[test]
fn golden() {
    let bench = Bench::new();
    bench.file("ABC.csv", YAHOO).file(
        "ust.csv",
        "date,BC_3MONTH,BC_6MONTH,BC_10YEAR\n2008-12-09,0.10,0.20,2.7\n",
    );
    let bars = bench.run("ingest/bars", json!({ "path": "ABC.csv" })).unwrap();
    let rates = bench.run("ingest/rates", json!({ "path": "ust.csv" })).unwrap();
    // But for the reason for their layout, the first two are those of the versions before.
    assert_eq!(
        [
            bench.digest_without(&bars, "recognised"),
            bench.digest_without(&rates, "recognised"),
            bars.digest,
            rates.digest
        ],
        [
            "5eb05861c8b0d46734a5c618b5246a042e14dc66037c781d272fe7658531c773",
            "addf2cfa84c3a9499d626b6cbeb86ba5f6d3ade02205ed6cbf8bcd0b623df513",
            "3c21f255f45e68304d57af3d1ddb780a335b77f89347e4827a9f9881b1b920d4",
            "c9e35cde5cf998a102b1773bd716b184ec331451fa1a92dda2a6515b76831592"
        ]
    );
}
