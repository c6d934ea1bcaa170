//! The cost of an appended, changed or removed file, and the bytes of its result, which are those of a run
//! from nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Bench, run_chain};
use datasets::Date;
use serde_json::{Value, json};

/// The rows of a day: a strike ladder of two expiries about a spot that moves.
fn day(symbol: &str, date: Date, more: &str) -> String {
    let spot = 100.0 + f64::from(date.0 % 7) + 0.1 * f64::from(date.0 % 11);
    let mut rows = String::new();
    for expiry in [Date(18_100), Date(18_191)] {
        for k in 0..9 {
            let strike = 80.0 + 5.0 * f64::from(k);
            for (right, gap) in [("C", spot - strike), ("P", strike - spot)] {
                let value = 2.0 + gap.max(0.0) + 0.01 * f64::from((date.0 + k) % 5);
                rows.push_str(&format!(
                    "{symbol},{date},{expiry},{strike},{right},{:.2},{:.2},{spot}{more}\n",
                    value - 0.1,
                    value + 0.1
                ));
            }
        }
    }
    rows
}

/// Trading days of 2019, from 3 June on.
fn days(count: usize) -> Vec<Date> {
    let days = (18_050..)
        .map(Date)
        .filter(|day| !day.is_weekend() && *day != Date(18_081));
    days.take(count).collect()
}

fn with(more: Value) -> Value {
    let columns = json!({
        "symbol": "s", "date": "d", "expiry": "e", "strike": "k", "call": "cp", "bid": "b", "ask": "a",
            "underlying": "u",
        "multiplier": { "column": "m", "optional": true }, "last": { "column": "l", "optional": true }
    });
    let mut with =
        json!({ "path": "d", "layout": { "columns": columns }, "partition": "day", "calendar": "us" });
    with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    with
}

fn write(bench: &Bench, date: Date, rows: &str) {
    let header = match rows.lines().next().unwrap().split(',').count() {
        8 => "s,d,e,k,cp,b,a,u",
        _ => "s,d,e,k,cp,b,a,u,m",
    };
    bench.file(&format!("d/{date}.csv"), format!("{header}\n{rows}"));
}

#[test]
fn an_appended_day_costs_its_file_and_its_partition() {
    let bench = Bench::new();
    let with = with(json!({}));
    let days = days(12);
    for date in &days[..10] {
        write(&bench, *date, &day("ABC", *date, ""));
    }
    let first = run_chain(&bench, &with);
    // The header and the rows of each file, and each partition.
    assert_eq!((first.memos, first.artifact.entries.len()), ((0, 30), 10));
    assert_eq!(run_chain(&bench, &with).memos, (30, 30));
    write(&bench, days[10], &day("ABC", days[10], ""));
    let appended = run_chain(&bench, &with);
    assert_eq!(appended.computed(), 3);
    assert_eq!(appended.artifact.entries[..10], first.artifact.entries);
    assert_eq!(appended.artifact.meta["rows"], 11 * 36);

    // Another underlying on the last day leaves the other days as they are.
    write(
        &bench,
        days[11],
        &[day("ABC", days[11], ""), day("XYZ", days[11], "")].concat(),
    );
    let other = run_chain(&bench, &with);
    assert_eq!((other.computed(), other.artifact.entries.len()), (3, 13));

    // Without the appended files, nothing is made.
    for date in &days[10..] {
        std::fs::remove_file(bench.base().join(format!("d/{date}.csv"))).unwrap();
    }
    let removed = run_chain(&bench, &with);
    assert_eq!((removed.computed(), removed.digest), (0, first.digest));
}

#[test]
fn a_changed_day_costs_the_days_that_look_back_on_it() {
    let bench = Bench::new();
    let with = with(json!({ "on_bad_rows": { "copied_day": "keep" } }));
    let days = days(8);
    for date in &days {
        write(&bench, *date, &day("ABC", *date, ""));
    }
    let first = run_chain(&bench, &with);
    // A day that repeats the one before it is found across partitions; the day after it goes on from it.
    let rows = day("ABC", days[3], "").replace(&days[3].to_string(), &days[4].to_string());
    write(&bench, days[4], &rows);
    let changed = run_chain(&bench, &with);
    assert_eq!(changed.finding("copied_day"), (36, 1, "kept".to_owned()));
    assert_eq!(changed.examples("copied_day"), [days[4].to_string()]);
    assert_eq!(changed.computed(), 4, "a file, its partition and the next one");
    // A hole: the day after it goes on from the one before it.
    std::fs::remove_file(bench.base().join(format!("d/{}.csv", days[4]))).unwrap();
    let removed = run_chain(&bench, &with);
    assert_eq!(removed.finding("missing_day").0, first.finding("missing_day").0 + 1);
    assert_eq!(removed.computed(), 1);
}

