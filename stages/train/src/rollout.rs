//! The rollout buffer: N steps of B environments as a policy observed them.

use crate::learner::Learner;
use crate::phase_timer::Phase;
use crate::settings::{Common, SequenceSettings};
use stages_core::StageError;
use stages_env::CandidateBatch;
use stages_env::{ActionSpace, Actions, Step, StepBuffers};
use stages_policy::{Minibatch, Observed};

/// The buffers of a rollout, all time-major and reused: after the first rollout, collecting allocates
/// nothing. Environments write where learning reads.
#[derive(Default)]
pub(crate) struct Rollout {
    /// The observations `[N + 1, B, D]` and the action masks `[N + 1, B, A]`; the last row is that after the
    /// last step.
    pub obs: Vec<f32>,
    pub mask: Vec<bool>,
    /// `[N + 1, B]`: true where an episode begins with the step; the previous episode ended with the step
    /// before.
    pub episode_start: Vec<bool>,
    /// The states and candidates of each step, and after the last one `[N + 1]`, where actions are
    /// candidates.
    pub candidates: Vec<CandidateBatch>,
    /// The recurrent states before the burn-in of each sequence, or before the sequence if there is no
    /// burn-in `[N / length, B, S]`.
    pub state: Vec<f32>,
    /// The last step of the environments.
    pub step: Step,
    pub sequences: SequenceSettings,
    /// The actions of a step as the environments take them `[B, A]`, where the policy's are scaled.
    scaled: Vec<f32>,
    n_steps: usize,
    n_envs: usize,
}

impl Rollout {
    /// An empty buffer whose rollouts are cut into the given sequences.
    pub(crate) fn of(sequences: SequenceSettings) -> Self {
        Self {
            sequences,
            ..Self::default()
        }
    }

    fn sequence_length(&self) -> usize {
        self.sequences.sequence_length.unwrap_or(self.n_steps)
    }

    /// Begins a rollout where the last one ended.
    pub(crate) fn begin(&mut self, common: &Common, learner: &mut Learner) {
        let (n, b) = (common.rollouts.n_steps * common.training.n_envs, common.training.n_envs);
        let (spec, state) = (learner.env.spec(), &mut learner.state);
        (self.n_steps, self.n_envs) = (common.rollouts.n_steps, b);
        let (d, a) = (spec.obs_dim(), spec.action_space.num_outputs());
        self.obs.resize((n + b) * d, 0.0);
        self.mask.resize((n + b) * a, true);
        self.episode_start.resize(n + b, false);
        if self.step.reward.len() != b {
            self.step = Step::new(spec, b);
        }
        learner.model.refresh(&mut state.state);
        let count = self.n_steps / self.sequence_length();
        self.state.resize(count * state.state.len(), 0.0);
        self.keep_state(0, &state.state);
        self.obs[..b * d].copy_from_slice(&state.obs);
        self.mask[..b * a].copy_from_slice(&state.mask);
        self.episode_start[..b].copy_from_slice(&state.episode_start);
        if let ActionSpace::Candidates { .. } = spec.action_space {
            self.candidates
                .resize_with(common.rollouts.n_steps + 1, CandidateBatch::default);
            learner.env.observe_candidates(&mut self.candidates[0]);
        }
    }

    /// Keeps the recurrent states before step t if a sequence, or its burn-in, begins there.
    pub(crate) fn keep_state(&mut self, t: usize, states: &[f32]) {
        let (length, burn_in) = (self.sequence_length(), self.sequences.burn_in);
        // Networks without a memory have none.
        let rows = self.state.chunks_exact_mut(states.len().max(1)).enumerate();
        for (_, kept) in rows.filter(|(i, _)| (i * length).saturating_sub(burn_in) == t) {
            kept.copy_from_slice(states);
        }
    }

    /// The observations of step t, as a policy sees them.
    pub(crate) fn observed(&self, t: usize) -> Observed<'_> {
        let b = self.n_envs;
        let (d, a) = self.sizes();
        Observed {
            obs: &self.obs[t * b * d..(t + 1) * b * d],
            mask: &self.mask[t * b * a..(t + 1) * b * a],
            episode_start: &self.episode_start[t * b..(t + 1) * b],
            candidates: self.candidates.get(t),
        }
    }

    /// Takes the actions of step t, and writes the observations of the next step.
    pub(crate) fn step(
        &mut self,
        t: usize,
        actions: Actions,
        learner: &mut Learner,
    ) -> Result<(), StageError> {
        let b = self.n_envs;
        let (d, a) = self.sizes();
        learner.timer.start(Phase::Environment);
        let actions = match (actions, learner.env.spec().action_space.bounds()) {
            (Actions::Continuous(drawn), Some(bounds)) => {
                self.scaled.clear();
                self.scaled.extend_from_slice(drawn);
                if learner.model.architecture().head.is_scaled() {
                    bounds.scale(&mut self.scaled);
                }
                learner.at_a_bound.see(bounds, &self.scaled);
                Actions::Continuous(&self.scaled)
            }
            (other, _) => other,
        };
        let state = &mut learner.state;
        let obs = &mut self.obs[(t + 1) * b * d..(t + 2) * b * d];
        let mask = &mut self.mask[(t + 1) * b * a..(t + 2) * b * a];
        let normalised = state.statistics.normalisation.is_some() || state.statistics.obs_rms.is_some();
        let mut out = self.step.buffers();
        if !out.action_mask.is_empty() {
            out.action_mask = mask;
        }
        if normalised {
            learner.env.step(actions, out)?;
            state.statistics.observe(&self.step.obs, obs);
        } else {
            learner.env.step(actions, StepBuffers { obs, ..out })?;
        }
        if let Some(candidates) = self.candidates.get_mut(t + 1) {
            learner.env.observe_candidates(candidates);
        }
        state.record_step(&self.step);
        for (i, start) in self.episode_start[(t + 1) * b..(t + 2) * b].iter_mut().enumerate() {
            *start = self.step.terminated[i] || self.step.truncated[i];
        }
        Ok(())
    }

    /// Ends the rollout: copies the observations after the last step to the train state.
    pub(crate) fn end(&self, learner: &mut Learner) {
        let n = self.n_steps * self.n_envs;
        let (d, a) = self.sizes();
        let state = &mut learner.state;
        state.obs.copy_from_slice(&self.obs[n * d..]);
        state.mask.copy_from_slice(&self.mask[n * a..]);
        state.episode_start.copy_from_slice(&self.episode_start[n..]);
    }

    /// The length of an observation, and the length of an action mask.
    fn sizes(&self) -> (usize, usize) {
        let rows = (self.n_steps + 1) * self.n_envs;
        (self.obs.len() / rows, self.mask.len() / rows)
    }

    /// The rollout as a minibatch, without sequences chosen yet: single steps where the network has no
    /// memory.
    pub(crate) fn minibatch(&self, common: &Common) -> Minibatch<'_> {
        let n = self.n_steps * self.n_envs;
        let (steps, columns) = if common.network.is_recurrent() {
            let length = self.sequence_length();
            (length, self.n_envs)
        } else {
            (1, n)
        };
        Minibatch {
            steps,
            columns,
            obs: &self.obs,
            episode_start: &self.episode_start[..n],
            state: &self.state,
            candidates: &self.candidates,
            indices: &[],
        }
    }
}
