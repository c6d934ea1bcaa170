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

use super::aggregate::{Aggregate, Deviations, Sum, windowed};
use super::feature::Column;
use super::kernel::{Chain, Kernel, Recurrence, scan};
use super::lookback::Previous;
use super::over_bars::{BarKernel, OnColumns, OverBars};
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

    fn kernel(&self) -> Box<dyn BarKernel> {
        const PRICES: [Column; 4] = [Column::Open, Column::High, Column::Low, Column::Close];
        let (realised, n) = (*self, self.window as f64);
        match self.estimator {
            Estimator::CloseClose => {
                let annual =
                    move |[_, squares]: [f64; 2], [_]: [f64; 1]| [realised.annual(squares / (n - 1.0))];
                let window = windowed::<Deviations, _, 1, 2>(self.window, annual);
                over([Column::Close], Chain::<_, _, 1>::new(log_returns(), window))
            }
            Estimator::CloseCloseZeroMean => {
                let squares = self.mean(|[r]: [f64; 1]| r * r);
                over([Column::Close], Chain::<_, _, 1>::new(log_returns(), squares))
            }
            Estimator::Parkinson => over([Column::High, Column::Low], self.mean(parkinson)),
            Estimator::GarmanKlass => over(PRICES, self.mean(garman_klass)),
            Estimator::RogersSatchell => over(PRICES, self.mean(rogers_satchell)),
            Estimator::YangZhang => {
                let k = 0.34 / (1.34 + (n + 1.0) / (n - 1.0));
                let annual = move |[_, overnight, _, within, days]: [f64; 5], _: [f64; 3]| {
                    [realised.annual((overnight + k * within) / (n - 1.0) + (1.0 - k) * (days / n))]
                };
                let window = windowed::<Moves, _, 3, 5>(self.window, annual);
                over(PRICES, Chain::<_, _, 3>::new(moves(), window))
            }
        }
    }
}

/// A kernel over prices: a missing or nonpositive one has no logarithm.
fn over<M: Kernel<K, 1> + 'static, const K: usize>(columns: [Column; K], kernel: M) -> Box<dyn BarKernel> {
    Box::new(OnColumns::<_, _, K, 1> {
        kernel,
        columns,
        invalid: |value: f64| u64::from(!(value > 0.0 && value.is_finite())),
    })
}

impl Realised {
    /// The annualised volatility, as a decimal, for a daily variance.
    #[inline(always)]
    fn annual(&self, variance: f64) -> f64 {
        (self.days_a_year * variance.max(0.0)).sqrt()
    }

    /// A kernel for the annualised volatility whose daily variance is the mean of `day` over the window;
    /// `day` is a function of the values of one day.
    fn mean<const K: usize>(self, day: impl Fn([f64; K]) -> f64 + Clone) -> impl Kernel<K, 1> {
        let annual = move |[sum]: [f64; 1], [_]: [f64; 1]| [self.annual(sum / self.window as f64)];
        let days = scan((), move |(), row: [f64; K]| Some([day(row)]));
        Chain::<_, _, 1>::new(days, windowed::<Sum, _, 1, 1>(self.window, annual))
    }
}

/// The logarithmic returns of a series.
fn log_returns() -> impl Recurrence<1, 1> {
    scan(Previous::default(), |before, [close]: [f64; 1]| {
        Some([log(close / before.next(close)?)])
    })
}

/// The logarithms of open over previous close and of close over open, and the variance of Rogers and
/// Satchell. The very first bar has no previous close, and does not count.
fn moves() -> impl Recurrence<4, 3> {
    scan(Previous::default(), |before, bar: [f64; 4]| {
        let [open, .., close] = bar;
        let before = before.next(close)?;
        Some([log(open / before), log(close / open), rogers_satchell(bar)])
    })
}

/// The aggregate of [`moves`]: [`Deviations`] of the first two columns, and the sum of the third.
struct Moves;

impl Aggregate<3, 5> for Moves {
    #[inline(always)]
    fn of(values: &[f64; 3], total: &mut [f64; 5]) {
        *total = [values[0], 0.0, values[1], 0.0, values[2]];
    }

    #[inline(always)]
    fn join(total: &mut [f64; 5], n: f64, later: &[f64; 5], m: f64) {
        for k in [0, 2] {
            let mut deviations = [total[k], total[k + 1]];
            Deviations::join(&mut deviations, n, &[later[k], later[k + 1]], m);
            [total[k], total[k + 1]] = deviations;
        }
        total[4] += later[4];
    }
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
