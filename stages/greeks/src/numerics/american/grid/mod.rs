//! American options by finite differences, for cash dividends, two exercise boundaries, or a large drift.
//!
//! With dividends, the model is piecewise lognormal: between ex-dividend dates the spot is lognormal with the
//! option's rate, yield and volatility, and on an ex-dividend date it falls by the amount, or to 0 if it is
//! less than that. This is QuantLib's spot model; M. H. Vellekoop and J. W. Nieuwenhuis (2006) prefer it to
//! the escrowed model, whose volatility has a different meaning for each expiry. The price is exact for this
//! model in the limit of the grid.
//!
//! The heat equation is solved by central differences and the TR-BDF2 scheme, second order in both, with time
//! steps that crowd towards expiry as the cube of their index, because the boundary starts like a square root
//! of time. Kinks and exercise boundaries are located between nodes (`stage`), so the error is a smooth
//! function of the spacing of the nodes, and two grids, one twice as fine as the other, can be extrapolated.
//! [`on_grid`] refines the grids until the limit no longer changes.

mod curve;
mod ex_dates;
mod field;
mod march;
mod market;
mod stage;
mod way;

use super::reason::Reason;
use crate::numerics::formula::{Contract, Greeks};
use libm::sqrt;
use march::march;
pub(super) use stage::illinois;

/// A cash dividend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dividend {
    /// Years from now to the ex-dividend date.
    pub years: f64,
    /// The amount, in currency.
    pub amount: f64,
}

/// The resolution of the finer of two grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The number of intervals of `ln S`, a multiple of 8.
    pub spots: usize,
    /// The number of time steps without dividends; a period between dividends has a share of them
    /// proportional to the square root of its length.
    pub steps: usize,
}

impl Grid {
    /// Prices accurate to 1e-5 for a strike of 100, mostly to 1e-6; [`on_grid`] refines the grid where two
    /// grids disagree.
    pub const STANDARD: Self = Self {
        spots: 800,
        steps: 120,
    };
    /// Twice as many time steps, for options whose two boundaries may meet.
    pub const FINE: Self = Self {
        spots: 800,
        steps: 240,
    };

    /// The grid with half as many intervals and steps.
    pub(super) const fn halved(self) -> Self {
        Self {
            spots: self.spots / 2,
            steps: self.steps / 2,
        }
    }

    const fn doubled(self) -> Self {
        Self {
            spots: self.spots * 2,
            steps: self.steps * 2,
        }
    }
}

/// The difference of two extrapolated prices, relative to the strike, above which a grid is refined, and the
/// maximum number of refinements. The error of the finer grid is several times smaller.
const TOLERANCE: f64 = 2e-9;
const REFINEMENTS: usize = 2;

/// The smallest volatility, relative to the drift over the option's life: prices do not change below it.
const LEAST_VOLATILITY: f64 = 1e-5;
/// The relative change of volatility in the differences for vega, vanna and volga, and that where the price
/// is exact; and the change of the rate in the difference for rho.
const CHANGE: f64 = 0.01;
const CHANGE_OF_EXACT: f64 = 2e-3;
const CHANGE_OF_RATE: f64 = 2.5e-4;

/// The price of an American option with cash dividends; those outside the time to expiry are ignored. NaN if
/// the price does not exist, see [`on_grid`].
pub fn price_on_grid(option: &Contract, dividends: &[Dividend], grid: Grid) -> f64 {
    let due = due(option, dividends);
    if !is_regular(option, &due) {
        return f64::NAN;
    }
    let waits = extrapolated(option, &due, grid).map_or(f64::NEG_INFINITY, |at| at[0]);
    if waits.is_nan() {
        waits
    } else {
        waits.max(intrinsic(option))
    }
}

