//! `runner policy act` and paper accounts on `env/table`: columns without a value, unknown symbols,
//! accounts of files, and prices that are restated after they were booked.

use crate::{Ended, Project};
use datasets::Date;
use serde_json::{Value, json};

const PIPELINE: &str = "\
version: 1
name: own
stages:
  rows: { uses: ingest/table, with: { path: rows.csv } }
  env:
    uses: env/table
    needs: { table: rows }
    with: \
{ SYMBOLS price: close, observe: [mom, val], actions: { kind: discrete, positions: [0, 1] }, costs: { basis_points: 0 }, test_fraction: 0.6, purge: 0, embargo: 0 }
  hold: { uses: policy/rule, needs: { env: env }, with: { name: hold, otherwise: \"position 1\" } }
";

const HEADER: &str = "symbol,date,close,mom,val";

/// The first days from Monday, 2019-01-07, on, without weekends.
fn days(count: usize) -> Vec<Date> {
    let first: Date = "2019-01-07".parse().unwrap();
    let days = (0..).map(|day| first.plus(day)).filter(|day| !day.is_weekend());
    days.take(count).collect()
}

/// The close of symbol `s` on day `i`.
fn close(s: usize, i: usize) -> f64 {
    50.0 + 10.0 * s as f64 + ((i * (s + 3)) % 17) as f64 / 4.0
}

fn row(s: usize, i: usize, day: Date, close: f64) -> String {
    let symbol = ["AAA", "BBB"][s];
    format!("{symbol},{day},{close},{},{}\n", (i * 7 + s) % 11, (i * 5 + s) % 13)
}

fn rows(count: usize, close_of: impl Fn(usize, usize) -> f64) -> String {
    let days = days(count).into_iter().enumerate();
    let of_day = days.flat_map(|(i, day)| [0, 1].map(|s| row(s, i, day, close_of(s, i))));
    format!("{HEADER}\n{}", of_day.collect::<String>())
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_table_tells_what_is_stale_or_unknown_and_takes_accounts_of_files() {
    let project = Project::new(PIPELINE.replace("SYMBOLS ", ""));
    project.write("rows.csv", rows(100, close));
    assert_eq!(project.run(&["exec", "p.yaml", "hold", "-q"]).code, 0);
    let today = days(101)[100];
    let act = |args: &[&str]| project.run(&[&["policy", "act", "latest/hold"], args].concat());
    let file = |name: &str, lines: &[String]| project.write(name, format!("{HEADER}\n{}", lines.concat()));
    file(
        "today.csv",
        &[row(0, 100, today, 51.0), format!("BBB,{today},61.0,,4\n")],
    );
    let given = |world: &'static str| ["--data", "today.csv", "--world", world];
    let stale = format!("columns without a value at {today} show the last one known: mom of BBB");
    let decided = act(&given("BBB"));
    assert!(decided.stderr.contains(&stale), "{}", decided.text());
    for _ in 0..2 {
        // From the cache, too.
        let document = json(&act(&[&given("BBB")[..], &["--json"]].concat()));
        assert_eq!(document["notes"], json!([stale]));
    }
    let other = act(&[&given("AAA")[..], &["--json"]].concat());
    assert_eq!(json(&other)["notes"], json!([]));

    project.write("held.csv", "symbol,quantity\nBBB,1\nnav,1.5\npeak,2\n");
    project.write(
        "held.json",
        r#"{ "nav": 1.5, "peak": 2, "positions": [{ "symbol": "BBB", "quantity": 1 }] }"#,
    );
    let held = |name: &str| {
        let document = json(&act(&[&given("BBB")[..], &["--positions", name, "--json"]].concat()));
        assert_eq!(document["account"]["nav"], 1.5);
        assert_eq!(document["account"]["peak"], 2.0);
        document["account"].clone()
    };
    assert_eq!(held("held.csv"), held("held.json"));
    project.write("cash.csv", "symbol,quantity\nBBB,1\ncash,500\n");
    let refused = act(&[&given("BBB")[..], &["--positions", "cash.csv"]].concat());
    insta::assert_snapshot!(refused.stderr.trim(), @"
    error: an environment of a table has no cash
      hint: give `nav` in its place: positions are fractions of the net asset value, and `nav` and `peak` are multiples of that at the start
    ");

    let zzz = row(0, 100, today, 51.0).replace("AAA", "ZZZ");
    file("zzz.csv", &[row(0, 100, today, 51.0), row(1, 100, today, 61.0), zzz]);
    let refused = act(&["--data", "zzz.csv", "--world", "BBB"]);
    assert_eq!(refused.code, 1, "{}", refused.text());
    let expected = "error: `rows`: the new rows have ZZZ, which the history does not: it has AAA, BBB";
    assert!(refused.stderr.contains(expected), "{}", refused.text());
    let hint = "hint: leave their rows out: a policy decides on the symbols that it was trained on";
    assert!(refused.stderr.contains(hint), "{}", refused.text());
}

/// The night after a close that was halved once it was booked counts from the booked close.
#[test]
fn a_restated_close_is_no_return_of_a_paper_account() {
    let project = Project::new(PIPELINE.replace("SYMBOLS", "symbols: [AAA],"));
    let (days, first) = (days(170), 160);
    project.write("rows.csv", rows(first, close));
    assert_eq!(project.run(&["exec", "p.yaml", "hold", "-q"]).code, 0);
    let from = days[first].to_string();
    let now = format!("{from}T12:00:00Z");
    let open = ["paper", "open", "desk", "--policy", "latest/hold", "--capital", "1e6"];
    let opened =
        project.run(&[&open[..], &["--from", &from, "--now", &now, "--beside", "underlying"]].concat());
    assert_eq!(opened.code, 0, "{}", opened.text());
    let night = |i: usize, close_of: &dyn Fn(usize, usize) -> f64| {
        project.write("rows.csv", rows(i + 1, close_of));
        let until = days[i].to_string();
        let document = json(&project.run(&["paper", "run", "desk", "--until", &until, "--json"]));
        document["entries"].as_array().unwrap().clone()
    };
    let halved = |these: &'static [usize]| {
        move |s: usize, i: usize| close(s, i) * if these.contains(&i) { 0.5 } else { 1.0 }
    };
    let nav = |entry: &Value| entry["book"]["nav"].as_f64().unwrap();
    let near =
        |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
    for i in first..=162 {
        night(i, &close);
    }
    let money = |i: usize| 1e6 * close(0, i) / close(0, 161);
    // Night 162 is booked, and restated.
    let entries = night(163, &halved(&[162]));
    assert_eq!(entries.len(), 2, "{entries:?}");
    let (correction, booked) = (&entries[0], &entries[1]);
    assert_eq!(correction["entry"], "correction");
    assert_eq!(correction["what"], "the price of AAA");
    assert_eq!(correction["of"], days[162].to_string());
    near(correction["before"].as_f64().unwrap(), close(0, 162));
    near(correction["after"].as_f64().unwrap(), 0.5 * close(0, 162));
    near(correction["difference"].as_f64().unwrap(), -0.5 * money(162));
    near(nav(booked), money(163));
    near(booked["beside"]["underlying"]["nav"].as_f64().unwrap(), money(163));
    // It is noted once, and older nights count no more.
    let entries = night(164, &halved(&[161, 162]));
    assert_eq!(entries.len(), 1, "{entries:?}");
    near(nav(&entries[0]), money(164));
    // Everything that is known in another basis, such as adjusted prices after a split.
    let entries = night(165, &|s, i| 0.5 * close(s, i));
    assert_eq!(entries.len(), 1, "{entries:?}");
    near(nav(&entries[0]), money(165));
}
