//! The train state: all that one update of training leaves to the next, and the contents of a checkpoint.

use crate::running_mean_std::{CLIP, RunningMeanStd};
use crate::selection::{Best, Judged, Selected, Selection};
use stages_core::StageError;
use stages_env::{EnvSpec, Normalisation, Step};
use stages_numerics::dispatch::InstructionSet;
use stages_policy::kernels::elementwise;
use stages_policy::{Architecture, Policy};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of last episodes over which the reported return is averaged, as in stable-baselines3.
pub(crate) const WINDOW: usize = 100;

/// The state of a training between updates.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TrainState {
    /// Environment steps done so far.
    pub step: u64,
    /// The number of rollouts learned from.
    pub update: u64,
    /// The number of optimiser steps.
    pub optimiser_steps: u64,
    /// The number of episodes ended.
    pub episodes: u64,
    /// The parameters `[P]`, first those of the policy, then those of critics that acting does not need; and
    /// Adam's moments, of which RMSprop has only the second.
    pub params: Vec<f32>,
    pub first_moment: Vec<f32>,
    pub second_moment: Vec<f32>,
    /// The environments' saved state; current only at the start of an update.
    pub env: Vec<u8>,
    /// The policy's next observations `[B, D]`, normalised; their action masks `[B, A]`; the episode starts
    /// `[B]`; and the recurrent states `[B, S]`.
    pub obs: Vec<f32>,
    pub mask: Vec<bool>,
    pub episode_start: Vec<bool>,
    pub state: Vec<f32>,
    /// An algorithm's own state, such as target networks; empty for most.
    pub extra: Vec<f32>,
    /// The description of files beside the checkpoint that belong to it, as JSON; empty for most.
    pub beside: String,
    /// The return and the length so far of each running episode.
    pub returns: Vec<f64>,
    pub lengths: Vec<f64>,
    /// The return and the length of each of the last episodes.
    pub recent: VecDeque<(f64, f64)>,
    /// The statistics of observations and rewards.
    pub statistics: Statistics,
    /// The discounted returns of the running episodes, if rewards are normalised.
    pub discounted: Vec<f64>,
    /// The metrics so far, as JSON lines.
    pub metrics: String,
    /// The best policy in validation so far.
    pub selection: Selection,
}

/// The statistics by which observations and rewards are normalised.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    /// The statistics of observations, if they are updated in training.
    pub obs_rms: Option<RunningMeanStd>,
    /// The statistics of discounted returns, if rewards are normalised.
    pub return_rms: Option<RunningMeanStd>,
    /// The discount factor of those returns, which is the agent's.
    pub return_gamma: f64,
    /// The present normalisation of observations: from [`Statistics::obs_rms`], or fixed.
    pub normalisation: Option<Normalisation>,
}

impl TrainState {
    /// The start of training: `first` is the first step of the environments.
    pub(crate) fn new(
        spec: &EnvSpec,
        params: Vec<f32>,
        statistics: Statistics,
        state_len: usize,
        first: &Step,
    ) -> Self {
        let b = first.reward.len();
        let mut train_state = Self {
            first_moment: vec![0.0; params.len()],
            second_moment: vec![0.0; params.len()],
            params,
            obs: first.obs.clone(),
            mask: vec![true; b * spec.action_space.num_outputs()],
            episode_start: vec![true; b],
            state: vec![0.0; b * state_len],
            returns: vec![0.0; b],
            lengths: vec![0.0; b],
            statistics,
            discounted: vec![0.0; b],
            ..Self::default()
        };
        if spec.action_space.mask_len() > 0 {
            train_state.mask.copy_from_slice(&first.action_mask);
        }
        train_state.statistics.observe(&first.obs, &mut train_state.obs);
        train_state
    }

    /// Counts a step: episodes' returns and lengths, statistics of rewards.
    pub(crate) fn record_step(&mut self, step: &Step) {
        if let Some(rms) = &mut self.statistics.return_rms {
            for (sum, &reward) in self.discounted.iter_mut().zip(&step.reward) {
                *sum = *sum * self.statistics.return_gamma + f64::from(reward);
            }
            rms.update(&self.discounted);
        }
        for i in 0..step.reward.len() {
            self.returns[i] += f64::from(step.reward[i]);
            self.lengths[i] += 1.0;
            if step.terminated[i] || step.truncated[i] {
                self.record_episode(self.returns[i], self.lengths[i]);
                (self.returns[i], self.lengths[i], self.discounted[i]) = (0.0, 0.0, 0.0);
            }
        }
    }

