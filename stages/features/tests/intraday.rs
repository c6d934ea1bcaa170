//! Features of a chain with several snapshots a day: a row for each snapshot, realised variance of the days
//! before, nothing of later snapshots.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray};
use cache::Store;
use common::{context, read, try_run};
use datasets::schema::SNAPSHOT;
use datasets::{Date, SnapshotTime};
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::{PortType, table};
use std::sync::Arc;

const HOURS: [i64; 3] = [14, 17, 20];
const DAYS: usize = 8;

/// The price of the underlying at the k-th snapshot of a day.
fn spot(day: usize, k: usize) -> f64 {
    100.0 + 3.0 * libm::sin(1.7 * day as f64) + k as f64 * libm::cos(day as f64)
}

/// A chain and its deltas: of the snapshots `k` of each day, with instants or as the only one of its day.
fn features(snapshots: &[usize], with_instants: bool, spot: impl Fn(usize, usize) -> f64) -> RecordBatch {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let mut rows: Vec<(SnapshotTime, f64, i32, f64, bool)> = Vec::new();
    for day in 0..DAYS {
        let date = Date(18_064 + day as i32);
        for &k in snapshots {
            let instant = (i64::from(date.0) * 24 + HOURS[k]) * 3_600_000_000;
            let time = SnapshotTime {
                date,
                instant: with_instants.then_some(instant),
            };
            for expiry in [20, 60] {
                for strike in 0..9 {
                    for call in [true, false] {
                        rows.push((
                            time,
                            spot(day, k),
                            date.0 + expiry,
                            80.0 + 5.0 * f64::from(strike),
                            call,
                        ));
                    }
                }
            }
        }
    }
    let n = rows.len();
    let numbers = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(table::nullable(&(0..n).map(of).collect::<Vec<_>>()))
    };
    let volatility = |i: usize| 0.2 + 0.001 * rows[i].1 - 0.1 * libm::log(rows[i].3 / rows[i].1);
    let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["TOY"; n])) };
    let mut key: Vec<(&str, ArrayRef)> = vec![("symbol", text())];
    key.extend(table::time_columns(rows.iter().map(|row| row.0)));
    key.extend([
        (
            "expiry",
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.2))) as ArrayRef,
        ),
        ("root", text()),
        ("strike", numbers(&|i| rows[i].3)),
        (
            "call",
            Arc::new(rows.iter().map(|row| Some(row.4)).collect::<BooleanArray>()),
        ),
    ]);
    let mut greeks = key.clone();
    greeks.push((
        "delta",
        numbers(&|i| f64::from(i8::from(rows[i].4)) - 0.5 + 0.02 * (rows[i].1 - rows[i].3)),
    ));
    key.extend([
        ("underlying", numbers(&|i| rows[i].1)),
        ("implied_volatility", numbers(&volatility)),
    ]);
    let store_set = |ty, columns| {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let partitions = dataset::partition(&store, &batch, Period::Day, "TOY").unwrap();
        dataset::write(&store, ty, json!({}), partitions).unwrap()
    };
    let chain = store_set(PortType::OptionChain, key);
    let greeks = store_set(PortType::Greeks, greeks);
    let context = context(&store, &[("chain", chain), ("greeks", greeks)]);
    let with =
        json!({ "atm_iv": [30], "skew": [], "term_slope": [], "realised_window": 3, "days_a_year": 252 });
    let digest = try_run(&context, "features/options_surface", with).unwrap();
    read(&store, digest, "TOY")
}

fn column(batch: &RecordBatch, name: &str) -> Vec<f64> {
    table::floats_or_nan(batch, name).unwrap()
}

#[test]
fn each_snapshot_has_a_row_and_the_variance_of_the_days_before() {
    let all = features(&[0, 1, 2], true, spot);
    assert_eq!(all.num_rows(), 3 * DAYS);
    assert_eq!(all.schema().field(2).name(), SNAPSHOT.name);
    let (volatility, premium) = (column(&all, "atm_iv_30"), column(&all, "variance_risk_premium_30"));
    // By definition, from the last prices of the days.
    let squares: Vec<f64> = (1..DAYS)
        .map(|day| libm::log(spot(day, 2) / spot(day - 1, 2)).powi(2))
        .collect();
    for k in 0..3 {
        let alone = features(&[k], false, spot);
        assert_eq!(alone.schema().field(2).name(), "atm_iv_30");
        for (day, expected) in column(&alone, "atm_iv_30").into_iter().enumerate() {
            let row = 3 * day + k;
            assert_eq!(volatility[row], expected);
            if day < 4 {
                assert!(premium[row].is_nan());
                continue;
            }
            let realised = 252.0 * squares[day - 4..day - 1].iter().sum::<f64>() / 3.0;
            let expected = volatility[row] * volatility[row] - realised;
            assert!((premium[row] - expected).abs() < 1e-12, "{day} {k}");
        }
    }
}

#[test]
fn later_snapshots_of_a_day_change_nothing_before_them() {
    let truth = features(&[0, 1, 2], true, spot);
    let other = features(&[0, 1, 2], true, |day, k| {
        spot(day, k) * if (day, k) >= (5, 1) { 1.05 } else { 1.0 }
    });
    let known = 3 * 5 + 1;
    assert_eq!(truth.slice(0, known), other.slice(0, known));
    assert_ne!(truth.slice(known, 1), other.slice(known, 1));
}
