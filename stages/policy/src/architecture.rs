//! The architecture of a network, and the offset of each of its tensors in the flat vector of parameters.

use crate::candidates::EmbeddingAt;
use crate::head::ActionHead;
use crate::tensors::{Dense, Tensor, Tensors};
use crate::transformer::shape::{Transformer, TransformerAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The activation function of hidden layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Hyperbolic tangent.
    #[default]
    Tanh,
    /// max(0, x).
    Relu,
}

/// The input of the critic in a recurrent network; the names of sb3-contrib's settings in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Critic {
    /// An LSTM of its own (`enable_critic_lstm`).
    Separate,
    /// The actor's LSTM, into which no gradient of the value loss flows (`shared_lstm`).
    Shared,
    /// A linear layer of the LSTM's size over the observation (neither).
    Linear,
}

/// The recurrent part: layers of LSTM, each of which reads the outputs of the one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lstm {
    /// H, the size of the hidden state and of the cell state of each layer.
    pub hidden: usize,
    /// The input of the critic.
    pub critic: Critic,
    /// The number of layers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub layers: usize,
}

fn one() -> usize {
    1
}

fn is_one(layers: &usize) -> bool {
    *layers == 1
}

/// A network with an actor and a critic: the observation, an LSTM or a transformer where there is one, the
/// hidden layers of actor and critic, then the outputs for actions and the value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// D, the length of an observation; 0 where actions are candidates.
    pub obs_dim: usize,
    /// The actions.
    #[serde(flatten)]
    pub head: ActionHead,
    /// The activation function of hidden layers.
    pub activation: Activation,
    /// The recurrent part; `None` for a network without one.
    pub lstm: Option<Lstm>,
    /// The transformer, which actor and critic share; `None` for a network without one, and always where
    /// there is an LSTM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformer: Option<Transformer>,
    /// The sizes of the actor's hidden layers.
    pub pi: Vec<usize>,
    /// The sizes of the critic's hidden layers.
    pub vf: Vec<usize>,
}

/// The offsets of the three tensors of an LSTM layer, with the layer's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LstmAt {
    pub inputs: usize,
    pub hidden: usize,
    pub weight_x: usize,
    pub weight_h: usize,
    pub bias: usize,
}

/// The offsets of the parameters in the flat vector, part by part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub tensors: Tensors,
    /// The embedding of states and candidates.
    pub embedding: Option<EmbeddingAt>,
    /// The layers of the actor's LSTM and of the critic's, each of which reads the one before.
    pub actor_lstm: Vec<LstmAt>,
    pub critic_lstm: Vec<LstmAt>,
    pub critic_linear: Option<Dense>,
    pub transformer: Option<TransformerAt>,
    /// The hidden layers of the actor and of the critic, each followed by the head.
    pub pi: Vec<Dense>,
    pub vf: Vec<Dense>,
    /// The offset of the logarithms of the standard deviations `[A]`, if actions are continuous.
    pub log_std: Option<usize>,
}

impl Layout {
    fn lstm(&mut self, name: &str, inputs: usize, hidden: usize) -> LstmAt {
        LstmAt {
            inputs,
            hidden,
            weight_x: self
                .tensors
                .tensor(format!("{name}.weight_x"), vec![inputs, 4 * hidden]),
            weight_h: self
                .tensors
                .tensor(format!("{name}.weight_h"), vec![hidden, 4 * hidden]),
            bias: self.tensors.tensor(format!("{name}.bias"), vec![4 * hidden]),
        }
    }

    /// Lays out the layers of an LSTM.
    fn lstm_stack(&mut self, name: &str, inputs: usize, lstm: &Lstm) -> Vec<LstmAt> {
        let mut layers = vec![self.lstm(name, inputs, lstm.hidden)];
        layers.extend(
            (1..lstm.layers).map(|layer| self.lstm(&format!("{name}.{layer}"), lstm.hidden, lstm.hidden)),
        );
        layers
    }

    fn trunk(&mut self, name: &str, mut inputs: usize, sizes: &[usize], head: (&str, usize)) -> Vec<Dense> {
        let mut layers = Vec::with_capacity(sizes.len() + 1);
        for (i, &size) in sizes.iter().enumerate() {
            layers.push(self.tensors.dense(&format!("{name}.{i}"), inputs, size));
            inputs = size;
        }
        layers.push(self.tensors.dense(head.0, inputs, head.1));
        layers
    }
}

