//! Twin delayed deep deterministic policy gradient (Fujimoto and others, 2018): act by a deterministic actor
//! with noise, keep transitions, move critics towards the least value of a smoothed target action, and, less
//! often, the actor towards actions that the first critic values.

use super::settings::Td3Settings;
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::replay::Replay;
use crate::replay::actor_critic::{ActorCritic, first_critics};
use crate::replay::networks::{follow, shard_rows};
use crate::replay::off_policy::{HasActor, Losses, OffPolicy};
use crate::replay::settings::ReplaySettings;
use crate::replay::shard::{Rows, add_d_actions, put_actions};
use crate::settings::Common;
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::{Actions, EnvSpec};
use stages_numerics::random::Random;
use stages_policy::{Mlp, MlpRun, MlpShape, squashed};

/// The name of the stream of the noise of target actions.
const SMOOTH: u64 = u64::from_le_bytes(*b"smooth\0\0");

/// TD3. After the target critics' parameters the train state's extra ones are those of the target actor.
pub(crate) struct Td3 {
    settings: Td3Settings,
}

/// The networks, and buffers.
pub(crate) struct Networks {
    learned: ActorCritic,
    target_actor: Mlp,
    run: MlpRun,
    /// Actions of a step `[B, A]`: as the critics see them, and as the environments do.
    action: Vec<f32>,
    scaled: Vec<f32>,
    indices: Vec<u32>,
    shards: Vec<Shard>,
}

/// Some rows of a batch, and the actor's actions for them.
#[derive(Default)]
struct Shard {
    rows: Rows,
    action: Vec<f32>,
    losses: Losses,
}

impl OffPolicy for Td3 {
    type Settings = Td3Settings;
    type Networks = Networks;

    fn new(settings: &Td3Settings) -> Self {
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
        let Td3Settings {
            common, qf, n_critics, ..
        } = &self.settings;
        let critics = first_critics(&common.network.architecture(spec)?, qf, *n_critics, common.seed);
        let actor = state.params.clone();
        state.add_params(&critics);
        state.extra = critics;
        state.extra.extend(actor);
        Ok(())
    }

    fn networks(&self, learner: &Learner) -> Networks {
        let batch_size = self.settings.replay.batch_size;
        let learned = ActorCritic::new(&self.settings.qf, self.settings.n_critics, learner);
        let mut target_actor = learner
            .model
            .perceptron(&MlpShape::of(learner.model.architecture()), false);
        let (actor_len, critics_len) = learned.lens();
        target_actor.load(&learner.state.extra[critics_len..critics_len + actor_len]);
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
            target_actor,
            run: MlpRun::default(),
            action: Vec::new(),
            scaled: Vec::new(),
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
        let weight = 1.0 / settings.batch_size as f32;
        let rows = shard_rows(settings.batch_size, &networks.learned.actor);
        let noise = (
            self.settings.target_policy_noise as f32,
            self.settings.target_noise_clip as f32,
        );

        // Critics, towards the reward and the value of the next state.
        let Networks {
            learned,
            target_actor,
            shards,
            indices,
            ..
        } = &mut *networks;
        let (buffer, before, target) = (&*replay, &*learned, &*target_actor);
        let batches = shards.par_iter_mut().zip(indices.par_chunks(rows)).enumerate();
        batches.with_max_len(1).for_each(|(i, (shard, indices))| {
            let random = Random::new(&[common.seed, SMOOTH, step, i as u64]);
            shard.rows.load(buffer, indices, settings.n_steps, settings.gamma);
            shard.critics(before, target, noise, weight, random);
        });
        let mut losses = Losses::default();
        for shard in &*shards {
            losses.add(&shard.losses);
        }
        let qf_loss = losses.critic;
        learner.check_finite(qf_loss, step as usize, || format!("critic loss {qf_loss}"))?;
        learner.timer.start(Phase::Optimiser);
        learner.state.adam_steps = step;
        let n = shards.len();
        learned.step_critics((step, learning_rate), n, |i| &shards[i].rows, &mut learner.state);
        if !step.is_multiple_of(self.settings.policy_delay) {
            return Ok(losses);
        }

        // The actor, towards actions that the first critic values now; then the targets.
        learner.timer.start(Phase::Backward);
        let (actor, critic) = (&learned.actor, &learned.critics[0]);
        let all = shards.par_iter_mut().with_max_len(1);
        all.for_each(|shard| shard.actor(actor, critic, weight));
        for shard in &*shards {
            losses.actor += shard.losses.actor;
        }
        losses.actor_samples += settings.batch_size as f64;
        learner.timer.start(Phase::Optimiser);
        let state = &mut learner.state;
        let delay = self.settings.policy_delay;
        learned.step_actor((step, learning_rate), delay, n, |i| &shards[i].rows, state);
        learned.step_targets(settings.tau, state);
        let (actor_len, critics_len) = learned.lens();
        let targets = &mut state.extra[critics_len..critics_len + actor_len];
        follow(targets, settings.tau, &state.params[..actor_len]);
        target_actor.load(targets);
        Ok(losses)
    }

