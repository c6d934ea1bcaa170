//! The evidence that a promise is broken: a test that may be looked at every night.
//!
//! A night's excess log return, winsorised to [low, high], is x. While the promise is kept, its conditional
//! mean is at least m. A bet l in (0, 1 / (high - m)) on "less than m" turns a capital of 1 into
//!
//! ```text
//! e = 1 + l (m - x),   E[e | past] <= 1   (Waudby-Smith and Ramdas 2024, section 4.1)
//! ```
//!
//! so that products of e from any night on are test supermartingales, and so is their mixture over bets l
//! with weights p(l) and starts s with weights w(s), the weights of starts yet to come standing as cash
//! (Shin, Ramdas and Rinaldo 2022 sum over starts; with weights that sum to 1 the sum is an e-process, whose
//! probability of ever reaching c is at most 1 / c by Ville's inequality):
//!
//! ```text
//! W(t) = sum_l p(l) sum_{s < t} w(s) prod_{s <= i < t} e_i(l) + sum_{s >= t} w(s),   W(0) = 1
//! ```
//!
//! Half of the weight starts with the first night; the rest is h / ((s + h) (s + h + 1)) with h steps of a
//! year, so that a change after years is found as well.
//!
//! The promise is known from a finite sample alone. m is the lower confidence bound of the winsorised
//! mean at half the false alarm rate a; the other half is left to W: the evidence is W / 2, and an alarm at
//! 1 / a has a probability of at most a / 2 + a / 2.
//!
//! Steps that go with those before them make sums whose variance is d times that of independent steps; e is
//! multiplied by exp(-(d - 1) l^2 v / 2), v the variance of x, which is what the logarithm of a bet loses by
//! the excess. The factor is at most 1, and so costs power, never validity.

use super::fan::share_below;
use super::record::Promise;
use super::spread::{Uncertainty, uncertainty};
use crate::mean_and_deviation;
use serde::{Deserialize, Serialize};
use stages_numerics::student::two_sided_quantile;
use std::ops::Range;

/// The least number of steps of backtests whose promise is tested.
const LEAST_STEPS: usize = 60;

/// The standard deviations at which excess returns are winsorised.
const WINSOR: f64 = 3.0;

/// The bets as multiples of the one that gains most if nothing is left of the promise, and their weights.
const BETS: [(f64, f64); 3] = [(0.5, 0.25), (1.0, 0.5), (2.0, 0.25)];

/// The largest bet as a part of what a night could lose.
const MOST: f64 = 0.9;

/// The share of the false alarm rate that is left to the evidence; the rest covers the sample's own error.
const SHARE: f64 = 0.5;

/// The weight of the first night among the starts.
const FIRST: f64 = 0.5;

/// The largest wealth of a bet that is kept: above every limit, and below infinity.
const RICH: f64 = 1e100;

/// The settings of the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Test {
    /// The bounds to which an excess log return is winsorised.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The mean of the winsorised excess log return of the backtests.
    pub mean: f64,
    /// Its standard error, see [`Uncertainty`].
    pub standard_error: f64,
    /// The promised mean: the lower confidence bound of `mean`.
    pub promised: f64,
    /// The probability that the bound is above the true mean.
    pub promised_level: f64,
    /// The share of the false alarm rate that is left to the evidence.
    pub share: f64,
    /// The mean length of the blocks of the bootstrap.
    pub mean_block: f64,
    /// The variance of sums of steps over that of independent ones.
    pub dependence: f64,
    /// Steps by which the start of a change is as likely as later.
    pub half: f64,
    /// The bets; none if there is no test.
    pub bets: Vec<Bet>,
    /// A caveat for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
}

/// A bet on "less than promised".
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Bet {
    /// The part of the wealth for each unit of log return.
    pub size: f64,
    /// The part of the wealth that bets so.
    pub weight: f64,
    /// The factor of a night for dependence.
    pub toll: f64,
}

impl Test {
    /// The test of excess log returns, which are `series`, one after another.
    pub(super) fn new(
        excess: &[f64],
        series: &[Range<usize>],
        mean_block: f64,
        half: f64,
        rate: f64,
    ) -> Self {
        let (mean, deviation) = mean_and_deviation(excess);
        let (low, high) = (mean - WINSOR * deviation, mean + WINSOR * deviation);
        let winsorised: Vec<f64> = excess.iter().map(|value| value.clamp(low, high)).collect();
        let (mean, deviation) = mean_and_deviation(&winsorised);
        let Uncertainty {
            error,
            degrees,
            dependence,
        } = uncertainty(&winsorised, series, mean_block);
        let level = (1.0 - SHARE) * rate;
        let promised = mean - two_sided_quantile(2.0 * level, degrees) * error;
        let variance = deviation * deviation;
        let has_test = excess.len() >= LEAST_STEPS && deviation > 0.0;
        let bets = match has_test {
            true => bets(promised, error, variance, dependence, high),
            false => Vec::new(),
        };
        let caveat = match has_test {
            false if deviation > 0.0 => Some(format!(
                "the backtests have {} steps, and a promise is tested from {LEAST_STEPS} on",
                excess.len()
            )),
            false => Some("the backtests earned the same at every step: there is nothing to test".to_owned()),
            true => (promised <= 0.0).then(|| {
                "the backtests promise no edge beyond their own error: the test can only tell that the \
                 account is worse"
                    .to_owned()
            }),
        };
        Self {
            low,
            high,
            mean,
            standard_error: error,
            promised,
            promised_level: level,
            share: SHARE,
            mean_block,
            dependence,
            half,
            bets,
            caveat,
        }
    }

