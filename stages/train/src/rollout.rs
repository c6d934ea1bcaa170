//! Collecting a rollout: T steps of B environments under the current policy.

use crate::carry::Carry;
use crate::clock::{Clock, Phase};
use crate::gae;
use crate::settings::Settings;
use datasets::random::Random;
use stages_core::StageError;
use stages_env::{BatchEnv, Step};
use stages_policy::kernels::{Level, elementwise};
use stages_policy::{Batch, Model, Observed, Output, distribution, gaussian};
use std::ops::Range;

/// What the stream of action choices is called.
const ACT: u64 = u64::from_le_bytes(*b"act\0\0\0\0\0");

/// The buffers of a rollout, all time-major and used again.
#[derive(Default)]
pub(crate) struct Rollout {
    obs: Vec<f32>,
    mask: Vec<bool>,
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
    done: Vec<bool>,
    advantage: Vec<f32>,
    pub target: Vec<f32>,
    output: Output,
    step: Step,
}

impl Rollout {
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
        let (steps, b) = (settings.n_steps, settings.n_envs);
        let (d, a) = (env.spec().obs_dim(), env.spec().num_actions());
        let n = steps * b;
        self.obs.resize(n * d, 0.0);
        self.mask.resize(n * a, true);
        for flags in [&mut self.episode_start, &mut self.done] {
            flags.resize(n, false);
        }
        for floats in [
            &mut self.log_prob,
            &mut self.value,
            &mut self.reward,
            &mut self.advantage,
            &mut self.target,
        ] {
            floats.resize(n, 0.0);
        }
        let continuous = env.spec().bounds.is_some();
        self.actions.resize(if continuous { 0 } else { n }, 0);
        self.numbers.resize(if continuous { n * a } else { 0 }, 0.0);
        model.refresh(&mut carry.state);
        self.state.clone_from(&carry.state);
        if self.step.reward.len() != b {
            self.step = Step::new(env.spec(), b);
        }

        let mut random = Random::new(&[settings.seed, ACT, carry.update]);
        for t in 0..steps {
            tick(t, carry)?;
            let rows = t * b..(t + 1) * b;
            self.obs[rows.start * d..rows.end * d].copy_from_slice(&carry.obs);
            self.mask[rows.start * a..rows.end * a].copy_from_slice(&carry.mask);
            self.episode_start[rows.clone()].copy_from_slice(&carry.episode_start);

            clock.start(Phase::Forward);
            let input = Observed {
                obs: &carry.obs,
                mask: &carry.mask,
                episode_start: &carry.episode_start,
            };
            model.forward(&input, &mut carry.state, &mut self.output);
            self.value[rows.clone()].copy_from_slice(&self.output.value);
            if continuous {
                let numbers = rows.start * a..rows.end * a;
                self.draw_numbers(rows.clone(), &mut random);
                clock.start(Phase::Environment);
                env.step_numbers(&self.numbers[numbers], &mut self.step);
            } else {
                let actions = &mut self.actions[rows.clone()];
                for (i, row) in self.output.log_prob.chunks_exact(a).enumerate() {
                    actions[i] = distribution::sample(row, random.uniform());
                    self.log_prob[rows.start + i] = row[actions[i] as usize];
                }
                clock.start(Phase::Environment);
                env.step(actions, &mut self.step);
            }
            carry.observe_step(&self.step);
            for i in 0..b {
                let at = rows.start + i;
                self.reward[at] = carry.reward(self.step.reward[i]);
                self.done[at] = self.step.terminated[i] || self.step.truncated[i];
            }
            clock.start(Phase::Forward);
            self.bootstrap(settings, model, carry, rows.start);
            carry.episode_start.copy_from_slice(&self.done[rows]);
        }

        // The value of what follows the last step, with the state after it.
        let mut state = carry.state.clone();
        let input = Observed {
            obs: &carry.obs,
            mask: &carry.mask,
            episode_start: &carry.episode_start,
        };
        model.forward(&input, &mut state, &mut self.output);
        gae::estimate(
            settings.gamma as f32,
            settings.gae_lambda as f32,
            &self.reward,
            &self.value,
            &self.done,
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
        let cut: Vec<usize> = (0..settings.n_envs)
            .filter(|&i| self.step.truncated[i] && !self.step.terminated[i])
            .collect();
        if cut.is_empty() {
            return;
        }
        let (d, s) = (
            self.step.final_obs.len() / settings.n_envs,
            carry.state.len() / settings.n_envs,
        );
        let a = self.step.mask.len() / settings.n_envs;
        let mut obs = Vec::with_capacity(cut.len() * d);
        let mut state = Vec::with_capacity(cut.len() * s);
        for &i in &cut {
            obs.extend_from_slice(&self.step.final_obs[i * d..(i + 1) * d]);
            state.extend_from_slice(&carry.state[i * s..(i + 1) * s]);
        }
        if let Some(n) = &carry.normalisation {
            let raw = obs.clone();
            elementwise::normalise(Level::detect(), &raw, &n.offset, &n.scale, n.clip, &mut obs);
        }
        let input = Observed {
            obs: &obs,
            mask: &vec![true; cut.len() * a],
            episode_start: &vec![false; cut.len()],
        };
        model.forward(&input, &mut state, &mut self.output);
        for (&i, &value) in cut.iter().zip(&self.output.value) {
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
            episode_start: &self.episode_start,
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
