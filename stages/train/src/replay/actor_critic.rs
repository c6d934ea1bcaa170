//! The actor and the critics of SAC and TD3: their places in the train state, and their steps.
//!
//! The train state's parameters are those of the actor, then of the critics, one after another, then what
//! else an algorithm learns; its extra ones begin with those of the target critics.

use super::networks::{Learned, follow, learn};
use super::off_policy::Losses;
use super::shard::Rows;
use crate::learner::Learner;
use crate::train_state::TrainState;
use rayon::prelude::*;
use stages_policy::{Architecture, Mlp, MlpRun, MlpShape};
use std::ops::Range;

/// The name of the stream of the critics' first parameters.
const CRITIC: u64 = u64::from_le_bytes(*b"critic\0\0");

/// See the module.
pub(crate) struct ActorCritic {
    pub actor: Mlp,
    pub critics: Vec<Mlp>,
    pub targets: Vec<Mlp>,
    num_actor: usize,
    num_critics: usize,
    gradient: Vec<f32>,
    /// The critics' steps before the actor's first one.
    began: u64,
}

/// The first parameters of `n` critics with these hidden layers.
pub(crate) fn first_critics(architecture: &Architecture, qf: &[usize], n: usize, seed: u64) -> Vec<f32> {
    let shape = MlpShape::critic(architecture, qf);
    (0..n as u64).flat_map(|i| shape.initial(&[seed, CRITIC, i])).collect()
}

impl ActorCritic {
    /// The networks with the parameters of the train state.
    pub fn new(qf: &[usize], n_critics: usize, learner: &Learner) -> Self {
        let architecture = learner.model.architecture();
        let (actor, critic) = (MlpShape::of(architecture), MlpShape::critic(architecture, qf));
        let (num_actor, num_critics) = (actor.num_params(), n_critics * critic.num_params());
        let critics = |learns| {
            (0..n_critics)
                .map(|_| learner.model.perceptron(&critic, learns))
                .collect()
        };
        let mut networks = Self {
            actor: learner.model.perceptron(&actor, true),
            critics: critics(true),
            targets: critics(false),
            num_actor,
            num_critics,
            gradient: vec![0.0; num_actor.max(num_critics)],
            began: 0,
        };
        let TrainState { params, extra, .. } = &learner.state;
        networks.actor.load(&params[..num_actor]);
        load_all(&mut networks.critics, &params[num_actor..num_actor + num_critics]);
        load_all(&mut networks.targets, &extra[..num_critics]);
        networks
    }

    fn critics_at(&self) -> Range<usize> {
        self.num_actor..self.num_actor + self.num_critics
    }

    /// The number of parameters of the actor, and of all critics.
    pub fn lens(&self) -> (usize, usize) {
        (self.num_actor, self.num_critics)
    }

    /// Goes on with another actor; if `anew`, its optimiser begins anew.
    pub fn take_actor(&mut self, params: &[f32], anew: bool, state: &mut TrainState) {
        let range = 0..self.num_actor;
        state.params[range.clone()].copy_from_slice(params);
        self.actor.load(params);
        if anew {
            state.adam_m[range.clone()].fill(0.0);
            state.adam_v[range].fill(0.0);
            self.began = state.adam_steps;
        }
    }

    /// Room for the gradients of a shard.
    pub fn make_room(&self, rows: &mut Rows) {
        rows.actor_gradient.zeros(self.num_actor);
        rows.critic_gradient.zeros(self.num_critics);
    }

    /// A step of Adam of the critics, along the gradients of `n` shards; `step` is its number and the
    /// learning rate.
    pub fn step_critics<'r>(
        &mut self,
        step: (u64, f64),
        n: usize,
        shard: impl Fn(usize) -> &'r Rows + Sync,
        state: &mut TrainState,
    ) {
        let range = self.critics_at();
        let gradient = &mut self.gradient[..range.len()];
        let learned = Learned::of(state, range.clone());
        learn(step, n, |i| &shard(i).critic_gradient, None, gradient, learned);
        load_all(&mut self.critics, &state.params[range]);
    }

    /// The same, of the actor, which takes one step in `delay` of the critics'.
    pub fn step_actor<'r>(
        &mut self,
        (step, learning_rate): (u64, f64),
        delay: u64,
        n: usize,
        shard: impl Fn(usize) -> &'r Rows + Sync,
        state: &mut TrainState,
    ) {
        let range = 0..self.num_actor;
        let step = (step / delay - self.began / delay, learning_rate);
        let gradient = &mut self.gradient[range.clone()];
        let learned = Learned::of(state, range.clone());
        learn(step, n, |i| &shard(i).actor_gradient, None, gradient, learned);
        self.actor.load(&state.params[range]);
    }

    /// Moves the target critics towards the critics by the share `tau`.
    pub fn step_targets(&mut self, tau: f64, state: &mut TrainState) {
        let targets = &mut state.extra[..self.num_critics];
        follow(targets, tau, &state.params[self.critics_at()]);
        load_all(&mut self.targets, targets);
    }
}

impl Rows {
    /// The least of the target critics' values of the next pairs, as targets.
    pub fn least_targets(&mut self, targets: &[Mlp]) {
        self.target.fill(f32::INFINITY);
        self.critics.resize_with(targets.len(), MlpRun::default);
        for (target, run) in targets.iter().zip(&mut self.critics) {
            for (least, value) in self.target.iter_mut().zip(target.forward(&self.next, run)) {
                *least = least.min(*value);
            }
        }
    }

    /// The critics' gradients of `share` x the square of their errors, for a batch whose rows have the weight
    /// `weight`.
    pub fn critic_gradients(&mut self, critics: &[Mlp], share: f32, weight: f32, losses: &mut Losses) {
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
