//! How fast this machine computes Greeks and implied volatilities.

use crate::numerics::formula::{Model, Option};
use crate::numerics::implied::{Prices, implied_volatilities_into};
use crate::numerics::kernel::{Columns, GreekColumns, Version, greeks, greeks_into};
use crate::numerics::special::exp;
use crate::numerics::textbook;
use datasets::random::Random;
use rayon::prelude::*;
use serde::Serialize;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// What was computed.
    pub what: String,
    /// With how many threads.
    pub threads: usize,
    /// Options a second.
    pub per_second: f64,
}

/// What [`bench`] measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// How many options.
    pub options: usize,
    /// One row for each way of computing.
    pub rows: Vec<BenchRow>,
}

/// Options a second: the best of three runs, after one to warm up.
fn rate(options: usize, mut run: impl FnMut()) -> f64 {
    run();
    let best = (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    options as f64 / best
}

/// Measures Greeks (price and eight sensitivities) and implied volatilities of `options` options, with one thread and with all of rayon's
/// current pool, against the textbook formula over `libm` in the same run.
pub fn bench(options: usize) -> Bench {
    let mut random = Random::new(&[1]);
    let list: Vec<Option> = (0..options)
        .map(|_| Option {
            spot: 100.0,
            strike: 70.0 + 60.0 * random.uniform(),
            years: 0.01 + 2.0 * random.uniform(),
            rate: 0.05 * random.uniform(),
            dividend_yield: 0.02 * random.uniform(),
            volatility: 0.05 + 0.6 * random.uniform(),
            call: random.uniform() < 0.5,
        })
        .collect();
    let column = |f: fn(&Option) -> f64| list.iter().map(f).collect::<Vec<f64>>();
    let (spot, strike, years) = (column(|o| o.spot), column(|o| o.strike), column(|o| o.years));
    let (interest, dividend_yield, volatility) = (
        column(|o| o.rate),
        column(|o| o.dividend_yield),
        column(|o| o.volatility),
    );
    let call: Vec<bool> = list.iter().map(|o| o.call).collect();
    let columns = Columns {
        spot: &spot,
        strike: &strike,
        years: &years,
        rate: &interest,
        dividend_yield: &dividend_yield,
        volatility: &volatility,
        call: &call,
    };
    let price = greeks(&columns, Model::BlackScholesMerton)[0].clone();
    let forward: Vec<f64> = list
        .iter()
        .map(|o| o.spot * exp((o.rate - o.dividend_yield) * o.years))
        .collect();
    let discount: Vec<f64> = list.iter().map(|o| exp(-o.rate * o.years)).collect();

    // Memory is reused, so that the processor is measured and not the system's page faults.
    let buffers: Mutex<GreekColumns> = Mutex::new(std::array::from_fn(|_| vec![0.0; options]));
    let mut rows = Vec::new();
    let threads = rayon::current_num_threads();
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    let mut measure = |what: String, run: &(dyn Fn() + Sync)| {
        if let Some(single) = &single {
            let per_second = single.install(|| rate(options, run));
            rows.push(BenchRow {
                what: what.clone(),
                threads: 1,
                per_second,
            });
        }
        if threads > 1 {
            let per_second = rate(options, run);
            rows.push(BenchRow {
                what,
                threads,
                per_second,
            });
        }
    };
    measure("Greeks, textbook over libm".to_owned(), &|| {
        let sum: f64 = list
            .par_iter()
            .map(|option| textbook::black_scholes_merton(option).to_array().iter().sum::<f64>())
            .sum();
        black_box(sum);
    });
    for version in Version::available() {
        measure(
            format!("Greeks, {version:?} kernel")
                .to_lowercase()
                .replacen('g', "G", 1),
            &|| {
                let mut buffers = buffers.lock().unwrap_or_else(PoisonError::into_inner);
                greeks_into(&columns, Model::BlackScholesMerton, version, &mut buffers);
                black_box(&buffers);
            },
        );
    }
    let prices = Prices {
        price: &price,
        forward: &forward,
        strike: &strike,
        discount: &discount,
        years: &years,
        call: &call,
    };
    let found = Mutex::new((vec![0.0; options], vec![0; options]));
    for version in Version::available() {
        measure(
            format!("implied volatility, {version:?} kernel").to_lowercase(),
            &|| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                let (volatility, status) = &mut *found;
                implied_volatilities_into(&prices, version, volatility, status);
                black_box(&found);
            },
        );
    }
    // A bisection needs no guess and no derivative: what a careful user writes first.
    let some = 2_000.min(options);
    measure("implied volatility, bisection over libm".to_owned(), &|| {
        let found: Vec<f64> = (0..some)
            .into_par_iter()
            .map(|i| textbook::implied_volatility(price[i], &list[i]))
            .collect();
        black_box(found);
    });
    for row in &mut rows {
        if row.what.contains("bisection") {
            row.per_second *= some as f64 / options as f64;
        }
    }
    Bench { options, rows }
}
