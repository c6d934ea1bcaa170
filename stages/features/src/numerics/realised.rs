//! Realised volatility of daily bars, annual and decimal.
//!
//! With u, d, c the logarithms of high, low and close over the open, o that of the open over the close
//! before, and r that of the close over the close before; means over the window:
//!
//! | estimator | variance a day | source |
//! | --- | --- | --- |
//! | close_close | sample variance of r | |
//! | close_close_zero_mean | mean r^2 | |
//! | parkinson | mean (u - d)^2 / (4 ln 2) | M. Parkinson (1980) |
//! | garman_klass | mean (u - d)^2 / 2 - (2 ln 2 - 1) c^2 | M. B. Garman, M. J. Klass (1980) |
//! | rogers_satchell | mean u (u - c) + d (d - c) | L. C. G. Rogers, S. E. Satchell (1991) |
//! | yang_zhang | sample var o + k sample var c + (1 - k) rogers_satchell, k = 0.34 / (1.34 + (n + 1) / (n - 1)) | D. Yang, Q. Zhang (2000) |

use super::aggregate::{Aggregate, Deviations, RollingAggregate, Sum};
use super::feature::{Bars, Feature};
use super::kernel::{BLOCK, Kernel, Scratch, initial_state, run_kernel};
use super::lookback::Lag;
use super::state::State;
use super::state::StateVisitor;
use libm::log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_numerics::dispatch::InstructionSet;

/// An estimator of realised volatility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Sample deviation of daily log returns.
    CloseClose,
    /// Root mean square of daily log returns.
    CloseCloseZeroMean,
    /// From the daily range.
    Parkinson,
    /// From the daily range and the move from open to close.
    GarmanKlass,
    /// From the daily range, whatever the drift.
    RogersSatchell,
    /// Overnight moves, open to close and Rogers-Satchell.
    YangZhang,
}

/// An estimator over a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Realised {
    /// The estimator.
    pub estimator: Estimator,
    /// Days.
    pub window: usize,
    /// Trading days a year.
    pub days_a_year: f64,
}

impl Estimator {
    /// Its name in columns and configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloseClose => "close_close",
            Self::CloseCloseZeroMean => "close_close_zero_mean",
            Self::Parkinson => "parkinson",
            Self::GarmanKlass => "garman_klass",
            Self::RogersSatchell => "rogers_satchell",
            Self::YangZhang => "yang_zhang",
        }
    }
}

impl Feature<Bars> for Realised {
    fn columns(&self) -> Vec<String> {
        vec![format!("{}_{}", self.estimator.name(), self.window)]
    }

    fn inputs(&self) -> Vec<&'static str> {
        match self.estimator {
            Estimator::CloseClose | Estimator::CloseCloseZeroMean => vec!["close"],
            Estimator::Parkinson => vec!["high", "low"],
            _ => vec!["open", "high", "low", "close"],
        }
    }

    fn start(&self) -> State {
        match self.estimator {
            Estimator::CloseClose => initial_state(Deviation::new(self)),
            Estimator::CloseCloseZeroMean => initial_state(ZeroMean::new(self)),
            Estimator::Parkinson => initial_state(Parkinson::new(self)),
            Estimator::GarmanKlass => initial_state(GarmanKlass::new(self)),
            Estimator::RogersSatchell => initial_state(RogersSatchell::new(self)),
            Estimator::YangZhang => initial_state(YangZhang::new(self)),
        }
    }

    fn over(&self, state: &mut State, bars: &Bars) -> Vec<Vec<f64>> {
        // A price that is none, or not positive, has no logarithm.
        let flaw = |value: f64| u64::from(!(value > 0.0 && value.is_finite()));
        let best = InstructionSet::detect().without_avx512();
        let Bars {
            open,
            high,
            low,
            close,
            ..
        } = bars;
        match self.estimator {
            Estimator::CloseClose => run_kernel(Deviation::new(self), state, [close], flaw, best),
            Estimator::CloseCloseZeroMean => run_kernel(ZeroMean::new(self), state, [close], flaw, best),
            Estimator::Parkinson => run_kernel(Parkinson::new(self), state, [high, low], flaw, best),
            Estimator::GarmanKlass => {
                run_kernel(GarmanKlass::new(self), state, [open, high, low, close], flaw, best)
            }
            Estimator::RogersSatchell => {
                run_kernel(RogersSatchell::new(self), state, [open, high, low, close], flaw, best)
            }
            Estimator::YangZhang => {
                run_kernel(YangZhang::new(self), state, [open, high, low, close], flaw, best)
            }
        }
    }
}

impl Realised {
    /// Annual and decimal, from the variance of a day.
    #[inline(always)]
    fn annual(&self, variance: f64) -> f64 {
        (self.days_a_year * variance.max(0.0)).sqrt()
    }
}

/// The sample deviation of the logarithmic returns of closes, or their root mean square.
struct CloseClose<K> {
    realised: Realised,
    before: Lag,
    returns: K,
}

type Deviation = CloseClose<RollingAggregate<Deviations, 1, 2>>;
type ZeroMean = CloseClose<RollingAggregate<Sum, 1, 1>>;

impl<K: Aggregate<1, T>, const T: usize> CloseClose<RollingAggregate<K, 1, T>> {
    fn new(realised: &Realised) -> Self {
        Self {
            realised: *realised,
            before: Lag::new(1),
            returns: RollingAggregate::new(realised.window),
        }
    }
}

