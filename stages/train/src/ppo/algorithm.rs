//! Proximal policy optimisation, with and without memory: collect a rollout, estimate advantages, and learn
//! from the clipped objective in minibatches; repeat.

use super::burn_in::BurnIn;
use super::objective::{Clipped, Coefficients, Losses};
use super::settings::PpoSettings;
use crate::learner::{Algorithm, Learner};
use crate::metrics::{Metric, explained_variance};
use crate::phase_timer::Phase;
use crate::rollout::Rollout;
use crate::running_mean_std::RunningMeanStd;
use crate::settings::Common;
use crate::train_state::Statistics;
use crate::warm_start;
use stages_core::StageError;
use stages_env::Actions;
use stages_numerics::random::Random;
use stages_policy::{ActionHead, Minibatch, Observed, Output, Policy, Sampled, gaussian};

/// The names of the streams of random numbers: of actions, and of shuffles.
const ACT: u64 = u64::from_le_bytes(*b"act\0\0\0\0\0");
const SHUFFLE: u64 = u64::from_le_bytes(*b"shuffle\0");

/// PPO and the buffers of its rollout, time-major.
pub(crate) struct Ppo {
    settings: PpoSettings,
    pub rollout: Rollout,
    /// Discrete and multi-discrete actions `[T, B, K]`.
    pub actions: Vec<u32>,
    /// Continuous actions `[T, B, A]`, as they were drawn.
    pub continuous: Vec<f32>,
    /// The log-probabilities of the actions, and the values, when the rollout was collected `[T, B]`.
    pub log_prob: Vec<f32>,
    pub value: Vec<f32>,
    /// The rewards that are learned from: normalised, and with the discounted value of the last observation
    /// where an episode was truncated.
    pub reward: Vec<f32>,
    pub advantage: Vec<f32>,
    /// The returns `[T, B]`, which are the targets of the values.
    pub target: Vec<f32>,
    uniform: Vec<f64>,
    output: Output,
    after: Vec<f32>,
    truncated: Truncated,
}

/// The environments whose episode was truncated in a step.
#[derive(Default)]
struct Truncated {
    which: Vec<usize>,
    raw: Vec<f32>,
    obs: Vec<f32>,
    state: Vec<f32>,
    mask: Vec<bool>,
    episode_start: Vec<bool>,
}

impl Algorithm for Ppo {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    fn statistics(&self, obs_dim: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        StageError::new("`normalize_obs`: symbolic states have no numbers to normalise")
            .hint("leave `normalize_obs` out")
            .when(self.settings.ppo.normalize_obs && obs_dim == 0)?;
        let weight = warm_start::WEIGHT * self.settings.common.rollout() as f64;
        Ok(Statistics {
            obs_rms: warm_start::obs_rms(init, self.settings.ppo.normalize_obs, obs_dim, weight)?,
            return_rms: self.settings.ppo.normalize_reward.then(|| RunningMeanStd::new(1)),
            return_gamma: self.settings.ppo.gamma,
            normalisation: None,
        })
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        self.collect(learner)?;
        learner.check_device()?;
        self.learn(learner)
    }
}

// Collect.

impl Ppo {
    pub(crate) fn new(settings: &PpoSettings) -> Self {
        Self {
            settings: settings.clone(),
            rollout: Rollout::of(settings.sequences),
            actions: Vec::new(),
            continuous: Vec::new(),
            log_prob: Vec::new(),
            value: Vec::new(),
            reward: Vec::new(),
            advantage: Vec::new(),
            target: Vec::new(),
            uniform: Vec::new(),
            output: Output::default(),
            after: Vec::new(),
            truncated: Truncated::default(),
        }
    }

