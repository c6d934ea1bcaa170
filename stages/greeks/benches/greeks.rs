//! `cargo bench --workspace --bench greeks`: the cases of `runner bench greeks` on one thread, over a chain
//! of the largest index. `cargo test --benches` runs each once.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stages_greeks::bench::{Book, cases};

/// The number of options, that of a chain of the largest index; with their Greeks they fit into the caches.
const OPTIONS: usize = 4_096;

fn greeks(criterion: &mut Criterion) {
    // One thread; an existing pool serves as well.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    let book = Book::new(OPTIONS);
    let mut group = criterion.benchmark_group("greeks");
    for case in cases(&book) {
        let options = case.options(1);
        group.throughput(Throughput::Elements(options as u64));
        group.bench_function(&case.name, |bencher| bencher.iter(|| case.run(options)));
    }
    group.finish();
}

criterion_group!(benches, greeks);
criterion_main!(benches);