    fn metrics(&self, losses: &Losses, learner: &Learner) -> Vec<Metric> {
        let learning_rate = self.settings.common.learning_rate_at(learner.state.step);
        let actor_loss = (losses.actor_samples > 0.0).then(|| losses.actor / losses.actor_samples);
        vec![
            ("charts/learning_rate", Some(learning_rate)),
            ("losses/qf_loss", losses.mean(losses.critic)),
            (
                "losses/qf_values",
                losses.mean(losses.value / self.settings.n_critics as f64),
            ),
            ("losses/actor_loss", actor_loss),
        ]
    }
}

impl Shard {
    /// The critics' gradients, where target actions have noise of the given standard deviation within a
    /// bound.
    fn critics(
        &mut self,
        networks: &ActorCritic,
        target_actor: &Mlp,
        (deviation, bound): (f32, f32),
        weight: f32,
        mut random: Random,
    ) {
        self.losses = Losses::default();
        let rows = &mut self.rows;
        self.action.clear();
        self.action
            .extend_from_slice(target_actor.forward(&rows.next_obs, &mut rows.actor));
        for x in &mut self.action {
            let noise = (deviation * random.normal() as f32).clamp(-bound, bound);
            *x = (libm::tanhf(*x) + noise).clamp(-1.0, 1.0);
        }
        let a = self.action.len() / rows.outcomes.len();
        put_actions(&self.action, a, &mut rows.next);
        rows.least_targets(&networks.targets);
        for (target, outcome) in rows.target.iter_mut().zip(&rows.outcomes) {
            *target = outcome.reward + outcome.discount * *target;
        }
        rows.critic_gradients(&networks.critics, 1.0, weight, &mut self.losses);
    }

    /// The actor's gradient: of the mean of -Q_1(s, a) by its parameters, through the action.
    fn actor(&mut self, actor: &Mlp, critic: &Mlp, weight: f32) {
        let rows = &mut self.rows;
        self.action.clear();
        self.action.extend_from_slice(actor.forward(&rows.obs, &mut rows.actor));
        for x in &mut self.action {
            *x = libm::tanhf(*x);
        }
        let a = self.action.len() / rows.outcomes.len();
        put_actions(&self.action, a, &mut rows.own);
        let run = &mut rows.critics[0];
        for value in critic.forward(&rows.own, run) {
            self.losses.actor -= f64::from(*value);
            *value = -weight;
        }
        critic.backward(&rows.own, run, None, Some(&mut rows.d_input));
        rows.d_action.fill(0.0);
        add_d_actions(&rows.d_input, a, &mut rows.d_action);
        let outputs = rows.actor.outputs().iter_mut();
        for ((out, x), d_action) in outputs.zip(&self.action).zip(&rows.d_action) {
            *out = d_action * (1.0 - x * x);
        }
        actor.backward(&rows.obs, &mut rows.actor, Some(&mut rows.actor_gradient), None);
    }
}

impl HasActor for Td3 {
    /// The actor's actions with noise.
    fn explore<'n>(&self, networks: &'n mut Networks, obs: &[f32], random: &mut Random) -> &'n [f32] {
        let outputs = networks.learned.actor.forward(obs, &mut networks.run);
        networks.action.clear();
        networks.action.extend(outputs.iter().map(|output| {
            let noise = (self.settings.action_noise * random.normal()) as f32;
            (libm::tanhf(*output) + noise).clamp(-1.0, 1.0)
        }));
        &networks.action
    }

    fn take_actor(&self, networks: &mut Networks, params: &[f32], anew: bool, state: &mut TrainState) {
        networks.learned.take_actor(params, anew, state);
        if anew {
            networks.target_actor.load(params);
            let (actor_len, critics_len) = networks.learned.lens();
            state.extra[critics_len..critics_len + actor_len].copy_from_slice(params);
        }
    }
}
