//! `ingest/simulated_panel` as a stage: the same bytes on any number of threads, years that a longer panel
//! shares, wrong parameters refused.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use arrow_array::cast::AsArray;
use cache::{ArtifactDigest, KeyHasher, Store};
use common::{Bench, kind};
use serde_json::{Value, json};
use stages_core::dataset::DataSet;
use stages_core::{Context, Input, table};
use std::collections::BTreeMap;

/// The outputs by port, and how many memos were made.
fn run(store: &Store, with: Value, threads: usize) -> (BTreeMap<String, ArtifactDigest>, u64) {
    let kind = kind("ingest/simulated_panel");
    let config = kind.resolve(with).unwrap();
    let context = Context {
        threads,
        ..Context::new(KeyHasher::new("test").action_key(), store.clone())
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let outputs = pool.install(|| kind.run(&config, &context)).unwrap();
    let (hits, asked) = context.memos.counts();
    (outputs.into_iter().collect(), asked - hits)
}

fn small() -> Value {
    json!({ "stocks": 6, "days": 400, "worlds": 2, "listing": { "at_start": 0.5, "hazard": 0.5 } })
}

/// A changed digest means changed bytes for the same key: raise the kind's VERSION (and the memo's), then pin
/// the new digests.
#[test]
fn golden_on_any_number_of_threads() {
    for threads in [1, 3] {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let (outputs, _) = run(&store, small(), threads);
        let digests: Vec<String> = outputs
            .iter()
            .map(|(port, digest)| format!("{port} {}", digest.short()))
            .collect();
        assert_eq!(
            digests,
            [
                "actions a9c95cb796",
                "bars e0d8155e98",
                "features 146d964f5a",
                "hidden 88b39fb4c2",
                "rates aa28eed8c2"
            ],
            "{threads} threads"
        );
    }
}

/// Two years of two worlds; a third year makes its own tables alone, and leaves what there was as it was.
#[test]
fn a_longer_panel_shares_its_years() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let with = |days: u32| {
        let mut with = small();
        with["days"] = json!(days);
        with
    };
    let (short, made) = run(&store, with(502), 2);
    let (again, none) = run(&store, with(502), 2);
    assert!(short == again && none == 0 && made > 0);
    let (long, more) = run(&store, with(700), 2);
    let other = tempfile::tempdir().unwrap();
    let (fresh, all) = run(&Store::open(other.path()).unwrap(), with(700), 2);
    assert!(fresh == long && 0 < more && more < all, "{more} of {all}");
    let blobs = |outputs: &BTreeMap<String, ArtifactDigest>, port: &str| -> BTreeMap<String, String> {
        let artifact = store.artifact(outputs[port]).unwrap();
        let entries = artifact.entries.iter();
        entries.map(|entry| (entry.path.clone(), entry.blob.to_hex())).collect()
    };
    for port in ["bars", "features", "hidden"] {
        let (short, long) = (blobs(&short, port), blobs(&long, port));
        let shared = short
            .iter()
            .filter(|(path, blob)| long.get(*path) == Some(*blob))
            .count();
        assert!(shared > 0 && shared < long.len(), "{port}: {shared}");
    }
}

/// Each listing and delisting shows in the bars: symbols that begin late, and gaps of 20 trading days and
/// more.
#[test]
fn symbols_begin_and_end() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let (outputs, _) = run(&store, small(), 2);
    let artifact = store.artifact(outputs["bars"]).unwrap();
    let bars = DataSet::open(&Input {
        digest: outputs["bars"],
        artifact,
    })
    .unwrap();
    let mut days: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for batch in bars.read_all(&store).unwrap() {
        let symbols = batch.column_by_name("symbol").unwrap().as_string::<i32>().clone();
        for (symbol, date) in symbols.iter().zip(table::dates(&batch, "date").unwrap()) {
            days.entry(symbol.unwrap().to_owned()).or_default().push(date.0);
        }
    }
    assert_eq!(days.len(), 12);
    let first = days.values().filter_map(|days| days.iter().min()).min().unwrap();
    let late = days.values().filter(|days| days.iter().min() > Some(first)).count();
    let gaps = days
        .values()
        .filter(|days| days.windows(2).any(|pair| pair[1] - pair[0] > 27))
        .count();
    assert!(late >= 2 && gaps >= 2, "{late} {gaps}");
}

#[test]
fn wrong_parameters_are_refused() {
    let bench = Bench::new();
    for (with, field) in [
        (json!({ "stocks": 0 }), "stocks"),
        (json!({ "listing": { "at_start": 2.0 } }), "listing.at_start"),
        (json!({ "edge": { "half_life": 0.0 } }), "edge.half_life"),
    ] {
        let problem = bench.check("ingest/simulated_panel", with.clone()).unwrap_err();
        assert_eq!(problem.field, field, "{with}");
    }
}

/// The panel as it was on a day is the panel with as many days: 252 in 2010.
#[test]
fn a_panel_until_a_date_has_no_later_day() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let with = |name: &str, value: Value| {
        let mut with = small();
        with[name] = value;
        with
    };
    let (shorter, _) = run(&store, with("days", json!(252)), 2);
    let (bounded, made) = run(&store, with("until", json!("2010-12-31")), 2);
    assert_eq!((shorter, made), (bounded, 0));
}
