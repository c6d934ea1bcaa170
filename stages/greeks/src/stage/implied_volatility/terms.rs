//! Price, forward, discount factor and time to maturity of every row of a snapshot.

use super::config::{ForwardSource, ImpliedVolatilityConfig};
use super::conventions::Conventions;
use super::quotes::Quotes;
use crate::numerics::parity::{Carry, Expiry, Limits, carries};
use crate::stage::curves::Curves;
use crate::stage::dividends;
use stages_core::table;
use stages_numerics::special::{exp, log};
use std::ops::Range;

/// The terms of a row's implied volatility, other than its strike.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub price: f64,
    pub forward: f64,
    pub discount: f64,
    pub years: f64,
}

/// The terms of the rows of one snapshot.
pub(super) fn snapshot_terms(
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
    let stated = &quotes.stated;
    let takes_forward = matches!(config.forward, ForwardSource::Auto | ForwardSource::Column);
    // For American contracts with cash dividends parity does not hold, and fitting a yield to it would cost a
    // grid for each.
    let by_rates = |group: &Range<usize>| match config.forward {
        ForwardSource::Parity | ForwardSource::Column => false,
        ForwardSource::Rates => true,
        ForwardSource::Auto => {
            !config.dividends.is_empty()
                && curves.is_some()
                && conventions.styles.is_american(quotes.roots.value(group.start))
        }
    };
    // For each expiry, its time by the day count, and whether its rows need anything from parity.
    let mut counted = Vec::with_capacity(groups.len());
    let mut fits = Vec::with_capacity(groups.len());
    let expiries: Vec<Expiry> = groups
        .iter()
        .map(|group| {
            let first = |values: &[f64]| values[group.clone()].iter().copied().find(|value| !value.is_nan());
            counted.push(config.time.years(
                at,
                quotes.expiries[group.start],
                quotes.roots.value(group.start),
            ));
            let years = first(&stated.years).unwrap_or(counted[counted.len() - 1]);
            let rate = match first(&stated.discount) {
                Some(discount) if years > 0.0 => Some(-log(discount) / years),
                _ => curves
                    .map(|curves| curves.rate(date, years))
                    .filter(|rate| !rate.is_nan()),
            };
            let has_forward = |i: usize| {
                takes_forward && (!stated.forward[i].is_nan() || config.forward == ForwardSource::Column)
            };
            let fit = !by_rates(group)
                && (rate.is_none()
                    && stated.discount[group.clone()].iter().any(|discount| discount.is_nan())
                    || !group.clone().all(has_forward));
            fits.push(fit);
            let pairs = if fit { quotes.pairs(group.clone()) } else { Vec::new() };
            Expiry { years, pairs, rate }
        })
        .collect();
    let mut carry: Vec<Carry> = if fits.contains(&true) {
        let limits = Limits {
            band: config.band,
            strikes: config.strikes,
            least_rate: config.rate_bounds[0],
            greatest_rate: config.rate_bounds[1],
            rate_error: config.rate_error,
        };
        carries(&expiries, spot, &limits)
    } else {
        Vec::new()
    };
    let unknown = Carry {
        forward: f64::NAN,
        discount: f64::NAN,
    };
    carry.resize(groups.len(), unknown);
    let rates_carry = |i: usize, years: f64, rate: f64| {
        let rate = if years > 0.0 { rate } else { f64::NAN };
        let discount = exp(-rate * years);
        // The price of a future is its own forward.
        if conventions.on_futures.contains(quotes.roots.value(i)) {
            return Carry {
                forward: spot,
                discount,
            };
        }
        let carry = rate - quotes.yields[i];
        let cash = dividends::ahead(&config.dividends, date, quotes.expiries[i], years);
        Carry {
            forward: spot * exp(carry * years) - dividends::from_forward(&cash, carry, years),
            discount,
        }
    };
    let mut terms = Vec::with_capacity(rows.len());
    for (g, group) in groups.into_iter().enumerate() {
        let is_fitted = !by_rates(&group);
        // Rows of an expiry usually have the same terms.
        let mut last: Option<([u64; 3], Carry)> = None;
        for i in group {
            let stated_or = |values: &[f64], other: f64| if values[i].is_nan() { other } else { values[i] };
            let years = stated_or(&stated.years, counted[g]);
            let mut own = if is_fitted {
                carry[g]
            } else {
                let key = [years, stated.discount[i], quotes.yields[i]].map(f64::to_bits);
                match last {
                    Some((known, carry)) if known == key => carry,
                    _ => {
                        let rate = match stated.discount[i] {
                            discount if discount > 0.0 => Some(-log(discount) / years),
                            _ => expiries[g].rate,
                        };
                        let carry = rates_carry(i, years, rate.unwrap_or(f64::NAN));
                        last = Some((key, carry));
                        carry
                    }
                }
            };
            if is_fitted && !fits[g] {
                own.discount = exp(-expiries[g].rate.unwrap_or(f64::NAN) * years);
            }
            if takes_forward {
                let other = if config.forward == ForwardSource::Column {
                    f64::NAN
                } else {
                    own.forward
                };
                own.forward = stated_or(&stated.forward, other);
            }
            terms.push(Terms {
                price: quotes.price(i).0,
                forward: own.forward,
                discount: stated_or(&stated.discount, own.discount),
                years,
            });
        }
    }
    terms
}