impl Architecture {
    pub(crate) fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let mut inputs = self.obs_dim;
        if let ActionHead::Candidates(embedding) = &self.head {
            inputs = embedding.embedding;
            layout.embedding = Some(embedding.lay_out(&mut layout.tensors));
        }
        let mut latent = inputs;
        if let Some(lstm) = &self.lstm {
            let hidden = lstm.hidden;
            latent = hidden;
            layout.actor_lstm = layout.lstm_stack("actor_lstm", inputs, lstm);
            match lstm.critic {
                Critic::Separate => layout.critic_lstm = layout.lstm_stack("critic_lstm", inputs, lstm),
                Critic::Linear => layout.critic_linear = Some(layout.tensors.dense("critic", inputs, hidden)),
                Critic::Shared => {}
            }
        }
        if let Some(transformer) = &self.transformer {
            latent = transformer.d_model;
            layout.transformer = Some(transformer.lay_out(&mut layout.tensors, self.obs_dim));
        }
        layout.pi = layout.trunk("pi", latent, &self.pi, (self.head.name(), self.head.width()));
        if self.head.has_critic() {
            layout.vf = layout.trunk("vf", latent, &self.vf, ("value", 1));
        }
        if let Some(components) = self.head.num_log_std() {
            layout.log_std = Some(layout.tensors.tensor("log_std".to_owned(), vec![components]));
        }
        layout
    }

    /// The tensors of the parameters, in the order of the flat vector.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.layout().tensors.list
    }

    /// P, the number of parameters.
    pub fn num_params(&self) -> usize {
        self.layout().tensors.len
    }

    /// True if the network has a memory: its outputs for an observation depend on earlier observations.
    pub fn remembers(&self) -> bool {
        self.lstm.is_some() || self.transformer.is_some()
    }

    /// S, the number of floats in an environment's recurrent state: the hidden and cell states of the actor's
    /// layers, first to last, then those of a separate critic; for a transformer, see
    /// [`crate::transformer::State`].
    pub fn state_len(&self) -> usize {
        if let Some(transformer) = &self.transformer {
            return transformer.state(self.obs_dim).len();
        }
        self.lstm.map_or(0, |lstm| {
            let stacks = if lstm.critic == Critic::Separate { 2 } else { 1 };
            stacks * lstm.layers * 2 * lstm.hidden
        })
    }

    /// A description of the first invalid size, if there is one.
    pub fn problem(&self) -> Option<String> {
        let zero = |name: &str, size: usize| (size == 0).then(|| format!("{name} must be at least 1"));
        let sizes = self
            .pi
            .iter()
            .chain(&self.vf)
            .copied()
            .chain(self.lstm.map(|lstm| lstm.hidden.min(lstm.layers)));
        let inputs = match &self.head {
            ActionHead::Candidates(embedding) => embedding.problem().or_else(|| {
                let has_linear = self
                    .lstm
                    .is_some_and(|lstm| lstm.critic == Critic::Linear || lstm.layers > 1);
                (has_linear || self.transformer.is_some()).then(|| {
                    "a network over symbolic states has a memory of one layer of LSTM, and a critic with \
                    one of its own or the actor's"
                        .to_owned()
                })
            }),
            head => zero("the length of an observation", self.obs_dim)
                .or_else(|| zero("the number of actions", head.num_outputs())),
        };
        inputs
            .or_else(|| {
                let least = self.head.choices().iter().min().map_or(1, |&n| n as usize);
                zero("the number of choices of a component", least)
            })
            .or_else(|| sizes.into_iter().find_map(|size| zero("the size of a layer", size)))
            .or_else(|| self.transformer.and_then(|transformer| transformer.problem()))
            .or_else(|| {
                (!self.head.has_critic() && (self.remembers() || !self.vf.is_empty()))
                    .then(|| "a network without a critic has hidden layers of the actor alone".to_owned())
            })
            .or_else(|| {
                (self.lstm.is_some() && self.transformer.is_some())
                    .then(|| "it has both an LSTM and a transformer".to_owned())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_vector_has_no_gaps() {
        let architecture = Architecture {
            obs_dim: 5,
            head: ActionHead::Discrete(3),
            activation: Activation::Tanh,
            lstm: Some(Lstm {
                hidden: 4,
                critic: Critic::Separate,
                layers: 1,
            }),
            transformer: None,
            pi: vec![8, 7],
            vf: vec![],
        };
        let mut end = 0;
        for tensor in architecture.tensors() {
            assert_eq!(tensor.offset, end);
            end = tensor.range().end;
        }
        assert_eq!(end, architecture.num_params());
        let lstm = 4 * 4 * (5 + 4 + 1);
        assert_eq!(end, 2 * lstm + (4 * 8 + 8) + (8 * 7 + 7) + (7 * 3 + 3) + (4 + 1));
        assert_eq!(architecture.state_len(), 16);
        let stacked = Architecture {
            lstm: architecture.lstm.map(|lstm| Lstm { layers: 3, ..lstm }),
            ..architecture.clone()
        };
        let above = 4 * 4 * (4 + 4 + 1);
        assert_eq!(stacked.num_params(), end + 2 * 2 * above);
        assert_eq!(stacked.state_len(), 48);
        // A single layer is written as it was before there were several.
        let json = serde_json::to_value(&architecture).unwrap();
        assert_eq!(json["lstm"], serde_json::json!({ "hidden": 4, "critic": "separate" }));
        let read: Architecture = serde_json::from_value(json).unwrap();
        assert_eq!(read, architecture);
    }

    /// The serialised form is fixed because policies hold it: other bytes would give other digests.
    #[test]
    fn heads_in_files() {
        for (head, json) in [
            (ActionHead::Discrete(5), r#""num_actions":5"#),
            (ActionHead::Continuous(5), r#""num_actions":5,"continuous":true"#),
            (
                ActionHead::ScaledGaussian(5),
                r#""num_actions":5,"continuous":true,"head":"scaled_gaussian""#,
            ),
            (
                ActionHead::MultiDiscrete(vec![3, 2]),
                r#""num_actions":5,"choices":[3,2]"#,
            ),
        ] {
            let architecture = Architecture {
                obs_dim: 2,
                head,
                ..Architecture::default()
            };
            let text = serde_json::to_string(&architecture).unwrap();
            assert_eq!(
                text,
                format!(r#"{{"obs_dim":2,{json},"activation":"tanh","lstm":null,"pi":[],"vf":[]}}"#)
            );
            assert_eq!(serde_json::from_str::<Architecture>(&text).unwrap(), architecture);
            assert!(serde_json::from_str::<Architecture>(&text.replace("vf", "vg")).is_err());
            let other = text.replace(r#""num_actions":5"#, r#""num_actions":6"#);
            let read = serde_json::from_str::<Architecture>(&other);
            assert_eq!(read.is_err(), other.contains("choices"), "{other}");
        }
        let none = Architecture {
            obs_dim: 2,
            head: ActionHead::MultiDiscrete(vec![3, 0]),
            ..Architecture::default()
        };
        assert!(none.problem().unwrap().contains("choices of a component"));
    }
}
