//! The batch of environments of `env/stocks`, and the meaning of actions and targets.

use super::baseline::decide;
use super::market::Market;
use super::orders::Intent;
use super::simulator::StocksSimulator;
use crate::batch::StepBuffers;
use crate::portfolio::{BaselineName, PortfolioEnv};
use crate::stocks::config::StocksConfig;
use crate::stocks::tables::status;
use datasets::Date;
use stages_core::StageError;
#[cfg(test)]
use stages_numerics::dispatch::InstructionSet;

/// B environments that trade the stocks of a market. What they hold are shares.
pub type StocksEnv = PortfolioEnv<StocksSimulator>;

/// The positions that a caller wants of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// The positions that the environment has.
    Hold,
    /// Weights `[N]`, as fractions of the net asset value; the rest is cash. Limits, costs and fills are
    /// those of the environment.
    Weights(&'a [f64]),
}

impl StocksEnv {
    fn market(&self) -> &Market {
        &self.simulator.market
    }

    #[cfg(test)]
    pub(crate) fn tables(&self) -> &super::lookup::Tables {
        &self.market().tables
    }

    #[cfg(test)]
    pub(crate) fn set_instructions(&mut self, instructions: InstructionSet) {
        std::sync::Arc::get_mut(&mut self.simulator)
            .unwrap()
            .market
            .instructions = instructions;
    }

    /// Takes a target for each environment, as [`BatchEnv::step`](crate::BatchEnv::step) does with actions.
    /// The rule of `hedge` hedges it.
    ///
    /// # Errors
    /// When there is not one for each environment, or weights are not one for each symbol.
    pub fn step_targets(&mut self, targets: &[Target<'_>], out: StepBuffers<'_>) -> Result<(), StageError> {
        let (b, n) = (self.len(), self.num_symbols());
        let fits = |target: &Target<'_>| {
            matches!(target, Target::Hold) || matches!(target, Target::Weights(w) if w.len() == n)
        };
        if targets.len() != b || !targets.iter().all(fits) {
            return Err(StageError::new(format!(
                "expected a target for each of {b} environments, with {n} weights each"
            )));
        }
        let rule = self.simulator.hedge_rule();
        self.run(
            &|_, i, env| match targets[i] {
                Target::Hold => (Intent::Hold, rule),
                Target::Weights(weights) => {
                    env.orders.copy_from_slice(weights);
                    (Intent::Weights, rule)
                }
            },
            out,
        );
        Ok(())
    }

    /// Takes the decision of a baseline in every environment. The rule of `hedge` hedges it.
    pub fn step_baseline(&mut self, baseline: BaselineName, out: StepBuffers<'_>) {
        let (rule, seed) = (self.simulator.hedge_rule(), self.course.seed);
        self.run(
            &|simulator, i, env| (decide(baseline, &simulator.market, seed, i, env), rule),
            out,
        );
    }

    /// The number of symbols N, the same in each world.
    pub fn num_symbols(&self) -> usize {
        self.market().tables.n
    }

    /// The symbols of the world that environment `i` is in `[N]`.
    pub fn symbols(&self, i: usize) -> &[String] {
        self.market().symbols(self.snapshot(i))
    }

    /// The date of a snapshot.
    pub fn date(&self, snapshot: usize) -> Date {
        self.common().times[snapshot].date
    }

    /// The return of a symbol, dividends included, from the snapshot before to this one, where it trades at
    /// both.
    pub fn symbol_return(&self, snapshot: usize, symbol: usize) -> Option<f64> {
        self.market().tables.total_return(snapshot, symbol)
    }

    /// The return of the instrument that hedges, dividends included, from a snapshot to the next; 0 where the
    /// instrument lacks a bar on either.
    pub fn hedge_return(&self, snapshot: usize) -> f64 {
        self.market().tables.hedge_return(snapshot + 1).unwrap_or(0.0)
    }

    /// True if a symbol trades at a snapshot.
    pub fn trades(&self, snapshot: usize, symbol: usize) -> bool {
        self.market().tables.status(snapshot)[symbol] & status::TRADES != 0
    }

    /// The marks of the symbols at a snapshot `[N]`.
    pub fn marks(&self, snapshot: usize) -> &[f64] {
        self.market().tables.marks(snapshot)
    }

    /// The hidden value of the given name for a symbol at a snapshot, NaN where there is none: for oracles.
    /// `None` if there is no such name.
    pub fn hidden(&self, name: &str, snapshot: usize, symbol: usize) -> Option<f64> {
        self.market().tables.hidden(name, snapshot, symbol)
    }

    /// The number of snapshots of all worlds.
    pub fn num_snapshots(&self) -> usize {
        self.common().times.len()
    }

    /// The configuration.
    pub fn config(&self) -> &StocksConfig {
        &self.market().config
    }
}
