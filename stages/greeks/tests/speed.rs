//! Prints how fast this machine is: `cargo test --release -p stages-greeks --test speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[test]
#[ignore = "measures, asserts nothing"]
fn speed() {
    for row in stages_greeks::bench(1_000_000).rows {
        eprintln!(
            "{:45} {} threads {:8.3} M/s",
            row.what,
            row.threads,
            row.per_second / 1e6
        );
    }
}
