//! The state of a transformer between two steps of an environment, as a row of floats.

use super::shape::Transformer;
use crate::kernels::attention::LANES;

/// The parts of a row: three counters; a ring of the last n_layers x (window - 1) observations; and, for each
/// block, the keys (transposed) and values of the last steps, in a buffer of twice the window that is moved
/// to its front when it is full, so that the steps a step attends to are contiguous.
///
/// Keys and values are those of the parameters that computed them: [`crate::Model::refresh`] computes them
/// again from the observations when the parameters have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    obs_dim: usize,
    d: usize,
    window: usize,
    /// The number of observations in the ring.
    pub(crate) history: usize,
    layers: usize,
}

impl Transformer {
    /// The layout of the recurrent state for environments whose observations have `obs_dim` elements.
    pub fn state(&self, obs_dim: usize) -> State {
        State::new(self, obs_dim)
    }
}

/// The counter of this episode's steps in the ring.
const AGE: usize = 0;
/// The counter that holds the index in the ring of the next observation.
const HEAD: usize = 1;
/// The counter that holds the index in the buffers of the next key and value.
const AT: usize = 2;
const COUNTERS: usize = 3;

impl State {
    fn new(transformer: &Transformer, obs_dim: usize) -> Self {
        Self {
            obs_dim,
            d: transformer.d_model,
            window: transformer.window,
            history: transformer.history(),
            layers: transformer.n_layers,
        }
    }

    /// S, the number of floats in a state.
    pub fn len(&self) -> usize {
        COUNTERS + self.history * self.obs_dim + self.layers * self.block_len()
    }

    /// Always false: a state has at least its counters.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The number of columns of a buffer of keys, padded for reads of whole vectors.
    pub(crate) fn key_stride(&self) -> usize {
        (2 * self.window).next_multiple_of(LANES) + LANES
    }

    fn block_len(&self) -> usize {
        self.d * (self.key_stride() + 2 * self.window)
    }

    /// The number of past steps of this episode that are known.
    pub(crate) fn age(&self, row: &[f32]) -> usize {
        (row[AGE] as usize).min(self.history)
    }

    /// The observation `ago` steps before the next one; 1 is the last.
    pub(crate) fn past<'a>(&self, row: &'a [f32], ago: usize) -> &'a [f32] {
        let slot = (row[HEAD] as usize + self.history - ago) % self.history;
        &row[COUNTERS + slot * self.obs_dim..][..self.obs_dim]
    }

    /// Begins an episode.
    pub(crate) fn start(&self, row: &mut [f32]) {
        row[AGE] = 0.0;
    }

    /// The keys `[d, key_stride]` and values `[2 W, d]` of a block.
    pub(crate) fn buffers<'a>(&self, row: &'a mut [f32], block: usize) -> (&'a mut [f32], &'a mut [f32]) {
        let from = COUNTERS + self.history * self.obs_dim + block * self.block_len();
        row[from..from + self.block_len()].split_at_mut(self.d * self.key_stride())
    }

    /// Makes room for another step, and returns the index of its keys and values.
    pub(crate) fn room(&self, row: &mut [f32]) -> usize {
        let at = row[AT] as usize;
        if at < 2 * self.window {
            return at;
        }
        let (d, stride, memory) = (self.d, self.key_stride(), self.window - 1);
        for block in 0..self.layers {
            let (keys, values) = self.buffers(row, block);
            for keys in keys.chunks_exact_mut(stride) {
                keys.copy_within(at - memory..at, 0);
            }
            values.copy_within((at - memory) * d..at * d, 0);
        }
        row[AT] = memory as f32;
        memory
    }

    /// Stores a step's keys and values `[2 d]`.
    pub(crate) fn store(&self, row: &mut [f32], block: usize, at: usize, key_value: &[f32]) {
        let (d, stride) = (self.d, self.key_stride());
        let (keys, values) = self.buffers(row, block);
        for (keys, &key) in keys.chunks_exact_mut(stride).zip(&key_value[..d]) {
            keys[at] = key;
        }
        values[at * d..(at + 1) * d].copy_from_slice(&key_value[d..]);
    }

    /// Stores the observation of a step whose keys and values have been stored at `at`.
    pub(crate) fn push(&self, row: &mut [f32], obs: &[f32], at: usize) {
        row[AT] = (at + 1) as f32;
        if self.history == 0 {
            return;
        }
        let head = row[HEAD] as usize % self.history;
        row[COUNTERS + head * self.obs_dim..][..self.obs_dim].copy_from_slice(obs);
        row[HEAD] = ((head + 1) % self.history) as f32;
        row[AGE] = (self.age(row) + 1).min(self.history) as f32;
    }

    /// Records that the buffers hold the last W - 1 steps, at their front, and nothing else.
    pub(crate) fn refilled(&self, row: &mut [f32]) {
        row[AT] = (self.window - 1) as f32;
    }

    /// The index at which [`State::refilled`] expects the step that lies `ago` steps before the next.
    pub(crate) fn refill_at(&self, ago: usize) -> usize {
        self.window - 1 - ago
    }
}
