//! The rule and the costs of a hedge; [`hedge`](super) has the formulas.

use crate::checks::{fits, positive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

/// The rule of a hedge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HedgeRule {
    /// The agent's actions alone hedge.
    Action,
    /// To zero exposure, whatever the action.
    Zero,
    /// To the edge of the band, where the exposure is outside it.
    Band,
}

/// An order to hedge, after the other trades of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeOrder {
    /// Nothing is traded, even where the rule of `hedge` would.
    Leave,
    /// Trades to zero exposure.
    Zero,
    /// Trades to the edge of the band, where the exposure is outside the band.
    Band,
}

impl HedgeOrder {
    /// The order of a choice of the component `hedge`.
    pub(crate) fn from_choice(choice: u32) -> Self {
        match choice {
            1 => Self::Zero,
            2 => Self::Band,
            _ => Self::Leave,
        }
    }
}

/// The rule and the costs of a hedge, under the names of an environment's `hedge`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HedgeTerms {
    pub rule: HedgeRule,
    /// The width of the band, as a fraction of the net asset value.
    pub band: f64,
    /// The half spread, as a fraction of the price.
    pub half_spread: f64,
    /// The commission per lot.
    pub commission: f64,
    /// The annual rate for borrowing, decimal.
    pub borrow: f64,
    /// The margin requirement, as a fraction of the notional.
    pub margin: f64,
    /// The size of a lot, in units of the instrument.
    pub lot: f64,
}

/// The terms among the settings of an environment's `hedge`.
macro_rules! terms {
    ($of:expr) => {
        $crate::hedge::HedgeTerms {
            rule: $of.rule,
            band: $of.band,
            half_spread: $of.half_spread,
            commission: $of.commission,
            borrow: $of.borrow,
            margin: $of.margin,
            lot: $of.lot,
        }
    };
}
pub(crate) use terms;

impl HedgeTerms {
    pub(crate) fn validate(&self) -> Result<(), ConfigProblem> {
        for (field, value, most) in [
            ("band", self.band, f64::MAX),
            ("half_spread", self.half_spread, 0.5),
            ("commission", self.commission, f64::MAX),
            ("borrow", self.borrow, 1.0),
            ("margin", self.margin, 1.0),
        ] {
            let range = match most == f64::MAX {
                true => "0 or more".to_owned(),
                false => format!("between 0 and {most}"),
            };
            fits(&format!("hedge.{field}"), value, (0.0..=most).contains(&value), &range)?;
        }
        positive("hedge.lot", self.lot)
    }

    /// The order that the rule gives.
    pub(crate) fn order(&self) -> HedgeOrder {
        match self.rule {
            HedgeRule::Action => HedgeOrder::Leave,
            HedgeRule::Zero => HedgeOrder::Zero,
            HedgeRule::Band => HedgeOrder::Band,
        }
    }

    /// The units that an order trades, in whole lots, for an account with this exposure in units and this net
    /// asset value; 0 where nothing is traded.
    pub(crate) fn units(&self, order: HedgeOrder, exposure: f64, price: f64, nav: f64) -> f64 {
        let target = match order {
            HedgeOrder::Leave => return 0.0,
            HedgeOrder::Zero => 0.0,
            HedgeOrder::Band => {
                let edge = self.band * nav.max(0.0) / price;
                exposure.clamp(-edge, edge)
            }
        };
        ((target - exposure) / self.lot).round() * self.lot
    }

    /// The units, in whole lots, that bring the holding `held` of the instrument to minus the given share of
    /// the rest of the exposure; 0 where the change is within the band.
    pub(crate) fn units_to_ratio(
        &self,
        ratio: f64,
        (exposure, held): (f64, f64),
        price: f64,
        nav: f64,
    ) -> f64 {
        let ratio = if ratio.is_nan() { 0.0 } else { ratio.clamp(0.0, 1.0) };
        let change = -ratio * (exposure - held) - held;
        let lots = (change / self.lot).round();
        match lots != 0.0 && change.abs() * price > self.band * nav {
            true => lots * self.lot,
            false => 0.0,
        }
    }

    /// The spread cost and the commission of a trade of this many units (not negative) and this value.
    pub(crate) fn costs(&self, units: f64, notional: f64) -> (f64, f64) {
        (notional * self.half_spread, units / self.lot * self.commission)
    }

    /// The cost of borrowing the units held short (not negative) over `days`.
    pub(crate) fn borrowing(&self, short: f64, price: f64, days: f64) -> f64 {
        self.borrow * short * price * days / 365.0
    }

    /// The margin requirement of the units held.
    pub(crate) fn margin(&self, held: f64, price: f64) -> f64 {
        self.margin * held.abs() * price
    }
}
