//! Stages run on a store of their own.

#![allow(dead_code, reason = "each test takes some of it")]

pub(crate) mod lines;
pub(crate) mod market;
pub(crate) mod quality;
pub(crate) mod svi;

use arrow_array::{BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray};
use cache::{ActionKey, ArtifactDigest, Store};
use datasets::Date;
use datasets::schema::{OPTION_CHAIN, RATES};
use serde_json::{Value, json};
use stages_core::dataset::{self, DataSet, Period};
use stages_core::{AnyStage, Context, Input, Outputs, PortType, StageError, table};
use std::sync::Arc;

/// A row of a chain.
pub(crate) struct Row {
    pub date: Date,
    pub expiry: Date,
    pub strike: f64,
    pub call: bool,
    pub bid: f64,
    pub ask: f64,
    pub spot: f64,
}

/// A chain of one class.
pub(crate) fn table_of(symbol: &str, root: &str, rows: &[Row]) -> RecordBatch {
    let n = rows.len();
    let float = |f: fn(&Row) -> f64| Arc::new(table::nullable(&rows.iter().map(f).collect::<Vec<_>>()));
    let nothing = || Arc::new(table::nullable(&vec![f64::NAN; n]));
    RecordBatch::try_new(
        table::schema(OPTION_CHAIN),
        vec![
            Arc::new(StringArray::from(vec![symbol; n])),
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.date.0))),
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.expiry.0))),
            Arc::new(StringArray::from(vec![root; n])),
            float(|row| row.strike),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.call)))),
            float(|row| row.bid),
            float(|row| row.ask),
            nothing(),
            nothing(),
            nothing(),
            float(|row| row.spot),
            nothing(),
        ],
    )
    .unwrap()
}

/// One curve, of `rate` up to two years.
pub(crate) fn flat_rates(date: Date, rate: f64) -> RecordBatch {
    RecordBatch::try_new(
        table::schema(RATES),
        vec![
            Arc::new(Date32Array::from(vec![date.0; 2])),
            Arc::new(Float64Array::from(vec![0.0, 2.0])),
            Arc::new(Float64Array::from(vec![rate; 2])),
        ],
    )
    .unwrap()
}

pub(crate) fn store_table(store: &Store, ty: PortType, batch: &RecordBatch) -> ArtifactDigest {
    store_with_meta(store, ty, batch, json!({}))
}

/// Stores a table by day, with the metadata `meta`.
pub(crate) fn store_with_meta(
    store: &Store,
    ty: PortType,
    batch: &RecordBatch,
    meta: Value,
) -> ArtifactDigest {
    let partitions = dataset::partition(store, batch, Period::Day, "rates").unwrap();
    dataset::write(store, ty, meta, partitions).unwrap()
}

pub(crate) fn input(store: &Store, digest: ArtifactDigest) -> Input {
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
        threads: 2,
        ..Context::new(ActionKey::from_bytes([0; 32]), store.clone())
    }
}

pub(crate) fn stage(name: &str) -> Box<dyn AnyStage> {
    stages_greeks::kinds()
        .into_iter()
        .find(|kind| kind.name() == name)
        .unwrap()
}

pub(crate) fn try_run(context: &Context, name: &str, with: Value) -> Result<Outputs, StageError> {
    let stage = stage(name);
    let resolved = stage.resolve(with).unwrap();
    stage.run(&resolved, context)
}

pub(crate) fn run(context: &Context, name: &str, with: Value) -> Outputs {
    try_run(context, name, with).unwrap()
}

/// All rows of a data set of the symbol `TEST`.
pub(crate) fn read(store: &Store, digest: ArtifactDigest) -> RecordBatch {
    read_symbol(store, digest, "TEST")
}

pub(crate) fn read_symbol(store: &Store, digest: ArtifactDigest, symbol: &str) -> RecordBatch {
    let data = DataSet::open(&input(store, digest)).unwrap();
    data.read_symbol(store, symbol).unwrap().unwrap()
}
