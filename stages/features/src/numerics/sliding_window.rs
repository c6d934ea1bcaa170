//! Sliding windows that are used before they are full, as in stockstats: the last values, their sums and
//! their extremes.

use super::state::{StateVisitor, Stateful};

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

/// An associative aggregate of values, which need not be invertible.
pub(super) trait Monoid: Copy {
    /// The values: `[f64; 1]` or `[f64; 2]`.
    type Value: Copy + AsMut<[f64]>;
    /// A value of zeros.
    const ZERO: Self::Value;
    /// The aggregate of no values.
    const NONE: Self;
    /// The aggregate of one value.
    fn of(value: Self::Value) -> Self;
    /// The aggregate of the values of `self` followed by those of `later`.
    fn and(self, later: Self) -> Self;
}

/// The aggregate of the last `n` values, computed without subtraction so that rounding errors do not
/// accumulate: values are grouped into blocks of `n`, and each window is a suffix of one block and a prefix
/// of the next.
#[derive(Clone, Debug)]
pub(super) struct SlidingWindow<T: Monoid> {
    values: Vec<T::Value>,
    /// The aggregates of the suffixes of the previous block.
    suffixes: Vec<T>,
    /// The aggregate of the current block so far.
    prefix: T,
    at: usize,
    full: bool,
}

impl<T: Monoid> Stateful for SlidingWindow<T> {
    /// The state consists of the values alone: those before index `at` belong to the current block, the
    /// others to the previous block and are still in the window.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        for value in &mut self.values {
            visitor.numbers(value.as_mut());
        }
        visitor.count(&mut self.at, self.values.len() - 1);
        visitor.flag(&mut self.full);
        if visitor.is_load() {
            let (this, before) = self.values.split_at(self.at);
            self.prefix = this.iter().fold(T::NONE, |total, &value| total.and(T::of(value)));
            if self.full {
                fill_suffixes(before, &mut self.suffixes[self.at..]);
            }
        }
    }
}

impl<T: Monoid> SlidingWindow<T> {
    pub(super) fn new(n: usize) -> Self {
        Self {
            values: vec![T::ZERO; n],
            suffixes: vec![T::NONE; n + 1],
            prefix: T::NONE,
            at: 0,
            full: false,
        }
    }

    /// Adds a value. Returns the aggregate of the last `n` values, or of as many as there are.
    #[inline(always)]
    pub(super) fn partial(&mut self, value: T::Value) -> T {
        self.values[self.at] = value;
        self.prefix = self.prefix.and(T::of(value));
        self.at += 1;
        let total = self.suffixes[self.at].and(self.prefix);
        if self.at == self.values.len() {
            fill_suffixes(&self.values, &mut self.suffixes);
            self.prefix = T::NONE;
            self.at = 0;
            self.full = true;
        }
        total
    }
}

/// Computes the aggregates of all suffixes of the values.
fn fill_suffixes<T: Monoid>(values: &[T::Value], suffixes: &mut [T]) {
    let mut total = T::NONE;
    for (suffix, &value) in suffixes[..values.len()].iter_mut().zip(values).rev() {
        total = T::of(value).and(total);
        *suffix = total;
    }
}

/// The sum and the number of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub count: f64,
    pub sum: f64,
}

impl Monoid for Sum {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self { count: 0.0, sum: 0.0 };

    #[inline(always)]
    fn of([value]: [f64; 1]) -> Self {
        Self {
            count: 1.0,
            sum: value,
        }
    }

    #[inline(always)]
    fn and(self, later: Self) -> Self {
        Self {
            count: self.count + later.count,
            sum: self.sum + later.sum,
        }
    }
}

impl Sum {
    /// The arithmetic mean.
    #[inline(always)]
    pub(super) fn mean(self) -> f64 {
        self.sum / self.count
    }
}

/// The mean and the sum of squared deviations, free of cancellation where the deviations are small beside the
/// mean (T. F. Chan, G. H. Golub, R. J. LeVeque, 1979).
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviations {
    pub count: f64,
    pub mean: f64,
    /// The sum of squared distances from the mean.
    pub squares: f64,
}

impl Monoid for Deviations {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self {
        count: 0.0,
        mean: 0.0,
        squares: 0.0,
    };

    #[inline(always)]
    fn of([value]: [f64; 1]) -> Self {
        Self {
            count: 1.0,
            mean: value,
            squares: 0.0,
        }
    }

    #[inline(always)]
    fn and(self, later: Self) -> Self {
        let count = self.count + later.count;
        if count == 0.0 {
            return Self::NONE;
        }
        let distance = later.mean - self.mean;
        let share = later.count / count;
        Self {
            count,
            mean: self.mean + distance * share,
            squares: self.squares + later.squares + distance * distance * self.count * share,
        }
    }
}

impl Deviations {
    /// The sample variance; `None` for fewer than two values.
    #[inline(always)]
    pub(super) fn variance(self) -> Option<f64> {
        (self.count > 1.0).then(|| self.squares / (self.count - 1.0))
    }
}

/// The highest high and the lowest low of bars.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    pub high: f64,
    pub low: f64,
}

impl Monoid for Extremes {
    type Value = [f64; 2];
    const ZERO: [f64; 2] = [0.0; 2];
    const NONE: Self = Self {
        high: f64::NEG_INFINITY,
        low: f64::INFINITY,
    };

    #[inline(always)]
    fn of([high, low]: [f64; 2]) -> Self {
        Self { high, low }
    }

    #[inline(always)]
    fn and(self, later: Self) -> Self {
        Self {
            high: if later.high >= self.high { later.high } else { self.high },
            low: if later.low <= self.low { later.low } else { self.low },
        }
    }
}
