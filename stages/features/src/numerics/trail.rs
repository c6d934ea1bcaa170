//! The rows before a block of rows.

use super::machine::Memory;

/// A block of values after the last `reach` values before it, in one piece, so that windows over both are slices.
#[derive(Clone, Debug)]
pub struct Trail {
    values: Vec<f64>,
    reach: usize,
}

impl Trail {
    pub fn new(reach: usize) -> Self {
        Self {
            values: Vec::new(),
            reach,
        }
    }

    /// Takes the next block: it and what stands before it, which is less than the reach at the beginning.
    #[inline(always)]
    pub fn take(&mut self, block: &[f64]) -> &[f64] {
        let dropped = self.values.len().saturating_sub(self.reach);
        self.values.drain(..dropped);
        self.values.extend_from_slice(block);
        &self.values
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        visit_last(&mut self.values, self.reach, memory);
    }
}

/// The values `n` rows before those of a block.
#[derive(Clone, Debug)]
pub struct Lag {
    /// The last `n` values before the block, or as many as there are.
    values: Vec<f64>,
    n: usize,
}

impl Lag {
    pub fn new(n: usize) -> Self {
        Self { values: Vec::new(), n }
    }

    /// Takes the block, once what it stands beside is no longer needed.
    #[inline(always)]
    pub fn take(&mut self, block: &[f64]) {
        let new = &block[block.len().saturating_sub(self.n)..];
        let dropped = (self.values.len() + new.len()).saturating_sub(self.n);
        self.values.drain(..dropped);
        self.values.extend_from_slice(new);
    }

    /// How many of the block's first rows have no old value; and the old values of the others in two pieces, each with where in the block its rows
    /// begin: those of before the block, and the block's own.
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

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        visit_last(&mut self.values, self.n, memory);
    }
}

/// Saves or restores the last `n` of values, or as many as there are.
fn visit_last(values: &mut Vec<f64>, n: usize, memory: &mut Memory<'_>) {
    let mut kept = values.len().min(n);
    let mut last = vec![0.0; n];
    last[n - kept..].copy_from_slice(&values[values.len() - kept..]);
    memory.numbers(&mut last);
    memory.count(&mut kept, n);
    *values = last.split_off(n - kept);
}

/// The value of the row before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last {
    value: f64,
    known: bool,
}

impl Last {
    /// Takes a value; the one before it, if there is one.
    #[inline(always)]
    pub fn next(&mut self, value: f64) -> Option<f64> {
        let known = std::mem::replace(&mut self.known, true);
        let before = self.replace(value);
        known.then_some(before)
    }

    /// Whether there is a value before the next.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// As [`next`](Self::next), where there is one.
    #[inline(always)]
    pub fn replace(&mut self, value: f64) -> f64 {
        std::mem::replace(&mut self.value, value)
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.number(&mut self.value);
        memory.flag(&mut self.known);
    }
}
