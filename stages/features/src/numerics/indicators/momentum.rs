//! Change, strength and relative position of the close, as TA-Lib defines them.

use super::average::{Exponential, Simple, rounding};
use super::directional::true_range;
use crate::numerics::aggregate::{Aggregate, ExtremePositions, Extremes, RollingAggregate, Sum, windowed};
use crate::numerics::kernel::{BLOCK, Kernel, Map, Recurrence, Scratch, scan};
use crate::numerics::lookback::{Lag, Lookback, Previous};
use crate::numerics::state::{Stateful, state};

/// The kind of a change from `o` to `v` over `n` bars.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChangeKind {
    /// `v - o`.
    Difference,
    /// `(v / o - 1) 100`.
    Percent,
    /// `(v - o) / o`.
    Fraction,
    /// `ln(v / o)`.
    Logarithm,
}

/// The change of the price over `n` bars.
#[derive(Clone, Debug)]
pub(super) struct Change {
    old: Lag,
    kind: ChangeKind,
}

state!(Change { old });

impl Change {
    pub(super) fn new(n: usize, kind: ChangeKind) -> Self {
        Self {
            old: Lag::new(n),
            kind,
        }
    }
}

impl ChangeKind {
    #[inline(always)]
    fn of(self, value: f64, old: f64) -> f64 {
        match self {
            Self::Difference => value - old,
            Self::Percent | Self::Fraction if old == 0.0 => 0.0,
            Self::Percent => (value / old - 1.0) * 100.0,
            Self::Fraction => (value - old) / old,
            Self::Logarithm if value > 0.0 && old > 0.0 => libm::log(value / old),
            Self::Logarithm => f64::NAN,
        }
    }
}

impl Kernel<1, 1> for Change {
    #[inline(always)]
    fn rows(&mut self, [values]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let (missing, pieces) = self.old.pieces(values);
        for (from, olds) in pieces {
            let pairs = out[from..].iter_mut().zip(values[from..].iter().zip(olds));
            // A separate loop for each kind, so that it is vectorised.
            match self.kind {
                ChangeKind::Difference => {
                    pairs.for_each(|(out, (&v, &o))| *out = ChangeKind::Difference.of(v, o))
                }
                ChangeKind::Percent => pairs.for_each(|(out, (&v, &o))| *out = ChangeKind::Percent.of(v, o)),
                ChangeKind::Fraction => {
                    pairs.for_each(|(out, (&v, &o))| *out = ChangeKind::Fraction.of(v, o))
                }
                ChangeKind::Logarithm => {
                    pairs.for_each(|(out, (&v, &o))| *out = ChangeKind::Logarithm.of(v, o))
                }
            }
        }
        self.old.take(values);
        missing
    }
}

/// Wilder's moving averages of gains and of losses.
#[derive(Clone, Debug)]
struct GainsAndLosses {
    before: Previous,
    gains: Exponential,
    losses: Exponential,
}

state!(GainsAndLosses { before, gains, losses });

impl GainsAndLosses {
    fn new(n: usize) -> Self {
        Self {
            before: Previous::default(),
            gains: Exponential::wilder(n),
            losses: Exponential::wilder(n),
        }
    }
}

impl Recurrence<1, 2> for GainsAndLosses {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 2]> {
        let [gain, loss] = gain_and_loss(value, self.before.next(value)?);
        let (gain, loss) = self.gains.begin(gain).zip(self.losses.begin(loss))?;
        Some([gain, loss])
    }

    #[inline(always)]
    fn is_warm(&self) -> bool {
        self.gains.has_begun()
    }

    #[inline(always)]
    fn step(&mut self, [value]: [f64; 1]) -> [f64; 2] {
        let [gain, loss] = gain_and_loss(value, self.before.replace(value));
        [self.gains.update(gain), self.losses.update(loss)]
    }
}

#[inline(always)]
fn gain_and_loss(value: f64, before: f64) -> [f64; 2] {
    let change = value - before;
    let gain = if change > 0.0 { change } else { 0.0 };
    [gain, gain - change]
}

