//! `ingest/features` by contract: against the definition, row by row.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use cache::Artifact;
use common::Bench;
use datasets::{Date, SnapshotTime};
use serde_json::{Value, json};
use stages_core::{ConfigProblem, PlanContext, PortType, Provided, table};
use std::collections::BTreeMap;

const FIRST: &str = "2019-05-27";

fn day(i: i32) -> Date {
    FIRST.parse::<Date>().unwrap().plus(i)
}

/// The terms of a contract: symbol, root, strike, call. All expire on the same day.
type Terms = (&'static str, &'static str, u32, bool);

const CONTRACTS: [Terms; 6] = [
    ("ABC", "ABC", 10, true),
    ("ABC", "ABC", 10, false),
    ("ABC", "ABC", 12, true),
    ("ABC", "ABCW", 10, true),
    ("XYZ", "XYZ", 10, true),
    ("XYZ", "XYZ", 12, false),
];
const EXPIRY: &str = "2019-06-21";

/// A pseudo-random number below `n`.
fn drawn(of: (i32, usize, u64), n: u64) -> u64 {
    let mut x = (of.0 as u64) << 32 ^ (of.1 as u64) << 16 ^ of.2.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % n
}

/// Returns whether a contract is quoted on a day: XYZ has no row on some days, and contracts come and go.
fn is_quoted(i: i32, c: usize) -> bool {
    let is_holiday = CONTRACTS[c].0 == "XYZ" && i % 5 == 3;
    !is_holiday && !day(i).is_weekend() && drawn((i, c, 1), 4) > 0
}

/// A chain of two months, at one time a day or several.
fn chain(bench: &Bench, times: &[&str]) -> Artifact {
    let mut rows = "symbol,date,expiry,root,strike,call,bid,ask".to_owned();
    rows.push_str(if times.is_empty() { "\n" } else { ",snapshot\n" });
    for i in 0..12 {
        let quoted = CONTRACTS.into_iter().enumerate().filter(|(c, _)| is_quoted(i, *c));
        for (_, (symbol, root, strike, call)) in quoted {
            let row = format!("{symbol},{},{EXPIRY},{root},{strike},{call},1,2", day(i));
            match times {
                [] => rows.push_str(&format!("{row}\n")),
                _ => times
                    .iter()
                    .for_each(|time| rows.push_str(&format!("{row},{}T{time}Z\n", day(i)))),
            }
        }
    }
    let file = stages_core::typed_output::WrittenFile {
        name: "chain.csv".to_owned(),
        bytes: rows.into(),
    };
    let events = stages_core::event::Silent;
    let none = BTreeMap::new();
    let digest = stages_core::typed_output::write(
        &bench.store,
        PortType::OptionChain,
        &[file],
        &none,
        &[],
        &|| Ok(()),
        &events,
    );
    bench.store.artifact(digest.unwrap()).unwrap()
}

/// The factor of a contract on a day, where there is a row of it.
fn factor(i: i32, c: usize) -> Option<f64> {
    (drawn((i, c, 2), 3) == 0).then(|| f64::from(i) + c as f64 / 10.0)
}

fn id(c: usize) -> String {
    let (_, root, strike, call) = CONTRACTS[c];
    format!("{root:<6}190621{}{:08}", if call { "C" } else { "P" }, strike * 1000)
}

/// Factors by the contracts' symbols, from a week before the chain on, with rows of contracts that it does
/// not have.
fn by_id() -> String {
    let mut rows = "date,option_symbol,value\n".to_owned();
    for i in -7..14 {
        for c in 0..CONTRACTS.len() {
            if let Some(value) = factor(i, c) {
                rows.push_str(&format!("{},{},{value}\n", day(i), id(c)));
            }
        }
        if i % 7 == 0 {
            rows.push_str(&format!("{},ABC   190621C00099000,1\n", day(i)));
        }
    }
    rows
}

/// The same by their terms.
fn by_terms(with_root: bool) -> String {
    let mut rows = "day,ticker,exdate,strike_price,cp_flag,root,value\n".to_owned();
    for i in -7..14 {
        for (c, (symbol, root, strike, call)) in CONTRACTS.into_iter().enumerate() {
            let root = if with_root { root } else { "-" };
            if let Some(value) = factor(i, c) {
                let right = if call { "C" } else { "P" };
                rows.push_str(&format!(
                    "{},{symbol},{EXPIRY},{strike}.0,{right},{root},{value}\n",
                    day(i)
                ));
            }
        }
    }
    rows
}

