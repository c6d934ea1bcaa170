//! Moving averages, with TA-Lib's seeds and order of operations.

use crate::numerics::aggregate::{Sum, windowed};
use crate::numerics::kernel::{BLOCK, Chain, Kernel, Recurrence, SHORT, Scratch, map, scan};
use crate::numerics::lookback::{Lag, Lookback, Previous};
use crate::numerics::state::{Missing, StateVisitor, Stateful, state};

/// The simple moving average of `n` values.
pub(super) fn simple(n: usize) -> impl Kernel<1, 1> {
    let share = 1.0 / n as f64;
    windowed::<Sum, _, 1, 1>(n, move |[sum]: [f64; 1], _: [f64; 1]| [sum * share])
}

/// The exponential moving average `k v + (1 - k) a` with `k = 2 / (n + 1)`, or Wilder's with `k = 1 / n`. The
/// seed is the mean of the first `n` values.
#[derive(Clone, Debug)]
pub(super) struct Exponential {
    average: f64,
    missing: usize,
    n: usize,
    keep: f64,
}

impl Stateful for Exponential {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.number(&mut self.average);
        visitor.count(&mut self.missing, self.n);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.missing == 0
    }
}

impl Exponential {
    pub(super) fn new(n: usize) -> Self {
        Self::keeping(n, (n as f64 - 1.0) / (n as f64 + 1.0))
    }

    pub(super) fn wilder(n: usize) -> Self {
        Self::keeping(n, (n as f64 - 1.0) / n as f64)
    }

    fn keeping(n: usize, keep: f64) -> Self {
        let (average, missing) = (0.0, n);
        Self {
            average,
            missing,
            n,
            keep,
        }
    }

    /// Adds a value. Returns the average, or `None` during the warm-up. A fused multiply-add makes the
    /// dependency chain one operation per row.
    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) -> Option<f64> {
        if self.missing == 0 {
            self.average = self.keep.mul_add(self.average, (1.0 - self.keep) * value);
            return Some(self.average);
        }
        self.average += value;
        self.missing -= 1;
        if self.missing > 0 {
            return None;
        }
        self.average /= self.n as f64;
        Some(self.average)
    }
}

impl Recurrence<1, 1> for Exponential {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        self.add(value).map(|value| [value])
    }
}

/// A cascade of `N` exponential averages, each over the output of the previous one. They share their weight,
/// and so a register.
#[derive(Clone, Debug)]
struct Cascade<const N: usize> {
    averages: [f64; N],
    /// The number of rows seen, at most one more than the warm-up.
    seen: usize,
    n: usize,
    keep: f64,
}

impl<const N: usize> Stateful for Cascade<N> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.numbers(&mut self.averages);
        let most = self.warm_up() + 1;
        visitor.count(&mut self.seen, most);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.seen > self.warm_up()
    }
}

fn cascade<const N: usize>(n: usize) -> Cascade<N> {
    let Exponential { keep, .. } = Exponential::new(n);
    let (averages, seen) = ([0.0; N], 0);
    Cascade {
        averages,
        seen,
        n,
        keep,
    }
}

impl<const N: usize> Cascade<N> {
    /// The number of rows before the last average is known.
    #[inline(always)]
    fn warm_up(&self) -> usize {
        N * (self.n - 1)
    }

    /// Adds a value during the warm-up. By value, since a cascade with an address does not stay in registers.
    #[cold]
    fn warmed_up(mut self, mut value: f64) -> (Self, Option<[f64; N]>) {
        let row = self.seen;
        self.seen += 1;
        for k in 0..N {
            let average = &mut self.averages[k];
            // The seed is the mean of the first `n` outputs of the average before.
            let end = (k + 1) * (self.n - 1);
            if row > end {
                *average = self.keep.mul_add(*average, (1.0 - self.keep) * value);
            } else {
                *average += value;
                if row < end {
                    return (self, None);
                }
                *average /= self.n as f64;
            }
            value = *average;
        }
        let values = self.averages;
        (self, Some(values))
    }
}

