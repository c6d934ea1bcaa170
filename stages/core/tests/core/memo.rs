//! Memos: computed once, by all that they depend on.

use crate::context;
use proptest::prelude::*;
use stages_core::{Memo, Share, StageError, memo_key};
use std::cell::Cell;

fn memo(parts: &[&[u8]]) -> Memo {
    Memo::new("test v1", parts, "SPX/2019-05 rsi_14")
}

/// Every store holds values under these keys: a changed encoding would lose them all.
#[test]
fn the_key_is_pinned() {
    assert_eq!(
        memo(&[b"SPX", b"2019"]).key.to_hex(),
        "2a10a2e46f45f920cdc17eddced0c648e69d2979793e387663fbf140dcca019d"
    );
}

#[test]
fn a_memo_is_computed_once() {
    let (_home, context) = context();
    let computed = Cell::new(0);
    let ask = |parts: &[&[u8]]| {
        context.memo(&memo(parts), || {
            computed.set(computed.get() + 1);
            Ok(parts.concat())
        })
    };
    let first = ask(&[b"a"]).unwrap();
    assert_eq!(ask(&[b"a"]).unwrap(), first);
    assert_eq!(computed.get(), 1);
    assert_ne!(ask(&[b"b"]).unwrap(), first);
    assert_eq!(context.memos.counts(), (1, 3));
    assert_eq!(context.memos.names(), ["SPX/2019-05 rsi_14", "SPX/2019-05 rsi_14"]);
    assert_eq!(&*context.store.blob(first.blob).unwrap(), b"a");
}

#[test]
fn a_fresh_context_computes_again_and_keeps_the_new_value() {
    let (_home, mut context) = context();
    let old = context.memo(&memo(&[b"a"]), || Ok(b"old".to_vec())).unwrap();
    context.fresh = true;
    let new = context.memo(&memo(&[b"a"]), || Ok(b"new".to_vec())).unwrap();
    assert_ne!(new, old);
    context.fresh = false;
    let found = context.memo(&memo(&[b"a"]), || Err(StageError::new("computed again")));
    assert_eq!(found.unwrap(), new);
}

#[test]
fn a_failure_is_not_remembered() {
    let (_home, context) = context();
    let failed = context.memo(&memo(&[b"a"]), || Err(StageError::new("no rows")));
    assert_eq!(failed.unwrap_err().message, "no rows");
    assert_eq!(context.given().known(&memo(&[b"a"])).unwrap(), None);
    context.memo(&memo(&[b"a"]), || Ok(Vec::new())).unwrap();
}

#[test]
fn a_cancelled_stage_finds_memos_but_computes_none() {
    let (_home, context) = context();
    context.memo(&memo(&[b"a"]), || Ok(Vec::new())).unwrap();
    context.cancel.cancel();
    context.memo(&memo(&[b"a"]), || Ok(b"other".to_vec())).unwrap();
    assert!(context.memo(&memo(&[b"b"]), || Ok(Vec::new())).is_err());
}

#[test]
fn a_share_counts_what_is_known() {
    let (_home, context) = context();
    let memos = [memo(&[b"a"]), memo(&[b"b"]), memo(&[b"c"])];
    context.memo(&memos[1], || Ok(Vec::new())).unwrap();
    let share = Share::of_memos("partitions", &context.given(), &memos).unwrap();
    assert_eq!(share, Share::new("partitions", 1, 3));
    assert_eq!(share.to_string(), "1 of 3 partitions");
    assert_eq!(context.memos.counts(), (0, 1), "a plan asks for nothing");
}

fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(0_u8..3, 0..3), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Parts that differ, also only in where one ends, have different keys.
    #[test]
    fn a_key_tells_all_parts_apart(a in parts(), b in parts()) {
        let key = |name, parts: &[Vec<u8>]| memo_key(name,
            &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        prop_assert_eq!(key("test v1", &a) == key("test v1", &b), a == b);
        prop_assert_ne!(key("test v1", &a), key("test v2", &a));
    }
}
