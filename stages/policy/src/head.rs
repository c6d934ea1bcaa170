//! The action heads of a network: the form of its outputs for each kind of action space.

use crate::candidates::{AtomEmbedding, CandidateEmbedding, Pooling};
use crate::categorical;
use serde::{Deserialize, Serialize};
use stages_env::ActionSpace;

/// The action head of a network. The first three variants and the last come with a critic; the others are the
/// actors, or the action values, of trainers that learn from a replay buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionHead {
    /// A logit for each of A choices.
    Discrete(u32),
    /// A logit for each choice of each of K components; the numbers are the components' numbers of choices.
    MultiDiscrete(Vec<u32>),
    /// The mean of each of A components.
    Continuous(usize),
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

/// The serialised form of those variants of [`ActionHead`] that [`crate::Architecture`] has no field for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeadFile {
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

impl Default for ActionHead {
    fn default() -> Self {
        Self::Discrete(0)
    }
}

impl ActionHead {
    /// The head of an actor with a critic for the given action space.
    pub fn of(space: &ActionSpace) -> Self {
        match space {
            ActionSpace::Discrete { names, .. } => Self::Discrete(names.len() as u32),
            ActionSpace::MultiDiscrete { choices, .. } => Self::MultiDiscrete(choices.clone()),
            ActionSpace::Continuous { names, .. } => Self::Continuous(names.len()),
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
            (Self::SquashedGaussian(a) | Self::Deterministic(a), ActionSpace::Continuous { names, .. }) => {
                *a == names.len()
            }
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
            | Self::SquashedGaussian(_)
            | Self::Deterministic(_)
            | Self::Candidates(_) => &[],
        }
    }

    /// True if actions are real numbers, false if they are choices.
    pub fn is_continuous(&self) -> bool {
        matches!(
            self,
            Self::Continuous(_) | Self::SquashedGaussian(_) | Self::Deterministic(_)
        )
    }

    /// True if the network has a critic of the state's value, too.
    pub fn has_critic(&self) -> bool {
        matches!(
            self,
            Self::Discrete(_) | Self::MultiDiscrete(_) | Self::Continuous(_) | Self::Candidates(_)
        )
    }

    /// The name of the network's last layer.
    pub(crate) fn name(&self) -> &'static str {
        if let Self::QValues { .. } = self { "q" } else { "action" }
    }

    pub(crate) fn file(&self) -> Option<HeadFile> {
        match *self {
            Self::SquashedGaussian(_) => Some(HeadFile::SquashedGaussian),
            Self::Deterministic(_) => Some(HeadFile::Deterministic),
            Self::QValues { dueling, epsilon, .. } => Some(HeadFile::QValues { dueling, epsilon }),
            Self::Candidates(CandidateEmbedding {
                tokens,
                width,
                atoms,
                pooling,
                ..
            }) => Some(HeadFile::Candidates {
                tokens,
                width,
                atoms,
                pooling,
            }),
            _ => None,
        }
    }
}
