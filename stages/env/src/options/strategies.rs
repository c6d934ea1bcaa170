//! The actions of the environment, and the legs of the strategies they open, by slot.

use super::action_space::ActionKind;
use super::config::{self, MAX_ACTIONS, MAX_LEGS, MAX_STRATEGIES, OptionsConfig, Right};
use super::exercise::EXERCISE;
use super::strategy_sets::strategies_of;
use stages_core::ConfigProblem;

/// The action that does nothing; always allowed.
pub(crate) const HOLD: usize = 0;
/// The action that closes all that has a quote.
pub(crate) const CLOSE_ALL: usize = 1;
/// The action that closes the strategy opened first.
pub(crate) const CLOSE_OLDEST: usize = 2;
/// The first action that opens a strategy.
pub(crate) const FIRST_OPEN: usize = 3;

/// The actions that hedge, after the strategies, where actions do.
pub(crate) const HEDGES: [&str; 2] = ["hedge_zero", "hedge_band"];

/// A leg of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub traded: Traded,
    /// Signed contracts (or multiplier units of the underlying) for each unit of size.
    pub quantity: i32,
}

/// The instrument of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traded {
    /// The contract in a slot of the slate.
    Slot(usize),
    /// The underlying.
    Underlying,
}

/// The strategies that can be opened, after the three special actions.
#[derive(Clone, Debug)]
pub(crate) struct Strategies {
    /// Names of all actions.
    pub names: Vec<String>,
    /// The legs of each strategy.
    pub legs: Vec<Vec<Leg>>,
    /// The action that exercises long lines in the money, after the strategies.
    pub exercise: Option<usize>,
}

impl OptionsConfig {
    /// Checks all values that can be checked without data.
    ///
    /// # Errors
    /// The first mistake.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        self.validate_values()?;
        Strategies::new(self).map(|_| ())
    }
}

impl Strategies {
    /// The strategies of a configuration, checked.
    pub(crate) fn new(config: &OptionsConfig) -> Result<Self, ConfigProblem> {
        let strategies = strategies_of(config);
        let mut this = Self {
            names: ["hold", "close_all", "close_oldest"].map(str::to_owned).into(),
            legs: Vec::new(),
            exercise: None,
        };
        for (i, strategy) in strategies.iter().enumerate() {
            let field = format!("strategies[{i}]");
            if strategy.name.is_empty() || this.names.contains(&strategy.name) {
                return Err(ConfigProblem::new(
                    format!("{field}.name"),
                    format!("`{}` is empty or the name of another action", strategy.name),
                ));
            }
            if strategy.legs.is_empty() || strategy.legs.len() > MAX_LEGS {
                return Err(ConfigProblem::new(
                    format!("{field}.legs"),
                    format!("a strategy has 1 to {MAX_LEGS} legs"),
                ));
            }
            let mut legs: Vec<Leg> = Vec::new();
            for (j, leg) in strategy.legs.iter().enumerate() {
                let traded = find(config, leg, &format!("{field}.legs[{j}]"))?;
                if legs.iter().any(|other| other.traded == traded) {
                    return Err(ConfigProblem::new(
                        format!("{field}.legs[{j}]"),
                        "another leg trades the same slot",
                    ));
                }
                legs.push(Leg {
                    traded,
                    quantity: leg.quantity,
                });
            }
            let lines = legs.iter().filter(|leg| leg.traded != Traded::Underlying).count();
            if lines > config.lines {
                return Err(ConfigProblem::new(
                    format!("{field}.legs"),
                    format!(
                        "{lines} option legs need as many lines, and an account has {}",
                        config.lines
                    ),
                )
                .hint("raise `lines`"));
            }
            this.names.push(strategy.name.clone());
            this.legs.push(legs);
        }
        if config.hedge.is_by_action() {
            for name in HEDGES {
                if this.names.iter().any(|other| other == name) {
                    return Err(ConfigProblem::new(
                        "strategies",
                        format!("`{name}` is the name of another action"),
                    ));
                }
                this.names.push(name.to_owned());
            }
        }
        if config.exercise.early {
            if this.names.iter().any(|name| name == EXERCISE) {
                return Err(ConfigProblem::new(
                    "strategies",
                    format!("`{EXERCISE}` is the name of another action"),
                ));
            }
            this.exercise = Some(this.names.len());
            this.names.push(EXERCISE.to_owned());
        }
        let most = match config.actions {
            ActionKind::Menu => MAX_ACTIONS - FIRST_OPEN,
            _ => MAX_STRATEGIES,
        };
        if this.names.len() - FIRST_OPEN > most {
            return Err(ConfigProblem::new(
                "strategies",
                format!(
                    "an environment has at most {most} strategies, and here are {}",
                    this.legs.len()
                ),
            )
            .hint("`actions: multi_discrete` takes more than a menu does"));
        }
        Ok(this)
    }
}

/// The instrument of a configured leg.
pub(super) fn find(config: &OptionsConfig, leg: &config::Leg, field: &str) -> Result<Traded, ConfigProblem> {
    let slate = &config.slate;
    if leg.quantity == 0 || leg.quantity.unsigned_abs() > 1000 {
        return Err(ConfigProblem::new(
            format!("{field}.quantity"),
            format!(
                "{} is not a quantity between 1 and 1000, positive to buy or negative to sell",
                leg.quantity
            ),
        ));
    }
    let count = 2 * slate.maturities.len() * slate.deltas.len();
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
            if !config.trade_underlying {
                return Err(
                    ConfigProblem::new(format!("{field}.right"), "the underlying is not traded here")
                        .hint("set trade_underlying: true where it is a stock or a fund, not an index"),
                );
            }
            if leg.quantity < 0 {
                return Err(ConfigProblem::new(
                    format!("{field}.quantity"),
                    "the underlying cannot be sold short",
                ));
            }
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
            let delta = leg
                .delta
                .ok_or_else(|| ConfigProblem::new(format!("{field}.delta"), "a leg needs the delta of a slot"))?;
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
