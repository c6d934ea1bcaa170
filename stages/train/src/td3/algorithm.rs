//! Twin delayed deep deterministic policy gradient (Fujimoto and others, 2018): act by a deterministic actor
//! with noise, keep transitions, move critics towards the least value of a smoothed target action, and, less
//! often, the actor towards actions that the first critic values.

use super::settings::{Td3, Td3Settings};
use crate::learner::Learner;
use crate::metrics::Metric;
use crate::replay::Replay;
use crate::replay::actor_critic::{ActorCritic, ActorCriticLearner, HasActor, Shard, first_critics, metrics};
use crate::replay::off_policy::{Losses, OffPolicy};
use crate::replay::shard::{add_grad_actions, put_actions};
use crate::train_state::TrainState;
use stages_core::StageError;
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::Mlp;

/// The name of the stream of the noise of target actions.
const SMOOTH: u64 = u64::from_le_bytes(*b"smooth\0\0");

impl OffPolicy for Td3 {
    type Networks = ActorCriticLearner<()>;

    fn start(settings: &Td3Settings, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        let (common, own) = (&settings.common, &settings.own);
        let architecture = common.network.architecture(spec)?;
        let critics = first_critics(&architecture, &own.qf, own.n_critics, common.training.seed);
        let actor = state.params.clone();
        state.add_params(&critics);
        state.extra = critics;
        state.extra.extend(actor);
        Ok(())
    }

    fn networks(settings: &Td3Settings, learner: &Learner) -> Self::Networks {
        let Td3 { qf, n_critics, .. } = &settings.own;
        ActorCriticLearner::new((qf, *n_critics), true, settings.replay.batch_size, learner)
    }

    fn step(
        settings: &Td3Settings,
        networks: &mut Self::Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError> {
        networks.act(settings, replay, learner, random)
    }

    fn gradient_step(
        settings: &Td3Settings,
        networks: &mut Self::Networks,
        replay: &Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError> {
        let own = &settings.own;
        let noise = (own.target_policy_noise as f32, own.target_noise_clip as f32);
        let weight = 1.0 / settings.replay.batch_size as f32;

        // Critics, towards the reward and the value of the next state.
        let random = (SMOOTH, random);
        let (step, mut losses) =
            networks.step_critics(settings, random, replay, learner, |shard, networks, random| {
                shard.critics(networks, noise, weight, random);
            })?;
        if !step.is_multiple_of(own.policy_delay) {
            return Ok(losses);
        }

        // The actor, towards actions that the first critic values now; then the targets.
        let delayed = (step, own.policy_delay);
        networks.step_actor(settings, delayed, &mut losses, learner, |shard, networks| {
            shard.actor(&networks.actor, &networks.critics[0], weight);
        });
        networks.step_targets(settings.replay.tau, &mut learner.state);
        Ok(losses)
    }

    fn metrics(settings: &Td3Settings, losses: &Losses, learner: &Learner) -> Vec<Metric> {
        metrics(settings, settings.own.n_critics, losses, learner).to_vec()
    }
}

impl Shard<()> {
    /// The critics' gradients, where target actions have noise of the given standard deviation within a
    /// bound.
    fn critics(
        &mut self,
        networks: &ActorCritic,
        (deviation, bound): (f32, f32),
        weight: f32,
        mut random: Random,
    ) {
        let rows = &mut self.rows;
        self.action.clear();
        if let Some(target_actor) = &networks.target_actor {
            self.action
                .extend_from_slice(target_actor.forward(&rows.next_obs, &mut rows.actor));
        }
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

    /// The actor's gradient: that of the mean of -Q_1(s, a) with respect to the actor's parameters, through
    /// the action.
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
        critic.backward(&rows.own, run, None, Some(&mut rows.grad_input));
        rows.grad_action.fill(0.0);
        add_grad_actions(&rows.grad_input, a, &mut rows.grad_action);
        let outputs = rows.actor.outputs().iter_mut();
        for ((out, x), grad_action) in outputs.zip(&self.action).zip(&rows.grad_action) {
            *out = grad_action * (1.0 - x * x);
        }
        actor.backward(&rows.obs, &mut rows.actor, Some(&mut rows.actor_gradient), None);
    }
}

impl HasActor for Td3 {
    type Buffers = ();

    /// The actor's actions with noise.
    fn explore<'n>(
        settings: &Td3Settings,
        networks: &'n mut Self::Networks,
        obs: &[f32],
        random: &mut Random,
    ) -> &'n [f32] {
        let ActorCriticLearner {
            networks, run, action, ..
        } = networks;
        let outputs = networks.actor.forward(obs, run);
        action.clear();
        action.extend(outputs.iter().map(|output| {
            let noise = (settings.own.action_noise * random.normal()) as f32;
            (libm::tanhf(*output) + noise).clamp(-1.0, 1.0)
        }));
        action
    }
}
