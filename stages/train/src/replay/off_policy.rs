//! The loop of algorithms that learn from a replay buffer: step the environments, keep the transitions, and
//! learn from batches of them in between.

use super::Replay;
use super::settings::OffPolicySettings;
use crate::learner::{Algorithm, DataFrom, Learner};
use crate::metrics::Metric;
use crate::phase_timer::Phase;
use crate::settings::Common;
use crate::train_state::{Statistics, TrainState};
use crate::warm_start;
use stages_core::StageError;
use stages_env::EnvSpec;
use stages_numerics::random::Random;
use stages_policy::Policy;
use std::path::Path;

/// The names of the streams of random numbers: of actions, and of batches.
const ACT: u64 = u64::from_le_bytes(*b"act\0\0\0\0\0");
const BATCH: u64 = u64::from_le_bytes(*b"batch\0\0\0");

/// An algorithm that learns from a replay buffer, with the settings of its own.
pub(crate) trait OffPolicy: Clone + Send + Sync + 'static {
    /// The networks, with the parameters of the train state, and their buffers.
    type Networks: Send;

    /// True if steps depend on the length of the training in more than the learning rate.
    fn depends_on_total(&self) -> bool {
        false
    }

    /// Adds the parameters that are not the policy's, and targets, at the start of training.
    fn start(
        settings: &OffPolicySettings<Self>,
        spec: &EnvSpec,
        state: &mut TrainState,
    ) -> Result<(), StageError>;

    fn networks(settings: &OffPolicySettings<Self>, learner: &Learner) -> Self::Networks;

    /// Chooses an action in each environment, takes it, and keeps the transitions.
    fn step(
        settings: &OffPolicySettings<Self>,
        networks: &mut Self::Networks,
        replay: &mut Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<(), StageError>;

    /// Learns from a batch.
    fn gradient_step(
        settings: &OffPolicySettings<Self>,
        networks: &mut Self::Networks,
        replay: &Replay,
        learner: &mut Learner,
        random: &mut Random,
    ) -> Result<Losses, StageError>;

    /// The metrics of a round.
    fn metrics(settings: &OffPolicySettings<Self>, losses: &Losses, learner: &Learner) -> Vec<Metric>;
}

/// Sums over the samples of gradient steps.
#[derive(Clone, Copy, Default)]
pub(crate) struct Losses {
    pub samples: f64,
    /// The critics' loss and their values, summed over all critics.
    pub critic: f64,
    pub value: f64,
    /// The actor's loss, and the number of samples that it learned from.
    pub actor: f64,
    pub actor_samples: f64,
    /// The sum of the log-densities of the actor's actions.
    pub log_prob: f64,
}

impl Losses {
    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.critic += other.critic;
        self.value += other.value;
        self.actor += other.actor;
        self.actor_samples += other.actor_samples;
        self.log_prob += other.log_prob;
    }

    /// A sum divided by the number of samples; `None` before learning begins.
    pub(crate) fn mean(&self, sum: f64) -> Option<f64> {
        (self.samples > 0.0).then_some(sum / self.samples)
    }
}

/// An algorithm with its replay buffer.
pub(crate) struct FromReplay<A: OffPolicy> {
    pub settings: OffPolicySettings<A>,
    /// The number of environments whose transitions the buffer holds in turn.
    n_envs: usize,
    replay: Option<Replay>,
    networks: Option<A::Networks>,
}

impl<A: OffPolicy> FromReplay<A> {
    pub(crate) fn new(settings: &OffPolicySettings<A>, n_envs: usize) -> Self {
        Self {
            settings: settings.clone(),
            n_envs,
            replay: None,
            networks: None,
        }
    }

    /// The replay buffer and the networks, which [`FromReplay::put`] takes back.
    pub(crate) fn take(&mut self, learner: &Learner) -> Result<(Replay, A::Networks), StageError> {
        let replay = match self.replay.take() {
            Some(replay) => replay,
            None => Replay::new(&self.settings.replay, learner.env.spec(), self.n_envs, None)?,
        };
        let networks = self.networks.take();
        Ok((replay, networks.unwrap_or_else(|| A::networks(&self.settings, learner))))
    }

    pub(crate) fn put(&mut self, replay: Replay, networks: A::Networks) {
        (self.replay, self.networks) = (Some(replay), Some(networks));
    }

    fn round(
        &self,
        replay: &mut Replay,
        networks: &mut A::Networks,
        learner: &mut Learner,
    ) -> Result<Vec<Metric>, StageError> {
        let common = &self.settings.common;
        let (n_envs, seed, n_steps) = (common.training.n_envs, common.training.seed, common.rollouts.n_steps);
        let settings = &self.settings.replay;
        let update = learner.state.update;
        let (mut act, mut batch) = (Random::new(&[seed, ACT, update]), Random::new(&[seed, BATCH, update]));
        let mut losses = Losses::default();
        // Trials take a few gradient steps.
        let mut left = learner.minibatch_limit;
        for t in 1..=n_steps {
            learner.tick(((t - 1) * n_envs) as u64)?;
            learner.timer.start(Phase::Forward);
            A::step(&self.settings, networks, replay, learner, &mut act)?;
            if t.is_multiple_of(settings.train_freq) && replay.total() > settings.learning_starts {
                let steps = settings.gradient_steps(n_envs).min(left);
                left -= steps;
                for _ in 0..steps {
                    losses.add(&A::gradient_step(
                        &self.settings,
                        networks,
                        replay,
                        learner,
                        &mut batch,
                    )?);
                    learner.samples += settings.batch_size as u64;
                }
            }
            learner.check_device()?;
        }
        learner.timer.stop();
        Ok(A::metrics(&self.settings, &losses, learner))
    }
}

impl<A: OffPolicy> Algorithm for FromReplay<A> {
    fn common(&self) -> &Common {
        &self.settings.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.settings.common
    }

    fn shorten_trial(&mut self) {
        // Learning is what a trial measures.
        self.settings.replay.learning_starts = 0;
    }

    fn samples_per_update(&self) -> f64 {
        let OffPolicySettings { common, replay, .. } = &self.settings;
        let rounds = common.rollouts.n_steps / replay.train_freq;
        (rounds * replay.gradient_steps(common.training.n_envs) * replay.batch_size) as f64
    }

    fn statistics(&self, _: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        init.map_or(Ok(()), |init| warm_start::check_normalize_obs(init, false))?;
        Ok(Statistics::default())
    }

    fn start(&mut self, spec: &EnvSpec, state: &mut TrainState) -> Result<(), StageError> {
        A::start(&self.settings, spec, state)
    }

    fn open_data(
        &mut self,
        folder: &Path,
        spec: &EnvSpec,
        state: &TrainState,
        from: DataFrom,
    ) -> Result<bool, StageError> {
        let replay = Replay::new(&self.settings.replay, spec, self.n_envs, Some(folder))?;
        self.replay.insert(replay).open(folder, state, from)
    }

    fn keep_data(&mut self, durable: u64) -> Result<(), StageError> {
        self.replay.as_mut().map_or(Ok(()), |replay| replay.keep(durable))
    }

    fn copy_data(&self) -> Option<Vec<u8>> {
        self.replay.as_ref().map(Replay::copy)
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        let (mut replay, mut networks) = self.take(learner)?;
        let metrics = self.round(&mut replay, &mut networks, learner);
        self.put(replay, networks);
        metrics
    }
}
