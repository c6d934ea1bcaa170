//! Implied volatilities of a single price, and of columns of prices.

use super::guess::{Borders, Edge, borders, highest, interpolate, invert, lowest};
use super::status::Status;
use super::step::{Target, over_vega, rest_over_vega, step};
use crate::dispatch::{InstructionSet, Kernel};
use crate::special::fused::{fma, log_ratio};
use rayon::prelude::*;

/// The number of prices in a block.
const BLOCK: usize = 64;
/// The number of prices in a task.
const TASK: usize = 1024;

/// Columns of option prices with their contracts, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Prices<'a> {
    /// Price of the option, in currency.
    pub price: &'a [f64],
    /// Price of the forward, in currency.
    pub forward: &'a [f64],
    /// Strike, in currency.
    pub strike: &'a [f64],
    /// The present value of 1 at expiry.
    pub discount: &'a [f64],
    /// Time to maturity in years.
    pub years: &'a [f64],
    /// True for a call, false for a put.
    pub call: &'a [bool],
}

/// The implied volatility of a price, annualised, as a decimal; or NaN and the reason.
pub fn implied_volatility(
    price: f64,
    forward: f64,
    strike: f64,
    discount: f64,
    years: f64,
    call: bool,
) -> (f64, Status) {
    let sign = if call { 1.0 } else { -1.0 };
    let (x, beta, status) = normalise(price, forward, strike, discount, years, sign);
    let (s, bound) = total_deviation(x, beta, STEPS);
    let (volatility, status) = finish(s, beta, bound, years, status);
    (volatility, Status::ALL[status as usize % Status::ALL.len()])
}

/// The number of Householder steps after the guess.
pub(super) const STEPS: usize = 2;

/// The total deviation `sigma sqrt T` of a normalised price `beta`, and the upper bound of the price.
pub(super) fn total_deviation(x: f64, beta: f64, steps: usize) -> (f64, f64) {
    let borders = borders(x);
    let (left, right) = (borders.left, borders.right);
    let (by_left, by_right) = (1.0 / left, 1.0 / right);
    let low = lowest(x, left, by_left, over_vega(x, left, by_left));
    let high = highest(x, borders.bound, right, by_right, rest_over_vega(x, right, by_right));
    let y = interpolate(beta, borders, low, high);
    let (mut s, target) = invert(x, beta, borders, low.b, high.b, y);
    for _ in 0..steps {
        let by_s = 1.0 / s;
        s = step(target, s, by_s, over_vega(x, s, by_s));
    }
    (s, borders.bound)
}

/// The implied volatilities and status codes of columns of prices, in parallel on rayon's current pool.
///
/// # Panics
/// When the columns differ in length.
pub fn implied_volatilities(prices: &Prices<'_>) -> (Vec<f64>, Vec<u8>) {
    let n = prices.price.len();
    let (mut volatility, mut status) = (vec![0.0; n], vec![0; n]);
    implied_volatilities_into(prices, InstructionSet::detect(), &mut volatility, &mut status);
    (volatility, status)
}

/// Writes implied volatilities and status codes into the caller's columns, using the given instruction set.
///
/// # Panics
/// When the columns differ in length.
pub fn implied_volatilities_into(
    prices: &Prices<'_>,
    instructions: InstructionSet,
    volatility: &mut [f64],
    status: &mut [u8],
) {
    let n = prices.price.len();
    let p = prices;
    let numbers = [p.price, p.forward, p.strike, p.discount, p.years, volatility];
    let same = numbers.iter().all(|column| column.len() == n) && [prices.call.len(), status.len()] == [n; 2];
    assert!(same, "columns of prices differ in length");
    volatility
        .par_chunks_mut(TASK)
        .zip(status.par_chunks_mut(TASK))
        .enumerate()
        .for_each(|(i, (volatility, status))| {
            instructions.run(Task {
                prices,
                start: i * TASK,
                volatility,
                status,
            });
        });
}

/// Computes the volatilities of the prices from `start` on, as many as `volatility` has room for.
struct Task<'a> {
    prices: &'a Prices<'a>,
    start: usize,
    volatility: &'a mut [f64],
    status: &'a mut [u8],
}

