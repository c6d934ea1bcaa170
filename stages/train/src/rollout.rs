//! Collecting a rollout: T steps of B environments under the current policy.

use crate::carry::Carry;
use crate::clock::{Clock, Phase};
use crate::gae;
use crate::settings::Settings;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, BatchEnv, Step, StepBuffers};
use stages_numerics::random::Random;
use stages_policy::kernels::{Level, elementwise};
use stages_policy::{Batch, Model, Observed, Output, Taken, gaussian};
use std::ops::Range;

/// What the stream of action choices is called.
const ACT: u64 = u64::from_le_bytes(*b"act\0\0\0\0\0");

/// The buffers of a rollout, all time-major and used again: after the first one, collecting allocates nothing. Environments and policy
/// write where learning reads.
#[derive(Default)]
pub(crate) struct Rollout {
    /// `[T + 1, B, D]`, as are masks `[T + 1, B, A]`, for what follows the last step.
    obs: Vec<f32>,
    mask: Vec<bool>,
    /// `[T + 1, B]`: the episode begins with that step; what ended does so one step before.
    episode_start: Vec<bool>,
    /// The recurrent states before the first step.
    state: Vec<f32>,
    actions: Vec<u32>,
    /// Where actions are numbers `[T, B, A]`, as they were drawn.
    numbers: Vec<f32>,
    log_prob: Vec<f32>,
    pub value: Vec<f32>,
    /// As learned from: normalised, and with the value of the last observation where an episode was cut off.
    pub reward: Vec<f32>,
    advantage: Vec<f32>,
    pub target: Vec<f32>,
    output: Output,
    step: Step,
    uniform: Vec<f64>,
    after: Vec<f32>,
    cut: Cut,
}

/// Environments whose episode was cut off in a step.
#[derive(Default)]
struct Cut {
    which: Vec<usize>,
    raw: Vec<f32>,
    obs: Vec<f32>,
    state: Vec<f32>,
    mask: Vec<bool>,
    episode_start: Vec<bool>,
}

impl Rollout {
    fn resize(&mut self, settings: &Settings, env: &dyn BatchEnv) {
        let (steps, b) = (settings.n_steps, settings.n_envs);
        let (d, a) = (env.spec().obs_dim(), env.spec().action_space.num_outputs());
        let n = steps * b;
        self.obs.resize((n + b) * d, 0.0);
        self.mask.resize((n + b) * a, true);
        self.episode_start.resize(n + b, false);
        for floats in [
            &mut self.log_prob,
            &mut self.value,
            &mut self.reward,
            &mut self.advantage,
            &mut self.target,
        ] {
            floats.resize(n, 0.0);
        }
        let continuous = matches!(env.spec().action_space, ActionSpace::Continuous { .. });
        self.actions.resize(if continuous { 0 } else { n }, 0);
        self.numbers.resize(if continuous { n * a } else { 0 }, 0.0);
        self.uniform.resize(b, 0.0);
        if self.step.reward.len() != b {
            self.step = Step::new(env.spec(), b);
        }
    }

