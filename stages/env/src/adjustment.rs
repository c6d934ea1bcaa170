//! The adjustment of contracts and positions for corporate actions, as the Options Clearing Corporation makes
//! it (OCC By-Laws, article VI, section 11A).
//!
//! An action takes effect at the first snapshot on or after its ex-date, before that snapshot's quotes are
//! looked at:
//!
//! | action | contracts held | strike | units of the underlying |
//! | --- | --- | --- | --- |
//! | split of n for 1, n whole | times n | over n, to a cent | times n |
//! | any other ratio r: 3 for 2, 1 for 8, a stock dividend of 5 % | as many, a unit of which delivers r shares | as it is, for r shares | times r, a fraction in cash |
//! | ordinary cash dividend | as they are | as it is | as they are; its amount for each is paid in cash |
//! | special cash dividend | as they are | less the amount for each share of a unit, to a cent | as with an ordinary one |
//! | change of symbol | as they are | as it is | as they are |
//!
//! The multiplier stays. Strike and multiplier as they are, with r shares a unit, are worth the same as the
//! terms of the clearing house for 3 for 2: a strike of K / 1.5 and 150 shares. Such a contract is no listed
//! one: it has model marks, and is held to its settlement. What a unit delivers is part of what its contract
//! *is*, so that entries are values of a unit, and a step takes an adjusted contract like any other.

use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// The changes of contracts and positions by the corporate actions of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adjustment {
    /// The snapshot.
    pub snapshot: usize,
    /// The number of contracts after the adjustment for one before, by which strikes are divided.
    pub shares: u32,
    /// The number of shares that a unit delivers after the adjustment for one before, by ratios that are not
    /// whole.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ratio: f64,
    /// The reduction of strikes for each share that a unit delivers after the adjustment, in currency.
    pub strike_cash: f64,
    /// The cash paid for each unit of the underlying held before the adjustment.
    pub cash: f64,
}

impl Adjustment {
    /// The strike after the adjustment, rounded to a cent where it changes, and the shares that a unit then
    /// delivers, for a contract with this strike and deliverable.
    pub(crate) fn terms(&self, strike: f64, deliverable: f64) -> (f64, f64) {
        let deliverable = deliverable * self.ratio;
        if self.shares == 1 && self.strike_cash == 0.0 {
            return (strike, deliverable);
        }
        let strike = strike / f64::from(self.shares) - deliverable * self.strike_cash;
        ((strike * 100.0).round() / 100.0, deliverable)
    }

