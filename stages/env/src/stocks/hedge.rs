//! The configuration of hedging a portfolio.
//!
//! [`crate::hedge`] has the formulas of orders and costs. The exposure of a portfolio with q_i shares of
//! symbol i at the prices p_i, and u units of the instrument at the price S, is
//!
//! `D = (sum of b_i q_i p_i) / S + u`
//!
//! in units of the instrument, with b_i = 1 for `neutral: dollar`, and for `neutral: beta` the slope of a
//! regression of the symbol's returns on the instrument's,
//!
//! `b_i = sum (x - mean x)(y - mean y) / sum (x - mean x)^2`
//!
//! over the last `window` dates up to the decision on which both have a return (dividends included, x the
//! instrument's, y the symbol's, since the symbol was last listed). With fewer than 20 of them, or an
//! instrument that did not move, b_i is 1. It is estimated once, when the tables are built.
//!
//! - *When.* After the other trades of a step, with what they have left: at the closes of t, or, with
//!   `fills.at: next_open`, at the opens of t + 1, by the b_i and the net asset value of t. An instrument
//!   without a price there is not traded.
//! - *A symbol* is bought and sold short for cash. Units held short pay for borrowing, dividends are received
//!   or paid, splits multiply them; it can be halted and delisted as any other.
//! - *A future* (input `future`) costs nothing to hold. It is settled in cash at the closes of the contract
//!   that is held, and rolled by volume; a roll pays for two trades. A trade at the open is in the contract
//!   held up to then.
//! - *Margin.* An account that hedges is one of margin, if only for the hedge: it is liquidated where the net
//!   asset value is below `margin.maintenance` of the portfolio's gross exposure and `hedge.margin` of the
//!   hedge's value together. Cash from an instrument sold short buys no stocks.

use crate::hedge::{HedgeRule, HedgeTerms, terms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The instrument that is none, and that of the input `future`.
const NONE: &str = "none";
const FUTURE: &str = "future";

/// The returns that a beta is estimated from, at least.
pub(crate) const LEAST_RETURNS: usize = 20;

stages_core::settings! {
    /// Hedging the portfolio's exposure; the `hedge` module has the formulas.
    pub struct StocksHedge {
        /// The instrument: `none`, `future` (of the input `future`), or a symbol of the bars, which is then
        /// none of the portfolio's. Of several worlds, a symbol of all (`SPY`), or the part after the
        /// separator of one of each.
        pub instrument: String = NONE.to_owned(),
        /// The exposure that is hedged.
        pub neutral: Neutral = Neutral::Beta,
        /// The dates that betas are estimated over.
        pub window: u32 = 252,
        /// The rule by which the portfolio is hedged at each decision, after the decision's trades.
        pub rule: HedgeRule = HedgeRule::Zero,
        /// The band, as a fraction of the net asset value: within it, the exposure is left alone.
        pub band: f64 = 0.05,
        /// Half of the bid-ask spread, as a fraction of the price.
        pub half_spread: f64 = 1e-4,
        /// Commission for each lot.
        pub commission: f64 = 0.0,
        /// The cost of borrowing what is held short: annual, decimal, on its value; a future has none.
        pub borrow: f64 = 0.003,
        /// The fraction of the absolute value that is added to the margin requirement.
        pub margin: f64 = 0.15,
        /// The units of the instrument that a trade is a multiple of.
        pub lot: f64 = 1.0,
    }
}

/// The exposure of a portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Neutral {
    /// The values of positions, each times its beta to the instrument.
    Beta,
    /// The values of positions.
    Dollar,
}

impl StocksHedge {
    /// True if nothing is hedged.
    pub(crate) fn is_none(&self) -> bool {
        self.instrument == NONE
    }

    /// True if the instrument is a future.
    pub(crate) fn is_future(&self) -> bool {
        self.instrument == FUTURE
    }

    /// The symbol of the bars that hedges.
    pub(crate) fn symbol(&self) -> Option<&str> {
        (!self.is_none() && !self.is_future()).then_some(self.instrument.as_str())
    }

    /// True if actions hedge.
    pub(crate) fn is_by_action(&self) -> bool {
        !self.is_none() && self.rule == HedgeRule::Action
    }

    /// True if the exposure is by beta.
    pub(crate) fn has_betas(&self) -> bool {
        !self.is_none() && self.neutral == Neutral::Beta
    }

    /// The rule and the costs.
    pub(crate) fn terms(&self) -> HedgeTerms {
        terms!(self)
    }

    pub(crate) fn validate(&self, symbols: &[String]) -> Result<(), ConfigProblem> {
        ConfigProblem::new("hedge.instrument", "a hedge needs an instrument")
            .hint("name a symbol of the bars, such as an index fund, or `future`")
            .when(self.is_none() && *self != Self::default())?;
        ConfigProblem::new("hedge.instrument", "the instrument has no name")
            .hint("`none` hedges nothing")
            .when(self.instrument.is_empty())?;
        ConfigProblem::new(
            "hedge.instrument",
            format!(
                "`{}` is one of `symbols`, which the portfolio chooses from",
                self.instrument
            ),
        )
        .hint("leave it out of `symbols`")
        .when(symbols.contains(&self.instrument))?;
        ConfigProblem::new(
            "hedge.window",
            format!(
                "{} dates; betas are estimated over at least {LEAST_RETURNS}",
                self.window
            ),
        )
        .when((self.window as usize) < LEAST_RETURNS)?;
        self.terms().validate()
    }
}