    /// Adds parameters that are learned but are not the policy's.
    pub(crate) fn add_params(&mut self, params: &[f32]) {
        self.params.extend_from_slice(params);
        self.first_moment.resize(self.params.len(), 0.0);
        self.second_moment.resize(self.params.len(), 0.0);
    }

    /// Counts an episode that has ended.
    pub(crate) fn record_episode(&mut self, value: f64, length: f64) {
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back((value, length));
        self.episodes += 1;
    }

    /// The mean return and length of the last episodes, if any has ended.
    pub(crate) fn recent_mean(&self) -> Option<(f64, f64)> {
        let n = self.recent.len() as f64;
        let sum = self.recent.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        (!self.recent.is_empty()).then(|| (sum.0 / n, sum.1 / n))
    }

    /// The policy that the training hands on, trained by `kind`: the best in validation, or else the last.
    pub(crate) fn policy(
        &self,
        kind: &str,
        spec: &EnvSpec,
        architecture: &Architecture,
    ) -> Result<Policy, StageError> {
        let (normalisation, params) = match &self.selection.best {
            Some(best) => (&best.normalisation, &best.params),
            None => (&self.statistics.normalisation, &self.params),
        };
        // Critics come after the policy.
        let params = params[..architecture.num_params()].to_vec();
        Policy::new(kind, spec, architecture, normalisation.clone(), params)
    }

    /// The choice of that policy by the metric `by`, if validation made it.
    pub(crate) fn selected(&self, by: &'static str) -> Option<Selected> {
        self.selection.best.as_ref().map(|best| Selected {
            step: best.step,
            of: self.step,
            by,
            value: best.value,
        })
    }

    /// Compares validated policies with the best one so far. The first is the present policy.
    pub(crate) fn select(&mut self, judged: Vec<Judged>, played: u64) {
        let selection = &mut self.selection;
        selection.since += 1;
        selection.played += played;
        selection.at = self.step;
        for Judged { value, params } in judged {
            let best = selection.best.as_ref();
            let improves = best.is_none_or(|best| value > best.value);
            let equals = best.is_some_and(|best| value == best.value && best.step < self.step);
            if !value.is_finite() || !(improves || equals) {
                continue;
            }
            if improves {
                selection.since = 0;
            }
            selection.best = Some(Arc::new(Best {
                step: self.step,
                value,
                params,
                normalisation: self.statistics.normalisation.clone(),
            }));
        }
    }
}

impl Statistics {
    /// Counts observations `[B, D]`, and normalises them into `obs`, if configured.
    pub(crate) fn observe(&mut self, raw: &[f32], obs: &mut [f32]) {
        if let Some(rms) = &mut self.obs_rms {
            rms.update(raw);
            rms.normalise(self.normalisation.get_or_insert_with(|| rms.normalisation()));
        }
        self.normalise(raw, obs);
    }

    /// Normalises observations into `obs`, if configured.
    pub(crate) fn normalise(&self, raw: &[f32], obs: &mut [f32]) {
        if let Some(n) = &self.normalisation {
            elementwise::normalise(InstructionSet::detect(), raw, &n.offset, &n.scale, n.clip, obs);
        }
    }

    /// A raw reward, normalised if configured.
    pub(crate) fn reward(&self, raw: f32) -> f32 {
        match &self.return_rms {
            None => raw,
            Some(rms) => (f64::from(raw) / rms.deviation(0)).clamp(-f64::from(CLIP), f64::from(CLIP)) as f32,
        }
    }
}

impl TrainState {
    /// True if a saved state has the sizes of a fresh one.
    pub(crate) fn fits(&self, fresh: &Self) -> bool {
        let sizes = |state: &Self| {
            let rms =
                |rms: &Option<RunningMeanStd>| rms.as_ref().map(|rms| rms.mean.len() + rms.variance.len());
            [
                state.params.len(),
                state.first_moment.len(),
                state.second_moment.len(),
                state.obs.len(),
                state.mask.len(),
                state.episode_start.len(),
                state.state.len(),
                state.extra.len(),
                state.returns.len(),
                state.lengths.len(),
                state.discounted.len(),
            ]
            .map(Some)
            .into_iter()
            .chain([rms(&state.statistics.obs_rms), rms(&state.statistics.return_rms)])
            .collect::<Vec<_>>()
        };
        let best = self.selection.best.as_ref();
        sizes(self) == sizes(fresh) && best.is_none_or(|best| best.params.len() <= fresh.params.len())
    }
}
