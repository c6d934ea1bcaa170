//! The stages end to end on small data: golden digests, memos, no look-ahead, refusals.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::{BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use cache::{ArtifactDigest, Store};
use common::{context, read, run, stage, try_run};
use datasets::Date;
use datasets::schema::{BARS, GREEKS, OPTION_CHAIN};
use serde_json::{Value, json};
use stages_core::dataset::{self, Period};
use stages_core::{PlanContext, PortType, Provided, table};
use stages_numerics::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const FIRST: Date = Date(17_897);

fn bars(days: usize, changed: usize, with_range: bool) -> RecordBatch {
    let mut symbols = Vec::new();
    let mut dates = Vec::new();
    let mut columns: [Vec<f64>; 6] = Default::default();
    for (s, symbol) in ["AAA", "BBB"].into_iter().enumerate() {
        let mut random = Random::new(&[s as u64]);
        let mut close = 100.0;
        for day in 0..days {
            let open: f64 = close;
            close *= 1.0 + 0.01 * random.normal();
            let shift = if day >= changed { 1.3 } else { 1.0 };
            let range = |value: f64| if with_range { value * shift } else { f64::NAN };
            let values = [
                open * shift,
                range(open.max(close) * 1.002),
                range(open.min(close) * 0.998),
                close * shift,
                1e6,
                close * 0.5,
            ];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
            symbols.push(symbol);
            dates.push(FIRST.0 + day as i32);
        }
    }
    let mut arrays: Vec<arrow_array::ArrayRef> =
        vec![Arc::new(StringArray::from(symbols)), Arc::new(Date32Array::from(dates))];
    for column in &columns {
        arrays.push(Arc::new(table::nullable(column)));
    }
    RecordBatch::try_new(table::schema(BARS), arrays).unwrap()
}

/// A chain and its Greeks, with a smile linear in delta.
fn chain(days: i32, changed: i32) -> (RecordBatch, RecordBatch) {
    let mut random = Random::new(&[8]);
    let mut rows: Vec<(i32, i32, f64, bool, f64, f64, f64)> = Vec::new();
    for day in 0..days {
        let level = 0.2 + 0.01 * random.normal() + if day >= changed { 0.1 } else { 0.0 };
        let spot = 100.0 + random.normal();
        for expiry in [10, 35, 70, 140] {
            for strike in (80..=120).step_by(2) {
                let strike = f64::from(strike);
                for call in [true, false] {
                    let delta = (0.5 - 0.025 * (strike - spot)).clamp(0.01, 0.99);
                    let volatility = level + 0.05 * (delta - 0.5) + 0.0002 * f64::from(expiry);
                    let delta = if call { delta } else { delta - 1.0 };
                    rows.push((
                        FIRST.0 + day,
                        FIRST.0 + day + expiry,
                        strike,
                        call,
                        spot,
                        volatility,
                        delta,
                    ));
                }
            }
        }
    }
    let n = rows.len();
    let key = || -> Vec<arrow_array::ArrayRef> {
        vec![
            Arc::new(StringArray::from(vec!["TEST"; n])),
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(StringArray::from(vec!["TEST"; n])),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2))),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.3)))),
        ]
    };
    let table = |schema: &[datasets::schema::Column], value: &dyn Fn(&str, usize) -> f64| {
        let mut arrays = key();
        for column in &schema[6..] {
            let values: Vec<f64> = (0..n).map(|i| value(column.name, i)).collect();
            arrays.push(Arc::new(table::nullable(&values)));
        }
        RecordBatch::try_new(table::schema(schema), arrays).unwrap()
    };
    let chain = table(OPTION_CHAIN, &|name, i| match name {
        "underlying" => rows[i].4,
        "implied_volatility" => rows[i].5,
        _ => f64::NAN,
    });
    let greeks = table(GREEKS, &|name, i| if name == "delta" { rows[i].6 } else { f64::NAN });
    (chain, greeks)
}

