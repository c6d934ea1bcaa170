//! Statistics over a window: variance, Bollinger bands, regression lines, correlation, as TA-Lib defines
//! them.

use crate::numerics::aggregate::{CoDeviations, Deviations, LinearFit, RollingAggregate, windowed};
use crate::numerics::kernel::{BLOCK, Kernel, Scratch};
use crate::numerics::lookback::Lag;
use crate::numerics::state::state;

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

/// A quantity of the least-squares line through `n` values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fit {
    /// The value of the line at the last of the `n` values.
    Value,
    /// The slope of the line, per bar.
    Slope,
    /// The angle of the line in degrees.
    Angle,
    /// The value of the line at the first of the `n` values.
    Intercept,
    /// The value of the line one bar after the last of the `n` values.
    Forecast,
}

/// A quantity of the least-squares line through the last `n` values.
#[derive(Clone, Debug)]
pub(super) struct Regression {
    lines: RollingAggregate<LinearFit, 1, 2>,
    fit: Fit,
    n: f64,
}

state!(Regression { lines });

impl Regression {
    pub(super) fn new(n: usize, fit: Fit) -> Self {
        Self {
            lines: RollingAggregate::new(n),
            fit,
            n: n as f64,
        }
    }
}

impl Kernel<1, 1> for Regression {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let [sums, placed] = self.lines.rows([values]);
        let missing = values.len() - sums.len();
        let out = &mut out[missing..];
        let n = self.n;
        let places = n * (n - 1.0) / 2.0;
        let spread = n * (n * (n - 1.0) * (2.0 * n - 1.0) / 6.0) - places * places;
        let (by_place, by_sum) = (n / spread, places / spread);
        let slope = |sum: f64, placed: f64| by_place * placed - by_sum * sum;
        let rows = out.iter_mut().zip(sums.iter().zip(placed));
        // The position at which the line is evaluated, counted from the first value.
        let at = match self.fit {
            Fit::Slope | Fit::Angle => {
                rows.for_each(|(out, (sum, placed))| *out = slope(*sum, *placed));
                if matches!(self.fit, Fit::Angle) {
                    out.iter_mut()
                        .for_each(|slope| *slope = libm::atan(*slope) * (180.0 / std::f64::consts::PI));
                }
                return missing;
            }
            Fit::Value => n - 1.0,
            Fit::Intercept => 0.0,
            Fit::Forecast => n,
        };
        let share = 1.0 / n;
        let from_mean = at - places * share;
        rows.for_each(|(out, (sum, placed))| *out = sum * share + slope(*sum, *placed) * from_mean);
        missing
    }
}

/// Pearson's correlation over `n` rows; 0 if either series is constant.
pub(super) fn correlation(n: usize) -> impl Kernel<2, 1> {
    windowed::<CoDeviations, _, 2, 5>(n, |[_, _, xx, yy, xy]: [f64; 5], _: [f64; 2]| {
        let correlation = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
        [if xx > 0.0 && yy > 0.0 { correlation } else { 0.0 }]
    })
}

/// The slope of the returns of `y` on those of `x`; 0 if `x` does not move.
#[derive(Clone, Debug)]
pub(super) struct Beta {
    before: [Lag; 2],
    returns: RollingAggregate<CoDeviations, 2, 5>,
}

state!(Beta { returns, before });

impl Beta {
    pub(super) fn new(n: usize) -> Self {
        Self {
            before: [Lag::new(1), Lag::new(1)],
            returns: RollingAggregate::new(n),
        }
    }
}

impl Kernel<2, 1> for Beta {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; 2], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: [Scratch; 2] = [[0.0; BLOCK]; 2];
        let rows = inputs[0].len();
        let mut first = 0;
        for ((lag, values), returns) in self.before.iter_mut().zip(inputs).zip(&mut scratch) {
            let (missing, pieces) = lag.pieces(values);
            for (from, previous) in pieces {
                let pairs = values[from..].iter().zip(previous);
                for (out, (value, before)) in returns[from..].iter_mut().zip(pairs) {
                    let change = (value - before) / before;
                    *out = if *before == 0.0 { 0.0 } else { change };
                }
            }
            lag.take(values);
            first = missing;
        }
        let [_, _, xx, _, xy] = self
            .returns
            .rows(scratch.each_ref().map(|returns| &returns[first..rows]));
        let missing = rows - xy.len();
        for (out, (xx, xy)) in out[missing..].iter_mut().zip(xx.iter().zip(xy)) {
            let slope = xy / xx;
            *out = if *xx > 0.0 { slope } else { 0.0 };
        }
        missing
    }
}
