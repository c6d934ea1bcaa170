//! Prices and Greeks of American options, single ones and columns, each by the method that it needs.

use super::boundary::FAR_START;
use super::grid::{Grid, on_grid, price_on_grid};
use super::quadrature::Quadrature;
use super::reason::Reason;
use super::scheme::Scheme;
use super::solve::{Solution, Solver, Want};
use crate::numerics::batch::{Columns, GreekColumns};
use crate::numerics::formula::{Contract, Greeks, black_scholes_merton};
use rayon::prelude::*;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::{exp, log, log_ratio};

/// The number of options in a task.
pub(super) const TASK: usize = 256;

/// The Greeks of columns of options; NaN where [`AmericanColumns::reasons`] is not [`Reason::Ok`].
#[derive(Clone, Debug)]
pub struct AmericanColumns {
    /// The Greeks, in the order of the fields of [`Greeks`].
    pub greeks: GreekColumns,
    /// The outcome of each row.
    pub reasons: Vec<Reason>,
}

/// An option, normalised as a put with a strike of 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub log_spot: f64,
    pub rate: f64,
    pub dividend_yield: f64,
    pub volatility: f64,
    pub years: f64,
    /// The unit of prices, the put's strike: the option's strike or, for a call, its spot.
    pub unit: f64,
}

/// The method by which an option is priced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case {
    /// The option has no price.
    None(Reason),
    /// No time or no volatility: the best time of exercise is certain.
    Certain,
    /// The option is never exercised early.
    European,
    /// Finite differences: two boundaries (a put with q < r < 0, a call with r < q < 0), or too large a drift
    /// for the nodes of a single one.
    Grid,
    /// The spectral method: a single boundary.
    Boundary(Put),
}

impl Case {
    pub(super) fn of(option: &Contract) -> Self {
        let [spot, strike, years, rate, dividend_yield, volatility] = option.to_array();
        let call = option.call;
        let usable = |x: f64| x > 0.0 && x.is_finite();
        let known = |x: f64| (0.0..f64::INFINITY).contains(&x);
        if !usable(spot) || !usable(strike) || !known(years) || !known(volatility) {
            return Self::None(Reason::Input);
        }
        if !rate.is_finite() || !dividend_yield.is_finite() {
            return Self::None(Reason::Input);
        }
        if years == 0.0 || volatility == 0.0 {
            return Self::Certain;
        }
        let (r, q) = if call {
            (dividend_yield, rate)
        } else {
            (rate, dividend_yield)
        };
        let (log_spot, unit) = if call {
            (log_ratio(strike, spot), spot)
        } else {
            (log_ratio(spot, strike), strike)
        };
        if r <= 0.0 && q >= r && (r < 0.0 || q >= 0.0) {
            return Self::European;
        }
        if r < 0.0 {
            return Self::Grid;
        }
        if (r - q).abs() * years > GREATEST_DRIFT * volatility * years.sqrt() {
            return Self::Grid;
        }
        Self::Boundary(Put {
            log_spot,
            rate: r,
            dividend_yield: q,
            volatility,
            years,
            unit,
        })
    }
}

impl Put {
    /// The normalised put, in the form that a [`Solver`] takes.
    pub(super) fn normalised(&self) -> [f64; 4] {
        [
            self.log_spot,
            self.rate * self.years,
            self.dividend_yield * self.years,
            self.volatility * self.years.sqrt(),
        ]
    }
}

/// The price and Greeks of an American option, and the reason if there are none.
pub fn american(option: &Contract) -> (Greeks, Reason) {
    let numbers = option.to_array();
    let columns = Columns::new(
        numbers.each_ref().map(std::slice::from_ref),
        std::slice::from_ref(&option.call),
    );
    let out = greeks(&columns, Scheme::STANDARD, InstructionSet::detect());
    let values = std::array::from_fn(|i| out.greeks[i][0]);
    (Greeks::from_array(values), out.reasons[0])
}

/// Prices and Greeks of columns of American options, in parallel on rayon's current pool. The results are bit
/// for bit the same on every instruction set, and independent of neighbouring options.
///
/// # Panics
/// When the columns differ in length.
pub fn greeks(columns: &Columns<'_>, scheme: Scheme, instructions: InstructionSet) -> AmericanColumns {
    let rows = rows(columns, scheme, instructions, Want::All);
    AmericanColumns {
        greeks: std::array::from_fn(|i| rows.iter().map(|(values, _)| values.to_array()[i]).collect()),
        reasons: rows.into_iter().map(|(_, reason)| reason).collect(),
    }
}

/// The prices of columns of American options, at a fifth of the work for all Greeks; NaN where there is none.
///
/// # Panics
/// When the columns differ in length.
pub fn price(columns: &Columns<'_>, scheme: Scheme, instructions: InstructionSet) -> Vec<f64> {
    rows(columns, scheme, instructions, Want::Value)
        .into_iter()
        .map(|(values, _)| values.price)
        .collect()
}

