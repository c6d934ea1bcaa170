//! The settings of `train/ppo`, `train/recurrent_ppo` and `train/transformer_ppo`, named and set as stable-baselines3 2.9 and
//! sb3-contrib 2.9 do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, Schedule};
use stages_env::{ActionSpace, EnvSpec};
use stages_policy::{Activation, Architecture, Critic, Device, Lstm, Precision, Transformer};

/// Where a network is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// The fastest of those that are there, by timing an update of these very sizes on each.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The first NVIDIA graphics processor.
    Cuda,
    /// Apple's graphics processor.
    Metal,
}

impl DeviceChoice {
    /// What it leaves to choose from.
    pub(crate) fn candidates(self) -> &'static [Device] {
        match self {
            Self::Auto => &Device::ALL,
            Self::Cpu => &[Device::Cpu],
            Self::Cuda => &[Device::Cuda],
            Self::Metal => &[Device::Metal],
        }
    }
}

/// The sizes of hidden layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetArch {
    /// The actor's, first to last.
    pub pi: Vec<usize>,
    /// The critic's, first to last.
    pub vf: Vec<usize>,
}

impl Default for NetArch {
    fn default() -> Self {
        Self {
            pi: vec![64, 64],
            vf: vec![64, 64],
        }
    }
}

/// The network of `train/ppo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MlpPolicy {
    /// The sizes of hidden layers.
    pub net_arch: NetArch,
    /// What follows each hidden layer.
    pub activation_fn: Activation,
    /// Orthogonal first weights and zero biases; if not, PyTorch's defaults.
    pub ortho_init: bool,
}

impl Default for MlpPolicy {
    fn default() -> Self {
        Self {
            net_arch: NetArch::default(),
            activation_fn: Activation::Tanh,
            ortho_init: true,
        }
    }
}

/// The network of `train/recurrent_ppo`: an LSTM, then hidden layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MlpLstmPolicy {
    /// The sizes of hidden layers, which read the LSTM.
    pub net_arch: NetArch,
    /// What follows each hidden layer.
    pub activation_fn: Activation,
    /// Orthogonal first weights, the LSTM's too, and zero biases; if not, PyTorch's defaults.
    pub ortho_init: bool,
    /// The size of the LSTM's hidden state.
    pub lstm_hidden_size: usize,
    /// How many layers of LSTM, each of which reads the one below. Several are trained by candle's operations, some times slower than
    /// one by the kernels made for it.
    pub n_lstm_layers: usize,
    /// Whether the critic reads the actor's LSTM, without teaching it. Set `enable_critic_lstm: false` with it.
    pub shared_lstm: bool,
    /// Whether the critic has an LSTM of its own. If neither this nor `shared_lstm`, a linear layer of its size stands there.
    pub enable_critic_lstm: bool,
}

impl Default for MlpLstmPolicy {
    fn default() -> Self {
        Self {
            net_arch: NetArch::default(),
            activation_fn: Activation::Tanh,
            ortho_init: true,
            lstm_hidden_size: 256,
            n_lstm_layers: 1,
            shared_lstm: false,
            enable_critic_lstm: true,
        }
    }
}

/// The network of `train/transformer_ppo`: a gated transformer (GTrXL) that actor and critic share, then hidden layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerPolicy {
    /// The sizes of hidden layers, which read the transformer.
    pub net_arch: NetArch,
    /// What follows each hidden layer.
    pub activation_fn: Activation,
    /// Orthogonal first weights, the transformer's too, and zero biases; if not, PyTorch's defaults.
    pub ortho_init: bool,
    /// Steps that each block attends to, with the present one. What the policy does depends on the last `n_layers` x (`window` - 1) + 1
    /// observations of the episode.
    pub window: usize,
    /// The numbers that each block takes and gives for each step; a multiple of `n_heads`.
    pub d_model: usize,
    /// Heads of attention in a block.
    pub n_heads: usize,
    /// Blocks.
    pub n_layers: usize,
    /// Rectified units in each block's feed-forward part.
    pub d_ff: usize,
}

impl Default for TransformerPolicy {
    fn default() -> Self {
        Self {
            net_arch: NetArch {
                pi: vec![64],
                vf: vec![64],
            },
            activation_fn: Activation::Tanh,
            ortho_init: true,
            window: 32,
            d_model: 64,
            n_heads: 4,
            n_layers: 2,
            d_ff: 256,
        }
    }
}

