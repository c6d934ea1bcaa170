//! What indicators remember of the last few values: the values, their sums, their extremes.

use super::machine::Memory;

/// The last `n` values.
#[derive(Clone, Debug)]
pub struct Ring {
    values: Vec<f64>,
    at: usize,
}

impl Ring {
    /// Zeros.
    pub fn new(n: usize) -> Self {
        Self {
            values: vec![0.0; n.max(1)],
            at: 0,
        }
    }

    /// Takes a value, and gives the one that falls out: that of `n` values ago.
    #[inline]
    pub fn replace(&mut self, value: f64) -> f64 {
        let old = std::mem::replace(&mut self.values[self.at], value);
        self.at += 1;
        if self.at == self.values.len() {
            self.at = 0;
        }
        old
    }

    /// The oldest value.
    #[inline]
    pub fn oldest(&self) -> f64 {
        self.values[self.at]
    }

    /// The value that came `n` values before the last one.
    #[inline]
    pub fn ago(&self, n: usize) -> f64 {
        let length = self.values.len();
        let last = self.at + length - 1;
        let place = last - n;
        self.values[if place >= length { place - length } else { place }]
    }

    /// The values, the oldest first.
    pub fn in_order(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let (newer, older) = self.values.split_at(self.at);
        older.iter().chain(newer).copied()
    }

    /// The values in the order of their places, which is that of time only by chance.
    #[inline]
    pub fn places(&self) -> &[f64] {
        &self.values
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.numbers(&mut self.values);
        memory.count(&mut self.at, self.values.len() - 1);
    }
}

/// The value of `n` bars ago and the value of now.
#[derive(Clone, Debug)]
pub struct Lag {
    ring: Ring,
    seen: usize,
    n: usize,
}

impl Lag {
    pub fn new(n: usize) -> Self {
        Self {
            ring: Ring::new(n),
            seen: 0,
            n,
        }
    }

    /// Takes values and passes each, with that of `n` values before it, to `each`; a value that has none before it is passed over. `each` takes two
    /// slices of one length and where the first of them stands in `values`.
    #[inline]
    pub fn rows(&mut self, values: &[f64], mut each: impl FnMut(usize, &[f64], &[f64])) {
        // The first come after values that are remembered.
        let first = values.len().min(self.n);
        for (i, &value) in values[..first].iter().enumerate() {
            if let Some(old) = self.next(value) {
                each(i, &[value], &[old]);
            }
        }
        let rest = values.len() - first;
        each(first, &values[first..], &values[..rest]);
        for &value in &values[rest.max(first)..] {
            self.next(value);
        }
    }

    /// Takes a value and gives that of `n` values before it.
    #[inline]
    pub fn next(&mut self, value: f64) -> Option<f64> {
        let old = self.ring.replace(value);
        if self.seen < self.n {
            self.seen += 1;
            return None;
        }
        Some(old)
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        self.ring.visit(memory);
        memory.count(&mut self.seen, self.n);
    }
}

/// What values come to together: a sum of any kind, which need not be invertible.
pub trait Total: Copy {
    /// What is added up: `[f64; 1]` or `[f64; 2]`.
    type Value: Copy + AsMut<[f64]>;
    /// Zeros.
    const ZERO: Self::Value;
    /// Of no value.
    const NONE: Self;
    /// Of one value.
    fn of(value: Self::Value) -> Self;
    /// Of the values of `self`, and then those of `later`.
    fn and(self, later: Self) -> Self;
}

/// The total of the last `n` values without subtracting what falls out, so that no rounding stays behind: values come in blocks of `n`, and each window
/// is the end of one block and the beginning of the next.
#[derive(Clone, Debug)]
pub struct Sliding<T: Total> {
    values: Vec<T::Value>,
    /// Of the block before, from each of its places to its end.
    ends: Vec<T>,
    /// Of this block so far.
    beginning: T,
    at: usize,
    full: bool,
}

impl<T: Total> Sliding<T> {
    pub fn new(n: usize) -> Self {
        Self {
            values: vec![T::ZERO; n],
            ends: vec![T::NONE; n + 1],
            beginning: T::NONE,
            at: 0,
            full: false,
        }
    }

    /// Takes a value; the total, once there are `n`.
    #[inline]
    pub fn next(&mut self, value: T::Value) -> Option<T> {
        let total = self.partial(value);
        self.full.then_some(total)
    }

    /// Takes a value; the total of the last `n`, or of as many as there are.
    #[inline]
    pub fn partial(&mut self, value: T::Value) -> T {
        self.values[self.at] = value;
        self.beginning = self.beginning.and(T::of(value));
        self.at += 1;
        let total = self.ends[self.at].and(self.beginning);
        if self.at == self.values.len() {
            ends(&self.values, &mut self.ends);
            self.beginning = T::NONE;
            self.at = 0;
            self.full = true;
        }
        total
    }

