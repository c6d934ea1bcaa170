//! Surfaces of real and simulated chains: the share of quotes between bid and ask, and arbitrage on a dense
//! grid. The shares of docs/concepts/option-numerics.md are what this prints.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

mod common;

use arrow_array::RecordBatch;
use cache::Store;
use common::lines::lines;
use common::quality::{Quality, measure};
use common::{Row, context, flat_rates, market, read_symbol, run, store_table, table_of};
use datasets::Date;
use requirements::MarketDataTest;
use serde_json::{Value, json};
use stages_core::PortType;
use stages_greeks::numerics::formula::{Contract, black_scholes_merton};
use stages_numerics::random::Random;
use std::path::Path;

fn main() -> std::process::ExitCode {
    let tests: &[MarketDataTest] = &[
        ("spx_surfaces_lie_between_bid_and_ask", spx),
        ("vxx_surfaces_lie_between_bid_and_ask", vxx),
        ("sse_surfaces_have_no_arbitrage", sse),
    ];
    let mut trials = requirements::with_market_data(tests);
    trials.push(requirements::trial(
        "simulated_surfaces_lie_between_bid_and_ask",
        None,
        simulated,
    ));
    requirements::run(trials)
}

/// Measures the surfaces of a chain of `symbol` after `greeks/implied_volatility`.
fn check(
    store: &Store,
    symbol: &str,
    chain: &RecordBatch,
    rates: Option<&RecordBatch>,
    with: Value,
) -> Quality {
    let mut inputs = vec![("chain", store_table(store, PortType::OptionChain, chain))];
    inputs.extend(rates.map(|rates| ("rates", store_table(store, PortType::Rates, rates))));
    let out = run(&context(store, &inputs), "greeks/implied_volatility", with);
    let quality = measure(&lines(&read_symbol(store, out["chain"], symbol)));
    eprintln!("{symbol} {quality}");
    assert_eq!((quality.butterflies, quality.calendars), (0, 0));
    quality
}

fn spx(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let quality = check(&store, "SPX", &market::spx(&store, data), None, json!({}));
    assert!(quality.inside.total() > 0.9 && quality.left_out.total() > 0.9);
}

fn vxx(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    // Federal funds were at 0.4 to 0.7 % that month.
    let rates = flat_rates(Date::from_ymd(2016, 11, 30).unwrap(), 0.005);
    let with = json!({ "style": "american", "forward": "rates", "max_rates_age_days": 40 });
    let quality = check(&store, "VXX", &market::vxx(data), Some(&rates), with);
    assert!(quality.inside.total() > 0.9 && quality.left_out.total() > 0.8);
}

fn sse(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let with = json!({ "time": { "calendar": "sse" } });
    let quality = check(&store, "510050", &market::sse(&store, data, 8), None, with);
    assert!(quality.inside.median < 0.01 && quality.left_out.median < 0.015);
}

/// A market whose smiles no SVI has: a bump at the money ahead of an event, prices in ticks of a cent, and
/// quotes off the middle.
fn simulated() {
    const FIRST: Date = Date(18_012);
    let mut random = Random::new(&[11]);
    let mut rows: Vec<Row> = Vec::new();
    for day in 0..4 {
        let spot = 100.0 + 2.0 * random.normal();
        for days in [9, 23, 51, 100, 184, 366] {
            let years = f64::from(days - day) / 365.0;
            for strike in 60..=140 {
                let strike = f64::from(strike);
                let z = libm::log(strike / spot) / (0.2 * years.sqrt());
                let volatility = 0.2 - 0.012 * z
                    + 0.004 * z * z
                    + 0.01 * libm::exp(-2.0 * z * z) * libm::exp(-8.0 * years);
                for call in [true, false] {
                    let option = Contract {
                        spot,
                        strike,
                        years,
                        rate: 0.02,
                        dividend_yield: 0.01,
                        volatility: volatility.min(0.6),
                        call,
                    };
                    let price = black_scholes_merton(&option).price;
                    let half = 0.01 + 0.005 * price;
                    let middle = price + 0.4 * half * (2.0 * random.uniform() - 1.0);
                    rows.push(Row {
                        date: FIRST.plus(day),
                        expiry: FIRST.plus(days),
                        strike,
                        call,
                        bid: (100.0 * (middle - half)).floor().max(0.0) / 100.0,
                        ask: (100.0 * (middle + half)).ceil() / 100.0,
                        spot,
                    });
                }
            }
        }
    }
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let chain = table_of("SIMULATED", "SIMULATED", &rows);
    let rates = flat_rates(FIRST.plus(-1), 0.02);
    let with = json!({ "time": { "calendar": "none" } });
    let quality = check(&store, "SIMULATED", &chain, Some(&rates), with);
    assert!(quality.inside.total() > 0.95 && quality.left_out.total() > 0.9);
}
