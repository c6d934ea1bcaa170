//! Aggregates over rolling windows: sums, means and deviations, least-squares lines, extremes.
//!
//! The aggregate of `2 k` values joins the aggregates of the two halves; that of `2 k + 1` values adds one
//! more value. The windows of `n` values at all rows thus take `log2 n` vectorised passes. Nothing is
//! subtracted, so rounding errors do not accumulate, and the aggregate of a window depends on its values
//! alone, wherever the rows are cut into blocks.

use super::kernel::{BLOCK, Kernel};
use super::lookback::Lookback;
use super::state::state;
use std::marker::PhantomData;

/// An associative aggregate of the values of `V` series, held in `T` numbers.
pub(super) trait Aggregate<const V: usize, const T: usize> {
    /// Sets `total` to the aggregate of one row.
    fn of(values: &[f64; V], total: &mut [f64; T]);
    /// Appends the aggregate `later` of the next `m` rows to `total`, the aggregate of `n` rows. In place,
    /// since a loop that returns a small array is not vectorised.
    fn join(total: &mut [f64; T], n: f64, later: &[f64; T], m: f64);

    /// Appends one row to `total`, the aggregate of `n` rows.
    #[inline(always)]
    fn push(total: &mut [f64; T], n: f64, values: &[f64; V]) {
        let mut later = [0.0; T];
        Self::of(values, &mut later);
        Self::join(total, n, &later, 1.0);
    }
}

/// The aggregates of the last `n` rows at each row.
#[derive(Clone, Debug)]
struct RollingAggregate<K, const V: usize, const T: usize> {
    lookbacks: [Lookback; V],
    totals: [Vec<f64>; T],
    next: [Vec<f64>; T],
    n: usize,
    kind: PhantomData<K>,
}

state!([K, const V: usize, const T: usize] RollingAggregate<K, V, T> { lookbacks });

impl<K: Aggregate<V, T>, const V: usize, const T: usize> RollingAggregate<K, V, T> {
    fn new(n: usize) -> Self {
        Self {
            lookbacks: std::array::from_fn(|_| Lookback::new(n - 1)),
            totals: std::array::from_fn(|_| Vec::new()),
            next: std::array::from_fn(|_| Vec::new()),
            n,
            kind: PhantomData,
        }
    }

    /// Processes a block of rows, and writes `map(aggregate, row)` for each with at least `n` rows up to and
    /// including it. Returns the number of rows before them.
    #[inline(always)]
    fn rows<const C: usize, const N: usize>(
        &mut self,
        block: [&[f64]; C],
        outputs: [&mut [f64]; N],
        map: impl Fn([f64; T], [f64; C]) -> [f64; N],
    ) -> usize {
        let mut k = 0;
        let values = self.lookbacks.each_mut().map(|lookback| {
            k += 1;
            lookback.take(block[k - 1])
        });
        let length = values[0].len();
        let grow = |columns: &mut [Vec<f64>; T]| {
            columns.iter_mut().for_each(|column| {
                if column.len() < length {
                    column.resize(length, 0.0);
                }
            });
        };
        grow(&mut self.totals);
        grow(&mut self.next);
        let windows = (length + 1).saturating_sub(self.n);
        let missing = block[0].len() - windows;
        if windows == 0 {
            return missing;
        }
        let block = block.map(|column| &column[missing..][..windows]);
        let outputs = outputs.map(|output| &mut output[missing..][..windows]);
        let one = |values: &[f64; V]| {
            let mut total = [0.0; T];
            K::of(values, &mut total);
            total
        };
        if self.n == 1 {
            each2(outputs, values, block, |values, row| map(one(&values), row));
            return missing;
        }
        let mut have: usize = 1;
        loop {
            // One binary digit of `n` more.
            let longer = self.n >> (self.n.ilog2() - have.ilog2() - 1);
            let (count, n) = (length + 1 - longer, have as f64);
            let rows = |at: usize| values.map(|values| &values[at..][..count]);
            let totals = |at: usize| self.totals.each_ref().map(|total| &total[at..][..count]);
            let two = |mut total: [f64; T], later: [f64; T]| {
                K::join(&mut total, n, &later, n);
                total
            };
            let and_one = |total: [f64; T], later: [f64; T], last: [f64; V]| {
                let mut total = two(total, later);
                K::push(&mut total, 2.0 * n, &last);
                total
            };
            // Single rows are their own aggregates: the first pass reads them. The last one writes the
            // output.
            let (is_first, is_odd) = (have == 1, longer > 2 * have);
            if longer == self.n {
                match (is_first, is_odd) {
                    (true, true) => each4(outputs, rows(0), rows(1), rows(2), block, |a, b, c, row| {
                        map(and_one(one(&a), one(&b), c), row)
                    }),
                    (true, false) => {
                        each3(outputs, rows(0), rows(1), block, |a, b, row| {
                            map(two(one(&a), one(&b)), row)
                        });
                    }
                    (false, true) => {
                        let last = rows(2 * have);
                        each4(outputs, totals(0), totals(have), last, block, |a, b, c, row| {
                            map(and_one(a, b, c), row)
                        });
                    }
                    (false, false) => {
                        each3(outputs, totals(0), totals(have), block, |a, b, row| map(two(a, b), row));
                    }
                }
                return missing;
            }
            let next = self.next.each_mut().map(|column| &mut column[..count]);
            match (is_first, is_odd) {
                (true, true) => {
                    each3(next, rows(0), rows(1), rows(2), |a, b, c| and_one(one(&a), one(&b), c));
                }
                (true, false) => each2(next, rows(0), rows(1), |a, b| two(one(&a), one(&b))),
                (false, true) => each3(next, totals(0), totals(have), rows(2 * have), and_one),
                (false, false) => each2(next, totals(0), totals(have), two),
            }
            std::mem::swap(&mut self.totals, &mut self.next);
            have = longer;
        }
    }
}

