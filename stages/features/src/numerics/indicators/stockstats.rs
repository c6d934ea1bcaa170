//! The variants of stockstats 0.6.10, which FinRL takes its features from. They differ from TA-Lib's in that
//! they give values from the first bar on (of as many bars as there are) and in their averages: exponential
//! weights that are made to sum to one in place of a seed, and the sample deviation in place of that of the
//! population.

use super::directional::{Hlc, true_range};
use crate::numerics::kernel::{Map, Recurrence};
use crate::numerics::sliding_window::{Deviations, Extremes, RingBuffer, SlidingWindow, Sum};
use crate::numerics::state::state;

/// The average with weights `(1 - a)^k`, over the sum of the weights of as many bars as there are (pandas'
/// `ewm(adjust=True)`).
#[derive(Clone, Debug)]
pub struct Adjusted {
    average: f64,
    weight: f64,
    keep: f64,
}

state!(Adjusted { average, weight });

impl Adjusted {
    /// `a = 2 / (n + 1)`.
    pub fn span(n: usize) -> Self {
        Self {
            average: 0.0,
            weight: 0.0,
            keep: 1.0 - 2.0 / (n as f64 + 1.0),
        }
    }

    /// `a = 1 / n`, as Wilder's.
    pub fn wilder(n: usize) -> Self {
        Self {
            average: 0.0,
            weight: 0.0,
            keep: 1.0 - 1.0 / n as f64,
        }
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

/// The mean of the last `n` values, or of as many as there are.
#[derive(Clone, Debug)]
pub struct Mean(SlidingWindow<Sum>);

state!(Mean { 0 });

impl Mean {
    pub fn new(n: usize) -> Self {
        Self(SlidingWindow::new(n))
    }
}

impl Recurrence<1, 1> for Mean {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        Some([self.0.partial([value]).mean()])
    }
}

/// `macd`, `macds`, `macdh`.
#[derive(Clone, Debug)]
pub struct Macd([Adjusted; 3]);

state!(Macd { 0 });

impl Macd {
    pub fn new(periods: [usize; 3]) -> Self {
        Self(periods.map(Adjusted::span))
    }
}

impl Recurrence<1, 3> for Macd {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 3]> {
        let [fast, slow, signal] = &mut self.0;
        let line = fast.step(value) - slow.step(value);
        let signal = signal.step(line);
        Some([line, signal, line - signal])
    }
}

/// `boll_ub`, `boll`, `boll_lb`, with the sample deviation: from the second bar on.
#[derive(Clone, Debug)]
pub struct Bands {
    spread: SlidingWindow<Deviations>,
    width: f64,
}

state!(Bands { spread });

impl Bands {
    pub fn new(n: usize, width: f64) -> Self {
        Self {
            spread: SlidingWindow::new(n),
            width,
        }
    }
}

impl Recurrence<1, 3> for Bands {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 3]> {
        let spread = self.spread.partial([value]);
        let distance = self.width * spread.variance().unwrap_or(f64::NAN).sqrt();
        Some([spread.mean + distance, spread.mean, spread.mean - distance])
    }
}

/// `rsi`: 50 where nothing moved.
#[derive(Clone, Debug)]
pub struct Rsi {
    before: f64,
    averages: [Adjusted; 2],
}

state!(Rsi { before, averages });

impl Rsi {
    pub fn new(n: usize) -> Self {
        Self {
            before: f64::NAN,
            averages: [Adjusted::wilder(n), Adjusted::wilder(n)],
        }
    }
}

impl Recurrence<1, 1> for Rsi {
    #[inline(always)]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let change = if self.before.is_nan() { 0.0 } else { value - self.before };
        self.before = value;
        let [gains, losses] = &mut self.averages;
        let (gain, loss) = (gains.step(change.max(0.0)), losses.step((-change).max(0.0)));
        let sum = gain + loss;
        Some([if sum == 0.0 { 50.0 } else { 100.0 * (gain / sum) }])
    }
}

/// `cci`: 0 in the warm-up.
#[derive(Clone, Debug)]
pub struct Cci {
    ring: RingBuffer,
    missing: usize,
    n: usize,
}

state!(Cci { ring, missing <= n });

impl Cci {
    pub fn new(n: usize) -> Self {
        Self {
            ring: RingBuffer::new(n),
            missing: n - 1,
            n,
        }
    }
}

impl Recurrence<3, 1> for Cci {
    #[inline(always)]
    fn next(&mut self, [high, low, close]: Hlc) -> Option<[f64; 1]> {
        let n = self.n as f64;
        let price = (close + high + low) / 3.0;
        self.ring.replace(price);
        if self.missing > 0 {
            self.missing -= 1;
            return Some([0.0]);
        }
        // About the first value, so that prices which do not move have no deviation but none.
        let base = self.ring.oldest();
        let mean = base + self.ring.values().iter().map(|value| value - base).sum::<f64>() / n;
        let deviation = self.ring.values().iter().map(|value| (value - mean).abs()).sum::<f64>() / n;
        Some([if deviation == 0.0 {
            0.0
        } else {
            (price - mean) / (0.015 * deviation)
        }])
    }
}

/// `pdi`, `ndi`, `dx` and the averages they are made of. The first bar has no movement, and its true range is
/// its range.
#[derive(Clone, Debug)]
struct Movement {
    before: Hlc,
    begun: bool,
    up: Adjusted,
    down: Adjusted,
    range: Adjusted,
}

state!(Movement {
    before,
    begun,
    up,
    down,
    range
});

