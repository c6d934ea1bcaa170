//! Soft actor-critic (Haarnoja and others, 2018): act by a squashed normal distribution, keep transitions,
//! and after each few steps move critics towards the soft value of a batch, the actor towards actions that
//! the least of the critics values, and the weight of the entropy towards its target.

use super::settings::SacSettings;
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::replay::Replay;
use crate::replay::actor_critic::{ActorCritic, first_critics};
use crate::replay::networks::{Learned, learn, shard_rows};
use crate::replay::off_policy::{HasActor, Losses, OffPolicy};
use crate::replay::settings::ReplaySettings;
use crate::replay::shard::{Rows, add_d_actions, put_actions};
use crate::settings::Common;
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::{Actions, EnvSpec};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use stages_policy::{Mlp, MlpRun, squashed};

/// The name of the stream of the random numbers by which learning draws actions.
const DRAW: u64 = u64::from_le_bytes(*b"draw\0\0\0\0");

/// SAC. After the critics' parameters the train state has the logarithm of the entropy's weight.
pub(crate) struct Sac {
    settings: SacSettings,
}

/// The networks, and buffers.
pub(crate) struct Networks {
    learned: ActorCritic,
    run: MlpRun,
    /// Actions of a step `[B, A]`: as the critics see them, and as the environments do.
    noise: Vec<f32>,
    action: Vec<f32>,
    scaled: Vec<f32>,
    log_prob: Vec<f32>,
    indices: Vec<u32>,
    shards: Vec<Shard>,
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

impl OffPolicy for Sac {
    type Settings = SacSettings;
    type Networks = Networks;

    fn new(settings: &SacSettings) -> Self {
        Self {
            settings: settings.clone(),
        }
    }

    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    fn replay(&self) -> &ReplaySettings {
        &self.settings.replay
    }

    fn replay_mut(&mut self) -> &mut ReplaySettings {
        &mut self.settings.replay
    }

    fn start(&self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        let SacSettings {
            common, qf, n_critics, ..
        } = &self.settings;
        let critics = first_critics(&common.network.architecture(spec)?, qf, *n_critics, common.seed);
        state.add_params(&critics);
        state.add_params(&[libm::log(self.settings.ent_coef.0) as f32]);
        state.extra = critics;
        Ok(())
    }

    fn networks(&self, learner: &Learner) -> Networks {
        let batch_size = self.settings.replay.batch_size;
        let learned = ActorCritic::new(&self.settings.qf, self.settings.n_critics, learner);
        let mut shards = Vec::new();
        shards.resize_with(
            batch_size.div_ceil(shard_rows(batch_size, &learned.actor)),
            Shard::default,
        );
        for shard in &mut shards {
            learned.make_room(&mut shard.rows);
        }
        Networks {
            learned,
            run: MlpRun::default(),
            noise: Vec::new(),
            action: Vec::new(),
            scaled: Vec::new(),
            log_prob: Vec::new(),
            indices: vec![0; batch_size],
            shards,
        }
    }