impl<const N: usize> Recurrence<1, N> for Cascade<N> {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; N]> {
        if !self.is_settled() {
            let (cascade, values) = self.clone().warmed_up(value);
            *self = cascade;
            return values;
        }
        Some(self.smooth(value))
    }
}

impl<const N: usize> Cascade<N> {
    /// Adds a value after the warm-up.
    #[inline(always)]
    fn smooth(&mut self, mut value: f64) -> [f64; N] {
        let take = 1.0 - self.keep;
        for average in &mut self.averages {
            *average = self.keep.mul_add(*average, take * value);
            value = *average;
        }
        self.averages
    }
}

/// The double exponential moving average (P. G. Mulloy, 1994), which lags less than `a`: `2 a - a(a)`.
pub(super) fn double_exponential(n: usize) -> impl Recurrence<1, 1> {
    map(cascade::<2>(n), |[first, second]: [f64; 2]| [2.0 * first - second])
}

/// The triple exponential moving average: `3 a - 3 a(a) + a(a(a))`.
pub(super) fn triple_exponential(n: usize) -> impl Recurrence<1, 1> {
    map(cascade::<3>(n), |[first, second, third]: [f64; 3]| {
        [third + (3.0 * first - 3.0 * second)]
    })
}

/// T3 (T. Tillson, 1998): a weighted sum of a cascade of six exponential averages, with a reduced lag.
pub(super) fn tillson(n: usize, factor: f64) -> impl Kernel<1, 1> {
    let (v, v2) = (factor, factor * factor);
    let c1 = -(v2 * v);
    let c2 = 3.0 * (v2 - c1);
    let c3 = -6.0 * v2 - 3.0 * (v - c1);
    let c4 = 1.0 + 3.0 * v - c1 + 3.0 * v2;
    let sum = scan((), move |(), [third, fourth, fifth, sixth]: [f64; 4]| {
        Some([c1 * sixth + c2 * fifth + c3 * fourth + c4 * third])
    });
    let stages = std::array::from_fn(|_| cascade(n));
    Chain::<_, _, 4>::new(LastFour { stages }, sum)
}

/// The last four of a cascade of six exponential averages, in three stages, each over the second average of
/// the stage before.
struct LastFour {
    stages: [Cascade<2>; 3],
}

state!(LastFour { stages });

impl Kernel<1, 4> for LastFour {
    const IS_SERIAL: bool = true;

    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], outputs: [&mut [f64]; 4]) -> usize {
        let [mut a, mut b, mut c] = self.stages.clone();
        let (mut i, mut missing) = (0, 0);
        while i < values.len() && (!c.is_settled() || i + 2 > values.len()) {
            let second = a.next([values[i]]);
            let middle = second.and_then(|[_, second]| b.next([second]));
            match middle.and_then(|middle| Some((middle, c.next([middle[1]])?))) {
                Some((middle, last)) => (0..2).for_each(|k| {
                    outputs[k][i] = middle[k];
                    outputs[2 + k][i] = last[k];
                }),
                None => missing = i + 1,
            }
            i += 1;
        }
        if let [first, next, rest @ ..] = &values[i..] {
            let [out0, out1, out2, out3] = outputs.map(|output| &mut output[i..][..2 + rest.len()]);
            let mut write = |row: usize, middle: [f64; 2], last: [f64; 2]| {
                [out0[row], out1[row]] = middle;
                [out2[row], out3[row]] = last;
            };
            // Each stage is a row behind the stage before, so that none waits for another.
            let [_, second] = a.smooth(*first);
            let mut middle = b.smooth(second);
            let [_, mut second] = a.smooth(*next);
            for (row, value) in rest.iter().enumerate() {
                write(row, middle, c.smooth(middle[1]));
                middle = b.smooth(second);
                [_, second] = a.smooth(*value);
            }
            write(rest.len(), middle, c.smooth(middle[1]));
            middle = b.smooth(second);
            write(rest.len() + 1, middle, c.smooth(middle[1]));
        }
        self.stages = [a, b, c];
        missing
    }
}

/// TRIX: the rate of change, in percent, of a triply smoothed exponential average.
pub(super) fn trix(n: usize) -> impl Recurrence<1, 1> {
    scan(
        (cascade::<3>(n), Previous::default()),
        |(averages, before), row: [f64; 1]| {
            let [.., value] = averages.next(row)?;
            Some([percent(value, before.next(value)?)])
        },
    )
}