    /// The values tell all: before `at` stand those of this block, from there on those of the block before, as far as they still count.
    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        for value in &mut self.values {
            memory.numbers(value.as_mut());
        }
        memory.count(&mut self.at, self.values.len() - 1);
        memory.flag(&mut self.full);
        if memory.loads() {
            let (this, before) = self.values.split_at(self.at);
            self.beginning = this.iter().fold(T::NONE, |total, &value| total.and(T::of(value)));
            if self.full {
                ends(before, &mut self.ends[self.at..]);
            }
        }
    }
}

/// The totals of values from each of their places to the end.
fn ends<T: Total>(values: &[T::Value], ends: &mut [T]) {
    let mut total = T::NONE;
    for (end, &value) in ends[..values.len()].iter_mut().zip(values).rev() {
        total = T::of(value).and(total);
        *end = total;
    }
}

/// The sum.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    pub count: f64,
    pub sum: f64,
}

impl Total for Sum {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self { count: 0.0, sum: 0.0 };

    #[inline]
    fn of([value]: [f64; 1]) -> Self {
        Self { count: 1.0, sum: value }
    }

    #[inline]
    fn and(self, later: Self) -> Self {
        Self {
            count: self.count + later.count,
            sum: self.sum + later.sum,
        }
    }
}

impl Sum {
    /// The arithmetic mean.
    #[inline]
    pub fn mean(self) -> f64 {
        self.sum / self.count
    }
}

/// How values are spread about their mean: nothing is lost where the spread is small beside the mean (T. F. Chan, G. H. Golub, R. J. LeVeque, 1979).
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub count: f64,
    pub mean: f64,
    /// The sum of squared distances from the mean.
    pub squares: f64,
}

impl Total for Spread {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self {
        count: 0.0,
        mean: 0.0,
        squares: 0.0,
    };

    #[inline]
    fn of([value]: [f64; 1]) -> Self {
        Self {
            count: 1.0,
            mean: value,
            squares: 0.0,
        }
    }

    #[inline]
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

impl Spread {
    /// The sample variance, of two values or more.
    #[inline]
    pub fn variance(self) -> Option<f64> {
        (self.count > 1.0).then(|| self.squares / (self.count - 1.0))
    }
}

/// The greatest of values; that of negated values is the least of them.
#[derive(Clone, Copy, Debug)]
pub struct Greatest(pub f64);

impl Total for Greatest {
    type Value = [f64; 1];
    const ZERO: [f64; 1] = [0.0];
    const NONE: Self = Self(f64::NEG_INFINITY);

    #[inline]
    fn of([value]: [f64; 1]) -> Self {
        Self(value)
    }

    #[inline]
    fn and(self, later: Self) -> Self {
        if later.0 >= self.0 { later } else { self }
    }
}

/// The highest and the lowest of bars.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub high: f64,
    pub low: f64,
}

impl Total for Range {
    type Value = [f64; 2];
    const ZERO: [f64; 2] = [0.0; 2];
    const NONE: Self = Self {
        high: f64::NEG_INFINITY,
        low: f64::INFINITY,
    };

    #[inline]
    fn of([high, low]: [f64; 2]) -> Self {
        Self { high, low }
    }

    #[inline]
    fn and(self, later: Self) -> Self {
        Self {
            high: if later.high >= self.high { later.high } else { self.high },
            low: if later.low <= self.low { later.low } else { self.low },
        }
    }
}

/// How many values there were, and where among them, from 0 on, the latest of the highest highs and of the lowest lows is.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub count: f64,
    range: Range,
    pub high: f64,
    pub low: f64,
}

impl Total for Places {
    type Value = [f64; 2];
    const ZERO: [f64; 2] = [0.0; 2];
    const NONE: Self = Self {
        count: 0.0,
        range: Range::NONE,
        high: 0.0,
        low: 0.0,
    };

    #[inline]
    fn of(value: [f64; 2]) -> Self {
        Self {
            count: 1.0,
            range: Range::of(value),
            high: 0.0,
            low: 0.0,
        }
    }

    #[inline]
    fn and(self, later: Self) -> Self {
        let (high, low) = (later.range.high >= self.range.high, later.range.low <= self.range.low);
        Self {
            count: self.count + later.count,
            range: self.range.and(later.range),
            high: if high { self.count + later.high } else { self.high },
            low: if low { self.count + later.low } else { self.low },
        }
    }
}
