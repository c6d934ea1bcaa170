//! Training without its files: what `runner bench` and `device: auto` time.

use crate::awake::awake;
use crate::carry::Carry;
use crate::clock::{Clock, Phase};
use crate::optimiser;
use crate::rollout::Rollout;
use crate::settings::Settings;
use stages_core::StageError;
use stages_env::{ActionSpace, Actions, BatchEnv, EnvSpec, Step, StepBuffers};
use stages_numerics::random::Random;
use stages_policy::{Batch, LossSettings, Model, initial};
use std::time::Instant;

/// Shows the rows of a table in turn, whatever is done.
pub(crate) struct Rows {
    spec: EnvSpec,
    table: Vec<f32>,
    at: Vec<usize>,
}

impl Rows {
    const LEN: usize = 2521;
    const EPISODE: usize = 252;

    pub fn new(spec: &EnvSpec, n_envs: usize) -> Self {
        let mut random = Random::new(&[1]);
        Self {
            table: (0..Self::LEN * spec.obs_dim())
                .map(|_| random.normal() as f32)
                .collect(),
            spec: spec.clone(),
            at: (0..n_envs).map(|i| i * 37 % Self::LEN).collect(),
        }
    }

    /// Goes on by a row; `taken` says how environment i acted, as a number.
    fn show(&mut self, taken: impl Fn(usize) -> f32, out: StepBuffers<'_>) {
        let d = self.spec.obs_dim();
        out.action_mask.fill(true);
        for (i, (at, obs)) in self.at.iter_mut().zip(out.obs.chunks_exact_mut(d)).enumerate() {
            *at = (*at + 1) % Self::LEN;
            obs.copy_from_slice(&self.table[*at * d..(*at + 1) * d]);
            out.reward[i] = obs[0] * taken(i);
            out.terminated[i] = at.is_multiple_of(Self::EPISODE);
        }
    }
}

impl BatchEnv for Rows {
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
            _ => {
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

/// A training of some settings.
pub(crate) struct Rehearsal<'a> {
    settings: &'a Settings,
    env: Box<dyn BatchEnv>,
    pub model: Box<dyn Model>,
    pub carry: Carry,
    rollout: Rollout,
    pub gradient: Vec<f32>,
}

impl<'a> Rehearsal<'a> {
    pub fn new(settings: &'a Settings, mut env: Box<dyn BatchEnv>, mut model: Box<dyn Model>) -> Self {
        let params = initial(model.architecture(), true, 1);
        model.load(&params);
        let mut first = Step::new(env.spec(), settings.n_envs);
        env.reset(first.buffers());
        let gradient = vec![0.0; params.len()];
        let state_len = model.architecture().state_len();
        Self {
            settings,
            carry: Carry::new(settings, env.spec(), params, None, state_len, &first),
            env,
            model,
            rollout: Rollout::default(),
            gradient,
        }
    }

    /// One rollout, and what is learned from it.
    pub fn iterate(&mut self) -> Result<Clock, StageError> {
        let mut clock = Clock::default();
        awake(|| {
            self.collect(&mut clock)?;
            self.learn(self.settings.n_epochs, usize::MAX, &mut clock);
            Ok::<_, StageError>(())
        })?;
        self.carry.update += 1;
        Ok(clock)
    }

    /// Seconds for one rollout and all that is learned from it, from a rollout and two minibatches; what is done a first time is not
    /// counted.
    ///
    /// # Errors
    /// What failed on the model's device.
    pub fn seconds_an_update(&mut self) -> Result<f64, StageError> {
        let settings = self.settings;
        let mut clock = Clock::default();
        let mut seconds = 0.0;
        for _ in 0..2 {
            let start = Instant::now();
            self.collect(&mut clock)?;
            let collected = start.elapsed().as_secs_f64();
            let start = Instant::now();
            self.learn(1, 2, &mut clock);
            let samples = 2 * settings.batch_size.min(settings.rollout() as usize);
            let learned = (settings.rollout() as usize * settings.n_epochs) as f64 / samples as f64;
            seconds = collected + learned * start.elapsed().as_secs_f64();
            if let Some(fault) = self.model.fault() {
                return Err(StageError::new(fault));
            }
        }
        Ok(seconds)
    }

    pub fn collect(&mut self, clock: &mut Clock) -> Result<(), StageError> {
        let (env, model) = (&mut *self.env, &mut *self.model);
        self.rollout
            .collect(self.settings, env, model, &mut self.carry, clock, |_, _| Ok(()))
    }

    /// Learns from `most` minibatches of each of `epochs` passes.
    fn learn(&mut self, epochs: usize, most: usize, clock: &mut Clock) {
        let (settings, carry) = (self.settings, &mut self.carry);
        let loss = LossSettings {
            clip_range: settings.clip_range.at(0.0) as f32,
            clip_range_vf: None,
            ent_coef: settings.ent_coef as f32,
            vf_coef: settings.vf_coef as f32,
            normalize_advantage: settings.normalize_advantage,
        };
        let batch = self.rollout.batch(settings);
        let mut order: Vec<u32> = (0..batch.columns as u32).collect();
        let mut random = Random::new(&[carry.update]);
        for _ in 0..epochs {
            random.shuffle(&mut order);
            for pick in order.chunks((settings.batch_size / batch.steps).max(1)).take(most) {
                clock.start(Phase::Backward);
                self.model.gradient(&Batch { pick, ..batch }, &loss, &mut self.gradient);
                clock.start(Phase::Optimiser);
                let norm = optimiser::norm(&self.gradient);
                carry.adam_steps += 1;
                optimiser::update(
                    carry.adam_steps,
                    // So small that the network stays as it is, whatever the rewards.
                    1e-9,
                    (norm, settings.max_grad_norm),
                    &mut carry.params,
                    &self.gradient,
                    &mut carry.adam_m,
                    &mut carry.adam_v,
                );
                self.model.load(&carry.params);
            }
        }
        clock.stop();
    }
}
