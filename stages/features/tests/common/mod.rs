//! Stages run on a store of their own.

#![allow(dead_code, reason = "each test takes some of it")]

use arrow::array::RecordBatch;
use cache::{ActionKey, ArtifactDigest, Store};
use serde_json::Value;
use stages_core::dataset::DataSet;
use stages_core::{AnyStage, Context, Input, StageError};

pub fn stage(name: &str) -> Box<dyn AnyStage> {
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

pub fn context(store: &Store, inputs: &[(&str, ArtifactDigest)]) -> Context {
    let inputs = inputs
        .iter()
        .map(|(port, digest)| ((*port).to_owned(), vec![input(store, *digest)]));
    Context {
        inputs: inputs.collect(),
        ..Context::new(ActionKey::from_bytes([0; 32]), store.clone())
    }
}

pub fn try_run(context: &Context, name: &str, with: Value) -> Result<ArtifactDigest, StageError> {
    let stage = stage(name);
    let resolved = stage.resolve(with).unwrap();
    Ok(stage.run(&resolved, context)?["features"])
}

/// The features, and how many memos were computed.
pub fn run(store: &Store, inputs: &[(&str, ArtifactDigest)], name: &str, with: Value) -> (ArtifactDigest, u64) {
    let context = context(store, inputs);
    let digest = try_run(&context, name, with).unwrap();
    let (hits, asked) = context.memos.counts();
    (digest, asked - hits)
}

pub fn open(store: &Store, digest: ArtifactDigest) -> DataSet {
    DataSet::open(&input(store, digest)).unwrap()
}

pub fn read(store: &Store, digest: ArtifactDigest, symbol: &str) -> RecordBatch {
    open(store, digest).read_symbol(store, symbol).unwrap().unwrap()
}