type Column = [f64; BLOCK];

impl Kernel for Task<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let p = self.prices;
        let n = self.volatility.len();
        let mut inputs = [[1.0; BLOCK]; 6];
        let mut codes = [0_u8; BLOCK];
        let mut found = [0.0; BLOCK];
        let mut work = Workspace::default();
        for from in (0..n).step_by(BLOCK) {
            let length = BLOCK.min(n - from);
            let part = self.start + from..self.start + from + length;
            let sources = [p.price, p.forward, p.strike, p.discount, p.years];
            for (input, source) in inputs.iter_mut().zip(sources) {
                input[..length].copy_from_slice(&source[part.clone()]);
            }
            for (sign, &call) in inputs[5].iter_mut().zip(&p.call[part]) {
                *sign = if call { 1.0 } else { -1.0 };
            }
            block(&inputs, &mut work, &mut found, &mut codes);
            self.volatility[from..from + length].copy_from_slice(&found[..length]);
            self.status[from..from + length].copy_from_slice(&codes[..length]);
        }
    }
}

/// The intermediate values of a block.
struct Workspace {
    x: Column,
    beta: Column,
    status: [u64; BLOCK],
    /// The fields of [`Borders`].
    borders: [Column; 4],
    by_s: Column,
    ratio: Column,
    /// The fields of the lowest zone's [`Edge`], then of the highest's.
    edges: [[Column; 5]; 2],
    s: Column,
    /// The fields of [`Target`].
    target: [Column; 6],
}

impl Default for Workspace {
    fn default() -> Self {
        let column = [0.0; BLOCK];
        Self {
            x: column,
            beta: column,
            status: [0; BLOCK],
            borders: [column; 4],
            by_s: column,
            ratio: column,
            edges: [[column; 5]; 2],
            s: column,
            target: [column; 6],
        }
    }
}

#[inline(always)]
fn put<const N: usize>(columns: &mut [Column; N], i: usize, values: [f64; N]) {
    for (column, value) in columns.iter_mut().zip(values) {
        column[i] = value;
    }
}

#[inline(always)]
fn get<const N: usize>(columns: &[Column; N], i: usize) -> [f64; N] {
    columns.each_ref().map(|column| column[i])
}

/// Inverts a block of prices as [`total_deviation`] does, part by part over the whole block, each part in a
/// loop of its own that the compiler vectorises: a single loop over all parts is so long that the CPU finds
/// no second option to work on while it waits for the first.
#[inline(always)]
fn block(inputs: &[Column; 6], work: &mut Workspace, found: &mut Column, codes: &mut [u8; BLOCK]) {
    let [price, forward, strike, discount, years, sign] = inputs;
    let Workspace {
        x,
        beta,
        status,
        borders: zones,
        by_s,
        ratio,
        edges: [low, high],
        s,
        target,
    } = work;
    for i in 0..BLOCK {
        let lane = normalise(price[i], forward[i], strike[i], discount[i], years[i], sign[i]);
        (x[i], beta[i], status[i]) = lane;
    }
    for i in 0..BLOCK {
        put(zones, i, borders(x[i]).to_array());
    }
    for i in 0..BLOCK {
        by_s[i] = 1.0 / zones[1][i];
        ratio[i] = over_vega(x[i], zones[1][i], by_s[i]);
    }
    for i in 0..BLOCK {
        put(low, i, lowest(x[i], zones[1][i], by_s[i], ratio[i]).to_array());
    }
    for i in 0..BLOCK {
        by_s[i] = 1.0 / zones[3][i];
        ratio[i] = rest_over_vega(x[i], zones[3][i], by_s[i]);
    }
    for i in 0..BLOCK {
        let edge = highest(x[i], zones[0][i], zones[3][i], by_s[i], ratio[i]);
        put(high, i, edge.to_array());
    }
    for i in 0..BLOCK {
        let [low, high] = [get(low, i), get(high, i)].map(Edge::from_array);
        s[i] = interpolate(beta[i], Borders::from_array(get(zones, i)), low, high);
    }
    for i in 0..BLOCK {
        let zones = Borders::from_array(get(zones, i));
        let (guess, aim) = invert(x[i], beta[i], zones, low[0][i], high[0][i], s[i]);
        s[i] = guess;
        put(target, i, aim.to_array());
    }
    for _ in 0..STEPS {
        for i in 0..BLOCK {
            by_s[i] = 1.0 / s[i];
            ratio[i] = over_vega(x[i], s[i], by_s[i]);
        }
        for i in 0..BLOCK {
            s[i] = step(Target::from_array(get(target, i)), s[i], by_s[i], ratio[i]);
        }
    }
    for i in 0..BLOCK {
        (found[i], status[i]) = finish(s[i], beta[i], zones[0][i], years[i], status[i]);
    }
    for i in 0..BLOCK {
        codes[i] = status[i] as u8;
    }
}

