//! Prices and Greeks of American options, one by one and by column, by the method that each needs.

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

/// Options that one task takes.
pub(super) const TASK: usize = 256;

/// Greeks of columns of options, NaN where [`AmericanColumns::reasons`] is not [`Reason::Ok`].
#[derive(Clone, Debug)]
pub struct AmericanColumns {
    /// In the order of the fields of [`Greeks`].
    pub greeks: GreekColumns,
    /// The outcome of each row.
    pub reasons: Vec<Reason>,
}

/// An option as a put on a strike of 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub log_spot: f64,
    pub rate: f64,
    pub dividend_yield: f64,
    pub volatility: f64,
    pub years: f64,
    /// The put's strike: the option's, or of a call the spot.
    pub unit: f64,
}

/// The source of an option's price.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case {
    /// Nothing.
    None(Reason),
    /// No time or no volatility: the best of exercising at any time, without uncertainty.
    Certain,
    /// Never exercised early.
    European,
    /// Two boundaries (a put with q < r < 0, a call with r < q < 0), or too much drift for the nodes of one:
    /// finite differences.
    Grid,
    /// One boundary.
    Boundary(Put),
}

impl Case {
    pub fn of(option: &Contract) -> Self {
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
    /// The normalised form that a [`Solver`] takes.
    pub fn normalised(&self) -> [f64; 4] {
        [
            self.log_spot,
            self.rate * self.years,
            self.dividend_yield * self.years,
            self.volatility * self.years.sqrt(),
        ]
    }
}

/// Price and Greeks of one American option, and why it has none.
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

/// Prices and Greeks of columns of American options, in parallel on rayon's current pool. The same bytes on
/// every instruction set and for any neighbours.
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

/// Prices alone, at a fifth of the work; NaN where there is none.
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

/// Fills `out` with the options' prices and Greeks.
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
        // In the option's own units rounding may leave it a last bit below.
        let intrinsic = option.sign() * (option.spot - option.strike);
        if greeks.price < intrinsic {
            greeks.price = intrinsic;
        }
        out[j] = (greeks, reason);
    }
}

/// The greatest drift, in standard deviations, of the spectral method: beyond it the boundary changes too
/// fast after its start for the nodes.
const GREATEST_DRIFT: f64 = 1.6;

/// The least volatility of finite differences, by the drift over the option's life: less adds less than 1e-9
/// of the strike.
const LEAST_VOLATILITY: f64 = 1e-4;

/// Tests whether the accuracy of [`Scheme::STANDARD`] needs a finer quadrature.
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

/// Price and Greeks by finite differences.
fn by_grid(option: &Contract, want: Want) -> (Greeks, Reason) {
    let drift = (option.rate - option.dividend_yield).abs() * option.years.sqrt();
    if option.volatility < LEAST_VOLATILITY * drift {
        // Exercised when it would be without volatility, or at expiry.
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

/// The solutions, those that need it by a finer quadrature.
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

/// Solves some of the puts, similar ones in one vector: those that need more steps then hold up fewer others.
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
    let likeness = |i: usize| (puts[i][2] - puts[i][1]) / puts[i][3];
    which.sort_by(|&a, &b| likeness(a).total_cmp(&likeness(b)).then(a.cmp(&b)));
    let sorted: Vec<[f64; 4]> = which.iter().map(|&i| puts[i]).collect();
    let mut solutions = vec![Solution::default(); which.len()];
    solver.solve(&sorted, want, &mut solutions);
    for (i, solution) in which.into_iter().zip(solutions) {
        found[i] = solution;
    }
}

/// From the normalised put's values to the option's.
fn finish(put: &Put, call: bool, solution: &Solution, want: Want) -> (Greeks, Reason) {
    let spot = exp(put.log_spot);
    let intrinsic = 1.0 - spot;
    if put.log_spot <= solution.boundary {
        // Exercised now: nothing else moves it.
        let greeks = Greeks {
            price: put.unit * intrinsic,
            delta: if call { 1.0 } else { -1.0 },
            ..Greeks::default()
        };
        return (greeks, Reason::Ok);
    }
    let price = put.unit * solution.value.max(intrinsic).max(0.0);
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
    let Solution {
        value,
        x,
        xx,
        xxx,
        v,
        xv,
        vv,
        ..
    } = *solution;
    let half = 0.5 * sigma * sigma;
    let root = years.sqrt();
    // By calendar time, from the equation; and its derivative by ln S.
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
            rho: unit * solution.q * years,
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
            rho: unit * solution.r * years,
            vanna: xv * root / spot,
            volga: unit * vv * years,
            charm: x_time / spot,
        }
    };
    (greeks, Reason::Ok)
}

/// Without time or volatility the spot grows by `r - q` and the best time to exercise is known: now, at
/// expiry, or where the gain's slope is 0.
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
    // At expiry alone does the time left matter; inside, the slope is 0.
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
