//! The files of stable-baselines3 and sb3-contrib: a zip archive with the algorithm's settings (`data`, JSON)
//! and the state dictionary of its policy (`policy.pth`, PyTorch's).
//!
//! | network | tensors there | tensors here |
//! | --- | --- | --- |
//! | actor and critic of PPO, A2C, MaskablePPO | `mlp_extractor.policy_net.2i`, `action_net`, `mlp_extractor.value_net.2i`, `value_net`, `log_std` | `pi.i`, `action`, `vf.i`, `value`, `log_std` |
//! | LSTMs of RecurrentPPO | `lstm_actor`, `lstm_critic` or `critic` | `actor_lstm`, `critic_lstm` or `critic` |
//! | action values of DQN | `q_net.q_net.2i` | `pi.i`, `q` |
//! | actor of SAC | `actor.latent_pi.2i`, `actor.mu` and `actor.log_std` | `pi.i`, `action` |
//! | actor of TD3 and DDPG | `actor.mu.2i` | `pi.i`, `action` |
//!
//! Their weights are `[outputs, inputs]`, ours `[inputs, outputs]`; the gates of an LSTM have the same order,
//! and its two biases are added.

use crate::{ActionHead, Activation, Architecture, Critic, Lstm, Policy};
use cache::Store;
use candle_core::DType;
use candle_core::pickle::PthTensors;
use serde_json::Value;
use stages_core::StageError;
use stages_env::EnvSpec;
use std::collections::HashMap;
use std::io::{Cursor, Read as _};

/// The largest size of what a file holds, in bytes for each byte of it: it is hardly compressed.
const MOST: u64 = 16;

/// The algorithms whose files can be read, for hints.
const READ: &str = "PPO, A2C, MaskablePPO, RecurrentPPO, DQN, SAC, TD3 and DDPG with the policies \
    `MlpPolicy` and `MlpLstmPolicy`, of Tanh or ReLU, are read";

/// The name given to the means and the standard deviations of SAC, which are one layer here.
const SAC_HEAD: &str = "actor.mu_log_std";

/// A tensor of the state dictionary, row-major.
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// The contents of a file: the settings and the state dictionary.
struct File {
    data: Value,
    tensors: HashMap<String, Tensor>,
}

/// A file as far as it is read here.
pub(crate) enum Sb3 {
    /// A network that is ours, too.
    Native(Box<Policy>),
    /// Another network: the reason, and S, the floats of its LSTM's state.
    Other(StageError, usize),
}

/// The policy of a file, for the environment `env`.
///
/// # Errors
/// Fails when the bytes are not such a file, when its network is of another environment, or is not known.
pub fn policy(bytes: &[u8], store: &Store, env: &EnvSpec) -> Result<Policy, StageError> {
    match read(bytes, store, env)? {
        Sb3::Native(policy) => Ok(*policy),
        Sb3::Other(why, _) => Err(why),
    }
}

