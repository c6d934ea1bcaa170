//! Prints how fast this machine is: `cargo test --release -p stages-features --test speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[test]
#[ignore = "measures, asserts nothing"]
fn speed() {
    for row in stages_features::bench(36, 4_300).rows {
        eprintln!(
            "{:20} {} threads {:8.3} M bars/s",
            row.what,
            row.threads,
            row.per_second / 1e6
        );
    }
}
