//! Change, strength and relative position of the close, as TA-Lib defines them.

use super::average::{Exponential, rounding, simple};
use super::directional::true_range;
use crate::numerics::aggregate::{Aggregate, ExtremePositions, Extremes, Sum, windowed};
use crate::numerics::kernel::{BLOCK, Chain, Kernel, Recurrence, SHORT, Scratch, map, scan};
use crate::numerics::lookback::{Lookback, Previous};
use crate::numerics::state::{Stateful, state};

/// The change from `old` to `value` as a fraction of `old`; 0 if that is 0.
#[inline(always)]
pub(super) fn fraction(value: f64, old: f64) -> f64 {
    if old == 0.0 { 0.0 } else { (value - old) / old }
}

/// The logarithm of `value / old`; NaN unless both are positive.
#[inline(always)]
pub(super) fn log_return(value: f64, old: f64) -> f64 {
    if value > 0.0 && old > 0.0 {
        libm::log(value / old)
    } else {
        f64::NAN
    }
}

/// Wilder's moving averages of gains and of losses.
fn gains_and_losses(n: usize) -> impl Recurrence<1, 2> {
    let state = (Previous::default(), [Exponential::wilder(n), Exponential::wilder(n)]);
    scan(state, |(before, [gains, losses]), [value]: [f64; 1]| {
        let change = value - before.next(value)?;
        let gain = if change > 0.0 { change } else { 0.0 };
        let (gain, loss) = gains.add(gain).zip(losses.add(gain - change))?;
        Some([gain, loss])
    })
}

/// The relative strength index, RSI (J. W. Wilder, 1978).
pub(super) fn rsi(n: usize) -> impl Recurrence<1, 1> {
    map(gains_and_losses(n), |[gain, loss]: [f64; 2]| {
        let sum = gain + loss;
        [if sum == 0.0 { 0.0 } else { 100.0 * (gain / sum) }]
    })
}

/// The Chande momentum oscillator, CMO (T. S. Chande), with Wilder's averages as in TA-Lib.
pub(super) fn cmo(n: usize) -> impl Recurrence<1, 1> {
    map(gains_and_losses(n), |[gain, loss]: [f64; 2]| {
        let sum = gain + loss;
        [if sum == 0.0 { 0.0 } else { 100.0 * ((gain - loss) / sum) }]
    })
}

/// The position of the close within the range of the last `n` bars, in percent from its low.
fn position(n: usize) -> impl Kernel<3, 1> {
    windowed::<Extremes, _, 2, 2>(n, |[high, low]: [f64; 2], [.., close]: [f64; 3]| {
        let range = high - low;
        let position = (close - low) / (range / 100.0);
        [if rounding(range, high.abs() + low.abs()) {
            0.0
        } else {
            position
        }]
    })
}

/// Williams' %R: the distance of the close from the highest high of `n` bars in percent of their range, 0 to
/// -100.
pub(super) fn williams_r(n: usize) -> impl Kernel<3, 1> {
    windowed::<Extremes, _, 2, 2>(n, |[high, low]: [f64; 2], [.., close]: [f64; 3]| {
        let range = high - low;
        let below = (high - close) / (range / -100.0);
        [if range == 0.0 { 0.0 } else { below }]
    })
}

/// The stochastic oscillator (G. Lane): %K over `k` bars, smoothed over `slow` bars (1 for none), and its
/// average %D over `d` bars.
pub(super) fn stochastic([k, slow, d]: [usize; 3]) -> impl Kernel<3, 2> {
    let smoothed = Smoothed(simple(slow), simple(d));
    Chain::<_, _, 1>::new(position(k), smoothed)
}

/// The stochastic oscillator of another indicator's values.
pub(super) fn stochastic_of(indicator: impl Kernel<1, 1>, k: usize, d: usize) -> impl Kernel<1, 2> {
    let smoothed = Smoothed(Thrice(position(k)), simple(d));
    Chain::<_, _, 1>::new(indicator, smoothed)
}

/// A kernel that gives the values of one kernel, and those of a second one over them.
struct Smoothed<A, B>(A, B);

state!([A: Stateful, B: Stateful] Smoothed<A, B> { 0, 1 });

impl<A: Kernel<1, 1>, B: Kernel<1, 1>> Kernel<1, 2> for Smoothed<A, B> {
    #[inline(always)]
    fn rows(&mut self, values: [&[f64]; 1], [k, d]: [&mut [f64]; 2]) -> usize {
        let missing = self.0.rows(values, [k]);
        missing + self.1.rows([&k[missing..]], [&mut d[missing..]])
    }
}

/// Applies a kernel of high, low and close to a single series, used for all three.
struct Thrice<P>(P);

state!([P: Stateful] Thrice<P> { 0 });

impl<P: Kernel<3, 1>> Kernel<1, 1> for Thrice<P> {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], out: [&mut [f64]; 1]) -> usize {
        self.0.rows([values; 3], out)
    }
}

/// The commodity channel index (D. Lambert, 1980): the distance of the typical price from its mean, in units
/// of 0.015 mean absolute deviations.
pub(super) fn channel_index(n: usize) -> impl Kernel<3, 1> {
    Cci {
        prices: Lookback::new(n - 1),
        sums: windowed::<Sum, _, 1, 1>(n, |sum: [f64; 1], _: [f64; 1]| sum),
        n,
    }
}

struct Cci<S> {
    prices: Lookback,
    /// The sums of prices over the window.
    sums: S,
    n: usize,
}

state!([S: Stateful] Cci<S> { prices, sums });

