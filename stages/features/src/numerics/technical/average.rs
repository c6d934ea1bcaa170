//! Moving averages, with TA-Lib's seeds and order of operations.

use crate::numerics::machine::{Machine, Memory};
use crate::numerics::rolling::{Lag, Ring};

/// The simple average: a running sum, which loses what falls out after each value.
#[derive(Clone, Debug)]
pub struct Simple {
    ring: Ring,
    sum: f64,
    missing: usize,
    n: usize,
}

impl Simple {
    pub fn new(n: usize) -> Self {
        Self {
            ring: Ring::new(n),
            sum: 0.0,
            missing: n - 1,
            n,
        }
    }
}

impl Machine<1, 1> for Simple {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        self.sum += value;
        self.ring.replace(value);
        if self.missing > 0 {
            self.missing -= 1;
            return None;
        }
        let mean = self.sum / self.n as f64;
        self.sum -= self.ring.oldest();
        Some([mean])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.ring.visit(memory);
        memory.number(&mut self.sum);
        memory.count(&mut self.missing, self.n);
    }
}

/// The exponential average `k v + (1 - k) a`, `k = 2 / (n + 1)`, which begins with the mean of the first `n`.
#[derive(Clone, Debug)]
pub struct Exponential {
    average: f64,
    missing: usize,
    n: usize,
    keep: f64,
}

impl Exponential {
    pub fn new(n: usize) -> Self {
        Self {
            average: 0.0,
            missing: n,
            n,
            keep: (n as f64 - 1.0) / (n as f64 + 1.0),
        }
    }

    #[inline]
    pub fn step(&mut self, value: f64) -> Option<f64> {
        if self.missing == 0 {
            self.average = (1.0 - self.keep) * value + self.keep * self.average;
        } else {
            self.average += value;
            self.missing -= 1;
            if self.missing > 0 {
                return None;
            }
            self.average /= self.n as f64;
        }
        Some(self.average)
    }
}

impl Machine<1, 1> for Exponential {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        self.step(value).map(|value| [value])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.number(&mut self.average);
        memory.count(&mut self.missing, self.n);
    }
}

/// The average of averages that lag less (P. G. Mulloy, 1994): `2 a - a(a)`.
#[derive(Clone, Debug)]
pub struct DoubleExponential([Exponential; 2]);

impl DoubleExponential {
    pub fn new(n: usize) -> Self {
        Self([Exponential::new(n), Exponential::new(n)])
    }
}

impl Machine<1, 1> for DoubleExponential {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let first = self.0[0].step(value)?;
        let second = self.0[1].step(first)?;
        Some([2.0 * first - second])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.iter_mut().for_each(|average| average.visit(memory));
    }
}

/// `3 a - 3 a(a) + a(a(a))`.
#[derive(Clone, Debug)]
pub struct TripleExponential([Exponential; 3]);

impl TripleExponential {
    pub fn new(n: usize) -> Self {
        Self([Exponential::new(n), Exponential::new(n), Exponential::new(n)])
    }
}