fn store_table(store: &Store, ty: PortType, batch: &RecordBatch) -> ArtifactDigest {
    let partitions = dataset::partition(store, batch, Period::Month, "symbol").unwrap();
    dataset::write(store, ty, json!({}), partitions).unwrap()
}

fn surface(store: &Store, days: i32, changed: i32, with: Value) -> (ArtifactDigest, u64) {
    let (chain, greeks) = chain(days, changed);
    let chain = store_table(store, PortType::OptionChain, &chain);
    let greeks = store_table(store, PortType::Greeks, &greeks);
    run(
        store,
        &[("chain", chain), ("greeks", greeks)],
        "features/options_surface",
        with,
    )
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION (and the feature's key),
/// then pin the new digest.
#[test]
fn golden() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let bars = [("bars", store_table(&store, PortType::Bars, &bars(70, 99, true)))];
    let digests = [
        run(&store, &bars, "features/technical", json!({})).0,
        run(&store, &bars, "features/volatility", json!({})).0,
        surface(&store, 40, 99, json!({})).0,
    ];
    assert_eq!(
        digests.map(|digest| digest.short()),
        ["02c9ad32b8", "05d0ce25ec", "529e1f0b45"]
    );
}

#[test]
fn a_changed_period_recomputes_its_column_alone() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let source = [("bars", store_table(&store, PortType::Bars, &bars(80, 99, true)))];
    let partitions = store.artifact(source[0].1).unwrap().entries.len() as u64;
    let technical = |indicators: Value| {
        run(
            &store,
            &source,
            "features/technical",
            json!({ "indicators": indicators }),
        )
    };
    // A memo for each indicator and partition, one for each table, and one for what each partition holds.
    assert_eq!(
        technical(json!([{ "sma": 20 }, { "rsi": 14 }, { "atr": 14 }])).1,
        5 * partitions
    );
    assert_eq!(technical(json!([{ "sma": 20 }, { "rsi": 14 }, { "atr": 14 }])).1, 0);
    assert_eq!(
        technical(json!([{ "sma": 20 }, { "rsi": 15 }, { "atr": 14 }])).1,
        2 * partitions
    );
    // Appending touches the last partition of each symbol.
    let longer = [("bars", store_table(&store, PortType::Bars, &bars(81, 99, true)))];
    let indicators = json!({ "indicators": [{ "sma": 20 }, { "rsi": 14 }, { "atr": 14 }] });
    assert_eq!(run(&store, &longer, "features/technical", indicators).1, 10);
}

#[test]
fn partitions_carry_their_state_over() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let batch = bars(90, 99, true);
    let columns = [Period::Month, Period::Year].map(|period| {
        let partitions = dataset::partition(&store, &batch, period, "symbol").unwrap();
        let source = dataset::write(&store, PortType::Bars, json!({}), partitions).unwrap();
        let digest = run(&store, &[("bars", source)], "features/technical", json!({})).0;
        read(&store, digest, "BBB")
    });
    assert_eq!(columns[0], columns[1]);
    let sma = table::floats_or_nan(&columns[0], "sma_20").unwrap();
    assert!(sma[18].is_nan() && !sma[19].is_nan() && sma.len() == 90);
}

#[test]
fn nothing_looks_ahead() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let both = |a: ArtifactDigest, b: ArtifactDigest, symbol: &str, past: usize| {
        let (a, b) = (read(&store, a, symbol), read(&store, b, symbol));
        assert_eq!(a.slice(0, past), b.slice(0, past));
        assert_ne!(a, b);
    };
    for name in ["features/technical", "features/volatility"] {
        let of = |changed| {
            let source = store_table(&store, PortType::Bars, &bars(70, changed, true));
            run(&store, &[("bars", source)], name, json!({})).0
        };
        for symbol in ["AAA", "BBB"] {
            both(of(99), of(47), symbol, 47);
        }
    }
    both(
        surface(&store, 40, 99, json!({})).0,
        surface(&store, 40, 27, json!({})).0,
        "TEST",
        27,
    );
}

