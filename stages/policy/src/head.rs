//! The actions that a network's outputs are for.

use crate::categorical;
use crate::symbolic::{AtomEmbedding, Pooling, Symbols};
use serde::{Deserialize, Serialize};
use stages_env::ActionSpace;

/// The actions that a network's outputs are for. The first three and the last have a critic beside them; the
/// others are the actors, and the action values, of trainers that learn from a replay buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionHead {
    /// A logit for each of A choices.
    Discrete(u32),
    /// A logit for each choice of each of K components, whose numbers of choices these are.
    MultiDiscrete(Vec<u32>),
    /// The mean of each of A components.
    Continuous(usize),
    /// Mean and logarithm of the standard deviation of each of A components, of which the hyperbolic tangent
    /// is taken, scaled to the bounds ([`crate::squashed`]).
    SquashedGaussian(usize),
    /// Each of A components: its hyperbolic tangent, scaled to the bounds. Never drawn.
    Deterministic(usize),
    /// The value of each of A choices ([`crate::q_values`]).
    QValues {
        /// A.
        choices: u32,
        /// True if the network has the value of the state and the advantage of each choice instead.
        dueling: bool,
        /// The share of drawn actions that are uniform over the allowed choices.
        epsilon: f32,
    },
    /// A score for each candidate of a symbolic state, by embeddings of both.
    Candidates(Symbols),
}

/// The part of [`ActionHead`] in files that [`crate::Architecture`] does not tell otherwise.
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
    /// The head of an actor with a critic for an action space.
    pub fn of(space: &ActionSpace) -> Self {
        match space {
            ActionSpace::Discrete { names, .. } => Self::Discrete(names.len() as u32),
            ActionSpace::MultiDiscrete { choices, .. } => Self::MultiDiscrete(choices.clone()),
            ActionSpace::Continuous { names, .. } => Self::Continuous(names.len()),
            ActionSpace::Candidates { names, width } => Self::Candidates(Symbols {
                tokens: names.len(),
                width: *width,
                ..Symbols::default()
            }),
        }
    }

    /// True if its actions are those of `space`.
    pub fn fits(&self, space: &ActionSpace) -> bool {
        match (self, space) {
            (Self::SquashedGaussian(a) | Self::Deterministic(a), ActionSpace::Continuous { names, .. }) => {
                *a == names.len()
            }
            (Self::QValues { choices, .. }, ActionSpace::Discrete { names, .. }) => {
                *choices as usize == names.len()
            }
            (Self::Candidates(symbols), ActionSpace::Candidates { names, width }) => {
                symbols.tokens == names.len() && symbols.width == *width
            }
            _ => *self == Self::of(space),
        }
    }

    /// A, the number of choices in all or of continuous components; 0 for candidates, whose number changes.
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
            Self::Candidates(symbols) => symbols.embedding,
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

    /// True for real numbers, false for choices.
    pub fn is_continuous(&self) -> bool {
        matches!(
            self,
            Self::Continuous(_) | Self::SquashedGaussian(_) | Self::Deterministic(_)
        )
    }

    /// True if a critic of the state's value stands beside it.
    pub fn has_critic(&self) -> bool {
        matches!(
            self,
            Self::Discrete(_) | Self::MultiDiscrete(_) | Self::Continuous(_) | Self::Candidates(_)
        )
    }

    /// The name of the last layer.
    pub(crate) fn name(&self) -> &'static str {
        if let Self::QValues { .. } = self { "q" } else { "action" }
    }

    pub(crate) fn file(&self) -> Option<HeadFile> {
        match *self {
            Self::SquashedGaussian(_) => Some(HeadFile::SquashedGaussian),
            Self::Deterministic(_) => Some(HeadFile::Deterministic),
            Self::QValues { dueling, epsilon, .. } => Some(HeadFile::QValues { dueling, epsilon }),
            Self::Candidates(Symbols {
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
