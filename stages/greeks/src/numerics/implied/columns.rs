//! Implied volatilities of columns of prices, and of one price.

use super::Status;
use super::guess::{Anchors, anchors, guess};
use super::step::{Target, step};
use crate::numerics::dispatch::{Loop, Version};
use crate::numerics::fused::log_ratio;
use rayon::prelude::*;

/// Prices in a block.
const BLOCK: usize = 64;
/// Prices that one task takes.
const TASK: usize = 1024;

/// Columns of prices, all of one length.
#[derive(Clone, Copy, Debug)]
pub struct Prices<'a> {
    /// Price of the option, in currency.
    pub price: &'a [f64],
    /// Price of the forward, in currency.
    pub forward: &'a [f64],
    /// Strike, in currency.
    pub strike: &'a [f64],
    /// The value now of 1 at expiry.
    pub discount: &'a [f64],
    /// Time to expiry in years.
    pub years: &'a [f64],
    /// Whether it is a call.
    pub call: &'a [bool],
}

/// The implied volatility of a price: annual and decimal, or NaN and why.
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
    let anchors = anchors(x);
    let (s, target) = guess(x, beta, anchors);
    let (volatility, status) = finish(step(target, step(target, s)), beta, anchors.bound, years, status);
    (volatility, Status::ALL[status as usize % Status::ALL.len()])
}

/// The implied volatilities of columns of prices, in parallel on rayon's current pool.
///
/// # Panics
/// When the columns differ in length.
pub fn implied_volatilities(prices: &Prices<'_>) -> (Vec<f64>, Vec<u8>) {
    let n = prices.price.len();
    let (mut volatility, mut status) = (vec![0.0; n], vec![0; n]);
    implied_volatilities_into(prices, Version::best(), &mut volatility, &mut status);
    (volatility, status)
}

/// [`implied_volatilities`] into columns of the caller, with a given version of the kernel; one that this processor lacks is replaced by the
/// portable one.
///
/// # Panics
/// When the columns differ in length.
pub fn implied_volatilities_into(prices: &Prices<'_>, version: Version, volatility: &mut [f64], status: &mut [u8]) {
    let n = prices.price.len();
    let lengths = [
        prices.forward.len(),
        prices.strike.len(),
        prices.discount.len(),
        prices.years.len(),
        prices.call.len(),
        volatility.len(),
        status.len(),
    ];
    assert!(
        lengths.iter().all(|&length| length == n),
        "columns of prices differ in length"
    );
    volatility
        .par_chunks_mut(TASK)
        .zip(status.par_chunks_mut(TASK))
        .enumerate()
        .for_each(|(i, (volatility, status))| {
            version.run(Task {
                prices,
                start: i * TASK,
                volatility,
                status,
            });
        });
}

/// The volatilities of the prices from `start` on, as many as `volatility` has room for.
struct Task<'a> {
    prices: &'a Prices<'a>,
    start: usize,
    volatility: &'a mut [f64],
    status: &'a mut [u8],
}

type Column = [f64; BLOCK];

impl Loop for Task<'_> {
    #[inline(always)]
    fn run(self) {
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

/// What a block needs in between.
struct Workspace {
    x: Column,
    beta: Column,
    status: [u64; BLOCK],
    anchors: [Column; 10],
    s: Column,
    target: [Column; 3],
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            x: [0.0; BLOCK],
            beta: [0.0; BLOCK],
            status: [0; BLOCK],
            anchors: [[0.0; BLOCK]; 10],
            s: [0.0; BLOCK],
            target: [[0.0; BLOCK]; 3],
        }
    }
}

/// One stage after the other over the whole block, each in a loop of its own that the compiler turns into vectors.
#[inline(always)]
fn block(inputs: &[Column; 6], work: &mut Workspace, found: &mut Column, codes: &mut [u8; BLOCK]) {
    let [price, forward, strike, discount, years, sign] = inputs;
    let Workspace {
        x,
        beta,
        status,
        anchors: points,
        s,
        target,
    } = work;
    for i in 0..BLOCK {
        let lane = normalise(price[i], forward[i], strike[i], discount[i], years[i], sign[i]);
        (x[i], beta[i]) = (lane.0, lane.1);
        status[i] = lane.2;
    }
    for i in 0..BLOCK {
        let Anchors {
            bound,
            left,
            centre,
            right,
        } = anchors(x[i]);
        let values = [
            bound, left[0], left[1], left[2], centre[0], centre[1], centre[2], right[0], right[1], right[2],
        ];
        for (column, value) in points.iter_mut().zip(values) {
            column[i] = value;
        }
    }
    for i in 0..BLOCK {
        let p = points.each_ref().map(|column| column[i]);
        let anchors = Anchors {
            bound: p[0],
            left: [p[1], p[2], p[3]],
            centre: [p[4], p[5], p[6]],
            right: [p[7], p[8], p[9]],
        };
        let (guess, aim) = guess(x[i], beta[i], anchors);
        s[i] = guess;
        (target[0][i], target[1][i], target[2][i]) = (aim.rest, aim.objective, aim.ln);
    }
    for _ in 0..2 {
        for i in 0..BLOCK {
            let aim = Target {
                x: x[i],
                beta: beta[i],
                rest: target[0][i],
                objective: target[1][i],
                ln: target[2][i],
            };
            s[i] = step(aim, s[i]);
        }
    }
    for i in 0..BLOCK {
        (found[i], status[i]) = finish(s[i], beta[i], points[0][i], years[i], status[i]);
    }
    for i in 0..BLOCK {
        codes[i] = status[i] as u8;
    }
}

/// [`Status::Ok`], as wide as what it is computed with.
const OK: u64 = Status::Ok as u64;

/// x, beta and the reason why there is no volatility, if one shows already; x and beta are then those of some option.
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
    // The last that holds counts.
    note(time_value == 0.0, Status::ZeroPrice);
    note((time_value == 0.0) & (intrinsic > 0.0), Status::AtIntrinsic);
    note(time_value < 0.0, Status::BelowIntrinsic);
    note(undiscounted >= upper, Status::AtOrAboveUpper);
    note(!(usable(forward) & usable(discount)), Status::NoForward);
    note(!((price.abs() < f64::INFINITY) & usable(strike)), Status::NoQuote);
    note(!(years > 0.0), Status::Expired);
    let good = status == OK;
    let (forward, strike) = if good { (forward, strike) } else { (1.0, 1.0) };
    let beta = time_value / (forward * strike).sqrt();
    let tiny = good & (beta < f64::MIN_POSITIVE);
    let status = if tiny { Status::AtIntrinsic as u64 } else { status };
    let x = -log_ratio(forward, strike).abs();
    (x, if good & !tiny { beta } else { 0.5 }, status)
}

/// The volatility and its status.
#[inline(always)]
fn finish(s: f64, beta: f64, bound: f64, years: f64, status: u64) -> (f64, u64) {
    let ok = status == OK;
    let above = ok & (beta >= bound);
    let status = if above { Status::AtOrAboveUpper as u64 } else { status };
    let volatility = if ok & !above { s / years.sqrt() } else { f64::NAN };
    (volatility, status)
}
