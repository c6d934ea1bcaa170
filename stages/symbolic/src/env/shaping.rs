//! Potential-based shaping of rewards by an embedding of the graph (Ng, Harada and Russell, "Policy
//! invariance under reward transformations", 1999).
//!
//! A step from state s to s' earns `weight` (gamma P(s') - P(s)) beside the reward of the task; P is 0 where
//! an episode has ended, the limit of steps among its ends. Whatever P is, the policies that are best with
//! these rewards are those that are best without: of an episode's discounted rewards the shaping's sum is
//! -`weight` P(s0), whatever was done.
//!
//! P(s) is the least probability of the goals that the embedding scores, those of two constants whose
//! predicate has facts of the graph; 0.5 where there is none.

#[cfg(test)]
mod tests;

use super::embedding::{Embedding, EmbeddingConfig};
use super::proofs::Goals;
use stages_core::ConfigProblem;
use stages_knowledge::word;

stages_core::settings! {
    /// Potential-based shaping of the rewards of training, by an embedding of the graph's facts.
    pub struct ShapingConfig {
        /// The factor of the shaping's rewards.
        pub weight: f64 = 0.5,
        /// The discount factor. Best policies stay best if it is that of the training.
        pub gamma: f64 = 0.99,
        /// The embedding.
        pub embedding: EmbeddingConfig = EmbeddingConfig::default(),
    }
}

impl ShapingConfig {
    /// Refuses settings that are out of range.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        let problem =
            |field: &str, message: String| Err(ConfigProblem::new(format!("shaping.{field}"), message));
        if !(0.0..=100.0).contains(&self.weight) {
            return problem("weight", format!("{} is not from 0 to 100", self.weight));
        }
        if !(0.0..=1.0).contains(&self.gamma) {
            return problem("gamma", format!("{} is not from 0 to 1", self.gamma));
        }
        self.embedding.validate("shaping.embedding")
    }
}

/// The shaping of rewards: an embedding, with the settings.
#[derive(Clone, Debug)]
pub struct Shaping {
    embedding: Embedding,
    weight: f32,
    gamma: f32,
}

impl Shaping {
    /// The shaping of rewards by an embedding of the knowledge base that is searched.
    pub fn new(embedding: Embedding, config: &ShapingConfig) -> Self {
        Self {
            embedding,
            weight: config.weight as f32,
            gamma: config.gamma as f32,
        }
    }

    /// The potential of a state with goals, from 0 to 1.
    pub fn potential(&self, state: &Goals) -> f32 {
        let mut least: Option<f32> = None;
        let mut start = 0;
        for _ in &state.depths {
            let end = word::end(&state.words, start);
            if let Some(probability) = self.embedding.probability(&state.words[start..end]) {
                least = Some(least.map_or(probability, |least| least.min(probability)));
            }
            start = end;
        }
        least.unwrap_or(0.5)
    }

    /// The reward of a step from a state of the potential `before` to one of the potential `after`.
    pub(super) fn reward(&self, before: f32, after: f32) -> f32 {
        self.weight * (self.gamma * after - before)
    }
}
