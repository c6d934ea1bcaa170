//! American quotes through the stages: volatilities and Greeks of the market that made them, golden digests,
//! dividends, refusals.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::RecordBatch;
use cache::{ArtifactDigest, Store};
use common::{context, flat_rates, read, run, stage, store_table, table_of};
use datasets::Date;
use datasets::schema::GREEKS;
use serde_json::{Value, json};
use stages_core::{PlanContext, PortType, Provided, table};
use stages_greeks::numerics::american::american;
use stages_greeks::numerics::american::grid::{Dividend, Grid, on_grid};
use stages_greeks::numerics::formula::{Contract, Greeks};
use std::collections::BTreeMap;
use std::path::Path;

const RATE: f64 = 0.04;
const YIELD: f64 = 0.015;
const FIRST: Date = Date(18_000);
const SPOT: f64 = 101.3;

fn smile(strike: f64) -> f64 {
    let x = libm::log(strike / SPOT);
    0.25 - 0.15 * x + 0.3 * x * x
}

/// A contract of the chain: date, expiry, option.
type Row = (Date, Date, Contract);

fn rows(days: i32) -> Vec<Row> {
    let mut rows = Vec::new();
    for day in 0..days {
        let date = FIRST.plus(day);
        for expiry in [18_020, 18_130, 18_400].map(Date) {
            for strike in (80..=120).step_by(10) {
                for call in [true, false] {
                    let option = Contract {
                        spot: SPOT + f64::from(day),
                        strike: f64::from(strike),
                        years: f64::from(expiry.0 - date.0) / 365.0,
                        rate: RATE,
                        dividend_yield: YIELD,
                        volatility: smile(f64::from(strike)),
                        call,
                    };
                    rows.push((date, expiry, option));
                }
            }
        }
    }
    rows
}

/// Quotes around what `value` says a contract is worth.
fn chain(rows: &[Row], value: impl Fn(&Row) -> f64) -> RecordBatch {
    let quoted = |row: &Row| common::Row {
        date: row.0,
        expiry: row.1,
        strike: row.2.strike,
        call: row.2.call,
        bid: 0.99 * value(row),
        ask: 1.01 * value(row),
        spot: row.2.spot,
    };
    table_of("TEST", "TEST", &rows.iter().map(quoted).collect::<Vec<_>>())
}

/// Volatilities and Greeks of a chain.
fn both(
    store: &Store,
    batch: &RecordBatch,
    volatility: Value,
    greeks: Value,
) -> (ArtifactDigest, ArtifactDigest) {
    let chain = store_table(store, PortType::OptionChain, batch);
    let rates = store_table(store, PortType::Rates, &flat_rates(FIRST.plus(-1), RATE));
    let inputs = [("chain", chain), ("rates", rates)];
    let chain = run(&context(store, &inputs), "greeks/implied_volatility", volatility)["chain"];
    let greeks = run(&context(store, &[("chain", chain)]), "greeks/american", greeks)["greeks"];
    (chain, greeks)
}

fn by_rates() -> Value {
    json!({ "style": "american", "forward": "rates", "dividend_yield": YIELD,
        "time": { "calendar": "none" } })
}

/// The greatest distance of a row's Greeks from `exact`, where the volatility is found; and how many rows had
/// one.
fn check(
    store: &Store,
    rows: &[Row],
    found: (ArtifactDigest, ArtifactDigest),
    exact: impl Fn(&Row) -> Greeks,
) -> usize {
    let (chain, greeks) = (read(store, found.0), read(store, found.1));
    let volatility = table::floats_or_nan(&chain, "implied_volatility").unwrap();
    let columns: Vec<Vec<f64>> = GREEKS[GREEKS.len() - 9..]
        .iter()
        .map(|column| table::floats_or_nan(&greeks, column.name).unwrap())
        .collect();
    assert_eq!(greeks.schema(), table::schema(GREEKS));
    let mut some = 0;
    for (i, row) in rows.iter().enumerate() {
        let exact = exact(row);
        if volatility[i].is_nan() {
            // What is exercised now has no volatility and no Greeks.
            assert!(
                exact.gamma == 0.0 && columns.iter().all(|column| column[i].is_nan()),
                "{row:?}"
            );
            continue;
        }
        some += 1;
        assert!(
            (volatility[i] - row.2.volatility).abs() < 1e-5,
            "{row:?} {}",
            volatility[i]
        );
        for (g, (column, exact)) in columns.iter().zip(exact.to_array()).enumerate() {
            let error = (column[i] - exact).abs() / (1.0 + exact.abs());
            // Volga of a grid is a difference of differences.
            let tolerance = if g == 7 { 1e-1 } else { 1e-3 };
            assert!(
                error < tolerance,
                "{row:?} {} {} {exact}",
                GREEKS[GREEKS.len() - 9 + g].name,
                column[i]
            );
        }
    }
    some
}

