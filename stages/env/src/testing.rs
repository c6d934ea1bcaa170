//! What the tests of this crate share.

use cache::{ActionKey, Store};
use stages_core::event::Silent;
use stages_core::{CancelToken, Context, Input};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A context over a store in `dir`.
pub(crate) fn context(dir: &Path, inputs: BTreeMap<String, Vec<Input>>) -> Context {
    Context {
        key: ActionKey::from_bytes([0; 32]),
        store: Store::open(dir).unwrap(),
        inputs,
        sources: Vec::new(),
        threads: 1,
        events: Arc::new(Silent),
        cancel: CancelToken::default(),
        fresh: false,
        memos: Default::default(),
        numerics_class: Default::default(),
    }
}