fn rows(
    columns: &Columns<'_>,
    scheme: Scheme,
    instructions: InstructionSet,
    want: Want,
) -> Vec<(Greeks, Reason)> {
    let n = columns.len();
    columns.check();
    let quadrature = Quadrature::of(scheme);
    let mut out = vec![(Greeks::NONE, Reason::Input); n];
    out.par_chunks_mut(TASK).enumerate().for_each(|(i, out)| {
        let options: Vec<Contract> = (0..out.len()).map(|j| columns.option(i * TASK + j)).collect();
        task(&options, &quadrature, instructions, want, out);
    });
    out
}

/// Writes the prices and Greeks of `options` to `out`.
fn task(
    options: &[Contract],
    quadrature: &Quadrature,
    instructions: InstructionSet,
    want: Want,
    out: &mut [(Greeks, Reason)],
) {
    let mut places = Vec::with_capacity(options.len());
    let mut puts = Vec::with_capacity(options.len());
    for (j, option) in options.iter().enumerate() {
        match Case::of(option) {
            Case::None(reason) => out[j] = (Greeks::NONE, reason),
            Case::Certain => out[j] = (certain(option), Reason::Ok),
            Case::Grid => out[j] = by_grid(option, want),
            Case::European => out[j] = (black_scholes_merton(option), Reason::Ok),
            Case::Boundary(put) => {
                places.push((j, put));
                puts.push(put.normalised());
            }
        }
    }
    if puts.is_empty() {
        return;
    }
    for ((j, put), solution) in places.into_iter().zip(solutions(quadrature, instructions, &puts, want)) {
        let option = &options[j];
        let (mut greeks, reason) = if solution.converged {
            finish(&put, option.call, &solution, want)
        } else {
            by_grid(option, want)
        };
        // In the option's own units, rounding may leave the price an ulp below the exercise value.
        let intrinsic = option.sign() * (option.spot - option.strike);
        if greeks.price < intrinsic {
            greeks.price = intrinsic;
        }
        out[j] = (greeks, reason);
    }
}

/// The largest drift, in standard deviations, for the spectral method: beyond it the boundary changes too
/// fast near its start for the nodes.
const GREATEST_DRIFT: f64 = 1.6;

/// The smallest volatility for finite differences, relative to the drift over the option's life: a lower one
/// adds less than 1e-9 of the strike.
const LEAST_VOLATILITY: f64 = 1e-4;

/// Returns whether a put needs a finer quadrature to reach the accuracy of [`Scheme::STANDARD`].
fn is_hard(&[_, rate, dividend_yield, deviation]: &[f64; 4]) -> bool {
    rate > 0.15
        || dividend_yield.abs() > 0.15
        || deviation > 1.5
        || (rate - dividend_yield).abs() > 1.2 * deviation
}

/// The grid for an option without dividends.
pub(super) fn grid_of(option: &Contract) -> Grid {
    if option.rate < 0.0 && option.dividend_yield < 0.0 {
        Grid::FINE
    } else {
        Grid::STANDARD
    }
}

/// The price and Greeks by finite differences.
fn by_grid(option: &Contract, want: Want) -> (Greeks, Reason) {
    let drift = (option.rate - option.dividend_yield).abs() * option.years.sqrt();
    if option.volatility < LEAST_VOLATILITY * drift {
        // Exercised as it would be without volatility, or at expiry.
        let (early, late) = (certain(option), black_scholes_merton(option));
        return (if early.price >= late.price { early } else { late }, Reason::Ok);
    }
    let grid = grid_of(option);
    if want == Want::Value {
        let price = price_on_grid(option, &[], grid);
        let reason = if price.is_nan() { Reason::Extreme } else { Reason::Ok };
        (Greeks { price, ..Greeks::NONE }, reason)
    } else {
        on_grid(option, &[], grid)
    }
}

/// The solutions of puts; those that need it use a finer quadrature.
pub(super) fn solutions(
    quadrature: &Quadrature,
    instructions: InstructionSet,
    puts: &[[f64; 4]],
    want: Want,
) -> Vec<Solution> {
    let mut found = vec![Solution::default(); puts.len()];
    let may_refine = quadrature.nodes < Scheme::FINE.nodes;
    let (hard, easy): (Vec<usize>, Vec<usize>) =
        (0..puts.len()).partition(|&i| may_refine && is_hard(&puts[i]));
    let fine = may_refine.then(|| Quadrature::of(Scheme::FINE));
    for far_start in FAR_START {
        let missing = |list: &[usize]| -> Vec<usize> {
            list.iter().copied().filter(|&i| !found[i].converged).collect()
        };
        let (easy, hard) = (missing(&easy), missing(&hard));
        solve_some(
            &mut Solver::new(quadrature, instructions, far_start),
            puts,
            easy,
            want,
            &mut found,
        );
        if let Some(fine) = &fine {
            solve_some(
                &mut Solver::new(fine, instructions, far_start),
                puts,
                hard,
                want,
                &mut found,
            );
        }
    }
    found
}

