//! Memos: sub-computations of a stage, cached in the store under keys of their own.
//!
//! A stage makes each [`Memo`] by one function, which both [`StageKind::run`](crate::StageKind::run) and
//! [`StageKind::cached_share`](crate::StageKind::cached_share) call, so that a plan and a run look up the
//! same keys.

use crate::error::StageError;
use crate::input::{Input, Source};
use cache::parallel::locked;
use cache::{BlobRef, KeyHasher, MemoKey, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sub-computation: its key, and its name in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    /// The key.
    pub key: MemoKey,
    /// The memo's name in logs, such as `SPX/2019-05-01_2019-05-31 rsi_14`.
    pub label: String,
}

impl Memo {
    /// The memo of a computation: `name` is the computation with its version (`greeks/analytic v1`), `parts`
    /// is everything that the result depends on, `label` the memo's name in logs.
    pub fn new(name: &str, parts: &[&[u8]], label: impl Into<String>) -> Self {
        Self {
            key: memo_key(name, parts),
            label: label.into(),
        }
    }
}

/// The key of a sub-computation.
pub fn memo_key(name: &str, parts: &[&[u8]]) -> MemoKey {
    parts
        .iter()
        .fold(KeyHasher::new("runner 2026-11 memo v1").field(name), |hasher, part| {
            hasher.field(part)
        })
        .memo_key()
}

/// The inputs of a stage and the store, for looking up cached results: computes nothing and writes nothing.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The store.
    pub store: &'a Store,
    /// The inputs, by port.
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    /// The source files of the action, as [`crate::StageKind::sources`] named them.
    pub sources: &'a [Source],
}

impl<'a> Given<'a> {
    /// The artifact at an input port that takes exactly one.
    pub fn input(&self, port: &str) -> Result<&'a Input, StageError> {
        self.optional(port)
            .ok_or_else(|| StageError::new(format!("input `{port}` is not connected")))
    }

    /// The artifact at an optional port.
    pub fn optional(&self, port: &str) -> Option<&'a Input> {
        self.list(port).first()
    }

    /// The artifacts at a port that takes a list.
    pub fn list(&self, port: &str) -> &'a [Input] {
        self.inputs.get(port).map_or(&[], Vec::as_slice)
    }

    /// The cached value of a memo; `None` if it is not cached.
    pub fn known(&self, memo: &Memo) -> Result<Option<BlobRef>, StageError> {
        Ok(self.store.peek_memo(memo.key)?)
    }
}

/// The share of a stage's work that is cached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The unit of work, in the plural: `files`, `partitions`, `columns` (one feature in one partition),
    /// `steps`.
    pub unit: String,
    /// The number of cached units.
    pub cached: u64,
    /// The number of all units.
    pub total: u64,
}

impl Share {
    /// A share of `cached` out of `total` units.
    pub fn new(unit: &str, cached: u64, total: u64) -> Self {
        Self {
            unit: unit.to_owned(),
            cached,
            total,
        }
    }

    /// The share of the given memos that is cached.
    pub fn of_memos<'m>(
        unit: &str,
        given: &Given<'_>,
        memos: impl IntoIterator<Item = &'m Memo>,
    ) -> Result<Self, StageError> {
        let mut share = Self::new(unit, 0, 0);
        for memo in memos {
            share.cached += u64::from(given.known(memo)?.is_some());
            share.total += 1;
        }
        Ok(share)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.cached, self.total, self.unit)
    }
}

/// The memo look-ups of one action: the number of hits, and the memos that were computed.
#[derive(Debug, Default)]
pub struct MemoLog {
    hits: AtomicU64,
    computed: Mutex<Vec<String>>,
}

impl MemoLog {
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn computed(&self, label: &str) {
        locked(&self.computed).push(label.to_owned());
    }

    /// The number of hits and the number of look-ups.
    pub fn counts(&self) -> (u64, u64) {
        let hits = self.hits.load(Ordering::Relaxed);
        (hits, hits + locked(&self.computed).len() as u64)
    }

    /// The labels of the memos that were computed, sorted because their order among threads varies.
    pub fn names(&self) -> Vec<String> {
        let mut names = locked(&self.computed).clone();
        names.sort();
        names
    }
}
