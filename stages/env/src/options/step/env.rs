//! The batch of environments of `env/options`, and the meaning of actions.

use super::baseline::decide;
use super::ledger::Position;
use super::market::Market;
use super::simulator::{Act, OptionsSimulator};
use crate::batch::StepBuffers;
use crate::options::config::{MAX_ACTIONS, OptionsConfig};
use crate::options::order::Decision;
use crate::portfolio::{BaselineName, PortfolioEnv};

/// B environments that trade options on one underlying.
pub type OptionsEnv = PortfolioEnv<OptionsSimulator>;

impl OptionsEnv {
    fn market(&self) -> &Market {
        &self.simulator.market
    }

    #[cfg(test)]
    pub(crate) fn tables(&self) -> &super::lookup::Tables {
        &self.market().tables
    }

    /// Takes one decision for each environment, as [`BatchEnv::step`] does with actions.
    pub fn step_decisions(&mut self, decisions: &[Decision], out: StepBuffers<'_>) {
        self.run(&|_, i, _| Act::Decision(decisions[i]), out);
    }

    /// The names of the actions that [`Decision::Action`] takes, whatever the action space: those of the
    /// space's menu, of which other action spaces have the first 64.
    pub fn menu(&self) -> &[String] {
        let names = &self.market().strategies.names;
        &names[..names.len().min(MAX_ACTIONS)]
    }

    /// Returns whether the state of environment `i` allows an action of the menu.
    pub fn allows(&self, i: usize, action: u32) -> bool {
        (action as usize) < self.menu().len() && self.states.view(i).account.action_mask >> action & 1 == 1
    }

    /// Takes the decision of a baseline in every environment.
    pub fn step_baseline(&mut self, baseline: BaselineName, out: StepBuffers<'_>) {
        let seed = self.course.seed;
        self.run(
            &|simulator, i, env| Act::Decision(decide(baseline, &simulator.market, seed, i, env.account)),
            out,
        );
    }

    /// The number of lines that environment `i` holds.
    pub fn lines(&self, i: usize) -> usize {
        self.states.view(i).account.lines as usize
    }

    /// The lines of environment `i`.
    pub fn positions(&self, i: usize) -> Vec<Position> {
        let t = self.snapshot(i);
        let lines = &self.held(i)[..self.lines(i)];
        lines.iter().map(|line| Position::new(self.market(), line, t)).collect()
    }

    /// The call and the put at the money that environment `i` sees for the slate's maturity `maturity` (an
    /// index); they share expiry and strike.
    pub fn at_the_money(&self, i: usize, maturity: usize) -> Option<(u32, u32)> {
        self.market().at_the_money(self.snapshot(i), maturity)
    }

    /// The contracts of the slate that environment `i` sees, by slot.
    pub fn slate(&self, i: usize) -> Vec<Option<u32>> {
        let slate = self.market().slate(self.snapshot(i));
        slate.iter().map(|&id| u32::try_from(id).ok()).collect()
    }

    /// The hidden features at the snapshot of environment `i`; NaN where one has no value. They are for
    /// oracles, never for policies.
    pub fn hidden(&self, i: usize) -> &[f32] {
        self.market().tables.hidden(self.snapshot(i))
    }

    /// The names of the hidden features.
    pub fn hidden_names(&self) -> &[String] {
        &self.market().tables.spec.hidden
    }

    /// The configuration.
    pub fn config(&self) -> &OptionsConfig {
        &self.market().config
    }
}
