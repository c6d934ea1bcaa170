//! Volatilities and deltas of vendors beside ours, on the rows that have both. The medians of
//! docs/concepts/option-numerics.md are what this prints.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

mod common;

use arrow_array::RecordBatch;
use cache::Store;
use common::{context, flat_rates, market, read_symbol, run, store_table};
use datasets::Date;
use serde_json::{Value, json};
use stages_core::{PortType, table};
use std::fmt;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[
        ("spx_is_beside_its_vendor", spx),
        ("vxx_is_beside_its_vendor", vxx),
    ])
}

/// Median and 95 % of absolute differences.
struct Differences {
    rows: usize,
    median: f64,
    most: f64,
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5} (95 %: {:.5}) of {} rows", self.median, self.most, self.rows)
    }
}

impl Differences {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64) as usize];
        Self {
            rows: values.len(),
            median: at(0.5),
            most: at(0.95),
        }
    }
}

/// The vendor's columns, with those of a chain that stages read.
struct Vendor {
    chain: RecordBatch,
    volatility: Vec<f64>,
    delta: Vec<f64>,
}

/// The differences in volatility and delta of quoted options, a week to a year from expiry, with a vendor's
/// delta of 0.1 to 0.9.
fn compare(
    symbol: &str,
    vendor: &Vendor,
    priced: &str,
    rates: Option<&RecordBatch>,
    with: Value,
) -> [Differences; 2] {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let mut inputs = vec![("chain", store_table(&store, PortType::OptionChain, &vendor.chain))];
    inputs.extend(rates.map(|rates| ("rates", store_table(&store, PortType::Rates, rates))));
    let quoted = run(&context(&store, &inputs), "greeks/implied_volatility", with)["chain"];
    let greeks = run(&context(&store, &[("chain", quoted)]), priced, json!({}))["greeks"];
    let (chain, greeks) = (read_symbol(&store, quoted, symbol), read_symbol(&store, greeks, symbol));
    assert_eq!(
        (chain.num_rows(), greeks.num_rows()),
        (vendor.volatility.len(), vendor.delta.len())
    );
    let column = |batch: &RecordBatch, name| table::floats_or_nan(batch, name).unwrap();
    let (years, bid) = (column(&chain, "years"), column(&chain, "bid"));
    let (volatility, delta) = (column(&chain, "implied_volatility"), column(&greeks, "delta"));
    let rows: Vec<usize> = (0..chain.num_rows())
        .filter(|&i| years[i] > 7.0 / 365.0 && years[i] < 1.0 && bid[i] > 0.0)
        .filter(|&i| (0.1..=0.9).contains(&vendor.delta[i].abs()) && vendor.volatility[i] > 0.02)
        .filter(|&i| !volatility[i].is_nan() && !delta[i].is_nan())
        .collect();
    let differences = |ours: &[f64], theirs: &[f64]| {
        Differences::of(rows.iter().map(|&i| (ours[i] - theirs[i]).abs()).collect())
    };
    let found = [
        differences(&volatility, &vendor.volatility),
        differences(&delta, &vendor.delta),
    ];
    eprintln!("{symbol}, {priced}: volatility {}; delta {}", found[0], found[1]);
    found
}

fn spx(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (chain, delta) = market::spx_with_delta(&store, data);
    let vendor = Vendor {
        volatility: table::floats_or_nan(&chain, "implied_volatility").unwrap(),
        delta,
        chain,
    };
    let [volatility, delta] = compare("SPX", &vendor, "greeks/analytic", None, json!({}));
    assert!(volatility.median < 0.001 && volatility.most < 0.01);
    assert!(delta.median < 0.001 && delta.most < 0.01);
}

fn vxx(data: &Path) {
    let (chain, volatility, delta) = market::vxx_with_greeks(data);
    let vendor = Vendor {
        chain,
        volatility,
        delta,
    };
    let rates = flat_rates(Date::from_ymd(2016, 11, 30).unwrap(), 0.005);
    let with = |style: &str| json!({ "style": style, "forward": "rates", "max_rates_age_days": 40 });
    let [volatility, delta] = compare("VXX", &vendor, "greeks/american", Some(&rates), with("american"));
    assert!(volatility.median < 0.02 && delta.median < 0.01);
    // Its contracts are American; the formula for European ones is there for the comparison.
    let [european, of_formula] = compare("VXX", &vendor, "greeks/analytic", Some(&rates), with("european"));
    assert_eq!(european.rows, volatility.rows);
    assert!(european.median < 0.02 && of_formula.median < 0.01);
}
