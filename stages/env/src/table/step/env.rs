//! The batch of environments, and what an action or a target means.

use super::simulator::{Intent, TableSimulator};
use crate::actions::Actions;
use crate::batch::StepBuffers;
use crate::portfolio::{EnvState, PortfolioEnv};
use crate::table::config::{TableActionKind, TableConfig};
use crate::table::quantities::Form;
use datasets::SnapshotTime;
use stages_core::StageError;

/// B environments over the rows of a table. Weights are positions: with a price, as fractions of the net
/// asset value.
pub type TableEnv = PortfolioEnv<TableSimulator>;

/// The positions that a caller wants of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// Those it has, as prices have left them.
    Hold,
    /// Positions `[N]`; costs are those of the environment.
    Positions(&'a [f64]),
}

/// Brings positions within their limits: each within its range, and of several their absolute sum within
/// `gross` by one factor.
fn limit(config: &TableConfig, target: &mut [f64]) {
    let actions = &config.actions;
    let mut gross = 0.0;
    for target in &mut *target {
        // Not a number: no position, as near to it as the range allows.
        let wanted = if target.is_nan() { 0.0 } else { *target };
        *target = wanted.clamp(actions.low, actions.high);
        gross += target.abs();
    }
    if config.is_panel() && gross > actions.gross {
        let factor = actions.gross / gross;
        target.iter_mut().for_each(|target| *target *= factor);
    }
}

/// The actions of a batch.
#[derive(Clone, Copy)]
pub enum Acts<'a> {
    /// Choices that are paid their columns.
    Paid(&'a [u32]),
    /// Choices of a position.
    Choices(&'a [u32]),
    Positions(&'a [f32]),
}

impl<'a> Acts<'a> {
    /// Actions for `b` environments.
    pub(super) fn new(
        simulator: &TableSimulator,
        actions: Actions<'a>,
        b: usize,
    ) -> Result<Self, StageError> {
        Ok(match (simulator.form, simulator.config().actions.kind) {
            (Form::PerAction, _) => Self::Paid(actions.discrete(b)?),
            (_, TableActionKind::Discrete) => Self::Choices(actions.discrete(b)?),
            (_, TableActionKind::Continuous | TableActionKind::Weights) => {
                Self::Positions(actions.continuous(b, simulator.tables.n)?)
            }
        })
    }

    /// Fills the target of environment `i`, and says what it means.
    pub(super) fn decide(self, simulator: &TableSimulator, i: usize, target: &mut [f64]) -> Intent {
        let config = simulator.config();
        match self {
            Self::Paid(choices) => return Intent::Choice(choices[i]),
            Self::Choices(choices) => {
                let positions = &config.actions.positions;
                target[0] = *positions.get(choices[i] as usize).unwrap_or(&positions[0]);
            }
            Self::Positions(wanted) => {
                let n = target.len();
                for (target, wanted) in target.iter_mut().zip(&wanted[i * n..(i + 1) * n]) {
                    *target = f64::from(*wanted);
                }
                limit(config, target);
            }
        }
        Intent::Positions
    }
}

impl TableEnv {
    /// Takes a target for each environment, as [`BatchEnv::step`](crate::BatchEnv::step) does with actions.
    /// Those of discrete actions need not be among the choices, others are brought within their limits.
    ///
    /// # Errors
    /// When there is not one for each environment, positions are not one for each symbol, or the environment
    /// has choices instead of positions.
    pub fn step_targets(&mut self, targets: &[Target<'_>], out: StepBuffers<'_>) -> Result<(), StageError> {
        let (b, n) = (self.len(), self.num_symbols());
        let fits = |target: &Target<'_>| match target {
            Target::Hold => true,
            Target::Positions(positions) => positions.len() == n && positions.iter().all(|p| p.is_finite()),
        };
        if targets.len() != b || !targets.iter().all(fits) || self.simulator.form == Form::PerAction {
            return Err(StageError::new(format!(
                "expected a target for each of {b} environments, with {n} finite positions each"
            )));
        }
        let decide = |simulator: &TableSimulator, i: usize, env: &mut EnvState<'_, TableSimulator>| {
            let Target::Positions(positions) = targets[i] else {
                return Intent::Hold;
            };
            env.orders.copy_from_slice(positions);
            if simulator.config().actions.kind != TableActionKind::Discrete {
                limit(simulator.config(), env.orders);
            }
            Intent::Positions
        };
        self.run(&decide, out);
        Ok(())
    }

    /// The configuration.
    pub fn config(&self) -> &TableConfig {
        self.simulator.config()
    }

    /// True if a price is traded, so that there is a net asset value.
    pub fn has_price(&self) -> bool {
        self.simulator.form == Form::Price
    }

    /// The number of symbols N of an episode.
    pub fn num_symbols(&self) -> usize {
        self.simulator.tables.n
    }

    /// The instant of a row.
    pub fn time(&self, row: usize) -> SnapshotTime {
        self.simulator.tables.times[row]
    }
}