/// The kinds share all settings but their network's and a few defaults.
macro_rules! config {
    ($(#[$meta:meta])* $name:ident { policy: $policy:ident, n_steps: $n_steps:literal, batch_size: $batch_size:literal }, $batch_doc:literal) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// How many environment steps to train for; must be given. Rounded up to whole rollouts of `n_envs` x `n_steps`.
            pub total_timesteps: u64,
            /// Names the random numbers of first weights, environments, actions and shuffles.
            pub seed: u64,
            /// How many environments are stepped together.
            pub n_envs: usize,
            /// Steps of each environment in a rollout.
            pub n_steps: usize,
            #[doc = $batch_doc]
            pub batch_size: usize,
            /// Passes over each rollout.
            pub n_epochs: usize,
            /// Adam's learning rate.
            pub learning_rate: Schedule,
            /// Discount per step.
            pub gamma: f64,
            /// The lambda of generalised advantage estimation.
            pub gae_lambda: f64,
            /// Bound of |ratio - 1| in the policy's loss.
            pub clip_range: Schedule,
            /// Bound of the change of a value, in units of the (normalised) return; none by default.
            pub clip_range_vf: Option<Schedule>,
            /// Whether advantages are normalised within each minibatch.
            pub normalize_advantage: bool,
            /// Weight of the entropy bonus.
            pub ent_coef: f64,
            /// Weight of the value loss.
            pub vf_coef: f64,
            /// Bound of the gradient's Euclidean norm.
            pub max_grad_norm: f64,
            /// Leaves off the rest of a rollout's updates once the approximate KL divergence exceeds 1.5 times this; never by default.
            pub target_kl: Option<f64>,
            /// What an LSTM's products are computed in: `bf16` is several times as fast on processors with AMX. Parameters and sums stay in `f32`.
            pub precision: Precision,
            /// Where the network is trained: `auto` times an update of these sizes on each device that this program was built for and the
            /// machine has. Not part of the key: the result of another device is as valid, but has other bytes.
            pub device: DeviceChoice,
            /// The network.
            pub policy_kwargs: $policy,
            /// Whether observations are normalised by running mean and variance (to within 10), frozen in the policy.
            pub normalize_obs: bool,
            /// Whether rewards are divided by the running standard deviation of their return discounted by 0.99 (to within 10).
            pub normalize_reward: bool,
            /// Seconds between checkpoints. Does not change the result.
            pub checkpoint_interval: f64,
            /// Rollouts between reports of metrics; the metrics that are stored hold every rollout. Does not change the result.
            pub log_interval: u64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    total_timesteps: 0,
                    seed: 0,
                    n_envs: 1,
                    n_steps: $n_steps,
                    batch_size: $batch_size,
                    n_epochs: 10,
                    learning_rate: Schedule::Constant(3e-4),
                    gamma: 0.99,
                    gae_lambda: 0.95,
                    clip_range: Schedule::Constant(0.2),
                    clip_range_vf: None,
                    normalize_advantage: true,
                    ent_coef: 0.0,
                    vf_coef: 0.5,
                    max_grad_norm: 0.5,
                    target_kl: None,
                    precision: Precision::F32,
                    device: DeviceChoice::Auto,
                    policy_kwargs: $policy::default(),
                    normalize_obs: false,
                    normalize_reward: false,
                    checkpoint_interval: 20.0,
                    log_interval: 1,
                }
            }
        }

        impl $name {
            fn common(&self, network: Network) -> Settings {
                Settings {
                    total_timesteps: self.total_timesteps,
                    seed: self.seed,
                    n_envs: self.n_envs,
                    n_steps: self.n_steps,
                    batch_size: self.batch_size,
                    n_epochs: self.n_epochs,
                    learning_rate: self.learning_rate,
                    gamma: self.gamma,
                    gae_lambda: self.gae_lambda,
                    clip_range: self.clip_range,
                    clip_range_vf: self.clip_range_vf,
                    normalize_advantage: self.normalize_advantage,
                    ent_coef: self.ent_coef,
                    vf_coef: self.vf_coef,
                    max_grad_norm: self.max_grad_norm,
                    target_kl: self.target_kl,
                    precision: self.precision,
                    device: self.device,
                    network,
                    normalize_obs: self.normalize_obs,
                    normalize_reward: self.normalize_reward,
                    checkpoint_interval: self.checkpoint_interval,
                    log_interval: self.log_interval,
                }
            }
        }
    };
}

