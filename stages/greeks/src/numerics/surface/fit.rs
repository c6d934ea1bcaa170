//! A smile from quotes.

use super::slice::Slice;

/// A quoted volatility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote {
    /// `ln(K/F)`.
    pub log_moneyness: f64,
    /// Implied volatility, annual, decimal.
    pub volatility: f64,
    /// The weight of its residual: the inverse of the error that the volatility may have, in any unit.
    pub weight: f64,
}

/// A quote as the fit reads it: `sigma sqrt T`, and by how much its error counts.
struct Target {
    k: f64,
    deviation: f64,
    weight: f64,
}

/// The smile nearest to the quotes (weighted least squares of volatilities; errors beyond 1.345 robust deviations count by their size alone: Huber)
/// among those without butterfly arbitrage and without calendar arbitrage after `before`.
pub fn fit(quotes: &[Quote], years: f64, before: Option<&Slice>) -> Slice {
    let targets: Vec<Target> = quotes
        .iter()
        .map(|quote| Target {
            k: quote.log_moneyness,
            deviation: quote.volatility * years.sqrt(),
            weight: quote.weight / years.sqrt(),
        })
        .collect();
    let nearest = |at: &[f64; 3]| Slice::nearest(libm::exp(at[0]), at[1], at[2], before);
    let theta = at_the_money(quotes) * years;
    // The start: a common smile, well within the bounds.
    let wing = (theta.max(1e-8)).sqrt();
    let mut best = [libm::log(theta.max(1e-8)), 0.4 * wing, 1.2 * wing];
    let mut limit = f64::INFINITY;
    let mut errors = vec![0.0; quotes.len()];
    for round in 0..3 {
        let cost = |at: &[f64; 3]| {
            let slice = nearest(at);
            let mut cost = 0.0;
            each_error(&slice, &targets, |error| cost += huber(error, limit));
            // Where projection makes the cost flat, a penalty on the distance to the bounds brings the search back.
            let [theta, right, left] = slice.parameters();
            let outside = (at[0] - libm::log(theta)).abs() + (at[1] - right).abs() + (at[2] - left).abs();
            cost * (1.0 + 1e-6 * outside)
        };
        let spread = if round == 0 { 0.5 } else { 0.1 };
        best = nelder_mead(best, [spread, spread * wing, spread * wing], &cost);
        let slice = nearest(&best);
        let [theta, right, left] = slice.parameters();
        best = [libm::log(theta), right, left];
        errors.clear();
        each_error(&slice, &targets, |error| errors.push(error.abs()));
        errors.sort_by(f64::total_cmp);
        limit = 1.345 * 1.4826 * errors[errors.len() / 2];
        if limit == 0.0 {
            break;
        }
    }
    nearest(&best)
}

/// Fitted less quoted, weighted.
#[inline]
fn each_error(slice: &Slice, targets: &[Target], mut take: impl FnMut(f64)) {
    let (theta, psi, rho) = (slice.theta(), slice.psi(), slice.rho());
    let (slope, shift) = (rho * psi, theta * rho);
    let rest = theta * theta - shift * shift;
    for target in targets {
        let inner = psi * target.k + shift;
        let variance = 0.5 * (theta + slope * target.k + (inner * inner + rest).sqrt());
        take((variance.sqrt() - target.deviation) * target.weight);
    }
}

fn huber(error: f64, limit: f64) -> f64 {
    let size = error.abs();
    if size <= limit {
        error * error
    } else {
        limit * (2.0 * size - limit)
    }
}

/// Variance at the money: that of the quote nearest to it.
fn at_the_money(quotes: &[Quote]) -> f64 {
    quotes
        .iter()
        .min_by(|a, b| a.log_moneyness.abs().total_cmp(&b.log_moneyness.abs()))
        .map_or(0.04, |quote| quote.volatility * quote.volatility)
}

/// The least of a function of three variables, by the simplex of J. A. Nelder and R. Mead, The Computer Journal 7 (1965), from a start and the
/// simplex's size.
fn nelder_mead(start: [f64; 3], size: [f64; 3], cost: &dyn Fn(&[f64; 3]) -> f64) -> [f64; 3] {
    let mut simplex = [(start, cost(&start)); 4];
    for i in 0..3 {
        let mut point = start;
        point[i] += size[i];
        simplex[i + 1] = (point, cost(&point));
    }
    for _ in 0..240 {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, _, second, worst] = simplex;
        if worst.1 - best.1 <= 1e-12 * best.1 {
            break;
        }
        let centre: [f64; 3] = std::array::from_fn(|i| simplex[..3].iter().map(|point| point.0[i]).sum::<f64>() / 3.0);
        let along = |step: f64| {
            let point: [f64; 3] = std::array::from_fn(|i| centre[i] + step * (worst.0[i] - centre[i]));
            (point, cost(&point))
        };
        let reflected = along(-1.0);
        let next = if reflected.1 < best.1 {
            let expanded = along(-2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < second.1 {
            reflected
        } else {
            along(if reflected.1 < worst.1 { -0.5 } else { 0.5 })
        };
        if next.1 < worst.1 {
            simplex[3] = next;
        } else {
            for point in &mut simplex[1..] {
                let moved: [f64; 3] = std::array::from_fn(|i| 0.5 * (point.0[i] + best.0[i]));
                *point = (moved, cost(&moved));
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex[0].0
}
