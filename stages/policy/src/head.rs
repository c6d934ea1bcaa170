//! The action heads of a network: the form of its outputs for each kind of action space.

use crate::candidates::{AtomEmbedding, CandidateEmbedding, Pooling};
use crate::categorical;
use serde::{Deserialize, Serialize};
use stages_env::ActionSpace;

/// The action head of a network. The first four variants and the last come with a critic; the others are the
/// actors, or the action values, of trainers that learn from a replay buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "HeadFile", into = "HeadFile")]
pub enum ActionHead {
    /// A logit for each of A choices.
    Discrete(u32),
    /// A logit for each choice of each of K components; the numbers are the components' numbers of choices.
    MultiDiscrete(Vec<u32>),
    /// The mean of each of A components, in the units of the environment.
    Continuous(usize),
    /// The mean of each of A components; draws are scaled to the bounds, so that a mean of 0 is the middle of
    /// a range and a standard deviation of 1 half its width.
    ScaledGaussian(usize),
    /// The mean and the logarithm of the standard deviation of each of A components; the hyperbolic tangent
    /// of the draw is scaled to the bounds ([`crate::squashed`]).
    SquashedGaussian(usize),
    /// The value of each of A components, whose hyperbolic tangent is scaled to the bounds. Actions are never
    /// drawn.
    Deterministic(usize),
    /// The value of each of A choices ([`crate::q_values`]).
    QValues {
        /// A, the number of choices.
        choices: u32,
        /// True if the network has the value of the state and the advantage of each choice instead of action
        /// values.
        dueling: bool,
        /// The share of drawn actions that are uniform over the allowed choices.
        epsilon: f32,
    },
    /// A score for each candidate action of a state, from the embeddings of both.
    Candidates(CandidateEmbedding),
}

/// The serialised form of [`ActionHead`] within an architecture's.
#[derive(Serialize, Deserialize)]
struct HeadFile {
    /// The number of outputs; for candidates, the length of an embedding.
    num_actions: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continuous: bool,
    /// The number of choices of each component of a multi-discrete action; absent for other heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<u32>>,
    /// The form of the outputs; absent for fixed numbers of actions with a critic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<Form>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    ScaledGaussian,
    SquashedGaussian,
    Deterministic,
    QValues {
        dueling: bool,
        epsilon: f32,
    },
    Candidates {
        tokens: usize,
        width: usize,
        atoms: AtomEmbedding,
        pooling: Pooling,
    },
}

impl From<ActionHead> for HeadFile {
    fn from(of: ActionHead) -> Self {
        Self {
            num_actions: match &of {
                ActionHead::Candidates(embedding) => embedding.embedding,
                head => head.num_outputs(),
            },
            continuous: of.is_continuous(),
            head: match of {
                ActionHead::ScaledGaussian(_) => Some(Form::ScaledGaussian),
                ActionHead::SquashedGaussian(_) => Some(Form::SquashedGaussian),
                ActionHead::Deterministic(_) => Some(Form::Deterministic),
                ActionHead::QValues { dueling, epsilon, .. } => Some(Form::QValues { dueling, epsilon }),
                ActionHead::Candidates(CandidateEmbedding {
                    tokens,
                    width,
                    atoms,
                    pooling,
                    ..
                }) => Some(Form::Candidates {
                    tokens,
                    width,
                    atoms,
                    pooling,
                }),
                _ => None,
            },
            choices: match of {
                ActionHead::MultiDiscrete(choices) => Some(choices),
                _ => None,
            },
        }
    }
}

impl TryFrom<HeadFile> for ActionHead {
    type Error = String;

    fn try_from(file: HeadFile) -> Result<Self, String> {
        let num_choices = || u32::try_from(file.num_actions).map_err(|err| err.to_string());
        let head = match (file.head, file.continuous, file.choices) {
            (None, true, None) => Self::Continuous(file.num_actions),
            (None, false, None) => Self::Discrete(num_choices()?),
            (None, false, Some(choices)) => Self::MultiDiscrete(choices),
            (Some(Form::ScaledGaussian), true, None) => Self::ScaledGaussian(file.num_actions),
            (Some(Form::SquashedGaussian), true, None) => Self::SquashedGaussian(file.num_actions),
            (Some(Form::Deterministic), true, None) => Self::Deterministic(file.num_actions),
            (Some(Form::QValues { dueling, epsilon }), false, None) => Self::QValues {
                choices: num_choices()?,
                dueling,
                epsilon,
            },
            (
                Some(Form::Candidates {
                    tokens,
                    width,
                    atoms,
                    pooling,
                }),
                false,
                None,
            ) => Self::Candidates(CandidateEmbedding {
                tokens,
                width,
                embedding: file.num_actions,
                atoms,
                pooling,
            }),
            _ => return Err("the kind of actions contradicts itself".to_owned()),
        };
        if !matches!(head, Self::Candidates(_)) && head.num_outputs() != file.num_actions {
            return Err("the number of outputs is not that of the choices".to_owned());
        }
        Ok(head)
    }
}