/// The change from `old` to `value`, in percent of `old`; 0 if that is 0.
#[inline(always)]
pub(super) fn percent(value: f64, old: f64) -> f64 {
    if old == 0.0 { 0.0 } else { (value / old - 1.0) * 100.0 }
}

/// The linearly weighted moving average: weights 1 to `n`, the newest value with the largest.
#[derive(Clone, Debug)]
pub(super) struct Weighted {
    old: Lag,
    /// The sum of the values.
    sum: f64,
    /// The sum of the values times their weights.
    weighted: f64,
    /// The sum of `n` values, which is subtracted from the weighted sum with the next value.
    full: f64,
    /// The value that leaves the sum with the next value.
    trailing: f64,
    /// The number of values seen, at most `n - 1`.
    seen: usize,
    n: usize,
}

state!(Weighted { old, sum, weighted, full, trailing, seen <= n });

impl Weighted {
    pub(super) fn new(n: usize) -> Self {
        Self {
            old: Lag::new(n - 1),
            sum: 0.0,
            weighted: 0.0,
            full: 0.0,
            trailing: 0.0,
            seen: 0,
            n,
        }
    }
}

impl Kernel<1, 1> for Weighted {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [averages]: [&mut [f64]; 1]) -> usize {
        let (missing, pieces) = self.old.pieces(values);
        let (mut sum, mut weighted) = (self.sum, self.weighted);
        let (mut full, mut trailing) = (self.full, self.trailing);
        for value in &values[..missing] {
            self.seen += 1;
            sum += value;
            weighted += value * self.seen as f64;
        }
        let n = self.n as f64;
        let share = 2.0 / (n * (n + 1.0));
        for (from, olds) in pieces {
            let rows = values[from..].iter().zip(olds);
            for (average, (value, old)) in averages[from..].iter_mut().zip(rows) {
                // This order gives each sum a dependency chain of one addition per row.
                weighted += value * n - full;
                sum += value - trailing;
                *average = weighted * share;
                (full, trailing) = (sum, *old);
            }
        }
        (self.sum, self.weighted) = (sum, weighted);
        (self.full, self.trailing) = (full, trailing);
        self.old.take(values);
        missing
    }
}

/// The triangular moving average: a simple average of simple averages, spanning `n` values in total.
pub(super) fn triangular(n: usize) -> impl Kernel<1, 1> {
    let half = n / 2 + 1;
    Chain::<_, _, 1>::new(simple(half), simple(n + 1 - half))
}

/// Kaufman's adaptive moving average (P. J. Kaufman, 1995), which smooths more the less straight the path of
/// the last `n` bars was.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    values: Lookback,
    /// The sum of the absolute changes over `n` bars.
    path: f64,
    /// The change that leaves the sum with the next bar.
    leaving: f64,
    average: f64,
    begun: bool,
    n: usize,
}

state!(Adaptive {
    values,
    path,
    leaving,
    average,
    begun
});

const FASTEST: f64 = 2.0 / (2.0 + 1.0);
const SLOWEST: f64 = 2.0 / (30.0 + 1.0);

impl Adaptive {
    pub(super) fn new(n: usize) -> Self {
        Self {
            values: Lookback::new(n),
            path: 0.0,
            leaving: 0.0,
            average: 0.0,
            begun: false,
            n,
        }
    }
}

