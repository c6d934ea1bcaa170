//! Percent and decimals in files of rates.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod common;

use common::{Bench, floats};
use serde_json::{Value, json};
use std::fmt::Write as _;

const COLUMNS: [&str; 3] = ["on", "r3m", "r10y"];

fn own(percent: Option<bool>) -> Value {
    let mut layout = json!({ "quote": "zero_continuous",
        "columns": { "date": "date", "0": "on", "0.25": "r3m", "10": "r10y" } });
    if let Some(percent) = percent {
        layout["percent"] = json!(percent);
    }
    layout
}

/// A file of `days` days from 2021-01-01 on. `shown` writes the rate, in percent, of a day and a column.
fn file(days: i32, shown: impl Fn(i32, usize) -> String) -> String {
    let first = datasets::Date::from_ymd(2021, 1, 1).unwrap();
    let mut text = format!("date,{}\n", COLUMNS.join(","));
    for day in (0..days).filter(|day| !first.plus(*day).is_weekend()) {
        let rates: Vec<String> = (0..COLUMNS.len()).map(|column| shown(day, column)).collect();
        let _ = writeln!(text, "{},{}", first.plus(day), rates.join(","));
    }
    text
}

/// The rate in percent of a market: a level, a slope over the columns, and a daily move.
fn rate(level: f64, day: i32, column: usize) -> f64 {
    level + 0.15 * level * column as f64 + 0.02 * level * f64::from(day * 7 % 11 - 5) / 5.0
}

/// Decimals in one maturity among percent fail; a steep curve in a time of zero interest does not.
#[test]
fn decimals_in_one_maturity_fail() {
    let run = |percents: [&str; 3]| {
        let bench = Bench::new();
        let mut text = "date,m3,y1,y2\n".to_owned();
        for day in 13..18 {
            let _ = writeln!(text, "2023-02-{day},{}", percents.join(","));
        }
        bench.file("r.csv", text);
        let columns = json!({ "date": "date", "0.25": "m3", "1": "y1", "2": "y2" });
        let layout = json!({ "quote": "zero_continuous", "percent": true, "columns": columns });
        bench.run("ingest/rates", json!({ "path": "r.csv", "layout": layout }))
    };
    for percents in [
        ["4.5", "0.0511", "5.2"],
        ["0.0451", "5.1", "5.2"],
        ["4.5", "5.1", "0.0523"],
        ["4.5", "0.0511", ""],
    ] {
        let err = run(percents).map(|_| ()).unwrap_err();
        assert!(err.message.contains("unit_change"), "{percents:?}: {}", err.message);
    }
    for percents in [["0.01", "0.12", "0.55"], ["4.5", "5.1", "5.2"], ["-0.02", "0.3", "0.6"]] {
        assert!(run(percents).is_ok(), "{percents:?}");
    }
}

