//! Lookback: the values before those of a block of rows.

use super::state::{StateVisitor, Stateful, state};

/// A block of values after the last `length` values before it, contiguous, so that windows over both are
/// slices.
#[derive(Clone, Debug)]
pub struct Lookback {
    values: Vec<f64>,
    length: usize,
}

impl Stateful for Lookback {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visit_last(&mut self.values, self.length, visitor);
    }
}

impl Lookback {
    pub fn new(length: usize) -> Self {
        Self {
            values: Vec::new(),
            length,
        }
    }

    /// Takes the next block. Returns the values before it, fewer than `length` at the beginning, and the
    /// block.
    #[inline(always)]
    pub fn take(&mut self, block: &[f64]) -> &[f64] {
        let dropped = self.values.len().saturating_sub(self.length);
        self.values.drain(..dropped);
        self.values.extend_from_slice(block);
        &self.values
    }
}

/// The values `n` rows before those of a block.
#[derive(Clone, Debug)]
pub struct Lag {
    /// The last `n` values before the block, or as many as there are.
    values: Vec<f64>,
    n: usize,
}

impl Stateful for Lag {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visit_last(&mut self.values, self.n, visitor);
    }
}

impl Lag {
    pub fn new(n: usize) -> Self {
        Self { values: Vec::new(), n }
    }

    /// Takes the block, once its [`pieces`](Self::pieces) are no longer needed.
    #[inline(always)]
    pub fn take(&mut self, block: &[f64]) {
        let new = &block[block.len().saturating_sub(self.n)..];
        let dropped = (self.values.len() + new.len()).saturating_sub(self.n);
        self.values.drain(..dropped);
        self.values.extend_from_slice(new);
    }

    /// The number of the block's first rows without a lagged value, and the lagged values of the others in
    /// two pieces, from before the block and from the block itself, each with the index of its first row in
    /// the block.
    #[inline(always)]
    pub fn pieces<'a>(&'a self, block: &'a [f64]) -> (usize, [(usize, &'a [f64]); 2]) {
        let total = (self.values.len() + block.len()).saturating_sub(self.n);
        let before = total.min(self.values.len());
        let missing = block.len() - total;
        let pieces = [
            (missing, &self.values[..before]),
            (missing + before, &block[..total - before]),
        ];
        (missing, pieces)
    }
}

/// Saves or restores the last `n` values, or as many as there are.
fn visit_last(values: &mut Vec<f64>, n: usize, visitor: &mut StateVisitor<'_>) {
    let mut kept = values.len().min(n);
    let mut last = vec![0.0; n];
    last[n - kept..].copy_from_slice(&values[values.len() - kept..]);
    visitor.numbers(&mut last);
    visitor.count(&mut kept, n);
    *values = last.split_off(n - kept);
}

/// The value of the row before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Previous {
    value: f64,
    known: bool,
}

state!(Previous { value, known });

impl Previous {
    /// Takes a value. Returns the one before it, if there is one.
    #[inline(always)]
    pub fn next(&mut self, value: f64) -> Option<f64> {
        let known = std::mem::replace(&mut self.known, true);
        let before = self.replace(value);
        known.then_some(before)
    }

    /// Returns whether there is a value before the next.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// As [`next`](Self::next), once there is one.
    #[inline(always)]
    pub fn replace(&mut self, value: f64) -> f64 {
        std::mem::replace(&mut self.value, value)
    }
}
