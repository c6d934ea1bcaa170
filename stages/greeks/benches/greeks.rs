//! `cargo bench --workspace --bench greeks`: what `runner bench greeks` times, on one thread and by each version of the kernels that this processor has, beside
//! the scalar formulas and a copy of the results. `cargo test --benches` runs each once.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stages_greeks::numerics::american::{self, Scheme, lattice};
use stages_greeks::numerics::formula::{Model, Option};
use stages_greeks::numerics::implied::{Prices, implied_volatilities_into};
use stages_greeks::numerics::kernel::{Columns, GreekColumns, Version, greeks, greeks_into};
use stages_greeks::numerics::special::exp;
use stages_greeks::numerics::textbook;
use stages_numerics::random::Random;
use std::hint::black_box;

/// Options of a chain of the largest index, which fit into the caches with their Greeks.
const OPTIONS: usize = 4_096;
/// American options, and what is computed one by one.
const FEW: usize = 64;

fn book() -> Vec<Option> {
    let mut random = Random::new(&[1]);
    let option = |_| Option {
        spot: 100.0,
        strike: 70.0 + 60.0 * random.uniform(),
        years: 0.01 + 2.0 * random.uniform(),
        rate: 0.05 * random.uniform(),
        dividend_yield: 0.02 * random.uniform(),
        volatility: 0.05 + 0.6 * random.uniform(),
        call: random.uniform() < 0.5,
    };
    (0..OPTIONS).map(option).collect()
}

/// All by column.
fn benches(criterion: &mut Criterion) {
    // One thread; a pool that is there already is as well.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    let book = book();
    let column = |f: fn(&Option) -> f64| book.iter().map(f).collect::<Vec<f64>>();
    let (spot, strike, years) = (column(|o| o.spot), column(|o| o.strike), column(|o| o.years));
    let (rate, dividend_yield) = (column(|o| o.rate), column(|o| o.dividend_yield));
    let (volatility, call) = (
        column(|o| o.volatility),
        book.iter().map(|o| o.call).collect::<Vec<bool>>(),
    );
    let first = |n: usize| Columns {
        spot: &spot[..n],
        strike: &strike[..n],
        years: &years[..n],
        rate: &rate[..n],
        dividend_yield: &dividend_yield[..n],
        volatility: &volatility[..n],
        call: &call[..n],
    };
    let (all, few) = (first(OPTIONS), first(FEW));
    let model = Model::BlackScholesMerton;

    let mut group = criterion.benchmark_group("Greeks");
    group.throughput(Throughput::Elements(OPTIONS as u64));
    let mut results: GreekColumns = greeks(&all, model);
    for version in Version::available() {
        group.bench_function(format!("{version:?}"), |bencher| {
            bencher.iter(|| greeks_into(black_box(&all), model, version, &mut results));
        });
    }
    group.bench_function("textbook over libm, scalar", |bencher| {
        bencher.iter(|| {
            let greeks = |option: &Option| textbook::black_scholes_merton(option).to_array().iter().sum::<f64>();
            black_box(&book).iter().map(greeks).sum::<f64>()
        });
    });
    group.bench_function("copy of the results", |bencher| {
        bencher.iter(|| black_box(&results).clone())
    });
    group.finish();

    let mut group = criterion.benchmark_group("implied volatility");
    group.throughput(Throughput::Elements(OPTIONS as u64));
    let forward: Vec<f64> = book
        .iter()
        .map(|o| o.spot * exp((o.rate - o.dividend_yield) * o.years))
        .collect();
    let discount: Vec<f64> = book.iter().map(|o| exp(-o.rate * o.years)).collect();
    let prices = Prices {
        price: &results[0],
        forward: &forward,
        strike: &strike,
        discount: &discount,
        years: &years,
        call: &call,
    };
    let (mut found, mut status) = (vec![0.0; OPTIONS], vec![0; OPTIONS]);
    for version in Version::available() {
        group.bench_function(format!("{version:?}"), |bencher| {
            bencher.iter(|| implied_volatilities_into(black_box(&prices), version, &mut found, &mut status));
        });
    }
    group.throughput(Throughput::Elements(FEW as u64));
    group.bench_function("bisection over libm, scalar", |bencher| {
        bencher.iter(|| {
            let found = |(price, option): (&f64, &Option)| textbook::implied_volatility(*price, option);
            results[0][..FEW].iter().zip(&book).map(found).sum::<f64>()
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("American");
    group.throughput(Throughput::Elements(FEW as u64));
    for version in Version::available() {
        group.bench_function(format!("price, {version:?}"), |bencher| {
            bencher.iter(|| american::price(black_box(&few), Scheme::STANDARD, version));
        });
        group.bench_function(format!("Greeks, {version:?}"), |bencher| {
            bencher.iter(|| american::greeks(black_box(&few), Scheme::STANDARD, version));
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("price, lattices of 501 and 1503 steps, scalar", |bencher| {
        bencher.iter(|| lattice::extrapolated(black_box(&book[0]), &[], 501));
    });
    group.finish();
}

criterion_group!(groups, benches);
criterion_main!(groups);
