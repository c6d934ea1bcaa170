//! Realised volatility from daily bars, annualised, as a decimal.
//!
//! With u, d, c the logarithms of high, low and close over the open, o the logarithm of the open over the
//! previous close, and r the logarithm of the close over the previous close; means are over the window:
//!
//! | estimator | variance a day | source |
//! | --- | --- | --- |
//! | close_close | sample variance of r | |
//! | close_close_zero_mean | mean r^2 | |
//! | parkinson | mean (u - d)^2 / (4 ln 2) | M. Parkinson (1980) |
//! | garman_klass | mean (u - d)^2 / 2 - (2 ln 2 - 1) c^2 | M. B. Garman, M. J. Klass (1980) |
//! | rogers_satchell | mean u (u - c) + d (d - c) | L. C. G. Rogers, S. E. Satchell (1991) |
//! | yang_zhang | sample var o + k sample var c + (1 - k) rogers_satchell, k = 0.34 / (1.34 + (n + 1) / (n - 1)) | D. Yang, Q. Zhang (2000) |

use super::aggregate::{Deviations, RollingAggregate, Sum, windowed};
use super::feature::Column;
use super::kernel::{BLOCK, Kernel, Scratch};
use super::lookback::Lag;
use super::over_bars::{KernelVisitor, OverBars};
use super::state::{Stateful, state};
use libm::log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The window in trading days.
    pub window: usize,
    /// The number of trading days in a year.
    pub days_a_year: f64,
}

impl Estimator {
    /// The estimator's name in columns and configurations.
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

impl OverBars for Realised {
    fn names(&self) -> Vec<String> {
        vec![format!("{}_{}", self.estimator.name(), self.window)]
    }

    /// A missing or nonpositive price has no logarithm.
    #[inline(always)]
    fn invalid(value: f64) -> u64 {
        u64::from(!(value > 0.0 && value.is_finite()))
    }

    fn with<V: KernelVisitor>(&self, visitor: V) -> V::Result {
        const PRICES: [Column; 4] = [Column::Open, Column::High, Column::Low, Column::Close];
        let realised = *self;
        match self.estimator {
            Estimator::CloseClose => {
                let n = self.window as f64;
                let annual =
                    move |[_, squares]: [f64; 2], [_]: [f64; 1]| [realised.annual(squares / (n - 1.0))];
                visitor.visit(
                    LogReturns::new(windowed::<Deviations, _, 1, 2>(self.window, annual)),
                    [Column::Close],
                )
            }
            Estimator::CloseCloseZeroMean => {
                visitor.visit(LogReturns::new(self.mean(|[r]: [f64; 1]| r * r)), [Column::Close])
            }
            Estimator::Parkinson => visitor.visit(self.mean(parkinson), [Column::High, Column::Low]),
            Estimator::GarmanKlass => visitor.visit(self.mean(garman_klass), PRICES),
            Estimator::RogersSatchell => visitor.visit(self.mean(rogers_satchell), PRICES),
            Estimator::YangZhang => visitor.visit(YangZhang::new(self), PRICES),
        }
    }
}

impl Realised {
    /// The annualised volatility, as a decimal, for a daily variance.
    #[inline(always)]
    fn annual(&self, variance: f64) -> f64 {
        (self.days_a_year * variance.max(0.0)).sqrt()
    }

    /// A kernel for the annualised volatility whose daily variance is the mean of `day` over the window;
    /// `day` is a function of the values of one day.
    fn mean<const K: usize>(self, day: impl Fn([f64; K]) -> f64 + Send) -> impl Kernel<K, 1> {
        let annual = move |[sum]: [f64; 1], [_]: [f64; 1]| [self.annual(sum / self.window as f64)];
        Mapped {
            map: day,
            then: windowed::<Sum, _, 1, 1>(self.window, annual),
        }
    }
}

/// A kernel over rows transformed by `map`.
struct Mapped<F, T> {
    map: F,
    then: T,
}

state!([F, T: Stateful] Mapped<F, T> { then });

impl<F: Fn([f64; K]) -> f64, T: Kernel<1, 1>, const K: usize> Kernel<K, 1> for Mapped<F, T> {
    #[inline(always)]
    fn rows(&mut self, inputs: [&[f64]; K], outputs: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let mapped = &mut scratch[..inputs[0].len()];
        for (i, out) in mapped.iter_mut().enumerate() {
            *out = (self.map)(inputs.map(|input| input[i]));
        }
        self.then.rows([mapped], outputs)
    }
}

/// A kernel over the logarithmic returns of a series.
struct LogReturns<T> {
    before: Lag,
    then: T,
}

state!([T: Stateful] LogReturns<T> { before, then });

impl<T> LogReturns<T> {
    fn new(then: T) -> Self {
        let before = Lag::new(1);
        Self { before, then }
    }
}

impl<T: Kernel<1, 1>> Kernel<1, 1> for LogReturns<T> {
    #[inline(always)]
    fn rows(&mut self, [close]: [&[f64]; 1], [out]: [&mut [f64]; 1]) -> usize {
        let mut scratch: Scratch = [0.0; BLOCK];
        let returns = log_returns(&mut self.before, close, close, &mut scratch);
        let missing = out.len() - returns.len();
        missing + self.then.rows([returns], [&mut out[missing..]])
    }
}

/// The logarithms of the values of `of` over the values of `values` in the previous row.
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

#[inline]
fn parkinson([high, low]: [f64; 2]) -> f64 {
    let range = log(high / low);
    range * range / (4.0 * std::f64::consts::LN_2)
}

#[inline]
fn garman_klass([open, high, low, close]: [f64; 4]) -> f64 {
    let (range, c) = (log(high / low), log(close / open));
    0.5 * range * range - (2.0 * std::f64::consts::LN_2 - 1.0) * c * c
}

#[inline]
fn rogers_satchell([open, high, low, close]: [f64; 4]) -> f64 {
    let (u, d, c) = (log(high / open), log(low / open), log(close / open));
    u * (u - c) + d * (d - c)
}

struct YangZhang {
    realised: Realised,
    before: Lag,
    /// Windows of the logarithms of open over previous close, and of close over open.
    moves: [RollingAggregate<Deviations, 1, 2>; 2],
    days: RollingAggregate<Sum, 1, 1>,
}

state!(YangZhang { before, moves, days });

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
        // The very first bar has no previous close, and does not count.
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
}
