//! All that one update of training hands to the next: what a checkpoint holds.

use crate::moments::{CLIP, Moments};
use crate::settings::Settings;
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
pub(crate) struct Carry {
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
    pub obs_moments: Option<Moments>,
    /// Of discounted returns, if rewards are normalised, and those of the running episodes.
    pub reward_moments: Option<Moments>,
    pub discounted: Vec<f64>,
    /// The metrics so far, as JSON lines.
    pub metrics: String,
    /// What [`Carry::obs_moments`] come to.
    pub normalisation: Option<Normalisation>,
}

impl Carry {
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
            Some(seen) => Moments::of(seen, warm_start::WEIGHT * settings.rollout() as f64),
            None => Moments::new(spec.obs_dim()),
        };
        let mut carry = Self {
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
            obs_moments: settings.normalize_obs.then(moments),
            reward_moments: settings.normalize_reward.then(|| Moments::new(1)),
            discounted: vec![0.0; b],
            metrics: String::new(),
            normalisation: None,
        };
        if spec.action_space.mask_len() > 0 {
            carry.mask.copy_from_slice(&first.action_mask);
        }
        carry.show(&first.obs);
        carry
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
        if let Some(moments) = &mut self.obs_moments {
            moments.update(raw);
            let n = self.normalisation.get_or_insert_with(|| moments.normalisation());
            moments.normalise(n);
            elementwise::normalise(Level::detect(), raw, &n.offset, &n.scale, n.clip, obs);
        }
    }

    /// Takes in a step: episodes' accounts, statistics of rewards.
    pub fn account(&mut self, step: &Step) {
        if let Some(moments) = &mut self.reward_moments {
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
        match &self.reward_moments {
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

impl Carry {
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
            obs_moments,
            reward_moments,
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
        self.obs_moments.clone_from(obs_moments);
        self.reward_moments.clone_from(reward_moments);
        self.discounted.clone_from(discounted);
        self.metrics.clone_from(metrics);
        self.normalisation.clone_from(normalisation);
    }

    /// Whether a saved state has the sizes of a fresh one.
    pub fn fits(&self, fresh: &Self) -> bool {
        let sizes = |carry: &Self| {
            let moments = |moments: &Option<Moments>| {
                moments
                    .as_ref()
                    .map(|moments| (moments.mean.len(), moments.variance.len()))
            };
            [
                carry.params.len(),
                carry.adam_m.len(),
                carry.adam_v.len(),
                carry.obs.len(),
                carry.mask.len(),
                carry.episode_start.len(),
                carry.state.len(),
                carry.returns.len(),
                carry.lengths.len(),
                carry.discounted.len(),
            ]
            .map(Some)
            .into_iter()
            .chain(
                [&carry.obs_moments, &carry.reward_moments].map(|m| moments(m).map(|(mean, variance)| mean + variance)),
            )
            .collect::<Vec<_>>()
        };
        sizes(self) == sizes(fresh)
    }
}
