//! Soft actor-critic (Haarnoja and others, 2018): act by a squashed normal distribution, keep transitions,
//! and after every few steps move the critics towards the soft value of a batch, the actor towards actions
//! that the least of the critics values, and the weight of the entropy so that the entropy meets its target.

use super::settings::{Sac, SacSettings};
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::replay::Replay;
use crate::replay::actor_critic::{ActorCritic, ActorCriticLearner, HasActor, Shard, first_critics, metrics};
use crate::replay::networks::{Learned, learn};
use crate::replay::off_policy::{Losses, OffPolicy};
use crate::replay::shard::{add_grad_actions, put_actions};
use crate::train_state::TrainState;
use stages_core::StageError;
use stages_env::EnvSpec;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use stages_policy::{Mlp, MlpRun, squashed};

/// The name of the stream of the random numbers with which learning draws actions.
const DRAW: u64 = u64::from_le_bytes(*b"draw\0\0\0\0");

/// The noise with which actions are drawn, and the logarithms of the actions' densities.
#[derive(Default)]
pub(crate) struct Draws {
    noise: Vec<f32>,
    log_prob: Vec<f32>,
}

impl OffPolicy for Sac {
    type Networks = ActorCriticLearner<Draws>;

    fn start(settings: &SacSettings, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        let (common, own) = (&settings.common, &settings.own);
        let architecture = common.network.architecture(spec)?;
        let critics = first_critics(&architecture, &own.qf, own.n_critics, common.training.seed);
        state.add_params(&critics);
        state.add_params(&[libm::log(own.ent_coef.0) as f32]);
        state.extra = critics;
        Ok(())
    }

    fn networks(settings: &SacSettings, learner: &Learner) -> Self::Networks {
        let Sac { qf, n_critics, .. } = &settings.own;
        ActorCriticLearner::new((qf, *n_critics), false, settings.replay.batch_size, learner)
    }

    fn step(
        settings: &SacSettings,
        networks: &mut Self::Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError> {
        networks.act(settings, replay, learner, random)
    }

    /// A step of every optimiser along the gradient of a batch, and of the target networks.
    fn gradient_step(
        settings: &SacSettings,
        networks: &mut Self::Networks,
        replay: &Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError> {
        let (batch_size, own) = (settings.replay.batch_size, &settings.own);
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        let alpha = libm::expf(log_alpha);
        let weight = 1.0 / batch_size as f32;

        // Critics, towards the reward and the soft value of the next state.
        let random = (DRAW, random);
        let (step, mut losses) =
            networks.step_critics(settings, random, replay, learner, |shard, networks, random| {
                shard.critics(networks, alpha, weight, random);
            })?;

        // The actor, towards actions that the critics value now.
        networks.step_actor(settings, (step, 1), &mut losses, learner, |shard, networks| {
            shard.actor(&networks.actor, &networks.critics, alpha, weight);
        });

        // The weight of the entropy, by the actions of the actor before this step.
        if own.ent_coef.1 {
            let components = learner.model.architecture().head.num_components() as f64;
            let target = own.target_entropy.unwrap_or(-components);
            let grad_log_alpha = [-(losses.log_prob / batch_size as f64 + target) as f32];
            let end = learner.state.params.len();
            let learning_rate = settings.common.learning_rate_at(learner.state.step);
            let alpha = Learned::of(&mut learner.state, end - 1..end);
            learn((step, learning_rate), 1, |_| &grad_log_alpha, None, &mut [0.0], alpha);
        }

        if step.is_multiple_of(own.target_update_interval) {
            networks.step_targets(settings.replay.tau, &mut learner.state);
        }
        Ok(losses)
    }

    fn metrics(settings: &SacSettings, losses: &Losses, learner: &Learner) -> Vec<Metric> {
        let log_alpha = learner.state.params.last().copied().unwrap_or_default();
        let shared = metrics(settings, settings.own.n_critics, losses, learner);
        let own = [
            ("losses/entropy", losses.mean(-losses.log_prob)),
            ("losses/alpha", Some(libm::exp(f64::from(log_alpha)))),
        ];
        [&shared[..], &own].concat()
    }
}

impl Draws {
    /// Draws an action for each row of observations.
    fn draw(
        &mut self,
        actor: &Mlp,
        obs: &[f32],
        run: &mut MlpRun,
        action: &mut Vec<f32>,
        random: &mut Random,
    ) {
        let a = actor.shape().outputs / 2;
        let outputs = actor.forward(obs, run);
        let n = outputs.len() / (2 * a);
        self.noise.resize(n * a, 0.0);
        self.noise.fill_with(|| random.normal() as f32);
        action.resize(n * a, 0.0);
        self.log_prob.resize(n, 0.0);
        squashed::sample(
            InstructionSet::detect(),
            outputs,
            &self.noise,
            action,
            &mut self.log_prob,
        );
    }
}

impl Shard<Draws> {
    /// The critics' gradients. Leaves the policy's own actions, for the actor's gradient.
    fn critics(&mut self, networks: &ActorCritic, alpha: f32, weight: f32, mut random: Random) {
        let Self { rows, action, own, .. } = self;
        own.draw(&networks.actor, &rows.next_obs, &mut rows.actor, action, &mut random);
        let a = action.len() / own.log_prob.len();
        put_actions(action, a, &mut rows.next);
        rows.least_targets(&networks.targets);
        for ((target, outcome), log_prob) in rows.target.iter_mut().zip(&rows.outcomes).zip(&own.log_prob) {
            *target = outcome.reward + outcome.discount * (*target - alpha * log_prob);
        }
        rows.critic_gradients(&networks.critics, 0.5, weight, &mut self.losses);

        own.draw(&networks.actor, &rows.obs, &mut rows.actor, action, &mut random);
        put_actions(action, a, &mut rows.own);
        self.losses.log_prob = own.log_prob.iter().map(|&x| f64::from(x)).sum();
    }

    /// The actor's gradient: that of the mean of alpha ln pi(a | s) - min_i Q_i(s, a) with respect to the
    /// actor's parameters, through the action.
    fn actor(&mut self, actor: &Mlp, critics: &[Mlp], alpha: f32, weight: f32) {
        let rows = &mut self.rows;
        let (n, a) = (self.own.log_prob.len(), self.action.len() / self.own.log_prob.len());
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
            self.losses.actor += f64::from(alpha * self.own.log_prob[i] - value(least));
            rows.critics[least].outputs()[i] = -weight;
        }
        rows.grad_action.fill(0.0);
        for (critic, run) in critics.iter().zip(&mut rows.critics) {
            critic.backward(&rows.own, run, None, Some(&mut rows.grad_input));
            add_grad_actions(&rows.grad_input, a, &mut rows.grad_action);
        }
        let instructions = InstructionSet::detect();
        let outputs = rows.actor.outputs();
        squashed::back(
            instructions,
            outputs,
            a,
            &self.own.noise,
            &self.action,
            &rows.grad_action,
            alpha * weight,
        );
        actor.backward(&rows.obs, &mut rows.actor, Some(&mut rows.actor_gradient), None);
    }
}

impl HasActor for Sac {
    type Buffers = Draws;

    /// Draws from the policy's distribution.
    fn explore<'n>(
        _: &SacSettings,
        networks: &'n mut Self::Networks,
        obs: &[f32],
        random: &mut Random,
    ) -> &'n [f32] {
        let ActorCriticLearner {
            networks,
            run,
            action,
            own,
            ..
        } = networks;
        own.draw(&networks.actor, obs, run, action, random);
        action
    }
}
