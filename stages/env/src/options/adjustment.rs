//! The adjustment of contracts and positions for corporate actions, as the Options Clearing Corporation makes it (OCC By-Laws, article VI, section 11A).
//!
//! An action takes effect at the first snapshot on or after its ex-date, before that snapshot's quotes are looked at:
//!
//! | action | contracts held | strike | units of the underlying |
//! | --- | --- | --- | --- |
//! | split of n for 1, n whole | times n | over n, to a cent | times n |
//! | ordinary cash dividend | as they are | as it is | as they are; its amount for each is paid in cash |
//! | special cash dividend | as they are | less the amount, to a cent | as with an ordinary one |
//! | any other ratio: 3 for 2, 1 for 8, a stock dividend | refused | | |
//!
//! The multiplier stays. Other ratios change what a contract delivers (150 shares, or 12 and cash for a half), which no contract of the chain is: an
//! environment over such a date is refused.

use datasets::Date;
use datasets::corporate_action::{CorporateAction, Kind};
use serde::{Deserialize, Serialize};
use stages_core::StageError;

/// The changes of contracts and positions by the corporate actions of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adjustment {
    /// The snapshot.
    pub snapshot: usize,
    /// Contracts after it for one before, and the divisor of strikes.
    pub shares: u32,
    /// The fall of strikes, after the division, in currency.
    pub strike_cash: f64,
    /// Cash paid for each unit of the underlying held before it.
    pub cash: f64,
}

impl Adjustment {
    /// The strike after it, to a cent where it changes.
    pub(crate) fn strike(&self, strike: f64) -> f64 {
        if !self.changes_contracts() {
            return strike;
        }
        ((strike / f64::from(self.shares) - self.strike_cash) * 100.0).round() / 100.0
    }

    /// Returns whether contracts become others.
    pub(crate) fn changes_contracts(&self) -> bool {
        self.shares != 1 || self.strike_cash != 0.0
    }
}

/// A strike in cents: adjusted strikes are rounded to them, and vendors may not have.
pub(crate) fn cents(strike: f64) -> i64 {
    (strike * 100.0).round() as i64
}

/// The adjustments for the actions of a symbol, by the dates of all snapshots, in order. Actions before the second snapshot or after the last change nothing.
///
/// # Errors
/// When a ratio is not whole.
pub(crate) fn adjustments(
    actions: &[CorporateAction],
    symbol: &str,
    dates: &[Date],
) -> Result<Vec<Adjustment>, StageError> {
    let mut actions: Vec<&CorporateAction> = actions.iter().filter(|action| action.symbol == symbol).collect();
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
                strike_cash: 0.0,
                cash: 0.0,
            });
        }
        let Some(last) = out.last_mut() else { continue };
        match action.kind {
            Kind::Split | Kind::StockDividend => {
                let whole = action.ratio.round();
                if !(1.0..=1000.0).contains(&whole) || (action.ratio - whole).abs() > 1e-9 * whole {
                    return Err(StageError::new(format!(
                        "{symbol}: contracts held over {} cannot be adjusted for a ratio of {}: they deliver other than {symbol} contracts then",
                        action.date, action.ratio
                    ))
                    .hint("end or begin the chain at that day, with `dates` of the stage that reads it"));
                }
                last.shares *= whole as u32;
                last.strike_cash /= whole;
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
        assert_eq!(split[0].strike(645.0), 92.14);
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
            (special[0].strike(100.0), special[0].cash, special[0].shares),
            (97.5, 2.5, 1)
        );
        let ordinary = of(&[action(15, Kind::CashDividend, f64::NAN, 0.47)]).unwrap();
        assert_eq!((ordinary[0].strike(99.999), ordinary[0].cash), (99.999, 0.47));
        for ratio in [1.5, 0.125, 1.05] {
            let err = of(&[action(14, Kind::Split, ratio, f64::NAN)]).unwrap_err();
            assert!(err.message.contains(&format!("a ratio of {ratio}")), "{err}");
        }
    }
}
