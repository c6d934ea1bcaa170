//! The configuration of `evaluate/reasoning`.

use super::play::Choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_knowledge::Split;

stages_core::settings! {
/// Configuration of `evaluate/reasoning`.
pub struct ReasoningConfig {
    /// The queries or problems.
    pub split: Split = Split::Test,
    /// The most queries or problems, spread evenly over the split; 0 for all. Where both sides of facts are
    /// asked, facts are counted.
    pub queries: usize = 0,
    /// Seed of corrupted queries, of sampled actions, of the exchange of relations and of the bootstrap.
    pub seed: u64 = 0,
    /// `proofs`, `rules`: if true, the policy takes its most likely action, otherwise it samples one.
    pub deterministic: bool = true,
    /// `paths`: paths that are kept at each step.
    pub beam: usize = 100,
    /// `paths`: the score of an entity that several paths reach.
    pub pooling: PathPooling = PathPooling::default(),
    /// `paths`: the entities whose scores `auc_pr` is about, by name; all if empty. For Countries they are
    /// the five regions.
    pub candidates: Vec<String> = Vec::new(),
    /// `proofs`, `rules`: states that breadth-first search expands for a query or problem; 0 for as many as
    /// an episode has steps. Of `paths` it has the budget of the beam.
    pub budget: u64 = 0,
    /// `proofs`, `rules`: states that are expanded in search of the shortest proof or plan, with whose length
    /// the policy's are compared.
    pub search_budget: u64 = 10_000,
    /// The baselines of the policy; each where the task has it.
    pub baselines: Vec<ReasoningBaseline> = ReasoningBaseline::ALL.to_vec(),
    /// If true, the policy is evaluated once more with relations exchanged: whether it uses them.
    pub ablations: bool = true,
    /// The proofs, paths or plans that are written out.
    pub proofs: usize = 5,
    /// Resamples of the bootstrap.
    pub bootstrap_draws: usize = 1000,
}
}

/// The score of an entity that several paths reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathPooling {
    /// The probability of the most likely path.
    #[default]
    Max,
    /// The sum of the probabilities of the paths.
    Sum,
}

/// A baseline of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBaseline {
    /// Random actions.
    Random,
    /// Breadth-first search.
    Search,
    /// `paths`: the entities that are the relation's tail most often.
    TailFrequency,
    /// `paths`: rules of one and two steps (three where there are at most four relations), mined by counting.
    Rules,
    /// `paths`, of an environment with `soft_reward`: its embedding, without any path.
    Embedding,
}

impl ReasoningBaseline {
    /// All baselines.
    pub(super) const ALL: [Self; 5] = [
        Self::Random,
        Self::Search,
        Self::TailFrequency,
        Self::Rules,
        Self::Embedding,
    ];

    /// The baseline's name in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Search => "search",
            Self::TailFrequency => "tail_frequency",
            Self::Rules => "rules",
            Self::Embedding => "embedding",
        }
    }
}

impl ReasoningConfig {
    /// Checks all values.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        for (field, value, default) in [
            ("beam", self.beam as u64, 100),
            ("search_budget", self.search_budget, 10_000),
            ("bootstrap_draws", self.bootstrap_draws as u64, 1000),
        ] {
            if value == 0 {
                return Err(
                    ConfigProblem::new(field, "must be at least 1").hint(format!("the default is {default}"))
                );
            }
        }
        Ok(())
    }

    /// The choice of actions.
    pub(super) fn choice(&self) -> Choice {
        if self.deterministic {
            Choice::Greedy
        } else {
            Choice::Sampled
        }
    }

    /// The states that breadth-first search expands, where an episode has so many steps.
    pub(super) fn budget(&self, steps: u32) -> u64 {
        match self.budget {
            0 => u64::from(steps),
            budget => budget,
        }
    }

    /// Returns whether a baseline is wanted.
    pub(super) fn has(&self, baseline: ReasoningBaseline) -> bool {
        self.baselines.contains(&baseline)
    }
}
