//! What the indicators by stockstats remember of the last few values, or of as many as there are: the values, their sums, their extremes.

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
    #[inline(always)]
    pub fn replace(&mut self, value: f64) -> f64 {
        let old = std::mem::replace(&mut self.values[self.at], value);
        self.at += 1;
        if self.at == self.values.len() {
            self.at = 0;
        }
        old
    }

    /// The oldest value.
    #[inline(always)]
    pub fn oldest(&self) -> f64 {
        self.values[self.at]
    }

    /// The values in the order of their places, which is that of time only by chance.
    #[inline(always)]
    pub fn places(&self) -> &[f64] {
        &self.values
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.numbers(&mut self.values);
        memory.count(&mut self.at, self.values.len() - 1);
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

    /// Takes a value; the total of the last `n`, or of as many as there are.
    #[inline(always)]
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

    #[inline(always)]
    fn of([value]: [f64; 1]) -> Self {
        Self { count: 1.0, sum: value }
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

impl Spread {
    /// The sample variance, of two values or more.
    #[inline(always)]
    pub fn variance(self) -> Option<f64> {
        (self.count > 1.0).then(|| self.squares / (self.count - 1.0))
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