/// As [`policy`], but a network that is not known here is no error.
pub(crate) fn read(bytes: &[u8], store: &Store, env: &EnvSpec) -> Result<Sb3, StageError> {
    let file = File::read(bytes, store)?;
    let (kind, architecture) = match file.architecture(env) {
        Ok(known) => known,
        Err(err) if err.hint.as_deref() == Some(READ) => return Ok(Sb3::Other(err, file.state_len())),
        Err(err) => return Err(err),
    };
    let mut params = vec![0.0; architecture.num_params()];
    for tensor in architecture.tensors() {
        let (name, is_weight) = theirs(&tensor.name, &architecture)?;
        let found = file.tensor(&name)?;
        let mut shape = tensor.shape.clone();
        shape.reverse();
        StageError::new(format!(
            "the tensor `{name}` is {:?}, and the environment `{}` needs {shape:?}",
            found.shape, env.name
        ))
        .hint(format!(
            "it has {} and {}: import a policy that was trained on it",
            count(env.obs_dim(), "observed value"),
            count(architecture.head.num_outputs(), "action")
        ))
        .when(found.shape != shape)?;
        let to = &mut params[tensor.range()];
        if is_weight {
            let [outputs, inputs] = [shape[0], shape[1]];
            for output in 0..outputs {
                for input in 0..inputs {
                    to[input * outputs + output] = found.values[output * inputs + input];
                }
            }
        } else {
            to.copy_from_slice(&found.values);
        }
        // PyTorch's LSTM has two biases, of which only the sum matters.
        if name.contains(".bias_ih_l") {
            let other = file.tensor(&name.replace(".bias_ih_l", ".bias_hh_l"))?;
            for (value, more) in to.iter_mut().zip(&other.values) {
                *value += more;
            }
        }
    }
    let policy = Policy::new(kind, env, &architecture, None, params)?;
    Ok(Sb3::Native(Box::new(policy)))
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The name of a tensor in the file, and true if it is a weight, which must be transposed.
fn theirs(name: &str, architecture: &Architecture) -> Result<(String, bool), StageError> {
    let unknown = || StageError::new(format!("no tensor of such a file stands for `{name}`")).hint(READ);
    if name == "log_std" {
        return Ok((name.to_owned(), false));
    }
    let (layer, part) = name.rsplit_once('.').ok_or_else(unknown)?;
    let (module, index) = layer.split_once('.').unwrap_or((layer, ""));
    let at = |index: &str| index.parse::<usize>().map_err(|_| unknown());
    if let Some(lstm) = match module {
        "actor_lstm" => Some("lstm_actor"),
        "critic_lstm" => Some("lstm_critic"),
        _ => None,
    } {
        let index = if index.is_empty() { 0 } else { at(index)? };
        return match part {
            "weight_x" => Ok((format!("{lstm}.weight_ih_l{index}"), true)),
            "weight_h" => Ok((format!("{lstm}.weight_hh_l{index}"), true)),
            "bias" => Ok((format!("{lstm}.bias_ih_l{index}"), false)),
            _ => Err(unknown()),
        };
    }
    // The hidden layers of the actor, and whether its head is the next layer of the same module.
    let (actor, is_whole) = match architecture.head {
        ActionHead::QValues { .. } => ("q_net.q_net", true),
        ActionHead::Deterministic(_) => ("actor.mu", true),
        ActionHead::SquashedGaussian(_) => ("actor.latent_pi", false),
        _ => ("mlp_extractor.policy_net", false),
    };
    let module = match module {
        "pi" => format!("{actor}.{}", 2 * at(index)?),
        "q" | "action" if is_whole => format!("{actor}.{}", 2 * architecture.pi.len()),
        "action" if actor == "actor.latent_pi" => SAC_HEAD.to_owned(),
        "vf" => format!("mlp_extractor.value_net.{}", 2 * at(index)?),
        "action" => "action_net".to_owned(),
        "value" => "value_net".to_owned(),
        "critic" => "critic".to_owned(),
        _ => return Err(unknown()),
    };
    Ok((format!("{module}.{part}"), part == "weight"))
}

impl File {
    fn read(bytes: &[u8], store: &Store) -> Result<Self, StageError> {
        let wrong = |what: &dyn std::fmt::Display| {
            StageError::new(format!("it is not a file of stable-baselines3: {what}"))
                .hint("give the zip file that `model.save(…)` wrote")
        };
        let most = MOST * bytes.len() as u64;
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|err| wrong(&err))?;
        let mut entry = |name: &str| -> Result<Vec<u8>, StageError> {
            let file = archive
                .by_name(name)
                .map_err(|err| wrong(&format!("`{name}`: {err}")))?;
            let mut bytes = Vec::new();
            file.take(most + 1)
                .read_to_end(&mut bytes)
                .map_err(|err| wrong(&format!("`{name}`: {err}")))?;
            if bytes.len() as u64 > most {
                return Err(wrong(&format!("`{name}` has more than {most} bytes")));
            }
            Ok(bytes)
        };
        let data: Value =
            serde_json::from_slice(&entry("data")?).map_err(|err| wrong(&format!("`data`: {err}")))?;
        // candle reads files only.
        let workspace = store.workspace()?;
        let path = workspace.path().join("policy.pth");
        std::fs::write(&path, entry("policy.pth")?)
            .map_err(|err| StageError::new(format!("cannot write `{}`: {err}", path.display())))?;
        let state = PthTensors::new(&path, None).map_err(|err| wrong(&format!("`policy.pth`: {err}")))?;
        // Sizes are the pickle's claim; tensors may share their values.
        let mut claimed = 0_u64;
        for (name, info) in state.tensor_infos() {
            let size = info
                .layout
                .dims()
                .iter()
                .try_fold(4_u64, |size, &n| size.checked_mul(n as u64));
            claimed = claimed.saturating_add(size.unwrap_or(u64::MAX));
            if claimed > most {
                return Err(wrong(&format!("`{name}` has the shape {:?}", info.layout.dims())));
            }
        }
        let mut tensors = HashMap::new();
        for name in state.tensor_infos().keys() {
            let tensor = state.get(name).map_err(|err| wrong(&format!("`{name}`: {err}")))?;
            let Some(tensor) = tensor else { continue };
            let shape = tensor.dims().to_vec();
            let values = tensor
                .to_dtype(DType::F32)
                .and_then(|tensor| tensor.flatten_all()?.to_vec1())
                .map_err(|err| wrong(&format!("`{name}`: {err}")))?;
            tensors.insert(name.clone(), Tensor { shape, values });
        }
        for part in ["weight", "bias"] {
            let (mean, log_std) = (format!("actor.mu.{part}"), format!("actor.log_std.{part}"));
            if let (Some(mean), Some(log_std)) = (tensors.get(&mean), tensors.get(&log_std)) {
                let mut shape = mean.shape.clone();
                if let (Some(outputs), Some(more)) = (shape.first_mut(), log_std.shape.first()) {
                    *outputs += more;
                }
                let values = [mean.values.as_slice(), &log_std.values].concat();
                tensors.insert(format!("{SAC_HEAD}.{part}"), Tensor { shape, values });
            }
        }
        Ok(Self { data, tensors })
    }

    fn tensor(&self, name: &str) -> Result<&Tensor, StageError> {
        self.tensors
            .get(name)
            .ok_or_else(|| StageError::new(format!("its policy has no tensor `{name}`")).hint(READ))
    }

    /// S, the floats of the actor's LSTM's state: of each layer what it puts out and its cells.
    fn state_len(&self) -> usize {
        let of_layer = |layer: usize| self.tensors.get(&format!("lstm_actor.weight_hh_l{layer}"));
        (0..)
            .map_while(of_layer)
            .filter_map(|weight| weight.shape.get(1))
            .map(|hidden| 2 * hidden)
            .sum()
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The sizes of the layers `PREFIX.0`, `PREFIX.2` and so on: between them are activation functions.
    fn sizes(&self, prefix: &str) -> Vec<usize> {
        let weight = |i: usize| self.tensors.get(&format!("{prefix}.{}.weight", 2 * i));
        (0..)
            .map_while(weight)
            .map_while(|weight| weight.shape.first().copied())
            .collect()
    }

    /// The stage kind that trains such policies, and the network's architecture.
    fn architecture(&self, env: &EnvSpec) -> Result<(&'static str, Architecture), StageError> {
        let refused = |what: &str| Err(StageError::new(what).hint(READ));
        if self.tensors.keys().any(|name| name.contains("features_extractor.")) {
            return refused("its policy has a features extractor with parameters");
        }
        if self.data["use_sde"] == Value::Bool(true) {
            return refused("its policy explores with gSDE, whose standard deviations depend on the state");
        }
        let is_q = self.has("q_net.q_net.0.weight");
        let is_sac = self.has(&format!("{SAC_HEAD}.weight"));
        let is_td3 = self.has("actor.mu.0.weight");
        if !is_q && !is_sac && !is_td3 && !self.has("action_net.weight") {
            let mut names: Vec<&str> = self.tensors.keys().map(String::as_str).collect();
            names.sort_unstable();
            names.truncate(3);
            return refused(&format!(
                "its policy has the tensors {}, … of a network that is not known",
                names.join(", ")
            ));
        }
        let activation = self.activation(match is_q || is_sac || is_td3 {
            true => Activation::Relu,
            false => Activation::Tanh,
        })?;
        let base = Architecture {
            obs_dim: env.obs_dim(),
            head: match ActionHead::of(&env.action_space) {
                // Means are in the units of the environment there.
                ActionHead::ScaledGaussian(components) => ActionHead::Continuous(components),
                head => head,
            },
            activation,
            lstm: None,
            transformer: None,
            pi: Vec::new(),
            vf: Vec::new(),
        };
        if is_sac || is_td3 {
            let components = base.head.num_outputs();
            StageError::new(format!(
                "its policy has continuous actions, and those of the environment `{}` are choices",
                env.name
            ))
            .hint("import a policy that was trained on it")
            .when(!base.head.is_continuous())?;
            let (kind, head, mut pi) = match is_sac {
                true => (
                    "train/sac",
                    ActionHead::SquashedGaussian(components),
                    self.sizes("actor.latent_pi"),
                ),
                false => (
                    "train/td3",
                    ActionHead::Deterministic(components),
                    self.sizes("actor.mu"),
                ),
            };
            if is_td3 {
                pi.pop();
            }
            return Ok((kind, Architecture { head, pi, ..base }));
        }
        if is_q {
            let mut pi = self.sizes("q_net.q_net");
            let choices = pi.pop().unwrap_or_default();
            let epsilon = self.data["exploration_final_eps"].as_f64().unwrap_or(0.05);
            let head = ActionHead::QValues {
                choices: u32::try_from(choices).unwrap_or(u32::MAX),
                dueling: false,
                epsilon: epsilon as f32,
            };
            StageError::new(format!(
                "its policy has {choices} actions, and those of the environment `{}` are others",
                env.name
            ))
            .hint("import a policy that was trained on it")
            .when(!head.fits(&env.action_space))?;
            return Ok(("train/dqn", Architecture { head, pi, ..base }));
        }
        let mut architecture = Architecture {
            pi: self.sizes("mlp_extractor.policy_net"),
            vf: self.sizes("mlp_extractor.value_net"),
            ..base
        };
        if let Some(weight) = self.tensors.get("lstm_actor.weight_hh_l0") {
            let layers = (0..).take_while(|layer| self.has(&format!("lstm_actor.weight_hh_l{layer}")));
            architecture.lstm = Some(Lstm {
                hidden: weight.shape.get(1).copied().unwrap_or_default(),
                critic: match (self.has("lstm_critic.weight_hh_l0"), self.has("critic.weight")) {
                    (true, _) => Critic::Separate,
                    (_, true) => Critic::Linear,
                    _ => Critic::Shared,
                },
                layers: layers.count(),
            });
            return Ok(("train/recurrent_ppo", architecture));
        }
        let kind = match self.data.get("clip_range").is_some() {
            true => "train/ppo",
            false => "train/a2c",
        };
        Ok((kind, architecture))
    }

    /// The activation function that `policy_kwargs` names.
    fn activation(&self, default: Activation) -> Result<Activation, StageError> {
        let Some(name) = self.data["policy_kwargs"]["activation_fn"].as_str() else {
            return Ok(default);
        };
        // Such as `<class 'torch.nn.modules.activation.ReLU'>`.
        match name.trim_end_matches("'>").rsplit('.').next() {
            Some("ReLU") => Ok(Activation::Relu),
            Some("Tanh") => Ok(Activation::Tanh),
            _ => Err(StageError::new(format!("its activation function is {name}")).hint(READ)),
        }
    }
}
