//! The batch of environments of `env/table`, and the meaning of actions and targets.

use super::acts::{Intent, limit};
use super::simulator::TableSimulator;
use super::state::Env;
use crate::batch::StepBuffers;
use crate::portfolio::PortfolioEnv;
use crate::table::config::{TableActionKind, TableConfig};
use crate::table::quantities::Form;
use stages_core::StageError;

/// B environments over the rows of a table. Weights are positions: with a price, as fractions of the net
/// asset value.
pub type TableEnv = PortfolioEnv<TableSimulator>;

/// The positions that a caller wants of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// The positions that the environment has, as prices have left them.
    Hold,
    /// Positions `[N]`; costs are those of the environment.
    Positions(&'a [f64]),
}

impl TableEnv {
    /// Takes a target for each environment, as [`BatchEnv::step`](crate::BatchEnv::step) does with actions.
    /// Where actions are discrete, positions need not be among the choices; otherwise they are brought within
    /// their limits.
    ///
    /// # Errors
    /// Fails when there is not one target for each environment, when positions are not one for each symbol,
    /// or when the environment has choices instead of positions.
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
        let decide = |simulator: &TableSimulator, i: usize, env: &mut Env<'_>| {
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
}
