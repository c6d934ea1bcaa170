//! All that one update of training hands to the next: what a checkpoint holds.

use crate::ppo::settings::Settings;
use crate::running_mean_std::{CLIP, RunningMeanStd};
use crate::warm_start;
use rayon::prelude::*;
use stages_env::{EnvSpec, Normalisation, Step};
use stages_policy::kernels::{Level, elementwise};
use std::collections::VecDeque;

/// The discount of the return whose deviation rewards are divided by: `VecNormalize`'s default, whatever the agent's own.
const RETURN_GAMMA: f64 = 0.99;

/// Episodes that the reported return is the mean of, as in stable-baselines3.
pub(crate) const WINDOW: usize = 100;

/// State between updates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrainState {
    /// Environment steps done.
    pub step: u64,
    /// Rollouts learned from.
    pub update: u64,
    /// Steps of Adam.
    pub adam_steps: u64,
    /// Episodes ended.
    pub episodes: u64,
    /// `[P]`, and Adam's moments.
    pub params: Vec<f32>,
    pub adam_m: Vec<f32>,
    pub adam_v: Vec<f32>,
    /// The environments, as they save themselves; up to date at a boundary alone.
    pub env: Vec<u8>,
    /// What the policy sees next: `[B, D]`, normalised; `[B, A]`; `[B]`; `[B, S]`.
    pub obs: Vec<f32>,
    pub mask: Vec<bool>,
    pub episode_start: Vec<bool>,
    pub state: Vec<f32>,
    /// Return and length so far of each running episode.
    pub returns: Vec<f64>,
    pub lengths: Vec<f64>,
    /// Return and length of the last episodes.
    pub recent: VecDeque<(f64, f64)>,
    /// Of observations, if they are normalised.
    pub obs_rms: Option<RunningMeanStd>,
    /// Of discounted returns, if rewards are normalised, and those of the running episodes.
    pub return_rms: Option<RunningMeanStd>,
    pub discounted: Vec<f64>,
    /// The metrics so far, as JSON lines.
    pub metrics: String,
    /// What [`TrainState::obs_rms`] come to.
    pub normalisation: Option<Normalisation>,
}

impl TrainState {
    /// The start of training: `first` is what the environments showed on reset; `seen` is what another training came to
    /// normalise observations by, if this one begins with its policy.
    pub fn new(
        settings: &Settings,
        spec: &EnvSpec,
        params: Vec<f32>,
        seen: Option<&Normalisation>,
        state_len: usize,
        first: &Step,
    ) -> Self {
        let b = settings.n_envs;
        let moments = || match seen {
            Some(seen) => RunningMeanStd::of(seen, warm_start::WEIGHT * settings.rollout() as f64),
            None => RunningMeanStd::new(spec.obs_dim()),
        };
        let mut train_state = Self {
            step: 0,
            update: 0,
            adam_steps: 0,
            episodes: 0,
            adam_m: vec![0.0; params.len()],
            adam_v: vec![0.0; params.len()],
            params,
            env: Vec::new(),
            obs: vec![0.0; b * spec.obs_dim()],
            mask: vec![true; b * spec.action_space.num_outputs()],
            episode_start: vec![true; b],
            state: vec![0.0; b * state_len],
            returns: vec![0.0; b],
            lengths: vec![0.0; b],
            recent: VecDeque::new(),
            obs_rms: settings.normalize_obs.then(moments),
            return_rms: settings.normalize_reward.then(|| RunningMeanStd::new(1)),
            discounted: vec![0.0; b],
            metrics: String::new(),
            normalisation: None,
        };
        if spec.action_space.mask_len() > 0 {
            train_state.mask.copy_from_slice(&first.action_mask);
        }
        train_state.show(&first.obs);
        train_state
    }

    /// Takes in what the environments show at first.
    fn show(&mut self, raw: &[f32]) {
        let mut obs = std::mem::take(&mut self.obs);
        obs.copy_from_slice(raw);
        self.see(raw, &mut obs);
        self.obs = obs;
    }

    /// Takes in what the environments show, and normalises it into `obs`, if that is asked for.
    pub fn see(&mut self, raw: &[f32], obs: &mut [f32]) {
        if let Some(moments) = &mut self.obs_rms {
            moments.update(raw);
            let n = self.normalisation.get_or_insert_with(|| moments.normalisation());
            moments.normalise(n);
            elementwise::normalise(Level::detect(), raw, &n.offset, &n.scale, n.clip, obs);
        }
    }

