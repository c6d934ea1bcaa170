//! The way from now to expiry: periods between dividends, their parts, and the relevant range of spots in
//! each.

use super::Dividend;
use crate::numerics::formula::Contract;
use libm::{exp, log, pow, sqrt};

/// The reach of the nodes, in standard deviations.
const REACH: f64 = 7.5;
/// The reach, in standard deviations, within which the spot may fall below the dividends ahead, so that the
/// value is not a line there.
const LOW_REACH: f64 = 5.5;
/// The ratio of the times to expiry of two consecutive parts.
const RATIO: f64 = 8.0;
/// The number of parts of the period before expiry.
const PARTS: i32 = 3;

/// The periods, and where nodes are needed in each.
pub(super) struct Way<'a> {
    market: &'a Contract,
    log_spot: f64,
    due: &'a [Dividend],
    /// The ranges of `ln S` at the ends of the periods, the first period first; fewer if a dividend leaves
    /// nothing of the spot.
    pub ranges: Vec<(f64, f64)>,
}

/// A part of a period; times are those left to the period's end.
pub(super) struct Part {
    pub from: f64,
    pub to: f64,
    /// The time from which steps, short at first, are counted.
    pub origin: f64,
    /// True if the part is short because of the scale of the spot.
    pub is_late: bool,
}

impl<'a> Way<'a> {
    pub(super) fn new(market: &'a Contract, due: &'a [Dividend]) -> Self {
        let mut way = Self {
            market,
            log_spot: log(market.spot),
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
            // Below it, the value is a line down to a spot of 0.
            let least = due[i + 1..]
                .iter()
                .fold(market.strike, |least, dividend| least.min(dividend.amount));
            let left = market.years - end;
            let mut floor = log(least) - REACH * market.volatility * sqrt(left) - market.drift().abs() * left;
            // Unless the spot is unlikely to be that low.
            if dividend.amount < 0.5 * exp(low + (REACH - LOW_REACH) * market.volatility * sqrt(end)) {
                floor = floor.max(low - 1.0);
            }
            low = log((exp(low) - dividend.amount).max(exp(floor))).min(high - 0.1);
        }
        way
    }

    /// The shift of the range in `ln S` that accounts for the weight of high spots in the price of a call.
    fn skew(&self, time: f64) -> f64 {
        (self.market.sign() + 1.0) * self.market.diffusion() * time
    }

    fn begin(&self, i: usize) -> f64 {
        if i == 0 { 0.0 } else { self.due[i - 1].years }
    }

    pub(super) fn end(&self, i: usize) -> f64 {
        self.due.get(i).map_or(self.market.years, |dividend| dividend.years)
    }

    pub(super) fn length(&self, i: usize) -> f64 {
        self.end(i) - self.begin(i)
    }

    /// The parts of a period. They become shorter towards expiry with the scale of the value and, if the
    /// drift is large, towards now with the scale of the spot.
    pub(super) fn parts(&self, i: usize) -> Vec<Part> {
        let length = self.length(i);
        let left = self.market.years - self.end(i);
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

    /// The time before a dividend during which a deep in-the-money put waits for it, because interest on the
    /// strike earns less.
    fn wait(&self, i: usize) -> f64 {
        let Contract {
            rate, strike, call, ..
        } = *self.market;
        match self.due.get(i) {
            Some(dividend) if !call && rate > 0.0 => log(1.0 + dividend.amount / strike) / rate,
            _ => 0.0,
        }
    }

    /// The range of nodes for a part of a period, at its end nearer to expiry.
    pub(super) fn range(&self, i: usize, from: f64, to: f64) -> (f64, f64) {
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
        let left = self.market.years - self.end(i) + to;
        let reach = REACH * market.volatility * sqrt(left) + self.skew(left) + market.drift().abs() * left;
        let to_come: f64 = self.due[i..].iter().map(|dividend| dividend.amount).sum();
        let (mut first, mut last) = (log(market.strike), log(market.strike + to_come));
        // At expiry, there is a boundary where exercising starts or ceases to gain.
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
