//! Untrusted input: the bodies of the fuzz targets (`runner/fuzz`), called with arbitrary bytes and with
//! mutated valid ones. `PROPTEST_CASES=20000` tries more; a long run without a nightly compiler is
//!
//! ```text
//! FUZZ_SECONDS=600 cargo test --release --workspace --test fuzz -- --ignored --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod mutate;

#[path = "../../../fuzz/bodies/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/bodies/pipeline.rs"]
mod pipeline;
#[path = "../../../fuzz/bodies/record.rs"]
mod record;
#[path = "../../../fuzz/bodies/remote.rs"]
mod remote;

use cache::{ActionRecord, ArtifactBuilder, KeyHasher, Store};
use mutate::{Chance, mutated};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A target: what it is given, and examples of what it is made for.
type Target = (&'static str, fn(&[u8]), &'static LazyLock<Vec<Vec<u8>>>);

const TARGETS: [Target; 4] = [
    ("pipeline file", pipeline::check, &PIPELINES),
    ("manifest", manifest::check, &MANIFESTS),
    ("record", record::check, &RECORDS),
    ("remote", remote::check, &RECORDS),
];

fn yaml(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Those that ship, and those with every known mistake.
static PIPELINES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| [yaml("../../pipelines"), yaml("tests/bad")].concat());

static MANIFESTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| files("blobs"));

static RECORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| [files("actions"), files("memos")].concat());

/// The files of a store with one of everything.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut artifact = ArtifactBuilder::new(
        &store,
        "file",
        serde_json::json!({"folder": true, "rows": 2, "unit": 0.1}),
    );
    let value = artifact.bytes("a/b.parquet", b"{}").unwrap();
    artifact.bytes("SPX/2019-06-28.parquet", b"[]").unwrap();
    let record = ActionRecord {
        key: KeyHasher::new("fuzz").action_key(),
        recipe: serde_json::json!({"config": {"days": 6}, "inputs": {}, "kind": "run", "version": 1}),
        outputs: BTreeMap::from([("out".to_owned(), artifact.finish().unwrap())]),
        log: Some(value),
        seconds: 1.5,
        peak_memory: Some(1 << 20),
        numerics_class: "portable/1".to_owned(),
        program: "0.1.0".to_owned(),
        sources: Vec::new(),
        info: BTreeMap::from([("host".to_owned(), serde_json::json!("x"))]),
    };
    store.put_action(&record).unwrap();
    store.put_memo(KeyHasher::new("fuzz").memo_key(), value).unwrap();
    let mut found = Vec::new();
    for shard in std::fs::read_dir(dir.path().join(folder)).unwrap() {
        for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            found.push(std::fs::read(file.unwrap().path()).unwrap());
        }
    }
    found.sort();
    found
}

#[test]
fn the_examples_are_examples() {
    assert!(
        MANIFESTS
            .iter()
            .any(|bytes| cache::untrusted::manifest(bytes).is_some())
    );
    assert!(RECORDS.iter().any(|bytes| cache::untrusted::action_record(bytes)));
    assert!(RECORDS.iter().any(|bytes| cache::untrusted::memo_record(bytes)));
    assert!(PIPELINES.len() > 50);
    for (_, check, examples) in TARGETS {
        examples.iter().for_each(|bytes| check(bytes));
    }
}

/// Longer than any text of the length tried here takes, on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// Neither panics nor hangs.
fn survives(check: fn(&[u8]), bytes: &[u8]) {
    let started = Instant::now();
    check(bytes);
    assert!(
        started.elapsed() < LONG,
        "it takes too long: {:?}",
        String::from_utf8_lossy(bytes)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for (_, check, _) in TARGETS {
            survives(check, &bytes);
        }
    }

    #[test]
    fn changed_examples(seed in any::<u64>()) {
        for (_, check, examples) in TARGETS {
            survives(check, &mutated(examples, &mut Chance::new(seed)));
        }
    }

    /// Arguments of the command line are read as YAML too.
    #[test]
    fn settings(text in "\\PC{0,60}", name in "[a-z_.\\[\\]=0-9*]{0,20}") {
        let example = &PIPELINES[0];
        pipeline::check_with(example, &[&text]);
        pipeline::check_with(example, &[&format!("{name}={text}")]);
    }
}

/// Fuzzing without coverage for `FUZZ_SECONDS`, a minute by default.
#[test]
#[ignore = "takes a minute, or as long as it is told"]
fn for_long() {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(60, |text| text.parse().unwrap());
    let started = Instant::now();
    let mut chance = Chance::new(started.elapsed().as_nanos() as u64 ^ u64::from(std::process::id()));
    let mut tried = 0_u64;
    while started.elapsed() < Duration::from_secs(seconds) {
        for (name, check, examples) in TARGETS {
            let bytes = mutated(examples, &mut chance);
            let held = std::panic::catch_unwind(|| survives(check, &bytes));
            assert!(held.is_ok(), "{name}: {:?}", String::from_utf8_lossy(&bytes));
            tried += 1;
        }
    }
    eprintln!("{tried} inputs in {seconds} s");
}