/// A function of the aggregate of the last `n` rows and of the last row itself. Rows have `K` columns, the
/// first `V` of which are aggregated.
pub(super) struct Windowed<A, F, const V: usize, const T: usize> {
    window: RollingAggregate<A, V, T>,
    map: F,
}

state!([A, F, const V: usize, const T: usize] Windowed<A, F, V, T> { window });

/// A kernel that computes `map(aggregate, row)` over windows of `n` rows.
pub(super) fn windowed<A: Aggregate<V, T>, F, const V: usize, const T: usize>(
    n: usize,
    map: F,
) -> Windowed<A, F, V, T> {
    Windowed {
        window: RollingAggregate::new(n),
        map,
    }
}

impl<A, F, const V: usize, const T: usize, const K: usize, const N: usize> Kernel<K, N>
    for Windowed<A, F, V, T>
where
    A: Aggregate<V, T>,
    F: Fn([f64; T], [f64; K]) -> [f64; N],
{
    /// Five columns of 512 aggregates, twice, do not fit into the L1 cache.
    const ROWS: usize = if T > 4 { BLOCK / 2 } else { BLOCK };

    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; N]) -> usize {
        self.window.rows(inputs, outputs, &self.map)
    }
}

/// Row `i` of several columns.
#[inline(always)]
fn row<const N: usize>(columns: &[&[f64]; N], i: usize) -> [f64; N] {
    let mut row = [0.0; N];
    (0..N).for_each(|k| row[k] = columns[k][i]);
    row
}

/// Writes to each row of `out` a function of the row of four groups of columns.
#[inline(always)]
fn each4<const A: usize, const B: usize, const C: usize, const D: usize, const N: usize>(
    out: [&mut [f64]; N],
    a: [&[f64]; A],
    b: [&[f64]; B],
    c: [&[f64]; C],
    d: [&[f64]; D],
    of: impl Fn([f64; A], [f64; B], [f64; C], [f64; D]) -> [f64; N],
) {
    let count = out.first().map_or(0, |column| column.len());
    for i in 0..count {
        let row = of(row(&a, i), row(&b, i), row(&c, i), row(&d, i));
        (0..N).for_each(|k| out[k][i] = row[k]);
    }
}

/// Writes to each row of `out` a function of the row of three groups of columns.
#[inline(always)]
fn each3<const A: usize, const B: usize, const C: usize, const N: usize>(
    out: [&mut [f64]; N],
    a: [&[f64]; A],
    b: [&[f64]; B],
    c: [&[f64]; C],
    of: impl Fn([f64; A], [f64; B], [f64; C]) -> [f64; N],
) {
    each4(out, a, b, c, [], |a, b, c, []| of(a, b, c));
}

/// Writes to each row of `out` a function of the row of two groups of columns.
#[inline(always)]
fn each2<const A: usize, const B: usize, const N: usize>(
    out: [&mut [f64]; N],
    a: [&[f64]; A],
    b: [&[f64]; B],
    of: impl Fn([f64; A], [f64; B]) -> [f64; N],
) {
    each4(out, a, b, [], [], |a, b, [], []| of(a, b));
}

/// The aggregate for sums.
#[derive(Clone, Debug)]
pub(super) struct Sum;

impl<const V: usize> Aggregate<V, V> for Sum {
    #[inline(always)]
    fn of(values: &[f64; V], total: &mut [f64; V]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; V], _: f64, later: &[f64; V], _: f64) {
        (0..V).for_each(|k| total[k] += later[k]);
    }
}

/// The aggregate for variances: the mean and the sum of squared deviations from it. Free of cancellation
/// where the deviations are small beside the mean (T. F. Chan, G. H. Golub, R. J. LeVeque, 1979).
#[derive(Clone, Debug)]
pub(super) struct Deviations;

impl Aggregate<1, 2> for Deviations {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 2]) {
        *total = [values[0], 0.0];
    }

    #[inline(always)]
    fn join([mean, squares]: &mut [f64; 2], n: f64, later: &[f64; 2], m: f64) {
        let share = m / (n + m);
        let distance = later[0] - *mean;
        *mean = distance.mul_add(share, *mean);
        *squares = (distance * (n * share)).mul_add(distance, *squares + later[1]);
    }
}

