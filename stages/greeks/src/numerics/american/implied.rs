//! Implied volatility of American options: Newton's method within a bracket, using the vega of the spectral
//! method.

use super::grid::{Dividend, Grid, illinois, price_on_grid};
use super::price::{Case, Put, grid_of, solutions};
use super::quadrature::Quadrature;
use super::reason::Reason;
use super::scheme::Scheme;
use super::solve::{Solution, Want};
use crate::numerics::formula::Contract;
use crate::numerics::implied::{Status, implied_volatility as european_volatility};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::special::exp;

/// The difference of prices, relative to the larger of spot and strike, below which it is rounding error of
/// the spectral method.
const RESOLUTION: f64 = 1e-9;
/// The difference of prices, relative to the larger of spot and strike, below which it is rounding error of
/// the grid.
const GRID_RESOLUTION: f64 = 1e-7;
/// The lowest and highest volatility considered on a grid.
const LEAST_ON_GRID: f64 = 1e-4;
const GREATEST_ON_GRID: f64 = 5.0;
/// The lowest and highest volatility considered.
const BOUNDS: (f64, f64) = (1e-4, 20.0);
/// The relative Newton step after which the next would be rounding error.
const NEGLIGIBLE: f64 = 1e-7;
/// The maximum number of steps of Newton's method or bisection.
const STEPS: usize = 60;

/// The implied volatility of an American option's price, or why there is none. `option.volatility` is
/// ignored.
///
/// [`Status::BelowIntrinsic`] where the price is below the value of immediate exercise, or below the limit
/// without volatility; [`Status::AtIntrinsic`] where it is the value of immediate exercise, to a billionth of
/// the strike: every volatility small enough gives that price; [`Status::ZeroPrice`] at 0;
/// [`Status::AtOrAboveUpper`] at or above the upper bound of the price; [`Status::Expired`] without time;
/// [`Status::NoQuote`] without a price; [`Status::NoForward`] where the model has no price (see [`Reason`]).
pub fn implied_volatility(price: f64, option: &Contract) -> (f64, Status) {
    implied_volatilities(&[price], std::slice::from_ref(option), InstructionSet::detect())[0]
}

/// The implied volatilities of prices and their options, solved in vectors; see [`implied_volatility`].
///
/// # Panics
/// When the slices differ in length.
pub fn implied_volatilities(
    prices: &[f64],
    options: &[Contract],
    instructions: InstructionSet,
) -> Vec<(f64, Status)> {
    assert_eq!(prices.len(), options.len(), "prices and options differ in length");
    let mut out = vec![(f64::NAN, Status::NoForward); prices.len()];
    let on_grid = |i: usize| implied_on_grid(prices[i], &options[i], &[], grid_of(&options[i]));
    let mut searches = Vec::new();
    for (i, (&price, option)) in prices.iter().zip(options).enumerate() {
        match start(price, option) {
            Begin::Done(volatility, status) => out[i] = (volatility, status),
            Begin::Grid => out[i] = on_grid(i),
            Begin::Search(search) => searches.push((i, search)),
        }
    }
    let quadrature = Quadrature::of(Scheme::STANDARD);
    for _ in 0..STEPS {
        if searches.is_empty() {
            break;
        }
        let puts: Vec<[f64; 4]> = searches.iter().map(|(_, search)| search.put.normalised()).collect();
        let found = solutions(&quadrature, instructions, &puts, Want::First);
        let mut left = Vec::with_capacity(searches.len());
        for ((i, mut search), solution) in searches.into_iter().zip(found) {
            match search.advance(&solution) {
                Some((_, Status::NoForward)) => out[i] = on_grid(i),
                Some(end) => out[i] = end,
                None => left.push((i, search)),
            }
        }
        searches = left;
    }
    for (i, search) in searches {
        out[i] = search.give_up();
    }
    out
}