impl Machine<1, 1> for TripleExponential {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let first = self.0[0].step(value)?;
        let second = self.0[1].step(first)?;
        let third = self.0[2].step(second)?;
        Some([third + (3.0 * first - 3.0 * second)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.iter_mut().for_each(|average| average.visit(memory));
    }
}

/// The rate of change, in percent, of an exponential average taken three times.
#[derive(Clone, Debug)]
pub struct Trix {
    averages: [Exponential; 3],
    before: Lag,
}

impl Trix {
    pub fn new(n: usize) -> Self {
        Self {
            averages: [Exponential::new(n), Exponential::new(n), Exponential::new(n)],
            before: Lag::new(1),
        }
    }
}

impl Machine<1, 1> for Trix {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let mut value = value;
        for average in &mut self.averages {
            value = average.step(value)?;
        }
        let before = self.before.next(value)?;
        Some([if before == 0.0 {
            0.0
        } else {
            (value / before - 1.0) * 100.0
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.averages.iter_mut().for_each(|average| average.visit(memory));
        self.before.visit(memory);
    }
}

/// The average with weights 1 to `n`, the newest the heaviest.
#[derive(Clone, Debug)]
pub struct Weighted {
    ring: Ring,
    /// Of the values.
    sum: f64,
    /// Of the values by their weights.
    weighted: f64,
    /// What falls out with the next value.
    trailing: f64,
    seen: usize,
    n: usize,
}

impl Weighted {
    pub fn new(n: usize) -> Self {
        Self {
            ring: Ring::new(n),
            sum: 0.0,
            weighted: 0.0,
            trailing: 0.0,
            seen: 0,
            n,
        }
    }
}

impl Machine<1, 1> for Weighted {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let n = self.n as f64;
        self.ring.replace(value);
        self.sum += value;
        if self.seen + 1 < self.n {
            self.seen += 1;
            self.weighted += value * self.seen as f64;
            return None;
        }
        self.sum -= self.trailing;
        self.weighted += value * n;
        self.trailing = self.ring.oldest();
        let average = self.weighted / (n * (n + 1.0) / 2.0);
        self.weighted -= self.sum;
        Some([average])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.ring.visit(memory);
        for number in [&mut self.sum, &mut self.weighted, &mut self.trailing] {
            memory.number(number);
        }
        memory.count(&mut self.seen, self.n);
    }
}

/// The triangular average: a simple average of simple averages, over `n` values together.
#[derive(Clone, Debug)]
pub struct Triangular([Simple; 2]);

impl Triangular {
    pub fn new(n: usize) -> Self {
        let half = n / 2 + 1;
        Self([Simple::new(half), Simple::new(n + 1 - half)])
    }
}

impl Machine<1, 1> for Triangular {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let [inner] = self.0[0].next([value])?;
        self.0[1].next([inner])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.iter_mut().for_each(|average| average.visit(memory));
    }
}

/// The adaptive average (P. J. Kaufman, 1995): the smoother the less the path of `n` bars was a straight one.
#[derive(Clone, Debug)]
pub struct Adaptive {
    ring: Ring,
    average: f64,
    before: f64,
    /// The price at which the window began a bar ago.
    trailing: f64,
    /// Of the absolute changes of `n` bars.
    path: f64,
    seen: usize,
    n: usize,
}

const FASTEST: f64 = 2.0 / (2.0 + 1.0);
const SLOWEST: f64 = 2.0 / (30.0 + 1.0);

impl Adaptive {
    pub fn new(n: usize) -> Self {
        Self {
            ring: Ring::new(n),
            average: 0.0,
            before: 0.0,
            trailing: 0.0,
            path: 0.0,
            seen: 0,
            n,
        }
    }
}

impl Machine<1, 1> for Adaptive {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let old = self.ring.replace(value);
        let change = (value - self.before).abs();
        if self.seen < self.n {
            if self.seen > 0 {
                self.path += change;
            }
            self.seen += 1;
            self.before = value;
            return None;
        }
        if self.seen == self.n {
            self.seen += 1;
            self.average = self.before;
            self.path += change;
        } else {
            self.path -= (self.trailing - old).abs();
            self.path += change;
        }
        (self.trailing, self.before) = (old, value);
        let net = value - old;
        let straight = if self.path <= net || self.path == 0.0 {
            1.0
        } else {
            (net / self.path).abs()
        };
        let k = straight * (FASTEST - SLOWEST) + SLOWEST;
        self.average += (value - self.average) * (k * k);
        Some([self.average])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.ring.visit(memory);
        for number in [&mut self.average, &mut self.before, &mut self.trailing, &mut self.path] {
            memory.number(number);
        }
        memory.count(&mut self.seen, self.n + 1);
    }
}

/// Whether `value`, a difference of numbers of this scale, is nothing but their rounding, as TA-Lib tells it.
#[inline]
pub fn rounding(value: f64, scale: f64) -> bool {
    value.abs() <= 1e-14 * scale
}

