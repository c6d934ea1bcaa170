//! The speed of Greeks and implied volatilities on this machine: `runner bench greeks`, and `cargo bench`
//! over the same [`cases`].

mod book;
mod case;
mod cases;
mod peak;
mod surface;

pub use book::Book;
pub use case::Case;

use peak::Peak;
use serde::Serialize;
use stages_numerics::dispatch::InstructionSet;
use std::time::Instant;

/// All cases for a book.
pub fn cases(book: &Book) -> Vec<Case<'_>> {
    let mut all = cases::kernels(book);
    all.push(surface::fit());
    all
}

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// The name of the case.
    pub what: String,
    /// The number of threads.
    pub threads: usize,
    /// Options per second.
    pub per_second: f64,
    /// The options per second if only the kernel's arithmetic took time: the measured peak operations of one
    /// thread over the operations per option, times the number of threads.
    pub arithmetic_limit: Option<f64>,
    /// The achieved share of `arithmetic_limit`, in percent.
    pub percent_of_limit: Option<f64>,
    /// Gigabytes per second from and to main memory, if memory bandwidth is the limit.
    pub gigabytes: Option<f64>,
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

/// The options per second that arithmetic allows on one thread; `None` where a fused operation is a function
/// call.
fn arithmetic_limit(case: &Case<'_>) -> Option<f64> {
    let (on, cost) = case.cost?;
    let fused = on != InstructionSet::Portable || cfg!(not(target_arch = "x86_64"));
    fused.then(|| Peak::measure(on).limit(cost))
}

/// Measures in one run, on one thread and on all of rayon's current pool: Greeks (price and eight
/// sensitivities) of `options` options streamed through main memory and of as many as fit into the caches,
/// implied volatilities, and the fit of surfaces. The textbook formula over `libm` and the limit set by
/// arithmetic are given for comparison.
pub fn bench(options: usize) -> Vec<BenchRow> {
    let book = Book::new(options);
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    let mut rows = Vec::new();
    for case in cases(&book) {
        let limit = arithmetic_limit(&case);
        let mut row = |threads: usize, seconds: f64| {
            let per_second = case.options(threads) as f64 / seconds;
            let limit = limit.map(|limit| limit * threads as f64);
            rows.push(BenchRow {
                what: case.name.clone(),
                threads,
                per_second,
                arithmetic_limit: limit,
                percent_of_limit: limit.map(|limit| 100.0 * per_second / limit),
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
    rows
}
