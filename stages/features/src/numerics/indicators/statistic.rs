//! Statistics over a window: variance, Bollinger bands, regression lines, correlation, as TA-Lib defines
//! them.

use super::momentum::fraction;
use crate::numerics::aggregate::{CoDeviations, Deviations, LinearFit, windowed};
use crate::numerics::kernel::{Chain, Kernel, scan};
use crate::numerics::lookback::Previous;
use crate::numerics::state::{StateVisitor, Stateful};

/// The population variance of `n` values.
pub(super) fn variance(n: usize) -> impl Kernel<1, 1> {
    let n_f64 = n as f64;
    windowed::<Deviations, _, 1, 2>(n, move |[_, squares]: [f64; 2], _: [f64; 1]| [squares / n_f64])
}

/// The population standard deviation of `n` values.
pub(super) fn deviation(n: usize) -> impl Kernel<1, 1> {
    let n_f64 = n as f64;
    windowed::<Deviations, _, 1, 2>(n, move |[_, squares]: [f64; 2], _: [f64; 1]| [(squares / n_f64).sqrt()])
}

/// Bollinger bands of `n` values: upper, middle, lower, at `width` population standard deviations from the
/// mean.
pub(super) fn bands(n: usize, width: f64) -> impl Kernel<1, 3> {
    let n_f64 = n as f64;
    windowed::<Deviations, _, 1, 2>(n, move |[mean, squares]: [f64; 2], _: [f64; 1]| {
        let distance = (squares / n_f64).sqrt() * width;
        [mean + distance, mean, mean - distance]
    })
}

/// The sums of `n` values and of their products with their positions, as the slope of the least-squares line.
fn slope(n: f64) -> impl Fn(f64, f64) -> f64 + Copy {
    let places = n * (n - 1.0) / 2.0;
    let spread = n * (n * (n - 1.0) * (2.0 * n - 1.0) / 6.0) - places * places;
    let (by_place, by_sum) = (n / spread, places / spread);
    move |sum, placed| by_place * placed - by_sum * sum
}

/// A function of the slope, per bar, of the least-squares line through `n` values.
pub(super) fn line_slope(n: usize, map: impl Fn(f64) -> f64) -> impl Kernel<1, 1> {
    let slope = slope(n as f64);
    windowed::<LinearFit, _, 1, 2>(n, move |[sum, placed]: [f64; 2], _: [f64; 1]| [map(slope(sum, placed))])
}

/// The value of the least-squares line through `n` values, `at` bars after the first of them.
pub(super) fn line_value(n: usize, at: usize) -> impl Kernel<1, 1> {
    let n_f64 = n as f64;
    let (slope, share) = (slope(n_f64), 1.0 / n_f64);
    let from_mean = at as f64 - n_f64 * (n_f64 - 1.0) / 2.0 * share;
    windowed::<LinearFit, _, 1, 2>(n, move |[sum, placed]: [f64; 2], _: [f64; 1]| {
        [sum * share + slope(sum, placed) * from_mean]
    })
}

/// Pearson's correlation over `n` rows; 0 if either series is constant.
pub(super) fn correlation(n: usize) -> impl Kernel<2, 1> {
    windowed::<CoDeviations, _, 2, 5>(n, |[_, _, xx, yy, xy]: [f64; 5], _: [f64; 2]| {
        let correlation = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
        [if xx > 0.0 && yy > 0.0 { correlation } else { 0.0 }]
    })
}

/// The slope of the returns of `y` on those of `x` over `n` rows; 0 if `x` does not move.
pub(super) fn beta(n: usize) -> impl Kernel<2, 1> {
    let returns = scan([Previous::default(); 2], |before, row: [f64; 2]| {
        let [x, y] = [before[0].next(row[0]), before[1].next(row[1])];
        Some([fraction(row[0], x?), fraction(row[1], y?)])
    });
    let slope = |[_, _, xx, _, xy]: [f64; 5], _: [f64; 2]| [if xx > 0.0 { xy / xx } else { 0.0 }];
    Beta(Chain::new(returns, windowed::<CoDeviations, _, 2, 5>(n, slope)))
}

/// A chain whose second kernel comes first in the state.
struct Beta<A, B>(Chain<A, B, 2>);

impl<A: Stateful, B: Stateful> Stateful for Beta<A, B> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.0.second.visit(visitor);
        self.0.first.visit(visitor);
    }
}

impl<A: Kernel<2, 2>, B: Kernel<2, 1>> Kernel<2, 1> for Beta<A, B> {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; 2], out: [&mut [f64]; 1]) -> usize {
        self.0.rows(inputs, out)
    }
}