#[test]
fn finds_the_market_that_made_the_prices() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let rows = rows(2);
    let found = both(
        &store,
        &chain(&rows, |row| american(&row.2).0.price),
        by_rates(),
        json!({}),
    );
    assert!(check(&store, &rows, found, |row| american(&row.2).0) > 50);
    let counts = &store.artifact(found.1).unwrap().meta["rows_by_reason"];
    assert!(counts["ok"].as_u64().unwrap() > 50);
    assert_eq!(counts["extreme"], json!(0));
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION (and the memo's name),
/// then pin the new digest.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let rows = rows(1);
    let found = both(
        &store,
        &chain(&rows, |row| american(&row.2).0.price),
        by_rates(),
        json!({}),
    );
    assert_eq!(
        [found.0, found.1].map(|digest| digest.short()),
        ["469329f37a", "366f2b576e"]
    );
}

#[test]
fn dividends_are_paid() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let rows: Vec<Row> = rows(1)
        .into_iter()
        .filter(|row| row.1 == Date(18_130))
        .map(|(date, expiry, option)| {
            (
                date,
                expiry,
                Contract {
                    dividend_yield: 0.0,
                    ..option
                },
            )
        })
        .collect();
    let paid = json!([{ "ex_date": Date(18_050), "amount": 1.5 }]);
    let cash = [Dividend {
        years: 50.0 / 365.0,
        amount: 1.5,
    }];
    let exact = |row: &Row| on_grid(&row.2, &cash, Grid::STANDARD).0;
    let found = both(
        &store,
        &chain(&rows, |row| exact(row).price),
        json!({ "style": "american", "forward": "rates", "dividends": paid, "time": { "calendar": "none" } }),
        json!({ "dividends": paid }),
    );
    assert!(check(&store, &rows, found, exact) >= 8);
    let forward = table::floats_or_nan(&read(&store, found.0), "forward").unwrap()[0];
    let exact = SPOT * libm::exp(RATE * 130.0 / 365.0) - 1.5 * libm::exp(RATE * 80.0 / 365.0);
    assert!((forward - exact).abs() < 1e-9);
}

#[test]
fn only_a_changed_partition_is_computed_again() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let misses = |days: i32| {
        let rows = rows(days);
        let batch = chain(&rows, |row| 0.1 * row.2.strike);
        let chain = store_table(&store, PortType::OptionChain, &batch);
        let context = context(&store, &[("chain", chain)]);
        run(&context, "greeks/american", json!({ "rate": 0.03 }));
        let (hits, asked) = context.memos.counts();
        asked - hits
    };
    // Two memos a partition: the table and the counts of its reasons.
    assert_eq!(misses(1), 2);
    assert_eq!(misses(1), 0);
    assert_eq!(misses(2), 2);
}

#[test]
fn refusals_name_the_remedy() {
    let plan = |columns: &[&str]| PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::from([(
            "chain".to_owned(),
            vec![Provided::columns(PortType::OptionChain, columns.iter().copied())],
        )]),
    };
    let refusal = |name: &str, with: Value, columns: &[&str]| {
        let stage = stage(name);
        let problem = stage.check(&stage.resolve(with).unwrap(), &plan(columns)).unwrap_err();
        format!(
            "{}: {}; {}",
            problem.field,
            problem.message,
            problem.hint.unwrap_or_default()
        )
    };
    let (quotes, whole) = (["bid", "ask"], ["bid", "ask", "underlying", "implied_volatility"]);
    assert!(refusal("greeks/american", json!({}), &quotes).contains("style: american"));
    assert!(refusal("greeks/american", json!({}), &["implied_volatility"]).contains("underlying"));
    assert!(refusal("greeks/american", json!({ "rate": 50.0 }), &whole).starts_with("rate"));
    let bad = json!({ "dividends": [{ "ex_date": Date(18_050), "amount": 0.0 }] });
    assert!(refusal("greeks/american", bad.clone(), &whole).contains("2019-06-03"));
    assert!(refusal("greeks/implied_volatility", bad, &whole).starts_with("dividends"));
    assert!(
        refusal("greeks/implied_volatility", json!({ "style": "american" }), &quotes).starts_with("style")
    );
    assert!(
        stage("greeks/american")
            .resolve(json!({ "model": "black_76" }))
            .is_err()
    );
}
