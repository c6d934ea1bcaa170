//! The batch of environments of `env/options`, and the meaning of actions.

use super::baseline::decide;
use super::ledger::Position;
use super::market::Market;
use super::simulator::{Act, OptionsSimulator};
use super::state::Account;
use crate::batch::StepBuffers;
use crate::options::config::{MAX_ACTIONS, OptionsConfig};
use crate::options::order::Decision;
use crate::portfolio::{BaselineName, PortfolioEnv};

/// B environments that trade options on one underlying.
pub type OptionsEnv = PortfolioEnv<OptionsSimulator>;

/// The state of an environment as a rule of the menu sees it.
#[derive(Clone, Copy, Debug)]
pub struct MenuState<'a> {
    /// The number of the present snapshot, among those of all worlds.
    pub snapshot: usize,
    /// The number of lines held.
    pub lines: usize,
    /// The hidden features at the snapshot; NaN where one has no value. They are for oracles, never for
    /// policies.
    pub hidden: &'a [f32],
    /// The actions that the state allows, by bit.
    allowed: u64,
}

impl<'a> MenuState<'a> {
    fn new(market: &'a Market, account: &Account) -> Self {
        let snapshot = account.t as usize;
        // A menu of 64 actions leaves no bit over.
        let of_menu = u64::MAX >> (MAX_ACTIONS - market.strategies.names.len().min(MAX_ACTIONS));
        Self {
            snapshot,
            lines: account.lines as usize,
            hidden: market.tables.hidden(snapshot),
            allowed: account.action_mask & of_menu,
        }
    }

    /// Returns whether the state allows an action of the menu.
    pub fn allows(&self, action: u32) -> bool {
        self.allowed.checked_shr(action).is_some_and(|mask| mask & 1 == 1)
    }
}

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

    /// The state of environment `i` as a rule of the menu sees it.
    pub fn menu_state(&self, i: usize) -> MenuState<'_> {
        MenuState::new(self.market(), self.states.view(i).account)
    }

    /// Steps each environment by a rule as many times as `steps` has columns, one environment after another
    /// and in parallel. `decide` is given what it has kept of the episode, which begins with the default.
    /// Writes the snapshot from which each step goes, and its reward, to `steps` `[B, T]`.
    pub fn step_rule<M: Default>(
        &mut self,
        decide: impl Fn(&mut M, MenuState<'_>) -> Decision + Sync,
        steps: &mut [(u32, f32)],
    ) {
        self.run_each(
            &|simulator, kept, env| {
                Act::Decision(decide(kept, MenuState::new(&simulator.market, env.account)))
            },
            steps,
        );
    }

    /// Takes the decision of a baseline in every environment.
    pub fn step_baseline(&mut self, baseline: BaselineName, out: StepBuffers<'_>) {
        let seed = self.course.seed;
        self.run(
            &|simulator, i, env| Act::Decision(decide(baseline, &simulator.market, seed, i, env.account)),
            out,
        );
    }

    /// The lines of environment `i`.
    pub fn positions(&self, i: usize) -> Vec<Position> {
        let t = self.snapshot(i);
        let lines = &self.held(i)[..self.states.view(i).account.lines as usize];
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
