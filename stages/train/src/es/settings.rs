//! The settings of `train/es`, named as evosax 0.3 names them, those of training as everywhere.

use crate::checks::{self, check, refuse_given};
use crate::network::{MlpLstmPolicy, NetArch, Network, PolicyKwargs};
use crate::settings::{Common, DeviceChoice, Resume, TrainingSettings, check_until};
use crate::validation_config::ValidationConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Schedule};
use stages_policy::Activation;

/// An evolution strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// OpenAI-ES: antithetic sampling, centred ranks and Adam (Salimans and others, 2017).
    #[default]
    OpenEs,
    /// PEPG, which learns a standard deviation for each parameter (Sehnke and others, 2010).
    Pepg,
    /// Augmented random search: the better half of the pairs (Mania and others, 2018).
    Ars,
    /// CMA-ES with a diagonal covariance (Ros and Hansen, 2008).
    SepCmaEs,
    /// CMA-ES with a full covariance (Hansen and Ostermeier, 2001), for up to 512 parameters.
    CmaEs,
}

stages_core::settings! {
    /// The network of `train/es`: an LSTM if its size is given, then hidden layers.
    #[derive(Eq)]
    pub struct EsPolicy {
        /// The sizes of hidden layers, first to last.
        pub net_arch: Vec<usize> = vec![64, 64],
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Tanh,
        /// If true, the first mean has orthogonal weights and zero biases; otherwise PyTorch's defaults.
        pub ortho_init: bool = true,
        /// The size of the hidden state of an LSTM below the hidden layers; none by default.
        pub lstm_hidden_size: Option<usize>,
    }
}

impl PolicyKwargs for EsPolicy {
    /// The critic is a linear layer that nothing learns.
    fn network(&self) -> Result<Network, ConfigProblem> {
        let policy = MlpLstmPolicy {
            net_arch: NetArch {
                pi: self.net_arch.clone(),
                vf: Vec::new(),
            },
            activation_fn: self.activation_fn,
            ortho_init: self.ortho_init,
            lstm_hidden_size: self.lstm_hidden_size.unwrap_or(1),
            shared_lstm: true,
            enable_critic_lstm: false,
            ..MlpLstmPolicy::default()
        };
        let network = policy.network()?;
        Ok(Network {
            lstm: network.lstm.filter(|_| self.lstm_hidden_size.is_some()),
            ..network
        })
    }
}