/// T3 (T. Tillson, 1998): six exponential averages, one after the other, in a sum that lags less.
#[derive(Clone, Debug)]
pub struct Tillson {
    averages: [Exponential; 6],
    weights: [f64; 4],
}

impl Tillson {
    pub fn new(n: usize, factor: f64) -> Self {
        let (v, v2) = (factor, factor * factor);
        let c1 = -(v2 * v);
        let c2 = 3.0 * (v2 - c1);
        let c3 = -6.0 * v2 - 3.0 * (v - c1);
        let c4 = 1.0 + 3.0 * v - c1 + 3.0 * v2;
        Self {
            averages: std::array::from_fn(|_| Exponential::new(n)),
            weights: [c1, c2, c3, c4],
        }
    }
}

impl Machine<1, 1> for Tillson {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let mut values = [value; 7];
        for (i, average) in self.averages.iter_mut().enumerate() {
            values[i + 1] = average.step(values[i])?;
        }
        let [c1, c2, c3, c4] = self.weights;
        Some([c1 * values[6] + c2 * values[5] + c3 * values[4] + c4 * values[3]])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.averages.iter_mut().for_each(|average| average.visit(memory));
    }
}

/// A fast and a slow average.
#[derive(Clone, Debug)]
pub struct Pair<A> {
    fast: A,
    slow: A,
    wait: usize,
    most: usize,
}

impl<A: Machine<1, 1>> Pair<A> {
    pub fn new([fast, slow]: [usize; 2], average: impl Fn(usize) -> A) -> Self {
        Self {
            fast: average(fast),
            slow: average(slow),
            wait: 0,
            most: slow,
        }
    }

    /// Both have their first value at the same bar: the fast one's seed ends where the slow one's does.
    pub fn together([fast, slow]: [usize; 2], average: impl Fn(usize) -> A) -> Self {
        Self {
            wait: slow - fast,
            ..Self::new([fast, slow], average)
        }
    }

    /// The fast and the slow average.
    #[inline]
    pub fn step(&mut self, value: f64) -> Option<(f64, f64)> {
        let slow = self.slow.next([value]);
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        let fast = self.fast.next([value]);
        let ([fast], [slow]) = fast.zip(slow)?;
        Some((fast, slow))
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        self.fast.visit(memory);
        self.slow.visit(memory);
        memory.count(&mut self.wait, self.most);
    }
}

/// Fast less slow exponential average, its own average and their difference.
#[derive(Clone, Debug)]
pub struct Macd {
    averages: Pair<Exponential>,
    signal: Exponential,
}

impl Macd {
    pub fn new([fast, slow, signal]: [usize; 3]) -> Self {
        Self {
            averages: Pair::together([fast, slow], Exponential::new),
            signal: Exponential::new(signal),
        }
    }
}

impl Machine<1, 3> for Macd {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 3]> {
        let (fast, slow) = self.averages.step(value)?;
        let line = fast - slow;
        let signal = self.signal.step(line)?;
        Some([line, signal, line - signal])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.averages.visit(memory);
        self.signal.visit(memory);
    }
}

/// Fast less slow average: in currency, or in percent of the slow one.
#[derive(Clone, Debug)]
pub struct Difference<A> {
    averages: Pair<A>,
    percent: bool,
}

impl<A: Machine<1, 1>> Difference<A> {
    pub fn new(periods: [usize; 2], average: impl Fn(usize) -> A, percent: bool) -> Self {
        Self {
            averages: Pair::new(periods, average),
            percent,
        }
    }
}

impl<A: Machine<1, 1>> Machine<1, 1> for Difference<A> {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let (fast, slow) = self.averages.step(value)?;
        Some([match self.percent {
            false => fast - slow,
            true if slow == 0.0 => 0.0,
            true => (fast - slow) / slow * 100.0,
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.averages.visit(memory);
    }
}
