//! Prices options that are only exercised just before a dividend and never in between (calls without a yield
//! at a rate of at least 0) by a chain of normal integrals.
//!
//! The value just before a dividend is represented by piecewise Chebyshev polynomials in `ln S`. The pieces
//! are divided where exercise begins, at the spot that the dividend takes to 0, and in halves until they are
//! exact to 1e-8 of strike and spot.

use super::Dividend;
use super::way::Way;
use crate::numerics::american::quadrature::gauss_legendre;
use crate::numerics::formula::Contract;
use libm::{cos, exp, log, sqrt};
use std::f64::consts::PI;
use std::sync::LazyLock;

/// The number of coefficients of a panel.
const DEGREE: usize = 12;
/// The tolerance for the last coefficients of a panel, relative to strike and spot.
const TOLERANCE: f64 = 1e-8;
/// The maximum number of times that a panel is halved.
const HALVINGS: usize = 12;
/// The reach of an integral, in standard deviations.
const REACH: f64 = 8.0;
/// The longest part of an integral for one quadrature, in standard deviations.
const PIECE: f64 = 4.0;
/// The number of points of a quadrature.
const POINTS: usize = 16;
static LEGENDRE: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| gauss_legendre(POINTS));
/// `cos k (i + 1/2) pi / DEGREE`, by i and k.
static COSINES: LazyLock<Vec<[f64; DEGREE]>> = LazyLock::new(|| {
    let angle = |i: usize, k: usize| k as f64 * (i as f64 + 0.5) * PI / DEGREE as f64;
    (0..DEGREE).map(|i| std::array::from_fn(|k| cos(angle(i, k)))).collect()
});

/// The value and three derivatives by `ln S` at the spot. `due` are the dividends within the option's life,
/// in order.
pub(super) fn value(market: &Contract, due: &[Dividend]) -> [f64; 4] {
    let way = Way::new(market, due);
    let mut later: Option<Table> = None;
    for (i, range) in way.ranges.iter().enumerate().rev() {
        let at_zero = market.at_zero(market.years - way.end(i));
        let (waits, amount): (Box<dyn Fn(f64) -> f64>, f64) = match (later.take(), due.get(i)) {
            (_, None) => (Box::new(|_| 0.0), 0.0),
            (None, Some(dividend)) => (Box::new(move |_| at_zero), dividend.amount),
            (Some(table), Some(dividend)) => {
                let (amount, length) = (dividend.amount, way.length(i + 1));
                let waits = move |x: f64| match exp(x) - amount {
                    left if left > 0.0 => table.integral(market, length, log(left))[0],
                    _ => at_zero,
                };
                (Box::new(waits), amount)
            }
        };
        later = Some(Table::new(market, *range, amount, &waits));
    }
    later.map_or([f64::NAN; 4], |table| {
        table.integral(market, way.length(0), log(market.spot))
    })
}

/// The value at the end of a period, just before a dividend or at expiry, as a function of `ln S`.
struct Table {
    panels: Vec<Panel>,
}

struct Panel {
    from: f64,
    to: f64,
    coefficients: [f64; DEGREE],
}

impl Table {
    fn new(market: &Contract, (low, high): (f64, f64), amount: f64, waits: &dyn Fn(f64) -> f64) -> Self {
        let value = |x: f64| waits(x).max(market.payoff(x));
        let is_exercised = |x: f64| market.payoff(x) > waits(x);
        let mut edges = vec![low, high];
        if amount > 0.0 && (low..high).contains(&log(amount)) {
            edges.push(log(amount));
        }
        let (mut from, mut to) = (low, high);
        if is_exercised(from) != is_exercised(to) {
            let at_low = is_exercised(from);
            for _ in 0..52 {
                let middle = 0.5 * (from + to);
                if is_exercised(middle) == at_low {
                    from = middle;
                } else {
                    to = middle;
                }
            }
            edges.push(from);
        }
        edges.sort_by(f64::total_cmp);
        let mut panels = Vec::new();
        for pair in edges.windows(2).filter(|pair| pair[1] > pair[0]) {
            divide(pair[0], pair[1], &value, market.strike, HALVINGS, &mut panels);
        }
        Self { panels }
    }

