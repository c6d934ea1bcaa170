//! How fast this machine computes Greeks and implied volatilities.

mod american;
mod peak;

use crate::numerics::formula::{Model, Option};
use crate::numerics::implied::{Prices, implied_volatilities_into};
use crate::numerics::kernel::{Columns, GreekColumns, Version, greeks, greeks_into};
use crate::numerics::special::exp;
use crate::numerics::textbook;
use peak::{Cost, Peak};
use rayon::prelude::*;
use serde::Serialize;
use stages_numerics::random::Random;
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
    /// Options a second if nothing but the kernel's arithmetic took time: the operations of an option over the measured peak of one thread, times
    /// the threads.
    pub arithmetic_limit: std::option::Option<f64>,
    /// The share of that which was reached, in percent.
    pub percent_of_limit: std::option::Option<f64>,
    /// What went from and to memory, in gigabytes a second, where nearly all did.
    pub gigabytes: std::option::Option<f64>,
}

/// What [`bench`] measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// How many options.
    pub options: usize,
    /// One row for each way of computing.
    pub rows: Vec<BenchRow>,
}

/// Options that fit into the caches with their results, for each thread.
const IN_CACHE: usize = 4_096;

/// Seconds of a run: the best of three, after one to warm up.
fn seconds(mut run: impl FnMut()) -> f64 {
    run();
    (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Runs what is measured with one thread and with all of rayon's current pool.
struct Bencher {
    single: std::option::Option<rayon::ThreadPool>,
    rows: Vec<BenchRow>,
}

impl Bencher {
    /// `run` computes that many options, `options` for a number of threads; `limit` of one thread.
    fn measure(
        &mut self,
        what: &str,
        limit: std::option::Option<f64>,
        options: impl Fn(usize) -> usize + Sync,
        run: impl Fn(usize) + Sync,
    ) {
        self.measure_with_traffic(what, limit, None, options, run);
    }

    /// As [`measure`](Self::measure), with the bytes that each option takes from and to memory.
    fn measure_with_traffic(
        &mut self,
        what: &str,
        limit: std::option::Option<f64>,
        bytes: std::option::Option<f64>,
        options: impl Fn(usize) -> usize + Sync,
        run: impl Fn(usize) + Sync,
    ) {
        let mut row = |threads: usize, seconds: f64| {
            let per_second = options(threads) as f64 / seconds;
            let limit = limit.map(|limit| limit * threads as f64);
            self.rows.push(BenchRow {
                what: what.to_owned(),
                threads,
                per_second,
                arithmetic_limit: limit,
                percent_of_limit: limit.map(|limit| 100.0 * per_second / limit),
                gigabytes: bytes.map(|bytes| bytes * per_second / 1e9),
            });
        };
        if let Some(single) = &self.single {
            row(1, single.install(|| seconds(|| run(options(1)))));
        }
        let threads = rayon::current_num_threads();
        if threads > 1 {
            row(threads, seconds(|| run(options(threads))));
        }
    }
}

/// Simulated options by column.
struct Book {
    list: Vec<Option>,
    columns: [Vec<f64>; 6],
    call: Vec<bool>,
}

impl Book {
    pub(super) fn new(options: usize) -> Self {
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
        let columns = [
            column(|o| o.spot),
            column(|o| o.strike),
            column(|o| o.years),
            column(|o| o.rate),
            column(|o| o.dividend_yield),
            column(|o| o.volatility),
        ];
        let call = list.iter().map(|o| o.call).collect();
        Self { list, columns, call }
    }

    /// The first `n` of them.
    fn columns(&self, n: usize) -> Columns<'_> {
        let [spot, strike, years, rate, dividend_yield, volatility] = self.columns.each_ref().map(|c| &c[..n]);
        Columns {
            spot,
            strike,
            years,
            rate,
            dividend_yield,
            volatility,
            call: &self.call[..n],
        }
    }
}

fn name(what: &str, version: Version) -> String {
    format!("{what}, {}", format!("{version:?}").to_lowercase())
}

/// Measures Greeks (price and eight sensitivities) of `options` options, streaming from and to memory, and of as many as fit into the caches, and
/// implied volatilities, with one thread and with all of rayon's current pool, beside the textbook formula over `libm` and what the arithmetic
/// alone would take, in the same run.
pub fn bench(options: usize) -> Bench {
    let book = Book::new(options);
    let mut bencher = Bencher {
        single: rayon::ThreadPoolBuilder::new().num_threads(1).build().ok(),
        rows: Vec::new(),
    };
    // The textbook formula, contract by contract: what the kernels are measured against.
    let some = 200_000.min(options);
    bencher.measure(
        "Greeks, textbook over libm, scalar",
        None,
        |_| some,
        |n| {
            let sum: f64 = book.list[..n]
                .par_iter()
                .map(|option| textbook::black_scholes_merton(option).to_array().iter().sum::<f64>())
                .sum();
            black_box(sum);
        },
    );
    for version in Version::available() {
        let limit = limit(version, peak::GREEKS);
        let most = if version == Version::Portable { some } else { options };
        // Memory is reused, so that the processor is measured and not the system's page faults.
        let buffers: Mutex<GreekColumns> = Mutex::new(std::array::from_fn(|_| Vec::new()));
        let run = |total: usize, n: usize| {
            let mut buffers = buffers.lock().unwrap_or_else(PoisonError::into_inner);
            for column in buffers.iter_mut() {
                column.resize(n, 0.0);
            }
            for _ in 0..total / n {
                greeks_into(&book.columns(n), Model::BlackScholesMerton, version, &mut buffers);
                black_box(&buffers);
            }
        };
        let in_cache = |threads: usize| (IN_CACHE * threads).min(options);
        bencher.measure(
            &name("Greeks in cache", version),
            limit,
            |threads| in_cache(threads) * (some / in_cache(threads)).max(1),
            |total| run(total, in_cache(rayon::current_num_threads())),
        );
        bencher.measure_with_traffic(
            &name("Greeks from and to memory", version),
            limit,
            Some(GREEKS_BYTES),
            |_| most,
            |n| run(n, n),
        );
    }
    copy(&mut bencher, &book);
    implied(&mut bencher, &book, some);
    american::american(&mut bencher, &book);
    Bench {
        options,
        rows: bencher.rows,
    }
}

/// What an option's Greeks take from and to memory: six numbers and a flag, and nine numbers.
const GREEKS_BYTES: f64 = 6.0 * 8.0 + 1.0 + 9.0 * 8.0;

/// What memory allows: the numbers of the options copied, each once read and once written.
fn copy(bencher: &mut Bencher, book: &Book) {
    let n = book.list.len();
    let copies = Mutex::new(book.columns.clone());
    bencher.measure_with_traffic(
        "copy of six columns, from and to memory",
        None,
        Some(2.0 * 6.0 * 8.0),
        |_| n,
        |_| {
            let mut copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
            copies.par_iter_mut().zip(&book.columns).for_each(|(copy, column)| {
                copy.copy_from_slice(black_box(column));
                black_box(copy);
            });
        },
    );
}

/// What the arithmetic allows; not where a fused operation is a call.
fn limit(version: Version, cost: Cost) -> std::option::Option<f64> {
    let fused = version != Version::Portable || cfg!(not(target_arch = "x86_64"));
    fused.then(|| Peak::measure(version).limit(cost))
}

fn implied(bencher: &mut Bencher, book: &Book, n: usize) {
    let price = greeks(&book.columns(n), Model::BlackScholesMerton)[0].clone();
    let list = &book.list[..n];
    let forward: Vec<f64> = list
        .iter()
        .map(|o| o.spot * exp((o.rate - o.dividend_yield) * o.years))
        .collect();
    let discount: Vec<f64> = list.iter().map(|o| exp(-o.rate * o.years)).collect();
    // A bisection needs no guess and no derivative: what a careful user writes first.
    let some = 2_000.min(n);
    bencher.measure(
        "implied volatility, bisection over libm, scalar",
        None,
        |_| some,
        |n| {
            let found: Vec<f64> = (0..n)
                .into_par_iter()
                .map(|i| textbook::implied_volatility(price[i], &list[i]))
                .collect();
            black_box(found);
        },
    );
    for version in Version::available() {
        let n = if version == Version::Portable { n.min(20_000) } else { n };
        let columns = book.columns(n);
        let prices = Prices {
            price: &price[..n],
            forward: &forward[..n],
            strike: columns.strike,
            discount: &discount[..n],
            years: columns.years,
            call: columns.call,
        };
        let limit = limit(version, peak::IMPLIED_VOLATILITY);
        let found = Mutex::new((vec![0.0; n], vec![0; n]));
        bencher.measure(
            &name("implied volatility", version),
            limit,
            |_| n,
            |_| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                let (volatility, status) = &mut *found;
                implied_volatilities_into(&prices, version, volatility, status);
                black_box(&found);
            },
        );
    }
}
