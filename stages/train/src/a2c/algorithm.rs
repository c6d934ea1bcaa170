//! Advantage actor-critic (Mnih and others, "Asynchronous methods for deep reinforcement learning", 2016;
//! without the asynchrony): collect a short rollout, estimate advantages, and take one step of RMSprop along
//! the policy gradient and the value loss.
//!
//! Rollout, advantages and objective are PPO's: in the first step on a rollout every ratio is 1, where the
//! gradient of the clipped objective is the policy gradient (Huang and others, "A2C is a special case of
//! PPO", 2022).

use super::settings::A2cSettings;
use crate::learner::{Algorithm, Learner};
use crate::metrics::{Metric, explained_variance};
use crate::ppo::algorithm::Ppo;
use crate::ppo::objective::{Coefficients, Losses};
use crate::settings::Common;
use crate::train_state::Statistics;
use stages_core::StageError;
use stages_policy::{Minibatch, Policy};

/// The decay of RMSprop's mean square, as in stable-baselines3.
const ALPHA: f64 = 0.99;

/// A2C.
pub(crate) struct A2c {
    settings: A2cSettings,
    rollout: Ppo,
    /// The indices of all columns of the rollout.
    all: Vec<u32>,
}

impl Algorithm for A2c {
    fn common(&self) -> &Common {
        self.rollout.common()
    }

    fn common_mut(&mut self) -> &mut Common {
        self.rollout.common_mut()
    }

    fn statistics(&self, obs_dim: usize, init: Option<&Policy>) -> Result<Statistics, StageError> {
        self.rollout.statistics(obs_dim, init)
    }

    fn update(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        self.rollout.collect(learner)?;
        learner.check_device()?;
        self.learn(learner)
    }
}

impl A2c {
    pub(crate) fn new(settings: &A2cSettings) -> Self {
        Self {
            settings: settings.clone(),
            rollout: Ppo::new(&settings.rollout),
            all: Vec::new(),
        }
    }

    /// Takes one step of the optimiser on the whole rollout.
    fn learn(&mut self, learner: &mut Learner) -> Result<Vec<Metric>, StageError> {
        let settings = &self.settings.rollout;
        let common = self.rollout.common();
        let learning_rate = common.learning_rate_at(learner.state.step);
        let rollout = self.rollout.rollout.minibatch(common);
        self.all.clear();
        self.all.extend(0..rollout.columns as u32);
        let minibatch = Minibatch {
            indices: &self.all,
            ..rollout
        };
        let coefficients = Coefficients {
            clip_range: f32::INFINITY,
            clip_range_vf: None,
            ent_coef: settings.ppo.ent_coef as f32,
            vf_coef: settings.ppo.vf_coef as f32,
            normalize_advantage: settings.ppo.normalize_advantage,
        };
        let sums = learner.backward(&minibatch, &self.rollout.objective(&minibatch, coefficients))?;
        let losses = Losses::mean(&sums, minibatch.len());
        learner.check_finite(losses.total(&coefficients), 0, || losses.text())?;
        match self.settings.rms_prop_eps {
            None => learner.optimiser_step(learning_rate, common.rollouts.max_grad_norm),
            Some(epsilon) => {
                learner.rms_prop_step(learning_rate, (ALPHA, epsilon), common.rollouts.max_grad_norm)
            }
        }
        learner.timer.stop();
        Ok(vec![
            ("charts/learning_rate", Some(learning_rate)),
            ("losses/policy_loss", Some(losses.policy)),
            ("losses/value_loss", Some(losses.value)),
            ("losses/entropy", Some(losses.entropy)),
            (
                "losses/explained_variance",
                explained_variance(&self.rollout.value, &self.rollout.target),
            ),
        ])
    }
}
