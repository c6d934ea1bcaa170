//! Change, strength and position of the close, as TA-Lib defines them.

use super::average::{Simple, rounding};
use crate::numerics::machine::{Machine, Memory};
use crate::numerics::rolling::{Greatest, Lag, Places, Range, Ring, Sliding};

/// How the price of now is set against that of `n` bars ago.
#[derive(Clone, Copy, Debug)]
pub enum Against {
    /// `v - o`.
    Difference,
    /// `(v / o - 1) 100`.
    Percent,
    /// `(v - o) / o`.
    Fraction,
    /// `ln(v / o)`.
    Logarithm,
}

/// The price of now against that of `n` bars ago.
#[derive(Clone, Debug)]
pub struct Change {
    lag: Lag,
    against: Against,
}

impl Change {
    pub fn new(n: usize, against: Against) -> Self {
        Self {
            lag: Lag::new(n),
            against,
        }
    }
}

impl Against {
    #[inline]
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

impl Machine<1, 1> for Change {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let old = self.lag.next(value)?;
        Some([self.against.of(value, old)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.lag.visit(memory);
    }

    fn rows(mut self, [values]: [&[f64]; 1], [output]: [&mut [f64]; 1]) -> Self {
        output.fill(f64::NAN);
        let against = self.against;
        self.lag.rows(values, |from, values, olds| {
            let pairs = output[from..].iter_mut().zip(values.iter().zip(olds));
            // A loop of its own for each, so that it becomes vector instructions.
            match against {
                Against::Difference => pairs.for_each(|(out, (&v, &o))| *out = Against::Difference.of(v, o)),
                Against::Percent => pairs.for_each(|(out, (&v, &o))| *out = Against::Percent.of(v, o)),
                Against::Fraction => pairs.for_each(|(out, (&v, &o))| *out = Against::Fraction.of(v, o)),
                Against::Logarithm => pairs.for_each(|(out, (&v, &o))| *out = Against::Logarithm.of(v, o)),
            }
        });
        self
    }
}

/// Wilder's averages of gains and of losses.
#[derive(Clone, Debug)]
struct Strength {
    before: f64,
    gain: f64,
    loss: f64,
    /// Values seen, at most n + 1.
    seen: usize,
    n: usize,
    keep: f64,
}

impl Strength {
    fn new(n: usize) -> Self {
        Self {
            before: 0.0,
            gain: 0.0,
            loss: 0.0,
            seen: 0,
            n,
            keep: (n as f64 - 1.0) / n as f64,
        }
    }

