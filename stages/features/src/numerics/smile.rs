//! The volatility smiles in option quotes of one day: at-the-money implied volatility and skew at each
//! expiry.

use datasets::Date;

/// An option with an implied volatility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The strike, in currency.
    pub strike: f64,
    /// True for a call.
    pub call: bool,
    /// The implied volatility, annualised, as a decimal.
    pub volatility: f64,
    /// The delta, dV/dS; NaN if unknown.
    pub delta: f64,
}

/// The smile at one expiry, summarised in two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smile {
    /// The years to expiry.
    pub years: f64,
    /// The implied volatility at the forward.
    pub at_the_money: f64,
    /// The implied volatility of the put less that of the call at a given absolute delta; NaN if either is
    /// not quoted.
    pub skew: f64,
}

/// A day, or one of several snapshots of a day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Day {
    /// The date of the snapshot, if there are several a day; `None` otherwise.
    pub date: Option<Date>,
    /// The underlying's price; NaN where unknown.
    pub underlying: f64,
    /// The smiles, in order of years to expiry.
    pub smiles: Vec<Smile>,
}

/// Interpolates y linearly at `x` between the two neighbouring points; NaN outside. `points` is sorted by x.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|&(at, _)| at < x);
    match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
        (_, Some(&(at, y))) if at == x => y,
        (Some(&(x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * ((x - x0) / (x1 - x0)),
        _ => f64::NAN,
    }
}

/// The smile at one expiry, from its out-of-the-money options. Volatility is interpolated linearly in log
/// strike between the two strikes around the forward, and linearly in delta between the two deltas around
/// `delta` (such as 0.25); it is not extrapolated.
pub fn smile(points: &[Point], forward: f64, years: f64, delta: f64) -> Smile {
    let mut by_strike = Vec::new();
    let (mut puts, mut calls) = (Vec::new(), Vec::new());
    for point in points {
        if point.call == (point.strike >= forward) {
            by_strike.push((libm::log(point.strike), point.volatility));
            let side = if point.call { &mut calls } else { &mut puts };
            if point.delta.is_finite() {
                side.push((point.delta.abs(), point.volatility));
            }
        }
    }
    for list in [&mut by_strike, &mut puts, &mut calls] {
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Smile {
        years,
        at_the_money: between(&by_strike, libm::log(forward)),
        skew: between(&puts, delta) - between(&calls, delta),
    }
}

impl Day {
    /// The at-the-money implied volatility at a maturity of `years`. Total variance is interpolated linearly
    /// in time between the two neighbouring expiries.
    pub fn at_the_money(&self, years: f64) -> f64 {
        let total = self.at(
            years,
            |smile| smile.at_the_money * smile.at_the_money * smile.years,
            true,
        );
        (total / years).sqrt()
    }

    /// The skew at a maturity of `years`, interpolated linearly in time between the two neighbouring
    /// expiries.
    pub fn skew(&self, years: f64) -> f64 {
        self.at(years, |smile| smile.skew, false)
    }

    /// Interpolates a value at a maturity of `years`. Before the first and after the last expiry the value
    /// (for total variance, the volatility) is constant down to half, or up to twice, their time, and NaN
    /// beyond. Expiries at the same time are averaged.
    fn at(&self, years: f64, value: impl Fn(&Smile) -> f64, total: bool) -> f64 {
        let mut points: Vec<(f64, f64, f64)> = Vec::new();
        for smile in &self.smiles {
            let value = value(smile);
            if value.is_nan() {
                continue;
            }
            match points.last_mut() {
                Some((at, sum, n)) if *at == smile.years => {
                    *sum += value;
                    *n += 1.0;
                }
                _ => points.push((smile.years, value, 1.0)),
            }
        }
        let points: Vec<(f64, f64)> = points.into_iter().map(|(at, sum, n)| (at, sum / n)).collect();
        let held = |&(at, value): &(f64, f64)| {
            let near = years >= 0.5 * at && years <= 2.0 * at;
            let scaled = if total { value * (years / at) } else { value };
            if near { scaled } else { f64::NAN }
        };
        match (points.first(), points.last()) {
            (Some(first), _) if years < first.0 => held(first),
            (_, Some(last)) if years > last.0 => held(last),
            _ => between(&points, years),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_smile_is_found_exactly() {
        let points: Vec<Point> = (0..21)
            .flat_map(|i| {
                let strike = 80.0 + 2.0 * f64::from(i);
                let volatility = 0.2 - 0.1 * libm::log(strike / 100.0);
                let delta = 0.5 - 0.02 * (strike - 100.0);
                [
                    Point {
                        strike,
                        call: true,
                        volatility,
                        delta,
                    },
                    Point {
                        strike,
                        call: false,
                        volatility,
                        delta: delta - 1.0,
                    },
                ]
            })
            .collect();
        let found = smile(&points, 101.0, 0.25, 0.25);
        let line = |strike: f64| 0.2 - 0.1 * libm::log(strike / 100.0);
        assert!((found.at_the_money - line(101.0)).abs() < 1e-12);
        // The put has a delta of -0.25 at 87.5, the call one of 0.25 at 112.5.
        assert!((found.skew - (line(87.5) - line(112.5))).abs() < 1e-4);
        assert!(smile(&points, 200.0, 0.25, 0.25).at_the_money.is_nan());
    }

    #[test]
    fn maturities_are_interpolated_in_total_variance() {
        let smile = |years, at_the_money| Smile {
            years,
            at_the_money,
            skew: years,
        };
        let day = Day {
            date: None,
            underlying: 100.0,
            smiles: vec![smile(0.1, 0.2), smile(0.3, 0.3), smile(0.3, 0.3)],
        };
        assert!((day.at_the_money(0.2) - ((0.004_f64 + 0.027) / 2.0 / 0.2).sqrt()).abs() < 1e-12);
        assert!((day.skew(0.2) - 0.2).abs() < 1e-12);
        assert!((day.at_the_money(0.06) - 0.2).abs() < 1e-12);
        assert!((day.at_the_money(0.5) - 0.3).abs() < 1e-12);
        assert!(day.at_the_money(0.04).is_nan() && day.at_the_money(0.7).is_nan());
        assert!(Day::default().at_the_money(0.1).is_nan());
    }
}