    /// Steps the environments `n_steps` times and estimates advantages. `tick` is called before each step and may stop it.
    pub fn collect(
        &mut self,
        settings: &Settings,
        env: &mut dyn BatchEnv,
        model: &mut dyn Model,
        carry: &mut Carry,
        clock: &mut Clock,
        mut tick: impl FnMut(usize, &Carry) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        self.resize(settings, env);
        let (steps, b) = (settings.n_steps, settings.n_envs);
        let (d, a) = (env.spec().obs_dim(), env.spec().action_space.num_outputs());
        let continuous = matches!(env.spec().action_space, ActionSpace::Continuous { .. });
        model.refresh(&mut carry.state);
        self.state.clone_from(&carry.state);
        self.obs[..b * d].copy_from_slice(&carry.obs);
        self.mask[..b * a].copy_from_slice(&carry.mask);
        self.episode_start[..b].copy_from_slice(&carry.episode_start);

        let mut random = Random::new(&[settings.seed, ACT, carry.update]);
        for t in 0..steps {
            tick(t, carry)?;
            let rows = t * b..(t + 1) * b;
            let (seen, unseen) = self.obs[rows.start * d..(rows.end + b) * d].split_at_mut(b * d);
            let (legal, legal_next) = self.mask[rows.start * a..(rows.end + b) * a].split_at_mut(b * a);
            clock.start(Phase::Forward);
            let input = Observed {
                obs: seen,
                mask: legal,
                episode_start: &self.episode_start[rows.clone()],
            };
            if continuous {
                model.forward(&input, &mut carry.state, &mut self.output);
                self.value[rows.clone()].copy_from_slice(&self.output.value);
                self.draw_numbers(rows.clone(), &mut random);
                clock.start(Phase::Environment);
                let actions = Actions::Continuous(&self.numbers[rows.start * a..rows.end * a]);
                env.step(actions, self.step.buffers())?;
                if !settings.normalize_obs {
                    self.obs[rows.end * d..(rows.end + b) * d].copy_from_slice(&self.step.obs);
                }
            } else {
                for uniform in &mut self.uniform {
                    *uniform = random.uniform();
                }
                let actions = &mut self.actions[rows.clone()];
                let taken = Taken {
                    actions: &mut *actions,
                    log_prob: &mut self.log_prob[rows.clone()],
                    value: &mut self.value[rows.clone()],
                };
                model.act(&input, &self.uniform, &mut carry.state, taken);
                clock.start(Phase::Environment);
                let mut out = StepBuffers {
                    action_mask: legal_next,
                    ..self.step.buffers()
                };
                if !settings.normalize_obs {
                    out.obs = unseen;
                }
                env.step(Actions::Discrete(actions), out)?;
            }
            if settings.normalize_obs {
                let unseen = &mut self.obs[rows.end * d..(rows.end + b) * d];
                carry.see(&self.step.obs, unseen);
            }
            carry.account(&self.step);
            for i in 0..b {
                self.reward[rows.start + i] = carry.reward(self.step.reward[i]);
                self.episode_start[rows.end + i] = self.step.terminated[i] || self.step.truncated[i];
            }
            clock.start(Phase::Forward);
            self.bootstrap(settings, model, carry, rows.start);
        }

        // The value of what follows the last step, with the state after it.
        let n = steps * b;
        carry.obs.copy_from_slice(&self.obs[n * d..]);
        carry.mask.copy_from_slice(&self.mask[n * a..]);
        carry.episode_start.copy_from_slice(&self.episode_start[n..]);
        self.after.clone_from(&carry.state);
        let input = Observed {
            obs: &carry.obs,
            mask: &carry.mask,
            episode_start: &carry.episode_start,
        };
        model.forward(&input, &mut self.after, &mut self.output);
        gae::estimate(
            settings.gamma as f32,
            settings.gae_lambda as f32,
            &self.reward,
            &self.value,
            &self.episode_start[b..],
            &self.output.value,
            &mut self.advantage,
            &mut self.target,
        );
        clock.stop();
        Ok(())
    }

    /// Draws an action of numbers for each environment of the step whose samples are `rows`.
    fn draw_numbers(&mut self, rows: Range<usize>, random: &mut Random) {
        let Output { mean, log_std, .. } = &self.output;
        let a = log_std.len();
        let numbers = self.numbers[rows.start * a..rows.end * a].chunks_exact_mut(a);
        for ((action, mean), log_prob) in numbers.zip(mean.chunks_exact(a)).zip(&mut self.log_prob[rows]) {
            gaussian::sample(mean, log_std, || random.normal(), action);
            *log_prob = gaussian::log_prob(action, mean, log_std);
        }
    }

    /// Where an episode was cut off, adds the discounted value of its last observation to the reward, with the recurrent state
    /// before its reset (Pardo and others, "Time limits in reinforcement learning", 2018).
    fn bootstrap(&mut self, settings: &Settings, model: &mut dyn Model, carry: &Carry, row: usize) {
        let b = settings.n_envs;
        let Cut {
            which,
            raw,
            obs,
            state,
            mask,
            episode_start,
        } = &mut self.cut;
        let step = &self.step;
        which.clear();
        which.extend((0..b).filter(|&i| step.truncated[i] && !step.terminated[i]));
        if which.is_empty() {
            return;
        }
        let (d, s) = (step.final_obs.len() / b, carry.state.len() / b);
        raw.clear();
        state.clear();
        for &i in &*which {
            raw.extend_from_slice(&step.final_obs[i * d..(i + 1) * d]);
            state.extend_from_slice(&carry.state[i * s..(i + 1) * s]);
        }
        if let Some(n) = &carry.normalisation {
            obs.resize(raw.len(), 0.0);
            elementwise::normalise(Level::detect(), raw, &n.offset, &n.scale, n.clip, obs);
        } else {
            std::mem::swap(obs, raw);
        }
        mask.resize(which.len() * (self.mask.len() / (settings.n_steps + 1) / b), true);
        episode_start.resize(which.len(), false);
        let input = Observed {
            obs,
            mask,
            episode_start,
        };
        model.forward(&input, state, &mut self.output);
        for (&i, &value) in which.iter().zip(&self.output.value) {
            self.reward[row + i] += settings.gamma as f32 * value;
        }
    }

    /// The rollout as a batch, without columns picked yet: sequences where the network remembers, else single steps.
    pub fn batch(&self, settings: &Settings) -> Batch<'_> {
        let (steps, columns) = if settings.network.remembers() {
            (settings.n_steps, settings.n_envs)
        } else {
            (1, settings.n_steps * settings.n_envs)
        };
        Batch {
            steps,
            columns,
            obs: &self.obs,
            mask: &self.mask,
            episode_start: &self.episode_start[..settings.n_steps * settings.n_envs],
            state: &self.state,
            actions: &self.actions,
            numbers: &self.numbers,
            old_log_prob: &self.log_prob,
            old_value: &self.value,
            advantage: &self.advantage,
            target: &self.target,
            pick: &[],
        }
    }
}