/// The logarithms of values over those before.
#[inline(always)]
fn log_returns<'a>(before: &mut Lag, values: &[f64], of: &[f64], scratch: &'a mut Scratch) -> &'a mut [f64] {
    let (missing, pieces) = before.pieces(values);
    for (from, previous) in pieces {
        for (out, (value, before)) in scratch[from..].iter_mut().zip(of[from..].iter().zip(previous)) {
            *out = log(value / before);
        }
    }
    before.take(values);
    &mut scratch[missing..values.len()]
}

impl Kernel<1, 1> for Deviation {
    #[inline(always)]
    fn rows(&mut self, [close]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let [_, squares] = self
            .returns
            .rows([log_returns(&mut self.before, close, close, &mut scratch)]);
        let missing = out.len() - squares.len();
        for (out, squares) in out[missing..].iter_mut().zip(squares) {
            *out = self.realised.annual(squares / (self.realised.window as f64 - 1.0));
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.before.visit(visitor);
        self.returns.visit(visitor);
    }
}

impl Kernel<1, 1> for ZeroMean {
    #[inline(always)]
    fn rows(&mut self, [close]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let returns = log_returns(&mut self.before, close, close, &mut scratch);
        returns.iter_mut().for_each(|r| *r *= *r);
        let [squares] = self.returns.rows([returns]);
        let missing = out.len() - squares.len();
        for (out, squares) in out[missing..].iter_mut().zip(squares) {
            *out = self.realised.annual(squares / self.realised.window as f64);
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.before.visit(visitor);
        self.returns.visit(visitor);
    }
}

/// The mean over the window of a day's variance, computed from the day's own prices.
macro_rules! by_day {
    ($name:ident, $prices:literal, $day:expr) => {
        struct $name {
            realised: Realised,
            days: RollingAggregate<Sum, 1, 1>,
        }

        impl $name {
            fn new(realised: &Realised) -> Self {
                Self {
                    realised: *realised,
                    days: RollingAggregate::new(realised.window),
                }
            }
        }

        impl Kernel<$prices, 1> for $name {
            #[inline(always)]
            fn rows(&mut self, prices: [&[f64]; $prices], [out]: [&mut [f64]; 1]) -> usize {
                let day: fn([f64; $prices]) -> f64 = $day;
                let mut scratch: Scratch = [0.0; BLOCK];
                let days = &mut scratch[..out.len()];
                for (i, out) in days.iter_mut().enumerate() {
                    *out = day(prices.map(|prices| prices[i]));
                }
                let [sums] = self.days.rows([days]);
                let missing = out.len() - sums.len();
                for (out, sum) in out[missing..].iter_mut().zip(sums) {
                    *out = self.realised.annual(sum / self.realised.window as f64);
                }
                missing
            }

            fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
                self.days.visit(visitor);
            }
        }
    };
}

by_day!(Parkinson, 2, |[high, low]| {
    let range = log(high / low);
    range * range / (4.0 * std::f64::consts::LN_2)
});
by_day!(GarmanKlass, 4, |[open, high, low, close]| {
    let (range, c) = (log(high / low), log(close / open));
    0.5 * range * range - (2.0 * std::f64::consts::LN_2 - 1.0) * c * c
});
by_day!(RogersSatchell, 4, rogers_satchell);

#[inline]
fn rogers_satchell([open, high, low, close]: [f64; 4]) -> f64 {
    let (u, d, c) = (log(high / open), log(low / open), log(close / open));
    u * (u - c) + d * (d - c)
}

struct YangZhang {
    realised: Realised,
    before: Lag,
    /// Windows over the logarithms of open over the previous close, and of close over open.
    moves: [RollingAggregate<Deviations, 1, 2>; 2],
    days: RollingAggregate<Sum, 1, 1>,
}

impl YangZhang {
    fn new(realised: &Realised) -> Self {
        let n = realised.window;
        Self {
            realised: *realised,
            before: Lag::new(1),
            moves: [RollingAggregate::new(n), RollingAggregate::new(n)],
            days: RollingAggregate::new(n),
        }
    }
}

impl Kernel<4, 1> for YangZhang {
    #[inline(always)]
    fn rows(&mut self, [open, high, low, close]: [&[f64]; 4], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: [Scratch; 3] = [[0.0; BLOCK]; 3];
        let [overnight, within, days] = &mut scratch;
        let overnight = log_returns(&mut self.before, close, open, overnight);
        // The first bar of all has no close before it, and does not count.
        let first = out.len() - overnight.len();
        let (within, days) = (&mut within[first..out.len()], &mut days[first..out.len()]);
        for (i, (within, day)) in (first..).zip(within.iter_mut().zip(days.iter_mut())) {
            *within = log(close[i] / open[i]);
            *day = rogers_satchell([open[i], high[i], low[i], close[i]]);
        }
        let [of_overnight, of_within] = &mut self.moves;
        let [_, overnight] = of_overnight.rows([overnight]);
        let [_, within] = of_within.rows([within]);
        let [days] = self.days.rows([days]);
        let missing = out.len() - days.len();
        let n = self.realised.window as f64;
        let k = 0.34 / (1.34 + (n + 1.0) / (n - 1.0));
        for (out, ((overnight, within), days)) in
            out[missing..].iter_mut().zip(overnight.iter().zip(within).zip(days))
        {
            *out = self
                .realised
                .annual((overnight + k * within) / (n - 1.0) + (1.0 - k) * (days / n));
        }
        missing
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.before.visit(visitor);
        self.moves.iter_mut().for_each(|moves| moves.visit(visitor));
        self.days.visit(visitor);
    }
}