/// Solves some of the puts. Similar puts share a vector, so that those which need more steps delay fewer
/// others.
fn solve_some(
    solver: &mut Solver<'_>,
    puts: &[[f64; 4]],
    mut which: Vec<usize>,
    want: Want,
    found: &mut [Solution],
) {
    if which.is_empty() {
        return;
    }
    // The steps of Newton's method depend on how far the boundary starts from the strike, in deviations.
    let likeness = |i: usize| {
        let [_, rate, dividend_yield, deviation] = puts[i];
        let far = if dividend_yield > rate {
            log_ratio(rate, dividend_yield)
        } else {
            0.0
        };
        (far / deviation, rate / (deviation * deviation))
    };
    which.sort_by(|&a, &b| {
        let (a, b) = (likeness(a), likeness(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let sorted: Vec<[f64; 4]> = which.iter().map(|&i| puts[i]).collect();
    let mut solutions = vec![Solution::default(); which.len()];
    solver.solve(&sorted, want, &mut solutions);
    for (i, solution) in which.into_iter().zip(solutions) {
        found[i] = solution;
    }
}

/// Converts the normalised put's values to those of the option.
fn finish(put: &Put, call: bool, solution: &Solution, want: Want) -> (Greeks, Reason) {
    let spot = exp(put.log_spot);
    let intrinsic = 1.0 - spot;
    if put.log_spot <= solution.boundary {
        // Exercised now: the price depends on nothing else.
        let greeks = Greeks {
            price: put.unit * intrinsic,
            delta: if call { 1.0 } else { -1.0 },
            ..Greeks::default()
        };
        return (greeks, Reason::Ok);
    }
    let price = put.unit * solution.values.value.max(intrinsic).max(0.0);
    if want == Want::Value {
        return (Greeks { price, ..Greeks::NONE }, Reason::Ok);
    }
    let Put {
        rate: r,
        dividend_yield: q,
        volatility: sigma,
        years,
        unit,
        ..
    } = *put;
    let vv = solution.vv;
    let [value, x, xx, xxx, v, xv, by_rate, by_yield] = solution.values.to_array();
    let half = 0.5 * sigma * sigma;
    let root = years.sqrt();
    // The derivative by calendar time, from the equation, and the derivative of that by ln S.
    let time = r * value - (r - q) * x - half * (xx - x);
    let x_time = r * x - (r - q) * xx - half * (xxx - xx);
    let greeks = if call {
        // V = S p(ln(K/S)).
        Greeks {
            price,
            delta: value - x,
            gamma: (xx - x) / unit,
            vega: unit * v * root,
            theta: unit * time,
            rho: unit * by_yield * years,
            vanna: (v - xv) * root,
            volga: unit * vv * years,
            charm: time - x_time,
        }
    } else {
        // V = K p(ln(S/K)).
        Greeks {
            price,
            delta: x / spot,
            gamma: (xx - x) / (unit * spot * spot),
            vega: unit * v * root,
            theta: unit * time,
            rho: unit * by_rate * years,
            vanna: xv * root / spot,
            volga: unit * vv * years,
            charm: x_time / spot,
        }
    };
    (greeks, Reason::Ok)
}

/// The price without time or volatility. The spot grows by `r - q`, so the best time to exercise is known:
/// now, at expiry, or where the slope of the gain is 0.
pub(super) fn certain(option: &Contract) -> Greeks {
    let [spot, strike, years, r, q, _] = option.to_array();
    let w = option.sign();
    let gain = |t: f64| w * (spot * exp(-q * t) - strike * exp(-r * t));
    let between = log((q * spot) / (r * strike)) / (q - r);
    let mut best = 0.0;
    for t in [years, between] {
        if t > 0.0 && t <= years && gain(t) > gain(best) {
            best = t;
        }
    }
    let price = gain(best);
    if price <= 0.0 {
        return Greeks::default();
    }
    // Only at expiry does the time left matter; in between, the slope is 0.
    let last = if best == years && best > 0.0 { 1.0 } else { 0.0 };
    let (cash, share) = (strike * exp(-r * best), exp(-q * best));
    Greeks {
        price,
        delta: w * share,
        theta: last * w * (q * spot * share - r * cash),
        rho: w * best * cash,
        charm: last * w * q * share,
        ..Greeks::default()
    }
}
