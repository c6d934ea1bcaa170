//! `until`: files as they were on a day, whatever was appended since.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Bench, Done};
use datasets::Date;
use serde_json::{Value, json};

/// Weekdays of January to March 2019.
fn days() -> Vec<Date> {
    let days = (17_897..17_980).map(Date);
    days.filter(|day| !day.is_weekend()).collect()
}

/// The files of some days, a month each: bars of two symbols, a chain, rates, factors and a table.
fn write(bench: &Bench, days: &[Date]) {
    for month in days.chunk_by(|a, b| a.ymd().1 == b.ymd().1) {
        let (mut bars, mut chain) = (
            "symbol,date,open,high,low,close,volume\n".to_owned(),
            "s,d,e,k,cp,b,a,u\n".to_owned(),
        );
        let (mut rates, mut table) = ("Date,m3,y1\n".to_owned(), "date,symbol,x,y\n".to_owned());
        for day in month {
            let n = f64::from(day.0 % 13);
            for (symbol, level) in [("A", 50.0), ("B", 90.0)] {
                let close = level + n;
                bars.push_str(&format!(
                    "{symbol},{day},{close},{},{},{close},1000\n",
                    close + 1.0,
                    close - 1.0
                ));
                table.push_str(&format!("{day},{symbol},{n},{}\n", n * level));
            }
            let spot = 100.0 + n;
            for strike in [90.0_f64, 95.0, 100.0, 105.0, 110.0] {
                for (right, gap) in [("C", spot - strike), ("P", strike - spot)] {
                    let value = 2.0 + gap.max(0.0);
                    chain.push_str(&format!(
                        "SIM,{day},2019-09-20,{strike},{right},{:.2},{:.2},{spot}\n",
                        value - 0.1,
                        value + 0.1
                    ));
                }
            }
            rates.push_str(&format!("{day},{},{}\n", 2.0 + n / 100.0, 2.5));
        }
        let month = month[0].to_string()[..7].to_owned();
        bench.file(&format!("bars/{month}.csv"), bars);
        bench.file(&format!("chain/{month}.csv"), chain);
        bench.file(&format!("rates/{month}.csv"), rates);
        bench.file(&format!("table/{month}.csv"), table);
    }
}

const KINDS: [(&str, &str); 4] = [
    ("ingest/bars", "bars"),
    ("ingest/option_chain", "chain"),
    ("ingest/rates", "rates"),
    ("ingest/table", "table"),
];

fn with(folder: &str, until: Option<Date>) -> Value {
    let mut with = json!({ "path": folder });
    match folder {
        "bars" => with["partition"] = json!("month"),
        "table" => with["partition"] = json!("month"),
        "rates" => with["layout"] = json!({ "columns": { "date": "Date", "0.25": "m3", "1": "y1" } }),
        "chain" => {
            with["layout"] = json!({ "columns": { "symbol": "s", "date": "d", "expiry": "e", "strike": "k",
                "call": "cp", "bid": "b", "ask": "a", "underlying": "u" } });
        }
        _ => {}
    }
    if let Some(until) = until {
        with["until"] = json!(until);
    }
    with
}

fn run(bench: &Bench, kind: &str, with: Value) -> Done {
    bench.run(kind, with).unwrap_or_else(|err| panic!("{kind}: {err:?}"))
}

/// For many days, in files that end there and in files that go on.
#[test]
fn an_old_night_has_its_old_bytes() {
    let all = days();
    let whole = Bench::new();
    write(&whole, &all);
    // A file of its own layout, with rows after the days.
    whole.file(
        "bars/later.csv",
        "Date,Open,High,Low,Close,Adj Close,Volume\n2019-06-03,1,2,1,1,1,5\n",
    );
    whole.file("table/later.csv", "date,symbol,z\n2019-06-03,A,1\n");
    for count in [1, 2, 10, 22, 23, 24, 40, all.len()] {
        let until = all[count - 1];
        let ended = Bench::new();
        write(&ended, &all[..count]);
        for (kind, folder) in KINDS {
            let old = run(&ended, kind, with(folder, Some(until)));
            let again = run(&whole, kind, with(folder, Some(until)));
            assert_eq!(
                old.digest, again.digest,
                "{kind} until {until}: {} {}",
                old.artifact.meta, again.artifact.meta
            );
            // The same rows as without it, where there are no others.
            let plain = run(&ended, kind, with(folder, None));
            assert_eq!(plain.artifact.entries, old.artifact.entries, "{kind} until {until}");
        }
    }
}

/// Closed days at the end: the last night's rows are still the last.
#[test]
fn a_date_without_rows_is_as_good_as_the_one_before() {
    let all = days();
    let bench = Bench::new();
    write(&bench, &all);
    let friday = all.iter().find(|day| day.weekday() == 4).unwrap();
    for (kind, folder) in KINDS {
        let of = |until: Date| run(&bench, kind, with(folder, Some(until))).digest;
        assert_eq!(of(*friday), of(friday.plus(2)), "{kind}");
    }
}

