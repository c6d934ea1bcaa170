//! Features of unadjusted bars over a split: the 7-for-1 of AAPL on 2014-06-09.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use cache::{ArtifactDigest, Store};
use common::{read, run, stage};
use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use datasets::schema::BARS;
use serde_json::{Value, json};
use stages_core::dataset::{self, Period};
use stages_core::{PlanContext, PortType, Provided, corporate_actions, table};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// 2014-06-09.
const SPLIT: i32 = 16_230;
const BEFORE: usize = 40;
const ROWS: usize = 70;

/// Bars around the split; from that day on with prices over `ratio` and volumes times it. The closes next to
/// it are AAPL's.
fn bars(store: &Store, ratio: f64) -> ArtifactDigest {
    let mut random = Random::new(&[7]);
    let mut columns: [Vec<f64>; 6] = Default::default();
    let mut close = 600.0;
    for day in 0..ROWS {
        let open: f64 = close;
        close *= 1.0 + 0.01 * random.normal();
        match day {
            39 => close = 645.57,
            40 => close = 93.7 * 7.0,
            _ => {}
        }
        let shares = if day >= BEFORE { ratio } else { 1.0 };
        let values =
            [open, open.max(close) * 1.002, open.min(close) * 0.998, close].map(|price| price / shares);
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
        columns[4].push((1e7 + 1e5 * random.normal()) * shares);
        columns[5].push(f64::NAN);
    }
    let dates = (0..ROWS).map(|day| SPLIT - BEFORE as i32 + day as i32);
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["AAPL"; ROWS])),
        Arc::new(Date32Array::from_iter_values(dates)),
    ];
    arrays.extend(
        columns
            .iter()
            .map(|column| -> ArrayRef { Arc::new(table::nullable(column)) }),
    );
    let batch = RecordBatch::try_new(table::schema(BARS), arrays).unwrap();
    let partitions = dataset::partition(store, &batch, Period::Month, "symbol").unwrap();
    dataset::write(store, PortType::Bars, json!({}), partitions).unwrap()
}

fn actions(store: &Store, splits: &[(i32, f64)]) -> ArtifactDigest {
    let action = |&(date, ratio): &(i32, f64)| CorporateAction {
        symbol: "AAPL".to_owned(),
        date: Date(date),
        kind: Kind::Split,
        ratio,
        amount: f64::NAN,
        new_symbol: String::new(),
        origin: "config".to_owned(),
    };
    let actions: Vec<CorporateAction> = splits.iter().map(action).collect();
    let batch = corporate_actions::batch(&actions).unwrap();
    let partitions = dataset::partition(store, &batch, Period::Year, "symbol").unwrap();
    dataset::write(store, PortType::CorporateActions, json!({}), partitions).unwrap()
}

fn indicators() -> Value {
    json!({ "indicators": [{ "log_return": 1 }, { "rsi": 14 }, { "ppo": { "fast": 12, "slow": 26 } },
        { "mfi": 14 }, { "cci": 14 },
        { "sma": 20 }, { "macd": [12, 26, 9] }, { "bollinger": { "period": 20 } }, { "atr": 14 },
            { "sar": {} },
        { "var": 10 }, "obv", { "linearreg_angle": 14 }] })
}

/// With the split at `actions` every value is that of bars without one, in the prices of its day.
#[test]
fn a_split_is_no_change_of_price() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (whole, split) = (bars(&store, 1.0), bars(&store, 7.0));
    let known = actions(&store, &[(SPLIT, 7.0)]);
    for (kind, with) in [
        ("features/technical", indicators()),
        ("features/volatility", json!({ "windows": [10] })),
    ] {
        let wanted = read(&store, run(&store, &[("bars", whole)], kind, with.clone()).0, "AAPL");
        let plain = read(&store, run(&store, &[("bars", split)], kind, with.clone()).0, "AAPL");
        let found = run(&store, &[("bars", split), ("actions", known)], kind, with.clone()).0;
        let found = read(&store, found, "AAPL");
        for field in &wanted.schema().fields()[2..] {
            let name = field.name().as_str();
            let of = |batch: &RecordBatch| table::floats_or_nan(batch, name).unwrap();
            let (wanted, found, plain) = (of(&wanted), of(&found), of(&plain));
            for row in 0..ROWS {
                let level = |power: i32| wanted[row] / 7.0_f64.powi(power);
                let wanted = match name {
                    _ if row < BEFORE => wanted[row],
                    "var_10" => level(2),
                    "obv" => level(-1),
                    "linearreg_angle_14" => (wanted[row].to_radians().tan() / 7.0).atan().to_degrees(),
                    _ if ["sma", "macd", "bollinger", "atr", "sar"]
                        .iter()
                        .any(|level| name.starts_with(level)) =>
                    {
                        level(1)
                    }
                    _ => wanted[row],
                };
                let near = (found[row] - wanted).abs() <= 1e-8 * wanted.abs().max(0.1);
                assert!(
                    near || found[row].is_nan() && wanted.is_nan(),
                    "{name}, row {row}: {} is not {wanted}",
                    found[row]
                );
                assert!(
                    row >= BEFORE || found[row].to_bits() == plain[row].to_bits(),
                    "{name}, row {row}: before it nothing changes"
                );
            }
            if name == "log_return_1" {
                assert!(plain[BEFORE] < -1.9, "{}", plain[BEFORE]);
                assert!(
                    (found[BEFORE] - (93.7 * 7.0 / 645.57_f64).ln()).abs() < 1e-12,
                    "{}",
                    found[BEFORE]
                );
            }
        }
        // A split that is still to come is not known.
        let later = actions(&store, &[(SPLIT, 7.0), (SPLIT + 20, 1.05)]);
        let other = run(&store, &[("bars", split), ("actions", later)], kind, with).0;
        let other = read(&store, other, "AAPL");
        assert_eq!(other.slice(0, BEFORE + 20), found.slice(0, BEFORE + 20));
        assert_ne!(other, found);
    }
}

#[test]
fn adjusted_closes_need_no_splits() {
    let of = |ty| {
        vec![Provided::columns(
            ty,
            ["close", "adjusted_close", "open", "high", "low", "volume"],
        )]
    };
    let plan = PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::from([
            ("bars".to_owned(), of(PortType::Bars)),
            ("actions".to_owned(), of(PortType::CorporateActions)),
        ]),
    };
    let stage = stage("features/technical");
    let config = stage.resolve(json!({ "price": "adjusted_close" })).unwrap();
    let problem = stage.check(&config, &plan).unwrap_err();
    assert!(
        problem.message.contains("adjusted for splits already"),
        "{}",
        problem.message
    );
    stage.check(&stage.resolve(json!({})).unwrap(), &plan).unwrap();
}
