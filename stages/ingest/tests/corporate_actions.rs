//! `ingest/corporate_actions` on small files.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use cache::Artifact;
use common::Bench;
use datasets::corporate_action::{CorporateAction, Kind};
use serde_json::json;
use stages_core::corporate_actions::read;

const KIND: &str = "ingest/corporate_actions";

fn rows(bench: &Bench, artifact: &Artifact) -> Vec<CorporateAction> {
    match artifact.entries.is_empty() {
        true => Vec::new(),
        false => read(&bench.table(artifact)).unwrap(),
    }
}

fn shown(actions: &[CorporateAction]) -> Vec<String> {
    actions
        .iter()
        .map(|action| {
            format!(
                "{} {} {} {:.4} {:.4} {} {}",
                action.symbol,
                action.date,
                action.kind.name(),
                action.ratio,
                action.amount,
                action.new_symbol,
                action.origin
            )
        })
        .collect()
}

#[test]
fn files_of_every_form() {
    let bench = Bench::new();
    bench
        .file(
            "own.csv",
            "ticker,ex_date,type,ratio,amount,new_symbol\nABC,2019-06-10,Split,7-for-1,,\nABC,2019-07-01,\
            special dividend,,2.5,\nABC,2019-08-01,symbol change,,,XYZ\n",
        )
        .file(
            "QQQ.csv",
            "Date,Open,High,Low,Close,Volume,Dividends,Stock \
            Splits\n2019-05-01,1,1,1,1,5,0.25,0.0\n2019-06-03,1,1,1,1,5,0,4.0\n2019-07-01,1,1,1,1,5,0.5,0\n",
        )
        .file(
            "lean/aapl.csv",
            "20140507,0.8961764,0.03571430,592.33\n20140606,0.9011818,0.03571430,645.57\n20140806,0.9011818,\
            0.25,94.96\n20501231,0.9011818,0.25,0\n",
        );
    let of = |with| {
        bench.check(KIND, with).unwrap_or_else(|problem| panic!("{problem:?}"));
    };
    of(json!({ "path": "own.csv" }));
    let actions = |with| {
        let (outputs, warnings) = bench.run_with(KIND, with, &[]).unwrap();
        assert!(warnings.is_empty() && outputs["proposed"].entries.is_empty());
        shown(&rows(&bench, &outputs["actions"]))
    };
    assert_eq!(
        actions(json!({ "path": "own.csv" })),
        [
            "ABC 2019-06-10 split 7.0000 NaN  file",
            "ABC 2019-07-01 special_dividend NaN 2.5000  file",
            "ABC 2019-08-01 symbol_change NaN NaN XYZ file",
        ]
    );
    // Yahoo's dividends are divided by later splits; here they are what was paid.
    assert_eq!(
        actions(json!({ "path": "QQQ.csv" })),
        [
            "QQQ 2019-05-01 cash_dividend NaN 1.0000  yahoo",
            "QQQ 2019-06-03 split 4.0000 NaN  yahoo",
            "QQQ 2019-07-01 cash_dividend NaN 0.5000  yahoo",
        ]
    );
    assert_eq!(
        actions(json!({ "path": "lean" })),
        [
            "AAPL 2014-05-08 cash_dividend NaN 3.2900  lean",
            "AAPL 2014-06-09 split 7.0000 NaN  lean",
        ]
    );
    // The same split from two sources is one.
    let twice =
        json!({ "path": "lean", "actions": [{ "symbol": "AAPL", "date": "2014-06-09", "ratio": "7" }] });
    assert_eq!(actions(twice).len(), 2);
    let other =
        json!({ "path": "lean", "actions": [{ "symbol": "AAPL", "date": "2014-06-09", "ratio": "2" }] });
    let err = bench.run_with(KIND, other, &[]).unwrap_err();
    assert!(err.message.contains("contradict one another"), "{err}");
}

#[test]
fn mistakes_are_named() {
    let bench = Bench::new();
    bench
        .file("a.csv", "symbol,date,ratio\nABC,2019-06-10,seven\n")
        .file("b.csv", "symbol,date,kind,ratio\nABC,2019-06-10,merger,2\n")
        .file("c.csv", "symbol,date,other\nABC,2019-06-10,1\n")
        .file("d.csv", "symbol,date,kind,ratio,amount\nABC,2019-06-10,split,,\n")
        .file("e.csv", "symbol,date,kind,ratio\nABC,2019-06-10,stock_dividend,0.05\n");
    let err = |path: &str| bench.run_with(KIND, json!({ "path": path }), &[]).unwrap_err();
    assert!(
        err("a.csv")
            .message
            .ends_with("a.csv`, row 2, column `ratio`: `seven` is not a ratio such as 7:1 or 0.125"),
        "{}",
        err("a.csv")
    );
    assert!(
        err("b.csv")
            .message
            .contains("`merger` is not a kind of corporate action")
    );
    assert!(err("c.csv").message.contains("has no column for `ratio`"));
    assert!(err("d.csv").message.contains("a split needs it"));
    assert!(err("e.csv").hint.is_some_and(|hint| hint.ends_with("1.05 for 5 %")));
    for (with, field) in [
        (json!({}), "path"),
        (
            json!({ "actions": [{ "symbol": "ABC", "ratio": "7" }] }),
            "actions[0].date",
        ),
        (
            json!({ "actions": [{ "date": "2019-06-10", "ratio": "7" }] }),
            "actions[0].symbol",
        ),
        (
            json!({ "actions": [{ "symbol": "ABC", "date": "2019-06-10", "ratio": "x" }] }),
            "actions[0].ratio",
        ),
        (
            json!({ "actions": [{ "symbol": "ABC", "date": "2019-06-10", "kind": "splt" }] }),
            "actions[0].kind",
        ),
        (
            json!({ "actions": [{ "symbol": "ABC", "date": "2019-06-10", "kind": "stock_dividend",
                "ratio": 0.1 }] }),
            "actions[0].ratio",
        ),
        (json!({ "path": "a.csv", "columns": { "rato": "x" } }), "columns.rato"),
    ] {
        assert_eq!(bench.check(KIND, with.clone()).unwrap_err().field, field, "{with}");
    }
}

#[test]
fn splits_in_prices_are_proposed_and_not_applied() {
    let bench = Bench::new();
    bench.file(
        "ABC.csv",
        "Date,Close\n2019-06-03,645.5\n2019-06-04,640.1\n2019-06-05,93.7\n2019-06-06,94.2\n2019-06-07,60.0\n",
    );
    let bars = bench.run("ingest/bars", json!({ "path": "ABC.csv" })).unwrap().artifact;
    let (outputs, warnings) = bench.run_with(KIND, json!({}), &[("bars", &bars)]).unwrap();
    assert!(outputs["actions"].entries.is_empty(), "nothing is applied by itself");
    let proposed = rows(&bench, &outputs["proposed"]);
    // 94.2 to 60, 1.57, is as likely to be news: without volumes, nothing tells.
    assert_eq!(shown(&proposed), ["ABC 2019-06-05 split 7.0000 NaN  found"]);
    assert!(proposed.iter().all(|action| action.kind == Kind::Split));
    assert_eq!(
        warnings[0],
        "ABC: prices show a split, 7-for-1, on 2019-06-05 that is not among the actions"
    );
    let given = json!({ "actions": [{ "symbol": "ABC", "date": "2019-06-05", "ratio": "7:1" }] });
    let (outputs, _) = bench.run_with(KIND, given, &[("bars", &bars)]).unwrap();
    assert!(rows(&bench, &outputs["proposed"]).is_empty());
}