    fn step(
        &self,
        networks: &mut Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError> {
        let state = &learner.state;
        if replay.total() < self.settings.replay.learning_starts {
            networks
                .action
                .resize(state.episode_start.len() * replay.num_components(), 0.0);
            networks.action.fill_with(|| (2.0 * random.uniform() - 1.0) as f32);
        } else {
            self.explore(networks, &state.obs, random);
        }
        networks.scaled.clone_from(&networks.action);
        squashed::scale(&learner.env.spec().action_space, &mut networks.scaled);
        replay.step(learner, Actions::Continuous(&networks.scaled), &networks.action)?;
        Ok(())
    }

    /// A step of every optimiser along the gradient of a batch, and of the target networks.
    fn gradient_step(
        &self,
        networks: &mut Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError> {
        let (settings, common) = (&self.settings.replay, &self.settings.common);
        let learning_rate = common.learning_rate_at(learner.state.step);
        learner.timer.start(Phase::Backward);
        replay.sample(random, &mut networks.indices);
        let step = learner.state.adam_steps + 1;
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        let alpha = libm::expf(log_alpha);
        let weight = 1.0 / settings.batch_size as f32;
        let rows = shard_rows(settings.batch_size, &networks.learned.actor);

        // Critics, towards the reward and the soft value of the next state.
        let Networks {
            learned,
            shards,
            indices,
            ..
        } = &mut *networks;
        let (buffer, before) = (&*replay, &*learned);
        let batches = shards.par_iter_mut().zip(indices.par_chunks(rows)).enumerate();
        batches.with_max_len(1).for_each(|(i, (shard, indices))| {
            let random = Random::new(&[common.seed, DRAW, step, i as u64]);
            shard.rows.load(buffer, indices, settings.n_steps, settings.gamma);
            shard.critics(before, alpha, weight, random);
        });
        let mut losses = Losses::default();
        for shard in &*shards {
            losses.add(&shard.losses);
        }
        let (qf_loss, log_prob) = (losses.critic, losses.log_prob);
        learner.check_finite(qf_loss + log_prob, step as usize, || format!("critic loss {qf_loss}"))?;
        learner.timer.start(Phase::Optimiser);
        learner.state.adam_steps = step;
        let n = shards.len();
        learned.step_critics((step, learning_rate), n, |i| &shards[i].rows, &mut learner.state);

        // The actor, towards actions that the critics value now.
        learner.timer.start(Phase::Backward);
        let (actor, critics) = (&learned.actor, &learned.critics);
        let all = shards.par_iter_mut().with_max_len(1);
        all.for_each(|shard| shard.actor(actor, critics, alpha, weight));
        for shard in &*shards {
            losses.actor += shard.losses.actor;
        }
        learner.timer.start(Phase::Optimiser);
        learned.step_actor((step, learning_rate), 1, n, |i| &shards[i].rows, &mut learner.state);

        // The weight of the entropy, by the actions of the actor before this step.
        if self.settings.ent_coef.1 {
            let components = learner.model.architecture().head.num_components() as f64;
            let target = self.settings.target_entropy.unwrap_or(-components);
            let slope = [-(losses.log_prob / settings.batch_size as f64 + target) as f32];
            let end = learner.state.params.len();
            let alpha = Learned::of(&mut learner.state, end - 1..end);
            learn((step, learning_rate), 1, |_| &slope, None, &mut [0.0], alpha);
        }

        if step.is_multiple_of(self.settings.target_update_interval) {
            learned.step_targets(settings.tau, &mut learner.state);
        }
        Ok(losses)
    }

    fn metrics(&self, losses: &Losses, learner: &Learner) -> Vec<Metric> {
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        let learning_rate = self.settings.common.learning_rate_at(learner.state.step);
        vec![
            ("charts/learning_rate", Some(learning_rate)),
            ("losses/qf_loss", losses.mean(losses.critic)),
            (
                "losses/qf_values",
                losses.mean(losses.value / self.settings.n_critics as f64),
            ),
            ("losses/actor_loss", losses.mean(losses.actor)),
            ("losses/entropy", losses.mean(-losses.log_prob)),
            ("losses/alpha", Some(libm::exp(f64::from(log_alpha)))),
        ]
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
    fn critics(&mut self, networks: &ActorCritic, alpha: f32, weight: f32, mut random: Random) {
        self.losses = Losses::default();
        self.draw(&networks.actor, true, &mut random);
        let a = self.action.len() / self.log_prob.len();
        let rows = &mut self.rows;
        put_actions(&self.action, a, &mut rows.next);
        rows.least_targets(&networks.targets);
        for ((target, outcome), log_prob) in rows.target.iter_mut().zip(&rows.outcomes).zip(&self.log_prob) {
            *target = outcome.reward + outcome.discount * (*target - alpha * log_prob);
        }
        rows.critic_gradients(&networks.critics, 0.5, weight, &mut self.losses);

        self.draw(&networks.actor, false, &mut random);
        put_actions(&self.action, a, &mut self.rows.own);
        self.losses.log_prob = self.log_prob.iter().map(|&x| f64::from(x)).sum();
    }

    /// The actor's gradient: of the mean of alpha ln pi(a | s) - min_i Q_i(s, a) by its parameters, through
    /// the action.
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
        actor.backward(&rows.obs, &mut rows.actor, Some(&mut rows.actor_gradient), None);
    }
}

impl HasActor for Sac {
    /// Draws from the policy's distribution.
    fn explore<'n>(&self, networks: &'n mut Networks, obs: &[f32], random: &mut Random) -> &'n [f32] {
        let Networks {
            learned,
            run,
            noise,
            action,
            log_prob,
            ..
        } = networks;
        let outputs = learned.actor.forward(obs, run);
        let a = learned.actor.shape().outputs / 2;
        let n = outputs.len() / (2 * a);
        action.resize(n * a, 0.0);
        noise.resize(n * a, 0.0);
        noise.fill_with(|| random.normal() as f32);
        log_prob.resize(n, 0.0);
        squashed::sample(InstructionSet::detect(), outputs, noise, action, log_prob);
        action
    }

    fn take_actor(&self, networks: &mut Networks, params: &[f32], anew: bool, state: &mut TrainState) {
        networks.learned.take_actor(params, anew, state);
    }
}
