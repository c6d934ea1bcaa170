//! The definitions of stockstats 0.6.10, which FinRL takes its features from. They differ from TA-Lib's in
//! giving values from the first bar on (over as many bars as there are), in exponential averages whose
//! weights are normalised to sum to one instead of a seed, and in the sample rather than the population
//! deviation.

use super::directional::{Hlc, true_range};
use crate::numerics::aggregate::{Aggregate, Extremes, Sum};
use crate::numerics::kernel::{Recurrence, map, scan};
use crate::numerics::sliding_window::{RingBuffer, SlidingWindow};
use crate::numerics::state::{Missing, state};

/// The exponential average with weights `(1 - a)^k`, normalised by the sum of the weights of the bars so far
/// (pandas' `ewm(adjust=True)`).
#[derive(Clone, Debug)]
pub(super) struct Adjusted {
    average: f64,
    weight: f64,
    keep: f64,
}

state!(Adjusted { average, weight });

impl Adjusted {
    fn new(keep: f64) -> Self {
        let (average, weight) = (0.0, 0.0);
        Self { average, weight, keep }
    }

    /// The average with `a = 2 / (n + 1)`.
    pub(super) fn span(n: usize) -> Self {
        Self::new(1.0 - 2.0 / (n as f64 + 1.0))
    }

    /// The average with Wilder's `a = 1 / n`.
    pub(super) fn wilder(n: usize) -> Self {
        Self::new(1.0 - 1.0 / n as f64)
    }

    #[inline(always)]
    fn step(&mut self, value: f64) -> f64 {
        self.weight = self.weight * self.keep + 1.0;
        self.average += (value - self.average) / self.weight;
        self.average
    }
}

impl Recurrence<1, 1> for Adjusted {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        Some([self.step(value)])
    }
}

/// The mean of the last `n` values, or of as many as there are so far.
pub(super) fn mean(n: usize) -> impl Recurrence<1, 1> {
    scan(SlidingWindow::<Sum, 1, 1>::new(n), |window, value: [f64; 1]| {
        let ([sum], count) = window.partial(value);
        Some([sum / count])
    })
}

/// MACD, its signal line and its histogram: `macd`, `macds`, `macdh`.
pub(super) fn macd(periods: [usize; 3]) -> impl Recurrence<1, 3> {
    scan(
        periods.map(Adjusted::span),
        |[fast, slow, signal], [value]: [f64; 1]| {
            let line = fast.step(value) - slow.step(value);
            let signal = signal.step(line);
            Some([line, signal, line - signal])
        },
    )
}

/// Bollinger bands, from the second bar on, with the sample deviation: `boll_ub`, `boll`, `boll_lb`.
pub(super) fn bands(n: usize, width: f64) -> impl Recurrence<1, 3> {
    scan(
        SlidingWindow::<Deviations, 1, 2>::new(n),
        move |window, value: [f64; 1]| {
            let ([mean, squares], count) = window.partial(value);
            let variance = if count > 1.0 { squares / (count - 1.0) } else { f64::NAN };
            let distance = width * variance.sqrt();
            Some([mean + distance, mean, mean - distance])
        },
    )
}

/// The mean and the sum of squared deviations from it, as in [`crate::numerics::aggregate::Deviations`] but
/// without fused operations.
#[derive(Clone, Debug)]
struct Deviations;

impl Aggregate<1, 2> for Deviations {
    #[inline(always)]
    fn of(values: &[f64; 1], total: &mut [f64; 2]) {
        *total = [values[0], 0.0];
    }

    #[inline(always)]
    fn join([mean, squares]: &mut [f64; 2], n: f64, later: &[f64; 2], m: f64) {
        let distance = later[0] - *mean;
        let share = m / (n + m);
        *mean += distance * share;
        *squares = *squares + later[1] + distance * distance * n * share;
    }
}

/// The relative strength index `rsi`: 50 while nothing has moved.
pub(super) fn rsi(n: usize) -> impl Recurrence<1, 1> {
    let averages = [Adjusted::wilder(n), Adjusted::wilder(n)];
    scan((f64::NAN, averages), |(before, [gains, losses]), [value]: [f64; 1]| {
        let change = if before.is_nan() { 0.0 } else { value - *before };
        *before = value;
        let (gain, loss) = (gains.step(change.max(0.0)), losses.step((-change).max(0.0)));
        let sum = gain + loss;
        Some([if sum == 0.0 { 50.0 } else { 100.0 * (gain / sum) }])
    })
}

