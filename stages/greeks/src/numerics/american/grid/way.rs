//! The way from now to expiry: periods between dividends, their parts, and the spots that matter at each.

use super::Dividend;
use super::market::Market;
use libm::{exp, log, pow, sqrt};

/// The reach of the nodes in standard deviations.
const REACH: f64 = 7.5;
/// The reach within which the spot may fall below the dividends to come, and the value is not a line there.
const LOW_REACH: f64 = 5.5;
/// The times to expiry of two parts have this ratio.
const RATIO: f64 = 8.0;
/// Parts of the first period back from expiry.
const PARTS: i32 = 3;

/// The periods, and where the nodes have to be.
pub(super) struct Way<'a> {
    market: &'a Market,
    log_spot: f64,
    years: f64,
    due: &'a [Dividend],
    /// `ln S` at the ends of periods, the first period first; fewer if a dividend leaves nothing.
    pub ranges: Vec<(f64, f64)>,
}

/// A part of a period, as times left to its end.
pub(super) struct Part {
    pub from: f64,
    pub to: f64,
    /// The time after which steps are short first.
    pub origin: f64,
    /// Short because the spot's scale is.
    pub is_late: bool,
}

impl<'a> Way<'a> {
    pub fn new(market: &'a Market, spot: f64, years: f64, due: &'a [Dividend]) -> Self {
        let mut way = Self {
            market,
            log_spot: log(spot),
            years,
            due,
            ranges: Vec::new(),
        };
        let (mut low, mut high) = (way.log_spot, way.log_spot);
        for i in 0..=due.len() {
            let (begin, end) = (way.begin(i), way.end(i));
            let wider = REACH * market.volatility * (sqrt(end) - sqrt(begin));
            let drift = market.drift() * (end - begin);
            (low, high) = (
                low + drift - wider,
                high + drift + wider + way.skew(end) - way.skew(begin),
            );
            way.ranges.push((low, high));
            let Some(dividend) = due.get(i) else { break };
            if exp(high) <= dividend.amount * (1.0 + 1e-9) {
                break;
            }
            high = log(exp(high) - dividend.amount);
            // Below, the value is a line down to a spot of 0.
            let least = due[i + 1..]
                .iter()
                .fold(market.strike, |least, dividend| least.min(dividend.amount));
            let left = years - end;
            let mut floor = log(least) - REACH * market.volatility * sqrt(left) - market.drift().abs() * left;
            // Unless the spot will hardly be so low.
            if dividend.amount < 0.5 * exp(low + (REACH - LOW_REACH) * market.volatility * sqrt(end)) {
                floor = floor.max(low - 1.0);
            }
            low = log((exp(low) - dividend.amount).max(exp(floor))).min(high - 0.1);
        }
        way
    }

    /// Great spots weigh by their price in a call.
    fn skew(&self, time: f64) -> f64 {
        (self.market.sign + 1.0) * self.market.diffusion() * time
    }

    fn begin(&self, i: usize) -> f64 {
        if i == 0 { 0.0 } else { self.due[i - 1].years }
    }

    pub fn end(&self, i: usize) -> f64 {
        self.due.get(i).map_or(self.years, |dividend| dividend.years)
    }

    pub fn length(&self, i: usize) -> f64 {
        self.end(i) - self.begin(i)
    }

    /// The parts of a period: towards expiry they become shorter with the scale of the value, and towards
    /// now, where there is much drift, with that of the spot.
    pub fn parts(&self, i: usize) -> Vec<Part> {
        let length = self.length(i);
        let left = self.years - self.end(i);
        let mut cuts = vec![0.0];
        for k in (1..PARTS).rev() {
            let cut = (left + length) * pow(RATIO, -f64::from(k)) - left;
            if cut > 0.1 * length * pow(RATIO, -f64::from(k)) {
                cuts.push(cut);
            }
        }
        let drift = self.market.drift().abs() * sqrt(length) / self.market.volatility;
        let quarters = if i == 0 {
            (log(drift.max(1.0)) / log(2.0)).ceil() as i32
        } else {
            0
        };
        for k in 1..=quarters {
            cuts.push(length * (1.0 - pow(4.0, -f64::from(k))));
        }
        let late = length * if quarters > 0 { 0.75 } else { 1.0 };
        let wait = self.wait(i);
        cuts.extend((wait > 0.0 && wait < length).then_some(wait));
        cuts.push(length);
        cuts.sort_by(f64::total_cmp);
        let part = |pair: &[f64]| Part {
            from: pair[0],
            to: pair[1],
            origin: if pair[0] >= wait { wait } else { 0.0 },
            is_late: pair[0] >= late,
        };
        cuts.windows(2).map(part).collect()
    }

    /// The time before a dividend for which a put far in the money waits for it: interest on the strike earns
    /// less.
    fn wait(&self, i: usize) -> f64 {
        let Market {
            rate, strike, sign, ..
        } = *self.market;
        match self.due.get(i) {
            Some(dividend) if sign < 0.0 && rate > 0.0 => log(1.0 + dividend.amount / strike) / rate,
            _ => 0.0,
        }
    }

    /// The range of nodes of a part of a period, at the end nearer to expiry.
    pub fn range(&self, i: usize, from: f64, to: f64) -> (f64, f64) {
        let drift = self.market.drift();
        let time = self.end(i) - from;
        let reach = REACH * self.market.volatility * sqrt(time) + self.skew(time);
        if i == 0 {
            let middle = self.log_spot + drift * time;
            if to == self.length(0) {
                return (middle - reach, middle + reach);
            }
            return self.where_curved((middle - reach, middle + reach), i, from, to);
        }
        let (low, high) = self.ranges[i];
        self.where_curved((low - drift * from, high - drift * from), i, from, to)
    }

    /// The part of a range in which the value is not a line.
    fn where_curved(&self, (low, high): (f64, f64), i: usize, from: f64, to: f64) -> (f64, f64) {
        let market = self.market;
        let left = self.years - self.end(i) + to;
        let reach = REACH * market.volatility * sqrt(left) + self.skew(left) + market.drift().abs() * left;
        let to_come: f64 = self.due[i..].iter().map(|dividend| dividend.amount).sum();
        let (mut first, mut last) = (log(market.strike), log(market.strike + to_come));
        // Where exercise begins or ceases to gain, there is a boundary at expiry.
        let changes = market.rate * market.strike / market.dividend_yield;
        if changes > 0.0 && changes.is_finite() {
            (first, last) = (first.min(log(changes)), last.max(log(changes)));
        }
        let time = self.end(i) - from;
        let lowest = self.log_spot - LOW_REACH * market.volatility * sqrt(time) - market.drift().abs() * time;
        let near_low = if lowest < log(2.0 * to_come) {
            low
        } else {
            first - reach
        };
        let near = (low.max(near_low), high.min(last + reach));
        if near.1 - near.0 > 0.1 * (high - low).min(reach) {
            near
        } else {
            (low, high)
        }
    }
}
