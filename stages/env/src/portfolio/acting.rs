//! One decision, for trading outside: [`Acting`] for every market.

use super::env::{PortfolioEnv, begin};
use super::simulator::Simulator;
use super::state::{EnvState, EnvView};
use crate::acting::{Acting, ActingOrders, ActingWorld, Holdings};
use crate::actions::Actions;
use crate::batch::StepBuffers;
use crate::ranges::StepRows;
use crate::split::SnapshotRange;
use datasets::SnapshotTime;
use stages_core::StageError;

/// A market of which one decision is asked: [`Acting`] has what each function gives.
pub trait ActingSimulator: Simulator {
    fn holdings(&self, env: EnvView<'_, Self::Parts>) -> Holdings;
    /// Replaces what is held.
    ///
    /// # Errors
    /// When a position is not known, or has no room.
    fn hold(&self, env: &mut EnvState<'_, Self::Parts>, holdings: &Holdings) -> Result<(), StageError>;
    fn capital(&self) -> Option<f64>;
    fn choices(&self) -> Vec<String>;
    fn masked(&self, env: &EnvState<'_, Self::Parts>) -> Vec<Option<&'static str>>;
    /// Carries out an action in a copy of the environment.
    ///
    /// # Errors
    /// When the action is of another kind or shape.
    fn orders(
        &self,
        env: &mut EnvState<'_, Self::Parts>,
        action: Actions<'_>,
    ) -> Result<ActingOrders, StageError>;
}

impl<S: ActingSimulator> Acting for PortfolioEnv<S> {
    fn worlds(&self) -> Vec<ActingWorld> {
        let world = |range: &SnapshotRange| ActingWorld {
            name: self.simulator.worlds().name(range.first).to_owned(),
            first: range.first,
            last: range.last,
        };
        self.course.ranges.iter().map(world).collect()
    }

    fn time(&self, snapshot: usize) -> SnapshotTime {
        self.simulator.time(snapshot)
    }

    fn begin_at(&mut self, snapshot: usize) {
        self.course.begin_at(snapshot);
        begin(&self.simulator, &self.course, 0, &mut self.states.rows().env(0));
        self.forget();
    }

    fn show(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        let mut out = StepRows::new(out, self.simulator.spec());
        let mut states = self.states.rows();
        self.simulator.observe(&states.env(0), out.obs.row(0));
        self.simulator.mask(&states.env(0), out.action_mask.row(0));
    }

    fn holdings(&self) -> Holdings {
        self.simulator.holdings(self.states.view(0))
    }

    fn hold(&mut self, holdings: &Holdings) -> Result<(), StageError> {
        let mut states = self.states.rows();
        let mut env = states.env(0);
        self.simulator.hold(&mut env, holdings)?;
        *env.moments = self.simulator.reward().moments();
        Ok(())
    }

    fn capital(&self) -> Option<f64> {
        self.simulator.capital()
    }

    fn choices(&self) -> Vec<String> {
        self.simulator.choices()
    }

    fn masked(&self) -> Vec<Option<&'static str>> {
        self.simulator.masked(&self.states.clone().rows().env(0))
    }

    fn orders(&self, action: Actions<'_>) -> Result<ActingOrders, StageError> {
        self.simulator.orders(&mut self.states.clone().rows().env(0), action)
    }
}
