//! The embedding of states and candidates: its settings, and its tensors.

use crate::tensors::Tensors;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The embedding of an atom from those of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtomEmbedding {
    /// The hyperbolic tangent of a sum in which each place of the atom has a learned weight for each element;
    /// states and candidates have their own weights.
    #[default]
    Learned,
    /// The same sum without the hyperbolic tangent: where a candidate has one atom, such as an edge, it tells
    /// as much for a part of the time.
    Linear,
    /// Predicate + first argument - second argument + third argument - …, which is 0 where a translation by
    /// the relation leads from one to the other (Bordes and others, "Translating embeddings for modeling
    /// multi-relational data", 2013).
    Transe,
}

/// The embedding of a state or candidate from those of its atoms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Their sum.
    #[default]
    Sum,
    /// Their mean.
    Mean,
}

/// The embedding of states and candidates, which are bags of rows of ids. A candidate's logit is the dot
/// product of its embedding with the output of the actor for the state, over the square root of their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateEmbedding {
    /// V, the number of tokens; token 0 is padding.
    pub tokens: usize,
    /// W, the number of tokens of an atom.
    pub width: usize,
    /// E, the length of embeddings.
    pub embedding: usize,
    /// The embedding of an atom from the embeddings of its tokens.
    pub atoms: AtomEmbedding,
    /// The embedding of a state or candidate from the embeddings of its atoms.
    pub pooling: Pooling,
}

/// The weights of an atom's places `[W, E]`, and the bias `[E]` after them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomAt {
    pub weight: usize,
    pub bias: usize,
}

/// The offsets of the embedding's tensors in the flat vector of parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbeddingAt {
    /// The embeddings of tokens `[V, E]`.
    pub tokens: usize,
    /// The weights of the atoms of states and of candidates, where they are learned.
    pub atoms: Option<[AtomAt; 2]>,
    /// The number of the embedding's parameters, which come first in the flat vector.
    pub len: usize,
}

impl CandidateEmbedding {
    pub(crate) fn lay_out(&self, tensors: &mut Tensors) -> EmbeddingAt {
        let tokens = tensors.tensor("embedding.tokens".to_owned(), vec![self.tokens, self.embedding]);
        let mut atom = |name: &str| AtomAt {
            weight: tensors.tensor(format!("embedding.{name}.places"), vec![self.width, self.embedding]),
            bias: tensors.tensor(format!("embedding.{name}.bias"), vec![self.embedding]),
        };
        let atoms = (self.atoms != AtomEmbedding::Transe).then(|| [atom("state"), atom("candidate")]);
        EmbeddingAt {
            tokens,
            atoms,
            len: tensors.len,
        }
    }

    /// A description of the first invalid size, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let sizes = [
            ("the number of tokens", self.tokens),
            ("the number of tokens of an atom", self.width),
            ("the length of embeddings", self.embedding),
        ];
        let zero = sizes.iter().find(|(_, size)| *size == 0);
        zero.map(|(name, _)| format!("{name} must be at least 1"))
    }
}
