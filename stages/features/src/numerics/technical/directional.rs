//! True range and directional movement (J. W. Wilder, 1978), and his parabolic stop, with TA-Lib's seeds.

use crate::numerics::machine::{Machine, Memory};
use crate::numerics::rolling::Lag;

/// High, low and close of a bar.
pub type Hlc = [f64; 3];

/// The range of a bar with the close before it.
#[inline]
pub fn true_range(high: f64, low: f64, before: f64) -> f64 {
    let mut range = high - low;
    let (up, down) = ((before - high).abs(), (before - low).abs());
    if up > range {
        range = up;
    }
    if down > range {
        range = down;
    }
    range
}

/// The true range.
#[derive(Clone, Debug)]
pub struct TrueRange(Lag);

impl TrueRange {
    pub fn new() -> Self {
        Self(Lag::new(1))
    }
}

impl Machine<3, 1> for TrueRange {
    #[inline]
    fn next(&mut self, [high, low, close]: Hlc) -> Option<[f64; 1]> {
        let before = self.0.next(close)?;
        Some([true_range(high, low, before)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }

    fn rows(mut self, [highs, lows, closes]: [&[f64]; 3], [output]: [&mut [f64]; 1]) -> Self {
        output.fill(f64::NAN);
        self.0.rows(closes, |from, _, befores| {
            let bars = highs[from..].iter().zip(&lows[from..]).zip(befores);
            for (out, ((&high, &low), &before)) in output[from..].iter_mut().zip(bars) {
                *out = true_range(high, low, before);
            }
        });
        self
    }
}

/// The average true range: the mean of the first `n` true ranges, then Wilder's average.
#[derive(Clone, Debug)]
pub struct Atr {
    range: TrueRange,
    average: f64,
    missing: usize,
    n: usize,
    keep: f64,
    percent: bool,
}

impl Atr {
    /// In currency, or in percent of the close.
    pub fn new(n: usize, percent: bool) -> Self {
        // TA-Lib leaves the true range of a single bar as it is.
        let (keep, percent) = ((n as f64 - 1.0) / n as f64, percent && n > 1);
        Self {
            range: TrueRange::new(),
            average: 0.0,
            missing: n,
            n,
            keep,
            percent,
        }
    }
}

impl Machine<3, 1> for Atr {
    #[inline]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 1]> {
        let [range] = self.range.next(bar)?;
        if self.missing == 0 {
            self.average = self.keep * self.average + (1.0 - self.keep) * range;
        } else {
            self.average += range;
            self.missing -= 1;
            if self.missing > 0 {
                return None;
            }
            self.average /= self.n as f64;
        }
        Some([match self.percent {
            false => self.average,
            true if bar[2] == 0.0 => 0.0,
            true => self.average / bar[2] * 100.0,
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.range.visit(memory);
        memory.number(&mut self.average);
        memory.count(&mut self.missing, self.n);
    }
}

/// Wilder's sums of movement up, movement down and true range.
#[derive(Clone, Debug)]
struct Movement {
    before: Hlc,
    up: f64,
    down: f64,
    range: f64,
    seen: usize,
    n: usize,
    keep: f64,
}

impl Movement {
    fn new(n: usize) -> Self {
        let keep = (n as f64 - 1.0) / n as f64;
        Self {
            before: [0.0; 3],
            up: 0.0,
            down: 0.0,
            range: 0.0,
            seen: 0,
            n,
            keep,
        }
    }

    /// Takes a bar; whether `needed` changes have been summed. The first `n - 1` are added up, and each after them is smoothed in.
    #[inline]
    fn next(&mut self, bar: Hlc, needed: usize) -> bool {
        let [high, low, close] = std::mem::replace(&mut self.before, bar);
        if self.seen == 0 {
            self.seen = 1;
            return false;
        }
        let (rise, fall) = (bar[0] - high, low - bar[1]);
        let range = true_range(bar[0], bar[1], close);
        let up = if rise > 0.0 && rise > fall { rise } else { 0.0 };
        let down = if fall > 0.0 && rise < fall { fall } else { 0.0 };
        if self.n <= 1 {
            (self.up, self.down, self.range) = (up, down, range);
        } else if self.seen < self.n {
            self.up += up;
            self.down += down;
            self.range += range;
        } else {
            self.up = self.keep * self.up + up;
            self.down = self.keep * self.down + down;
            self.range = self.keep * self.range + range;
        }
        self.seen = (self.seen + 1).min(self.n + 1);
        self.seen > needed
    }

    /// The directional indices, up and down, percent.
    #[inline]
    fn indices(&self) -> Option<(f64, f64)> {
        (self.range > 0.0).then(|| (100.0 * (self.up / self.range), 100.0 * (self.down / self.range)))
    }

    /// Their difference in percent of their sum.
    #[inline]
    fn index(&self) -> Option<f64> {
        let (up, down) = self.indices()?;
        let sum = down + up;
        (sum > 0.0).then(|| 100.0 * ((down - up).abs() / sum))
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.numbers(&mut self.before);
        for number in [&mut self.up, &mut self.down, &mut self.range] {
            memory.number(number);
        }
        memory.count(&mut self.seen, self.n + 1);
    }
}

/// The two directional movements, plus and minus, in currency.
#[derive(Clone, Debug)]
pub struct Movements(Movement);

impl Movements {
    pub fn new(n: usize) -> Self {
        Self(Movement::new(n))
    }
}

impl Machine<2, 2> for Movements {
    #[inline]
    fn next(&mut self, [high, low]: [f64; 2]) -> Option<[f64; 2]> {
        // The close is for the true range alone.
        let bar = [high, low, 0.0];
        let needed = if self.0.n <= 1 { 1 } else { self.0.n - 1 };
        self.0.next(bar, needed).then_some([self.0.up, self.0.down])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The two directional indices, plus and minus, percent.
#[derive(Clone, Debug)]
pub struct Indices(Movement);

impl Indices {
    pub fn new(n: usize) -> Self {
        Self(Movement::new(n))
    }
}

impl Machine<3, 2> for Indices {
    #[inline]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 2]> {
        if !self.0.next(bar, self.0.n) {
            return None;
        }
        if self.0.n <= 1 && self.0.range > 0.0 {
            return Some([self.0.up / self.0.range, self.0.down / self.0.range]);
        }
        let (up, down) = self.0.indices().unwrap_or((0.0, 0.0));
        Some([up, down])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.0.visit(memory);
    }
}

/// The directional index; where nothing moves it keeps its value.
#[derive(Clone, Debug)]
pub struct Dx {
    movement: Movement,
    value: f64,
}

impl Dx {
    pub fn new(n: usize) -> Self {
        Self {
            movement: Movement::new(n),
            value: 0.0,
        }
    }
}

impl Machine<3, 1> for Dx {
    #[inline]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 1]> {
        if !self.movement.next(bar, self.movement.n) {
            return None;
        }
        self.value = self.movement.index().unwrap_or(self.value);
        Some([self.value])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.movement.visit(memory);
        memory.number(&mut self.value);
    }
}

/// The average directional index: the mean of the first `n` directional indices, then Wilder's average.
#[derive(Clone, Debug)]
pub struct Adx {
    movement: Movement,
    average: f64,
    missing: usize,
}

impl Adx {
    pub fn new(n: usize) -> Self {
        Self {
            movement: Movement::new(n),
            average: 0.0,
            missing: n,
        }
    }

    #[inline]
    fn step(&mut self, bar: Hlc) -> Option<f64> {
        let n = self.movement.n;
        if !self.movement.next(bar, n) {
            return None;
        }
        let index = self.movement.index();
        if self.missing == 0 {
            if let Some(index) = index {
                let keep = self.movement.keep;
                self.average = keep * self.average + (1.0 - keep) * index;
            }
        } else {
            self.average += index.unwrap_or(0.0);
            self.missing -= 1;
            if self.missing > 0 {
                return None;
            }
            self.average /= n as f64;
        }
        Some(self.average)
    }
}

impl Machine<3, 1> for Adx {
    #[inline]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 1]> {
        self.step(bar).map(|value| [value])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        let most = self.movement.n;
        self.movement.visit(memory);
        memory.number(&mut self.average);
        memory.count(&mut self.missing, most);
    }
}

/// The mean of the average directional index of now and of `n - 1` bars ago.
#[derive(Clone, Debug)]
pub struct Adxr {
    adx: Adx,
    before: Lag,
}

impl Adxr {
    pub fn new(n: usize) -> Self {
        Self {
            adx: Adx::new(n),
            before: Lag::new(n - 1),
        }
    }
}

impl Machine<3, 1> for Adxr {
    #[inline]
    fn next(&mut self, bar: Hlc) -> Option<[f64; 1]> {
        let now = self.adx.step(bar)?;
        let before = self.before.next(now)?;
        Some([(now + before) / 2.0])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.adx.visit(memory);
        self.before.visit(memory);
    }
}

/// The parabolic stop and reverse. It begins long, unless the second bar moved down.
#[derive(Clone, Debug)]
pub struct Sar {
    before: [f64; 2],
    stop: f64,
    extreme: f64,
    factor: f64,
    long: bool,
    seen: usize,
    acceleration: f64,
    maximum: f64,
}

impl Sar {
    pub fn new(acceleration: f64, maximum: f64) -> Self {
        let acceleration = acceleration.min(maximum);
        Self {
            before: [0.0; 2],
            stop: 0.0,
            extreme: 0.0,
            factor: acceleration,
            long: true,
            seen: 0,
            acceleration,
            maximum,
        }
    }

    fn begin(&mut self, [high, low]: [f64; 2]) {
        let (rise, fall) = (high - self.before[0], self.before[1] - low);
        self.long = !(fall > 0.0 && rise < fall);
        (self.extreme, self.stop) = if self.long {
            (high, self.before[1])
        } else {
            (low, self.before[0])
        };
        // TA-Lib takes the second bar for the one before it, too.
        self.before = [high, low];
    }
}

impl Machine<2, 1> for Sar {
    #[inline]
    fn next(&mut self, bar: [f64; 2]) -> Option<[f64; 1]> {
        match self.seen {
            0 => {
                (self.seen, self.before) = (1, bar);
                return None;
            }
            1 => {
                self.seen = 2;
                self.begin(bar);
            }
            _ => {}
        }
        let ([high, low], [high_before, low_before]) = (bar, self.before);
        let (above, below) = (high_before.max(high), low_before.min(low));
        let value;
        if (self.long && low <= self.stop) || (!self.long && high >= self.stop) {
            self.long = !self.long;
            let within = |stop: f64| if self.long { stop.min(below) } else { stop.max(above) };
            value = within(self.extreme);
            self.factor = self.acceleration;
            self.extreme = if self.long { high } else { low };
            self.stop = within(value + self.factor * (self.extreme - value));
        } else {
            value = self.stop;
            let further = if self.long {
                high > self.extreme
            } else {
                low < self.extreme
            };
            if further {
                self.extreme = if self.long { high } else { low };
                self.factor = (self.factor + self.acceleration).min(self.maximum);
            }
            let next = value + self.factor * (self.extreme - value);
            self.stop = if self.long { next.min(below) } else { next.max(above) };
        }
        self.before = bar;
        Some([value])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.numbers(&mut self.before);
        for number in [&mut self.stop, &mut self.extreme, &mut self.factor] {
            memory.number(number);
        }
        memory.flag(&mut self.long);
        memory.count(&mut self.seen, 2);
    }
}
