//! The promise of backtests.

use super::evidence::Test;
use super::fan;
use crate::mean_and_deviation;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use std::ops::Range;

stages_core::settings! {
    /// Settings of a promise.
    pub struct PromiseSettings {
        /// The probability of an alarm, ever, while the promise is kept: above 0, at most 0.5.
        pub false_alarm_rate: f64 = 0.05,
    }
}

/// The steps of an episode of a backtest; the four have one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The log return of the account over each step.
    pub log_return: Vec<f64>,
    /// The log return of cash over each step.
    pub risk_free: Vec<f64>,
    /// The value traded at each step, as a fraction of the account.
    pub turnover: Vec<f64>,
    /// The costs of each step, as a fraction of the account.
    pub costs: Vec<f64>,
}

/// The promise of backtests of an account, fixed before its first night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The number of steps of the backtests.
    pub steps: usize,
    /// Steps a year.
    pub steps_a_year: f64,
    /// The mean of the excess log return of a step, the account's less that of cash.
    pub mean: f64,
    /// The standard deviation of the excess log return of a step.
    pub deviation: f64,
    /// The levels of the quantiles of `fan` and `drawdown`.
    pub levels: Vec<f64>,
    /// For each of `fan_nights`, the quantiles of the value of 1 invested at the start.
    pub fan: Vec<Vec<f64>>,
    /// Numbers of nights, ascending from 1.
    pub fan_nights: Vec<usize>,
    /// For each of `fan_nights`, the quantiles of the largest drawdown so far, a fraction.
    pub drawdown: Vec<Vec<f64>>,
    /// The mean value traded a step, as a fraction of the account.
    pub turnover: f64,
    /// The mean costs of a step, as a fraction of the account.
    pub costs: f64,
    /// The probability of an alarm, ever, while the promise is kept.
    pub false_alarm_rate: f64,
    /// The settings of the test.
    pub(super) test: Test,
}

impl Promise {
    /// The promise of backtests, each sample an episode of at least one step. `steps_a_year` is of trading
    /// days, say, 252.
    ///
    /// # Errors
    /// Fewer than two steps in all, series of unequal lengths, a value that is not finite, and settings out
    /// of range.
    pub fn new(
        samples: &[Sample],
        steps_a_year: f64,
        settings: &PromiseSettings,
    ) -> Result<Self, StageError> {
        check(samples, steps_a_year, settings)?;
        let joined = |of: fn(&Sample) -> &Vec<f64>| -> Vec<f64> {
            samples.iter().flat_map(|sample| of(sample).iter().copied()).collect()
        };
        let log_return = joined(|sample| &sample.log_return);
        let risk_free = joined(|sample| &sample.risk_free);
        let excess: Vec<f64> = log_return.iter().zip(&risk_free).map(|(a, b)| a - b).collect();
        let mut end = 0;
        let series: Vec<Range<usize>> = samples
            .iter()
            .map(|sample| {
                end += sample.log_return.len();
                end - sample.log_return.len()..end
            })
            .filter(|series| !series.is_empty())
            .collect();
        let block = mean_block(&series);
        let (mean, deviation) = mean_and_deviation(&excess);
        let fan = fan::fan(&log_return, &series, block);
        Ok(Self {
            steps: excess.len(),
            steps_a_year,
            mean,
            deviation,
            levels: fan::LEVELS.to_vec(),
            fan: fan.growth,
            fan_nights: fan::nights(),
            drawdown: fan.drawdown,
            turnover: mean_and_deviation(&joined(|sample| &sample.turnover)).0,
            costs: mean_and_deviation(&joined(|sample| &sample.costs)).0,
            false_alarm_rate: settings.false_alarm_rate,
            test: Test::new(&excess, &series, block, steps_a_year, settings.false_alarm_rate),
        })
    }

    /// The evidence at which the promise counts as broken.
    pub fn limit(&self) -> f64 {
        1.0 / self.false_alarm_rate
    }

    /// A caveat for people: why there is no test, or that no edge is promised.
    pub fn caveat(&self) -> Option<&str> {
        self.test.caveat.as_deref()
    }
}

/// The mean length of the blocks by which steps are resampled: the cube root of the longest series, at least
/// 10, the order that has the least error (Politis and Romano 1994).
pub(super) fn mean_block(series: &[Range<usize>]) -> f64 {
    let longest = series.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    libm::cbrt(longest as f64).max(10.0)
}

fn check(samples: &[Sample], steps_a_year: f64, settings: &PromiseSettings) -> Result<(), StageError> {
    let rate = settings.false_alarm_rate;
    StageError::new(format!("a false alarm rate of {rate} is no probability to test at"))
        .hint("give one above 0 and at most 0.5; the default is 0.05")
        .when(!(rate > 0.0 && rate <= 0.5))?;
    StageError::new(format!("{steps_a_year} steps a year"))
        .hint("give the number of steps of the backtests in a year, such as 252")
        .when(!(steps_a_year > 0.0 && steps_a_year.is_finite()))?;
    for (number, sample) in samples.iter().enumerate() {
        let Sample {
            log_return,
            risk_free,
            turnover,
            costs,
        } = sample;
        let all = [log_return, risk_free, turnover, costs];
        StageError::new(format!(
            "episode {number} of the backtests has series of unequal lengths"
        ))
        .when(all.iter().any(|series| series.len() != log_return.len()))?;
        if let Some(at) = (0..log_return.len()).find(|&at| all.iter().any(|series| !series[at].is_finite())) {
            return Err(StageError::new(format!(
                "step {at} of episode {number} of the backtests has a value that is not finite"
            ))
            .hint("an account that was ruined in its backtest promises nothing: take another policy"));
        }
    }
    let steps: usize = samples.iter().map(|sample| sample.log_return.len()).sum();
    StageError::new(format!("the backtests have {steps} steps: too few to promise anything"))
        .hint("take backtests of at least 2 steps; the promise is tested from 60 on")
        .when(steps < 2)
}
