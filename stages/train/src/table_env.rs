//! A synthetic environment of negligible cost, for trials: `device: auto` and `runner bench` time updates on
//! it.

use stages_core::StageError;
use stages_env::{ActionSpace, Actions, BatchEnv, EnvSpec, StepBuffers};
use stages_numerics::random::Random;

/// B environments that show the rows of a random table in turn, whatever the actions.
pub(crate) struct TableEnv {
    spec: EnvSpec,
    table: Vec<f32>,
    at: Vec<usize>,
}

impl TableEnv {
    const LEN: usize = 2521;
    const EPISODE: usize = 252;

    /// `n_envs` environments with the observations and actions of `spec`.
    pub(crate) fn new(spec: &EnvSpec, n_envs: usize) -> Self {
        let mut random = Random::new(&[1]);
        Self {
            table: (0..Self::LEN * spec.obs_dim())
                .map(|_| random.normal() as f32)
                .collect(),
            spec: spec.clone(),
            at: (0..n_envs).map(|i| i * 37 % Self::LEN).collect(),
        }
    }

    /// Shows the next row; `action` returns the action of environment i as a number.
    fn show(&mut self, action: impl Fn(usize) -> f32, out: StepBuffers<'_>) {
        let d = self.spec.obs_dim();
        out.action_mask.fill(true);
        for (i, (at, obs)) in self.at.iter_mut().zip(out.obs.chunks_exact_mut(d)).enumerate() {
            *at = (*at + 1) % Self::LEN;
            obs.copy_from_slice(&self.table[*at * d..(*at + 1) * d]);
            out.reward[i] = obs[0] * action(i);
            out.terminated[i] = at.is_multiple_of(Self::EPISODE);
        }
    }
}

impl BatchEnv for TableEnv {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.at.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        out.obs.fill(0.0);
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let a = self.spec.action_space.num_components();
        match self.spec.action_space {
            ActionSpace::Continuous { .. } => {
                let actions = actions.continuous(self.at.len(), a)?;
                self.show(|i| actions[i * a], out);
            }
            ActionSpace::MultiDiscrete { .. } => {
                let actions = actions.multi_discrete(self.at.len(), a)?;
                self.show(|i| actions[i * a] as f32 - 2.0, out);
            }
            // Candidates are scored on the CPU alone, so that no trial has them.
            ActionSpace::Discrete { .. } | ActionSpace::Candidates { .. } => {
                let actions = actions.discrete(self.at.len())?;
                self.show(|i| actions[i] as f32 - 2.0, out);
            }
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