/// Decimal rates in a layout of one's own that states no unit, in one that states percent in error, under a
/// known layout, and decimals among percent: right, or told.
#[test]
fn a_unit_that_is_not_the_layouts_is_told() {
    let (mut tried, mut told, mut right) = (0, 0, 0);
    for (seed, level) in [0.3, 0.5, 0.9, 1.2, 2.0, 3.3, 4.1, 5.25, 7.5, 12.0]
        .into_iter()
        .enumerate()
    {
        for days in [5, 12, 40] {
            let bench = Bench::new();
            let decimals = file(days, |day, column| format!("{:.6}", rate(level, day, column) / 100.0));
            bench.file("own.csv", decimals.clone());
            let done = bench
                .run("ingest/rates", json!({ "path": "own.csv", "layout": own(None) }))
                .unwrap();
            assert_eq!(done.warnings.len(), 1, "{level} %: {:?}", done.warnings);
            assert!(
                done.warnings[0].contains("no rate of the layout `custom` reaches 1 %"),
                "{:?}",
                done.warnings
            );
            assert_eq!(
                done.artifact.meta["facts"]["unit"],
                json!({ "value": "percent", "origin": "assumed" })
            );
            // The remedy works, and nothing is told then.
            let with = json!({ "path": "own.csv", "layout": own(Some(false)) });
            let done = bench.run("ingest/rates", with).unwrap();
            let first = floats(&bench.rows(&done), "rate")[0];
            assert!((first - rate(level, 0, 0) / 100.0).abs() < 1e-6, "{first}");
            assert_eq!(done.warnings, Vec::<String>::new());
            (tried, told, right) = (tried + 2, told + 1, right + 1);

            // Under the names of a known layout.
            let known = decimals.replace("on,r3m,r10y", "fed_funds_eff,ust_3m,ust_10y");
            if rate(level, 0, 2) / 100.0 * 1.05 < 0.3 {
                bench.file("fred.csv", known);
                let done = bench.run("ingest/rates", json!({ "path": "fred.csv" })).unwrap();
                assert!(
                    done.warnings[0].contains("`fred_daily` reaches 0.3 %"),
                    "{level}: {:?}",
                    done.warnings
                );
                let layout = json!({ "like": "fred_daily", "percent": false });
                let with = json!({ "path": "fred.csv", "layout": layout });
                let done = bench.run("ingest/rates", with).unwrap();
                assert_eq!(done.warnings, Vec::<String>::new());
                (tried, told) = (tried + 1, told + 1);
            }

            // Percent that is read as decimals.
            bench.file(
                "percent.csv",
                file(days, |day, column| format!("{:.2}", rate(level, day, column))),
            );
            let with = json!({ "path": "percent.csv", "layout": own(Some(false)) });
            match bench.run("ingest/rates", with) {
                Ok(done) => assert!(!done.warnings.is_empty(), "{level} % over {days} days"),
                Err(err) => assert!(err.hint.unwrap().contains("percent"), "{}", err.message),
            }
            let with = json!({ "path": "percent.csv", "layout": own(Some(true)) });
            let done = bench.run("ingest/rates", with).unwrap();
            assert!((floats(&bench.rows(&done), "rate")[0] - rate(level, 0, 0) / 100.0).abs() < 1e-4);
            assert_eq!(done.warnings, Vec::<String>::new());
            (tried, told, right) = (tried + 2, told + 1, right + 1);

            // Decimals from one day on, or on some days, among percent.
            if days > 5 && level >= 0.9 {
                let from = 3 + (5 * seed as i32) % (days - 4);
                for to in [from + 2, days] {
                    let is_decimal = |day: i32| (from..to).contains(&day) || (from..from + 3).contains(&day);
                    bench.file(
                        "mixed.csv",
                        file(days, |day, column| {
                            let by = if is_decimal(day) { 100.0 } else { 1.0 };
                            format!("{:.6}", rate(level, day, column) / by)
                        }),
                    );
                    let with = json!({ "path": "mixed.csv", "layout": own(Some(true)) });
                    let err = bench.run("ingest/rates", with.clone()).err().unwrap();
                    assert!(err.message.contains("`unit_change`"), "{}", err.message);
                    let mut kept = with;
                    kept["on_bad_rows"] = json!({ "unit_change": "keep" });
                    assert!(bench.run("ingest/rates", kept).is_ok());
                    (tried, told) = (tried + 1, told + 1);
                }
            }
        }
    }
    println!("kind percent and decimals: tried {tried}, told {told}, right {right}, silent 0");
    assert!(tried > 100);
}

/// Rates of years of zero and of negative interest are what they are.
#[test]
fn low_rates_are_no_false_alarm() {
    let bench = Bench::new();
    for (name, level) in [("zero", 0.05), ("low", 0.12), ("negative", -0.5), ("usual", 2.5)] {
        for days in [5, 60, 400] {
            let rates = file(days, |day, column| format!("{:.2}", rate(level, day, column)));
            bench.file("fred.csv", rates.replace("on,r3m,r10y", "fed_funds_eff,ust_3m,ust_10y"));
            let done = bench.run("ingest/rates", json!({ "path": "fred.csv" })).unwrap();
            let told = done.warnings.iter().find(|warning| warning.contains("reaches"));
            assert_eq!(told, None, "{name} over {days} days");
            bench.file("own.csv", rates);
            let with = json!({ "path": "own.csv", "layout": own(Some(true)) });
            assert_eq!(
                bench.run("ingest/rates", with).unwrap().warnings,
                Vec::<String>::new(),
                "{name}"
            );
        }
    }
}
