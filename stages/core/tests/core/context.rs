//! The context of a running stage: inputs by port, cancellation, sources, and the kinds of error.

use crate::context;
use cache::{ArtifactBuilder, ArtifactDigest, BlobDigest, Store};
use serde_json::json;
use stages_core::error::Cause;
use stages_core::{ConfigProblem, Input, Source, StageError};

fn input(context: &stages_core::Context, text: &str) -> Input {
    let mut builder = ArtifactBuilder::new(&context.store, "file", json!({}));
    builder.bytes("text", text.as_bytes()).unwrap();
    let digest = builder.finish().unwrap();
    let artifact = context.store.artifact(digest).unwrap();
    Input { digest, artifact }
}

#[test]
fn inputs_are_found_by_their_port_in_order() {
    let (_home, mut context) = context();
    let (a, b) = (input(&context, "a"), input(&context, "b"));
    let digests: Vec<ArtifactDigest> = vec![b.digest, a.digest];
    context.inputs.insert("features".to_owned(), vec![b, a]);
    let found: Vec<_> = context.list("features").iter().map(|input| input.digest).collect();
    assert_eq!(found, digests);
    assert_eq!(context.input("features").unwrap().digest, digests[0]);
    assert!(context.optional("rates").is_none());
    assert!(context.list("rates").is_empty());
    let error = context.input("rates").unwrap_err();
    assert_eq!(error.message, "input `rates` is not connected");
}

#[test]
fn a_cancelled_stage_is_told_so() {
    let (_home, context) = context();
    context.check_cancelled().unwrap();
    context.cancel.clone().cancel();
    assert_eq!(context.check_cancelled().unwrap_err().cause, Cause::Interrupted);
}

#[test]
fn a_source_is_refused_when_it_is_not_what_the_key_says() {
    let (read, other) = (BlobDigest::from_bytes([1; 32]), BlobDigest::from_bytes([2; 32]));
    let mut source = Source::new("quotes.csv", "/data/quotes.csv");
    source.check(read).unwrap();
    source.digest = Some(read);
    source.check(read).unwrap();
    let error = source.check(other).unwrap_err();
    assert!(error.message.contains("`/data/quotes.csv` changed"), "{error}");
    assert!(error.hint.is_some());
}

#[test]
fn the_engine_can_tell_errors_apart() {
    assert_eq!(StageError::new("no rows").cause, Cause::Failed);
    let (_home, context) = context();
    let missing = context
        .store
        .blob(BlobDigest::from_bytes([7; 32]))
        .map(drop)
        .unwrap_err();
    assert_eq!(StageError::from(missing).cause, Cause::DamagedInput);
    let file = context.store.root().join("a file");
    std::fs::write(&file, "").unwrap();
    let error = StageError::from(Store::open(&file).map(drop).unwrap_err());
    assert_eq!(error.cause, Cause::Store);
    assert!(error.message.contains("a file"), "{error}");
    let problem = ConfigProblem::new("slate.width", "must be at least 1").hint("use 4");
    let error = StageError::from(problem);
    assert_eq!(error.message, "slate.width: must be at least 1");
    assert_eq!(error.hint.as_deref(), Some("use 4"));
}
