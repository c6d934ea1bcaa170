//! The surface of implied volatility of one underlying on one day: a smile for each expiry, together free of arbitrage.
//!
//! A smile is an SVI in the form of J. Gatheral and A. Jacquier, "Arbitrage-free SVI volatility surfaces", Quantitative Finance 14 (2014): total
//! variance `w = sigma^2 T` by `k = ln(K/F)` is
//!
//! `w(k) = (theta + rho psi k + sqrt((psi k + theta rho)^2 + theta^2 (1 - rho^2))) / 2`,
//!
//! three of the five parameters of a raw SVI: theta is the total variance at the money, `rho psi` its slope there, and `psi (1 + rho) / 2` and
//! `psi (1 - rho) / 2` the slopes of the wings. The two dropped parameters (a minimum and a curvature of their own) are the cost of
//! conditions that are exact and can be kept while fitting:
//!
//! - no butterfly arbitrage: `psi (1 + |rho|) <= 4` and `psi^2 (1 + |rho|) <= 4 theta` (their theorem 4.2);
//! - no calendar arbitrage between an expiry and a later one: theta does not fall, nor do `psi (1 + rho)` and `psi (1 - rho)`, and `psi / theta`
//!   does not rise (S. Hendriks and C. Martini, "The extended SSVI volatility surface", Journal of Computational Finance 22 (2019)).
//!
//! Between expiries theta, psi and `rho psi` are linear in time, which keeps all of these but the second, and that nearly.

mod fit;
mod slice;

pub use fit::{Quote, fit};
pub use slice::Slice;

/// A smile and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expiry {
    /// Time to maturity in years.
    pub years: f64,
    /// Its smile.
    pub slice: Slice,
    /// The number of quotes it was fitted to.
    pub quotes: usize,
    /// Root of the mean square of quoted less fitted volatility.
    pub residual: f64,
}

/// The smiles of one day, by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    expiries: Vec<Expiry>,
}

impl Surface {
    /// Fits one expiry after the other, each so that nothing can be earned against the one before. `expiries` (years and quotes) are sorted by
    /// time; those with fewer than `least` quotes are left out, as are all but the first at one time.
    pub fn fit(expiries: &[(f64, Vec<Quote>)], least: usize) -> Self {
        let mut fitted: Vec<Expiry> = Vec::new();
        for (years, quotes) in expiries {
            let before = fitted.last();
            let later = before.is_none_or(|before| *years > before.years);
            if quotes.len() < least.max(3) || *years <= 0.0 || !later {
                continue;
            }
            let slice = fit(quotes, *years, before.map(|before| &before.slice));
            let squares: f64 = quotes
                .iter()
                .map(|quote| {
                    let error = quote.volatility - slice.volatility(quote.log_moneyness, *years);
                    error * error
                })
                .sum();
            fitted.push(Expiry {
                years: *years,
                slice,
                quotes: quotes.len(),
                residual: (squares / quotes.len() as f64).sqrt(),
            });
        }
        Self { expiries: fitted }
    }

    /// From fitted expiries, sorted by time.
    pub fn of(expiries: Vec<Expiry>) -> Self {
        Self { expiries }
    }

    /// The fitted expiries, by time.
    pub fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// The smile for a time: between two expiries linear in its parameters; before the first with its volatilities; after the last with its
    /// volatility at the money and its wings' slopes. None without expiries, and none for less than half the first time or more than twice the
    /// last.
    pub fn at(&self, years: f64) -> Option<Slice> {
        let after = self.expiries.partition_point(|expiry| expiry.years < years);
        let before = after.checked_sub(1).and_then(|i| self.expiries.get(i));
        match (before, self.expiries.get(after)) {
            (_, Some(expiry)) if expiry.years == years => Some(expiry.slice),
            (Some(a), Some(b)) => Some(a.slice.between(&b.slice, (years - a.years) / (b.years - a.years))),
            (None, Some(first)) if years >= 0.5 * first.years => Some(first.slice.sooner(years / first.years)),
            (Some(last), None) if years <= 2.0 * last.years => Some(last.slice.later(years / last.years)),
            _ => None,
        }
    }

    /// Root of the mean square of quoted less fitted volatility, over all quotes; NaN without any.
    pub fn residual(&self) -> f64 {
        let (mut squares, mut quotes) = (0.0, 0.0);
        for expiry in &self.expiries {
            squares += expiry.residual * expiry.residual * expiry.quotes as f64;
            quotes += expiry.quotes as f64;
        }
        (squares / quotes).sqrt()
    }
}

#[cfg(test)]
mod tests;
