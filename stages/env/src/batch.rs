//! The interface between environments and the programs that step them.

use crate::actions::Actions;
use crate::candidates::CandidateBatch;
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use stages_core::StageError;

/// The buffers of a step of B environments; owned by the caller and reused.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Observations `[B, D]`, row-major. Where an episode has just ended, the first observation of the next
    /// one.
    pub obs: Vec<f32>,
    /// Rewards `[B]`.
    pub reward: Vec<f32>,
    /// `[B]`: the episode ended in a state of no value (ruin, a fallen pole).
    pub terminated: Vec<bool>,
    /// `[B]`: a limit of time cut the episode off; the value of [`Step::final_obs`] still counts.
    pub truncated: Vec<bool>,
    /// `[B, D]`: the last observation of the episode that ended; valid only where one did.
    pub final_obs: Vec<f32>,
    /// Action masks `[B, M]` of the state that `obs` shows, true where a choice is allowed; M is
    /// [`ActionSpace::mask_len`](crate::ActionSpace::mask_len).
    pub action_mask: Vec<bool>,
}

impl Step {
    /// Buffers for `num_envs` environments.
    pub fn new(spec: &EnvSpec, num_envs: usize) -> Self {
        Self {
            obs: vec![0.0; num_envs * spec.obs_dim()],
            reward: vec![0.0; num_envs],
            terminated: vec![false; num_envs],
            truncated: vec![false; num_envs],
            final_obs: vec![0.0; num_envs * spec.obs_dim()],
            action_mask: vec![true; num_envs * spec.action_space.mask_len()],
        }
    }

    /// Borrows all buffers, for a step to write.
    pub fn buffers(&mut self) -> StepBuffers<'_> {
        StepBuffers {
            obs: &mut self.obs,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            final_obs: &mut self.final_obs,
            action_mask: &mut self.action_mask,
        }
    }
}

/// The buffers that a step writes, with the shapes of [`Step`]'s. Some may lie elsewhere than in a [`Step`]:
/// `StepBuffers { obs, action_mask, ..step.buffers() }`.
#[derive(Debug)]
pub struct StepBuffers<'a> {
    /// Observations `[B, D]`.
    pub obs: &'a mut [f32],
    /// Rewards `[B]`.
    pub reward: &'a mut [f32],
    /// `[B]`: true where the episode ended in a state without value.
    pub terminated: &'a mut [bool],
    /// `[B]`: true where a time limit cut the episode off.
    pub truncated: &'a mut [bool],
    /// `[B, D]`: the last observation of the episode that ended.
    pub final_obs: &'a mut [f32],
    /// Action masks `[B, M]`.
    pub action_mask: &'a mut [bool],
}

impl StepBuffers<'_> {
    /// Reborrows the buffers, for a call that takes them.
    pub fn again(&mut self) -> StepBuffers<'_> {
        StepBuffers {
            obs: self.obs,
            reward: self.reward,
            terminated: self.terminated,
            truncated: self.truncated,
            final_obs: self.final_obs,
            action_mask: self.action_mask,
        }
    }

    /// Clears all but the observations: no reward, no end of an episode, every choice allowed.
    pub fn clear(&mut self) {
        self.reward.fill(0.0);
        self.terminated.fill(false);
        self.truncated.fill(false);
        self.final_obs.fill(0.0);
        self.action_mask.fill(true);
    }
}

/// B environments stepped together. Environment i depends on (seed, i) alone, never on the number of threads.
/// An episode that ends is followed by the next in the same step.
pub trait BatchEnv: Send {
    /// The observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// B, the number of environments.
    fn num_envs(&self) -> usize;

    /// Starts an episode in every environment: writes observations and action masks, clears the rest.
    fn reset(&mut self, out: StepBuffers<'_>);

    /// Takes one action in each environment. A masked choice, or one beyond the space, counts as the first
    /// that is not masked, which is choice 0 but in a user's program; a continuous component beyond its
    /// bounds counts as the nearer bound.
    ///
    /// # Errors
    /// When `actions` are not of the action space's kind, or not one for each environment; then no
    /// environment is stepped. When the reward is an expression of the user's whose value is not finite. When
    /// a user's program fails, in this step or in the [`BatchEnv::reset`] before.
    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError>;

    /// Opens other environments of the same artifact over the tables of these, which are neither read nor
    /// mapped again; observations stay in the normalisation of these. `None` where there is nothing to share.
    ///
    /// # Errors
    /// When `options` asks for no environment, or for dates that there are none of.
    fn beside(&self, _options: &OpenOptions) -> Result<Option<Box<dyn BatchEnv>>, StageError> {
        Ok(None)
    }

    /// Overwrites `batch` with the states and their candidates, where the action space is
    /// [`ActionSpace::Candidates`](crate::ActionSpace::Candidates); others have none.
    fn observe_candidates(&mut self, _batch: &mut CandidateBatch) {}

    /// Counts since the environments were opened, under the names of metrics; most environments have none.
    fn named_counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The complete state on which later steps depend, for checkpoints.
    fn save(&self) -> Vec<u8>;

    /// Goes back to a saved state.
    ///
    /// # Errors
    /// Fails when `state` was not saved by an environment of this kind and size.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}
