//! What the values of a window come to together: sums, means and spreads, straight lines, extremes.
//!
//! The total of `2 k` values is put together from those of its halves, that of `2 k + 1` with one value more: the windows of `n` values of all rows
//! take `log2 n` passes, each of vector instructions. Nothing is ever taken away, so that no rounding stays behind, and a window's total
//! depends on its values alone, wherever the rows were cut.

use super::machine::Memory;
use super::trail::Trail;
use std::marker::PhantomData;

/// What `V` series come to together, in `T` numbers.
pub trait Total<const V: usize, const T: usize> {
    /// Makes `total` that of one row.
    fn of(values: &[f64; V], total: &mut [f64; T]);
    /// Makes `total`, of `n` rows, that of them and of the `m` rows of `later`. In place: a small array that is returned becomes an integer on the
    /// way, and a loop over it no vector instructions.
    fn join(total: &mut [f64; T], n: f64, later: &[f64; T], m: f64);
}

/// The totals of the last `n` rows.
#[derive(Clone, Debug)]
pub struct Windows<K, const V: usize, const T: usize> {
    trails: [Trail; V],
    totals: [Vec<f64>; T],
    next: [Vec<f64>; T],
    n: usize,
    kind: PhantomData<K>,
}

impl<K: Total<V, T>, const V: usize, const T: usize> Windows<K, V, T> {
    pub fn new(n: usize) -> Self {
        Self {
            trails: std::array::from_fn(|_| Trail::new(n - 1)),
            totals: std::array::from_fn(|_| Vec::new()),
            next: std::array::from_fn(|_| Vec::new()),
            n,
            kind: PhantomData,
        }
    }

    /// Takes a block of rows: the totals at its last rows, as many as have `n` rows up to them.
    #[inline(always)]
    pub fn rows(&mut self, block: [&[f64]; V]) -> [&[f64]; T] {
        let mut k = 0;
        let values = self.trails.each_mut().map(|trail| {
            k += 1;
            trail.take(block[k - 1])
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
        if windows == 0 {
            return [&[]; T];
        }
        // The binary digits of `n` after the first, which stands for single rows.
        let digits = self.n.ilog2();
        let mut have = 1;
        for digit in (0..digits).rev() {
            let (totals, next) = (&self.totals, &mut self.next);
            match (have == 1, self.n >> digit & 1 == 1) {
                (true, false) => pass::<K, V, T, true, false>(values, totals, next, have, length),
                (true, true) => pass::<K, V, T, true, true>(values, totals, next, have, length),
                (false, false) => pass::<K, V, T, false, false>(values, totals, next, have, length),
                (false, true) => pass::<K, V, T, false, true>(values, totals, next, have, length),
            }
            std::mem::swap(&mut self.totals, &mut self.next);
            have = self.n >> digit;
        }
        if digits == 0 {
            let rows = values.map(|values| &values[..windows]);
            let to = self.totals.each_mut().map(|column| &mut column[..windows]);
            for i in 0..windows {
                let mut total = [0.0; T];
                K::of(&at(&rows, i), &mut total);
                (0..T).for_each(|t| to[t][i] = total[t]);
            }
        }
        self.totals.each_ref().map(|column| &column[..windows])
    }

    pub fn visit(&mut self, memory: &mut Memory<'_>) {
        self.trails.iter_mut().for_each(|trail| trail.visit(memory));
    }
}

/// The totals of `2 have` rows, or of one more, from those of `have`; the first time from the rows themselves.
#[inline(always)]
fn pass<K: Total<V, T>, const V: usize, const T: usize, const FIRST: bool, const MORE: bool>(
    values: [&[f64]; V],
    totals: &[Vec<f64>; T],
    next: &mut [Vec<f64>; T],
    have: usize,
    length: usize,
) {
    let count = length + 1 - (2 * have + usize::from(MORE));
    let n = if FIRST { 1.0 } else { have as f64 };
    let single = |place: usize| values.map(|values| &values[place..][..count]);
    let joined = |place: usize| totals.each_ref().map(|total| &total[place..][..count]);
    let (singles, totals) = ([single(0), single(have)], [joined(0), joined(have)]);
    let third = single(if MORE { 2 * have } else { 0 });
    let next = next.each_mut().map(|column| &mut column[..count]);
    for i in 0..count {
        let (mut total, mut later) = ([0.0; T], [0.0; T]);
        if FIRST {
            K::of(&at(&singles[0], i), &mut total);
            K::of(&at(&singles[1], i), &mut later);
        } else {
            (total, later) = (at(&totals[0], i), at(&totals[1], i));
        }
        K::join(&mut total, n, &later, n);
        if MORE {
            K::of(&at(&third, i), &mut later);
            K::join(&mut total, 2.0 * n, &later, 1.0);
        }
        (0..T).for_each(|t| next[t][i] = total[t]);
    }
}

/// A row of columns.
#[inline(always)]
fn at<const N: usize>(columns: &[&[f64]; N], i: usize) -> [f64; N] {
    let mut row = [0.0; N];
    (0..N).for_each(|k| row[k] = columns[k][i]);
    row
}

/// Sums.
#[derive(Clone, Debug)]
pub struct Sum;

impl<const V: usize> Total<V, V> for Sum {
    #[inline(always)]
    fn of(values: &[f64; V], total: &mut [f64; V]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; V], _: f64, later: &[f64; V], _: f64) {
        (0..V).for_each(|k| total[k] += later[k]);
    }
}

/// The mean and the sum of squared distances from it: nothing is lost where the spread is small beside the mean (T. F. Chan, G. H. Golub,
/// R. J. LeVeque, 1979).
#[derive(Clone, Debug)]
pub struct Spread;

impl Total<1, 2> for Spread {
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

/// The means of two series, the sums of the squared distances from them, and that of the products of the distances.
#[derive(Clone, Debug)]
pub struct Joint;

impl Total<2, 5> for Joint {
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
}

/// The sum, and the sum of values times their places, the first being place 0.
#[derive(Clone, Debug)]
pub struct Line;

impl Total<1, 2> for Line {
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

/// The greater, the later of equals.
#[inline(always)]
fn greater(a: f64, later: f64) -> f64 {
    if a > later { a } else { later }
}

/// The less, the later of equals.
#[inline(always)]
fn less(a: f64, later: f64) -> f64 {
    if a < later { a } else { later }
}

/// The greatest value.
#[derive(Clone, Debug)]
pub struct Greatest;

impl Total<1, 1> for Greatest {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 1]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; 1], _: f64, later: &[f64; 1], _: f64) {
        total[0] = greater(total[0], later[0]);
    }
}

/// The least value.
#[derive(Clone, Debug)]
pub struct Least;

impl Total<1, 1> for Least {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 1]) {
        *total = *values;
    }

    #[inline(always)]
    fn join(total: &mut [f64; 1], _: f64, later: &[f64; 1], _: f64) {
        total[0] = less(total[0], later[0]);
    }
}

/// The greatest value of the first series and the least of the second.
#[derive(Clone, Debug)]
pub struct Range;

impl Total<2, 2> for Range {
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

/// As [`Range`], with the place of each, from 0 on, the latest of equals.
#[derive(Clone, Debug)]
pub struct Places;

impl Total<2, 4> for Places {
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
