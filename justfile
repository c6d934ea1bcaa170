# The habits of this repository: `just` lists them. Everything is built with `--release`, so that dependencies compile once.

_default:
    @just --list

# Format, lints and types
check:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings

# The tests; `just test --test pipeline` runs some of them
test *ARGS:
    cargo test --release --workspace {{ARGS}}

# What the tests skip by default: proofs of learning, a year of nights, the table of faults, long fuzzing
test-long:
    cargo test --release --workspace --lib -- --ignored --nocapture --test-threads 1 learning off_policy erl a2c promise::tests::table
    cargo test --release --workspace --test reasoning -- --ignored --nocapture --test-threads 1
    cargo test --release --workspace --test schedule -- --ignored --nocapture
    cargo test --release --workspace --test faults -- --ignored --nocapture
    cargo test --release --workspace --test cluster -- --ignored --nocapture --test-threads 1
    cargo test --release --workspace --test fuzz -- --ignored --nocapture

# Measures this machine: greeks, features, ingest, env, symbolic, train, trainers, device, cache or cluster
bench NAME *ARGS:
    cargo run --release -- bench {{NAME}} {{ARGS}}

# Tests and measures training on an NVIDIA GPU beside JAX and PyTorch; see .ci/gpu for a machine without one
gpu DIR:
    .ci/gpu {{DIR}}

# Everything that a change must pass
ci:
    .ci/run

# The reference of the crates, in target/doc
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --document-private-items

# A program with debug lines, for `perf record target/profiling/runner exec …`
profile:
    cargo build --profile profiling

# The dependencies: licences, sources, versions that exist twice
deps:
    cargo deny check licenses bans sources
    cargo tree --workspace --duplicates --edges normal

# Spelling
typos:
    typos

# The book, in target/book; needs mdBook (`cargo install mdbook`)
book:
    cargo run --release -- reference docs/reference
    mdbook build docs --dest-dir ../target/book
    python3 .ci/book.py target/book

# What a release offers, in target/dist: static programs, wheels, image, SBOM, checksums; `just dist x86_64` builds some of it
dist *ARGS:
    .ci/dist/build.py {{ARGS}}

# The same for x86_64 in two folders, which must give the same bytes; then its files in bare root folders
dist-check:
    .ci/dist/build.py --check x86_64
    RUNNER_TEST_DIST="${CARGO_TARGET_DIR:-target}/dist" .ci/dist/test_install.py
