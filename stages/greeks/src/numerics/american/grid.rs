//! American options by finite differences: with cash dividends, and where the exercise region has two boundaries.
//!
//! With dividends the model is the piecewise lognormal one: between ex-dividend dates the spot is lognormal with the option's rate, yield and volatility,
//! and on such a date it falls by the amount, or to 0 where it is less (QuantLib's spot model; M. H. Vellekoop and J. W. Nieuwenhuis (2006) prefer it to
//! the escrowed one, whose volatility means something else for every expiry). For that model the price is exact in the limit of the grid.
//!
//! The Black-Scholes equation in `ln S` is solved by central differences and the TR-BDF2 scheme, second order in both, with steps that crowd where the
//! value has a kink: after expiry and after each dividend, seen backwards. At each step the value is the least one that neither the equation nor
//! exercise exceeds, found by policy iteration, so that the exercise region may have any shape. Two grids, one twice as fine, are extrapolated.

use super::reason::Reason;
use crate::numerics::formula::{Contract, Greeks};
use libm::{exp, log, sqrt};

/// A cash dividend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dividend {
    /// Years from now to the ex-dividend date.
    pub years: f64,
    /// In currency.
    pub amount: f64,
}

/// The resolution of the finer of two grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Intervals of `ln S`.
    pub spots: usize,
    /// Steps of time, shared out to the times between dividends by the roots of their lengths.
    pub steps: usize,
}

impl Grid {
    /// A price on a strike of 100 to a few 1e-5.
    pub const STANDARD: Self = Self { spots: 400, steps: 120 };
    /// Twice as fine, for much drift.
    pub const FINE: Self = Self { spots: 800, steps: 240 };
}

/// Standard deviations of drift up to which central differences of the grid do not swing.
const GREATEST_DRIFT: f64 = 8.0;
/// The reach of the grid, in standard deviations.
const REACH: f64 = 6.0;
/// The relative change of volatility in the differences that are vega, vanna and volga, and the change of rate in rho.
const CHANGE: f64 = 0.05;
const CHANGE_OF_RATE: f64 = 1e-3;

/// The price of an American option with cash dividends; those outside the time to expiry are ignored. NaN as for [`on_grid`].
pub fn price_on_grid(option: &Contract, dividends: &[Dividend], grid: Grid) -> f64 {
    let due = due(option, dividends);
    if !is_regular(option, &due) || is_swept(option) {
        return f64::NAN;
    }
    let intrinsic = intrinsic(option);
    Solution::extrapolated(option, &due, &Layout::new(option), grid)
        .value
        .max(intrinsic)
}

/// Price and Greeks of an American option with cash dividends: delta, gamma, theta and charm from the grid and the equation, the others by central
/// differences. Dividends outside its life are not read.
///
/// [`Reason::Input`] unless spot, strike, time and volatility are positive and no dividend is negative; [`Reason::Extreme`] where the drift is so large, in
/// standard deviations, that the differences would oscillate.
pub fn on_grid(option: &Contract, dividends: &[Dividend], grid: Grid) -> (Greeks, Reason) {
    let due = due(option, dividends);
    if !is_regular(option, &due) {
        return (Greeks::NONE, Reason::Input);
    }
    let Contract {
        spot,
        rate,
        dividend_yield,
        volatility,
        ..
    } = *option;
    let carry = rate - dividend_yield;
    if is_swept(option) {
        return (Greeks::NONE, Reason::Extreme);
    }
    // The same nodes for all, whose errors then cancel in differences.
    let layout = Layout::new(option);
    let solve = |volatility: f64, rate: f64| {
        let option = Contract {
            volatility,
            rate,
            ..*option
        };
        Solution::extrapolated(&option, &due, &layout, grid)
    };
    let base = solve(volatility, rate);
    if base.exercised {
        let greeks = Greeks {
            price: intrinsic(option),
            delta: if option.call { 1.0 } else { -1.0 },
            ..Greeks::default()
        };
        return (greeks, Reason::Ok);
    }
    let half = CHANGE * volatility;
    let (less, more) = (solve(volatility - half, rate), solve(volatility + half, rate));
    let (lower, higher) = (
        solve(volatility, rate - CHANGE_OF_RATE),
        solve(volatility, rate + CHANGE_OF_RATE),
    );
    let Solution { value, x, xx, xxx, .. } = base;
    let variance = 0.5 * volatility * volatility;
    let time = rate * value - carry * x - variance * (xx - x);
    let x_time = rate * x - carry * xx - variance * (xxx - xx);
    let greeks = Greeks {
        price: value.max(intrinsic(option)),
        delta: x / spot,
        gamma: (xx - x) / (spot * spot),
        vega: (more.value - less.value) / (2.0 * half),
        theta: time,
        rho: (higher.value - lower.value) / (2.0 * CHANGE_OF_RATE),
        vanna: (more.x - less.x) / (2.0 * half * spot),
        volga: (more.value - 2.0 * value + less.value) / (half * half),
        charm: x_time / spot,
    };
    (greeks, Reason::Ok)
}

