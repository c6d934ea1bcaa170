//! Cash dividends stated in a configuration.

use crate::numerics::american::grid::Dividend;
use datasets::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_numerics::special::exp;

/// A cash dividend of the underlying.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CashDividend {
    /// The first day on which the underlying trades without it.
    pub ex_date: Date,
    /// In currency, for one unit of the underlying.
    pub amount: f64,
}

/// Checks the dividends' amounts.
pub(super) fn check(dividends: &[CashDividend]) -> Result<(), ConfigProblem> {
    match dividends
        .iter()
        .find(|dividend| !(dividend.amount > 0.0 && dividend.amount.is_finite()))
    {
        None => Ok(()),
        Some(bad) => Err(ConfigProblem::new(
            "dividends",
            format!("{} on {} is not an amount of cash", bad.amount, bad.ex_date),
        )
        .hint("give the dividend of one share, such as { ex_date: 2019-03-15, amount: 1.23 }")),
    }
}

/// The dividends between `date` and `expiry`, with times in days over 365 from `date`. One with its ex-date
/// on the day of expiry counts as just before expiry.
pub(super) fn ahead(dividends: &[CashDividend], date: Date, expiry: Date, years: f64) -> Vec<Dividend> {
    dividends
        .iter()
        .filter(|dividend| dividend.ex_date > date && dividend.ex_date <= expiry && years > 0.0)
        .map(|dividend| Dividend {
            years: (f64::from(dividend.ex_date.0 - date.0) / 365.0).min(0.999 * years),
            amount: dividend.amount,
        })
        .collect()
}

/// The amount by which the dividends ahead lower the forward at expiry, if money grows at the annual rate
/// `carry`.
pub(super) fn from_forward(ahead: &[Dividend], carry: f64, years: f64) -> f64 {
    ahead
        .iter()
        .map(|dividend| dividend.amount * exp(carry * (years - dividend.years)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_ahead() {
        let paid = |day: i32| CashDividend {
            ex_date: Date(day),
            amount: 1.0,
        };
        let found = ahead(
            &[paid(100), paid(110), paid(120), paid(121)],
            Date(100),
            Date(120),
            20.0 / 365.0,
        );
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].years, 10.0 / 365.0);
        assert!(found[1].years < 20.0 / 365.0);
        assert!((from_forward(&found[..1], 0.0, 1.0) - 1.0).abs() < 1e-15);
        assert!(check(&[paid(1)]).is_ok());
        let bad = CashDividend {
            amount: -1.0,
            ..paid(1)
        };
        assert!(check(&[bad]).is_err());
    }
}