    /// Steps the environments `n_steps` times under the current policy, and estimates advantages.
    pub(crate) fn collect(&mut self, learner: &mut Learner) -> Result<(), StageError> {
        let common = &self.settings.common;
        let (steps, b) = (common.rollouts.n_steps, common.training.n_envs);
        let head = learner.model.architecture().head.clone();
        let k = head.num_components();
        self.rollout.begin(common, learner);
        if head.is_continuous() {
            self.continuous.resize(steps * b * k, 0.0);
        } else {
            self.actions.resize(steps * b * k, 0);
            self.uniform.resize(b * k, 0.0);
        }
        for floats in [
            &mut self.log_prob,
            &mut self.value,
            &mut self.reward,
            &mut self.advantage,
            &mut self.target,
        ] {
            floats.resize(steps * b, 0.0);
        }

        let mut random = Random::new(&[common.training.seed, ACT, learner.state.update]);
        for t in 0..steps {
            learner.tick((t * b) as u64)?;
            learner.timer.start(Phase::Forward);
            if t > 0 {
                self.rollout.keep_state(t, &learner.state.state);
            }
            let rows = t * b..(t + 1) * b;
            let (log_prob, value) = (&mut self.log_prob[rows.clone()], &mut self.value[rows.clone()]);
            let input = self.rollout.observed(t);
            let actions = if head.is_continuous() {
                learner
                    .model
                    .forward(&input, &mut learner.state.state, &mut self.output);
                let Output { mean, log_std, .. } = &self.output;
                value.copy_from_slice(&self.output.value);
                let actions = &mut self.continuous[rows.start * k..rows.end * k];
                let drawn = actions.chunks_exact_mut(k).zip(mean.chunks_exact(k));
                for ((action, mean), log_prob) in drawn.zip(log_prob) {
                    gaussian::sample(mean, log_std, || random.normal(), action);
                    *log_prob = gaussian::log_prob(action, mean, log_std);
                }
                Actions::Continuous(actions)
            } else {
                self.uniform.fill_with(|| random.uniform());
                let actions = &mut self.actions[rows.start * k..rows.end * k];
                let sampled = Sampled {
                    actions: &mut *actions,
                    log_prob,
                    value,
                };
                learner
                    .model
                    .act(&input, &self.uniform, &mut learner.state.state, sampled);
                match head {
                    ActionHead::MultiDiscrete(_) => Actions::MultiDiscrete(actions),
                    _ => Actions::Discrete(actions),
                }
            };
            self.rollout.step(t, actions, learner)?;
            for (reward, &raw) in self.reward[rows.clone()].iter_mut().zip(&self.rollout.step.reward) {
                *reward = learner.state.statistics.reward(raw);
            }
            learner.timer.start(Phase::Forward);
            self.bootstrap(learner, rows.start);
        }
        self.rollout.end(learner);

        // The value after the last step, with the state after it.
        self.after.clone_from(&learner.state.state);
        let input = Observed {
            obs: &learner.state.obs,
            mask: &learner.state.mask,
            episode_start: &learner.state.episode_start,
            candidates: self.rollout.candidates.get(steps),
        };
        learner.model.forward(&input, &mut self.after, &mut self.output);
        estimate_advantages(
            self.settings.ppo.gamma as f32,
            self.settings.ppo.gae_lambda as f32,
            &self.reward,
            &self.value,
            &self.rollout.episode_start[b..],
            &self.output.value,
            &mut self.advantage,
            &mut self.target,
        );
        learner.timer.stop();
        Ok(())
    }

    /// Adds the discounted value of the last observation to the reward where an episode was truncated, with
    /// the recurrent state before its reset (Pardo and others, "Time limits in reinforcement learning",
    /// 2018).
    fn bootstrap(&mut self, learner: &mut Learner, row: usize) {
        let (b, step, state) = (self.settings.common.training.n_envs, &self.rollout.step, &learner.state);
        let Truncated {
            which,
            raw,
            obs,
            state: states,
            mask,
            episode_start,
        } = &mut self.truncated;
        which.clear();
        which.extend((0..b).filter(|&i| step.truncated[i] && !step.terminated[i]));
        if which.is_empty() {
            return;
        }
        let (d, s) = (step.final_obs.len() / b, state.state.len() / b);
        raw.clear();
        states.clear();
        for &i in &*which {
            raw.extend_from_slice(&step.final_obs[i * d..(i + 1) * d]);
            states.extend_from_slice(&state.state[i * s..(i + 1) * s]);
        }
        if state.statistics.normalisation.is_some() {
            obs.resize(raw.len(), 0.0);
            state.statistics.normalise(raw, obs);
        } else {
            std::mem::swap(obs, raw);
        }
        mask.resize(which.len() * (state.mask.len() / b), true);
        episode_start.resize(which.len(), false);
        let input = Observed::new(obs, mask, episode_start);
        learner.model.forward(&input, states, &mut self.output);
        for (&i, &value) in which.iter().zip(&self.output.value) {
            self.reward[row + i] += self.settings.ppo.gamma as f32 * value;
        }
    }
}

// Advantage.

/// Generalised advantage estimation (Schulman and others, 2016): fills `advantage` `[T, B]` and `target`
/// `[T, B]` (advantage + value) from rewards and values `[T, B]`.
///
/// `done` `[T, B]` is true where the episode ended with that step, `last_value` `[B]` is the value after the
/// last step. Where an episode was truncated rather than terminated, the reward must include the discounted
/// value of its last observation already.
pub(crate) fn estimate_advantages(
    gamma: f32,
    lambda: f32,
    reward: &[f32],
    value: &[f32],
    done: &[bool],
    last_value: &[f32],
    advantage: &mut [f32],
    target: &mut [f32],
) {
    let batch = last_value.len();
    let steps = reward.len() / batch.max(1);
    for t in (0..steps).rev() {
        let now = t * batch..(t + 1) * batch;
        let (advantage, after) = advantage[now.start..].split_at_mut(batch);
        let next_value = if t + 1 == steps {
            last_value
        } else {
            &value[now.end..now.end + batch]
        };
        // After the last step, only the value is given: the next advantage is 0.
        let next_advantage = after.get(..batch);
        let (reward, value, done) = (&reward[now.clone()], &value[now.clone()], &done[now.clone()]);
        let target = &mut target[now];
        for i in 0..batch {
            let not_done = if done[i] { 0.0 } else { 1.0 };
            let later = next_advantage.map_or(0.0, |next| next[i]);
            let delta = reward[i] + gamma * not_done * next_value[i] - value[i];
            advantage[i] = delta + gamma * lambda * not_done * later;
            target[i] = advantage[i] + value[i];
        }
    }
}

