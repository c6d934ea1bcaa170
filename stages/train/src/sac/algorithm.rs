//! Soft actor-critic (Haarnoja and others, 2018): act by a squashed normal distribution, keep transitions, and after each few steps move critics towards
//! the soft value of a batch, the actor towards actions that the least of the critics values, and the weight of the entropy towards its target.

use super::settings::SacSettings;
use crate::learner::{Algorithm, DataFrom, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::replay::Replay;
use crate::replay::networks::{Learned, follow, learn, shard_rows};
use crate::replay::shard::{Rows, add_d_actions, put_actions};
use crate::settings::Common;
use crate::train_state::{Statistics, TrainState};
use crate::warm_start;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::{Actions, EnvSpec};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use stages_policy::{Mlp, MlpRun, MlpShape, Policy, squashed};
use std::path::Path;

/// The names of the streams of random numbers: of first parameters, of actions, of batches, and of the actions that learning draws.
const CRITIC: u64 = u64::from_le_bytes(*b"critic\0\0");
const ACT: u64 = u64::from_le_bytes(*b"act\0\0\0\0\0");
const BATCH: u64 = u64::from_le_bytes(*b"batch\0\0\0");
const DRAW: u64 = u64::from_le_bytes(*b"draw\0\0\0\0");

/// SAC. The train state's parameters are those of the actor, of the critics and the logarithm of the entropy's weight; its extra ones those of the
/// target critics.
pub(crate) struct Sac {
    settings: SacSettings,
    replay: Option<Replay>,
    networks: Option<Networks>,
}

/// The networks, with the parameters of the train state, and buffers.
struct Networks {
    actor: Mlp,
    critics: Vec<Mlp>,
    targets: Vec<Mlp>,
    /// Parameters of the actor, and of all critics.
    num_actor: usize,
    num_critics: usize,
    run: MlpRun,
    /// Actions of a step `[B, A]`: as the critics see them, and as the environments do.
    noise: Vec<f32>,
    action: Vec<f32>,
    scaled: Vec<f32>,
    log_prob: Vec<f32>,
    indices: Vec<u32>,
    shards: Vec<Shard>,
    gradient: Vec<f32>,
}

/// Some rows of a batch, and the actions that the actor draws for them.
#[derive(Default)]
struct Shard {
    rows: Rows,
    noise: Vec<f32>,
    action: Vec<f32>,
    log_prob: Vec<f32>,
    losses: Losses,
}

/// Sums over samples.
#[derive(Clone, Copy, Default)]
struct Losses {
    critic: f64,
    value: f64,
    actor: f64,
    log_prob: f64,
}

impl Algorithm for Sac {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    fn statistics(&self, _: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        init.map_or(Ok(()), |init| warm_start::check_normalize_obs(init, false))?;
        Ok(Statistics::default())
    }

    fn start(&mut self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        let settings = &self.settings;
        let shape = MlpShape::critic(&settings.common.network.architecture(spec)?, &settings.qf);
        let critics: Vec<f32> = (0..settings.n_critics as u64)
            .flat_map(|i| shape.initial(&[settings.common.seed, CRITIC, i]))
            .collect();
        state.add_params(&critics);
        state.add_params(&[libm::log(settings.ent_coef.0) as f32]);
        state.extra = critics;
        Ok(())
    }

    fn open_data(
        &mut self,
        folder: &Path,
        spec: &EnvSpec,
        state: &TrainState,
        from: DataFrom,
    ) -> Result<bool, StageError> {
        let replay = Replay::new(&self.settings.replay, spec, self.settings.common.n_envs, Some(folder))?;
        self.replay.insert(replay).open(folder, state, from)
    }

    fn keep_data(&mut self, durable: u64) -> Result<(), StageError> {
        self.replay.as_mut().map_or(Ok(()), |replay| replay.keep(durable))
    }

    fn copy_data(&self) -> Option<Vec<u8>> {
        self.replay.as_ref().map(Replay::copy)
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        let mut replay = match self.replay.take() {
            Some(replay) => replay,
            None => Replay::new(
                &self.settings.replay,
                learner.env.spec(),
                self.settings.common.n_envs,
                None,
            )?,
        };
        let mut networks = match self.networks.take() {
            Some(networks) => networks,
            None => Networks::new(&self.settings, learner),
        };
        let metrics = self.round(&mut replay, &mut networks, learner);
        (self.replay, self.networks) = (Some(replay), Some(networks));
        metrics
    }
}

impl Sac {
    pub fn new(settings: &SacSettings) -> Self {
        Self {
            settings: settings.clone(),
            replay: None,
            networks: None,
        }
    }

    /// Steps the environments, and learns from batches of transitions in between.
    fn round(
        &self,
        replay: &mut Replay,
        networks: &mut Networks,
        learner: &mut Learner,
    ) -> Result<Vec<Metric>, StageError> {
        let Common {
            n_envs, n_steps, seed, ..
        } = self.settings.common;
        let settings = &self.settings.replay;
        let update = learner.state.update;
        let (mut act, mut batch) = (Random::new(&[seed, ACT, update]), Random::new(&[seed, BATCH, update]));
        let (mut losses, mut samples) = (Losses::default(), 0.0);
        for t in 1..=n_steps {
            learner.tick(((t - 1) * n_envs) as u64)?;
            learner.timer.start(Phase::Forward);
            networks.act(replay.total() < settings.learning_starts, &mut act, learner);
            replay.step(learner, Actions::Continuous(&networks.scaled), &networks.action)?;
            if t.is_multiple_of(settings.train_freq) && replay.total() > settings.learning_starts {
                for _ in 0..settings.gradient_steps(n_envs) {
                    let step = self.gradient_step(replay, networks, learner, &mut batch)?;
                    losses.add(&step);
                    samples += settings.batch_size as f64;
                }
            }
        }
        learner.timer.stop();
        let mean = |sum: f64| (samples > 0.0).then_some(sum / samples);
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        Ok(vec![
            ("charts/learning_rate", Some(self.learning_rate(learner))),
            ("losses/qf_loss", mean(losses.critic)),
            ("losses/qf_values", mean(losses.value / networks.critics.len() as f64)),
            ("losses/actor_loss", mean(losses.actor)),
            ("losses/entropy", mean(-losses.log_prob)),
            ("losses/alpha", Some(libm::exp(f64::from(log_alpha)))),
        ])
    }

    fn learning_rate(&self, learner: &Learner) -> f64 {
        let common = &self.settings.common;
        common
            .learning_rate
            .at(learner.state.step as f64 / common.total_timesteps as f64)
    }

    /// A step of every optimiser along the gradient of a batch, and of the target networks.
    fn gradient_step(
        &self,
        replay: &Replay,
        networks: &mut Networks,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError> {
        let (settings, common) = (&self.settings.replay, &self.settings.common);
        let learning_rate = self.learning_rate(learner);
        learner.timer.start(Phase::Backward);
        replay.sample(random, &mut networks.indices);
        let step = learner.state.adam_steps + 1;
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        let alpha = libm::expf(log_alpha);
        let weight = 1.0 / settings.batch_size as f32;
        let rows = shard_rows(settings.batch_size);

        // Critics, towards the reward and the soft value of the next state.
        let Networks {
            actor,
            critics,
            targets,
            shards,
            indices,
            ..
        } = &mut *networks;
        let batches = shards.par_iter_mut().zip(indices.par_chunks(rows)).enumerate();
        batches.with_max_len(1).for_each(|(i, (shard, indices))| {
            let random = Random::new(&[common.seed, DRAW, step, i as u64]);
            shard.rows.load(replay, indices, settings.n_steps, settings.gamma);
            shard.critics(actor, critics, targets, alpha, weight, random);
        });
        let mut losses = Losses::default();
        for shard in &*shards {
            losses.add(&shard.losses);
        }
        let (qf_loss, log_prob) = (losses.critic, losses.log_prob);
        learner.check_finite(qf_loss + log_prob, step as usize, || format!("critic loss {qf_loss}"))?;
        learner.timer.start(Phase::Optimiser);
        learner.state.adam_steps = step;
        networks.step_critics((step, learning_rate), &mut learner.state);

        // The actor, towards actions that the critics value now.
        learner.timer.start(Phase::Backward);
        let Networks {
            actor, critics, shards, ..
        } = &mut *networks;
        let all = shards.par_iter_mut().with_max_len(1);
        all.for_each(|shard| shard.actor(actor, critics, alpha, weight));
        for shard in &*shards {
            losses.actor += shard.losses.actor;
        }
        learner.timer.start(Phase::Optimiser);
        networks.step_actor((step, learning_rate), &mut learner.state);

        // The weight of the entropy, by the actions of the actor before this step.
        if self.settings.ent_coef.1 {
            let components = learner.model.architecture().head.num_components() as f64;
            let target = self.settings.target_entropy.unwrap_or(-components);
            let slope = -(losses.log_prob / settings.batch_size as f64 + target) as f32;
            let at = learner.state.params.len() - 1;
            let TrainState {
                params, adam_m, adam_v, ..
            } = &mut learner.state;
            let alpha = Learned {
                params: &mut params[at..],
                m: &mut adam_m[at..],
                v: &mut adam_v[at..],
            };
            learn(
                (step, learning_rate),
                1,
                |_| std::slice::from_ref(&slope),
                None,
                &mut [0.0],
                alpha,
            );
        }

        if step.is_multiple_of(self.settings.target_update_interval) {
            networks.step_targets(settings.tau, &mut learner.state);
        }
        Ok(losses)
    }
}

impl Shard {
    /// Draws an action for each row from the outputs of the actor's run.
    fn draw(&mut self, actor: &Mlp, next: bool, random: &mut Random) {
        let obs = if next { &self.rows.next_obs } else { &self.rows.obs };
        let outputs = actor.forward(obs, &mut self.rows.actor);
        let n = self.rows.outcomes.len();
        self.noise.resize(outputs.len() / 2, 0.0);
        self.noise.fill_with(|| random.normal() as f32);
        self.action.resize(outputs.len() / 2, 0.0);
        self.log_prob.resize(n, 0.0);
        let instructions = InstructionSet::detect();
        squashed::sample(instructions, outputs, &self.noise, &mut self.action, &mut self.log_prob);
    }

    /// The critics' gradients. Leaves the actor's own actions, for its gradient.
    fn critics(&mut self, actor: &Mlp, critics: &[Mlp], targets: &[Mlp], alpha: f32, weight: f32, mut random: Random) {
        self.losses = Losses::default();
        self.draw(actor, true, &mut random);
        let a = self.action.len() / self.log_prob.len();
        let rows = &mut self.rows;
        put_actions(&self.action, a, &mut rows.next);
        rows.target.fill(f32::INFINITY);
        rows.critics.resize_with(critics.len(), MlpRun::default);
        for (target, run) in targets.iter().zip(&mut rows.critics) {
            for (least, value) in rows.target.iter_mut().zip(target.forward(&rows.next, run)) {
                *least = least.min(*value);
            }
        }
        for ((target, outcome), log_prob) in rows.target.iter_mut().zip(&rows.outcomes).zip(&self.log_prob) {
            *target = outcome.reward + outcome.discount * (*target - alpha * log_prob);
        }

        let len = rows.critic_gradient.len() / critics.len();
        rows.critic_gradient.fill(0.0);
        let gradients = rows.critic_gradient.chunks_exact_mut(len);
        for ((critic, run), gradient) in critics.iter().zip(&mut rows.critics).zip(gradients) {
            for (value, target) in critic.forward(&rows.taken, run).iter_mut().zip(&rows.target) {
                let error = *value - target;
                self.losses.value += f64::from(*value);
                self.losses.critic += 0.5 * f64::from(error * error);
                *value = weight * error;
            }
            critic.backward(&rows.taken, run, Some(gradient), None);
        }

        self.draw(actor, false, &mut random);
        put_actions(&self.action, a, &mut self.rows.own);
        self.losses.log_prob = self.log_prob.iter().map(|&x| f64::from(x)).sum();
    }

    /// The actor's gradient: of the mean of alpha ln pi(a | s) - min_i Q_i(s, a) by its parameters, through the action.
    fn actor(&mut self, actor: &Mlp, critics: &[Mlp], alpha: f32, weight: f32) {
        let rows = &mut self.rows;
        let (n, a) = (self.log_prob.len(), self.action.len() / self.log_prob.len());
        rows.values.clear();
        for (critic, run) in critics.iter().zip(&mut rows.critics) {
            rows.values.extend_from_slice(critic.forward(&rows.own, run));
        }
        for run in &mut rows.critics {
            run.outputs().fill(0.0);
        }
        for i in 0..n {
            let value = |critic: usize| rows.values[critic * n + i];
            let least = (1..critics.len()).fold(
                0,
                |least, critic| if value(critic) < value(least) { critic } else { least },
            );
            self.losses.actor += f64::from(alpha * self.log_prob[i] - value(least));
            rows.critics[least].outputs()[i] = -weight;
        }
        rows.d_action.fill(0.0);
        for (critic, run) in critics.iter().zip(&mut rows.critics) {
            critic.backward(&rows.own, run, None, Some(&mut rows.d_input));
            add_d_actions(&rows.d_input, a, &mut rows.d_action);
        }
        let instructions = InstructionSet::detect();
        let outputs = rows.actor.outputs();
        squashed::back(
            instructions,
            outputs,
            a,
            &self.noise,
            &self.action,
            &rows.d_action,
            alpha * weight,
        );
        rows.actor_gradient.fill(0.0);
        actor.backward(&rows.obs, &mut rows.actor, Some(&mut rows.actor_gradient), None);
    }
}

impl Networks {
    fn new(settings: &SacSettings, learner: &Learner) -> Self {
        let architecture = learner.model.architecture();
        let (actor, critic) = (MlpShape::of(architecture), MlpShape::critic(architecture, &settings.qf));
        let (num_actor, num_critics) = (actor.num_params(), settings.n_critics * critic.num_params());
        let critics = |learns| (0..settings.n_critics).map(move |_| Mlp::new(&critic, learns));
        let batch_size = settings.replay.batch_size;
        let mut shards = Vec::new();
        shards.resize_with(batch_size.div_ceil(shard_rows(batch_size)), Shard::default);
        for Shard { rows, .. } in &mut shards {
            rows.actor_gradient = vec![0.0; num_actor];
            rows.critic_gradient = vec![0.0; num_critics];
        }
        let mut networks = Self {
            actor: Mlp::new(&actor, true),
            critics: critics.clone()(true).collect(),
            targets: critics(false).collect(),
            num_actor,
            num_critics,
            run: MlpRun::default(),
            noise: Vec::new(),
            action: Vec::new(),
            scaled: Vec::new(),
            log_prob: Vec::new(),
            indices: vec![0; batch_size],
            shards,
            gradient: vec![0.0; num_actor.max(num_critics)],
        };
        networks.load(&learner.state);
        networks
    }

    /// Takes over the parameters of the train state.
    fn load(&mut self, state: &TrainState) {
        let (actor, critics) = state.params.split_at(self.num_actor);
        self.actor.load(actor);
        load_all(&mut self.critics, &critics[..self.num_critics]);
        load_all(&mut self.targets, &state.extra);
    }

    /// Chooses an action in each environment: drawn from the policy's distribution, or uniformly.
    fn act(&mut self, uniformly: bool, random: &mut Random, learner: &Learner) {
        let (spec, state) = (learner.env.spec(), &learner.state);
        let (n, a) = (state.episode_start.len(), spec.action_space.num_components());
        self.action.resize(n * a, 0.0);
        if uniformly {
            self.action.fill_with(|| (2.0 * random.uniform() - 1.0) as f32);
        } else {
            self.noise.resize(n * a, 0.0);
            self.noise.fill_with(|| random.normal() as f32);
            self.log_prob.resize(n, 0.0);
            let outputs = self.actor.forward(&state.obs, &mut self.run);
            let instructions = InstructionSet::detect();
            squashed::sample(instructions, outputs, &self.noise, &mut self.action, &mut self.log_prob);
        }
        self.scaled.clone_from(&self.action);
        squashed::scale(&spec.action_space, &mut self.scaled);
    }

    fn step_critics(&mut self, step: (u64, f64), state: &mut TrainState) {
        let range = self.num_actor..self.num_actor + self.num_critics;
        let shards = &self.shards;
        let gradient = |i: usize| &*shards[i].rows.critic_gradient;
        let learned = Learned {
            params: &mut state.params[range.clone()],
            m: &mut state.adam_m[range.clone()],
            v: &mut state.adam_v[range.clone()],
        };
        learn(
            step,
            shards.len(),
            gradient,
            None,
            &mut self.gradient[..range.len()],
            learned,
        );
        load_all(&mut self.critics, &state.params[range]);
    }

    fn step_actor(&mut self, step: (u64, f64), state: &mut TrainState) {
        let range = ..self.num_actor;
        let shards = &self.shards;
        let gradient = |i: usize| &*shards[i].rows.actor_gradient;
        let learned = Learned {
            params: &mut state.params[range],
            m: &mut state.adam_m[range],
            v: &mut state.adam_v[range],
        };
        learn(step, shards.len(), gradient, None, &mut self.gradient[range], learned);
        self.actor.load(&state.params[range]);
    }

    fn step_targets(&mut self, tau: f64, state: &mut TrainState) {
        let critics = &state.params[self.num_actor..self.num_actor + self.num_critics];
        follow(&mut state.extra, tau, critics);
        load_all(&mut self.targets, &state.extra);
    }
}

/// Loads networks of one shape, whose parameters lie one after another.
fn load_all(networks: &mut [Mlp], params: &[f32]) {
    let len = params.len() / networks.len();
    networks
        .par_iter_mut()
        .zip(params.par_chunks_exact(len))
        .for_each(|(network, params)| network.load(params));
}

impl Losses {
    fn add(&mut self, other: &Self) {
        self.critic += other.critic;
        self.value += other.value;
        self.actor += other.actor;
        self.log_prob += other.log_prob;
    }
}
