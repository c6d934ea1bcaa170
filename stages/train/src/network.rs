//! Networks as configurations describe them, named and set as stable-baselines3 2.9 and sb3-contrib 2.9 do.

use crate::sharing::{self, Sharing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError};
use stages_env::{ActionSpace, Bounds, EnvSpec};
use stages_policy::{
    ActionHead, Activation, Architecture, AtomEmbedding, CandidateEmbedding, Critic, Lstm, Pooling,
    Transformer,
};

/// A network, before the environment's sizes are set.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) arch: NetArch,
    pub(crate) activation: Activation,
    pub(crate) ortho_init: bool,
    pub(crate) head: NetworkHead,
    pub(crate) lstm: Option<Lstm>,
    pub(crate) transformer: Option<Transformer>,
    pub(crate) symbols: SymbolsPolicy,
    pub(crate) shared_across: Option<SharedAcross>,
}

/// The outputs of a network, before the environment's actions are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum NetworkHead {
    /// An actor with a critic of the state's value.
    #[default]
    ActorCritic,
    /// The actor of SAC.
    SquashedGaussian,
    /// The actor of TD3.
    Deterministic,
    /// The action values of DQN.
    QValues {
        /// True if the network has the value of the state and the advantage of each choice instead.
        dueling: bool,
        /// The share of drawn actions that are uniform over the allowed choices.
        epsilon: f32,
    },
}

impl NetworkHead {
    fn of(self, space: &ActionSpace, embedding: &SymbolsPolicy) -> ActionHead {
        let n = space.num_outputs();
        match self {
            Self::ActorCritic if let ActionSpace::Candidates { names, width } = space => {
                ActionHead::Candidates(CandidateEmbedding {
                    tokens: names.len(),
                    width: *width,
                    embedding: embedding.embedding_dim,
                    atoms: embedding.atoms,
                    pooling: embedding.pooling,
                })
            }
            Self::ActorCritic => ActionHead::of(space),
            Self::SquashedGaussian => ActionHead::SquashedGaussian(n),
            Self::Deterministic => ActionHead::Deterministic(n),
            Self::QValues { dueling, epsilon } => ActionHead::QValues {
                choices: n as u32,
                dueling,
                epsilon,
            },
        }
    }
}

impl Network {
    /// A network of hidden layers alone, with an actor and a critic.
    fn new(arch: NetArch, activation: Activation, ortho_init: bool) -> Self {
        Self {
            arch,
            activation,
            ortho_init,
            head: NetworkHead::ActorCritic,
            lstm: None,
            transformer: None,
            symbols: SymbolsPolicy::default(),
            shared_across: None,
        }
    }

    /// The sharing of the network, where it is shared.
    pub(crate) fn sharing(&self, env: &EnvSpec) -> Result<Option<Sharing>, StageError> {
        self.shared_across.map(|_| Sharing::new(self, env)).transpose()
    }

    /// The network of a trainer that learns from a replay buffer, with PyTorch's initial weights.
    pub(crate) fn perceptron(hidden: &[usize], activation: Activation, head: NetworkHead) -> Self {
        let (pi, vf) = (hidden.to_vec(), Vec::new());
        Self {
            head,
            ..Self::new(NetArch { pi, vf }, activation, false)
        }
    }

    /// True if the network has a memory, so that minibatches are made of whole sequences.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.lstm.is_some() || self.transformer.is_some()
    }

    /// The number of LSTM layers.
    pub(crate) fn lstm_layers(&self) -> usize {
        self.lstm.map_or(0, |lstm| lstm.layers)
    }

    /// The network for an environment.
    pub(crate) fn architecture(&self, env: &EnvSpec) -> Result<Architecture, StageError> {
        StageError::new(format!(
            "`policy_kwargs.symbols`: the states of `{}` are not symbolic",
            env.name
        ))
        .hint("leave it out, or train on an environment of env/symbolic")
        .when(!self.symbols.is_default() && !matches!(env.action_space, ActionSpace::Candidates { .. }))?;
        let head = self.head.of(&env.action_space, &self.symbols);
        let bounded = env.action_space.bounds().is_none_or(Bounds::are_near);
        if !head.fits(&env.action_space) || !(bounded || head.has_critic()) {
            stages_env::refuse_candidates(env)?;
            let wanted = if head.is_continuous() {
                "continuous actions with finite bounds"
            } else {
                "one of several choices"
            };
            return Err(StageError::new(format!(
                "the actions of `{}` are {}, and this training needs {wanted}",
                env.name,
                env.action_space.kind()
            ))
            .hint(
                "use `train/sac` or `train/td3` for continuous actions, `train/dqn` for discrete ones, \
                and `train/ppo` for any",
            ));
        }
        let copies = match self.shared_across {
            None => 1,
            Some(SharedAcross::Symbols) => sharing::symbols(env)?.len(),
        };
        let architecture = Architecture {
            obs_dim: env.obs_dim(),
            head,
            activation: self.activation,
            lstm: self.lstm,
            transformer: self.transformer,
            pi: self.arch.pi.iter().map(|size| size * copies).collect(),
            vf: self.arch.vf.clone(),
        };
        match architecture.problem() {
            None => Ok(architecture),
            Some(problem) => Err(StageError::new(format!("no network fits `{}`: {problem}", env.name))),
        }
    }
}

