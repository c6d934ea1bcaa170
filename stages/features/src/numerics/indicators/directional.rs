//! True range, directional movement and parabolic stop-and-reverse (J. W. Wilder, 1978), with TA-Lib's seeds.

use super::average::Exponential;
use crate::numerics::kernel::{Chain, Kernel, Recurrence, SHORT, change, scan};
use crate::numerics::lookback::Previous;
use crate::numerics::state::{Missing, Stateful, state};

/// High, low and close of a bar.
pub(super) type Hlc = [f64; 3];

/// The true range of a bar, given the previous close.
#[inline(always)]
pub(super) fn true_range(high: f64, low: f64, before: f64) -> f64 {
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
pub(super) fn true_ranges() -> impl Recurrence<3, 1> {
    scan(Previous::default(), |before, [high, low, close]: Hlc| {
        Some([true_range(high, low, before.next(close)?)])
    })
}

/// The average true range over `n` bars, in currency: the mean of the first `n` true ranges, then Wilder's
/// moving average.
pub(super) fn atr(n: usize) -> impl Recurrence<3, 1> {
    let state = (true_ranges(), Exponential::wilder(n));
    scan(state, |(ranges, average), bar: Hlc| average.next(ranges.next(bar)?))
}

/// The average true range over `n` bars, in percent of the close.
pub(super) fn natr(n: usize) -> impl Kernel<3, 1> {
    Natr { atr: atr(n), n }
}

struct Natr<A> {
    atr: A,
    n: usize,
}

state!([A: Stateful] Natr<A> { atr });

impl<A: Recurrence<3, 1>> Kernel<3, 1> for Natr<A> {
    const IS_SERIAL: bool = true;

    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; 3], outputs: [&mut [f64]; 1]) -> usize {
        self.valid_rows(inputs, outputs, |_| 0).unwrap_or(0)
    }

    #[inline(always)]
    fn valid_rows(
        &mut self,
        inputs: [&[f64]; 3],
        [out]: [&mut [f64]; 1],
        invalid: impl Fn(f64) -> u64,
    ) -> Option<usize> {
        let (closes, mut atr, mut missing) = (inputs[2], self.atr.clone(), 0);
        for from in (0..closes.len()).step_by(SHORT) {
            let rows = SHORT.min(closes.len() - from);
            let out = &mut out[from..][..rows];
            let none = atr.valid_rows(inputs.map(|input| &input[from..][..rows]), [out], &invalid)?;
            missing += none;
            // For a single bar, TA-Lib does not divide the true range by the close.
            if self.n > 1 {
                for (out, close) in out[none..].iter_mut().zip(&closes[from + none..]) {
                    *out = if *close == 0.0 { 0.0 } else { *out / close * 100.0 };
                }
            }
        }
        self.atr = atr;
        Some(missing)
    }
}

/// Wilder's smoothed sums of upward movement, downward movement and true range.
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

state!(Movement { before, up, down, range, seen <= n + 1 });

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

    /// Adds a bar. Returns whether `needed` changes have been summed. The first `n - 1` changes are added up,
    /// and later ones are smoothed in.
    #[inline(always)]
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
            self.up = self.keep.mul_add(self.up, up);
            self.down = self.keep.mul_add(self.down, down);
            self.range = self.keep.mul_add(self.range, range);
        }
        self.seen = (self.seen + 1).min(self.n + 1);
        self.seen > needed
    }

    /// The plus and minus directional index, in percent.
    #[inline(always)]
    fn indices(&self) -> Option<(f64, f64)> {
        (self.range > 0.0).then(|| (100.0 * (self.up / self.range), 100.0 * (self.down / self.range)))
    }

    /// The directional movement index: the difference of the plus and minus index in percent of their sum.
    #[inline(always)]
    fn index(&self) -> Option<f64> {
        let (up, down) = self.indices()?;
        let sum = down + up;
        (sum > 0.0).then(|| 100.0 * ((down - up).abs() / sum))
    }
}

/// The plus and minus directional movement, in currency.
pub(super) fn movements(n: usize) -> impl Recurrence<2, 2> {
    let needed = if n <= 1 { 1 } else { n - 1 };
    scan(Movement::new(n), move |movement, [high, low]: [f64; 2]| {
        // The close only matters for the true range, which is not used here.
        let known = movement.next([high, low, 0.0], needed);
        known.then_some([movement.up, movement.down])
    })
}

/// The plus and minus directional index, in percent.
pub(super) fn indices(n: usize) -> impl Recurrence<3, 2> {
    scan(Movement::new(n), move |movement, bar: Hlc| {
        if !movement.next(bar, n) {
            return None;
        }
        if n <= 1 && movement.range > 0.0 {
            return Some([movement.up / movement.range, movement.down / movement.range]);
        }
        let (up, down) = movement.indices().unwrap_or((0.0, 0.0));
        Some([up, down])
    })
}