config!(
    /// Configuration of `train/ppo`.
    PpoConfig { policy: MlpPolicy, n_steps: 2048, batch_size: 64 },
    "Samples in a minibatch; at most `n_envs` x `n_steps` are used."
);
config!(
    /// Configuration of `train/recurrent_ppo`.
    RecurrentPpoConfig { policy: MlpLstmPolicy, n_steps: 128, batch_size: 128 },
    "Samples in a minibatch, a multiple of `n_steps`: minibatches are made of whole sequences, `n_steps` of one environment."
);
config!(
    /// Configuration of `train/transformer_ppo`.
    TransformerPpoConfig { policy: TransformerPolicy, n_steps: 128, batch_size: 128 },
    "Samples in a minibatch, a multiple of `n_steps`: minibatches are made of whole sequences, `n_steps` of one environment."
);

/// A network, before the environment's sizes are known.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub arch: NetArch,
    pub activation: Activation,
    pub ortho_init: bool,
    pub lstm: Option<Lstm>,
    pub transformer: Option<Transformer>,
}

impl Network {
    /// Whether rollouts are learned from as sequences.
    pub fn remembers(&self) -> bool {
        self.lstm.is_some() || self.transformer.is_some()
    }
}

/// The settings of any kind.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) total_timesteps: u64,
    pub(crate) seed: u64,
    pub(crate) n_envs: usize,
    pub(crate) n_steps: usize,
    pub(crate) batch_size: usize,
    pub(crate) n_epochs: usize,
    pub(crate) learning_rate: Schedule,
    pub(crate) gamma: f64,
    pub(crate) gae_lambda: f64,
    pub(crate) clip_range: Schedule,
    pub(crate) clip_range_vf: Option<Schedule>,
    pub(crate) normalize_advantage: bool,
    pub(crate) ent_coef: f64,
    pub(crate) vf_coef: f64,
    pub(crate) max_grad_norm: f64,
    pub(crate) target_kl: Option<f64>,
    pub(crate) precision: Precision,
    pub(crate) device: DeviceChoice,
    pub(crate) network: Network,
    pub(crate) normalize_obs: bool,
    pub(crate) normalize_reward: bool,
    pub(crate) checkpoint_interval: f64,
    pub(crate) log_interval: u64,
}

impl PpoConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn settings(&self) -> Result<Settings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        let settings = self.common(Network {
            arch: policy.net_arch.clone(),
            activation: policy.activation_fn,
            ortho_init: policy.ortho_init,
            lstm: None,
            transformer: None,
        });
        settings.check()?;
        Ok(settings)
    }
}

impl RecurrentPpoConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn settings(&self) -> Result<Settings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        let field = |name: &str| format!("policy_kwargs.{name}");
        if policy.n_lstm_layers == 0 {
            return Err(ConfigProblem::new(field("n_lstm_layers"), "must be at least 1"));
        }
        if policy.lstm_hidden_size == 0 {
            return Err(ConfigProblem::new(field("lstm_hidden_size"), "must be at least 1"));
        }
        let critic = match (policy.shared_lstm, policy.enable_critic_lstm) {
            (true, true) => {
                return Err(ConfigProblem::new(
                    field("shared_lstm"),
                    "the critic cannot have both a shared LSTM and its own",
                )
                .hint("set `enable_critic_lstm: false` with `shared_lstm: true`"));
            }
            (true, false) => Critic::Shared,
            (false, true) => Critic::Separate,
            (false, false) => Critic::Linear,
        };
        whole_sequences(self.batch_size, self.n_steps)?;
        let settings = self.common(Network {
            arch: policy.net_arch.clone(),
            activation: policy.activation_fn,
            ortho_init: policy.ortho_init,
            lstm: Some(Lstm {
                hidden: policy.lstm_hidden_size,
                critic,
                layers: policy.n_lstm_layers,
            }),
            transformer: None,
        });
        settings.check()?;
        Ok(settings)
    }
}