/// A night computes the partition of its last day, and finds those before.
#[test]
fn a_night_finds_the_partitions_of_the_night_before() {
    let all = days();
    for (kind, folder) in KINDS {
        let bench = Bench::new();
        let mut computed = Vec::new();
        for count in [30, 31, 32, 50, 51] {
            write(&bench, &all[..count]);
            computed.push(run(&bench, kind, with(folder, Some(all[count - 1]))).computed());
        }
        assert!(computed[1] > 0, "{kind}");
        assert_eq!(
            (computed[1], computed[1]),
            (computed[2], computed[4]),
            "{kind}: {computed:?}"
        );
        // The same again, after more was appended: a night of a month that is over finds its months.
        let last_of_january = all.iter().rev().find(|day| day.ymd().1 == 1).unwrap();
        let january = run(&bench, kind, with(folder, Some(*last_of_january)));
        assert_eq!(january.computed(), 0, "{kind}");
    }
}

#[test]
fn keys_without_it_are_as_before() {
    for (kind, folder) in KINDS {
        let kind = common::kind(kind);
        let config = kind.resolve(with(folder, None)).unwrap();
        assert!(
            kind.key_config(&config).to_string().find("until").is_none(),
            "{}",
            kind.name()
        );
        let bounded = kind.resolve(with(folder, Some(Date(17_900)))).unwrap();
        assert!(
            kind.key_config(&bounded).to_string().contains("2019-01-04"),
            "{}",
            kind.name()
        );
    }
}

#[test]
fn nothing_is_left() {
    let bench = Bench::new();
    write(&bench, &days());
    for (kind, folder) in KINDS {
        let err = bench
            .run(kind, with(folder, Some(Date(10_000))))
            .map(|done| done.digest)
            .unwrap_err();
        assert_eq!(err.message, "no file has rows on or before 1997-05-19", "{kind}");
    }
    let mut backwards = with("bars", Some(Date(17_900)));
    backwards["dates"] = json!({ "from": "2019-02-01", "to": "2019-03-01" });
    let problem = bench.check("ingest/bars", backwards).unwrap_err();
    assert_eq!(
        (problem.field.as_str(), problem.message.as_str()),
        ("until", "2019-01-04 is before 2019-02-01, where `dates` begin")
    );
}

#[test]
fn actions_and_factors_after_it_are_not_there() {
    let bench = Bench::new();
    let all = days();
    write(&bench, &all);
    bench.file("splits.csv", "symbol,date,ratio\nA,2019-01-10,2:1\nB,2019-02-11,3:1\n");
    let rows = |until: Value| {
        let done = bench
            .run(
                "ingest/corporate_actions",
                json!({ "path": "splits.csv", "until": until }),
            )
            .unwrap();
        done.artifact.meta["rows"].clone()
    };
    assert_eq!(
        (rows(Value::Null), rows(json!("2019-02-10")), rows(json!("2019-02-11"))),
        (json!(2), json!(1), json!(2))
    );
    let until = all[30];
    let bars = run(&bench, "ingest/bars", with("bars", Some(until))).artifact;
    let features = |folder: &str, until: Option<Date>| {
        let with = json!({ "path": folder, "until": until });
        let (outputs, _) = bench.run_with("ingest/features", with, &[("bars", &bars)]).unwrap();
        outputs["features"].clone()
    };
    // The rows of the day after stand for no bar here, and yet they were read.
    let (plain, bounded) = (features("table", None), features("table", Some(until)));
    assert_eq!(plain.entries, bounded.entries);
    assert_eq!(bounded.meta["rows_read"], json!(62));
}

#[test]
fn a_simulated_market_is_as_it_was() {
    let bench = Bench::new();
    let digests = |with: Value| {
        let (outputs, _) = bench.run_with("ingest/simulated_market", with, &[]).unwrap();
        outputs
    };
    let short = digests(json!({ "days": 30, "seed": 3 }));
    let last = short["bars"].meta["rows"].clone();
    assert_eq!(last, json!(30));
    // 2018-02-13 is the thirtieth trading day from 2018-01-02 on, and a Tuesday.
    let bounded = digests(json!({ "days": 90, "seed": 3, "until": "2018-02-13" }));
    assert_eq!(short, bounded);
    let beyond = digests(json!({ "days": 30, "seed": 3, "until": "2030-01-01" }));
    assert_eq!(short, beyond);
    let problem = bench
        .check("ingest/simulated_market", json!({ "until": "2018-01-01" }))
        .unwrap_err();
    assert_eq!(problem.message, "2018-01-01 is before the first day");
}