/// The payoff of exercise now.
fn intrinsic(option: &Contract) -> f64 {
    let gain = option.spot - option.strike;
    if option.call { gain } else { -gain }.max(0.0)
}

/// Tests whether the drift is too much for central differences.
fn is_swept(option: &Contract) -> bool {
    let drift = (option.rate - option.dividend_yield).abs();
    drift * sqrt(option.years) > GREATEST_DRIFT * option.volatility
}

fn is_regular(option: &Contract, due: &[Dividend]) -> bool {
    let usable = |x: f64| x > 0.0 && x.is_finite();
    [option.spot, option.strike, option.years, option.volatility]
        .into_iter()
        .all(usable)
        && option.rate.is_finite()
        && option.dividend_yield.is_finite()
        && due.iter().all(|dividend| usable(dividend.amount))
}

/// The dividends before expiry, by date.
fn due(option: &Contract, dividends: &[Dividend]) -> Vec<Dividend> {
    let mut due: Vec<Dividend> = dividends
        .iter()
        .filter(|dividend| dividend.years > 0.0 && dividend.years < option.years && dividend.amount != 0.0)
        .copied()
        .collect();
    due.sort_by(|a, b| a.years.total_cmp(&b.years));
    due
}

/// Value and derivatives by `ln S` at the spot.
#[derive(Clone, Copy)]
struct Solution {
    /// True where exercise now is best.
    exercised: bool,
    value: f64,
    x: f64,
    xx: f64,
    xxx: f64,
}

/// From where to where a grid goes in `ln S`.
struct Layout {
    low: f64,
    /// `ln K`.
    centre: f64,
    high: f64,
}

impl Layout {
    fn new(option: &Contract) -> Self {
        let drift = (option.rate - option.dividend_yield).abs() * option.years;
        let reach = REACH * option.volatility * sqrt(option.years) + drift;
        let (spot, centre) = (log(option.spot), log(option.strike));
        Self {
            low: spot.min(centre) - reach,
            centre,
            high: spot.max(centre) + reach,
        }
    }
}

/// The equation on the grid.
struct Field {
    /// `S` at the nodes.
    spots: Vec<f64>,
    first: f64,
    width: f64,
    /// The payoff of exercise at the nodes.
    payoff: Vec<f64>,
    /// Weights of the neighbours and of the node itself in the equation.
    below: f64,
    above: f64,
    here: f64,
    rate: f64,
    dividend_yield: f64,
    strike: f64,
    call: bool,
    values: Vec<f64>,
    exercised: Vec<bool>,
}

impl Solution {
    /// From a grid and the next coarser one: their errors are as the squares of their widths.
    fn extrapolated(option: &Contract, dividends: &[Dividend], layout: &Layout, grid: Grid) -> Self {
        let coarse = Grid {
            spots: grid.spots / 2,
            steps: grid.steps / 2,
        };
        let (rough, fine) = (
            Self::of(option, dividends, layout, coarse),
            Self::of(option, dividends, layout, grid),
        );
        let limit = |rough: f64, fine: f64| fine + (fine - rough) / 3.0;
        Self {
            exercised: fine.exercised,
            value: limit(rough.value, fine.value),
            x: limit(rough.x, fine.x),
            xx: limit(rough.xx, fine.xx),
            xxx: limit(rough.xxx, fine.xxx),
        }
    }

