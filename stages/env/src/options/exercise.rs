//! Early exercise and assignment of American options.
//!
//! With S the underlying, a mark's time value being the mark less the intrinsic value:
//!
//! - *Assignment.* After the trades at a snapshot, a short option in the money is assigned, all its
//!   contracts, where its time value is at most `time_value` S: its holders get nothing for keeping it. A
//!   call is also assigned where the next snapshot is on or after an ex-date and its time value is less than
//!   the dividend. The account first sees it at the next snapshot. (In reality a part of the holders
//!   exercises, and the clearing house assigns by lot.)
//! - *Exercise.* The action `exercise` exercises every long line in the money, and gives up its time value.
//! - *Delivery.* `cash` pays the intrinsic value. `physical` delivers the underlying against the strike,
//!   early and at expiry; shares to deliver that are not held are bought at once at S (1 +
//!   `underlying_slippage`). A debt of cash pays interest.
//! - *Dividends* are paid on the shares held at the snapshot before the ex-date.
//! - *Expiry.* An option is exercised if it is in the money at the snapshot that settles it, by any amount.

use crate::checks::fits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

stages_core::settings! {
    /// Early exercise of American options: assignment of shorts by a model, and own exercise by the action
    /// `exercise`.
    pub struct ExerciseConfig {
        /// If true, short options in the money can be assigned before expiry, and long ones exercised. The
        /// chain's contracts must be American.
        pub early: bool = false,
        /// A short option in the money is assigned when its time value is at most this fraction of the
        /// underlying.
        pub time_value: f64 = 0.0005,
        /// The delivery on exercise, early or at expiry.
        pub delivery: Delivery = Delivery::Cash,
    }
}

/// The delivery on exercise and assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The intrinsic value in cash.
    Cash,
    /// The underlying against the strike; it must be traded (`trade_underlying`).
    Physical,
}

/// The name of the action that exercises.
pub(crate) const EXERCISE: &str = "exercise";

impl ExerciseConfig {
    /// Checks the settings.
    pub(crate) fn validate(&self, trade_underlying: bool) -> Result<(), ConfigProblem> {
        let is_share = (0.0..1.0).contains(&self.time_value);
        fits(
            "exercise.time_value",
            self.time_value,
            is_share,
            "at least 0 and below 1",
        )?;
        ConfigProblem::new("exercise.delivery", "what is not traded cannot be delivered")
            .hint("set `trade_underlying: true` where it is a stock or a fund, or `delivery: cash`")
            .when(self.delivery == Delivery::Physical && !trade_underlying)
    }

    /// Returns whether holders of an option in the money exercise it: its time value is small, or, of a call,
    /// less than the dividend of which they would be left without. All per unit; `dividend` is what the next
    /// snapshot pays.
    pub(crate) fn is_assigned(
        &self,
        call: bool,
        intrinsic: f64,
        mark: f64,
        delivered: f64,
        dividend: f64,
    ) -> bool {
        let time_value = mark - intrinsic;
        intrinsic > 0.0
            && (time_value <= self.time_value * delivered || call && dividend > 0.0 && time_value < dividend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules by hand: the underlying at 100, a threshold of 0.05.
    #[test]
    fn by_hand() {
        let rule = ExerciseConfig::default();
        let assigned = |call: bool, intrinsic: f64, mark: f64, dividend: f64| {
            rule.is_assigned(call, intrinsic, mark, 100.0, dividend)
        };
        assert!(assigned(false, 30.0, 30.02, 0.0));
        assert!(!assigned(false, 30.0, 30.10, 0.0));
        // A call of 5 intrinsic and 0.30 time value: before a dividend of 0.50, and not of 0.20.
        assert!(
            assigned(true, 5.0, 5.30, 0.50)
                && !assigned(true, 5.0, 5.30, 0.20)
                && !assigned(true, 5.0, 5.30, 0.0)
        );
        // A dividend makes nobody exercise a put, and nothing an option out of the money.
        assert!(!assigned(false, 5.0, 5.30, 0.50) && !assigned(true, 0.0, 0.0, 0.50));
    }
}
