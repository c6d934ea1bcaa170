//! The configuration of hedging.
//!
//! [`crate::hedge`] has the formulas of orders and costs. The exposure is the account's delta (options,
//! underlying and futures); the price is the underlying's. With S the underlying at snapshot t, S' at t + 1,
//! d the days between them:
//!
//! - A hedge comes after the step's other trades, at S, and is never refused: it takes risk off. Its costs
//!   count in the account's costs.
//! - *The underlying* is bought and sold short for cash. Units held short pay for borrowing, and the
//!   dividends of corporate actions.
//! - *The future* costs nothing to hold. It is settled in cash daily: u units gain u (S' - S exp(c d / 365)),
//!   which is what a future at its fair price S exp(c T) gains for each unit of delta. The carry c is that of
//!   the chain's forwards at t, ln(F / S) / T of the nearest expiry that the slate may select, and where t
//!   has none, the short rate.
//! - *The future from bars* (input `future`) is settled by the closes of the contract that is held instead,
//!   and rolled by volume. A hedge trades at its close, and a roll pays for two trades. One unit counts as
//!   one of delta, and S stands for its price in margin and liquidation value.
//! - *Margin.* Of all that is held of the instrument; the underlying then counts in full (a short, as the
//!   debt that it is) in the collateral, instead of half.

use crate::hedge::{HedgeRule, HedgeTerms, terms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

stages_core::settings! {
    /// Hedging the account's delta; the `hedge` module has the formulas.
    pub struct HedgeConfig {
        /// The instrument.
        pub instrument: HedgeInstrument = HedgeInstrument::None,
        /// The rule by which the account is hedged at each decision, after the decision's trades.
        pub rule: HedgeRule = HedgeRule::Zero,
        /// The band, as a fraction of the net asset value: within it, |delta| times the underlying is left
        /// alone.
        pub band: f64 = 0.05,
        /// Half of the bid-ask spread, as a fraction of the price.
        pub half_spread: f64 = 1e-4,
        /// Commission for each lot.
        pub commission: f64 = 0.0,
        /// The cost of borrowing the underlying that is held short: annual, decimal, on its value.
        pub borrow: f64 = 0.0,
        /// The fraction of the absolute notional that is added to the margin requirement.
        pub margin: f64 = 0.15,
        /// The units of the underlying that a trade is a multiple of.
        pub lot: f64 = 1.0,
    }
}

/// The instrument of a hedge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HedgeInstrument {
    /// None: no hedging.
    None,
    /// The underlying itself, long or short.
    Underlying,
    /// A future on the underlying, settled daily.
    Future,
}

impl HedgeConfig {
    /// Returns whether there is no hedging.
    pub(crate) fn is_none(&self) -> bool {
        self.instrument == HedgeInstrument::None
    }

    /// Returns whether actions decide the hedge.
    pub(crate) fn is_by_action(&self) -> bool {
        !self.is_none() && self.rule == HedgeRule::Action
    }

    /// The rule and the costs of the hedge.
    pub(crate) fn terms(&self) -> HedgeTerms {
        terms!(self)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        ConfigProblem::new("hedge.instrument", "a hedge needs an instrument")
            .hint("`underlying` for a stock or a fund, `future` for an index")
            .when(self.is_none() && *self != Self::default())?;
        self.terms().validate()
    }
}