/// The implied volatility of an American option with cash dividends, to 1e-8: bracketed secant steps on a
/// grid half as fine, then Newton steps on the grid itself, with the slope from the coarser one.
pub fn implied_on_grid(price: f64, option: &Contract, dividends: &[Dividend], grid: Grid) -> (f64, Status) {
    let none = |status| (f64::NAN, status);
    if option.years.is_nan() || option.years <= 0.0 {
        return none(Status::Expired);
    }
    if !price.is_finite() || (option.strike.is_nan() || option.strike <= 0.0) {
        return none(Status::NoQuote);
    }
    let excess = |volatility: f64, grid: Grid| {
        price_on_grid(&Contract { volatility, ..*option }, dividends, grid) - price
    };
    let rough = |volatility: f64| excess(volatility, grid.halved());
    let tolerance = GRID_RESOLUTION * option.spot.max(option.strike);
    let gain = option.spot - option.strike;
    if price < if option.call { gain } else { -gain } - tolerance {
        return none(Status::BelowIntrinsic);
    }
    let (mut low, mut high) = (guess_with_cash(price, option, dividends), f64::NAN);
    let (mut at_low, mut at_high) = (rough(low), f64::NAN);
    let mut factor = 1.1;
    while at_low >= 0.0 && low > LEAST_ON_GRID {
        (high, at_high) = (low, at_low);
        low = (low / factor).max(LEAST_ON_GRID);
        at_low = rough(low);
        factor = 2.0;
    }
    if low <= LEAST_ON_GRID && at_low >= -tolerance {
        return none(if at_low > tolerance {
            Status::BelowIntrinsic
        } else if price.abs() <= tolerance {
            Status::ZeroPrice
        } else {
            Status::AtIntrinsic
        });
    }
    if high.is_nan() {
        (high, at_high) = (low, at_low);
    }
    while at_high < 0.0 && high < GREATEST_ON_GRID {
        (low, at_low) = (high, at_high);
        high = (high * factor).min(GREATEST_ON_GRID);
        at_high = rough(high);
        factor = 2.0;
    }
    if at_low.is_nan() || at_high.is_nan() {
        return none(Status::NoForward);
    }
    if at_high < 0.0 {
        return none(Status::AtOrAboveUpper);
    }
    let is_enough = |width: f64, excess: f64| width <= 1e-9 || excess.abs() < tolerance;
    let mut next = illinois((low, at_low), (high, at_high), STEPS, rough, is_enough);
    let change = 1e-3 * next;
    let slope = (rough(next + change) - rough(next - change)) / (2.0 * change);
    for _ in 0..3 {
        let value = excess(next, grid);
        if slope <= 0.0 || value.abs() <= 1e-2 * tolerance {
            break;
        }
        next -= (value / slope).clamp(-0.1 * next, 0.1 * next);
    }
    (next, Status::Ok)
}

/// The European implied volatility with the dividends subtracted from the spot; 0.3 if there is none.
fn guess_with_cash(price: f64, option: &Contract, dividends: &[Dividend]) -> f64 {
    let paid: f64 = dividends
        .iter()
        .filter(|dividend| dividend.years > 0.0 && dividend.years < option.years)
        .map(|dividend| dividend.amount * exp(-option.rate * dividend.years))
        .sum();
    let forward = (option.spot - paid) * exp((option.rate - option.dividend_yield) * option.years);
    let discount = exp(-option.rate * option.years);
    let (volatility, status) =
        european_volatility(price, forward, option.strike, discount, option.years, option.call);
    if status == Status::Ok {
        volatility.clamp(1e-3, 2.0)
    } else {
        0.3
    }
}

enum Begin {
    Grid,
    Done(f64, Status),
    Search(Search),
}

/// A search in progress, for the normalised put of an option.
struct Search {
    put: Put,
    /// The target price, in units of the put's strike.
    target: f64,
    low: f64,
    high: f64,
    /// True if the last solution gave a price.
    priced: bool,
    /// True if the last price was that of immediate exercise.
    exercised: bool,
}

