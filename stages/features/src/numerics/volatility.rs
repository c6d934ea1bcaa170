//! Realised volatility of daily bars, annual and decimal.
//!
//! With u, d, c the logarithms of high, low and close over the open, o that of the open over the close before, and r that of the close over the
//! close before; means over the window:
//!
//! | estimator | variance a day | source |
//! | --- | --- | --- |
//! | close_close | sample variance of r | |
//! | close_close_zero_mean | mean r^2 | |
//! | parkinson | mean (u - d)^2 / (4 ln 2) | M. Parkinson (1980) |
//! | garman_klass | mean (u - d)^2 / 2 - (2 ln 2 - 1) c^2 | M. B. Garman, M. J. Klass (1980) |
//! | rogers_satchell | mean u (u - c) + d (d - c) | L. C. G. Rogers, S. E. Satchell (1991) |
//! | yang_zhang | sample var o + k sample var c + (1 - k) rogers_satchell, k = 0.34 / (1.34 + (n + 1) / (n - 1)) | D. Yang, Q. Zhang (2000) |

use super::anchored::Anchored;
use super::machine::{Machine, Memory, drive, save};
use super::rolling::{Lag, Sliding, Sum};
use super::{Bars, Feature, State};
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
            Estimator::CloseClose => save(CloseClose::new(self)),
            Estimator::CloseCloseZeroMean => save(ZeroMean::new(self)),
            Estimator::Parkinson => save(Parkinson::new(self)),
            Estimator::GarmanKlass => save(GarmanKlass::new(self)),
            Estimator::RogersSatchell => save(RogersSatchell::new(self)),
            Estimator::YangZhang => save(YangZhang::new(self)),
        }
    }

    fn over(&self, state: &mut State, bars: &Bars) -> Vec<Vec<f64>> {
        // A price that is none, or not positive, has no logarithm.
        let usable = |value: f64| value > 0.0 && value.is_finite();
        let Bars {
            open, high, low, close, ..
        } = bars;
        match self.estimator {
            Estimator::CloseClose => drive(CloseClose::new(self), state, [close], usable),
            Estimator::CloseCloseZeroMean => drive(ZeroMean::new(self), state, [close], usable),
            Estimator::Parkinson => drive(Parkinson::new(self), state, [high, low], usable),
            Estimator::GarmanKlass => drive(GarmanKlass::new(self), state, [open, high, low, close], usable),
            Estimator::RogersSatchell => drive(RogersSatchell::new(self), state, [open, high, low, close], usable),
            Estimator::YangZhang => drive(YangZhang::new(self), state, [open, high, low, close], usable),
        }
    }
}

impl Realised {
    /// Annual and decimal, from the variance of a day.
    #[inline]
    fn annual(&self, variance: f64) -> [f64; 1] {
        [(self.days_a_year * variance.max(0.0)).sqrt()]
    }
}

struct CloseClose {
    realised: Realised,
    before: Lag,
    returns: Anchored<1>,
}

impl CloseClose {
    fn new(realised: &Realised) -> Self {
        Self {
            realised: *realised,
            before: Lag::new(1),
            returns: Anchored::new(realised.window),
        }
    }
}

impl Machine<1, 1> for CloseClose {
    #[inline]
    fn next(&mut self, [close]: [f64; 1]) -> Option<[f64; 1]> {
        let before = self.before.next(close)?;
        let [squares] = self.returns.next([log(close / before)])?.squares;
        Some(self.realised.annual(squares / (self.realised.window as f64 - 1.0)))
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.before.visit(memory);
        self.returns.visit(memory);
    }
}

struct ZeroMean {
    realised: Realised,
    before: Lag,
    squares: Sliding<Sum>,
}

impl ZeroMean {
    fn new(realised: &Realised) -> Self {
        Self {
            realised: *realised,
            before: Lag::new(1),
            squares: Sliding::new(realised.window),
        }
    }
}

impl Machine<1, 1> for ZeroMean {
    #[inline]
    fn next(&mut self, [close]: [f64; 1]) -> Option<[f64; 1]> {
        let r = log(close / self.before.next(close)?);
        Some(self.realised.annual(self.squares.next([r * r])?.mean()))
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.before.visit(memory);
        self.squares.visit(memory);
    }
}

/// The mean over the window of a day's variance, which the day's own prices tell.
macro_rules! by_day {
    ($name:ident, $prices:literal, $day:expr) => {
        struct $name {
            realised: Realised,
            days: Sliding<Sum>,
        }

        impl $name {
            fn new(realised: &Realised) -> Self {
                Self {
                    realised: *realised,
                    days: Sliding::new(realised.window),
                }
            }
        }

        impl Machine<$prices, 1> for $name {
            #[inline]
            fn next(&mut self, prices: [f64; $prices]) -> Option<[f64; 1]> {
                let day: fn([f64; $prices]) -> f64 = $day;
                Some(self.realised.annual(self.days.next([day(prices)])?.mean()))
            }

            fn visit(&mut self, memory: &mut Memory<'_>) {
                self.days.visit(memory);
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
    overnight: Anchored<1>,
    within: Anchored<1>,
    days: Sliding<Sum>,
}

impl YangZhang {
    fn new(realised: &Realised) -> Self {
        let n = realised.window;
        Self {
            realised: *realised,
            before: Lag::new(1),
            overnight: Anchored::new(n),
            within: Anchored::new(n),
            days: Sliding::new(n),
        }
    }
}

impl Machine<4, 1> for YangZhang {
    #[inline]
    fn next(&mut self, [open, high, low, close]: [f64; 4]) -> Option<[f64; 1]> {
        let before = self.before.next(close)?;
        let overnight = self.overnight.next([log(open / before)]);
        let within = self.within.next([log(close / open)]);
        let days = self.days.next([rogers_satchell([open, high, low, close])]);
        let ([overnight], [within], days) = (overnight?.squares, within?.squares, days?.mean());
        let n = self.realised.window as f64;
        let k = 0.34 / (1.34 + (n + 1.0) / (n - 1.0));
        Some(
            self.realised
                .annual((overnight + k * within) / (n - 1.0) + (1.0 - k) * days),
        )
    }

    fn visit(&mut self, memory: &mut Memory<'_>) {
        self.before.visit(memory);
        self.overnight.visit(memory);
        self.within.visit(memory);
        self.days.visit(memory);
    }
}
