//! Forward and discount factor of an expiry from put-call parity, `C - P = D (F - K)`.
//!
//! The discount factor comes from the slope of a robust line through the parity values of strikes near the
//! money, each weighted by the inverse square of its spread. It is only accepted if the implied rate is
//! within bounds and its standard error is small; otherwise the rate of the nearest expiry with an accepted
//! one is used. The forward is the robust weighted mean of `K + (C - P)/D` over the strikes nearest the
//! money.

use stages_numerics::special::{exp, log, log_ratio};
use stages_numerics::statistics::{huber_weights, median};

/// A strike with both a call and a put quoted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The strike.
    pub strike: f64,
    /// The call's price minus the put's, at mid.
    pub difference: f64,
    /// The sum of both bid-ask spreads; 0 if prices are not quotes.
    pub spread: f64,
}

/// The limits of the parity fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Strikes with `|ln(K/K0)|` up to this take part, where K0 is the strike at which call and put prices
    /// are nearest.
    pub band: f64,
    /// The maximum number of strikes for the forward, those nearest the money.
    pub strikes: usize,
    /// The lowest annual rate to accept.
    pub least_rate: f64,
    /// The highest annual rate to accept.
    pub greatest_rate: f64,
    /// The largest standard error of the annual rate to accept.
    pub rate_error: f64,
}

/// An expiry on a date.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// Time to maturity in years.
    pub years: f64,
    /// The strikes with both a call and a put quoted, ascending.
    pub pairs: Vec<Pair>,
    /// The zero rate to the expiry, if another source gives it.
    pub rate: Option<f64>,
}

/// The forward and discount factor of an expiry; NaN where unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carry {
    /// The forward price.
    pub forward: f64,
    /// The present value of 1 at expiry.
    pub discount: f64,
}

/// The forward and discount factor of each expiry of a date. An expiry without pairs has its forward from
/// `spot` (NaN if unknown), and from the carry of the nearest expiry with one.
pub fn carries(expiries: &[Expiry], spot: f64, limits: &Limits) -> Vec<Carry> {
    let fitted: Vec<Option<f64>> = expiries
        .iter()
        .map(|expiry| expiry.rate.or_else(|| fitted_rate(expiry, limits)))
        .collect();
    let rates: Vec<f64> = (0..expiries.len())
        .map(|i| nearest(expiries, &fitted, i).unwrap_or(0.0))
        .collect();
    let forwards: Vec<Option<f64>> = expiries
        .iter()
        .zip(&rates)
        .map(|(expiry, rate)| {
            (expiry.years > 0.0)
                .then(|| forward(expiry, exp(-rate * expiry.years), limits))
                .flatten()
        })
        .collect();
    // The annual carry ln(F/S)/T of the expiries with a forward.
    let carry: Vec<Option<f64>> = expiries
        .iter()
        .zip(&forwards)
        .map(|(expiry, forward)| {
            forward
                .filter(|_| spot > 0.0)
                .map(|f| log_ratio(f, spot) / expiry.years)
        })
        .collect();
    // Over a few days, the noise of a forward dominates the carry: such an expiry is no source for others
    // while a longer one is available.
    let long: Vec<Option<f64>> = expiries
        .iter()
        .zip(&carry)
        .map(|(expiry, carry)| carry.filter(|_| expiry.years >= 7.0 / 365.0))
        .collect();
    (0..expiries.len())
        .map(|i| {
            let years = expiries[i].years;
            if years <= 0.0 {
                return Carry {
                    forward: f64::NAN,
                    discount: f64::NAN,
                };
            }
            let forward = forwards[i]
                .or_else(|| {
                    nearest(expiries, &long, i)
                        .or_else(|| nearest(expiries, &carry, i))
                        .map(|carry| spot * exp(carry * years))
                })
                .unwrap_or(f64::NAN);
            Carry {
                forward,
                discount: exp(-rates[i] * years),
            }
        })
        .collect()
}

/// The value of expiry i or, if it has none, of the expiry nearest in time that has one (the earlier of two
/// equally near).
fn nearest(expiries: &[Expiry], values: &[Option<f64>], i: usize) -> Option<f64> {
    if values[i].is_some() {
        return values[i];
    }
    let distance = |j: usize| (expiries[j].years - expiries[i].years).abs();
    (0..values.len())
        .filter(|&j| values[j].is_some())
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
        .and_then(|j| values[j])
}

/// The strike at which call and put prices are nearest, and the pairs within the band around it.
fn near_the_money(pairs: &[Pair], band: f64) -> Option<(f64, Vec<&Pair>)> {
    let centre = pairs
        .iter()
        .min_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs()))?
        .strike;
    let near = pairs
        .iter()
        .filter(|pair| log_ratio(pair.strike, centre).abs() <= band)
        .collect();
    Some((centre, near))
}

/// The weights of pairs before residuals are known: the inverse squares of their spreads, with spreads of at
/// least a tenth of the median one and at least 1e-6 of the strike.
fn weights(pairs: &[&Pair], centre: f64) -> Vec<f64> {
    let mut spreads: Vec<f64> = pairs.iter().map(|pair| pair.spread).collect();
    let floor = (0.1 * median(&mut spreads).unwrap_or(0.0)).max(1e-6 * centre);
    pairs
        .iter()
        .map(|pair| {
            let spread = pair.spread.max(floor);
            1.0 / (spread * spread)
        })
        .collect()
}