fn start(price: f64, option: &Contract) -> Begin {
    let none = |status| Begin::Done(f64::NAN, status);
    if option.years.is_nan() || option.years <= 0.0 {
        return none(Status::Expired);
    }
    if !price.is_finite() {
        return none(Status::NoQuote);
    }
    let probe = |volatility| Contract { volatility, ..*option };
    let put = match Case::of(&probe(0.2)) {
        Case::European => {
            let [spot, strike, years, rate, dividend_yield, _] = option.to_array();
            let forward = spot * exp((rate - dividend_yield) * years);
            let (volatility, status) =
                european_volatility(price, forward, strike, exp(-rate * years), years, option.call);
            return Begin::Done(volatility, status);
        }
        Case::Boundary(put) => put,
        Case::Grid => return Begin::Grid,
        Case::None(Reason::Input) if option.strike.is_nan() || option.strike <= 0.0 => {
            return none(Status::NoQuote);
        }
        Case::None(_) | Case::Certain => return none(Status::NoForward),
    };
    let scale = option.spot.max(option.strike);
    let intrinsic = (option.sign() * (option.spot - option.strike)).max(0.0);
    let floor = match Case::of(&probe(0.0)) {
        Case::Certain => super::price::certain(&probe(0.0)).price,
        _ => intrinsic,
    };
    let tolerance = RESOLUTION * scale;
    if price <= 0.0 {
        return none(if price == 0.0 && floor <= tolerance {
            Status::ZeroPrice
        } else {
            Status::BelowIntrinsic
        });
    }
    if price < floor.max(intrinsic) - tolerance {
        return none(Status::BelowIntrinsic);
    }
    if price <= floor.max(intrinsic) + tolerance && floor.max(intrinsic) > 0.0 {
        return none(Status::AtIntrinsic);
    }
    // If r >= 0, the put's strike can be had at once, however far the spot falls.
    if price >= put.unit {
        return none(Status::AtOrAboveUpper);
    }
    // A European price is a lower bound, so its volatility is an upper bound of the one sought, and usually
    // close to it.
    let (forward, discount) = (
        exp(put.log_spot + (put.rate - put.dividend_yield) * put.years),
        exp(-put.rate * put.years),
    );
    let (guess, _) = european_volatility(price / put.unit, forward, 1.0, discount, put.years, false);
    let high = if guess.is_finite() {
        guess * (1.0 + 1e-6)
    } else {
        BOUNDS.1
    };
    let high = high.clamp(BOUNDS.0, BOUNDS.1);
    Begin::Search(Search {
        put: Put {
            volatility: if guess.is_finite() { high } else { 0.5 },
            ..put
        },
        target: price / put.unit,
        low: 0.0,
        high,
        priced: false,
        exercised: false,
    })
}

impl Search {
    /// Takes one step. Returns the result once the search is over.
    fn advance(&mut self, solution: &Solution) -> Option<(f64, Status)> {
        let at = self.put.volatility;
        let exercised = self.put.log_spot <= solution.boundary;
        let usable = solution.converged && !exercised;
        (self.priced, self.exercised) = (usable, solution.converged && exercised);
        let (excess, vega) = if usable {
            (
                solution.values.value - self.target,
                solution.values.v * self.put.years.sqrt(),
            )
        } else {
            // Exercised at once, or below the resolution of the method: the volatility is too low.
            (f64::NEG_INFINITY, 0.0)
        };
        if excess > 0.0 {
            self.high = self.high.min(at);
        } else {
            self.low = self.low.max(at);
        }
        let newton = at - excess / vega;
        let inside = newton > self.low && newton < self.high;
        let next = if inside && vega > 0.0 {
            newton
        } else {
            0.5 * (self.low + self.high)
        };
        if self.high >= BOUNDS.1 && next > 0.999 * BOUNDS.1 {
            return Some((f64::NAN, Status::AtOrAboveUpper));
        }
        if inside && vega > 0.0 && (next - at).abs() <= NEGLIGIBLE * at {
            return Some((next, Status::Ok));
        }
        if self.high - self.low <= 1e-12 * self.high || next < BOUNDS.0 {
            return Some(self.give_up());
        }
        self.put.volatility = next;
        None
    }

    /// The result of a search in which Newton's method did not converge.
    fn give_up(&self) -> (f64, Status) {
        if self.priced {
            (self.put.volatility, Status::Ok)
        } else if self.exercised {
            (f64::NAN, Status::AtIntrinsic)
        } else {
            (f64::NAN, Status::NoForward)
        }
    }
}