stages_core::settings! {
    /// Configuration of `train/es`.
    pub struct EsConfig {
        /// The strategy.
        pub algorithm: Algorithm = Algorithm::OpenEs,
        /// The number of environment steps to train for, those of all members together; required. Rounded up
        /// to whole generations.
        pub total_timesteps: u64 = 0,
        /// The number of environment steps after which training stops, with the generation that reaches
        /// it, below `total_timesteps`, as in `train/ppo`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub until: Option<u64>,
        /// The seed of the first mean, the noise and the environments.
        pub seed: u64 = 0,
        /// The number of members of a generation; even where sampling is antithetic (`open_es`, `pepg`,
        /// `ars`).
        pub population_size: usize = 256,
        /// Episodes of a member, whose mean return is its fitness. They start in the same states for all
        /// members, and in new ones in each generation.
        pub num_rollouts: usize = 4,
        /// The most steps of an episode; by default episodes last until the environment ends them.
        pub episode_length: Option<u64>,
        /// Adam's learning rate (`open_es`, `pepg`, `ars`); 0.02 by default.
        pub learning_rate: Option<Schedule>,
        /// The standard deviation of members about the mean (`open_es`, `ars`); 0.1 by default.
        pub std_schedule: Option<Schedule>,
        /// The first standard deviation, which is learned (`pepg`, `sep_cma_es`, `cma_es`); 0.1 by default.
        pub std_init: Option<f64>,
        /// The learning rate of standard deviations (`pepg`); 0.1 by default.
        pub std_lr: Option<f64>,
        /// The most that a standard deviation changes in a generation, as a share (`pepg`); 0.2 by default.
        pub std_max_change: Option<f64>,
        /// If true, observations are normalised by the running mean and variance (to within 10) of those that
        /// the mean's episodes have met, frozen in the policy.
        pub normalize_obs: bool = false,
        /// Validation during training, and the choice of the policy that is handed on: the best mean in
        /// validation, where there is validation, else the last.
        pub validation: ValidationConfig,
        /// The state that a training takes over from the policy at `init`.
        pub resume: Resume = Resume::Fresh,
        /// If true, the artifact of the policy holds the train state as well, so that another training can go
        /// on from it with `resume: continue`.
        pub save_train_state: bool = false,
        /// The device: populations are evaluated on the CPU, which `auto` takes.
        pub device: DeviceChoice = DeviceChoice::Auto,
        /// Seconds between checkpoints. Does not change the result.
        pub checkpoint_interval: f64 = 20.0,
        /// Generations between reports of metrics; the metrics that are stored hold every generation. Does
        /// not change the result.
        pub log_interval: u64 = 1,
        /// The network.
        pub policy_kwargs: EsPolicy,
    }
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct EsSettings {
    pub(crate) common: Common,
    pub(crate) algorithm: Algorithm,
    pub(crate) population_size: usize,
    pub(crate) episode_length: u64,
    pub(crate) std_schedule: Schedule,
    pub(crate) std_init: f64,
    pub(crate) std_lr: f64,
    pub(crate) std_max_change: f64,
    pub(crate) normalize_obs: bool,
}

impl EsConfig {
    /// Checks the settings.
    pub(crate) fn settings(&self) -> Result<EsSettings, ConfigProblem> {
        use Algorithm::{Ars, CmaEs, OpenEs, Pepg, SepCmaEs};
        let gradient = matches!(self.algorithm, OpenEs | Pepg | Ars);
        refuse_given!(
            self, "is not a setting of this algorithm",
            "leave it out, or set another `algorithm`; `runner stages train/es` lists the algorithms of each \
            setting";
            gradient => learning_rate;
            matches!(self.algorithm, OpenEs | Ars) => std_schedule;
            matches!(self.algorithm, Pepg | SepCmaEs | CmaEs) => std_init;
            self.algorithm == Pepg => std_lr, std_max_change;
        );
        ConfigProblem::new("total_timesteps", "`total_timesteps` is required")
            .hint("write `total_timesteps: 10_000_000`, say, in environment steps of all members")
            .when(self.total_timesteps == 0)?;
        check_until(self.until, self.total_timesteps)?;
        let (least, multiple, what) = match gradient {
            true => (2, 2, "must be even, and at least 2"),
            false => (4, 1, "must be at least 4"),
        };
        ConfigProblem::new("population_size", what)
            .when(self.population_size < least || !self.population_size.is_multiple_of(multiple))?;
        check!(self; count: num_rollouts, log_interval;);
        checks::count("episode_length", self.episode_length.unwrap_or(1))?;
        ConfigProblem::new("device", "a population is evaluated on the CPU")
            .hint("set `device: auto`")
            .when(!matches!(self.device, DeviceChoice::Auto | DeviceChoice::Cpu))?;
        let training = TrainingSettings {
            total_timesteps: self.total_timesteps,
            until: self.until,
            seed: self.seed,
            n_envs: self.num_rollouts,
            learning_rate: self.learning_rate.unwrap_or(Schedule::Constant(0.02)),
            validation: self.validation,
            resume: self.resume,
            save_train_state: self.save_train_state,
            device: DeviceChoice::Cpu,
            checkpoint_interval: self.checkpoint_interval,
            log_interval: self.log_interval,
        };
        let (members, length) = (self.population_size, self.episode_length);
        let settings = EsSettings {
            common: Common::population(training, members, length, 1, self.policy_kwargs.network()?),
            algorithm: self.algorithm,
            population_size: self.population_size,
            episode_length: self.episode_length.unwrap_or(u64::MAX),
            std_schedule: self.std_schedule.unwrap_or(Schedule::Constant(0.1)),
            std_init: self.std_init.unwrap_or(0.1),
            std_lr: self.std_lr.unwrap_or(0.1),
            std_max_change: self.std_max_change.unwrap_or(0.2),
            normalize_obs: self.normalize_obs,
        };
        settings.common.training.validation.check()?;
        for end in [0.0, 1.0] {
            checks::positive("std_schedule", settings.std_schedule.at(end))?;
        }
        check!(settings; positive: std_init, std_lr, std_max_change;);
        check!(settings.common.training; schedule: learning_rate; positive: checkpoint_interval;);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_field() {
        let field = |json: serde_json::Value| {
            let config: EsConfig = serde_json::from_value(json).unwrap();
            config.settings().err().map(|problem| problem.field)
        };
        let json = |text: &str| {
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["total_timesteps"] = serde_json::json!(9);
            value
        };
        assert_eq!(field(serde_json::json!({})).as_deref(), Some("total_timesteps"));
        assert_eq!(field(json("{}")), None);
        for (text, name) in [
            (r#"{"population_size": 7}"#, "population_size"),
            (r#"{"algorithm": "cma_es", "learning_rate": 0.1}"#, "learning_rate"),
            (r#"{"algorithm": "pepg", "std_schedule": 0.1}"#, "std_schedule"),
            (r#"{"std_init": 0.1}"#, "std_init"),
            (r#"{"algorithm": "ars", "std_lr": 0.1}"#, "std_lr"),
            (r#"{"std_schedule": { "linear": [0.1, 0.0] }}"#, "std_schedule"),
            (r#"{"num_rollouts": 0}"#, "num_rollouts"),
            (r#"{"device": "cuda"}"#, "device"),
            (r#"{"policy_kwargs": {"net_arch": [0]}}"#, "policy_kwargs.net_arch"),
        ] {
            assert_eq!(field(json(text)).as_deref(), Some(name), "{text}");
        }
        assert_eq!(
            field(json(
                r#"{"algorithm": "sep_cma_es", "population_size": 7, "std_init": 1}"#
            )),
            None
        );
    }
}
