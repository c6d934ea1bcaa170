//! What a stage runs in.

use crate::error::StageError;
use crate::event::Silent;
use crate::event::{EventSink, StageEvent};
use crate::input::{Input, Source};
use crate::memo::{Given, Memo, MemoLog};
use cache::{ActionKey, BlobRef, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Asks a running stage to stop.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a stage runs in: its inputs and sources, the store, and whoever listens.
pub struct Context {
    /// The action's key.
    pub key: ActionKey,
    /// The store.
    pub store: Store,
    /// The inputs, by port.
    pub inputs: BTreeMap<String, Vec<Input>>,
    /// The files it reads, as [`crate::StageKind::sources`] named them.
    pub sources: Vec<Source>,
    /// How many threads it may use. Rayon's current pool has as many.
    pub threads: usize,
    /// Whether it computes from nothing: memos and checkpoints of earlier work are not used, though new ones are kept.
    pub fresh: bool,
    /// Where its events go.
    pub events: Arc<dyn EventSink>,
    /// Whether it should stop.
    pub cancel: CancelToken,
    /// What was asked of the memos.
    pub memos: MemoLog,
    /// The numerics class of its results, where it is not the processor's: set by stages that compute on another device.
    pub numerics_class: OnceLock<String>,
}

impl Context {
    /// A context without inputs and sources, with one thread, to which nobody listens.
    pub fn new(key: ActionKey, store: Store) -> Self {
        Self {
            key,
            store,
            inputs: BTreeMap::new(),
            sources: Vec::new(),
            threads: 1,
            fresh: false,
            events: Arc::new(Silent),
            cancel: CancelToken::default(),
            memos: MemoLog::default(),
            numerics_class: OnceLock::new(),
        }
    }

    /// What it is given, to look at.
    pub fn given(&self) -> Given<'_> {
        Given {
            store: &self.store,
            inputs: &self.inputs,
            sources: &self.sources,
        }
    }

    /// The artifact at a port that takes one.
    ///
    /// # Errors
    /// When nothing is connected to it.
    pub fn input(&self, port: &str) -> Result<&Input, StageError> {
        self.given().input(port)
    }

    /// The artifact at an optional port.
    pub fn optional(&self, port: &str) -> Option<&Input> {
        self.given().optional(port)
    }

    /// The artifacts at a port that takes a list.
    pub fn list(&self, port: &str) -> &[Input] {
        self.given().list(port)
    }

    /// Says how far the stage is.
    pub fn progress(&self, done: u64, total: Option<u64>, message: impl Into<String>) {
        self.events.emit(StageEvent::Progress {
            done,
            total,
            message: message.into(),
        });
    }

    /// Reports a number to follow.
    pub fn metric(&self, name: &str, step: u64, value: f64) {
        self.events.emit(StageEvent::Metric {
            name: name.to_owned(),
            step,
            value,
        });
    }

    /// Writes a line to the stage's log.
    pub fn log(&self, line: impl Into<String>) {
        self.events.emit(StageEvent::Log { line: line.into() });
    }

    /// Fails with [`StageError::interrupted`] when the stage should stop. Call it at least a few times a second.
    ///
    /// # Errors
    /// When it should stop.
    pub fn check_cancelled(&self) -> Result<(), StageError> {
        if self.cancel.is_cancelled() {
            Err(StageError::interrupted())
        } else {
            Ok(())
        }
    }

    /// The result of a sub-computation, from the store if it is known (and the context is not [`Context::fresh`]).
    ///
    /// # Errors
    /// When it fails, or the store does.
    pub fn memo(
        &self,
        memo: &Memo,
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<BlobRef, StageError> {
        if !self.fresh
            && let Some(value) = self.store.memo(memo.key)?
        {
            self.memos.found();
            return Ok(value);
        }
        self.check_cancelled()?;
        self.memos.computed(&memo.label);
        let value = self.store.put(&compute()?)?;
        self.store.put_memo(memo.key, value)?;
        Ok(value)
    }
}