/// The settings of a network.
pub(crate) trait PolicyKwargs {
    /// The network that the settings describe.
    fn network(&self) -> Result<Network, ConfigProblem>;
}

/// A mistake in the field `name` of `policy_kwargs`.
pub(crate) fn problem(name: &str, message: impl Into<String>) -> ConfigProblem {
    ConfigProblem::new(format!("policy_kwargs.{name}"), message.into())
}

/// Refuses sizes of 0.
pub(crate) fn check_sizes(sizes: &[(&str, usize)]) -> Result<(), ConfigProblem> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some((name, _)) => Err(problem(name, "must be at least 1")),
        None => Ok(()),
    }
}

/// The parts of an environment that share a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedAcross {
    /// The symbols, each of which has a component of the action, and observations of the same names.
    Symbols,
}

stages_core::settings! {
    /// The sizes of hidden layers.
    #[derive(Eq)]
    pub struct NetArch {
        /// The actor's, first to last.
        pub pi: Vec<usize> = vec![64, 64],
        /// The critic's, first to last.
        pub vf: Vec<usize> = vec![64, 64],
    }

    /// The embedding of symbolic states, those of `env/symbolic`, and of their candidate actions.
    #[derive(Eq)]
    pub struct SymbolsPolicy {
        /// The length of the embeddings of predicates, constants, variables, atoms, states and candidates.
        pub embedding_dim: usize = 64,
        /// The embedding of an atom.
        pub atoms: AtomEmbedding,
        /// The embedding of a state or candidate from those of its atoms.
        pub pooling: Pooling,
    }
}

impl SymbolsPolicy {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), ConfigProblem> {
        check_sizes(&[("symbols.embedding_dim", self.embedding_dim)])
    }
}

stages_core::settings! {
    /// The network of `train/ppo`.
    #[derive(Eq)]
    pub struct MlpPolicy {
        /// The sizes of hidden layers.
        pub net_arch: NetArch,
        /// The actor is one network for all symbols: each symbol's action comes from the same function of its
        /// own observations, those of the others and the common ones, with `net_arch.pi` units for each
        /// symbol. Every symbol's data then teach the same parameters.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub shared_across: Option<SharedAcross>,
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Tanh,
        /// If true, orthogonal initial weights and zero biases; otherwise PyTorch's defaults.
        pub ortho_init: bool = true,
        /// Where states are symbolic: their embedding, which actor and critic read.
        #[serde(skip_serializing_if = "SymbolsPolicy::is_default")]
        pub symbols: SymbolsPolicy,
    }

    /// The network of `train/recurrent_ppo`: an LSTM, then hidden layers.
    #[derive(Eq)]
    pub struct MlpLstmPolicy {
        /// The sizes of hidden layers, which read the LSTM.
        pub net_arch: NetArch,
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Tanh,
        /// If true, orthogonal initial weights, also of the LSTM, and zero biases; otherwise PyTorch's
        /// defaults.
        pub ortho_init: bool = true,
        /// The size of the LSTM's hidden state.
        pub lstm_hidden_size: usize = 256,
        /// The number of layers of LSTM, each of which reads the one below. Several are trained by candle's
        /// operations, several times slower than one by fused kernels.
        pub n_lstm_layers: usize = 1,
        /// If true, the critic reads the actor's LSTM; the gradient of the value loss stops there. Set
        /// `enable_critic_lstm: false` with it.
        pub shared_lstm: bool = false,
        /// If true, the critic has an LSTM of its own. If neither this nor `shared_lstm`, a linear layer of
        /// its size takes its place.
        pub enable_critic_lstm: bool = true,
        /// Where states are symbolic: their embedding, which the LSTM reads.
        #[serde(skip_serializing_if = "SymbolsPolicy::is_default")]
        pub symbols: SymbolsPolicy,
    }

    /// The network of `train/transformer_ppo`: a gated transformer (GTrXL) that actor and critic share, then
    /// hidden layers.
    #[derive(Eq)]
    pub struct TransformerPolicy {
        /// The sizes of hidden layers, which read the transformer.
        pub net_arch: NetArch = NetArch {
            pi: vec![64],
            vf: vec![64],
        },
        /// The activation function of hidden layers.
        pub activation_fn: Activation = Activation::Tanh,
        /// If true, orthogonal initial weights, also of the transformer, and zero biases; otherwise PyTorch's
        /// defaults.
        pub ortho_init: bool = true,
        /// Steps that each block attends to, with the present one. The policy's outputs depend on the last
        /// `n_layers` x (`window` - 1) + 1 observations of the episode.
        pub window: usize = 32,
        /// The features of a step between blocks; a multiple of `n_heads`.
        pub d_model: usize = 64,
        /// Heads of attention in a block.
        pub n_heads: usize = 4,
        /// Blocks.
        pub n_layers: usize = 2,
        /// Rectified units in each block's feed-forward part.
        pub d_ff: usize = 256,
    }
}

