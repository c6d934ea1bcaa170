//! Burn-in: the recurrent states before sequences are computed again with the present parameters, from the
//! steps before the sequences (Kapturowski and others, "Recurrent experience replay in distributed
//! reinforcement learning", 2019).

use crate::rollout::Rollout;
use stages_env::CandidateBatch;
use stages_policy::{Minibatch, Model, Observed, Output};

/// The states of a rollout's sequences, and the buffers of a step.
pub(crate) struct BurnIn<'a> {
    rollout: &'a Rollout,
    steps: usize,
    /// The states `[N / length, B, S]`, valid for the sequences of the last minibatch.
    states: Vec<f32>,
    /// The rows of the sequences whose burn-in includes the current step.
    rows: Vec<usize>,
    obs: Vec<f32>,
    mask: Vec<bool>,
    episode_start: Vec<bool>,
    candidates: CandidateBatch,
    state: Vec<f32>,
    output: Output,
}

impl<'a> BurnIn<'a> {
    /// The burn-in of a rollout's sequences; `None` if they have none.
    pub(crate) fn new(rollout: &'a Rollout) -> Option<Self> {
        let steps = rollout.sequences.burn_in;
        (steps > 0).then(|| Self {
            rollout,
            steps,
            states: rollout.state.clone(),
            rows: Vec::new(),
            obs: Vec::new(),
            mask: Vec::new(),
            episode_start: Vec::new(),
            candidates: CandidateBatch::default(),
            state: Vec::new(),
            output: Output::default(),
        })
    }

    /// The states before the sequences of a minibatch `[N / length, B, S]`: the states of the rollout, run
    /// forward without a loss. A sequence with fewer steps before it in the rollout has a shorter burn-in,
    /// and the first sequence of an environment has none.
    pub(crate) fn run(&mut self, minibatch: &Minibatch, model: &mut dyn Model) -> &[f32] {
        let (b, d) = (minibatch.columns, model.architecture().obs_dim);
        let (s, a) = (
            model.architecture().state_len(),
            model.architecture().head.num_outputs(),
        );
        for &first in minibatch.indices {
            let row = minibatch.state_row(first);
            self.states[row * s..(row + 1) * s].copy_from_slice(&self.rollout.state[row * s..(row + 1) * s]);
        }
        for before in (1..=self.steps).rev() {
            self.rows.clear();
            self.obs.clear();
            self.episode_start.clear();
            self.state.clear();
            if let Some(first) = minibatch.candidates.first() {
                self.candidates.clear(first.width);
            }
            for &first in minibatch.indices {
                let Some(i) = (first as usize).checked_sub(before * b) else {
                    continue;
                };
                let row = minibatch.state_row(first);
                self.rows.push(row);
                self.obs.extend_from_slice(&minibatch.obs[i * d..(i + 1) * d]);
                self.episode_start.push(minibatch.episode_start[i]);
                if let Some(step) = minibatch.candidates.get(i / b) {
                    self.candidates.push(step, i % b);
                }
                self.state.extend_from_slice(&self.states[row * s..(row + 1) * s]);
            }
            if self.rows.is_empty() {
                continue;
            }
            // Actions are not asked for, so that all of them may be allowed.
            self.mask.resize(self.rows.len() * a, true);
            let input = Observed {
                obs: &self.obs,
                mask: &self.mask,
                episode_start: &self.episode_start,
                candidates: (!minibatch.candidates.is_empty()).then_some(&self.candidates),
            };
            model.forward(&input, &mut self.state, &mut self.output);
            for (&row, state) in self.rows.iter().zip(self.state.chunks_exact(s)) {
                self.states[row * s..(row + 1) * s].copy_from_slice(state);
            }
        }
        &self.states
    }
}
