//! Price, forward, discount factor and time to maturity of every row of a snapshot.

use super::config::{ForwardSource, ImpliedVolatilityConfig};
use super::conventions::Conventions;
use super::quotes::Quotes;
use crate::numerics::parity::{Carry, Expiry, Limits, carries};
use crate::stage::curves::Curves;
use crate::stage::dividends;
use stages_core::table;
use stages_numerics::special::exp;
use std::ops::Range;

/// The terms of a row's volatility, beside its strike.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub price: f64,
    pub forward: f64,
    pub discount: f64,
    pub years: f64,
}

/// The terms of the rows of a snapshot.
pub(super) fn of_snapshot(
    quotes: &Quotes<'_>,
    rows: Range<usize>,
    config: &ImpliedVolatilityConfig,
    conventions: &Conventions,
    curves: Option<&Curves>,
) -> Vec<Terms> {
    let at = quotes.times[rows.start];
    let date = at.date;
    let spot = quotes.spots[rows.clone()]
        .iter()
        .copied()
        .find(|spot| *spot > 0.0)
        .unwrap_or(f64::NAN);
    let groups = table::runs(rows.clone(), |a, b| {
        quotes.expiries[a] == quotes.expiries[b] && quotes.roots.value(a) == quotes.roots.value(b)
    });
    // American contracts with cash dividends: parity does not hold for them, and a yield fitted to it costs a grid for each.
    let by_rates = |group: &Range<usize>| match config.forward {
        ForwardSource::Parity => false,
        ForwardSource::Rates => true,
        ForwardSource::Auto => {
            !config.dividends.is_empty()
                && curves.is_some()
                && conventions.styles.is_american(quotes.roots.value(group.start))
        }
    };
    let expiries: Vec<Expiry> = groups
        .iter()
        .map(|group| {
            let years = config
                .time
                .years(at, quotes.expiries[group.start], quotes.roots.value(group.start));
            let rate = curves
                .map(|curves| curves.rate(date, years))
                .filter(|rate| !rate.is_nan());
            let pairs = if by_rates(group) {
                Vec::new()
            } else {
                quotes.pairs(group.clone())
            };
            Expiry { years, pairs, rate }
        })
        .collect();
    let of_rates = |expiry: &Expiry, group: &Range<usize>| {
        let rate = expiry.rate.filter(|_| expiry.years > 0.0).unwrap_or(f64::NAN);
        let discount = exp(-rate * expiry.years);
        // The price of a future is its forward.
        if conventions.on_futures.contains(quotes.roots.value(group.start)) {
            return Carry {
                forward: spot,
                discount,
            };
        }
        let carry = rate - config.dividend_yield;
        let cash = dividends::ahead(&config.dividends, date, quotes.expiries[group.start], expiry.years);
        Carry {
            forward: spot * exp(carry * expiry.years) - dividends::from_forward(&cash, carry, expiry.years),
            discount,
        }
    };
    let mut carry: Vec<Carry> = if groups.iter().all(by_rates) {
        Vec::new()
    } else {
        let limits = Limits {
            band: config.band,
            strikes: config.strikes,
            least_rate: config.rate_bounds[0],
            greatest_rate: config.rate_bounds[1],
            rate_error: config.rate_error,
        };
        carries(&expiries, spot, &limits)
    };
    carry.resize(
        groups.len(),
        Carry {
            forward: f64::NAN,
            discount: f64::NAN,
        },
    );
    for ((carry, expiry), group) in carry.iter_mut().zip(&expiries).zip(&groups) {
        if by_rates(group) {
            *carry = of_rates(expiry, group);
        }
    }
    let mut terms = Vec::with_capacity(rows.len());
    for ((group, expiry), carry) in groups.into_iter().zip(&expiries).zip(carry) {
        terms.extend(group.map(|i| Terms {
            price: quotes.price(i).0,
            forward: carry.forward,
            discount: carry.discount,
            years: expiry.years,
        }));
    }
    terms
}