impl NetArch {
    fn check(&self) -> Result<(), ConfigProblem> {
        problem("net_arch", "a layer needs a size of at least 1")
            .when(self.pi.iter().chain(&self.vf).any(|&size| size == 0))?;
        Ok(())
    }
}

impl PolicyKwargs for MlpPolicy {
    fn network(&self) -> Result<Network, ConfigProblem> {
        self.net_arch.check()?;
        self.symbols.check()?;
        Ok(Network {
            symbols: self.symbols.clone(),
            shared_across: self.shared_across,
            ..Network::new(self.net_arch.clone(), self.activation_fn, self.ortho_init)
        })
    }
}

impl PolicyKwargs for MlpLstmPolicy {
    fn network(&self) -> Result<Network, ConfigProblem> {
        self.net_arch.check()?;
        self.symbols.check()?;
        check_sizes(&[
            ("n_lstm_layers", self.n_lstm_layers),
            ("lstm_hidden_size", self.lstm_hidden_size),
        ])?;
        let critic = match (self.shared_lstm, self.enable_critic_lstm) {
            (true, true) => {
                return Err(
                    problem("shared_lstm", "the critic cannot have both a shared LSTM and its own")
                        .hint("set `enable_critic_lstm: false` with `shared_lstm: true`"),
                );
            }
            (true, false) => Critic::Shared,
            (false, true) => Critic::Separate,
            (false, false) => Critic::Linear,
        };
        Ok(Network {
            lstm: Some(Lstm {
                hidden: self.lstm_hidden_size,
                critic,
                layers: self.n_lstm_layers,
            }),
            symbols: self.symbols.clone(),
            ..Network::new(self.net_arch.clone(), self.activation_fn, self.ortho_init)
        })
    }
}

impl PolicyKwargs for TransformerPolicy {
    fn network(&self) -> Result<Network, ConfigProblem> {
        self.net_arch.check()?;
        check_sizes(&[
            ("window", self.window),
            ("d_model", self.d_model),
            ("n_heads", self.n_heads),
            ("n_layers", self.n_layers),
            ("d_ff", self.d_ff),
        ])?;
        if !self.d_model.is_multiple_of(self.n_heads) {
            let nearest = self.d_model.next_multiple_of(self.n_heads);
            return Err(problem(
                "d_model",
                format!("{} is not a multiple of n_heads ({})", self.d_model, self.n_heads),
            )
            .hint(format!(
                "heads share the d_model features of a step; the next multiple is {nearest}"
            )));
        }
        Ok(Network {
            transformer: Some(Transformer {
                window: self.window,
                d_model: self.d_model,
                n_heads: self.n_heads,
                n_layers: self.n_layers,
                d_ff: self.d_ff,
            }),
            ..Network::new(self.net_arch.clone(), self.activation_fn, self.ortho_init)
        })
    }
}
