//! Interpolates the values of a field between its nodes.

use super::field::Field;
use libm::{exp, log};

/// The values of a field now, as a function of `ln S`.
pub(super) struct Curve<'a> {
    field: &'a Field,
    discount: f64,
    lowest: f64,
    /// Ghost values at the ends of the nodes below and above the exercise region: the values there, continued
    /// smoothly.
    ghosts: [(usize, f64); 2],
}

impl<'a> Curve<'a> {
    pub(super) fn new(field: &'a Field) -> Self {
        let payoff = field.payoff(field.time);
        let ghosts = field.region.map(|region| {
            let [below, above] = [(region.from, region.below), (region.to, region.above)];
            [below, above].map(|(i, excess)| (i, payoff.at(i) + excess))
        });
        Self {
            field,
            discount: exp(-field.market.rate * field.time),
            lowest: field.log_spot(0.0),
            ghosts: ghosts.unwrap_or([(0, 0.0); 2]),
        }
    }

    /// The value at `x = ln S`, by the polynomial through six nodes on the same side of the exercise region.
    pub(super) fn value(&self, x: f64) -> f64 {
        let field = self.field;
        let last = field.values.len() - 1;
        let place = (x - self.lowest) / field.width;
        if place <= 0.0 || place >= last as f64 {
            let (slope, constant) = field.lines[usize::from(place > 0.0)];
            let waits = slope * exp(x - field.market.dividend_yield * field.time) + constant * self.discount;
            return waits.max(field.market.payoff(x));
        }
        let (mut low, mut high, mut ghost) = (0, last, None);
        if let Some(region) = field.region {
            if place >= region.low && place <= region.high {
                return field.market.payoff(x);
            }
            if place < region.low {
                high = region.from;
                ghost = Some(self.ghosts[0]);
            } else {
                low = region.to;
                ghost = Some(self.ghosts[1]);
            }
        }
        let count = 6.min(high - low + 1);
        let start = (place as usize + 1)
            .saturating_sub(count / 2)
            .clamp(low, high + 1 - count);
        // The barycentric formula, whose weights are binomial coefficients.
        let (mut above, mut below) = (0.0, 0.0);
        let mut weight = 1.0;
        for j in 0..count {
            let value = match ghost {
                Some((node, value)) if node == start + j => value,
                _ => field.values[start + j],
            };
            let distance = place - (start + j) as f64;
            if distance == 0.0 {
                return self.discount * value;
            }
            above += weight * value / distance;
            below += weight / distance;
            weight *= -((count - 1 - j) as f64) / (j + 1) as f64;
        }
        self.discount * above / below
    }

    /// The value just before a dividend, given the curve after it; `at_zero` is the value for a spot of 0.
    pub(super) fn before(&self, amount: f64, at_zero: f64, x: f64) -> f64 {
        let after = exp(x) - amount;
        let least = exp(self.lowest);
        if after > least {
            self.value(log(after))
        } else {
            at_zero + (self.value(self.lowest) - at_zero) * (after / least).max(0.0)
        }
    }

    /// The exercise boundaries in `ln S`, and the jumps of the value's second derivative there.
    pub(super) fn jumps(&self) -> impl Iterator<Item = (f64, f64)> {
        let field = self.field;
        let last = field.values.len() - 1;
        let jump = |place: f64, side: f64| {
            let x = field.log_spot(place);
            (x, side * field.market.flow(exp(x)) / field.market.diffusion())
        };
        let found = field.region.map(|region| {
            [
                (region.from > 0).then(|| jump(region.low, -1.0)),
                (region.to < last).then(|| jump(region.high, 1.0)),
            ]
        });
        found.into_iter().flatten().flatten()
    }
}
