//! Realised volatility of daily bars, annual and decimal.
//!
//! With u, d, c the logarithms of high, low and close over the open, o that of the open over the close before, and r that of the close over the
//! close before; means over the window:
//!
//! | estimator | variance a day | source |
//! | --- | --- | --- |
//! | close_close | sample variance of r | |
//! | parkinson | mean (u - d)^2 / (4 ln 2) | M. Parkinson (1980) |
//! | garman_klass | mean (u - d)^2 / 2 - (2 ln 2 - 1) c^2 | M. B. Garman, M. J. Klass (1980) |
//! | rogers_satchell | mean u (u - c) + d (d - c) | L. C. G. Rogers, S. E. Satchell (1991) |
//! | yang_zhang | var o + k var c + (1 - k) rogers_satchell, k = 0.34 / (1.34 + (n + 1) / (n - 1)) | D. Yang, Q. Zhang (2000) |

use super::window::{full, mean, push, size, variance};
use super::{Bar, Feature, State};
use libm::log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An estimator of realised volatility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Sample deviation of daily log returns.
    CloseClose,
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
            Self::Parkinson => "parkinson",
            Self::GarmanKlass => "garman_klass",
            Self::RogersSatchell => "rogers_satchell",
            Self::YangZhang => "yang_zhang",
        }
    }
}

impl Feature<Bar> for Realised {
    fn columns(&self) -> Vec<String> {
        vec![format!("{}_{}", self.estimator.name(), self.window)]
    }

    fn inputs(&self) -> Vec<&'static str> {
        match self.estimator {
            Estimator::CloseClose => vec!["close"],
            Estimator::Parkinson => vec!["high", "low"],
            _ => vec!["open", "high", "low", "close"],
        }
    }

    fn start(&self) -> State {
        let mut state = match self.estimator {
            Estimator::YangZhang => vec![0.0; 1 + 3 * size(self.window)],
            _ => vec![0.0; 1 + size(self.window)],
        };
        // The close before.
        state[0] = f64::NAN;
        state
    }

    fn update(&self, state: &mut State, bar: &Bar, out: &mut [f64]) {
        let Bar { open, high, low, close } = *bar;
        let usable = self.inputs().into_iter().all(|name| {
            let value = match name {
                "open" => open,
                "high" => high,
                "low" => low,
                _ => close,
            };
            value > 0.0 && value.is_finite()
        });
        if !usable {
            return;
        }
        let before = state[0];
        state[0] = close;
        let windows = &mut state[1..];
        let range = || log(high / low);
        let (u, d, c) = (|| log(high / open), || log(low / open), || log(close / open));
        let day = match self.estimator {
            Estimator::CloseClose if before.is_nan() => return,
            Estimator::CloseClose => {
                push(windows, log(close / before));
                full(windows).map(variance)
            }
            Estimator::Parkinson => {
                push(windows, range() * range());
                full(windows).map(|values| mean(values) / (4.0 * std::f64::consts::LN_2))
            }
            Estimator::GarmanKlass => {
                push(
                    windows,
                    0.5 * range() * range() - (2.0 * std::f64::consts::LN_2 - 1.0) * c() * c(),
                );
                full(windows).map(mean)
            }
            Estimator::RogersSatchell => {
                push(windows, u() * (u() - c()) + d() * (d() - c()));
                full(windows).map(mean)
            }
            Estimator::YangZhang if before.is_nan() => return,
            Estimator::YangZhang => {
                let n = self.window as f64;
                let k = 0.34 / (1.34 + (n + 1.0) / (n - 1.0));
                let (overnight, rest) = windows.split_at_mut(size(self.window));
                let (open_close, satchell) = rest.split_at_mut(size(self.window));
                push(overnight, log(open / before));
                push(open_close, c());
                push(satchell, u() * (u() - c()) + d() * (d() - c()));
                match (full(overnight), full(open_close), full(satchell)) {
                    (Some(o), Some(c), Some(rs)) => Some(variance(o) + k * variance(c) + (1.0 - k) * mean(rs)),
                    _ => None,
                }
            }
        };
        if let Some(variance) = day {
            out[0] = (self.days_a_year * variance.max(0.0)).sqrt();
        }
    }
}
