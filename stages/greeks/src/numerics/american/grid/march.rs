//! Takes a field from expiry back to now, through the periods between dividends, each divided into a few
//! parts with nodes of their own.

use super::curve::Curve;
use super::field::Field;
use super::way::{Part, Way};
use super::{Dividend, Grid};
use crate::numerics::formula::Contract;
use libm::{exp, log, pow, sqrt};

/// The drift, in standard deviations, that needs as many steps as diffusion.
const DRIFT: f64 = 4.0;
/// The largest factor by which drift increases the number of steps.
const MOST_FOR_DRIFT: f64 = 8.0;
/// The smallest share of the steps for a part that is short because of the scale of the spot.
const LATE_SHARE: f64 = 0.25;

/// The value and three derivatives by `ln S` at the spot; `None` if the option is exercised now. The
/// dividends are those within the option's life, in order.
pub(super) fn march(market: &Contract, due: &[Dividend], grid: Grid) -> Option<[f64; 4]> {
    let way = Way::new(market, due);
    let mut field: Option<Field> = None;
    for i in (0..way.ranges.len()).rev() {
        let length = way.length(i);
        let is_last = i == due.len();
        // Time steps crowd towards expiry, and less so elsewhere.
        let power = if is_last { 3.0 } else { 2.0 };
        for (index, part) in way.parts(i).into_iter().enumerate() {
            let Part { from, to, origin, .. } = part;
            let whole = length - origin;
            let base = grid.steps as f64 * sqrt(whole / market.years).max(0.1);
            let range = way.range(i, from, to);
            let later = field.as_ref().map(Curve::new);
            let at_zero = market.at_zero(market.years - way.end(i));
            let value = |x: f64| match (&later, due.get(i)) {
                (None, None) => 0.0,
                (None, Some(_)) => at_zero,
                (Some(later), Some(dividend)) if index == 0 => later.before(dividend.amount, at_zero, x),
                (Some(later), _) => later.value(x),
            };
            let jumps: Vec<(f64, f64)> = match (&later, due.get(i)) {
                (Some(later), Some(dividend)) if index == 0 => {
                    // In terms of the spot before the dividend. Near 0, jumps do not matter to the price.
                    let before = |(x, jump): (f64, f64)| {
                        let stretch = 1.0 + dividend.amount * exp(-x);
                        (x + log(stretch), jump * stretch * stretch)
                    };
                    later
                        .jumps()
                        .filter(|(x, _)| exp(*x) > dividend.amount)
                        .map(before)
                        .collect()
                }
                _ => Vec::new(),
            };
            let mut next = Field::new(market, range, grid.spots, &value, &jumps);
            let [a, b] = [from, to].map(|time| pow((time - origin) / whole, 1.0 / power));
            let left = way.end(i) - from;
            let drift = market.drift().abs() * (to - from) / (market.volatility * sqrt(left));
            let parts = base * (b - a).max(if part.is_late { LATE_SHARE } else { 0.0 });
            let steps = (parts * (1.0 + drift / DRIFT).min(MOST_FOR_DRIFT)).ceil().max(6.0);
            let time = |k: f64| whole * pow(a + (b - a) * k / steps, power);
            for k in 0..steps as usize {
                next.step(time(k as f64 + 1.0) - time(k as f64));
            }
            field = Some(next);
        }
    }
    field?.at_middle()
}