impl TransformerPpoConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn settings(&self) -> Result<Settings, ConfigProblem> {
        let policy = &self.policy_kwargs;
        for (name, size) in [
            ("window", policy.window),
            ("d_model", policy.d_model),
            ("n_heads", policy.n_heads),
            ("n_layers", policy.n_layers),
            ("d_ff", policy.d_ff),
        ] {
            if size == 0 {
                return Err(ConfigProblem::new(
                    format!("policy_kwargs.{name}"),
                    "must be at least 1",
                ));
            }
        }
        if !policy.d_model.is_multiple_of(policy.n_heads) {
            let nearest = policy.d_model.next_multiple_of(policy.n_heads);
            return Err(ConfigProblem::new(
                "policy_kwargs.d_model",
                format!("{} is not a multiple of n_heads ({})", policy.d_model, policy.n_heads),
            )
            .hint(format!(
                "heads share the d_model numbers of a step; the next multiple is {nearest}"
            )));
        }
        whole_sequences(self.batch_size, self.n_steps)?;
        let settings = self.common(Network {
            arch: policy.net_arch.clone(),
            activation: policy.activation_fn,
            ortho_init: policy.ortho_init,
            lstm: None,
            transformer: Some(Transformer {
                window: policy.window,
                d_model: policy.d_model,
                n_heads: policy.n_heads,
                n_layers: policy.n_layers,
                d_ff: policy.d_ff,
            }),
        });
        settings.check()?;
        Ok(settings)
    }
}

/// Refuses minibatches that are not made of whole sequences.
fn whole_sequences(batch_size: usize, n_steps: usize) -> Result<(), ConfigProblem> {
    if n_steps == 0 || (batch_size >= n_steps && batch_size.is_multiple_of(n_steps)) {
        return Ok(());
    }
    let nearest = batch_size.max(1).next_multiple_of(n_steps);
    Err(ConfigProblem::new(
        "batch_size",
        format!("{batch_size} is not a multiple of n_steps ({n_steps})"),
    )
    .hint(format!(
        "minibatches are made of whole sequences of n_steps; the next multiple is {nearest}"
    )))
}

impl Settings {
    /// Samples in a rollout.
    pub(crate) fn rollout(&self) -> u64 {
        self.n_envs as u64 * self.n_steps as u64
    }

    /// Where training ends: whole rollouts.
    pub(crate) fn last_step(&self) -> u64 {
        self.total_timesteps.next_multiple_of(self.rollout())
    }

    /// Whether a schedule depends on how long training is.
    pub(crate) fn depends_on_total(&self) -> bool {
        self.learning_rate.depends_on_total()
            || self.clip_range.depends_on_total()
            || self.clip_range_vf.is_some_and(|schedule| schedule.depends_on_total())
    }

    /// The network for an environment.
    pub fn architecture(&self, env: &EnvSpec) -> Architecture {
        Architecture {
            obs_dim: env.obs_dim(),
            num_actions: env.action_space.num_outputs(),
            continuous: matches!(env.action_space, ActionSpace::Continuous { .. }),
            activation: self.network.activation,
            lstm: self.network.lstm,
            transformer: self.network.transformer,
            pi: self.network.arch.pi.clone(),
            vf: self.network.arch.vf.clone(),
        }
    }