/// The code of [`Status::Ok`], as wide as the numbers it is computed with.
const OK: u64 = Status::Ok as u64;
/// The code of [`Status::WithinRounding`], as wide as the numbers it is computed with.
const ROUNDED: u64 = Status::WithinRounding as u64;

/// Returns whether a price equals the discounted intrinsic value apart from its rounding: within half an ulp
/// of `discount (forward - strike)`, with neither the difference nor the product rounded.
#[inline(always)]
fn is_rounded(price: f64, forward: f64, strike: f64, discount: f64, sign: f64) -> bool {
    let inside = forward - strike;
    // The rounding error of the difference (D. E. Knuth, TAOCP 2, 4.2.2).
    let back = inside - forward;
    let rest = (forward - (inside - back)) - (strike + back);
    let residual = fma(-sign * discount, inside, price) - sign * discount * rest;
    let ulp = f64::from_bits(price.to_bits().wrapping_add(1)) - price;
    residual.abs() <= 0.5 * ulp
}

/// The normalised x and beta of a price, and the status if it is already clear that there is no volatility; x
/// and beta are then those of an arbitrary valid option.
#[inline(always)]
fn normalise(price: f64, forward: f64, strike: f64, discount: f64, years: f64, sign: f64) -> (f64, f64, u64) {
    let usable = |value: f64| (value > 0.0) & (value < f64::INFINITY);
    let undiscounted = price / discount;
    let inside = sign * (forward - strike);
    let intrinsic = if inside > 0.0 { inside } else { 0.0 };
    let time_value = undiscounted - intrinsic;
    let upper = if sign > 0.0 { forward } else { strike };
    let mut status = OK;
    let mut note = |holds: bool, reason: Status| {
        status = if holds { reason as u64 } else { status };
    };
    // The last condition that holds decides the status.
    note(
        (intrinsic > 0.0) & is_rounded(price, forward, strike, discount, sign),
        Status::WithinRounding,
    );
    note(time_value == 0.0, Status::ZeroPrice);
    note((time_value == 0.0) & (intrinsic > 0.0), Status::AtIntrinsic);
    note(time_value < 0.0, Status::BelowIntrinsic);
    note(undiscounted >= upper, Status::AtOrAboveUpper);
    note(!(usable(forward) & usable(discount)), Status::NoForward);
    note(!((price.abs() < f64::INFINITY) & usable(strike)), Status::NoQuote);
    note((years <= 0.0) | years.is_nan(), Status::Expired);
    let good = (status == OK) | (status == ROUNDED);
    let (forward, strike) = if good { (forward, strike) } else { (1.0, 1.0) };
    let beta = time_value / (forward * strike).sqrt();
    let tiny = good & (beta < f64::MIN_POSITIVE);
    let status = if tiny { Status::AtIntrinsic as u64 } else { status };
    let x = -log_ratio(forward, strike).abs();
    (x, if good & !tiny { beta } else { 0.5 }, status)
}

/// The volatility and its status from the total deviation `s`.
#[inline(always)]
fn finish(s: f64, beta: f64, bound: f64, years: f64, status: u64) -> (f64, u64) {
    let ok = (status == OK) | (status == ROUNDED);
    let above = ok & (beta >= bound);
    let status = if above { Status::AtOrAboveUpper as u64 } else { status };
    let volatility = if ok & !above { s / years.sqrt() } else { f64::NAN };
    (volatility, status)
}
