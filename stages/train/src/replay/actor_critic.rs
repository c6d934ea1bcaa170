//! The actor and the critics of SAC and TD3: their places in the train state, acting and steps.
//!
//! The train state's parameters are those of the actor, then of the critics, one after another, then what
//! else an algorithm learns; its extra ones begin with those of the target critics.

use super::Replay;
use super::networks::{Learned, follow, learn, shard_rows};
use super::off_policy::{Losses, OffPolicy};
use super::settings::OffPolicySettings;
use super::shard::Rows;
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_core::StageError;
use stages_env::Actions;
use stages_numerics::random::Random;
use stages_policy::{Architecture, Mlp, MlpRun, MlpShape};
use std::ops::Range;

/// The name of the stream of the critics' first parameters.
const CRITIC: u64 = u64::from_le_bytes(*b"critic\0\0");

/// The networks of the actor, the critics and the target critics.
pub(crate) struct ActorCritic {
    pub actor: Mlp,
    pub critics: Vec<Mlp>,
    pub targets: Vec<Mlp>,
    /// The target actor, if the algorithm has one.
    pub target_actor: Option<Mlp>,
}

/// The networks, the steps of their optimisers, and buffers. `S` is what an algorithm keeps besides actions.
pub(crate) struct ActorCriticLearner<S> {
    pub networks: ActorCritic,
    pub run: MlpRun,
    /// The actions of a step `[B, A]`, scaled as the critics read them.
    pub action: Vec<f32>,
    pub own: S,
    /// The same actions, scaled to the environments' bounds.
    scaled: Vec<f32>,
    indices: Vec<u32>,
    shards: Vec<Shard<S>>,
    num_actor: usize,
    num_critics: usize,
    gradient: Vec<f32>,
    /// The number of critic steps before the actor's first step.
    began: u64,
}

/// A shard of a batch's rows, and the actor's actions for them.
#[derive(Default)]
pub(crate) struct Shard<S> {
    pub rows: Rows,
    pub action: Vec<f32>,
    pub own: S,
    pub losses: Losses,
}

/// The initial parameters of `n` critics with these hidden layers.
pub(crate) fn first_critics(architecture: &Architecture, qf: &[usize], n: usize, seed: u64) -> Vec<f32> {
    let shape = MlpShape::critic(architecture, qf);
    (0..n as u64).flat_map(|i| shape.initial(&[seed, CRITIC, i])).collect()
}

/// The metrics of a round of learning by an actor and `n_critics` critics.
pub(crate) fn metrics<A>(
    settings: &OffPolicySettings<A>,
    n_critics: usize,
    losses: &Losses,
    learner: &Learner,
) -> [Metric; 4] {
    let learning_rate = settings.common.learning_rate_at(learner.state.step);
    let actor_loss = (losses.actor_samples > 0.0).then(|| losses.actor / losses.actor_samples);
    [
        ("charts/learning_rate", Some(learning_rate)),
        ("losses/qf_loss", losses.mean(losses.critic)),
        ("losses/qf_values", losses.mean(losses.value / n_critics as f64)),
        ("losses/actor_loss", actor_loss),
    ]
}

/// An algorithm with an actor of continuous actions, beside which a population can act.
pub(crate) trait HasActor: OffPolicy<Networks = ActorCriticLearner<Self::Buffers>> {
    /// The buffers that the algorithm keeps besides actions.
    type Buffers: Default + Send + Sync;

    /// Chooses actions `[n, A]` for observations `[n, D]`, as networks read them, with exploration.
    fn explore<'n>(
        settings: &OffPolicySettings<Self>,
        networks: &'n mut Self::Networks,
        obs: &[f32],
        random: &mut Random,
    ) -> &'n [f32];
}

