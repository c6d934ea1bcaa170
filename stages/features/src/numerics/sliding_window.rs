//! Sliding windows that are used before they are full, as in stockstats: the last values, and aggregates of
//! them.

use super::aggregate::Aggregate;
use super::state::{StateVisitor, Stateful};
use std::marker::PhantomData;

/// The last `n` values.
#[derive(Clone, Debug)]
pub(super) struct RingBuffer {
    values: Vec<f64>,
    at: usize,
}

impl Stateful for RingBuffer {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.numbers(&mut self.values);
        visitor.count(&mut self.at, self.values.len() - 1);
    }
}

impl RingBuffer {
    /// A buffer of `n` zeros.
    pub(super) fn new(n: usize) -> Self {
        Self {
            values: vec![0.0; n.max(1)],
            at: 0,
        }
    }

    /// Stores a value. Returns the one that it replaces, from `n` values ago.
    #[inline(always)]
    pub(super) fn replace(&mut self, value: f64) -> f64 {
        let old = std::mem::replace(&mut self.values[self.at], value);
        self.at += 1;
        if self.at == self.values.len() {
            self.at = 0;
        }
        old
    }

    /// The oldest value.
    #[inline(always)]
    pub(super) fn oldest(&self) -> f64 {
        self.values[self.at]
    }

    /// The values, in an order that is not chronological.
    #[inline(always)]
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }
}

/// The aggregate of the last `n` values, or of as many as there are, computed without subtraction so that
/// rounding errors do not accumulate: values are grouped into blocks of `n`, and each window is a suffix of
/// one block and a prefix of the next.
#[derive(Clone, Debug)]
pub(super) struct SlidingWindow<A, const V: usize, const T: usize> {
    values: Vec<[f64; V]>,
    /// The aggregates of the suffixes of the previous block.
    suffixes: Vec<[f64; T]>,
    /// The aggregate of the current block so far.
    prefix: [f64; T],
    at: usize,
    full: bool,
    kind: PhantomData<A>,
}

impl<A: Aggregate<V, T>, const V: usize, const T: usize> Stateful for SlidingWindow<A, V, T> {
    /// The state consists of the values alone: those before index `at` belong to the current block, the
    /// others to the previous block and are still in the window.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        for value in &mut self.values {
            visitor.numbers(value);
        }
        visitor.count(&mut self.at, self.values.len() - 1);
        visitor.flag(&mut self.full);
        if visitor.is_load() {
            for i in 0..self.at {
                self.extend(i);
            }
            self.fill_suffixes(self.at);
        }
    }
}

impl<A: Aggregate<V, T>, const V: usize, const T: usize> SlidingWindow<A, V, T> {
    pub(super) fn new(n: usize) -> Self {
        Self {
            values: vec![[0.0; V]; n],
            suffixes: vec![[0.0; T]; n],
            prefix: [0.0; T],
            at: 0,
            full: false,
            kind: PhantomData,
        }
    }

    /// Adds a value. Returns the aggregate of the window and the number of values in it.
    #[inline(always)]
    pub(super) fn partial(&mut self, value: [f64; V]) -> ([f64; T], f64) {
        self.values[self.at] = value;
        self.extend(self.at);
        self.at += 1;
        let (total, count) = match self.suffixes.get(self.at) {
            Some(suffix) if self.full => {
                let (mut total, before) = (*suffix, self.values.len() - self.at);
                A::join(&mut total, before as f64, &self.prefix, self.at as f64);
                (total, self.values.len())
            }
            _ => (self.prefix, self.at),
        };
        if self.at == self.values.len() {
            self.full = true;
            self.fill_suffixes(0);
            self.at = 0;
        }
        (total, count as f64)
    }

    /// Extends the prefix by value `i` of the current block.
    #[inline(always)]
    fn extend(&mut self, i: usize) {
        let mut own = [0.0; T];
        A::of(&self.values[i], &mut own);
        if i == 0 {
            self.prefix = own;
        } else {
            A::join(&mut self.prefix, i as f64, &own, 1.0);
        }
    }

    /// Computes the aggregates of the suffixes from value `from` on.
    fn fill_suffixes(&mut self, from: usize) {
        let n = self.values.len();
        for i in (from..n).rev() {
            let mut own = [0.0; T];
            A::of(&self.values[i], &mut own);
            if i + 1 < n {
                A::join(&mut own, 1.0, &self.suffixes[i + 1], (n - i - 1) as f64);
            }
            self.suffixes[i] = own;
        }
    }
}