/// The relative strength index, RSI (J. W. Wilder, 1978).
pub(super) fn rsi(n: usize) -> impl Recurrence<1, 1> {
    Map::new(GainsAndLosses::new(n), |[gain, loss]: [f64; 2]| {
        let sum = gain + loss;
        [if sum == 0.0 { 0.0 } else { 100.0 * (gain / sum) }]
    })
}

/// The Chande momentum oscillator, CMO (T. S. Chande), with Wilder's averages as in TA-Lib.
pub(super) fn cmo(n: usize) -> impl Recurrence<1, 1> {
    Map::new(GainsAndLosses::new(n), |[gain, loss]: [f64; 2]| {
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

/// A kernel that gives raw %K, with the smoothed %K and its average %D.
struct Stochastic<P, S> {
    first: P,
    k: S,
    d: Simple,
}

state!([P: Stateful, S: Stateful] Stochastic<P, S> { first, k, d });

/// The stochastic oscillator (G. Lane): %K over `k` bars, smoothed over `slow` bars (1 for none), and its
/// average %D over `d` bars.
pub(super) fn stochastic([k, slow, d]: [usize; 3]) -> impl Kernel<3, 2> {
    Stochastic {
        first: position(k),
        k: Simple::new(slow),
        d: Simple::new(d),
    }
}

/// The stochastic oscillator of another indicator's values.
pub(super) fn stochastic_of(indicator: impl Kernel<1, 1>, k: usize, d: usize) -> impl Kernel<1, 2> {
    Stochastic {
        first: indicator,
        k: Thrice(position(k)),
        d: Simple::new(d),
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

impl<P: Kernel<K, 1>, S: Kernel<1, 1>, const K: usize> Kernel<K, 2> for Stochastic<P, S> {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], [k, d]: [&mut [f64]; 2]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let first = &mut scratch[..k.len()];
        let mut missing = self.first.rows(inputs, [first]);
        missing += self.k.rows([&first[missing..]], [&mut k[missing..]]);
        missing + self.d.rows([&k[missing..]], [&mut d[missing..]])
    }
}

/// The commodity channel index (D. Lambert, 1980): the distance of the typical price from its mean, in units
/// of 0.015 mean absolute deviations.
#[derive(Clone, Debug)]
pub(super) struct Cci {
    prices: Lookback,
    sums: RollingAggregate<Sum, 1, 1>,
    n: usize,
}

state!(Cci { prices, sums });

impl Cci {
    pub(super) fn new(n: usize) -> Self {
        Self {
            prices: Lookback::new(n - 1),
            sums: RollingAggregate::new(n),
            n,
        }
    }
}

impl Kernel<3, 1> for Cci {
    #[inline(always)]
    fn rows(&mut self, [high, low, close]: [&[f64]; 3], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let prices = &mut scratch[..close.len()];
        for (price, ((high, low), close)) in prices.iter_mut().zip(high.iter().zip(low).zip(close)) {
            *price = (high + low + close) / 3.0;
        }
        let n = self.n as f64;
        let [sums] = self.sums.rows([prices]);
        let windows = self.prices.take(prices);
        let missing = prices.len() - sums.len();
        let (prices, out) = (&prices[missing..], &mut out[missing..]);
        let mut scratch: Scratch = [0.0; BLOCK];
        let means = &mut scratch[..sums.len()];
        for (mean, sum) in means.iter_mut().zip(sums) {
            *mean = sum / n;
        }
        let count = means.len();
        for from in (0..count).step_by(ROWS) {
            let mut deviations = [0.0; ROWS];
            let rows = ROWS.min(count - from);
            if rows == ROWS {
                let mut means_here = [0.0; ROWS];
                means_here.copy_from_slice(&means[from..from + ROWS]);
                for values in windows[from..from + ROWS + self.n - 1].windows(ROWS) {
                    for k in 0..ROWS {
                        deviations[k] += (values[k] - means_here[k]).abs();
                    }
                }
            } else {
                for k in 0..rows {
                    for value in &windows[from + k..][..self.n] {
                        deviations[k] += (value - means[from + k]).abs();
                    }
                }
            }
            out[from..from + rows].copy_from_slice(&deviations[..rows]);
        }
        for (out, (price, mean)) in out.iter_mut().zip(prices.iter().zip(means)) {
            let deviations = *out;
            let distance = price - *mean;
            let still = rounding(distance, price.abs() + mean.abs()) | rounding(deviations, n * mean.abs());
            let index = distance / (0.015 * (deviations / n));
            *out = if still { 0.0 } else { index };
        }
        missing
    }
}

/// The number of rows whose deviations are summed together, in registers.
const ROWS: usize = 16;

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
#[derive(Clone, Debug)]
pub(super) struct Ultimate {
    before: Lag,
    pressures: Lookback,
    ranges: Lookback,
    /// The periods in bars, ascending.
    periods: [usize; 3],
    /// The running sums of buying pressure and true range for each period.
    sums: [[f64; 2]; 3],
    begun: bool,
}

state!(Ultimate {
    before,
    pressures,
    ranges,
    sums,
    begun
});

impl Ultimate {
    pub(super) fn new(mut periods: [usize; 3]) -> Self {
        periods.sort_unstable();
        Self {
            before: Lag::new(1),
            pressures: Lookback::new(periods[2] - 1),
            ranges: Lookback::new(periods[2] - 1),
            periods,
            sums: [[0.0; 2]; 3],
            begun: false,
        }
    }
}

impl Kernel<3, 1> for Ultimate {
    #[inline(always)]
    fn rows(&mut self, [high, low, close]: [&[f64]; 3], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: [Scratch; 2] = [[0.0; BLOCK]; 2];
        let rows = close.len();
        let (first, pieces) = self.before.pieces(close);
        let [pressures, ranges] = &mut scratch;
        for (from, previous) in pieces {
            let bars = high[from..].iter().zip(&low[from..]).zip(&close[from..]).zip(previous);
            let outs = pressures[from..].iter_mut().zip(&mut ranges[from..]);
            for ((pressure, range), (((&high, &low), &close), &before)) in outs.zip(bars) {
                let floor = if before < low { before } else { low };
                (*pressure, *range) = (close - floor, true_range(high, low, before));
            }
        }
        self.before.take(close);
        let pressures = self.pressures.take(&pressures[first..rows]);
        let ranges = self.ranges.take(&ranges[first..rows]);
        let most = self.periods[2];
        let count = (ranges.len() + 1).saturating_sub(most);
        if count == 0 {
            return rows;
        }
        if !self.begun {
            // Each sum starts with the bars before the one that completes the longest window.
            self.begun = true;
            for (sum, n) in self.sums.iter_mut().zip(self.periods) {
                for i in most - n..most - 1 {
                    *sum = [sum[0] + pressures[i], sum[1] + ranges[i]];
                }
            }
        }
        let from = |place: usize| [&pressures[place..][..count], &ranges[place..][..count]];
        let new = from(most - 1);
        let olds = self.periods.map(|n| from(most - n));
        let mut sums = self.sums;
        let mut windows: [[Scratch; 2]; 3] = [[[0.0; BLOCK]; 2]; 3];
        for i in 0..count {
            for k in 0..3 {
                for of in 0..2 {
                    let sum = sums[k][of] + new[of][i];
                    windows[k][of][i] = sum;
                    sums[k][of] = sum - olds[k][of][i];
                }
            }
        }
        self.sums = sums;
        let missing = rows - count;
        for (i, out) in out[missing..].iter_mut().enumerate() {
            let mut weighted = 0.0;
            for (window, weight) in windows.iter().zip([4.0, 2.0, 1.0]) {
                let share = window[0][i] / window[1][i];
                weighted += weight * if window[1][i] == 0.0 { 0.0 } else { share };
            }
            *out = weighted * (100.0 / 7.0);
        }
        missing
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

/// The midpoint of the highest and the lowest value of `n` bars.
pub(super) fn middle(n: usize) -> impl Kernel<2, 1> {
    windowed::<Extremes, _, 2, 2>(n, |[high, low]: [f64; 2], _: [f64; 2]| [(high + low) / 2.0])
}

/// The greatest or the least of `n` values.
pub(super) fn extreme<A: Aggregate<1, 1>>(n: usize) -> impl Kernel<1, 1> {
    windowed::<A, _, 1, 1>(n, |found: [f64; 1], _: [f64; 1]| found)
}