/// The directional movement index (DX); it keeps its value where nothing moves.
pub(super) fn dx(n: usize) -> impl Recurrence<3, 1> {
    scan((Movement::new(n), 0.0), move |(movement, value), bar: Hlc| {
        if !movement.next(bar, n) {
            return None;
        }
        *value = movement.index().unwrap_or(*value);
        Some([*value])
    })
}

/// The average directional index (ADX): the mean of the first `n` values of DX, then Wilder's moving average.
pub(super) fn adx(n: usize) -> impl Recurrence<3, 1> {
    let state = (Movement::new(n), 0.0, Missing::new(n, n));
    scan(state, move |(movement, average, missing), bar: Hlc| {
        if !movement.next(bar, n) {
            return None;
        }
        let index = movement.index();
        if missing.next() {
            *average += index.unwrap_or(0.0);
            if !missing.is_over() {
                return None;
            }
            *average /= n as f64;
        } else if let Some(index) = index {
            let keep = movement.keep;
            *average = keep.mul_add(*average, (1.0 - keep) * index);
        }
        Some([*average])
    })
}

/// The average directional index rating (ADXR): the mean of ADX now and `n - 1` bars ago.
pub(super) fn adxr(n: usize) -> impl Kernel<3, 1> {
    // The state keeps the missing values of the warm-up, too.
    let known_or_nan = scan(adx(n), |adx, bar: Hlc| Some(adx.next(bar).unwrap_or([f64::NAN])));
    let mean = |now: f64, before: f64| (now + before) / 2.0;
    Chain::<_, _, 1>::new(known_or_nan, change(n - 1, mean))
}

/// The parabolic stop-and-reverse. It starts long unless the second bar moved down.
#[derive(Clone, Debug)]
pub(super) struct Sar {
    before: [f64; 2],
    /// The stop and the extreme price, negated in a short position.
    stop: f64,
    extreme: f64,
    factor: f64,
    long: bool,
    seen: usize,
    acceleration: f64,
    maximum: f64,
}

state!(Sar { before, stop, extreme, factor, long, seen <= 2 });

impl Sar {
    pub(super) fn new(acceleration: f64, maximum: f64) -> Self {
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

    fn begin(&mut self, bar: [f64; 2]) {
        let (rise, fall) = (bar[0] - self.before[0], self.before[1] - bar[1]);
        self.long = !(fall > 0.0 && rise < fall);
        self.extreme = self.facing(bar)[0];
        self.stop = self.facing(self.before)[1];
        // TA-Lib uses the second bar as its own predecessor, too.
        self.before = bar;
    }

    /// The top and the bottom of a bar in the direction of the position: for a short one, prices are negated,
    /// so that both directions have the same formulas, without branches that no CPU could predict.
    #[inline(always)]
    fn facing(&self, [high, low]: [f64; 2]) -> [f64; 2] {
        if self.long { [high, low] } else { [-low, -high] }
    }

    /// Continues at a bar that does not reach the stop, and returns the stop there.
    #[inline(always)]
    fn go_on(&mut self, [top, bottom]: [f64; 2]) -> f64 {
        let value = self.stop;
        let [_, before] = self.facing(self.before);
        let bound = if before < bottom { before } else { bottom };
        let is_further = top > self.extreme;
        let faster = self.factor + self.acceleration;
        let faster = if faster < self.maximum { faster } else { self.maximum };
        self.factor = if is_further { faster } else { self.factor };
        self.extreme = if is_further { top } else { self.extreme };
        let next = (1.0 - self.factor).mul_add(self.stop, self.factor * self.extreme);
        self.stop = if next < bound { next } else { bound };
        value
    }

    /// Reverses at a bar that reaches the stop, and returns the stop there.
    #[inline(always)]
    fn turn(&mut self, bar: [f64; 2]) -> f64 {
        self.long = !self.long;
        let ([top, bottom], [_, before]) = (self.facing(bar), self.facing(self.before));
        let bound = before.min(bottom);
        let value = bound.min(-self.extreme);
        self.factor = self.acceleration;
        self.extreme = top;
        self.stop = bound.min(value + self.factor * (self.extreme - value));
        value
    }
}

impl Recurrence<2, 1> for Sar {
    #[inline(always)]
    fn next(&mut self, bar: [f64; 2]) -> Option<[f64; 1]> {
        match self.seen {
            0 => {
                (self.before, self.seen) = (bar, 1);
                return None;
            }
            1 => {
                self.begin(bar);
                self.seen = 2;
            }
            _ => {}
        }
        let facing = self.facing(bar);
        let value = if facing[1] <= self.stop {
            self.turn(bar)
        } else {
            self.go_on(facing)
        };
        self.before = bar;
        Some([if self.long { value } else { -value }])
    }
}