    /// The weight of a start at step `start`, from 0.
    fn weight(&self, start: usize) -> f64 {
        let at = start as f64 + self.half;
        let later = (1.0 - FIRST) * self.half / (at * (at + 1.0));
        if start == 0 { FIRST + later } else { later }
    }

    /// The weight of all starts from `start` on.
    fn left(&self, start: usize) -> f64 {
        match start {
            0 => 1.0,
            _ => (1.0 - FIRST) * self.half / (start as f64 + self.half),
        }
    }
}

/// The bets that gain most if the edge is gone: with the promised mean m, v the variance and d the
/// dependence, m / (d v + m^2) for a mean of 0 (Kelly's bet); without an edge, a loss of two standard errors
/// takes the place of m.
fn bets(promised: f64, error: f64, variance: f64, dependence: f64, high: f64) -> Vec<Bet> {
    let lost = promised.max(2.0 * error);
    let best = lost / (dependence * variance + lost * lost);
    let most = MOST / (high - promised);
    let bet = |(times, weight): (f64, f64)| {
        let size = (times * best).min(most);
        let toll = libm::exp(-0.5 * (dependence - 1.0) * size * size * variance);
        Bet { size, weight, toll }
    };
    BETS.map(bet).to_vec()
}

/// The running state of an account that is held against its promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// The number of nights so far.
    nights: usize,
    /// The night from which on the promise is tested.
    #[serde(default)]
    start: usize,
    /// The wealth of each bet, summed over its starts.
    wealth: Vec<f64>,
    /// Value of 1 invested at the start.
    growth: f64,
    /// The highest `growth`.
    peak: f64,
    /// The largest drawdown.
    drawdown: f64,
    /// True once the evidence has reached its limit.
    broken: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// The state before the first night.
    pub fn new() -> Self {
        Self {
            nights: 0,
            start: 0,
            wealth: Vec::new(),
            growth: 1.0,
            peak: 1.0,
            drawdown: 0.0,
            broken: false,
        }
    }

    /// The state after a person has looked: the account has grown as it has, and its promise is tested anew.
    pub fn anew(&self) -> Self {
        Self {
            wealth: Vec::new(),
            peak: self.growth,
            drawdown: 0.0,
            broken: false,
            start: self.nights,
            ..self.clone()
        }
    }

    /// The present drawdown, a fraction.
    pub fn present_drawdown(&self) -> f64 {
        1.0 - self.growth / self.peak
    }

    /// The number of nights so far.
    pub fn nights(&self) -> usize {
        self.nights
    }

    /// Adds a night: the log return of the account and that of cash. A return that is not a number, or an
    /// infinite loss, is the loss of everything.
    pub fn update(&mut self, promise: &Promise, log_return: f64, risk_free: f64) {
        let log_return = if log_return.is_nan() {
            f64::NEG_INFINITY
        } else {
            log_return
        };
        self.growth *= libm::exp(log_return);
        self.peak = self.peak.max(self.growth);
        self.drawdown = self.drawdown.max(1.0 - self.growth / self.peak);
        let test = &promise.test;
        self.wealth.resize(test.bets.len(), 0.0);
        let start = test.weight(self.nights - self.start);
        let lost = test.promised - (log_return - risk_free).clamp(test.low, test.high);
        for (wealth, bet) in self.wealth.iter_mut().zip(&test.bets) {
            *wealth = ((*wealth + start) * (1.0 + bet.size * lost) * bet.toll).min(RICH);
        }
        self.nights += 1;
        self.broken |= self.evidence(promise) >= promise.limit();
    }

    /// Where the account stands.
    pub fn standing(&self, promise: &Promise) -> Standing {
        let Promise {
            levels,
            fan_nights,
            fan,
            ..
        } = promise;
        Standing {
            growth: self.growth,
            evidence: self.evidence(promise),
            drawdown: self.drawdown,
            quantile: share_below(levels, fan_nights, fan, self.nights, self.growth),
            broken: self.broken,
            drifted: Vec::new(),
        }
    }

    fn evidence(&self, promise: &Promise) -> f64 {
        let test = &promise.test;
        if test.bets.is_empty() {
            return test.share;
        }
        let bets = self.wealth.iter().zip(&test.bets);
        test.share
            * (bets.map(|(wealth, bet)| bet.weight * wealth).sum::<f64>()
                + test.left(self.nights - self.start))
    }
}

/// Where an account stands in its promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Value of 1 invested at the start.
    pub growth: f64,
    /// The evidence that the promise is broken, an e-value.
    pub evidence: f64,
    /// The largest drawdown so far, a fraction.
    pub drawdown: f64,
    /// The share of promised paths that are below `growth` by now; `None` beyond the last night of the fan.
    pub quantile: Option<f64>,
    /// True from the night on which the evidence reached its limit.
    pub broken: bool,
    /// The features that have drifted, see [`super::drift`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<String>,
}