impl Kernel<1, 1> for Adaptive {
    const IS_SERIAL: bool = true;

    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [averages]: [&mut [f64]; 1]) -> usize {
        let (n, rows) = (self.n, values.len());
        let values = self.values.take(values);
        let count = values.len().saturating_sub(n);
        if count == 0 {
            return rows;
        }
        if !self.begun {
            // The average starts at the price of the previous bar.
            (self.begun, self.average) = (true, values[n - 1]);
            self.path = (1..n).map(|i| (values[i] - values[i - 1]).abs()).sum();
        }
        let (mut path, mut leaving, mut average) = (self.path, self.leaving, self.average);
        let out = &mut averages[rows - count..];
        let [mut entering, mut left, mut kept, mut added] = [[0.0; SHORT]; 4];
        let blocks = count.div_ceil(SHORT);
        // The sums of a block, the weights of the block before as vectors, and its averages: each waits for
        // another, and overlaps the rest.
        for at in 0..=blocks {
            let start = |at: usize| (at * SHORT, SHORT.min(count - at * SHORT));
            if at < blocks {
                let (start, rows) = start(at);
                let slice = |first: usize| &values[first + start..][..rows];
                let (value, before, old, after_old) = (slice(n), slice(n - 1), slice(0), slice(1));
                for i in 0..rows {
                    entering[i] = (value[i] - before[i]).abs();
                    left[i] = (after_old[i] - old[i]).abs();
                }
                for (i, sum) in out[start..][..rows].iter_mut().enumerate() {
                    // This order gives the sum a dependency chain of one addition per row.
                    path += entering[i] - leaving;
                    leaving = left[i];
                    *sum = path;
                }
            }
            if at > 0 {
                let (start, rows) = start(at - 1);
                let slice = |first: usize| &values[first + start..][..rows];
                let (value, old, out) = (slice(n), slice(0), &mut out[start..][..rows]);
                for i in 0..rows {
                    let (path, net) = (out[i], value[i] - old[i]);
                    let share = (net / path).abs();
                    let straight = if (path <= net) | (path == 0.0) { 1.0 } else { share };
                    let root: f64 = straight * (FASTEST - SLOWEST) + SLOWEST;
                    let k: f64 = root * root;
                    (kept[i], added[i]) = (1.0 - k, k * value[i]);
                }
                for (i, out) in out.iter_mut().enumerate() {
                    average = kept[i].mul_add(average, added[i]);
                    *out = average;
                }
            }
        }
        (self.path, self.leaving, self.average) = (path, leaving, average);
        rows - count
    }
}

/// Returns whether `value`, a difference of numbers of magnitude `scale`, is a rounding error, by TA-Lib's
/// tolerance.
#[inline(always)]
pub(super) fn rounding(value: f64, scale: f64) -> bool {
    value.abs() <= 1e-14 * scale
}

/// MACD: the fast less the slow exponential average, its own exponential average (the signal) and the
/// difference of the two. The fast and the slow average both start at the same bar, where the slow one's seed
/// is complete.
pub(super) fn macd(periods: [usize; 3]) -> impl Recurrence<1, 3> {
    let [fast, slow, _] = periods;
    let state = (periods.map(Exponential::new), Missing::new(slow - fast, slow));
    scan(state, |([fast, slow, signal], wait), [value]: [f64; 1]| {
        let slow = slow.add(value);
        if wait.next() {
            return None;
        }
        let (fast, slow) = fast.add(value).zip(slow)?;
        let line = fast - slow;
        let signal = signal.add(line)?;
        Some([line, signal, line - signal])
    })
}

/// The difference of a fast and a slow average: in currency, or in percent of the slow one.
#[derive(Clone, Debug)]
pub(super) struct Difference<A> {
    fast: A,
    slow: A,
    percent: bool,
}

state!([A: Stateful] Difference<A> { fast, slow });

impl<A: Kernel<1, 1>> Difference<A> {
    pub(super) fn new([fast, slow]: [usize; 2], average: impl Fn(usize) -> A, percent: bool) -> Self {
        Self {
            fast: average(fast),
            slow: average(slow),
            percent,
        }
    }
}

impl<A: Kernel<1, 1>> Kernel<1, 1> for Difference<A> {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let slow = &mut scratch[..values.len()];
        let missing = self.fast.rows([values], [out]).max(self.slow.rows([values], [slow]));
        let pairs = out[missing..].iter_mut().zip(&slow[missing..]);
        if self.percent {
            pairs.for_each(|(out, slow)| {
                *out = if *slow == 0.0 {
                    0.0
                } else {
                    (*out - slow) / slow * 100.0
                }
            });
        } else {
            pairs.for_each(|(out, slow)| *out -= slow);
        }
        missing
    }
}
