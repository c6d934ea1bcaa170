//! Access to the values that precede a block of rows.

use super::state::{StateVisitor, Stateful};

/// A block of values with the `length` values before it, contiguous in memory, so that windows across both
/// are slices.
#[derive(Clone, Debug)]
pub(super) struct Lookback {
    values: Vec<f64>,
    length: usize,
}

impl Stateful for Lookback {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visit_last(&mut self.values, self.length, visitor);
    }
}

impl Lookback {
    pub(super) fn new(length: usize) -> Self {
        Self {
            values: Vec::new(),
            length,
        }
    }

    /// Appends the next block. Returns the `length` values before it (fewer at the start), followed by the
    /// block.
    #[inline(always)]
    pub(super) fn take(&mut self, block: &[f64]) -> &[f64] {
        let dropped = self.values.len().saturating_sub(self.length);
        self.values.drain(..dropped);
        self.values.extend_from_slice(block);
        &self.values
    }
}

/// The values `n` rows before those of a block.
#[derive(Clone, Debug)]
pub(super) struct Lag {
    /// The last `n` values before the block, or as many as there are so far.
    values: Vec<f64>,
    n: usize,
}

impl Stateful for Lag {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visit_last(&mut self.values, self.n, visitor);
    }
}

impl Lag {
    pub(super) fn new(n: usize) -> Self {
        Self { values: Vec::new(), n }
    }

    /// Appends a block, once its [`pieces`](Self::pieces) are no longer needed.
    #[inline(always)]
    pub(super) fn take(&mut self, block: &[f64]) {
        let new = &block[block.len().saturating_sub(self.n)..];
        let dropped = (self.values.len() + new.len()).saturating_sub(self.n);
        self.values.drain(..dropped);
        self.values.extend_from_slice(new);
    }

    /// The number of the block's first rows without a lagged value, and the lagged values of the others in
    /// two pieces, from before the block and from the block itself, each with the index of its first row in
    /// the block.
    #[inline(always)]
    pub(super) fn pieces<'a>(&'a self, block: &'a [f64]) -> (usize, [(usize, &'a [f64]); 2]) {
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

/// Saves or restores the last `n` values, or as many as there are so far.
fn visit_last(values: &mut Vec<f64>, n: usize, visitor: &mut StateVisitor<'_>) {
    let mut kept = values.len().min(n);
    let mut last = vec![0.0; n];
    last[n - kept..].copy_from_slice(&values[values.len() - kept..]);
    visitor.numbers(&mut last);
    visitor.count(&mut kept, n);
    *values = last.split_off(n - kept);
}

/// The value of the previous row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Previous {
    value: f64,
    known: bool,
}

impl Stateful for Previous {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.number(&mut self.value);
        visitor.flag(&mut self.known);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.known
    }
}

impl Previous {
    /// Stores a value. Returns the previous one, if there is one.
    #[inline(always)]
    pub(super) fn next(&mut self, value: f64) -> Option<f64> {
        let before = std::mem::replace(&mut self.value, value);
        std::mem::replace(&mut self.known, true).then_some(before)
    }
}
