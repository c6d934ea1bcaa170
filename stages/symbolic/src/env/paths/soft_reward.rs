//! Soft rewards of path finding by an embedding of the graph (after Lin, Socher and Xiong, "Multi-hop
//! knowledge graph reasoning with reward shaping", 2018): an entity that is not known to be an answer may be
//! one.
//!
//! An episode that ends at another entity e than the answer earns 1 - (b - s(e)) / `range`, from 0 to 1,
//! where s is the score of (source, relation, entity) and b the best score of the known answers. Scores are
//! logarithms of probabilities up to a constant. Of a policy with an entropy bonus of `ent_coef`, the best
//! one ends at entities with the probabilities of the embedding to the power of 1 / (`range` x `ent_coef`),
//! but for what is cut off at 0 and 1: small probabilities are told apart, as ranks need.

use super::PathQuery;
use crate::env::embedding::{Embedding, EmbeddingConfig};
use stages_core::ConfigProblem;

stages_core::settings! {
/// Rewards of training for entities that are not known to be answers, by an embedding of the graph's facts.
pub struct SoftRewardConfig {
    /// The difference in score (natural logarithm of probability) from the best known answer at which nothing
    /// is earned.
    pub range: f64 = 8.0,
    /// The embedding.
    pub embedding: EmbeddingConfig = EmbeddingConfig::default(),
}
}

impl SoftRewardConfig {
    /// Refuses settings that are out of range.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        // Smaller ones are 0 in single precision.
        if !(1e-6..=1e6).contains(&self.range) {
            let message = format!("{} is not from 0.000001 to 1,000,000", self.range);
            return Err(ConfigProblem::new("soft_reward.range", message));
        }
        self.embedding.validate("soft_reward.embedding")
    }
}

/// The score of an entity as the answer to a query on a graph of `predicates` relations, whose inverses
/// follow them; `None` where the relation has no facts in the graph.
pub fn embedding_score(
    embedding: &Embedding,
    predicates: u32,
    query: &PathQuery,
    entity: u32,
) -> Option<f32> {
    match query.relation < predicates {
        true => embedding.score(query.relation, query.source, entity),
        false => embedding.score(query.relation - predicates, entity, query.source),
    }
}

/// Soft rewards of a task's queries.
#[derive(Clone, Debug)]
pub(super) struct SoftReward {
    embedding: Embedding,
    predicates: u32,
    range: f32,
    /// The best score of the known answers to a source and relation, at the start of their range among all.
    best: Vec<f32>,
}

impl SoftReward {
    /// The soft rewards of queries with their known answers, by an embedding of a graph of `predicates`
    /// relations.
    pub(super) fn new<'a>(
        embedding: Embedding,
        config: &SoftRewardConfig,
        predicates: u32,
        queries: impl Iterator<Item = (PathQuery, &'a [u32])>,
    ) -> Self {
        let mut best = Vec::new();
        for (query, known) in queries {
            let start = query.known[0] as usize;
            best.resize(best.len().max(start + 1), f32::INFINITY);
            // Queries of one source and relation share their answers.
            if best[start] == f32::INFINITY {
                let score = |&answer| embedding_score(&embedding, predicates, &query, answer);
                best[start] = known.iter().filter_map(score).fold(f32::NEG_INFINITY, f32::max);
            }
        }
        Self {
            embedding,
            predicates,
            range: config.range as f32,
            best,
        }
    }

    /// The reward of a query's path that ends at an entity other than the answer, from 0 to 1; 0 where the
    /// relation has no facts in the graph.
    pub(super) fn reward(&self, query: &PathQuery, entity: u32) -> f32 {
        let best = self.best[query.known[0] as usize];
        let score = embedding_score(&self.embedding, self.predicates, query, entity);
        score.map_or(0.0, |score| (1.0 - (best - score) / self.range).clamp(0.0, 1.0))
    }
}