    fn of(option: &Contract, dividends: &[Dividend], layout: &Layout, grid: Grid) -> Self {
        let mut field = Field::new(option, layout, grid);
        // Times of the kinks, from expiry back to now.
        let mut events: Vec<f64> = dividends.iter().map(|dividend| dividend.years).collect();
        events.push(option.years);
        let lengths: Vec<f64> = events
            .iter()
            .scan(0.0, |from, &to| {
                let length = to - *from;
                *from = to;
                Some(length)
            })
            .collect();
        let roots: f64 = lengths.iter().map(|length| sqrt(*length)).sum();
        for (i, &length) in lengths.iter().enumerate().rev() {
            if i < dividends.len() {
                field.pay(dividends[i].amount);
            }
            let steps = ((grid.steps as f64 * sqrt(length) / roots).ceil() as usize).max(8);
            let left = |k: usize| length * (k as f64 / steps as f64) * (k as f64 / steps as f64);
            for k in 0..steps {
                let to_expiry = option.years - events[i] + left(k + 1);
                field.step(left(k + 1) - left(k), to_expiry);
            }
        }
        field.at(option.spot)
    }
}

impl Field {
    fn new(option: &Contract, layout: &Layout, grid: Grid) -> Self {
        let Contract {
            strike,
            rate,
            dividend_yield,
            volatility,
            call,
            ..
        } = *option;
        let &Layout { low, centre, high } = layout;
        // The strike lies on a node.
        let width = (high - low) / grid.spots as f64;
        let first = centre - ((centre - low) / width).ceil() * width;
        let spots: Vec<f64> = (0..=grid.spots + 1).map(|i| exp(first + width * i as f64)).collect();
        let w = if call { 1.0 } else { -1.0 };
        let payoff: Vec<f64> = spots.iter().map(|s| (w * (s - strike)).max(0.0)).collect();
        // At the kink the mean over the cell: half a width's worth.
        let mut values = payoff.clone();
        let kink = ((centre - first) / width).round() as usize;
        if let Some(value) = values.get_mut(kink) {
            *value = strike * width / 8.0;
        }
        let diffusion = 0.5 * volatility * volatility / (width * width);
        let drift = 0.5 * (rate - dividend_yield - 0.5 * volatility * volatility) / width;
        Self {
            exercised: vec![false; values.len()],
            spots,
            first,
            width,
            payoff,
            below: diffusion - drift,
            above: diffusion + drift,
            here: -2.0 * diffusion - rate,
            rate,
            dividend_yield,
            strike,
            call,
            values,
        }
    }

    /// The values at the ends, where the option is exercised or will be for certain, or is worthless.
    fn ends(&self, to_expiry: f64) -> (f64, f64) {
        let sure = |s: f64| s * exp(-self.dividend_yield * to_expiry) - self.strike * exp(-self.rate * to_expiry);
        let (low, high) = (self.spots[0], self.spots[self.spots.len() - 1]);
        if self.call {
            (0.0, (high - self.strike).max(sure(high)))
        } else {
            ((self.strike - low).max(-sure(low)), 0.0)
        }
    }

    /// A step of TR-BDF2 back in time.
    fn step(&mut self, dt: f64, to_expiry: f64) {
        let alpha = 2.0 - sqrt(2.0);
        let n = self.values.len();
        let ends = self.ends(to_expiry);
        let half = 0.5 * alpha * dt;
        let mut right = self.values.clone();
        for i in 1..n - 1 {
            let slope = self.below * self.values[i - 1] + self.here * self.values[i] + self.above * self.values[i + 1];
            right[i] = self.values[i] + half * slope;
        }
        let middle = self.solve(half, &right, ends);
        let scale = 1.0 / (alpha * (2.0 - alpha));
        for i in 1..n - 1 {
            right[i] = scale * (middle[i] - (1.0 - alpha) * (1.0 - alpha) * self.values[i]);
        }
        self.values = self.solve((1.0 - alpha) / (2.0 - alpha) * dt, &right, ends);
    }

