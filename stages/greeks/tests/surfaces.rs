//! Surfaces of real chains: the share of quotes between bid and ask, and arbitrage on a dense grid.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

#[path = "../../../tests/requirements.rs"]
mod requirements;

mod common;

use cache::Store;
use common::quality::{Line, lines, measure};
use common::{context, flat_rates, market, read_symbol, run, store_table};
use datasets::Date;
use serde_json::json;
use stages_core::PortType;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[
        ("spx_surfaces_lie_between_bid_and_ask", spx),
        ("vxx_surfaces_lie_between_bid_and_ask", vxx),
    ])
}

fn spx(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let chain = store_table(&store, PortType::OptionChain, &market::spx(&store, data));
    let out = run(
        &context(&store, &[("chain", chain)]),
        "greeks/implied_volatility",
        json!({}),
    );
    check("SPX", &lines(&read_symbol(&store, out["chain"], "SPX")));
}

fn vxx(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let chain = store_table(&store, PortType::OptionChain, &market::vxx(data));
    // Federal funds were at 0.4 to 0.7 % that month.
    let rates = flat_rates(Date::from_ymd(2016, 11, 30).unwrap(), 0.005);
    let rates = store_table(&store, PortType::Rates, &rates);
    let with = json!({ "style": "american", "forward": "rates", "max_rates_age_days": 40 });
    let inputs = [("chain", chain), ("rates", rates)];
    let out = run(&context(&store, &inputs), "greeks/implied_volatility", with);
    check("VXX", &lines(&read_symbol(&store, out["chain"], "VXX")));
}

fn check(what: &str, lines: &[Line]) {
    let quality = measure(lines);
    eprintln!("{what} {quality}");
}
