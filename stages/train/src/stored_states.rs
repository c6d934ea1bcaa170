//! The states in which trainings stopped at `until`, in the cache: a longer training goes on from the
//! furthest one, where the checkpoint's directory is gone or is another machine's.
//!
//! Each is a memo by the checkpoint's key and its step. Trainings that stop at other steps find it by a
//! chain: a memo by the checkpoint's key and a step, 0 for the first, holds the next step with a state. A
//! chain that is broken, or that two trainings extend at once, costs time alone: whatever state a training
//! begins from, its result is the same.

use crate::checkpoint;
use crate::train_state::TrainState;
use cache::{Blob, BlobRef, MemoKey, Store};
use stages_core::{Context, StageError, memo_key};
use std::ops::RangeInclusive;

/// A training's state as bytes: its train state, and the training data that this does not hold, if any.
#[derive(Debug)]
pub(crate) struct SavedState {
    pub train_state: Vec<u8>,
    pub data: Option<Vec<u8>>,
}

impl SavedState {
    /// The length of the train state, the train state, and the data, as one.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let length = (self.train_state.len() as u64).to_le_bytes();
        [&length, &*self.train_state, self.data.as_deref().unwrap_or_default()].concat()
    }

    /// Decodes the train state and the data; `None` if the bytes are damaged or of another version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(TrainState, Option<&[u8]>)> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (state, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some((checkpoint::decode(state)?, (!data.is_empty()).then_some(data)))
    }
}

/// A train state to go on from, and the training data that it does not hold, if any.
pub(crate) type Resumed = (TrainState, Option<Vec<u8>>);

/// The bytes of a memo; `None` where they are gone, here and in a remote.
fn read(store: &Store, value: BlobRef) -> Result<Option<Blob>, StageError> {
    match store.blob(value.blob) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.is_healed_by_recomputing() => Ok(None),
        Err(err) => Err(err.into()),
    }
}

/// The stored states of trainings with one key of their checkpoints.
pub(crate) struct StoredStates {
    key: MemoKey,
}

impl StoredStates {
    pub(crate) fn new(key: MemoKey) -> Self {
        Self { key }
    }

    /// The key of the memo of the state at a step.
    fn state(&self, step: u64) -> MemoKey {
        memo_key("train state v1", &[self.key.as_bytes(), &step.to_le_bytes()])
    }

    /// The key of the memo that holds the first step after `step` with a state.
    fn next(&self, step: u64) -> MemoKey {
        memo_key("train state after v1", &[self.key.as_bytes(), &step.to_le_bytes()])
    }

    /// The steps with a state, in their order; `look` is [`Store::memo`] or [`Store::peek_memo`].
    pub(crate) fn steps(
        &self,
        store: &Store,
        look: impl Fn(&Store, MemoKey) -> cache::Result<Option<BlobRef>>,
    ) -> Result<Vec<u64>, StageError> {
        let mut steps = Vec::new();
        let mut last = 0;
        while let Some(value) = look(store, self.next(last))? {
            let Some(bytes) = read(store, value)? else { break };
            match bytes.first_chunk().map(|step| u64::from_le_bytes(*step)) {
                Some(step) if step > last => last = step,
                _ => break,
            }
            steps.push(last);
        }
        Ok(steps)
    }

    /// The furthest state at one of the `steps` that `accept` takes, with its training data.
    pub(crate) fn furthest(
        &self,
        context: &Context,
        steps: RangeInclusive<u64>,
        accept: impl Fn(&TrainState) -> bool,
    ) -> Result<Option<Resumed>, StageError> {
        let stored = match context.fresh {
            true => Vec::new(),
            false => self.steps(&context.store, Store::memo)?,
        };
        for step in stored.into_iter().rev().filter(|step| steps.contains(step)) {
            let Some(value) = context.store.memo(self.state(step))? else {
                continue;
            };
            let Some(bytes) = read(&context.store, value)? else {
                continue;
            };
            if let Some((state, data)) = SavedState::decode(&bytes)
                && accept(&state)
            {
                return Ok(Some((state, data.map(<[u8]>::to_vec))));
            }
        }
        Ok(None)
    }

    /// Stores the state at a step.
    pub(crate) fn put(&self, store: &Store, step: u64, state: &SavedState) -> Result<(), StageError> {
        let steps = self.steps(store, Store::memo)?;
        let at = steps.partition_point(|&other| other < step);
        if store.memo(self.state(step))?.is_none() {
            store.put_memo(self.state(step), store.put(&state.encode())?)?;
        }
        if steps.get(at) == Some(&step) {
            return Ok(());
        }
        let link = |from: u64, to: u64| -> Result<(), StageError> {
            Ok(store.put_memo(self.next(from), store.put(&to.to_le_bytes())?)?)
        };
        if let Some(&after) = steps.get(at) {
            link(step, after)?;
        }
        link(at.checked_sub(1).map_or(0, |before| steps[before]), step)
    }
}