    fn check(&self) -> Result<(), ConfigProblem> {
        let problem = |field: &str, message: &str| Err(ConfigProblem::new(field, message));
        if self.total_timesteps == 0 {
            return Err(ConfigProblem::new("total_timesteps", "how long to train must be given")
                .hint("write `total_timesteps: 300_000`, say, in environment steps"));
        }
        let counts = [
            ("n_envs", self.n_envs),
            ("n_steps", self.n_steps),
            ("batch_size", self.batch_size),
            ("n_epochs", self.n_epochs),
            ("log_interval", usize::try_from(self.log_interval).unwrap_or(1)),
        ];
        for (field, count) in counts {
            if count == 0 {
                return problem(field, "must be at least 1");
            }
        }
        if self.precision == Precision::Bf16 && self.network.lstm.is_none_or(|lstm| lstm.layers > 1) {
            return Err(ConfigProblem::new(
                "precision",
                "only the products of one layer of LSTM are computed in bf16",
            )
            .hint("leave `precision` out, or train with `train/recurrent_ppo` and `n_lstm_layers: 1`"));
        }
        if self.rollout() > 1 << 28 {
            return Err(ConfigProblem::new(
                "n_steps",
                "a rollout of n_envs x n_steps samples does not fit in memory",
            )
            .hint("rollouts have a few thousand samples"));
        }
        if self.normalize_advantage && (self.rollout() < 2 || self.batch_size < 2) {
            return Err(ConfigProblem::new(
                "normalize_advantage",
                "advantages of a single sample cannot be normalised",
            )
            .hint("raise n_envs x n_steps and batch_size to at least 2"));
        }
        for (field, value) in [("gamma", self.gamma), ("gae_lambda", self.gae_lambda)] {
            if !(0.0..=1.0).contains(&value) {
                return problem(field, "must lie within 0 and 1");
            }
        }
        let weights = [("ent_coef", self.ent_coef), ("vf_coef", self.vf_coef)];
        for (field, value) in weights {
            if !(value.is_finite() && value >= 0.0) {
                return problem(field, "must be 0 or more");
            }
        }
        let intervals = [
            ("max_grad_norm", self.max_grad_norm),
            ("checkpoint_interval", self.checkpoint_interval),
        ];
        for (field, value) in intervals
            .into_iter()
            .chain(self.target_kl.map(|value| ("target_kl", value)))
        {
            if value.is_nan() || value <= 0.0 {
                return problem(field, "must be greater than 0");
            }
        }
        let schedules = [
            ("learning_rate", Some(self.learning_rate)),
            ("clip_range", Some(self.clip_range)),
            ("clip_range_vf", self.clip_range_vf),
        ];
        for (field, schedule) in schedules {
            if let Some(schedule) = schedule
                && [schedule.at(0.0), schedule.at(1.0)]
                    .iter()
                    .any(|value| !value.is_finite() || *value < 0.0)
            {
                return problem(field, "must be 0 or more");
            }
        }
        if self
            .network
            .arch
            .pi
            .iter()
            .chain(&self.network.arch.vf)
            .any(|&size| size == 0)
        {
            return problem("policy_kwargs.net_arch", "a layer needs a size of at least 1");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_their_field() {
        let field = |change: &dyn Fn(&mut RecurrentPpoConfig)| {
            let mut config = RecurrentPpoConfig {
                total_timesteps: 1000,
                ..Default::default()
            };
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(field(&|c| c.total_timesteps = 0).as_deref(), Some("total_timesteps"));
        assert_eq!(field(&|c| c.batch_size = 200).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.batch_size = 64).as_deref(), Some("batch_size"));
        assert_eq!(field(&|c| c.n_steps = 0).as_deref(), Some("n_steps"));
        assert_eq!(field(&|c| c.gamma = 1.5).as_deref(), Some("gamma"));
        assert_eq!(field(&|c| c.gae_lambda = f64::NAN).as_deref(), Some("gae_lambda"));
        assert_eq!(
            field(&|c| c.learning_rate = Schedule::Linear(1.0, -1.0)).as_deref(),
            Some("learning_rate")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.shared_lstm = true).as_deref(),
            Some("policy_kwargs.shared_lstm")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_lstm_layers = 0).as_deref(),
            Some("policy_kwargs.n_lstm_layers")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.net_arch.pi = vec![0]).as_deref(),
            Some("policy_kwargs.net_arch")
        );
        let field = |change: &dyn Fn(&mut TransformerPpoConfig)| {
            let mut config = TransformerPpoConfig {
                total_timesteps: 1000,
                ..Default::default()
            };
            change(&mut config);
            config.settings().err().map(|problem| problem.field)
        };
        assert_eq!(field(&|_| {}), None);
        assert_eq!(
            field(&|c| c.policy_kwargs.window = 0).as_deref(),
            Some("policy_kwargs.window")
        );
        assert_eq!(
            field(&|c| c.policy_kwargs.n_heads = 3).as_deref(),
            Some("policy_kwargs.d_model")
        );
        assert_eq!(field(&|c| c.batch_size = 64).as_deref(), Some("batch_size"));
    }
}
