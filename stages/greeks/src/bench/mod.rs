//! The speed of Greeks and implied volatilities on this machine: `runner bench greeks`, and `cargo bench`
//! over the same [`cases`].

mod book;
mod case;
mod cases;
mod surface;

pub use book::Book;
pub use case::Case;
pub use cases::cases;

use serde::Serialize;
use std::time::Instant;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The name of the case.
    pub what: String,
    /// The number of threads.
    pub threads: usize,
    /// Options per second.
    pub per_second: f64,
    /// Gigabytes per second from and to main memory, if memory bandwidth is the limit.
    pub gigabytes: Option<f64>,
}

/// The results of [`bench`].
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// The number of options.
    pub options: usize,
    /// One row for each case and number of threads.
    pub rows: Vec<BenchRow>,
}

/// The seconds of a run: the best of three, after one to warm up.
fn seconds(run: impl Fn()) -> f64 {
    run();
    (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Measures in one run, on one thread and on all of rayon's current pool: Greeks (price and eight
/// sensitivities) of `options` options streamed through main memory and of as many as fit into the caches,
/// implied volatilities, and the fit of surfaces. The textbook formula over `libm` is given for
/// comparison.
pub fn bench(options: usize) -> Bench {
    let book = Book::new(options);
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    let mut rows = Vec::new();
    for case in cases(&book) {
        let mut row = |threads: usize, seconds: f64| {
            let per_second = case.options(threads) as f64 / seconds;
            rows.push(BenchRow {
                what: case.name.clone(),
                threads,
                per_second,
                gigabytes: case.bytes.map(|bytes| bytes * per_second / 1e9),
            });
        };
        if let Some(single) = &single {
            row(1, single.install(|| seconds(|| case.run(case.options(1)))));
        }
        let threads = rayon::current_num_threads();
        if threads > 1 {
            row(threads, seconds(|| case.run(case.options(threads))));
        }
    }
    Bench { options, rows }
}