    /// The least v >= payoff with `v - dt L v >= right`, one of both equal everywhere: policy iteration from the last step's region.
    fn solve(&mut self, dt: f64, right: &[f64], ends: (f64, f64)) -> Vec<f64> {
        let n = right.len();
        let (below, here, above) = (-dt * self.below, 1.0 - dt * self.here, -dt * self.above);
        let mut values = vec![0.0; n];
        let mut upper = vec![0.0; n];
        for _ in 0..50 {
            values[0] = ends.0;
            upper[0] = 0.0;
            for i in 1..n - 1 {
                if self.exercised[i] {
                    values[i] = self.payoff[i];
                    upper[i] = 0.0;
                } else {
                    let pivot = 1.0 / (here - below * upper[i - 1]);
                    values[i] = (right[i] - below * values[i - 1]) * pivot;
                    upper[i] = above * pivot;
                }
            }
            values[n - 1] = ends.1;
            for i in (1..n - 1).rev() {
                values[i] -= upper[i] * values[i + 1];
            }
            let mut changed = false;
            for i in 1..n - 1 {
                let exercised = if self.exercised[i] {
                    let residual = below * values[i - 1] + here * values[i] + above * values[i + 1] - right[i];
                    residual >= 0.0
                } else {
                    values[i] < self.payoff[i]
                };
                changed |= exercised != self.exercised[i];
                self.exercised[i] = exercised;
            }
            if !changed {
                break;
            }
        }
        values
    }

    /// The value before a dividend from that after it.
    fn pay(&mut self, amount: f64) {
        let after = self.values.clone();
        let at_zero = if self.call { 0.0 } else { self.strike };
        for i in 0..after.len() {
            let fallen = self.spots[i] - amount;
            let value = if fallen <= self.spots[0] {
                let share = (fallen / self.spots[0]).max(0.0);
                at_zero + (after[0] - at_zero) * share
            } else {
                cubic(&after, (log(fallen) - self.first) / self.width)
            };
            self.values[i] = value.max(self.payoff[i]);
        }
        self.exercised.fill(false);
    }

    /// Value and derivatives at a spot: the nodes' central differences, each interpolated.
    fn at(&self, spot: f64) -> Solution {
        let place = (log(spot) - self.first) / self.width;
        let v = &self.values;
        let from = (place.floor() as usize).clamp(4, v.len() - 6) - 1;
        let h = self.width;
        let local = |f: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = (from..from + 4).map(f).collect();
            cubic(&values, place - from as f64)
        };
        let below = (place.floor().max(0.0) as usize).min(v.len() - 2);
        Solution {
            exercised: self.exercised[below] && self.exercised[below + 1],
            value: local(&|i| v[i]),
            x: local(&|i| (v[i + 1] - v[i - 1]) / (2.0 * h)),
            xx: local(&|i| (v[i + 1] - 2.0 * v[i] + v[i - 1]) / (h * h)),
            xxx: local(&|i| (v[i + 2] - 2.0 * v[i + 1] + 2.0 * v[i - 1] - v[i - 2]) / (2.0 * h * h * h)),
        }
    }
}

/// The cubic through the four values around a position counted in nodes.
fn cubic(values: &[f64], place: f64) -> f64 {
    let i = (place.floor() as usize).clamp(1, values.len() - 3) - 1;
    let t = place - i as f64;
    let (a, b, c, d) = (t, t - 1.0, t - 2.0, t - 3.0);
    let v = &values[i..i + 4];
    -b * c * d / 6.0 * v[0] + a * c * d / 2.0 * v[1] - a * b * d / 2.0 * v[2] + a * b * c / 6.0 * v[3]
}