/// The terms that the rows of the last file state make a class of their own, or change what is assumed of
/// all.
#[test]
fn an_appended_day_that_changes_the_terms() {
    let bench = Bench::new();
    let with = with(json!({}));
    let days = days(6);
    for date in &days[..4] {
        write(&bench, *date, &day("ABC", *date, ",100"));
    }
    let first = run_chain(&bench, &with);
    assert_eq!(first.artifact.meta["contracts"]["ABC"]["multiplier"], 100.0);
    write(
        &bench,
        days[4],
        &[day("ABC", days[4], ",100"), day("ABC", days[4], ",150")].concat(),
    );
    let adjusted = run_chain(&bench, &with);
    assert_eq!(adjusted.artifact.meta["contracts"]["ABC@150"]["multiplier"], 150.0);
    assert_eq!(adjusted.computed(), 3, "the earlier days have none of them");
    // A class that settles in the morning, by the configuration: only days of its expiries break the rule,
    // all are checked.
    let morning = run_chain(
        &bench,
        &json!({ "path": "d", "layout": with["layout"], "partition": "day", "calendar": "us",
            "morning_settled": ["ABC"] }),
    );
    assert_eq!(morning.computed(), 5);
}

/// Prices from parity go on from the carries and the price of the days before; last prices from the trades
/// before.
#[test]
fn states_go_on_over_partitions() {
    let bench = Bench::new();
    let header = "d,e,k,cp,l,v\n";
    let days = days(9);
    let rows = |date: &Date, volume: i32| {
        let mut rows = header.to_owned();
        for line in day("ABC", *date, "").lines() {
            let cells: Vec<&str> = line.split(',').collect();
            rows.push_str(&format!("{},{volume}\n", cells[1..6].join(",")));
        }
        rows
    };
    for (i, date) in days.iter().enumerate() {
        bench.file(&format!("d/{date}.csv"), rows(date, i32::from(i == 2)));
    }
    let columns =
        json!({ "date": "d", "expiry": "e", "strike": "k", "call": "cp", "last": "l", "volume": "v" });
    let with = |partition: &str| {
        json!({ "path": "d", "symbol": "ABC", "layout": { "columns": columns },
        "partition": partition, "calendar": "us" })
    };
    let by_day = run_chain(&bench, &with("day"));
    let by_year = run_chain(&bench, &with("year"));
    assert_eq!(by_day.artifact.meta["underlying"], "parity");
    assert_eq!(by_day.artifact.meta["quality"], by_year.artifact.meta["quality"]);
    assert_eq!(by_day.finding("never_traded"), (72, 2, "untradable".to_owned()));
    assert_eq!(bench.rows(&by_day), bench.rows(&by_year));
    // The first trade moves to a later day.
    bench.file(&format!("d/{}.csv", days[2]), rows(&days[2], 0));
    bench.file(&format!("d/{}.csv", days[4]), rows(&days[4], 1));
    assert_eq!(run_chain(&bench, &with("day")).finding("never_traded").0, 4 * 36);
}

