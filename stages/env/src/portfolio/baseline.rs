//! The rules that a policy is compared with, in the same environment and under the same rules. A market says
//! which of them it steps by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{StageError, names};

/// A rule that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaselineName {
    /// Never trades.
    Cash,
    /// `env/options`: holds the underlying with all its capital, or, where that does not trade, its
    /// synthetic. `env/table` with one symbol an episode: a position of 1.
    Underlying,
    /// `env/options`: sells a straddle at the money at the slate's first maturity, holds it to expiry and
    /// then sells the next.
    ShortStraddle,
    /// `env/options`: the same, hedged to zero delta at every snapshot; where the environment hedges.
    HedgedShortStraddle,
    /// `env/stocks`, `env/table` with weights: buys the same value of every symbol on the first date, and
    /// holds.
    EqualWeightHeld,
    /// `env/stocks`, `env/table` with weights: has the same value of every symbol, anew on each date.
    EqualWeight,
    /// `env/stocks`: the long-only weights of least variance, by a shrunk covariance of the last 252 dates,
    /// every 21 dates.
    MinimumVariance,
    /// `env/stocks`: the same value of each symbol of the best third by its return over 252 dates but the
    /// last 21, every 21 dates.
    Momentum,
    /// `env/stocks` with the input `hidden`: the best rule by the column `expected_return`, and `filter`,
    /// the best by `filtered_return`: they hold the symbols of the highest and exchange one beyond a gap.
    Oracle,
    /// Takes an allowed action, or weights, at random.
    Random,
}

names! {
    BaselineName: Cash "cash", Underlying "underlying", ShortStraddle "short_straddle",
        HedgedShortStraddle "hedged_short_straddle", EqualWeightHeld "equal_weight_held",
        EqualWeight "equal_weight", MinimumVariance "minimum_variance", Momentum "momentum",
        Oracle "oracle", Random "random"
}

impl BaselineName {
    /// The error for a rule that a market does not have.
    pub(crate) fn unknown(self, known: &[Self]) -> StageError {
        let known: Vec<&str> = known.iter().map(|rule| rule.name()).collect();
        StageError::new(format!("the environment has no rule `{}`", self.name()))
            .hint(format!("it has {}", known.join(", ")))
    }
}
