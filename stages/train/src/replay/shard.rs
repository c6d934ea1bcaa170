//! The rows of a shard of a batch, as actors and critics read them.

use super::{Outcome, Replay};
use stages_policy::MlpRun;
use stages_policy::kernels::aligned::Aligned;

/// The inputs of SAC's and TD3's networks for a shard of a batch, and their buffers.
#[derive(Default)]
pub(crate) struct Rows {
    /// The observations `[n, D]` before and after the action.
    pub obs: Vec<f32>,
    pub next_obs: Vec<f32>,
    /// Pairs of observation and action `[n, D + A]`: as taken, with the policy's present action, and for the
    /// next step.
    pub taken: Vec<f32>,
    pub own: Vec<f32>,
    pub next: Vec<f32>,
    /// The rewards, and the discount factors of the values after them `[n]`.
    pub outcomes: Vec<Outcome>,
    /// The targets of the critics `[n]`.
    pub target: Vec<f32>,
    /// The critics' values `[n]`, one critic after another.
    pub values: Vec<f32>,
    /// The gradients of the loss with respect to the policy's actions `[n, A]`, and with respect to a
    /// critic's input `[n, D + A]`.
    pub grad_action: Vec<f32>,
    pub grad_input: Vec<f32>,
    pub actor: MlpRun,
    pub critics: Vec<MlpRun>,
    /// The gradients of the critics, one after another, and of the actor.
    pub critic_gradient: Aligned,
    pub actor_gradient: Aligned,
}

impl Rows {
    /// Copies transitions, with outcomes over `n_steps` steps.
    pub(crate) fn load(&mut self, replay: &Replay, indices: &[u32], n_steps: usize, gamma: f64) {
        for floats in [
            &mut self.obs,
            &mut self.next_obs,
            &mut self.taken,
            &mut self.own,
            &mut self.next,
        ] {
            floats.clear();
        }
        self.outcomes.clear();
        for &row in indices {
            let row = row as usize;
            let outcome = replay.outcome(row, n_steps, gamma);
            let (obs, next_obs, action) =
                (replay.obs(row), replay.next_obs(outcome.last), replay.action(row));
            self.obs.extend_from_slice(obs);
            self.next_obs.extend_from_slice(next_obs);
            for (pairs, obs) in [(&mut self.taken, obs), (&mut self.own, obs), (&mut self.next, next_obs)] {
                pairs.extend_from_slice(obs);
                pairs.extend_from_slice(action);
            }
            self.outcomes.push(outcome);
        }
        self.target.resize(indices.len(), 0.0);
        self.grad_action.resize(indices.len() * replay.k, 0.0);
        self.grad_input.resize(self.own.len(), 0.0);
    }
}

/// Writes actions `[n, A]` into the pairs `[n, D + A]`.
pub(crate) fn put_actions(actions: &[f32], a: usize, pairs: &mut [f32]) {
    let width = pairs.len() * a / actions.len().max(1);
    for (pair, action) in pairs.chunks_exact_mut(width).zip(actions.chunks_exact(a)) {
        pair[width - a..].copy_from_slice(action);
    }
}

/// Adds the actions' part of the gradients with respect to pairs.
pub(crate) fn add_grad_actions(grad_pairs: &[f32], a: usize, grad_actions: &mut [f32]) {
    let width = grad_pairs.len() * a / grad_actions.len().max(1);
    for (grad_pair, grad_action) in grad_pairs.chunks_exact(width).zip(grad_actions.chunks_exact_mut(a)) {
        for (sum, x) in grad_action.iter_mut().zip(&grad_pair[width - a..]) {
            *sum += x;
        }
    }
}