/// A file of one day more than before: the days that it had are read again and not made again.
#[test]
fn a_file_that_grows() {
    let bench = Bench::new();
    let days = days(5);
    let write = |count: usize| {
        let rows: String = days[..count].iter().map(|date| day("ABC", *date, "")).collect();
        bench.file("d/all.csv", format!("s,d,e,k,cp,b,a,u\n{rows}"));
    };
    write(4);
    let with = with(json!({ "partition": "month" }));
    let first = run_chain(&bench, &with);
    assert_eq!(first.computed(), 3);
    write(5);
    let second = run_chain(&bench, &with);
    assert_eq!((second.computed(), &second.artifact.meta["snapshots"]), (3, &json!(5)));
    // Rows in another order, in another file, are the same rows.
    let mut lines: Vec<String> = days
        .iter()
        .flat_map(|date| day("ABC", *date, "").lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.reverse();
    std::fs::remove_file(bench.base().join("d/all.csv")).unwrap();
    bench.file("d/other.csv", format!("s,d,e,k,cp,b,a,u\n{}\n", lines.join("\n")));
    assert_eq!(run_chain(&bench, &with).digest, second.digest);
}

/// A year of bars of three symbols, in a file of its own.
fn write_year(bench: &Bench, year: i32, last: Date, close: impl Fn(Date) -> f64) {
    let mut rows = "symbol,date,open,high,low,close,volume\n".to_owned();
    let first = Date::from_ymd(year, 1, 1).unwrap();
    for date in (first.0..=last.0).map(Date).filter(|day| !day.is_weekend()) {
        for (i, symbol) in ["A", "B", "C"].iter().enumerate() {
            let close = close(date) + i as f64;
            rows.push_str(&format!("{symbol},{date},{close},{close},{close},{close},1000\n"));
        }
    }
    bench.file(&format!("b/{year}.csv"), rows);
}

/// A day appended to bars costs its file and its year; a bar at the end of a year reaches the next year by
/// the rules that look back.
#[test]
fn bars_cost_the_years_that_change() {
    let end = |year| Date::from_ymd(year, 12, 31).unwrap();
    let smooth = |date: Date| 100.0 + 0.01 * f64::from(date.0 % 500);
    let write = |bench: &Bench, last: Date, close: &dyn Fn(Date) -> f64| {
        for year in 2015..2019 {
            write_year(bench, year, end(year), close);
        }
        write_year(bench, 2019, last, close);
    };
    let (bench, with) = (Bench::new(), json!({ "path": "b", "calendar": "weekends" }));
    let before = Date::from_ymd(2019, 6, 3).unwrap();
    write(&bench, before, &smooth);
    let first = bench.run("ingest/bars", with.clone()).unwrap();
    assert_eq!((first.computed(), first.artifact.entries.len()), (5 * 2 + 5, 5));
    assert_eq!(bench.run("ingest/bars", with.clone()).unwrap().computed(), 0);
    write(&bench, before.plus(1), &smooth);
    let appended = bench.run("ingest/bars", with.clone()).unwrap();
    assert_eq!(appended.computed(), 3, "the header, rows and year of a file");
    assert_eq!(appended.artifact.entries[..4], first.artifact.entries[..4]);
    // The last bar of 2016 is what the first of 2017 is compared with; 2017 ends as it did.
    let jump = |date: Date| {
        if date == Date::from_ymd(2016, 12, 30).unwrap() {
            1000.0
        } else {
            smooth(date)
        }
    };
    write(&bench, before.plus(1), &jump);
    let jumped = bench.run("ingest/bars", with.clone()).unwrap();
    assert_eq!(jumped.computed(), 4);
    assert_eq!(jumped.finding("split_jump").0 + jumped.finding("large_jump").0, 6);
    let fresh = Bench::new();
    write(&fresh, before.plus(1), &jump);
    assert_eq!(fresh.run("ingest/bars", with.clone()).unwrap().digest, jumped.digest);
    // Symbols and dates choose rows of files that are not read again.
    let some = json!({ "path": "b", "calendar": "weekends", "symbols": ["B"],
        "dates": { "from": "2016-12-30", "to": "2017-03-31" } });
    let chosen = bench.run("ingest/bars", some.clone()).unwrap();
    assert_eq!(chosen.computed(), 5 + 2, "the days of five files, and two years");
    assert_eq!(chosen.digest, fresh.run("ingest/bars", some).unwrap().digest);
    assert_eq!(chosen.artifact.meta["symbols"], json!(["B"]));
    let daily = json!({ "path": "b", "calendar": "weekends", "partition": "day" });
    let days = bench.run("ingest/bars", daily.clone()).unwrap();
    let rows = bench.rows(&jumped).num_rows();
    assert_eq!(bench.rows(&days).num_rows(), rows);
    assert_eq!((days.computed(), days.artifact.entries.len()), (4 * 12 + 6, rows / 3));
}