    /// The value at `x = ln S` a time of `years` earlier, and its derivatives by `ln S`.
    fn integral(&self, market: &Contract, years: f64, x: f64) -> [f64; 4] {
        let deviation = market.volatility * sqrt(years);
        let mean = x + market.drift() * years;
        let (low, high) = (mean - REACH * deviation, mean + (REACH + deviation) * deviation);
        let mut sum = [0.0; 4];
        let first = self.panels.partition_point(|panel| panel.to <= low);
        let last = self.panels.len() - 1;
        for (i, panel) in self.panels.iter().enumerate().skip(first.min(last)) {
            // The first and the last panel extend beyond their ends.
            let from = if i == 0 { low } else { panel.from.max(low) };
            let to = if i == last { high } else { panel.to.min(high) };
            if from >= high {
                break;
            }
            let pieces = ((to - from) / (PIECE * deviation)).ceil().max(1.0);
            let half = 0.5 * (to - from) / pieces;
            for piece in 0..pieces as usize {
                let middle = from + half * (2.0 * piece as f64 + 1.0);
                let values = panel.at(&std::array::from_fn(|j| middle + half * LEGENDRE[j].0));
                for (value, (share, weight)) in values.iter().zip(LEGENDRE.iter()) {
                    let z = (middle + half * share - mean) / deviation;
                    let value = value * weight * half * exp(-0.5 * z * z);
                    sum[0] += value;
                    sum[1] += value * z;
                    sum[2] += value * (z * z - 1.0);
                    sum[3] += value * (z * z - 3.0) * z;
                }
            }
        }
        let mut scale = exp(-market.rate * years) / (deviation * sqrt(2.0 * PI));
        sum.map(|part| {
            let scaled = part * scale;
            scale /= deviation;
            scaled
        })
    }
}

impl Panel {
    /// Interpolates `f` at Chebyshev nodes.
    fn new(from: f64, to: f64, f: &dyn Fn(f64) -> f64) -> Self {
        let values = COSINES
            .iter()
            .map(|row| f(0.5 * (from + to) + 0.5 * (to - from) * row[1]));
        let mut coefficients = [0.0; DEGREE];
        for (value, row) in values.zip(COSINES.iter()) {
            for (coefficient, cosine) in coefficients.iter_mut().zip(row) {
                *coefficient += value * cosine * 2.0 / DEGREE as f64;
            }
        }
        coefficients[0] *= 0.5;
        Self {
            from,
            to,
            coefficients,
        }
    }

    /// Evaluates the polynomial by Clenshaw's recurrence, constant beyond its ends.
    fn at(&self, x: &[f64; POINTS]) -> [f64; POINTS] {
        let (middle, scale) = (0.5 * (self.from + self.to), 2.0 / (self.to - self.from));
        let z = x.map(|x| ((x - middle) * scale).clamp(-1.0, 1.0));
        let (mut a, mut b) = ([0.0; POINTS], [0.0; POINTS]);
        for c in self.coefficients[1..].iter().rev() {
            for ((a, b), z) in a.iter_mut().zip(&mut b).zip(&z) {
                (*a, *b) = (2.0 * z * *a - *b + c, *a);
            }
        }
        std::array::from_fn(|j| z[j] * a[j] - b[j] + self.coefficients[0])
    }
}

/// Divides a range into panels, halved until their last coefficients are small.
fn divide(from: f64, to: f64, f: &dyn Fn(f64) -> f64, strike: f64, halvings: usize, out: &mut Vec<Panel>) {
    let panel = Panel::new(from, to, f);
    let last = panel.coefficients[DEGREE - 3..]
        .iter()
        .fold(0.0_f64, |most, c| most.max(c.abs()));
    if halvings == 0 || last <= TOLERANCE * (strike + exp(from)) {
        out.push(panel);
    } else {
        let middle = 0.5 * (from + to);
        divide(from, middle, f, strike, halvings - 1, out);
        divide(middle, to, f, strike, halvings - 1, out);
    }
}