/// The price and Greeks of an American option with cash dividends. Delta, gamma, theta and charm come from
/// the grid and the Black-Scholes equation, the others from central differences. Dividends outside the
/// option's life are ignored.
///
/// The reason is [`Reason::Input`] unless spot, strike, time and volatility are positive and no dividend is
/// negative, and [`Reason::Extreme`] if numbers exceed the range of floating point.
pub fn on_grid(option: &Contract, dividends: &[Dividend], grid: Grid) -> (Greeks, Reason) {
    let due = due(option, dividends);
    if !is_regular(option, &due) {
        return (Greeks::NONE, Reason::Input);
    }
    let Some([value, x, xx, xxx]) = refined(option, &due, grid) else {
        let greeks = Greeks {
            price: intrinsic(option),
            delta: if option.call { 1.0 } else { -1.0 },
            ..Greeks::default()
        };
        return (greeks, Reason::Ok);
    };
    if value.is_nan() {
        return (Greeks::NONE, Reason::Extreme);
    }
    let [spot, _, _, rate, dividend_yield, volatility] = option.to_array();
    // The differences need less resolution, as the errors of their grids are nearly equal. Near the boundary
    // a change may cross it.
    let exercised = [intrinsic(option), if option.call { spot } else { -spot }, 0.0, 0.0];
    let solve = |volatility: f64, rate: f64| {
        let option = Contract {
            volatility,
            rate,
            ..*option
        };
        extrapolated(&option, &due, grid.halved()).unwrap_or(exercised)
    };
    let exact = option.waits_between_dividends();
    let half = volatility * if exact { CHANGE_OF_EXACT } else { CHANGE };
    let [less, more] = [-half, half].map(|change| solve(volatility + change, rate));
    // Computed on the same grid.
    let same = if exact { value } else { solve(volatility, rate)[0] };
    let [lower, higher] = [-CHANGE_OF_RATE, CHANGE_OF_RATE].map(|change| solve(volatility, rate + change));
    let (carry, variance) = (rate - dividend_yield, 0.5 * volatility * volatility);
    let time = rate * value - carry * x - variance * (xx - x);
    let x_time = rate * x - carry * xx - variance * (xxx - xx);
    let greeks = Greeks {
        price: value.max(intrinsic(option)),
        delta: x / spot,
        gamma: (xx - x) / (spot * spot),
        vega: (more[0] - less[0]) / (2.0 * half),
        theta: time,
        rho: (higher[0] - lower[0]) / (2.0 * CHANGE_OF_RATE),
        vanna: (more[1] - less[1]) / (2.0 * half * spot),
        volga: (more[0] - 2.0 * same + less[0]) / (half * half),
        charm: x_time / spot,
    };
    (greeks, Reason::Ok)
}

/// The option with at least the least volatility.
fn market(option: &Contract) -> Contract {
    let least = LEAST_VOLATILITY * (option.rate - option.dividend_yield).abs() * sqrt(option.years);
    Contract {
        volatility: option.volatility.max(least),
        ..*option
    }
}

/// The value and three derivatives by `ln S`, extrapolated from two grids; `None` if the option is exercised
/// now.
fn extrapolated(option: &Contract, due: &[Dividend], grid: Grid) -> Option<[f64; 4]> {
    let market = market(option);
    if market.waits_between_dividends() {
        return Some(ex_dates::value(&market, due));
    }
    let at = |grid| march(&market, due, grid);
    let fine = at(grid)?;
    Some(limit(at(grid.halved()), fine))
}

/// The value and three derivatives by `ln S`, extrapolated from `grid` and, until the limit no longer
/// changes, from finer grids; `None` if the option is exercised now.
fn refined(option: &Contract, due: &[Dividend], mut grid: Grid) -> Option<[f64; 4]> {
    let market = market(option);
    if market.waits_between_dividends() {
        return Some(ex_dates::value(&market, due));
    }
    let at = |grid| march(&market, due, grid);
    let mut fine = at(grid)?;
    let rough = at(grid.halved());
    let mut found = limit(rough, fine);
    let mut rougher = rough.map(|rough| limit(at(grid.halved().halved()), rough));
    for _ in 0..REFINEMENTS {
        let moves = rougher.is_none_or(|rougher| (found[0] - rougher[0]).abs() > TOLERANCE * option.strike);
        if !moves {
            break;
        }
        grid = grid.doubled();
        let finer = at(grid)?;
        rougher = Some(found);
        found = limit(Some(fine), finer);
        fine = finer;
    }
    Some(found)
}

/// The limit of values whose error falls by a factor of four from the rough to the fine ones. A rougher grid
/// may regard the option as exercised where the two values hardly differ.
fn limit(rough: Option<[f64; 4]>, fine: [f64; 4]) -> [f64; 4] {
    rough.map_or(fine, |rough| {
        std::array::from_fn(|i| fine[i] + (fine[i] - rough[i]) / 3.0)
    })
}

/// The payoff of exercising now.
fn intrinsic(option: &Contract) -> f64 {
    let gain = option.spot - option.strike;
    if option.call { gain } else { -gain }.max(0.0)
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

/// The dividends before expiry, sorted by date, with those on the same date added up.
fn due(option: &Contract, dividends: &[Dividend]) -> Vec<Dividend> {
    let mut due: Vec<Dividend> = dividends
        .iter()
        .filter(|dividend| dividend.years > 0.0 && dividend.years < option.years && dividend.amount != 0.0)
        .copied()
        .collect();
    due.sort_by(|a, b| a.years.total_cmp(&b.years));
    due.dedup_by(|next, first| {
        let same = next.years == first.years;
        if same {
            first.amount += next.amount;
        }
        same
    });
    due
}