    #[inline]
    fn next(&mut self, value: f64) -> Option<(f64, f64)> {
        let change = value - self.before;
        self.before = value;
        let gain = if change > 0.0 { change } else { 0.0 };
        let loss = gain - change;
        if self.seen > self.n {
            self.gain = self.keep * self.gain + (1.0 - self.keep) * gain;
            self.loss = self.keep * self.loss + (1.0 - self.keep) * loss;
        } else {
            self.seen += 1;
            if self.seen > 1 {
                self.gain += gain;
                self.loss += loss;
            }
            if self.seen <= self.n {
                return None;
            }
            self.gain /= self.n as f64;
            self.loss /= self.n as f64;
        }
        Some((self.gain, self.loss))
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        for number in [&mut self.before, &mut self.gain, &mut self.loss] {
            memory.number(number);
        }
        memory.count(&mut self.seen, self.n + 1);
    }
}

/// The relative strength index (J. W. Wilder, 1978).
#[derive(Clone, Debug)]
pub struct Rsi(Strength);

impl Rsi {
    pub fn new(n: usize) -> Self {
        Self(Strength::new(n))
    }
}

impl Machine<1, 1> for Rsi {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let (gain, loss) = self.0.next(value)?;
        let sum = gain + loss;
        Some([if sum == 0.0 { 0.0 } else { 100.0 * (gain / sum) }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The momentum oscillator (T. S. Chande), with Wilder's averages as in TA-Lib.
#[derive(Clone, Debug)]
pub struct Cmo(Strength);

impl Cmo {
    pub fn new(n: usize) -> Self {
        Self(Strength::new(n))
    }
}

impl Machine<1, 1> for Cmo {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let (gain, loss) = self.0.next(value)?;
        let sum = gain + loss;
        Some([if sum == 0.0 { 0.0 } else { 100.0 * ((gain - loss) / sum) }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// Where the last price stands within the range of `n` bars, percent from its low.
#[derive(Clone, Debug)]
struct Position(Sliding<Range>);

impl Position {
    #[inline]
    fn next(&mut self, [high, low, close]: [f64; 3]) -> Option<f64> {
        let Range { high, low } = self.0.next([high, low])?;
        let range = high - low;
        Some(if rounding(range, high.abs() + low.abs()) {
            0.0
        } else {
            (close - low) / (range / 100.0)
        })
    }
}

/// The stochastic oscillator (G. Lane): %K of `fast` bars, smoothed over `slow`, and its average %D.
#[derive(Clone, Debug)]
pub struct Stochastic {
    position: Position,
    slow: Simple,
    d: Simple,
}

impl Stochastic {
    /// `slow` is 1 where %K is not smoothed.
    pub fn new([k, slow, d]: [usize; 3]) -> Self {
        Self {
            position: Position(Sliding::new(k)),
            slow: Simple::new(slow),
            d: Simple::new(d),
        }
    }
}

impl Machine<3, 2> for Stochastic {
    #[inline]
    fn next(&mut self, bar: [f64; 3]) -> Option<[f64; 2]> {
        let [k] = self.slow.next([self.position.next(bar)?])?;
        let [d] = self.d.next([k])?;
        Some([k, d])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.position.0.visit(memory);
        self.slow.visit(memory);
        self.d.visit(memory);
    }
}

/// The stochastic oscillator of the relative strength index.
#[derive(Clone, Debug)]
pub struct StochasticRsi {
    rsi: Rsi,
    position: Position,
    d: Simple,
}

impl StochasticRsi {
    pub fn new(n: usize, k: usize, d: usize) -> Self {
        Self {
            rsi: Rsi::new(n),
            position: Position(Sliding::new(k)),
            d: Simple::new(d),
        }
    }
}

impl Machine<1, 2> for StochasticRsi {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 2]> {
        let [rsi] = self.rsi.next([value])?;
        let k = self.position.next([rsi; 3])?;
        let [d] = self.d.next([k])?;
        Some([k, d])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.rsi.visit(memory);
        self.position.0.visit(memory);
        self.d.visit(memory);
    }
}

/// Williams' %R: where the close stands below the high of `n` bars, 0 to -100.
#[derive(Clone, Debug)]
pub struct WilliamsR(Sliding<Range>);

impl WilliamsR {
    pub fn new(n: usize) -> Self {
        Self(Sliding::new(n))
    }
}

impl Machine<3, 1> for WilliamsR {
    #[inline]
    fn next(&mut self, [high, low, close]: [f64; 3]) -> Option<[f64; 1]> {
        let Range { high, low } = self.0.next([high, low])?;
        let range = high - low;
        Some([if range == 0.0 {
            0.0
        } else {
            (high - close) / (range / -100.0)
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The commodity channel index (D. Lambert, 1980): the distance of the typical price from its mean in mean absolute deviations of 0.015. The sums go
/// over the places of the ring, in TA-Lib's order, since on flat prices their rounding is all there is.
#[derive(Clone, Debug)]
pub struct Cci {
    ring: Ring,
    missing: usize,
    n: usize,
}

impl Cci {
    pub fn new(n: usize) -> Self {
        Self {
            ring: Ring::new(n),
            missing: n - 1,
            n,
        }
    }
}

impl Machine<3, 1> for Cci {
    #[inline]
    fn next(&mut self, [high, low, close]: [f64; 3]) -> Option<[f64; 1]> {
        let n = self.n as f64;
        let price = (high + low + close) / 3.0;
        self.ring.replace(price);
        if self.missing > 0 {
            self.missing -= 1;
            return None;
        }
        let mut mean = 0.0;
        for value in self.ring.places() {
            mean += value;
        }
        mean /= n;
        let mut deviations = 0.0;
        for value in self.ring.places() {
            deviations += (value - mean).abs();
        }
        let distance = price - mean;
        let still = rounding(distance, price.abs() + mean.abs()) || rounding(deviations, n * mean.abs());
        Some([if still {
            0.0
        } else {
            distance / (0.015 * (deviations / n))
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.ring.visit(memory);
        memory.count(&mut self.missing, self.n);
    }
}

/// How long ago the high and the low of `n + 1` bars were: Aroon's up, down and up less down.
#[derive(Clone, Debug)]
pub struct Aroon {
    places: Sliding<Places>,
    n: usize,
}

impl Aroon {
    pub fn new(n: usize) -> Self {
        Self {
            places: Sliding::new(n + 1),
            n,
        }
    }
}

impl Machine<2, 3> for Aroon {
    #[inline]
    fn next(&mut self, [high, low]: [f64; 2]) -> Option<[f64; 3]> {
        let Places { high, low, .. } = self.places.next([high, low])?;
        let factor = 100.0 / self.n as f64;
        Some([factor * high, factor * low, factor * (high - low)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.places.visit(memory);
    }
}

/// The ultimate oscillator (L. Williams, 1985): buying pressure over true range for three periods, weighted 4, 2 and 1.
#[derive(Clone, Debug)]
pub struct Ultimate {
    before: Lag,
    pressures: Ring,
    ranges: Ring,
    /// Ascending.
    periods: [usize; 3],
    /// Running sums of both for each period, which lose what falls out after each value.
    sums: [[f64; 2]; 3],
    /// True ranges seen, at most the longest period.
    seen: usize,
}

impl Ultimate {
    pub fn new(mut periods: [usize; 3]) -> Self {
        periods.sort_unstable();
        let ring = || Ring::new(periods[2]);
        Self {
            before: Lag::new(1),
            pressures: ring(),
            ranges: ring(),
            periods,
            sums: [[0.0; 2]; 3],
            seen: 0,
        }
    }
}

impl Machine<3, 1> for Ultimate {
    #[inline]
    fn next(&mut self, [high, low, close]: [f64; 3]) -> Option<[f64; 1]> {
        let before = self.before.next(close)?;
        let floor = if before < low { before } else { low };
        let (pressure, range) = (close - floor, super::directional::true_range(high, low, before));
        self.pressures.replace(pressure);
        self.ranges.replace(range);
        let most = self.periods[2];
        // Every sum begins with the bar that makes it full when the longest one is, as in TA-Lib.
        for (sum, n) in self.sums.iter_mut().zip(self.periods) {
            if self.seen >= most - n {
                *sum = [sum[0] + pressure, sum[1] + range];
            }
        }
        self.seen = (self.seen + 1).min(most);
        if self.seen < most {
            return None;
        }
        let [short, middle, long] = self
            .sums
            .map(|[pressure, range]| if range == 0.0 { 0.0 } else { pressure / range });
        for (sum, n) in self.sums.iter_mut().zip(self.periods) {
            *sum = [sum[0] - self.pressures.ago(n - 1), sum[1] - self.ranges.ago(n - 1)];
        }
        Some([100.0 * ((4.0 * short + 2.0 * middle + long) / 7.0)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.before.visit(memory);
        self.pressures.visit(memory);
        self.ranges.visit(memory);
        for sum in &mut self.sums {
            memory.numbers(sum);
        }
        memory.count(&mut self.seen, self.periods[2]);
    }
}

/// The balance of power: where the bar went within its range.
#[derive(Clone, Debug)]
pub struct Balance;

impl Machine<4, 1> for Balance {
    #[inline]
    fn next(&mut self, [open, high, low, close]: [f64; 4]) -> Option<[f64; 1]> {
        let range = high - low;
        Some([if range <= 0.0 { 0.0 } else { (close - open) / range }])
    }

    fn visit(&mut self, _: &mut Memory<'_>) {}
}

/// The mean of the highest and the lowest of `n` bars.
#[derive(Clone, Debug)]
pub struct Middle(Sliding<Range>);

impl Middle {
    pub fn new(n: usize) -> Self {
        Self(Sliding::new(n))
    }
}

impl Machine<2, 1> for Middle {
    #[inline]
    fn next(&mut self, bar: [f64; 2]) -> Option<[f64; 1]> {
        let Range { high, low } = self.0.next(bar)?;
        Some([(high + low) / 2.0])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The greatest of `n` values, or the least.
#[derive(Clone, Debug)]
pub struct Extreme {
    greatest: Sliding<Greatest>,
    sign: f64,
}

impl Extreme {
    pub fn greatest(n: usize) -> Self {
        Self {
            greatest: Sliding::new(n),
            sign: 1.0,
        }
    }

    pub fn least(n: usize) -> Self {
        Self {
            greatest: Sliding::new(n),
            sign: -1.0,
        }
    }
}

impl Machine<1, 1> for Extreme {
    #[inline]
    fn next(&mut self, [value]: [f64; 1]) -> Option<[f64; 1]> {
        let Greatest(value) = self.greatest.next([value * self.sign])?;
        Some([value * self.sign])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.greatest.visit(memory);
    }
}
