//! `cargo bench --workspace --bench features`: times every indicator and estimator as `runner bench features`
//! does, one symbol on one thread, beside a copy of the column that each writes. `cargo test --benches` runs
//! each once.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stages_features::bench::{Named, cases, sample_bars};
use std::hint::black_box;

/// Bars of 80 years: a column of them fits into the L2 cache.
const BARS: usize = 20_000;

fn features(criterion: &mut Criterion) {
    let bars = sample_bars(0, BARS);
    let mut group = criterion.benchmark_group("features");
    for Named { name, feature, .. } in cases() {
        group.throughput(Throughput::Elements(BARS as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| feature.over(&mut feature.start(), black_box(&bars)));
        });
    }
    group.throughput(Throughput::Elements(BARS as u64));
    group.bench_function("copy of a column", |bencher| {
        bencher.iter(|| black_box(&bars.close).clone());
    });
    group.finish();
}

criterion_group!(benches, features);
criterion_main!(benches);