/// The value that is known of a contract on a day, by the definition: of its newest row that `lag` days of
/// its symbol's chain are past, unless that is too old.
fn known(i: i32, c: usize, lag: usize, max_age: Option<i32>) -> Option<f64> {
    let symbol = CONTRACTS[c].0;
    let has_chain = |d: i32| (0..CONTRACTS.len()).any(|c| CONTRACTS[c].0 == symbol && is_quoted(d, c));
    let is_known = |d: &i32| (d + 1..=i).filter(|d| *d >= 0 && has_chain(*d)).count() >= lag;
    let newest = (-7..=i).filter(|d| factor(*d, c).is_some()).filter(is_known).max()?;
    max_age
        .is_none_or(|most| i - newest <= most)
        .then(|| factor(newest, c))
        .flatten()
}

fn run(bench: &Bench, chain: &Artifact, with: Value) -> Result<(Artifact, Vec<String>), String> {
    let done = bench.run_with("ingest/features", with, &[("chain", chain)]);
    let (mut outputs, warnings) =
        done.map_err(|err| format!("{} ({})", err.message, err.hint.unwrap_or_default()))?;
    Ok((outputs.remove("features").unwrap(), warnings))
}

/// The rows of a table of features: the place of day and contract, the instant, and the value.
fn rows(bench: &Bench, artifact: &Artifact, name: &str) -> Vec<(i32, usize, SnapshotTime, Option<f64>)> {
    let batch = bench.table(artifact);
    let values = table::floats_or_nan(&batch, name).unwrap();
    let (times, strikes) = (
        table::snapshot_times(&batch).unwrap(),
        table::floats_or_nan(&batch, "strike").unwrap(),
    );
    let (symbols, roots) = (
        table::texts(&batch, "symbol").unwrap(),
        table::texts(&batch, "root").unwrap(),
    );
    let calls = table::bools(&batch, "call").unwrap();
    let row = |row: usize| {
        let is_its = |c: &Terms| {
            (c.0, c.1, f64::from(c.2), c.3)
                == (symbols.value(row), roots.value(row), strikes[row], calls.value(row))
        };
        let contract = CONTRACTS.iter().position(is_its).unwrap();
        (
            times[row].date.0 - day(0).0,
            contract,
            times[row],
            Some(values[row]).filter(|value| !value.is_nan()),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn rows_are_shown_as_the_definition_says() {
    let bench = Bench::new();
    bench.file("id.csv", by_id()).file("terms.csv", by_terms(true));
    let chain = chain(&bench, &[]);
    let quotes = (0..12)
        .flat_map(|i| (0..CONTRACTS.len()).filter(move |c| is_quoted(i, *c)))
        .count();
    for (lag, max_age) in [
        (0, None),
        (1, None),
        (2, Some(4)),
        (3, None),
        (0, Some(0)),
        (1, Some(2)),
    ] {
        let settings = |path: &str, contract: Value| {
            json!({ "path": path, "contract": contract, "lag": lag,
            "max_age": max_age })
        };
        let (by_id, warnings) = run(&bench, &chain, settings("id.csv", json!({}))).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let found = rows(&bench, &by_id, "value");
        assert_eq!(found.len(), quotes);
        for (i, c, _, value) in &found {
            assert_eq!(
                *value,
                known(*i, *c, lag, max_age),
                "day {i}, contract {c}, lag {lag}, {max_age:?}"
            );
        }
        assert!(found.iter().any(|row| row.3.is_some()));
        assert!(max_age.is_none() || found.iter().any(|row| row.3.is_none()));
        let paths = |artifact: &Artifact| {
            artifact
                .entries
                .iter()
                .map(|entry| entry.path.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(&by_id), paths(&chain), "the partitions of the chain");
        let contract = json!({ "expiry": "exdate" });
        let (by_terms, _) = run(&bench, &chain, settings("terms.csv", contract)).unwrap();
        assert_eq!(by_terms.entries, by_id.entries);
    }
}

/// A row of a later date changes nothing before it, and with a lag nothing on it.
#[test]
fn nothing_looks_ahead() {
    let bench = Bench::new();
    let chain = chain(&bench, &["15:00:00", "20:00:00"]);
    bench.file("all.csv", by_id());
    for cut in [0, 3, 4, 8] {
        let later = |row: &str| {
            row.get(..10)
                .and_then(|date| date.parse::<Date>().ok())
                .is_some_and(|date| date > day(cut))
        };
        let all = by_id();
        let lines: Vec<&str> = all.lines().filter(|row| !later(row)).collect();
        bench.file("some.csv", lines.join("\n"));
        // Others, and rows of contracts that have had none.
        let other = all
            .lines()
            .map(|row| if later(row) { format!("{row}7") } else { row.to_owned() });
        bench.file("other.csv", other.collect::<Vec<_>>().join("\n"));
        for lag in [1, 2] {
            let of = |path: &str| {
                let with = json!({ "path": path, "contract": { "id": "option_symbol" }, "lag": lag });
                rows(&bench, &run(&bench, &chain, with).unwrap().0, "value")
            };
            let (all, some, other) = (of("all.csv"), of("some.csv"), of("other.csv"));
            let mut later = 0;
            for ((a, b), c) in all.iter().zip(&some).zip(&other) {
                // Known on the first day after the cut's at the soonest.
                if a.0 <= cut + 1 {
                    assert_eq!((a, a), (b, c), "{cut} {lag}");
                } else {
                    later += usize::from(a.3 != b.3 || a.3 != c.3);
                }
            }
            assert!(later > 0, "the test is one");
        }
    }
    let intraday = run(&bench, &chain, json!({ "path": "all.csv", "contract": {}, "lag": 0 })).unwrap_err();
    assert!(
        intraday.contains("`lag: 0` shows a row at all snapshots of its date"),
        "{intraday}"
    );
}

#[test]
fn rows_without_classes_are_of_each() {
    let bench = Bench::new();
    let chain = chain(&bench, &[]);
    bench.file(
        "f.csv",
        "symbol,date,expiry,strike,right,v\nABC,2019-05-26,2019-06-21,10,call,5\nXYZ,2019-05-26,2019-06-21,\
        12,put,6\n",
    );
    let (artifact, _) = run(&bench, &chain, json!({ "path": "f.csv", "contract": {} })).unwrap();
    for (i, c, _, value) in rows(&bench, &artifact, "v") {
        let expected = match c {
            0 | 3 => Some(5.0),
            5 => Some(6.0),
            _ => None,
        };
        assert_eq!(value, expected, "{i} {c}");
    }
    // Neither symbols nor classes, and a chain of two symbols.
    bench.file("f.csv", "date,expiry,strike,right,v\n2019-05-26,2019-06-21,10,call,5\n");
    let err = run(&bench, &chain, json!({ "path": "f.csv", "contract": {} })).unwrap_err();
    assert_eq!(
        err,
        "the files name neither symbols nor option classes, and the chain holds ABC, XYZ (name the column: \
        `symbol: underlying`, or `contract: { root: … }`)"
    );
}

/// Rows by contract or by symbol alone, without dates.
#[test]
fn rows_without_dates_stand_on_every_day() {
    let bench = Bench::new();
    let chain = chain(&bench, &["15:00:00", "20:00:00"]);
    bench.file("f.csv", format!("contract,v\n{},1\n{},2\n", id(0), id(4)));
    let with = json!({ "path": "f.csv", "contract": {}, "undated": true });
    let (artifact, _) = run(&bench, &chain, with).unwrap();
    for (.., c, _, value) in rows(&bench, &artifact, "v") {
        assert_eq!(value, [Some(1.0), None, None, None, Some(2.0), None][c]);
    }
    assert_eq!(
        (&artifact.meta["undated"], &artifact.meta["lag"]),
        (&json!(true), &Value::Null)
    );
    bench.file("s.csv", "symbol,sector\nABC,3\nABC,3\n");
    let (artifact, _) = run(&bench, &chain, json!({ "path": "s.csv", "undated": true })).unwrap();
    let batch = bench.table(&artifact);
    let symbols = table::texts(&batch, "symbol").unwrap();
    for (row, value) in table::floats_or_nan(&batch, "sector").unwrap().into_iter().enumerate() {
        assert_eq!(
            Some(value).filter(|value| !value.is_nan()),
            (symbols.value(row) == "ABC").then_some(3.0)
        );
    }
    bench.file("s.csv", "symbol,sector\nABC,3\nABC,4\n");
    let err = run(&bench, &chain, json!({ "path": "s.csv", "undated": true })).unwrap_err();
    assert!(err.starts_with("rows of ABC have different values"), "{err}");
    bench.file("s.csv", "date,symbol,sector\n2019-05-27,ABC,3\n");
    let err = run(&bench, &chain, json!({ "path": "s.csv", "undated": true })).unwrap_err();
    assert!(err.contains("has the column of dates `date`"), "{err}");
}

/// Rows that cannot be used are counted, and files of which none can be used are an error.
#[test]
fn unknown_and_unreadable_contracts_are_counted() {
    let bench = Bench::new();
    let chain = chain(&bench, &[]);
    let mut text = by_id();
    text.push_str("2019-05-27,ABC SOMETHING,1\n2019-05-27,,1\n");
    bench.file("f.csv", &text);
    let (artifact, _) = run(&bench, &chain, json!({ "path": "f.csv", "contract": {} })).unwrap();
    let meta = &artifact.meta;
    assert_eq!((&meta["by"], &meta["days_of"]), (&json!("contract"), &json!("chain")));
    assert_eq!(
        (&meta["contracts"], &meta["contracts_without_rows"]),
        (&json!(6), &json!(0))
    );
    assert_eq!(
        (&meta["contracts_without_quotes"], &meta["rows_without_quotes"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(meta["examples_without_quotes"], json!(["ABC 2019-06-21 99 call"]));
    let rules = meta["quality"].as_array().unwrap().iter();
    let broken: Vec<(&str, u64)> = rules
        .map(|rule| (rule["rule"].as_str().unwrap(), rule["rows"].as_u64().unwrap()))
        .filter(|(_, rows)| *rows > 0)
        .collect();
    assert_eq!(broken, [("bad_contract", 2)]);
    let err = |text: &str, with: Value| {
        bench.file("f.csv", text);
        run(&bench, &chain, with).unwrap_err()
    };
    let usual = || json!({ "path": "f.csv", "contract": {} });
    assert_eq!(
        err(
            "date,contract,v\n2019-05-27,ABC190621C00011000,1\n2019-05-27,QQQ190621C00011000,1\n",
            usual()
        ),
        "no contract of the files is in the chain: the files hold ABC 2019-06-21 11 call; QQQ 2019-06-21 11 \
        call (contracts are compared by symbol, class, expiry, strike and right, as the chain has them)"
    );
    let err_of = err(
        &format!("date,contract,v\n2019-05-27,{},1\n2019-05-27,{},2\n", id(0), id(0)),
        usual(),
    );
    assert!(
        err_of.starts_with("rows of ABC 2019-06-21 10 call on 2019-05-27 have different values"),
        "{err_of}"
    );
    let err_of = err("date,strike,v\n2019-05-27,10,1\n", usual());
    assert!(
        err_of.contains(
            "has no column of `contract.expiry` (expiry, expiration, exdate), `contract.right` \
            (right, call, cp_flag, option_type, type)"
        ),
        "{err_of}"
    );
}

/// In the plan.
#[test]
fn mistakes_are_found_before_anything_runs() {
    let bench = Bench::new();
    bench.file("f.csv", by_id());
    let kind = common::kind("ingest/features");
    let check =
        |inputs: &[(&str, PortType)], with: Value| -> Result<BTreeMap<String, Provided>, ConfigProblem> {
            let inputs = inputs
                .iter()
                .map(|(port, ty)| ((*port).to_owned(), vec![Provided::unknown(*ty)]));
            let plan = PlanContext {
                base: bench.base(),
                inputs: inputs.collect(),
            };
            kind.check(&kind.resolve(with)?, &plan)
        };
    let chain = [("chain", PortType::OptionChain)];
    let with = json!({ "path": "f.csv", "contract": {} });
    let provided = check(&chain, with.clone()).unwrap();
    let columns: Vec<&String> = provided["features"].columns.iter().flatten().collect();
    assert_eq!(columns, ["call", "date", "expiry", "root", "strike", "symbol", "value"]);
    let refused = |problem: ConfigProblem| {
        format!(
            "{}: {} ({})",
            problem.field,
            problem.message,
            problem.hint.unwrap_or_default()
        )
    };
    assert_eq!(
        refused(check(&[("bars", PortType::Bars)], with.clone()).unwrap_err()),
        "contract: factors by contract have a row for each row of a chain (connect `chain`, and neither \
        `bars` nor `calendar`)"
    );
    let both = json!({ "path": "f.csv", "contract": { "id": "option_symbol", "strike": "k" } });
    assert!(
        refused(check(&chain, both).unwrap_err())
            .starts_with("contract: both the contract's symbol and its terms")
    );
    let key = json!({ "path": "f.csv", "contract": {}, "columns": { "strike": "value" } });
    assert!(refused(check(&chain, key).unwrap_err()).contains("`strike` is the name of a key"));
    let lagged = json!({ "path": "f.csv", "undated": true, "lag": 2 });
    assert!(
        refused(check(&chain, lagged).unwrap_err())
            .starts_with("lag: the rows have no dates: `undated` is set")
    );
    // By symbol alone the name is free, and the settings are in no key.
    let by_symbol = kind.resolve(json!({ "path": "f.csv" })).unwrap();
    assert_eq!(kind.key_config(&by_symbol), json!({}));
}
