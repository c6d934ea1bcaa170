//! The stages on real quotes: 42 days of SPX and SPXW.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Date32Type;
use arrow_array::{Array, RecordBatch};
use cache::Store;
use common::market::spx;
use common::{context, read_symbol, store_table};
use serde_json::json;
use stages_core::{PortType, table};
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[(
        "spx_volatilities_agree_with_the_vendor_near_the_money",
        spx_volatilities_agree_with_the_vendor_near_the_money,
    )])
}

fn spx_volatilities_agree_with_the_vendor_near_the_money(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let batch = spx(&store, data);
    let digest = store_table(&store, PortType::OptionChain, &batch);
    let run = |name: &str, digest| {
        let start = std::time::Instant::now();
        let out = common::run(&context(&store, &[("chain", digest)]), name, json!({}));
        eprintln!(
            "{name}: {} rows in {:.2} s",
            batch.num_rows(),
            start.elapsed().as_secs_f64()
        );
        out
    };
    let out = run("greeks/implied_volatility", digest)["chain"];
    eprintln!("{}", store.artifact(out).unwrap().meta);
    let found = read_symbol(&store, out, "SPX");
    assert_eq!(found.num_rows(), batch.num_rows());

    let column = |batch: &RecordBatch, name| table::floats_or_nan(batch, name).unwrap();
    let (vendor, ours) = (
        column(&batch, "implied_volatility"),
        column(&found, "implied_volatility"),
    );
    let (strike, spot) = (column(&found, "strike"), column(&found, "underlying"));
    let (years, forward, discount) = (
        column(&found, "years"),
        column(&found, "forward"),
        column(&found, "discount_factor"),
    );
    let calls = table::bools(&found, "call").unwrap();
    let mut differences = Vec::new();
    let mut parity = Vec::new();
    for i in 0..found.num_rows() {
        if years[i] > 7.0 / 365.0
            && years[i] < 1.0
            && (strike[i] / spot[i] - 1.0).abs() < 0.05
            && vendor[i] > 0.02
        {
            assert!((forward[i] / spot[i] - 1.0).abs() < 0.03 && discount[i] > 0.95 && discount[i] <= 1.0);
            differences.push((ours[i] - vendor[i]).abs());
            // A call and a put of one strike have one volatility.
            if i + 1 < found.num_rows() && calls.value(i) && !calls.value(i + 1) && strike[i] == strike[i + 1]
            {
                parity.push((ours[i] - ours[i + 1]).abs());
            }
        }
    }
    let quantile = |mut values: Vec<f64>, q: f64| {
        values.sort_by(f64::total_cmp);
        values[(q * (values.len() - 1) as f64) as usize]
    };
    let (half, most) = (quantile(differences.clone(), 0.5), quantile(differences.clone(), 0.95));
    let (call_put, far) = (quantile(parity.clone(), 0.5), quantile(parity, 0.95));
    eprintln!(
        "{} near the money: from the vendor's {half:.4} (half), {most:.4} (95 %); call from put \
        {call_put:.5}, {far:.5}",
        differences.len()
    );
    assert!(half < 0.005 && most < 0.03);
    assert!(call_put < 0.001 && far < 0.006);
    let days: std::collections::BTreeSet<i32> = found
        .column_by_name("date")
        .unwrap()
        .as_primitive::<Date32Type>()
        .values()
        .iter()
        .copied()
        .collect();
    assert_eq!(days.len(), 42);

    let surface = run("greeks/surface", out);
    let fitted = column(&read_symbol(&store, surface["chain"], "SPX"), "iv_fitted");
    for (what, band) in [("near the money", 0.05), ("to 20 % from it", 0.2)] {
        let errors: Vec<f64> = (0..found.num_rows())
            .filter(|&i| years[i] > 7.0 / 365.0 && (strike[i] / forward[i] - 1.0).abs() < band)
            .filter(|&i| calls.value(i) == (strike[i] >= forward[i]) && !ours[i].is_nan())
            .map(|i| (fitted[i] - ours[i]).abs())
            .collect();
        let (half, most) = (quantile(errors.clone(), 0.5), quantile(errors.clone(), 0.95));
        eprintln!(
            "surface, {} {what}: from the quotes {half:.4} (half), {most:.4} (95 %)",
            errors.len()
        );
        assert!(half < 0.01 && most < 0.04);
    }
    assert_eq!(found.column_by_name("years").unwrap().null_count(), 0);
}