#[test]
fn the_surface_says_what_the_smiles_are() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (digest, _) = surface(&store, 30, 99, json!({}));
    let table = read(&store, digest, "TEST");
    let column = |name| table::floats_or_nan(&table, name).unwrap();
    let (near, far) = (column("atm_iv_30"), column("atm_iv_90"));
    let (skew, slope) = (column("skew_30"), column("term_slope_30_90"));
    let premium = column("variance_risk_premium_30");
    for i in 0..table.num_rows() {
        // The put of delta -0.25 has the smile's delta 0.75.
        assert!((skew[i] - 0.05 * 0.5).abs() < 1e-9, "{}", skew[i]);
        assert!((far[i] - near[i] - slope[i]).abs() < 1e-15 && slope[i] > 0.0);
        assert!((near[i] - 0.206).abs() < 0.05);
        assert_eq!(premium[i].is_nan(), i < 21);
    }
    // Another maturity leaves the smiles and the other columns alone: one memo a partition for the column,
    // one for the table.
    let partitions = store.artifact(digest).unwrap().entries.len() as u64;
    assert_eq!(surface(&store, 30, 99, json!({ "skew": [45] })).1, 2 * partitions);
    let (chain, greeks) = chain(30, 99);
    let inputs = [
        ("chain", store_table(&store, PortType::OptionChain, &chain)),
        (
            "greeks",
            store_table(&store, PortType::Greeks, &greeks.slice(0, greeks.num_rows() - 1)),
        ),
    ];
    let error = try_run(&context(&store, &inputs), "features/options_surface", json!({})).unwrap_err();
    assert!(error.message.contains("not those of the chain"));
}

#[test]
fn refusals_name_the_feature() {
    let plan = |port: &str, ty, columns: &[&str]| PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::from([(port.to_owned(), vec![Provided::columns(ty, columns.iter().copied())])]),
    };
    let refusal = |name: &str, with: Value, plan: &PlanContext| {
        let stage = stage(name);
        let problem = stage.check(&stage.resolve(with).unwrap(), plan).unwrap_err();
        format!(
            "{}: {}; {}",
            problem.field,
            problem.message,
            problem.hint.unwrap_or_default()
        )
    };
    let closes = plan("bars", PortType::Bars, &["close"]);
    assert!(
        refusal("features/technical", json!({}), &closes).starts_with("indicators[5]: `atr_14` needs `high`")
    );
    assert!(
        refusal("features/volatility", json!({}), &closes)
            .starts_with("estimators[1]: `parkinson_20` needs `high`")
    );
    assert!(
        refusal("features/technical", json!({ "price": "adjusted_close" }), &closes)
            .contains("`adjusted_close`")
    );
    let twice = json!({ "indicators": [{ "sma": 20 }, { "sma": 20 }] });
    assert!(
        refusal("features/technical", twice, &closes).starts_with("indicators[1]: `sma_20` is there twice")
    );
    let zero = json!({ "indicators": [{ "sma": 0 }] });
    assert!(refusal("features/technical", zero, &closes).starts_with("indicators[0]: sma takes a period"));
    let chain = plan("chain", PortType::OptionChain, &["underlying", "bid", "ask"]);
    assert!(refusal("features/options_surface", json!({}), &chain).contains("greeks/implied_volatility"));
    let greeks = plan("greeks", PortType::Greeks, &["gamma"]);
    assert!(
        refusal("features/options_surface", json!({}), &greeks).contains("no `delta`; add it to `outputs`")
    );

    // Columns without values are found when the bars are read.
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let source = store_table(&store, PortType::Bars, &bars(40, 99, false));
    let error = try_run(&context(&store, &[("bars", source)]), "features/technical", json!({})).unwrap_err();
    assert!(error.message.starts_with("`atr_14` needs `high`"), "{error}");
}
