//! Indicators of price and volume, as TA-Lib defines them.

use super::average::rounding;
use crate::numerics::machine::{Machine, Memory};
use crate::numerics::rolling::{Lag, Sliding, Sum};

/// The money flow index: typical price by volume of the bars that rose, in percent of that of all that moved.
#[derive(Clone, Debug)]
pub struct MoneyFlow {
    before: Lag,
    up: Sliding<Sum>,
    down: Sliding<Sum>,
}

impl MoneyFlow {
    pub fn new(n: usize) -> Self {
        Self {
            before: Lag::new(1),
            up: Sliding::new(n),
            down: Sliding::new(n),
        }
    }
}

impl Machine<4, 1> for MoneyFlow {
    #[inline]
    fn next(&mut self, [high, low, close, volume]: [f64; 4]) -> Option<[f64; 1]> {
        let price = (high + low + close) / 3.0;
        let before = self.before.next(price)?;
        let change = price - before;
        let flow = if rounding(change, price.abs() + before.abs()) {
            0.0
        } else {
            price * volume
        };
        let up = self.up.next([if change > 0.0 { flow } else { 0.0 }]);
        let down = self.down.next([if change < 0.0 { flow } else { 0.0 }]);
        let (up, down) = (up?.sum, down?.sum);
        Some([if up + down > 0.0 {
            100.0 * (up / (up + down))
        } else {
            0.0
        }])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.before.visit(memory);
        self.up.visit(memory);
        self.down.visit(memory);
    }
}

/// On-balance volume: added where the close rose, taken away where it fell.
#[derive(Clone, Debug, Default)]
pub struct OnBalance {
    before: f64,
    balance: f64,
    begun: bool,
}

impl Machine<2, 1> for OnBalance {
    #[inline]
    fn next(&mut self, [close, volume]: [f64; 2]) -> Option<[f64; 1]> {
        if !self.begun {
            (self.begun, self.balance) = (true, volume);
        } else {
            // No branch: whether a price rises can't be foretold.
            let sign = f64::from(i8::from(close > self.before) - i8::from(close < self.before));
            self.balance += sign * volume;
        }
        self.before = close;
        Some([self.balance])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.number(&mut self.before);
        memory.number(&mut self.balance);
        memory.flag(&mut self.begun);
    }
}

/// Accumulation and distribution (M. Chaikin): volume by where the close stands within the bar, added up.
#[derive(Clone, Debug, Default)]
pub struct Accumulation(f64);

impl Accumulation {
    #[inline]
    fn step(&mut self, [high, low, close, volume]: [f64; 4]) -> f64 {
        let range = high - low;
        if range > 0.0 {
            self.0 += (((close - low) - (high - close)) / range) * volume;
        }
        self.0
    }
}

impl Machine<4, 1> for Accumulation {
    #[inline]
    fn next(&mut self, bar: [f64; 4]) -> Option<[f64; 1]> {
        Some([self.step(bar)])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        memory.number(&mut self.0);
    }
}

/// Chaikin's oscillator: fast less slow exponential average of accumulation and distribution. Both begin with its first value.
#[derive(Clone, Debug)]
pub struct Chaikin {
    line: Accumulation,
    fast: f64,
    slow: f64,
    seen: usize,
    periods: [usize; 2],
}

impl Chaikin {
    pub fn new(periods: [usize; 2]) -> Self {
        Self {
            line: Accumulation::default(),
            fast: 0.0,
            slow: 0.0,
            seen: 0,
            periods,
        }
    }
}

impl Machine<4, 1> for Chaikin {
    #[inline]
    fn next(&mut self, bar: [f64; 4]) -> Option<[f64; 1]> {
        let line = self.line.step(bar);
        let [fast, slow] = self.periods.map(|n| 2.0 / (n as f64 + 1.0));
        if self.seen == 0 {
            (self.fast, self.slow) = (line, line);
        } else {
            self.fast = fast * line + (1.0 - fast) * self.fast;
            self.slow = slow * line + (1.0 - slow) * self.slow;
        }
        let needed = self.periods[0].max(self.periods[1]);
        self.seen = (self.seen + 1).min(needed);
        (self.seen == needed).then_some([self.fast - self.slow])
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.line.visit(memory);
        memory.number(&mut self.fast);
        memory.number(&mut self.slow);
        memory.count(&mut self.seen, self.periods[0].max(self.periods[1]));
    }
}