impl Default for ActionHead {
    fn default() -> Self {
        Self::Discrete(0)
    }
}

impl ActionHead {
    /// The head of an actor with a critic for the given action space. A range from -1 to 1 needs no scale.
    pub fn of(space: &ActionSpace) -> Self {
        match space {
            ActionSpace::Discrete { names, .. } => Self::Discrete(names.len() as u32),
            ActionSpace::MultiDiscrete { choices, .. } => Self::MultiDiscrete(choices.clone()),
            ActionSpace::Continuous { names, bounds } if bounds.are_unit() => Self::Continuous(names.len()),
            ActionSpace::Continuous { names, .. } => Self::ScaledGaussian(names.len()),
            ActionSpace::Candidates { names, width } => Self::Candidates(CandidateEmbedding {
                tokens: names.len(),
                width: *width,
                ..CandidateEmbedding::default()
            }),
        }
    }

    /// True if the head's actions are those of `space`.
    pub fn fits(&self, space: &ActionSpace) -> bool {
        match (self, space) {
            (
                Self::Continuous(a)
                | Self::ScaledGaussian(a)
                | Self::SquashedGaussian(a)
                | Self::Deterministic(a),
                ActionSpace::Continuous { names, .. },
            ) => *a == names.len(),
            (Self::QValues { choices, .. }, ActionSpace::Discrete { names, .. }) => {
                *choices as usize == names.len()
            }
            (Self::Candidates(embedding), ActionSpace::Candidates { names, width }) => {
                embedding.tokens == names.len() && embedding.width == *width
            }
            _ => *self == Self::of(space),
        }
    }

    /// A, the number of choices in all or of continuous components; 0 for candidates, whose number varies.
    pub fn num_outputs(&self) -> usize {
        match self {
            Self::Continuous(components)
            | Self::ScaledGaussian(components)
            | Self::SquashedGaussian(components)
            | Self::Deterministic(components) => *components,
            _ => categorical::num_outputs(self.choices()),
        }
    }

    /// The number of outputs of the network's last layer.
    pub fn width(&self) -> usize {
        match self {
            Self::SquashedGaussian(components) => 2 * components,
            Self::QValues {
                choices,
                dueling: true,
                ..
            } => *choices as usize + 1,
            Self::Candidates(embedding) => embedding.embedding,
            _ => self.num_outputs(),
        }
    }

    /// K, the number of values of an action.
    pub fn num_components(&self) -> usize {
        match self {
            Self::Candidates(_) => 1,
            _ if self.is_continuous() => self.num_outputs(),
            _ => self.choices().len(),
        }
    }

    /// The number of choices of each component `[K]`; none where actions are continuous or candidates.
    pub fn choices(&self) -> &[u32] {
        match self {
            Self::Discrete(choices) | Self::QValues { choices, .. } => std::slice::from_ref(choices),
            Self::MultiDiscrete(choices) => choices,
            Self::Continuous(_)
            | Self::ScaledGaussian(_)
            | Self::SquashedGaussian(_)
            | Self::Deterministic(_)
            | Self::Candidates(_) => &[],
        }
    }

    /// True if actions are real numbers, false if they are choices.
    pub fn is_continuous(&self) -> bool {
        matches!(
            self,
            Self::Continuous(_)
                | Self::ScaledGaussian(_)
                | Self::SquashedGaussian(_)
                | Self::Deterministic(_)
        )
    }

    /// True if actions are real numbers from -1 to 1 here, and scaled to their bounds for the environment.
    pub fn is_scaled(&self) -> bool {
        self.is_continuous() && !matches!(self, Self::Continuous(_))
    }

    /// The number of components with a standard deviation that is a parameter.
    pub(crate) fn num_log_std(&self) -> Option<usize> {
        match self {
            Self::Continuous(components) | Self::ScaledGaussian(components) => Some(*components),
            _ => None,
        }
    }

    /// True if the network has a critic of the state's value, too.
    pub fn has_critic(&self) -> bool {
        matches!(
            self,
            Self::Discrete(_)
                | Self::MultiDiscrete(_)
                | Self::Continuous(_)
                | Self::ScaledGaussian(_)
                | Self::Candidates(_)
        )
    }

    /// The name of the network's last layer.
    pub(crate) fn name(&self) -> &'static str {
        if let Self::QValues { .. } = self { "q" } else { "action" }
    }
}