/// The commodity channel index `cci`: 0 during the warm-up.
pub(super) fn cci(n: usize) -> impl Recurrence<3, 1> {
    let state = (RingBuffer::new(n), Missing::new(n - 1, n));
    scan(state, move |(ring, missing), [high, low, close]: Hlc| {
        let n = n as f64;
        let price = (close + high + low) / 3.0;
        ring.replace(price);
        if missing.next() {
            return Some([0.0]);
        }
        // Relative to the oldest value, so that constant prices have a deviation of exactly 0.
        let base = ring.oldest();
        let mean = base + ring.values().iter().map(|value| value - base).sum::<f64>() / n;
        let deviation = ring.values().iter().map(|value| (value - mean).abs()).sum::<f64>() / n;
        Some([if deviation == 0.0 {
            0.0
        } else {
            (price - mean) / (0.015 * deviation)
        }])
    })
}

/// The plus and minus directional index, in percent, and the average true range. The first bar has no
/// directional movement, and its true range is its high less its low.
fn movement(n: usize) -> impl Recurrence<3, 3> {
    let state = ([0.0; 3], false, [(); 3].map(|()| Adjusted::wilder(n)));
    scan(state, |(before, begun, [up, down, range]), bar: Hlc| {
        if !*begun {
            (*begun, *before) = (true, bar);
        }
        let [high, low, close] = std::mem::replace(before, bar);
        let (rise, fall) = (bar[0] - high, low - bar[1]);
        let up = up.step(if rise > 0.0 && rise > fall { rise } else { 0.0 });
        let down = down.step(if fall > 0.0 && fall > rise { fall } else { 0.0 });
        let range = range.step(true_range(bar[0], bar[1], close));
        Some([up / range * 100.0, down / range * 100.0, range])
    })
}

/// The directional movement index, in percent, from the plus and minus index.
#[inline(always)]
fn index([up, down, _]: [f64; 3]) -> f64 {
    let sum = up + down;
    if sum == 0.0 {
        0.0
    } else {
        (up - down).abs() / sum * 100.0
    }
}

/// The average true range `atr`.
pub(super) fn atr(n: usize) -> impl Recurrence<3, 1> {
    map(movement(n), |[_, _, range]: [f64; 3]| [range])
}

/// The plus and minus directional index: `pdi` and `ndi`.
pub(super) fn indices(n: usize) -> impl Recurrence<3, 2> {
    map(movement(n), |[up, down, _]: [f64; 3]| [up, down])
}

/// The directional movement index `dx`.
pub(super) fn dx(n: usize) -> impl Recurrence<3, 1> {
    map(movement(n), |movement: [f64; 3]| [index(movement)])
}

/// The average directional index `adx`: the exponential average of `dx` over 6 bars.
pub(super) fn adx(n: usize) -> impl Recurrence<3, 1> {
    scan((movement(n), Adjusted::span(6)), |(movement, average), bar: Hlc| {
        let index = index(movement.next(bar)?);
        // pandas skips missing values.
        Some([if index.is_nan() { f64::NAN } else { average.step(index) }])
    })
}

/// Williams' %R, `wr`.
pub(super) fn williams_r(n: usize) -> impl Recurrence<3, 1> {
    scan(
        SlidingWindow::<Extremes, 2, 2>::new(n),
        |window, [high, low, close]: Hlc| {
            let ([high, low], _) = window.partial([high, low]);
            let range = high - low;
            Some([if range == 0.0 {
                0.0
            } else {
                (high - close) / range * -100.0
            }])
        },
    )
}

/// The KDJ indicator's `kdjk` and `kdjd`: two thirds of the previous value plus one third of the close's
/// position within the range (for `kdjd`, of `kdjk`), in percent, starting at 50.
pub(super) fn kdj(n: usize) -> impl Recurrence<3, 2> {
    let state = (SlidingWindow::<Extremes, 2, 2>::new(n), 50.0, 50.0);
    scan(state, |(window, k, d), [high, low, close]: Hlc| {
        let ([high, low], _) = window.partial([high, low]);
        let range = high - low;
        let position = if range == 0.0 {
            0.0
        } else {
            (close - low) / range * 100.0
        };
        *k = 2.0 / 3.0 * *k + 1.0 / 3.0 * position;
        *d = 2.0 / 3.0 * *d + 1.0 / 3.0 * *k;
        Some([*k, *d])
    })
}

/// The money flow index `mfi` as a fraction: 0.5 during the warm-up and where nothing moved.
pub(super) fn money_flow(n: usize) -> impl Recurrence<4, 1> {
    let sums = || SlidingWindow::<Sum, 1, 1>::new(n);
    let state = (f64::NAN, sums(), sums(), Missing::new(n, n));
    scan(
        state,
        |(before, up, down, missing), [high, low, close, volume]: [f64; 4]| {
            let price = (close + high + low) / 3.0;
            let (flow, before) = (price * volume, std::mem::replace(before, price));
            let ([up], _) = up.partial([if price > before { flow } else { 0.0 }]);
            let ([down], _) = down.partial([if price < before { flow } else { 0.0 }]);
            if missing.next() {
                return Some([0.5]);
            }
            let sum = up + down;
            Some([if sum > 0.0 { up / sum } else { 0.5 }])
        },
    )
}
