//! ComplEx embeddings of the facts of two constants (Trouillon et al., "Complex embeddings for simple link
//! prediction", 2016), by which rewards of training are shaped.

mod config;
mod fit;
#[cfg(test)]
mod tests;

pub use config::EmbeddingConfig;

use stages_knowledge::{KnowledgeBase, Word, word};

/// The number of partial sums, which fixes the order of additions.
const LANES: usize = 16;

/// An embedding of a knowledge base: a complex vector for each constant and each predicate, real parts first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embedding {
    /// The number of numbers in a vector.
    width: usize,
    /// The vectors of the constants, then those of the predicates.
    vectors: Vec<f32>,
    /// Slope and intercept of the logarithm of the odds that a fact holds, by its score.
    calibration: [f32; 2],
    constants: usize,
    /// For each predicate, true if it has facts of two arguments.
    is_scored: Vec<bool>,
}

impl Embedding {
    /// An embedding whose vectors are 0.
    fn zero(knowledge: &KnowledgeBase, config: &EmbeddingConfig) -> Self {
        let width = 2 * config.dim as usize;
        let relations = &knowledge.relations;
        let is_scored = (0..knowledge.predicates() as u32)
            .map(|predicate| relations.get(predicate))
            .map(|relation| relation.arity() == 2 && relation.rows > 0);
        Self {
            width,
            vectors: vec![0.0; width * (knowledge.constants() + knowledge.predicates())],
            calibration: [1.0, 0.0],
            constants: knowledge.constants(),
            is_scored: is_scored.collect(),
        }
    }

    /// The vectors and the calibration, as little-endian numbers of 32 bits.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.vectors.iter().chain(&self.calibration);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The embedding of a knowledge base, read from bytes; `None` where their length does not fit.
    pub(crate) fn from_bytes(
        bytes: &[u8],
        knowledge: &KnowledgeBase,
        config: &EmbeddingConfig,
    ) -> Option<Self> {
        let mut embedding = Self::zero(knowledge, config);
        let (numbers, []) = bytes.as_chunks() else {
            return None;
        };
        if numbers.len() != embedding.vectors.len() + embedding.calibration.len() {
            return None;
        }
        let to = embedding.vectors.iter_mut().chain(&mut embedding.calibration);
        to.zip(numbers).for_each(|(to, from)| *to = f32::from_le_bytes(*from));
        Some(embedding)
    }

    /// The score of a fact: the real part of the sum of head x relation x conjugate tail. Of the tails of a
    /// head and relation (and of the heads of a relation and tail) one is more likely than another by the
    /// exponential of the difference of their scores. `None` unless the predicate has facts of two constants
    /// in the graph.
    pub fn score(&self, predicate: u32, head: u32, tail: u32) -> Option<f32> {
        let is_scored = self.is_scored.get(predicate as usize) == Some(&true);
        is_scored.then(|| {
            let [head, tail] = [head, tail].map(|constant| self.row(constant as usize));
            score(head, self.row(self.relation(predicate)), tail)
        })
    }

    /// The probability that an atom holds; `None` unless it has two constants and a predicate with facts in
    /// the graph.
    pub fn probability(&self, atom: &[Word]) -> Option<f32> {
        let &[predicate, head, tail] = atom else {
            return None;
        };
        if !(word::arity(predicate) == 2 && word::is_constant(head) && word::is_constant(tail)) {
            return None;
        }
        let score = self.score(word::number(predicate), word::number(head), word::number(tail))?;
        let [slope, intercept] = self.calibration;
        Some(sigmoid(slope * score + intercept))
    }

    /// The index of a predicate's vector among all vectors.
    fn relation(&self, predicate: u32) -> usize {
        self.constants + predicate as usize
    }

    /// A vector by its index.
    fn row(&self, row: usize) -> &[f32] {
        &self.vectors[row * self.width..(row + 1) * self.width]
    }
}

/// 1 / (1 + exp(-x)).
fn sigmoid(x: f32) -> f32 {
    (1.0 / (1.0 + libm::exp(-f64::from(x)))) as f32
}

/// The sum of the lanes.
#[inline(always)]
fn sum(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The inner product of two real vectors of the same length, a multiple of [`LANES`].
#[inline(always)]
fn inner(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let pairs = a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0);
    for (a, b) in pairs {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    sum(lanes)
}

/// Adds the products of the numbers of two complex vectors, of the first or, if `conjugate`, of its
/// conjugate.
#[inline(always)]
fn add_product(first: &[f32], conjugate: bool, second: &[f32], to: &mut [f32]) {
    let dim = to.len() / 2;
    let [(a, b), (c, d)] = [first, second].map(|vector| vector.split_at(dim));
    let (b, d) = (&b[..dim], &d[..dim]);
    let (re, im) = to.split_at_mut(dim);
    let sign = if conjugate { -1.0 } else { 1.0 };
    for i in 0..dim {
        let b = sign * b[i];
        re[i] += a[i] * c[i] - b * d[i];
        im[i] += a[i] * d[i] + b * c[i];
    }
}

/// The score of a fact by its vectors: the inner product of the tail with the product of head and relation.
fn score(head: &[f32], relation: &[f32], tail: &[f32]) -> f32 {
    let mut query = vec![0.0; head.len()];
    add_product(relation, false, head, &mut query);
    inner(&query, tail)
}