    /// Returns whether contracts become other contracts.
    pub(crate) fn changes_contracts(&self) -> bool {
        self.shares != 1 || self.ratio != 1.0 || self.strike_cash != 0.0
    }
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(ratio: &f64) -> bool {
    *ratio == 1.0
}

/// A strike in cents: adjusted strikes are rounded to cents, and vendors' strikes may not be.
pub(crate) fn cents(strike: f64) -> i64 {
    (strike * 100.0).round() as i64
}

/// The adjustments for the actions of a symbol, by the dates of all snapshots, in order. Actions before the
/// second snapshot or after the last change nothing.
pub(crate) fn adjustments<'a>(
    actions: impl IntoIterator<Item = &'a CorporateAction>,
    symbol: &str,
    dates: &[Date],
) -> Result<Vec<Adjustment>, StageError> {
    let own = actions.into_iter().filter(|action| action.symbol == symbol);
    let mut actions: Vec<&CorporateAction> = own.collect();
    actions.sort_by_key(|action| (action.date, action.kind));
    let mut out: Vec<Adjustment> = Vec::new();
    for action in actions {
        let snapshot = dates.partition_point(|date| *date < action.date);
        if snapshot == 0 || snapshot == dates.len() {
            continue;
        }
        if out.last().is_none_or(|last| last.snapshot != snapshot) {
            out.push(Adjustment {
                snapshot,
                shares: 1,
                ratio: 1.0,
                strike_cash: 0.0,
                cash: 0.0,
            });
        }
        let Some(last) = out.last_mut() else { continue };
        match action.kind {
            Kind::Split | Kind::StockDividend => {
                let (ratio, whole) = (action.ratio, action.ratio.round());
                StageError::new(format!(
                    "{symbol}: contracts held over {} cannot be adjusted for a ratio of {ratio}",
                    action.date
                ))
                .hint(
                    "a ratio is shares after for one before: 1.5 for a split of 3 for 2, 0.125 for one \
                        of 1 for 8",
                )
                .when(!(ratio.is_finite() && ratio > 0.0))?;
                if (1.0..=1000.0).contains(&whole) && (ratio - whole).abs() <= 1e-9 * whole {
                    last.shares *= whole as u32;
                    last.strike_cash /= whole;
                } else {
                    last.ratio *= ratio;
                    last.strike_cash /= ratio;
                }
            }
            Kind::CashDividend => last.cash += action.amount,
            Kind::SpecialDividend => {
                last.cash += action.amount;
                last.strike_cash += action.amount;
            }
            Kind::SymbolChange => {}
        }
    }
    out.retain(|adjustment| adjustment.changes_contracts() || adjustment.cash != 0.0);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(date: i32, kind: Kind, ratio: f64, amount: f64) -> CorporateAction {
        CorporateAction {
            symbol: "TOY".to_owned(),
            date: Date(date),
            kind,
            ratio,
            amount,
            new_symbol: String::new(),
            origin: "config".to_owned(),
        }
    }

    #[test]
    fn actions_take_effect_at_the_next_snapshot() {
        let dates: Vec<Date> = [10, 11, 14, 15].map(Date).into();
        let of = |actions: &[CorporateAction]| adjustments(actions, "TOY", &dates);
        let split = of(&[action(12, Kind::Split, 7.0, f64::NAN)]).unwrap();
        assert_eq!((split[0].snapshot, split[0].shares), (2, 7));
        assert_eq!(split[0].terms(645.0, 1.0), (92.14, 1.0));
        // Of several snapshots a day, the first.
        let twice: Vec<Date> = [10, 10, 14, 14].map(Date).into();
        let found = adjustments(&[action(12, Kind::Split, 7.0, f64::NAN)], "TOY", &twice).unwrap();
        assert_eq!(found[0].snapshot, 2);
        // Before the first step and after the last there is nothing to adjust.
        for date in [10, 16] {
            assert_eq!(of(&[action(date, Kind::Split, 7.0, f64::NAN)]).unwrap(), []);
        }
        let special = of(&[action(15, Kind::SpecialDividend, f64::NAN, 2.5)]).unwrap();
        assert_eq!(
            (special[0].terms(100.0, 1.0), special[0].cash, special[0].shares),
            ((97.5, 1.0), 2.5, 1)
        );
        let ordinary = of(&[action(15, Kind::CashDividend, f64::NAN, 0.47)]).unwrap();
        assert_eq!(
            (ordinary[0].terms(99.999, 1.0), ordinary[0].cash),
            ((99.999, 1.0), 0.47)
        );
    }

    #[test]
    fn ratios_that_are_not_whole_change_what_a_unit_delivers() {
        let dates: Vec<Date> = [10, 11, 14].map(Date).into();
        let of = |actions: &[CorporateAction]| adjustments(actions, "TOY", &dates);
        for ratio in [1.5, 0.125, 1.05] {
            let found = of(&[action(14, Kind::StockDividend, ratio, f64::NAN)]).unwrap();
            assert_eq!((found[0].shares, found[0].terms(99.999, 1.0)), (1, (99.999, ratio)));
            // A second one is of the shares that the first delivers.
            assert_eq!(found[0].terms(99.999, 1.5), (99.999, 1.5 * ratio));
        }
        // A split of 2 for 1 of a contract on 1.5 shares: half the strike. A dividend of 2 a share: 3 less
        // for 1.5 shares.
        let split = of(&[action(14, Kind::Split, 2.0, f64::NAN)]).unwrap();
        assert_eq!(split[0].terms(150.0, 1.5), (75.0, 1.5));
        let special = of(&[action(14, Kind::SpecialDividend, f64::NAN, 2.0)]).unwrap();
        assert_eq!(special[0].terms(150.0, 1.5), (147.0, 1.5));
        for ratio in [0.0, -1.5, f64::NAN] {
            let err = of(&[action(14, Kind::Split, ratio, f64::NAN)]).unwrap_err();
            assert!(err.message.contains(&format!("a ratio of {ratio}")), "{err}");
        }
    }
}
