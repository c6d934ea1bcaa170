//! The instruments of legs, as the configuration names them.

use super::config::{self, OptionsConfig, Right};
use stages_core::ConfigProblem;

/// The instrument of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traded {
    /// The contract in a slot of the slate.
    Slot(usize),
    /// The underlying.
    Underlying,
}

/// The instrument of a configured leg.
pub(super) fn find(config: &OptionsConfig, leg: &config::Leg, field: &str) -> Result<Traded, ConfigProblem> {
    let slate = &config.slate;
    ConfigProblem::new(
        format!("{field}.quantity"),
        format!(
            "{} is not a quantity between 1 and 1000, positive to buy or negative to sell",
            leg.quantity
        ),
    )
    .when(leg.quantity == 0 || leg.quantity.unsigned_abs() > 1000)?;
    let count = slate.slots();
    match (leg.slot, leg.right) {
        (Some(_), _) if leg.right.is_some() || leg.maturity.is_some() || leg.delta.is_some() => {
            Err(ConfigProblem::new(
                format!("{field}.slot"),
                "a leg has either the slot's number, or right, maturity and delta",
            ))
        }
        (Some(slot), _) if slot >= count => Err(ConfigProblem::new(
            format!("{field}.slot"),
            format!("the slate has slots 0 to {}", count - 1),
        )),
        (Some(slot), _) => Ok(Traded::Slot(slot)),
        (None, None) => Err(ConfigProblem::new(
            format!("{field}.right"),
            "a leg needs a right: `call`, `put` or `underlying`",
        )),
        (None, Some(Right::Underlying)) => {
            ConfigProblem::new(format!("{field}.right"), "the underlying is not traded here")
                .hint("set trade_underlying: true where it is a stock or a fund, not an index")
                .when(!config.trade_underlying)?;
            ConfigProblem::new(format!("{field}.quantity"), "the underlying cannot be sold short")
                .when(leg.quantity < 0)?;
            Ok(Traded::Underlying)
        }
        (None, Some(right)) => {
            let days = leg.maturity.unwrap_or(slate.maturities[0]);
            let maturity = slate.maturities.iter().position(|&m| m == days).ok_or_else(|| {
                ConfigProblem::new(
                    format!("{field}.maturity"),
                    format!("{days} is not a maturity of the slate"),
                )
                .hint(format!("the slate has {:?}", slate.maturities))
            })?;
            let delta = leg.delta.ok_or_else(|| {
                ConfigProblem::new(format!("{field}.delta"), "a leg needs the delta of a slot")
            })?;
            let index = slate.deltas.iter().position(|&d| d == delta).ok_or_else(|| {
                ConfigProblem::new(format!("{field}.delta"), format!("{delta} is not a delta of the slate"))
                    .hint(format!("the slate has {:?}", slate.deltas))
            })?;
            Ok(Traded::Slot(
                (maturity * slate.deltas.len() + index) * 2 + usize::from(right == Right::Put),
            ))
        }
    }
}