impl Movement {
    fn new(n: usize) -> Self {
        let average = || Adjusted::wilder(n);
        Self {
            before: [0.0; 3],
            begun: false,
            up: average(),
            down: average(),
            range: average(),
        }
    }
}

impl Recurrence<3, 3> for Movement {
    /// Plus and minus directional index, percent, and the average true range.
    #[inline(always)]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 3]> {
        if !self.begun {
            (self.begun, self.before) = (true, bar);
        }
        let [high, low, close] = std::mem::replace(&mut self.before, bar);
        let (rise, fall) = (bar[0] - high, low - bar[1]);
        let up = self.up.step(if rise > 0.0 && rise > fall { rise } else { 0.0 });
        let down = self.down.step(if fall > 0.0 && fall > rise { fall } else { 0.0 });
        let range = self.range.step(true_range(bar[0], bar[1], close));
        Some([up / range * 100.0, down / range * 100.0, range])
    }
}

/// The directional movement index, percent.
#[inline(always)]
fn index([up, down, _]: [f64; 3]) -> f64 {
    let sum = up + down;
    if sum == 0.0 {
        0.0
    } else {
        (up - down).abs() / sum * 100.0
    }
}

/// `atr`.
pub fn atr(n: usize) -> impl Recurrence<3, 1> {
    Map::new(Movement::new(n), |[_, _, range]: [f64; 3]| [range])
}

/// `pdi` and `ndi`.
pub fn indices(n: usize) -> impl Recurrence<3, 2> {
    Map::new(Movement::new(n), |[up, down, _]: [f64; 3]| [up, down])
}

/// `dx`.
pub fn dx(n: usize) -> impl Recurrence<3, 1> {
    Map::new(Movement::new(n), |movement: [f64; 3]| [index(movement)])
}

/// `adx`: the exponential average over 6 bars of `dx`.
#[derive(Clone, Debug)]
pub struct Adx {
    movement: Movement,
    average: Adjusted,
}

state!(Adx { movement, average });

impl Adx {
    pub fn new(n: usize) -> Self {
        Self {
            movement: Movement::new(n),
            average: Adjusted::span(6),
        }
    }
}

impl Recurrence<3, 1> for Adx {
    #[inline(always)]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 1]> {
        let index = index(self.movement.next(bar)?);
        // pandas passes a missing value over.
        if index.is_nan() {
            Some([f64::NAN])
        } else {
            Some([self.average.step(index)])
        }
    }
}

/// `wr`.
#[derive(Clone, Debug)]
pub struct WilliamsR(SlidingWindow<Extremes>);

state!(WilliamsR { 0 });

impl WilliamsR {
    pub fn new(n: usize) -> Self {
        Self(SlidingWindow::new(n))
    }
}

impl Recurrence<3, 1> for WilliamsR {
    #[inline(always)]
    fn next(&mut self, [high, low, close]: Hlc) -> Option<[f64; 1]> {
        let Extremes { high, low } = self.0.partial([high, low]);
        let range = high - low;
        Some([if range == 0.0 {
            0.0
        } else {
            (high - close) / range * -100.0
        }])
    }
}

/// `kdjk` and `kdjd`: a third of the position in the range, percent, is added to two thirds of the previous
/// value, from 50 on.
#[derive(Clone, Debug)]
pub struct Kdj {
    range: SlidingWindow<Extremes>,
    k: f64,
    d: f64,
}

state!(Kdj { range, k, d });

impl Kdj {
    pub fn new(n: usize) -> Self {
        Self {
            range: SlidingWindow::new(n),
            k: 50.0,
            d: 50.0,
        }
    }
}

impl Recurrence<3, 2> for Kdj {
    #[inline(always)]
    fn next(&mut self, [high, low, close]: Hlc) -> Option<[f64; 2]> {
        let Extremes { high, low } = self.range.partial([high, low]);
        let range = high - low;
        let position = if range == 0.0 {
            0.0
        } else {
            (close - low) / range * 100.0
        };
        self.k = 2.0 / 3.0 * self.k + 1.0 / 3.0 * position;
        self.d = 2.0 / 3.0 * self.d + 1.0 / 3.0 * self.k;
        Some([self.k, self.d])
    }
}

/// `mfi`: a fraction, 0.5 in the warm-up and where nothing moved.
#[derive(Clone, Debug)]
pub struct MoneyFlow {
    before: f64,
    up: SlidingWindow<Sum>,
    down: SlidingWindow<Sum>,
    missing: usize,
    n: usize,
}

state!(MoneyFlow { before, up, down, missing <= n });

impl MoneyFlow {
    pub fn new(n: usize) -> Self {
        Self {
            before: f64::NAN,
            up: SlidingWindow::new(n),
            down: SlidingWindow::new(n),
            missing: n,
            n,
        }
    }
}

impl Recurrence<4, 1> for MoneyFlow {
    #[inline(always)]
    fn next(&mut self, [high, low, close, volume]: [f64; 4]) -> Option<[f64; 1]> {
        let price = (close + high + low) / 3.0;
        let (flow, before) = (price * volume, std::mem::replace(&mut self.before, price));
        let up = self.up.partial([if price > before { flow } else { 0.0 }]).sum;
        let down = self.down.partial([if price < before { flow } else { 0.0 }]).sum;
        if self.missing > 0 {
            self.missing -= 1;
            return Some([0.5]);
        }
        let sum = up + down;
        Some([if sum > 0.0 { up / sum } else { 0.5 }])
    }
}
