//! Chains with several snapshots a day: each snapshot has the volatilities, Greeks and surface that it has
//! alone, as a chain of one snapshot a day at its hour.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;
use cache::{ArtifactDigest, Store};
use common::{Row, context, flat_rates, read, run, store_table, table_of, try_run};
use datasets::schema::SNAPSHOT;
use datasets::{Date, SnapshotTime, TimeZone};
use serde_json::{Value, json};
use stages_core::{PortType, table};
use stages_greeks::numerics::formula::{Contract, black_scholes_merton};
use std::sync::Arc;

/// A Monday; the first expiry is the Tuesday after it.
const FIRST: Date = Date(18_064);
const HOURS: [f64; 3] = [10.0, 12.5, 15.75];

/// The snapshot of a day at an hour, as a chain of one snapshot a day.
fn snapshot(date: Date, hour: f64) -> RecordBatch {
    let spot = 100.0 + f64::from(date.0 - FIRST.0) + 0.3 * hour;
    let mut rows = Vec::new();
    for ahead in [1, 18, 46, 137] {
        let expiry = FIRST.plus(ahead);
        let years = (f64::from(expiry.0 - date.0) + (16.0 - hour) / 24.0) / 365.0;
        for strike in (80..=130).step_by(2) {
            for call in [true, false] {
                let strike = f64::from(strike);
                let x = libm::log(strike / spot);
                let price = black_scholes_merton(&Contract {
                    spot,
                    strike,
                    years,
                    rate: 0.03,
                    dividend_yield: 0.01,
                    volatility: 0.2 + 0.01 * hour - 0.15 * x + 0.3 * x * x,
                    call,
                })
                .price;
                rows.push(Row {
                    date,
                    expiry,
                    strike,
                    call,
                    bid: (price - 0.02).max(0.0),
                    ask: price + 0.02,
                    spot,
                });
            }
        }
    }
    table_of("TEST", "TESTW", &rows)
}

/// A table with the column of instants: its only date at an hour in New York.
fn at(batch: &RecordBatch, hour: f64) -> RecordBatch {
    let zone = TimeZone::named("America/New_York").unwrap();
    let times = table::dates(batch, "date").unwrap().into_iter();
    let times = times.map(|date| SnapshotTime {
        date,
        instant: Some(zone.instant(date, hour)),
    });
    let (_, instants) = table::time_columns(times).pop().unwrap();
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    fields.insert(2, Arc::new(table::field(&SNAPSHOT)));
    columns.insert(2, instants);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn days() -> [Date; 2] {
    [FIRST, FIRST.plus(1)]
}

fn intraday() -> RecordBatch {
    let snapshots = days()
        .into_iter()
        .flat_map(|date| HOURS.map(|hour| at(&snapshot(date, hour), hour)));
    let snapshots: Vec<RecordBatch> = snapshots.collect();
    concat_batches(&snapshots[0].schema(), &snapshots).unwrap()
}

/// The chain with volatilities, its Greeks, its surface and that one's features.
fn derived(store: &Store, batch: &RecordBatch, rates: &RecordBatch, with: &Value) -> [RecordBatch; 4] {
    let chain = store_table(store, PortType::OptionChain, batch);
    let rates = store_table(store, PortType::Rates, rates);
    let of = |chain: ArtifactDigest| context(store, &[("chain", chain)]);
    let first = context(store, &[("chain", chain), ("rates", rates)]);
    let chain = run(&first, "greeks/implied_volatility", with.clone())["chain"];
    let greeks = run(&of(chain), "greeks/analytic", json!({}))["greeks"];
    let surface = run(&of(chain), "greeks/surface", json!({ "least_days": 0 }));
    [chain, greeks, surface["chain"], surface["features"]].map(|digest| read(store, digest))
}

/// The rows of a table at a time, without the column of instants.
fn rows_of(batch: &RecordBatch, date: Date, hour: f64) -> RecordBatch {
    let zone = TimeZone::named("America/New_York").unwrap();
    let time = SnapshotTime {
        date,
        instant: Some(zone.instant(date, hour)),
    };
    let times = table::snapshot_times(batch).unwrap();
    let rows: Vec<usize> = (0..times.len()).filter(|&i| times[i] == time).collect();
    assert_eq!(batch.schema().field(2).name(), SNAPSHOT.name);
    let mut batch = batch.slice(rows[0], rows.len());
    batch.remove_column(2);
    batch
}

#[test]
fn a_snapshot_is_what_it_is_alone() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let rates = flat_rates(FIRST.plus(-3), 0.03);
    let chain = intraday();
    let all = derived(&store, &chain, &rates, &json!({}));
    assert_eq!(all[0].num_rows(), chain.num_rows());
    assert_eq!(all[1].num_rows(), chain.num_rows());
    assert_eq!(all[3].num_rows(), 6);
    let mut volatilities = 0;
    for date in days() {
        for hour in HOURS {
            let hours = json!({ "time": { "hours": true, "snapshot_hour": hour } });
            let alone = derived(&store, &snapshot(date, hour), &rates, &hours);
            for (one, all) in alone.iter().zip(&all) {
                assert_eq!(rows_of(all, date, hour), *one);
            }
            let found = alone[0].column_by_name("implied_volatility").unwrap();
            volatilities += found.len() - found.null_count();
        }
    }
    assert!(volatilities > 600, "{volatilities}");
}

#[test]
fn american_greeks_are_those_of_a_snapshot_alone() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let greeks = |batch: &RecordBatch, time: Value| {
        let chain = store_table(&store, PortType::OptionChain, batch);
        let rates = store_table(&store, PortType::Rates, &flat_rates(FIRST.plus(-3), 0.03));
        let inputs = [("chain", chain), ("rates", rates)];
        let with = json!({ "style": "american", "forward": "rates", "dividend_yield": 0.01, "time": time });
        let chain = run(&context(&store, &inputs), "greeks/implied_volatility", with)["chain"];
        read(
            &store,
            run(&context(&store, &[("chain", chain)]), "greeks/american", json!({}))["greeks"],
        )
    };
    let all = greeks(&intraday(), json!({}));
    let alone = greeks(&snapshot(FIRST, 12.5), json!({ "hours": true, "snapshot_hour": 12.5 }));
    assert_eq!(rows_of(&all, FIRST, 12.5), alone);
}

/// A curve of a day is made at its end: snapshots of the day have the one before.
#[test]
fn the_rates_of_a_day_are_not_known_on_it() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let before = flat_rates(FIRST.plus(-3), 0.03);
    let today = flat_rates(FIRST, 0.05);
    let both = concat_batches(&before.schema(), [&before, &today]).unwrap();
    let chain = intraday();
    let [with, ..] = derived(&store, &chain, &both, &json!({}));
    let [without, ..] = derived(&store, &chain, &before, &json!({}));
    for hour in HOURS {
        assert_eq!(rows_of(&with, FIRST, hour), rows_of(&without, FIRST, hour));
        let next = FIRST.plus(1);
        assert_ne!(rows_of(&with, next, hour), rows_of(&without, next, hour));
    }
}

#[test]
fn an_hour_of_the_snapshot_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let chain = store_table(&store, PortType::OptionChain, &intraday());
    let with = json!({ "time": { "snapshot_hour": 15.75 } });
    let err = try_run(&context(&store, &[("chain", chain)]), "greeks/implied_volatility", with).unwrap_err();
    assert!(err.message.contains("several snapshots a day"), "{err}");
}