impl<S: Default + Send + Sync> ActorCriticLearner<S> {
    /// The networks with the parameters of the train state, with or without a target actor.
    pub(crate) fn new(
        (qf, n_critics): (&[usize], usize),
        has_target_actor: bool,
        batch_size: usize,
        learner: &Learner,
    ) -> Self {
        let architecture = learner.model.architecture();
        let (actor, critic) = (MlpShape::of(architecture), MlpShape::critic(architecture, qf));
        let (num_actor, num_critics) = (actor.num_params(), n_critics * critic.num_params());
        let critics = |learns| {
            (0..n_critics)
                .map(|_| learner.model.perceptron(&critic, learns))
                .collect()
        };
        let mut networks = ActorCritic {
            actor: learner.model.perceptron(&actor, true),
            critics: critics(true),
            targets: critics(false),
            target_actor: has_target_actor.then(|| learner.model.perceptron(&actor, false)),
        };
        let TrainState { params, extra, .. } = &learner.state;
        networks.actor.load(&params[..num_actor]);
        load_all(&mut networks.critics, &params[num_actor..num_actor + num_critics]);
        load_all(&mut networks.targets, &extra[..num_critics]);
        if let Some(target_actor) = &mut networks.target_actor {
            target_actor.load(&extra[num_critics..num_critics + num_actor]);
        }
        let mut shards = Vec::new();
        shards.resize_with(
            batch_size.div_ceil(shard_rows(batch_size, &networks.actor)),
            Shard::<S>::default,
        );
        for Shard { rows, .. } in &mut shards {
            rows.actor_gradient.zeros(num_actor);
            rows.critic_gradient.zeros(num_critics);
        }
        Self {
            networks,
            run: MlpRun::default(),
            action: Vec::new(),
            own: S::default(),
            scaled: Vec::new(),
            indices: vec![0; batch_size],
            shards,
            num_actor,
            num_critics,
            gradient: vec![0.0; num_actor.max(num_critics)],
            began: 0,
        }
    }

    fn critics_at(&self) -> Range<usize> {
        self.num_actor..self.num_actor + self.num_critics
    }

    /// Replaces the actor's parameters; if `anew`, its optimiser and its target start anew.
    pub(crate) fn take_actor(&mut self, params: &[f32], anew: bool, state: &mut TrainState) {
        let range = 0..self.num_actor;
        state.params[range.clone()].copy_from_slice(params);
        self.networks.actor.load(params);
        if anew {
            state.first_moment[range.clone()].fill(0.0);
            state.second_moment[range].fill(0.0);
            self.began = state.optimiser_steps;
            if let Some(target_actor) = &mut self.networks.target_actor {
                target_actor.load(params);
                state.extra[self.num_critics..][..params.len()].copy_from_slice(params);
            }
        }
    }

