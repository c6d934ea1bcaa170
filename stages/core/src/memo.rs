//! Memos: sub-computations of a stage, remembered in the store under keys of their own.
//!
//! A stage makes each [`Memo`] by one function, which both [`StageKind::run`](crate::StageKind::run) and
//! [`StageKind::cached_share`](crate::StageKind::cached_share) call, so that what a plan says is what a run finds.

use crate::error::StageError;
use crate::input::{Input, Source};
use cache::{BlobRef, KeyHasher, MemoKey, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A sub-computation: its key, and what it is called in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    /// The key.
    pub key: MemoKey,
    /// What it computes, such as `SPX/2019-05-01_2019-05-31 rsi_14`.
    pub label: String,
}

impl Memo {
    /// `name` says which computation it is and in which version (`greeks/analytic v1`); `parts` is all that it depends on;
    /// `label` is what people call it.
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

/// What a stage is given, to look at: it computes nothing with it and writes nothing.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The store.
    pub store: &'a Store,
    /// The inputs, by port.
    pub inputs: &'a BTreeMap<String, Vec<Input>>,
    /// The files it reads, as [`crate::StageKind::sources`] named them.
    pub sources: &'a [Source],
}

impl<'a> Given<'a> {
    /// The artifact at a port that takes one.
    ///
    /// # Errors
    /// When nothing is connected to it.
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

    /// The value of a memo, if it is known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn known(&self, memo: &Memo) -> Result<Option<BlobRef>, StageError> {
        Ok(self.store.peek_memo(memo.key)?)
    }
}

/// How much of a stage's work is in the store already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What is counted, in the plural: `files`, `partitions`, `columns` (one feature in one partition), `steps`.
    pub unit: String,
    /// How many are known.
    pub cached: u64,
    /// How many there are.
    pub total: u64,
}

impl Share {
    /// `cached` of `total` units.
    pub fn new(unit: &str, cached: u64, total: u64) -> Self {
        Self {
            unit: unit.to_owned(),
            cached,
            total,
        }
    }

    /// How many of these memos are known.
    ///
    /// # Errors
    /// When the store cannot be read.
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

/// What was asked of the memos in one action: how many were found, and which were computed.
#[derive(Debug, Default)]
pub struct MemoLog {
    found: AtomicU64,
    computed: Mutex<Vec<String>>,
}

impl MemoLog {
    pub(crate) fn found(&self) {
        self.found.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn computed(&self, label: &str) {
        self.labels().push(label.to_owned());
    }

    fn labels(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.computed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many were found, and how many were asked for.
    pub fn counts(&self) -> (u64, u64) {
        let found = self.found.load(Ordering::Relaxed);
        (found, found + self.labels().len() as u64)
    }

    /// What was computed, sorted: the order in which threads got to it says nothing.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.labels().clone();
        names.sort();
        names
    }
}
