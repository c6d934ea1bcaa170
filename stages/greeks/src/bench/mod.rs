//! The speed of Greeks and implied volatilities on this machine: `runner bench greeks`, and `cargo bench`
//! over the same [`cases`].

mod book;
mod cases;
mod surface;

pub use book::Book;
pub use cases::Case;

use serde::Serialize;
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
/// sensitivities) of `options` options, implied volatilities, American options, and the fit of surfaces.
pub fn bench(options: usize) -> Vec<BenchRow> {
    let book = Book::new(options);
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    let mut rows = Vec::new();
    for case in cases(&book) {
        let mut row = |threads: usize, seconds: f64| {
            rows.push(BenchRow {
                what: case.name.clone(),
                threads,
                per_second: case.options as f64 / seconds,
            });
        };
        if let Some(single) = &single {
            row(1, single.install(|| seconds(|| case.run())));
        }
        let threads = rayon::current_num_threads();
        if threads > 1 {
            row(threads, seconds(|| case.run()));
        }
    }
    rows
}