    /// Chooses actions, uniformly at random before learning begins, takes them in the environments, and keeps
    /// the transitions.
    pub(crate) fn act<A: HasActor<Buffers = S>>(
        &mut self,
        settings: &OffPolicySettings<A>,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError> {
        if replay.total() < settings.replay.learning_starts {
            let n = learner.state.episode_start.len();
            self.action.resize(n * replay.num_components(), 0.0);
            self.action.fill_with(|| (2.0 * random.uniform() - 1.0) as f32);
        } else {
            A::explore(settings, self, &learner.state.obs, random);
        }
        self.scaled.clone_from(&self.action);
        if let Some(bounds) = learner.env.spec().action_space.bounds() {
            bounds.scale(&mut self.scaled);
        }
        replay.step(learner, Actions::Continuous(&self.scaled), &self.action)?;
        Ok(())
    }

    /// Takes a step of Adam for the critics, along the gradients that `shard` computes for the shards of a
    /// batch; `stream` names a shard's random numbers. Returns the number of the step and the losses.
    pub(crate) fn step_critics<A>(
        &mut self,
        settings: &OffPolicySettings<A>,
        (stream, random): (u64, &mut Random),
        replay: &Replay,
        learner: &mut Learner,
        shard: impl Fn(&mut Shard<S>, &ActorCritic, Random) + Sync,
    ) -> Result<(u64, Losses), StageError> {
        let OffPolicySettings {
            common, replay: of, ..
        } = settings;
        let learning_rate = common.learning_rate_at(learner.state.step);
        learner.timer.start(Phase::Backward);
        replay.sample(random, &mut self.indices);
        let step = learner.state.optimiser_steps + 1;
        let rows = shard_rows(of.batch_size, &self.networks.actor);
        let (networks, seed) = (&self.networks, common.training.seed);
        let batches = self
            .shards
            .par_iter_mut()
            .zip(self.indices.par_chunks(rows))
            .enumerate();
        batches.with_max_len(1).for_each(|(i, (part, indices))| {
            part.rows.load(replay, indices, of.n_steps, of.gamma);
            part.losses = Losses::default();
            shard(part, networks, Random::new(&[seed, stream, step, i as u64]));
        });
        let mut losses = Losses::default();
        for shard in &self.shards {
            losses.add(&shard.losses);
        }
        let (qf_loss, log_prob) = (losses.critic, losses.log_prob);
        learner.check_finite(qf_loss + log_prob, step as usize, || format!("critic loss {qf_loss}"))?;
        learner.timer.start(Phase::Optimiser);
        let state = &mut learner.state;
        state.optimiser_steps = step;
        let (range, shards) = (self.critics_at(), &self.shards);
        let gradient = &mut self.gradient[..range.len()];
        let learned = Learned::of(state, range.clone());
        let grad_shard = |i: usize| &*shards[i].rows.critic_gradient;
        learn((step, learning_rate), shards.len(), grad_shard, None, gradient, learned);
        load_all(&mut self.networks.critics, &state.params[range]);
        Ok((step, losses))
    }

    /// Takes a step of Adam for the actor, once per `delay` steps of the critics, along the gradients that
    /// `shard` computes.
    pub(crate) fn step_actor<A>(
        &mut self,
        settings: &OffPolicySettings<A>,
        (step, delay): (u64, u64),
        losses: &mut Losses,
        learner: &mut Learner,
        shard: impl Fn(&mut Shard<S>, &ActorCritic) + Sync,
    ) {
        learner.timer.start(Phase::Backward);
        let networks = &self.networks;
        let all = self.shards.par_iter_mut().with_max_len(1);
        all.for_each(|part| shard(part, networks));
        for shard in &self.shards {
            losses.actor += shard.losses.actor;
        }
        losses.actor_samples += settings.replay.batch_size as f64;
        learner.timer.start(Phase::Optimiser);
        let learning_rate = settings.common.learning_rate_at(learner.state.step);
        let step = (step / delay - self.began / delay, learning_rate);
        let (range, shards) = (0..self.num_actor, &self.shards);
        let gradient = &mut self.gradient[range.clone()];
        let learned = Learned::of(&mut learner.state, range.clone());
        let grad_shard = |i: usize| &*shards[i].rows.actor_gradient;
        learn(step, shards.len(), grad_shard, None, gradient, learned);
        self.networks.actor.load(&learner.state.params[range]);
    }

    /// Moves the targets towards the critics, and the actor if it has one, by the share `tau`.
    pub(crate) fn step_targets(&mut self, tau: f64, state: &mut TrainState) {
        let targets = &mut state.extra[..self.num_critics];
        follow(targets, tau, &state.params[self.critics_at()]);
        load_all(&mut self.networks.targets, targets);
        if let Some(target_actor) = &mut self.networks.target_actor {
            let target = &mut state.extra[self.num_critics..][..self.num_actor];
            follow(target, tau, &state.params[..self.num_actor]);
            target_actor.load(target);
        }
    }
}

impl Rows {
    /// Sets the targets to the least of the target critics' values of the next observations and actions.
    pub(crate) fn least_targets(&mut self, targets: &[Mlp]) {
        self.target.fill(f32::INFINITY);
        self.critics.resize_with(targets.len(), MlpRun::default);
        for (target, run) in targets.iter().zip(&mut self.critics) {
            for (least, value) in self.target.iter_mut().zip(target.forward(&self.next, run)) {
                *least = least.min(*value);
            }
        }
    }

    /// The critics' gradients of `share` x the square of their errors, for a batch in which each row has the
    /// weight `weight`.
    pub(crate) fn critic_gradients(&mut self, critics: &[Mlp], share: f32, weight: f32, losses: &mut Losses) {
        let len = self.critic_gradient.len() / critics.len();
        let gradients = self.critic_gradient.chunks_exact_mut(len);
        for ((critic, run), gradient) in critics.iter().zip(&mut self.critics).zip(gradients) {
            for (value, target) in critic.forward(&self.taken, run).iter_mut().zip(&self.target) {
                let error = *value - target;
                losses.value += f64::from(*value);
                losses.critic += f64::from(share * error * error);
                *value = 2.0 * share * weight * error;
            }
            critic.backward(&self.taken, run, Some(gradient), None);
        }
        losses.samples += self.target.len() as f64;
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
