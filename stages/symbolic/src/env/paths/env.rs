//! Environments of path finding, stepped together: each asks a query, and terminates after `hops` steps with
//! a reward of 1 at the answer, elsewhere of 0 or what [`SoftRewardConfig`](super::SoftRewardConfig) says.

use super::counts::PathCounts;
use super::observe::observe;
use super::soft_reward::SoftReward;
use super::state::PathState;
use super::task::PathTask;
use crate::env::batch::{Described as _, Envs, Place, Step, Task, Work};
use stages_env::CandidateBatch;
use stages_numerics::random::Random;

/// A range of environments.
pub type PathEnvs = Envs<PathTask>;

/// The name of the stream from which `edge_dropout` draws.
const DROPOUT: u64 = u64::from_le_bytes(*b"dropout\0");

impl PathTask {
    /// Leaves out edges of the present state, drawn by (seed, environment, episode, step).
    fn drop_edges(&self, place: &Place, state: &mut PathState, work: &mut Work<Self>) {
        if self.edge_dropout > 0.0 {
            let step = state.walked().len() as u64;
            let mut random = Random::new(&[place.seed, DROPOUT, place.env, place.episode, step]);
            let Work { buffers, counts } = work;
            state.drop_edges(self, self.edge_dropout, &mut random, buffers, counts);
        }
    }
}

impl Task for PathTask {
    type Episode = PathState;
    /// The state after all steps.
    type End = PathState;
    /// The ranges of edges that `edge_dropout` leaves out.
    type Buffers = Vec<[u32; 2]>;
    type Counts = PathCounts;

    fn buffers(&self) -> Vec<[u32; 2]> {
        Vec::new()
    }

    fn start(&self, place: &Place, state: &mut PathState, work: &mut Work<Self>) {
        state.start(self, self.query(place.query(self.size())), &mut work.counts);
        self.drop_edges(place, state, work);
    }

    fn step(
        &self,
        place: &Place,
        action: u32,
        state: &mut PathState,
        end: &mut PathState,
        work: &mut Work<Self>,
    ) -> Step {
        state.walk(self, action, &mut work.counts);
        if !state.is_over(self) {
            self.drop_edges(place, state, work);
            return Step::default();
        }
        let soft = |soft: &SoftReward| soft.reward(&state.query, state.current);
        let reward = match state.is_right() {
            true => 1.0,
            false => self.soft_reward.as_deref().map_or(0.0, soft),
        };
        std::mem::swap(state, end);
        Step {
            reward,
            is_terminated: true,
            is_truncated: false,
        }
    }

    fn observe<'a>(
        &self,
        states: impl Iterator<Item = &'a PathState>,
        _: &mut Work<Self>,
        batch: &mut CandidateBatch,
    ) {
        observe(self, states, batch);
    }

    fn taken(state: &PathState) -> (u32, &[u32]) {
        (0, state.walked())
    }

    fn replay(
        &self,
        place: &Place,
        (_, walked): (u32, &[u32]),
        state: &mut PathState,
        work: &mut Work<Self>,
    ) -> bool {
        let is_path = walked.len() < self.hops && state.replay(self, walked, &mut work.counts);
        if is_path && !walked.is_empty() {
            self.drop_edges(place, state, work);
        }
        is_path
    }
}
