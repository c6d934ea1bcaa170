//! The actions of the environment, and the legs of the strategies that they open, by slot.

use super::action_config::ActionKind;
use super::config::{MAX_ACTIONS, MAX_LEGS, MAX_STRATEGIES, OptionsConfig};
use super::exercise::EXERCISE;
use super::legs::{Traded, find};
use super::strategy_sets::strategies_of;
use stages_core::ConfigProblem;

/// The action that does nothing; always allowed.
pub(crate) const HOLD: usize = 0;
/// The action that closes everything with a quote.
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
    /// The signed number of contracts (or multiplier units of the underlying) for each unit of size.
    pub quantity: i32,
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
            ConfigProblem::new(
                format!("{field}.name"),
                format!("`{}` is empty or the name of another action", strategy.name),
            )
            .when(strategy.name.is_empty() || this.names.contains(&strategy.name))?;
            ConfigProblem::new(format!("{field}.legs"), format!("a strategy has 1 to {MAX_LEGS} legs"))
                .when(strategy.legs.is_empty() || strategy.legs.len() > MAX_LEGS)?;
            let mut legs: Vec<Leg> = Vec::new();
            for (j, leg) in strategy.legs.iter().enumerate() {
                let traded = find(config, leg, &format!("{field}.legs[{j}]"))?;
                ConfigProblem::new(format!("{field}.legs[{j}]"), "another leg trades the same slot")
                    .when(legs.iter().any(|other| other.traded == traded))?;
                legs.push(Leg {
                    traded,
                    quantity: leg.quantity,
                });
            }
            let lines = legs.iter().filter(|leg| leg.traded != Traded::Underlying).count();
            ConfigProblem::new(
                format!("{field}.legs"),
                format!(
                    "{lines} option legs need as many lines, and an account has {}",
                    config.lines
                ),
            )
            .hint("raise `lines`")
            .when(lines > config.lines)?;
            this.names.push(strategy.name.clone());
            this.legs.push(legs);
        }
        if config.hedge.is_by_action() {
            for name in HEDGES {
                ConfigProblem::new("strategies", format!("`{name}` is the name of another action"))
                    .when(this.names.iter().any(|other| other == name))?;
                this.names.push(name.to_owned());
            }
        }
        if config.exercise.early {
            ConfigProblem::new("strategies", format!("`{EXERCISE}` is the name of another action"))
                .when(this.names.iter().any(|name| name == EXERCISE))?;
            this.exercise = Some(this.names.len());
            this.names.push(EXERCISE.to_owned());
        }
        let most = match config.actions {
            ActionKind::Menu => MAX_ACTIONS - FIRST_OPEN,
            _ => MAX_STRATEGIES,
        };
        ConfigProblem::new(
            "strategies",
            format!(
                "an environment has at most {most} strategies, and here are {}",
                this.legs.len()
            ),
        )
        .hint("`actions: multi_discrete` takes more than a menu does")
        .when(this.names.len() - FIRST_OPEN > most)?;
        Ok(this)
    }
}
