//! The context that a stage runs in.

use crate::error::StageError;
use crate::event::Silent;
use crate::event::{EventSink, StageEvent};
use crate::input::{Input, Source};
use crate::memo::{Given, Memo, MemoLog};
use cache::{ActionKey, BlobRef, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A request to a running stage to stop.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Requests the stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs parts of a stage's work on other machines.
pub trait RunParts: Send + Sync {
    /// Runs each part by [`crate::StageKind::run_part`] on one of the machines, all at the same time, and
    /// waits for them. Their results are the memos that they make.
    ///
    /// # Errors
    /// The error of a part that failed.
    fn run(&self, parts: Vec<Value>) -> Result<(), StageError>;
}

/// The context that a stage runs in: its inputs and sources, the store, and the sink of its events.
pub struct Context {
    /// The action's key.
    pub key: ActionKey,
    /// The store.
    pub store: Store,
    /// The inputs, by port.
    pub inputs: BTreeMap<String, Vec<Input>>,
    /// The source files of the action, as [`crate::StageKind::sources`] named them.
    pub sources: Vec<Source>,
    /// The number of threads the stage may use: the size of rayon's current pool.
    pub threads: usize,
    /// True to compute everything anew: cached memos and checkpoints are not used, though new ones are
    /// stored.
    pub fresh: bool,
    /// The sink of the stage's events.
    pub events: Arc<dyn EventSink>,
    /// The token by which a running stage is asked to stop.
    pub cancel: CancelToken,
    /// The log of memo look-ups.
    pub memos: MemoLog,
    /// Other machines that run parts of the stage, for a kind with [`crate::StageKind::HAS_PARTS`].
    pub parts: Option<Arc<dyn RunParts>>,
    /// The numerics class of the stage's results, unless it is the CPU's: set by stages that compute on
    /// another device.
    pub numerics_class: OnceLock<String>,
}

impl Context {
    /// A context without inputs and sources, with one thread, whose events are discarded.
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
            parts: None,
            numerics_class: OnceLock::new(),
        }
    }

    /// The inputs and the store, for looking up cached results.
    pub fn given(&self) -> Given<'_> {
        Given {
            store: &self.store,
            inputs: &self.inputs,
            sources: &self.sources,
        }
    }

    /// The artifact at an input port that takes exactly one.
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

    /// Reports progress.
    pub fn progress(&self, done: u64, total: Option<u64>, message: impl Into<String>) {
        self.events.emit(StageEvent::Progress {
            done,
            total,
            message: message.into(),
        });
    }

    /// Reports a metric.
    pub fn metric(&self, name: &str, step: u64, value: f64) {
        self.events.emit(StageEvent::Metric {
            name: name.to_owned(),
            step,
            value,
        });
    }

    /// Emits a warning, with an optional remedy.
    pub fn warn(&self, message: impl Into<String>, hint: Option<&str>) {
        let (message, hint) = (message.into(), hint.map(str::to_owned));
        self.events.emit(StageEvent::Warning { message, hint });
    }

    /// Writes a line to the stage's log.
    pub fn log(&self, line: impl Into<String>) {
        self.events.emit(StageEvent::Log { line: line.into() });
    }

    /// Fails with [`StageError::interrupted`] when the stage should stop. Call it at least a few times a
    /// second.
    pub fn check_cancelled(&self) -> Result<(), StageError> {
        if self.cancel.is_cancelled() {
            Err(StageError::interrupted())
        } else {
            Ok(())
        }
    }

    /// The result of a sub-computation, from the store if it is cached (and the context is not
    /// [`Context::fresh`]).
    pub fn memo(
        &self,
        memo: &Memo,
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<BlobRef, StageError> {
        match self.cached(memo, |value| Ok(Some(value)))? {
            Some(value) => Ok(value),
            None => self.compute_memo(memo, compute),
        }
    }

    /// The cached value of a memo, as read by `accept`; `None` when it is not cached, when `accept` refuses
    /// it because blobs that it names are gone, or when the context is [`Context::fresh`].
    ///
    /// # Errors
    /// When `accept` fails, or the store does.
    pub fn cached<T>(
        &self,
        memo: &Memo,
        accept: impl FnOnce(BlobRef) -> Result<Option<T>, StageError>,
    ) -> Result<Option<T>, StageError> {
        if self.fresh {
            return Ok(None);
        }
        let Some(value) = self.store.memo(memo.key)? else {
            return Ok(None);
        };
        let accepted = accept(value)?;
        if accepted.is_some() {
            self.memos.hit();
        }
        Ok(accepted)
    }

    /// Computes the value of a memo and stores it.
    pub fn compute_memo(
        &self,
        memo: &Memo,
        compute: impl FnOnce() -> Result<Vec<u8>, StageError>,
    ) -> Result<BlobRef, StageError> {
        self.check_cancelled()?;
        self.memos.computed(&memo.label);
        let value = self.store.put(&compute()?)?;
        self.store.put_memo(memo.key, value)?;
        Ok(value)
    }
}