/// The mean of a minibatch's advantages and the reciprocal of their standard deviation (n - 1; plus 1e-8), as
/// stable-baselines3 normalises them; (0, 1) for a single sample.
pub(crate) fn advantage_moments(advantage: &[f32], minibatch: &Minibatch) -> (f32, f32) {
    let n = minibatch.len() as f64;
    if minibatch.len() < 2 {
        return (0.0, 1.0);
    }
    let values = || minibatch.samples().map(|i| f64::from(advantage[i]));
    let mean = values().sum::<f64>() / n;
    let variance = values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean as f32, (1.0 / (variance.sqrt() + 1e-8)) as f32)
}

// Update.

impl Ppo {
    /// The objective of a minibatch of the rollout.
    pub(crate) fn objective(&self, minibatch: &Minibatch, coefficients: Coefficients) -> Clipped<'_> {
        Clipped {
            mask: &self.rollout.mask,
            actions: &self.actions,
            continuous: &self.continuous,
            old_log_prob: &self.log_prob,
            old_value: &self.value,
            advantage: &self.advantage,
            moments: if coefficients.normalize_advantage {
                advantage_moments(&self.advantage, minibatch)
            } else {
                (0.0, 1.0)
            },
            target: &self.target,
            weight: 1.0 / minibatch.len() as f32,
            coefficients,
        }
    }

    /// Learns from the rollout in shuffled minibatches; returns the means of the losses.
    fn learn(&self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        let (settings, common) = (&self.settings, &self.settings.common);
        let done = learner.state.step as f64 / common.training.total_timesteps as f64;
        let learning_rate = common.training.learning_rate.at(done);
        let coefficients = Coefficients {
            clip_range: settings.ppo.clip_range.at(done) as f32,
            clip_range_vf: settings.ppo.clip_range_vf.map(|schedule| schedule.at(done) as f32),
            ent_coef: settings.ppo.ent_coef as f32,
            vf_coef: settings.ppo.vf_coef as f32,
            normalize_advantage: settings.ppo.normalize_advantage,
        };
        let rollout = self.rollout.minibatch(common);
        let mut order: Vec<u32> = rollout.sequences().collect();
        let count = (common.rollouts.batch_size / rollout.steps).max(1);
        let mut burn_in = BurnIn::new(&self.rollout);
        let mut random = Random::new(&[common.training.seed, SHUFFLE, learner.state.update]);
        let mut all = Vec::new();
        'epochs: for epoch in 0..common.rollouts.n_epochs {
            random.shuffle(&mut order);
            for indices in order.chunks(count).take(learner.minibatch_limit) {
                let mut minibatch = Minibatch { indices, ..rollout };
                if let Some(burn_in) = &mut burn_in {
                    learner.timer.start(Phase::Backward);
                    minibatch.state = burn_in.run(&minibatch, &mut *learner.model);
                }
                let objective = self.objective(&minibatch, coefficients);
                let sums = learner.backward(&minibatch, &objective)?;
                let losses = Losses::mean(&sums, minibatch.len());
                learner.check_finite(losses.total(&coefficients), epoch, || losses.text())?;
                all.push(losses);
                if settings
                    .ppo
                    .target_kl
                    .is_some_and(|target| losses.approx_kl > 1.5 * target)
                {
                    break 'epochs;
                }
                learner.optimiser_step(learning_rate, common.rollouts.max_grad_norm);
            }
        }
        learner.timer.stop();

        let mean = |of: fn(&Losses) -> f64| {
            Some(all.iter().fold(0.0, |sum, losses| sum + of(losses)) / all.len() as f64)
        };
        Ok(vec![
            ("charts/learning_rate", Some(learning_rate)),
            ("losses/policy_loss", mean(|losses| losses.policy)),
            ("losses/value_loss", mean(|losses| losses.value)),
            ("losses/entropy", mean(|losses| losses.entropy)),
            ("losses/approx_kl", mean(|losses| losses.approx_kl)),
            ("losses/clipfrac", mean(|losses| losses.clip_fraction)),
            (
                "losses/explained_variance",
                explained_variance(&self.value, &self.target),
            ),
        ])
    }
}