/// The aggregate for covariances: the means of two series, the sums of squared deviations from them, and the
/// sum of the products of the deviations.
#[derive(Clone, Debug)]
pub(super) struct CoDeviations;

impl Aggregate<2, 5> for CoDeviations {
    #[inline(always)]
    fn of(values: &[f64; 2], total: &mut [f64; 5]) {
        *total = [values[0], values[1], 0.0, 0.0, 0.0];
    }

    #[inline(always)]
    fn join([mean_x, mean_y, xx, yy, xy]: &mut [f64; 5], n: f64, later: &[f64; 5], m: f64) {
        let share = m / (n + m);
        let weight = n * share;
        let (x, y) = (later[0] - *mean_x, later[1] - *mean_y);
        *mean_x = x.mul_add(share, *mean_x);
        *mean_y = y.mul_add(share, *mean_y);
        let (weighted_x, weighted_y) = (x * weight, y * weight);
        *xx = weighted_x.mul_add(x, *xx + later[2]);
        *yy = weighted_y.mul_add(y, *yy + later[3]);
        *xy = weighted_x.mul_add(y, *xy + later[4]);
    }

    #[inline(always)]
    fn push([mean_x, mean_y, xx, yy, xy]: &mut [f64; 5], n: f64, values: &[f64; 2]) {
        let share = 1.0 / (n + 1.0);
        let weight = n * share;
        let (x, y) = (values[0] - *mean_x, values[1] - *mean_y);
        *mean_x = x.mul_add(share, *mean_x);
        *mean_y = y.mul_add(share, *mean_y);
        let (weighted_x, weighted_y) = (x * weight, y * weight);
        *xx = weighted_x.mul_add(x, *xx);
        *yy = weighted_y.mul_add(y, *yy);
        *xy = weighted_x.mul_add(y, *xy);
    }
}

/// The aggregate for least-squares lines: the sum of the values, and the sum of the values times their
/// positions, counted from 0.
#[derive(Clone, Debug)]
pub(super) struct LinearFit;

impl Aggregate<1, 2> for LinearFit {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 2]) {
        *total = [values[0], 0.0];
    }

    #[inline(always)]
    fn join([sum, placed]: &mut [f64; 2], n: f64, later: &[f64; 2], _: f64) {
        *sum += later[0];
        *placed += later[0].mul_add(n, later[1]);
    }
}

/// The greater of two values; of equal ones, the later.
#[inline(always)]
fn greater(a: f64, later: f64) -> f64 {
    if a > later { a } else { later }
}

/// The lesser of two values; of equal ones, the later.
#[inline(always)]
fn less(a: f64, later: f64) -> f64 {
    if a < later { a } else { later }
}

/// The aggregate for the maximum.
#[derive(Clone, Debug)]
pub(super) struct Maximum;

impl Aggregate<1, 1> for Maximum {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 1]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; 1], _: f64, later: &[f64; 1], _: f64) {
        total[0] = greater(total[0], later[0]);
    }
}

/// The aggregate for the minimum.
#[derive(Clone, Debug)]
pub(super) struct Minimum;

impl Aggregate<1, 1> for Minimum {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 1]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; 1], _: f64, later: &[f64; 1], _: f64) {
        total[0] = less(total[0], later[0]);
    }
}

/// The aggregate for the maximum of the first series and the minimum of the second, or of a single one.
#[derive(Clone, Debug)]
pub(super) struct Extremes;

impl Aggregate<1, 2> for Extremes {
    #[inline(always)]
    fn of([value]: &[f64; 1], total: &mut [f64; 2]) {
        *total = [*value; 2];
    }

    #[inline(always)]
    fn join(total: &mut [f64; 2], n: f64, later: &[f64; 2], m: f64) {
        <Self as Aggregate<2, 2>>::join(total, n, later, m);
    }
}

impl Aggregate<2, 2> for Extremes {
    #[inline(always)]
    fn of(values: &[f64; 2], total: &mut [f64; 2]) {
        *total = *values;
    }

    #[inline(always)]
    fn join([high, low]: &mut [f64; 2], _: f64, later: &[f64; 2], _: f64) {
        *high = greater(*high, later[0]);
        *low = less(*low, later[1]);
    }
}

/// The aggregate for the maximum of the first series and the minimum of the second, with the position of
/// each, counted from 0; of equal values, the latest position.
#[derive(Clone, Debug)]
pub(super) struct ExtremePositions;

impl Aggregate<2, 4> for ExtremePositions {
    #[inline(always)]
    fn of(values: &[f64; 2], total: &mut [f64; 4]) {
        *total = [values[0], values[1], 0.0, 0.0];
    }

    #[inline(always)]
    fn join([high, low, high_at, low_at]: &mut [f64; 4], n: f64, later: &[f64; 4], _: f64) {
        *high_at = if *high > later[0] { *high_at } else { n + later[2] };
        *low_at = if *low < later[1] { *low_at } else { n + later[3] };
        *high = greater(*high, later[0]);
        *low = less(*low, later[1]);
    }
}
