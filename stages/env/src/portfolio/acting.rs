//! One decision at a snapshot, for trading outside the program.

use super::env::{PortfolioEnv, begin};
use super::simulator::Simulator;
use super::state::{EnvState, EnvView};
use crate::acting::{ActingOrders, ActingWorld, Holdings};
use crate::actions::Actions;
use crate::batch::StepBuffers;
use crate::ranges::StepRows;
use crate::split::SnapshotRange;
use stages_core::StageError;

/// A market in which a single decision can be asked for.
pub trait ActingSimulator: Simulator {
    /// The holdings of an account.
    fn holdings(&self, env: EnvView<'_, Self::Parts>) -> Holdings;
    /// Replaces the holdings: the account then has no past.
    fn hold(&self, env: &mut EnvState<'_, Self::Parts>, holdings: &Holdings) -> Result<(), StageError>;
    /// The names of the choices of each component, in the order of the action mask; empty for continuous
    /// actions.
    fn choices(&self) -> Vec<String>;
    /// The reason why each choice is masked, in the order of the action mask; `None` where it is allowed.
    fn masked(&self, env: &EnvState<'_, Self::Parts>) -> Vec<Option<&'static str>>;
    /// Carries out an action of the action space in a copy of the environment, as though it were filled at
    /// this snapshot.
    fn orders(&self, env: &mut EnvState<'_, Self::Parts>, action: Actions<'_>) -> ActingOrders;
}

/// A single decision is that of environment 0.
impl<S: ActingSimulator> PortfolioEnv<S> {
    /// The worlds, each with the snapshots of the split that it was opened with; before
    /// [`PortfolioEnv::begin_at`].
    pub fn acting_worlds(&self) -> Vec<ActingWorld> {
        let world = |range: &SnapshotRange| ActingWorld {
            name: self.common().worlds.name(range.first).to_owned(),
            first: range.first,
            last: range.last,
        };
        self.course.ranges.iter().map(world).collect()
    }

    /// Starts an episode at a snapshot; no later snapshot ends the episode.
    pub fn begin_at(&mut self, snapshot: usize) {
        self.course.begin_at(snapshot);
        begin(&*self.simulator, &self.course, 0, &mut self.states.rows().env(0));
        self.forget();
    }

    /// Writes the observation and the action mask of the present state.
    pub fn show(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, &self.simulator.common().spec);
        let mut states = self.states.rows();
        self.simulator.observe(&states.env(0), out.obs.row(0));
        self.simulator.mask(&states.env(0), out.action_mask.row(0));
    }

    /// The holdings of environment 0; see [`ActingSimulator::holdings`].
    pub fn holdings(&self) -> Holdings {
        self.simulator.holdings(self.states.view(0))
    }

    /// Replaces the holdings of environment 0; see [`ActingSimulator::hold`].
    ///
    /// # Errors
    /// When the environment does not know a position, or has no room for it.
    pub fn hold(&mut self, holdings: &Holdings) -> Result<(), StageError> {
        let mut states = self.states.rows();
        let mut env = states.env(0);
        self.simulator.hold(&mut env, holdings)?;
        *env.moments = self.simulator.common().reward.moments();
        Ok(())
    }

    /// The reason why each choice is masked; see [`ActingSimulator::masked`].
    pub fn masked(&self) -> Vec<Option<&'static str>> {
        self.simulator.masked(&self.states.clone().rows().env(0))
    }

    /// The orders of an action in environment 0, which is left unchanged; see [`ActingSimulator::orders`].
    ///
    /// # Errors
    /// When the action is of another kind or shape.
    pub fn orders(&self, action: Actions<'_>) -> Result<ActingOrders, StageError> {
        self.common().spec.action_space.check(action, 1)?;
        Ok(self.simulator.orders(&mut self.states.clone().rows().env(0), action))
    }
}