impl<S: Kernel<1, 1>> Kernel<3, 1> for Cci<S> {
    #[inline(always)]
    fn rows(&mut self, [high, low, close]: [&[f64]; 3], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let prices = &mut scratch[..close.len()];
        for (price, ((high, low), close)) in prices.iter_mut().zip(high.iter().zip(low).zip(close)) {
            *price = (high + low + close) / 3.0;
        }
        let n = self.n as f64;
        let missing = self.sums.rows([prices], [out]);
        let windows = self.prices.take(prices);
        for (i, out) in out[missing..].iter_mut().enumerate() {
            let (price, mean) = (prices[missing + i], *out / n);
            let deviations: f64 = windows[i..][..self.n].iter().map(|value| (value - mean).abs()).sum();
            let distance = price - mean;
            let still = rounding(distance, price.abs() + mean.abs()) | rounding(deviations, n * mean.abs());
            let index = distance / (0.015 * (deviations / n));
            *out = if still { 0.0 } else { index };
        }
        missing
    }
}

/// Aroon up, Aroon down and their difference, in percent, from the number of bars since the highest high and
/// the lowest low of the last `n + 1` bars.
pub(super) fn aroon(n: usize) -> impl Kernel<2, 3> {
    let factor = 100.0 / n as f64;
    windowed::<ExtremePositions, _, 2, 4>(n + 1, move |[_, _, high, low]: [f64; 4], _: [f64; 2]| {
        [factor * high, factor * low, factor * (high - low)]
    })
}

/// The ultimate oscillator (L. Williams, 1985): buying pressure over true range in three periods, weighted 4,
/// 2 and 1 from the shortest to the longest.
pub(super) fn ultimate(mut periods: [usize; 3]) -> impl Kernel<3, 1> {
    let parts = scan(Previous::default(), |before, [high, low, close]: [f64; 3]| {
        let before = before.next(close)?;
        let floor = if before < low { before } else { low };
        Some([close - floor, true_range(high, low, before)])
    });
    periods.sort_unstable();
    let shares = Ultimate {
        pressures: Lookback::new(periods[2] - 1),
        ranges: Lookback::new(periods[2] - 1),
        periods,
        sums: [[0.0; 2]; 3],
        begun: false,
    };
    Chain::<_, _, 2>::new(parts, shares)
}

/// The ultimate oscillator of buying pressures and true ranges.
struct Ultimate {
    pressures: Lookback,
    ranges: Lookback,
    /// The periods in bars, ascending.
    periods: [usize; 3],
    /// The running sums of buying pressure and true range for each period.
    sums: [[f64; 2]; 3],
    begun: bool,
}

state!(Ultimate {
    pressures,
    ranges,
    sums,
    begun
});

impl Kernel<2, 1> for Ultimate {
    #[inline(always)]
    fn rows(&mut self, [pressures, ranges]: [&[f64]; 2], [out]: [&mut [f64]; 1]) -> usize {
        let (rows, most) = (ranges.len(), self.periods[2]);
        let parts = [self.pressures.take(pressures), self.ranges.take(ranges)];
        let count = (parts[0].len() + 1).saturating_sub(most);
        if count == 0 {
            return rows;
        }
        let part = |i: usize| parts.map(|part| part[i]);
        if !self.begun {
            // Each sum starts with the bars before the one that completes the longest window.
            self.begun = true;
            for (sum, n) in self.sums.iter_mut().zip(self.periods) {
                for i in most - n..most - 1 {
                    *sum = [sum[0] + part(i)[0], sum[1] + part(i)[1]];
                }
            }
        }
        let mut sums = self.sums;
        let mut windows = [[[0.0; SHORT]; 2]; 3];
        for (at, out) in out[rows - count..].chunks_mut(SHORT).enumerate() {
            let slice = |first: usize| parts.map(|part| &part[first + at * SHORT..][..out.len()]);
            let (new, old) = (slice(most - 1), self.periods.map(|n| slice(most - n)));
            for i in 0..out.len() {
                for p in 0..3 {
                    for k in 0..2 {
                        let window = sums[p][k] + new[k][i];
                        windows[p][k][i] = window;
                        sums[p][k] = window - old[p][k][i];
                    }
                }
            }
            // The divisions apart, as vectors.
            for (i, out) in out.iter_mut().enumerate() {
                let mut weighted = 0.0;
                for ([pressure, range], weight) in windows.iter().zip([4.0, 2.0, 1.0]) {
                    let share = pressure[i] / range[i];
                    weighted += weight * if range[i] == 0.0 { 0.0 } else { share };
                }
                *out = weighted * (100.0 / 7.0);
            }
        }
        self.sums = sums;
        rows - count
    }
}

/// The balance of power: the move from open to close as a fraction of the bar's range.
pub(super) fn balance() -> impl Recurrence<4, 1> {
    scan((), |(), [open, high, low, close]: [f64; 4]| {
        let range = high - low;
        let share = (close - open) / range;
        Some([if range <= 0.0 { 0.0 } else { share }])
    })
}

/// The midpoint of the highest value of the first and the lowest of the last column of `n` bars.
pub(super) fn middle<const K: usize>(n: usize) -> impl Kernel<K, 1>
where
    Extremes: Aggregate<K, 2>,
{
    windowed::<Extremes, _, K, 2>(n, |[high, low]: [f64; 2], _: [f64; K]| [(high + low) / 2.0])
}

/// The greatest or the least of `n` values.
pub(super) fn extreme<A: Aggregate<1, 1>>(n: usize) -> impl Kernel<1, 1> {
    windowed::<A, _, 1, 1>(n, |found: [f64; 1], _: [f64; 1]| found)
}
