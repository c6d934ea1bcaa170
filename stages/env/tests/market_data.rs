//! A real chain: SPX in the spring of 2019.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Float64Type};
use cache::{ArtifactBuilder, Store};
use datasets::Date;
use stages_env::options::{Baseline, Day, InMemory, MarketSource, OptionsConfig, Quote, build, open};
use stages_env::{BatchEnv, OpenOptions, Step};
use std::collections::BTreeMap;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[("spx_2019", spx_2019)])
}

fn days(store: &Store, bytes: &[u8]) -> Vec<Day> {
    let blob = store.blob(store.put(bytes).unwrap().blob).unwrap();
    let batch = stages_core::table::from_parquet(blob).unwrap();
    let column = |name: &str, ty: &DataType| -> ArrayRef {
        let column = batch
            .column_by_name(name)
            .unwrap_or_else(|| panic!("no `{name}` in {:?}", batch.schema()));
        cast(column, ty).unwrap()
    };
    let numbers = |name: &str| {
        column(name, &DataType::Float64)
            .as_primitive::<Float64Type>()
            .values()
            .to_vec()
    };
    let dates = |name: &str| {
        column(name, &DataType::Date32)
            .as_primitive::<Date32Type>()
            .values()
            .to_vec()
    };
    let (date, expiry) = (dates("quote_date"), dates("expiration"));
    let texts = |name: &str| column(name, &DataType::Utf8);
    let (root, right) = (texts("root"), texts("type"));
    let (bid, ask, strike) = (numbers("bid"), numbers("ask"), numbers("strike"));
    let (volatility, delta, gamma) = (numbers("iv"), numbers("delta"), numbers("gamma"));
    let underlying = numbers("underlying_last");
    let mut days: BTreeMap<i32, Day> = BTreeMap::new();
    for i in 0..batch.num_rows() {
        let day = days.entry(date[i]).or_insert_with(|| Day {
            date: Date(date[i]),
            underlying: underlying[i],
            roots: vec!["SPX".to_owned(), "SPXW".to_owned()],
            quotes: Vec::new(),
        });
        day.quotes.push(Quote {
            expiry: expiry[i],
            root: u16::from(root.as_string::<i32>().value(i) != "SPX"),
            call: right.as_string::<i32>().value(i).to_lowercase().starts_with('c'),
            strike: strike[i],
            bid: bid[i],
            ask: ask[i],
            last: f64::NAN,
            implied_volatility: volatility[i],
            delta: delta[i],
            gamma: gamma[i],
            vega: f64::NAN,
            theta: f64::NAN,
            forward: f64::NAN,
            discount: f64::NAN,
            tradable: true,
        });
    }
    days.into_values().collect()
}

/// A plain chain, without forwards, vega or theta, with days missing: everything has a mark, and the books balance.
fn spx_2019(data: &Path) {
    let path = data.join("options/spx_2019_cboe_quotetable/spx_chain_20190425_20190628.parquet");
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let days = days(&store, &std::fs::read(&path).unwrap());
    assert_eq!(days.len(), 42);
    let source = MarketSource {
        symbol: "SPX".to_owned(),
        multiplier: 100.0,
        features: Vec::new(),
        rates: Vec::new(),
        actions: Vec::new(),
        parts: days.iter().map(|day| format!("SPX/{}", day.date)).collect(),
        read: Box::new(|part| Ok(vec![days[part].clone()])),
    };
    let config = OptionsConfig {
        rate: 0.024,
        ..OptionsConfig::default()
    };
    let built = build(&source, &config, &InMemory).unwrap();
    assert!(
        built.notes.iter().any(|note| note.contains("840 of 840 slots filled")),
        "{:?}",
        built.notes
    );
    let mut artifact = ArtifactBuilder::new(&store, "env", serde_json::Value::Null);
    for (name, bytes) in &built.files {
        artifact.bytes(name, bytes).unwrap();
    }
    let artifact = store.artifact(artifact.finish().unwrap()).unwrap();
    let mut env = open(&store, &artifact, &OpenOptions::train(8, 1)).unwrap();
    let mut out = Step::new(env.spec(), 8);
    env.reset(out.buffers());
    for _ in 0..100 {
        env.step_baseline(Baseline::Random, out.buffers());
        assert!(out.obs.iter().chain(&out.reward).all(|x| x.is_finite()));
    }
    assert!(
        (0..8)
            .map(|i| env.final_ledger(i).unwrap())
            .any(|ledger| ledger.contracts_traded > 0.0)
    );
}
