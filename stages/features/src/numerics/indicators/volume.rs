//! Indicators of price and volume, as TA-Lib defines them.

use super::average::rounding;
use crate::numerics::aggregate::{RollingAggregate, Sum};
use crate::numerics::kernel::{BLOCK, Kernel, Recurrence, Scratch, scan};
use crate::numerics::lookback::Lag;
use crate::numerics::state::state;

/// The money flow index: typical price times volume of rising bars, in percent of that of all bars that
/// moved.
#[derive(Clone, Debug)]
pub(super) struct MoneyFlow {
    before: Lag,
    flows: RollingAggregate<Sum, 2, 2>,
}

state!(MoneyFlow { before, flows });

impl MoneyFlow {
    pub(super) fn new(n: usize) -> Self {
        Self {
            before: Lag::new(1),
            flows: RollingAggregate::new(n),
        }
    }
}

impl Kernel<4, 1> for MoneyFlow {
    #[inline(always)]
    fn rows(&mut self, [high, low, close, volume]: [&[f64]; 4], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: [Scratch; 3] = [[0.0; BLOCK]; 3];
        let [prices, up, down] = scratch.each_mut().map(|column| &mut column[..close.len()]);
        for (price, ((high, low), close)) in prices.iter_mut().zip(high.iter().zip(low).zip(close)) {
            *price = (high + low + close) / 3.0;
        }
        let (first, pieces) = self.before.pieces(prices);
        for (from, previous) in pieces {
            let rows = prices[from..].iter().zip(previous).zip(&volume[from..]);
            for ((up, down), ((price, before), volume)) in
                up[from..].iter_mut().zip(&mut down[from..]).zip(rows)
            {
                let change = price - before;
                let flow = price * volume;
                let flow = if rounding(change, price.abs() + before.abs()) {
                    0.0
                } else {
                    flow
                };
                *up = if change > 0.0 { flow } else { 0.0 };
                *down = if change < 0.0 { flow } else { 0.0 };
            }
        }
        self.before.take(prices);
        let [up, down] = self.flows.rows([&up[first..], &down[first..]]);
        let missing = out.len() - up.len();
        for (out, (up, down)) in out[missing..].iter_mut().zip(up.iter().zip(down)) {
            let share = 100.0 * (up / (up + down));
            *out = if up + down > 0.0 { share } else { 0.0 };
        }
        missing
    }
}

/// On-balance volume: a running sum of volumes, added where the close rose and subtracted where it fell.
pub(super) fn on_balance() -> impl Recurrence<2, 1> {
    scan(
        (0.0, 0.0, false),
        |(before, balance, begun), [close, volume]: [f64; 2]| {
            if !*begun {
                (*begun, *balance) = (true, volume);
            } else {
                // Branchless, since the branch could not be predicted.
                let sign = f64::from(i8::from(close > *before) - i8::from(close < *before));
                *balance += sign * volume;
            }
            *before = close;
            Some([*balance])
        },
    )
}

/// The accumulation/distribution line (M. Chaikin): the running sum of volume times the position of the close
/// within the bar.
#[derive(Clone, Debug, Default)]
pub(super) struct Accumulation(f64);

state!(Accumulation { 0 });

impl Accumulation {
    /// Passes the running sum at each row to `each`. The terms of several bars are computed ahead, off the
    /// dependency chain of the sum.
    #[inline(always)]
    fn sums([high, low, close, volume]: [&[f64]; 4], mut sum: f64, mut each: impl FnMut(usize, f64)) -> f64 {
        let rows = close.len();
        for from in (0..rows).step_by(AHEAD) {
            let to = rows.min(from + AHEAD);
            let mut flows = [0.0; AHEAD];
            let bars = high[from..to].iter().zip(&low[from..to]);
            let bars = bars.zip(close[from..to].iter().zip(&volume[from..to]));
            for (flow, ((high, low), (close, volume))) in flows.iter_mut().zip(bars) {
                let range = high - low;
                let moved = (((close - low) - (high - close)) / range) * volume;
                *flow = if range > 0.0 { moved } else { 0.0 };
            }
            for (row, flow) in (from..to).zip(flows) {
                sum += flow;
                each(row, sum);
            }
        }
        sum
    }
}

/// The number of bars whose terms are computed ahead.
const AHEAD: usize = 16;

impl Kernel<4, 1> for Accumulation {
    #[inline(always)]
    fn rows(&mut self, bars: [&[f64]; 4], [out]: [&mut [f64]; 1]) -> usize {
        self.0 = Self::sums(bars, self.0, |row, sum| out[row] = sum);
        0
    }
}

/// Chaikin's oscillator: the fast less the slow exponential average of the accumulation/distribution line,
/// both seeded with its first value.
#[derive(Clone, Debug)]
pub(super) struct Chaikin {
    line: f64,
    averages: [f64; 2],
    begun: bool,
    /// The weight of a new value in each average.
    take: [f64; 2],
    /// The number of rows left of the warm-up.
    missing: usize,
    most: usize,
}

state!(Chaikin { line, averages, begun, missing <= most });

impl Chaikin {
    pub(super) fn new(periods: [usize; 2]) -> Self {
        let most = periods[0].max(periods[1]);
        Self {
            line: 0.0,
            averages: [0.0; 2],
            begun: false,
            take: periods.map(|n| 2.0 / (n as f64 + 1.0)),
            missing: most - 1,
            most,
        }
    }
}

impl Kernel<4, 1> for Chaikin {
    #[inline(always)]
    fn rows(&mut self, bars: [&[f64]; 4], [out]: [&mut [f64]; 1]) -> usize {
        let (mut begun, [mut fast, mut slow]) = (self.begun, self.averages);
        let [take_fast, take_slow] = self.take;
        let [keep_fast, keep_slow] = [1.0 - take_fast, 1.0 - take_slow];
        self.line = Accumulation::sums(bars, self.line, |row, line| {
            if !begun {
                (fast, slow, begun) = (line, line, true);
            }
            fast = keep_fast.mul_add(fast, take_fast * line);
            slow = keep_slow.mul_add(slow, take_slow * line);
            out[row] = fast - slow;
        });
        (self.begun, self.averages) = (begun, [fast, slow]);
        let missing = self.missing.min(out.len());
        self.missing -= missing;
        missing
    }
}