/// The annual rate implied by the slope of parity, if it is within the limits.
fn fitted_rate(expiry: &Expiry, limits: &Limits) -> Option<f64> {
    if expiry.years <= 0.0 {
        return None;
    }
    let (centre, pairs) = near_the_money(&expiry.pairs, limits.band)?;
    if pairs.len() < 5 {
        return None;
    }
    let base = weights(&pairs, centre);
    let mut robust = vec![1.0; pairs.len()];
    let mut fit = (0.0, 0.0);
    let mut error = f64::INFINITY;
    for _ in 0..12 {
        let (mut sw, mut sx, mut sy) = (0.0, 0.0, 0.0);
        for (pair, (b, r)) in pairs.iter().zip(base.iter().zip(&robust)) {
            let w = b * r;
            sw += w;
            sx += w * (pair.strike - centre);
            sy += w * pair.difference;
        }
        let (mx, my) = (sx / sw, sy / sw);
        let (mut sxx, mut sxy) = (0.0, 0.0);
        for (pair, (b, r)) in pairs.iter().zip(base.iter().zip(&robust)) {
            let (w, dx) = (b * r, pair.strike - centre - mx);
            sxx += w * dx * dx;
            sxy += w * dx * (pair.difference - my);
        }
        if sxx <= 0.0 {
            return None;
        }
        let slope = sxy / sxx;
        fit = (my - slope * mx, slope);
        let residuals: Vec<f64> = pairs
            .iter()
            .zip(&base)
            .map(|(pair, b)| (pair.difference - fit.0 - slope * (pair.strike - centre)) * b.sqrt())
            .collect();
        let squares: f64 = residuals.iter().zip(&robust).map(|(r, w)| w * r * r).sum();
        error = (squares / (pairs.len() - 2) as f64 / sxx).sqrt();
        robust = huber_weights(&residuals);
    }
    let discount = -fit.1;
    if discount <= 0.0 {
        return None;
    }
    let rate = -log(discount) / expiry.years;
    let rate_error = error / (discount * expiry.years);
    let believed =
        rate >= limits.least_rate && rate <= limits.greatest_rate && rate_error <= limits.rate_error;
    believed.then_some(rate)
}

/// The robust weighted mean of the forwards implied by the strikes nearest the money.
fn forward(expiry: &Expiry, discount: f64, limits: &Limits) -> Option<f64> {
    let (centre, mut pairs) = near_the_money(&expiry.pairs, limits.band)?;
    pairs.sort_by(|a, b| {
        let distance = |pair: &Pair| (pair.strike - centre).abs();
        distance(a).total_cmp(&distance(b)).then(a.strike.total_cmp(&b.strike))
    });
    pairs.truncate(limits.strikes.max(1));
    let base = weights(&pairs, centre);
    let implied: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.strike + pair.difference / discount)
        .collect();
    let mut mean = median(&mut implied.clone()).unwrap_or(0.0);
    for _ in 0..8 {
        let residuals: Vec<f64> = implied.iter().zip(&base).map(|(f, b)| (f - mean) * b.sqrt()).collect();
        let robust = huber_weights(&residuals);
        let (mut sum, mut total) = (0.0, 0.0);
        for (f, (b, r)) in implied.iter().zip(base.iter().zip(&robust)) {
            sum += b * r * (f - centre);
            total += b * r;
        }
        mean = centre + sum / total;
    }
    (mean > 0.0 && mean.is_finite()).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    const LIMITS: Limits = Limits {
        band: 0.25,
        strikes: 12,
        least_rate: -0.05,
        greatest_rate: 0.25,
        rate_error: 0.01,
    };

    fn expiry(years: f64, rate: f64, forward: f64, noise: f64, seed: u64) -> Expiry {
        let mut random = Random::new(&[seed]);
        let pairs = (0..41)
            .map(|i| {
                let strike = 80.0 + f64::from(i);
                let spread = 0.05 + 0.01 * (strike - 100.0).abs();
                Pair {
                    strike,
                    difference: libm::exp(-rate * years) * (forward - strike)
                        + noise * spread * random.normal(),
                    spread,
                }
            })
            .collect();
        Expiry {
            years,
            pairs,
            rate: None,
        }
    }

    #[test]
    fn recovers_forward_and_discount() {
        let carry = carries(&[expiry(0.5, 0.04, 101.5, 0.0, 1)], 100.0, &LIMITS)[0];
        assert!((carry.forward - 101.5).abs() < 1e-9);
        assert!((carry.discount - libm::exp(-0.02)).abs() < 1e-9);
    }

    #[test]
    fn withstands_bad_quotes() {
        let mut bad = expiry(1.0, 0.03, 102.0, 0.1, 2);
        for i in [3, 18, 20, 30] {
            bad.pairs[i].difference += 5.0;
        }
        let carry = carries(&[bad], 100.0, &LIMITS)[0];
        assert!((carry.forward - 102.0).abs() < 0.05, "{}", carry.forward);
        assert!((log(carry.discount) + 0.03).abs() < 0.01, "{}", carry.discount);
    }

    #[test]
    fn a_short_or_empty_expiry_borrows_from_the_nearest() {
        let short = Expiry {
            rate: None,
            ..expiry(1.0 / 365.0, 0.03, 100.1, 0.3, 3)
        };
        let long = expiry(1.0, 0.03, 102.0, 0.0, 4);
        let empty = Expiry {
            years: 0.5,
            pairs: Vec::new(),
            rate: None,
        };
        let found = carries(&[short, empty, long], 100.0, &LIMITS);
        assert!((found[0].discount - libm::exp(-0.03 / 365.0)).abs() < 1e-9);
        assert!((found[1].forward - 100.0 * libm::exp(0.5 * libm::log(1.02))).abs() < 1e-6);
        let unknown = carries(
            &[Expiry {
                years: 0.5,
                pairs: Vec::new(),
                rate: None,
            }],
            100.0,
            &LIMITS,
        );
        assert!(unknown[0].forward.is_nan());
        assert_eq!(unknown[0].discount, 1.0);
    }
}
