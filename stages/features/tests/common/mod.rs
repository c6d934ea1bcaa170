//! Stages run on a store of their own.

#![allow(dead_code, reason = "each test takes some of it")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use cache::{ActionKey, ArtifactDigest, Store};
use datasets::Date;
use datasets::schema::BARS;
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Period};
use stages_core::{AnyStage, Context, Input, PortType, StageError, table};
use stages_numerics::random::Random;
use std::ops::Range;
use std::sync::Arc;

pub(crate) fn stage(name: &str) -> Box<dyn AnyStage> {
    stages_features::kinds()
        .into_iter()
        .find(|kind| kind.name() == name)
        .unwrap()
}

fn input(store: &Store, digest: ArtifactDigest) -> Input {
    Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    }
}

pub(crate) fn context(store: &Store, inputs: &[(&str, ArtifactDigest)]) -> Context {
    let inputs = inputs
        .iter()
        .map(|(port, digest)| ((*port).to_owned(), vec![input(store, *digest)]));
    Context {
        inputs: inputs.collect(),
        ..Context::new(ActionKey::from_bytes([0; 32]), store.clone())
    }
}

pub(crate) fn try_run(context: &Context, name: &str, with: Value) -> Result<ArtifactDigest, StageError> {
    let stage = stage(name);
    let resolved = stage.resolve(with).unwrap();
    Ok(stage.run(&resolved, context)?["features"])
}

/// The features, and how many memos were computed.
pub(crate) fn run(
    store: &Store,
    inputs: &[(&str, ArtifactDigest)],
    name: &str,
    with: Value,
) -> (ArtifactDigest, u64) {
    let context = context(store, inputs);
    let digest = try_run(&context, name, with).unwrap();
    let (hits, asked) = context.memos.counts();
    (digest, asked - hits)
}

pub(crate) fn open(store: &Store, digest: ArtifactDigest) -> DataSet {
    DataSet::open(&input(store, digest)).unwrap()
}

pub(crate) fn read(store: &Store, digest: ArtifactDigest, symbol: &str) -> RecordBatch {
    open(store, digest).read_symbol(store, symbol).unwrap().unwrap()
}

/// The first day of [`bars`].
pub(crate) const FIRST: Date = Date(17_897);

/// Bars of symbols, each over a range of days, changed by `change` (symbol, day, column).
pub(crate) fn bars(symbols: &[(&str, Range<i32>)], change: impl Fn(&str, i32, &str) -> f64) -> RecordBatch {
    let (mut names, mut dates) = (Vec::new(), Vec::new());
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); BARS.len() - 2];
    for (symbol, days) in symbols {
        let mut random = Random::new(&[u64::from(symbol.as_bytes()[0])]);
        let mut close = 100.0;
        for day in 0..days.end {
            let open: f64 = close;
            close *= 1.0 + 0.01 * random.normal();
            if day < days.start {
                continue;
            }
            names.push(*symbol);
            dates.push(FIRST.0 + day);
            for (column, values) in BARS[2..].iter().zip(&mut columns) {
                let value = match column.name {
                    "open" => open,
                    "high" => open.max(close) * 1.002,
                    "low" => open.min(close) * 0.998,
                    "close" => close,
                    "volume" => 1e6 + f64::from(day),
                    _ => f64::NAN,
                };
                values.push(value * change(symbol, day, column.name));
            }
        }
    }
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(names)), Arc::new(Date32Array::from(dates))];
    for values in &columns {
        arrays.push(Arc::new(table::nullable(values)));
    }
    RecordBatch::try_new(table::schema(BARS), arrays).unwrap()
}

pub(crate) fn store_together(store: &Store, batch: &RecordBatch) -> ArtifactDigest {
    let partitions = dataset::partition_symbols(store, batch, Period::Month).unwrap();
    dataset::write(store, PortType::Bars, json!({}), partitions).unwrap()
}

pub(crate) fn store_apart(store: &Store, batch: &RecordBatch) -> ArtifactDigest {
    let partitions = dataset::partition(store, batch, Period::Month, "").unwrap();
    dataset::write(store, PortType::Bars, json!({}), partitions).unwrap()
}