    /// Takes in a step: episodes' accounts, statistics of rewards.
    pub fn account(&mut self, step: &Step) {
        if let Some(moments) = &mut self.return_rms {
            for (sum, &reward) in self.discounted.iter_mut().zip(&step.reward) {
                *sum = *sum * RETURN_GAMMA + f64::from(reward);
            }
            moments.update(&self.discounted);
        }
        for i in 0..step.reward.len() {
            self.returns[i] += f64::from(step.reward[i]);
            self.lengths[i] += 1.0;
            if step.terminated[i] || step.truncated[i] {
                if self.recent.len() == WINDOW {
                    self.recent.pop_front();
                }
                self.recent.push_back((self.returns[i], self.lengths[i]));
                self.episodes += 1;
                (self.returns[i], self.lengths[i], self.discounted[i]) = (0.0, 0.0, 0.0);
            }
        }
    }

    /// A reward as it is learned from.
    pub fn reward(&self, raw: f32) -> f32 {
        match &self.return_rms {
            None => raw,
            Some(moments) => (f64::from(raw) / moments.deviation(0)).clamp(-f64::from(CLIP), f64::from(CLIP)) as f32,
        }
    }

    /// Mean return and length of the last episodes, if any has ended.
    pub fn recent_mean(&self) -> Option<(f64, f64)> {
        let n = self.recent.len() as f64;
        let sum = self.recent.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        (!self.recent.is_empty()).then(|| (sum.0 / n, sum.1 / n))
    }
}

/// Numbers that one thread copies.
const COPIED: usize = 1 << 16;

impl TrainState {
    /// Becomes like `from`, in the room that it has.
    pub fn copy_from(&mut self, from: &Self) {
        let Self {
            step,
            update,
            adam_steps,
            episodes,
            params,
            adam_m,
            adam_v,
            env,
            obs,
            mask,
            episode_start,
            state,
            returns,
            lengths,
            recent,
            obs_rms,
            return_rms,
            discounted,
            metrics,
            normalisation,
        } = from;
        (self.step, self.update) = (*step, *update);
        (self.adam_steps, self.episodes) = (*adam_steps, *episodes);
        for (to, from) in [
            (&mut self.params, params),
            (&mut self.adam_m, adam_m),
            (&mut self.adam_v, adam_v),
        ] {
            to.resize(from.len(), 0.0);
            to.par_chunks_mut(COPIED)
                .zip(from.par_chunks(COPIED))
                .for_each(|(to, from)| to.copy_from_slice(from));
        }
        self.env.clone_from(env);
        self.obs.clone_from(obs);
        self.mask.clone_from(mask);
        self.episode_start.clone_from(episode_start);
        self.state.clone_from(state);
        self.returns.clone_from(returns);
        self.lengths.clone_from(lengths);
        self.recent.clone_from(recent);
        self.obs_rms.clone_from(obs_rms);
        self.return_rms.clone_from(return_rms);
        self.discounted.clone_from(discounted);
        self.metrics.clone_from(metrics);
        self.normalisation.clone_from(normalisation);
    }

    /// Whether a saved state has the sizes of a fresh one.
    pub fn fits(&self, fresh: &Self) -> bool {
        let sizes = |train_state: &Self| {
            let moments = |moments: &Option<RunningMeanStd>| {
                moments
                    .as_ref()
                    .map(|moments| (moments.mean.len(), moments.variance.len()))
            };
            [
                train_state.params.len(),
                train_state.adam_m.len(),
                train_state.adam_v.len(),
                train_state.obs.len(),
                train_state.mask.len(),
                train_state.episode_start.len(),
                train_state.state.len(),
                train_state.returns.len(),
                train_state.lengths.len(),
                train_state.discounted.len(),
            ]
            .map(Some)
            .into_iter()
            .chain(
                [&train_state.obs_rms, &train_state.return_rms]
                    .map(|m| moments(m).map(|(mean, variance)| mean + variance)),
            )
            .collect::<Vec<_>>()
        };
        sizes(self) == sizes(fresh)
    }
}
