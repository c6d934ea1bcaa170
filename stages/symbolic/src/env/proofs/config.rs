//! The configuration of proof search.

use crate::env::shaping::ShapingConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;

stages_core::settings! {
/// Configuration of proof search: a preset, and the settings that differ from it.
pub struct ProofConfig {
    /// The values of the settings that are not given.
    pub preset: ProofPreset = ProofPreset::default(),
    /// The goal that is resolved; `deepprooflog`: fewest_variables, `sld`: leftmost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalSelection> = None,
    /// The form in which actions are observed.
    pub actions: ActionForm = ActionForm::default(),
    /// The bound on the depth of a proof: the query's goals are at depth 1, a clause's conditions one below
    /// its head; a goal below the bound fails. 0 for none.
    pub depth: u32 = 0,
    /// Steps in an episode; `deepprooflog`: 20, `sld`: 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32> = None,
    /// If true, successors that were states of the episode before are left out; `deepprooflog`: true, `sld`:
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune_visited: Option<bool> = None,
    /// If true, a state with one successor is passed without an action, unless the successor is the proof;
    /// `deepprooflog`: true, `sld`: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_single: Option<bool> = None,
    /// If true, a ground goal that is a fact is dropped from each successor; `deepprooflog`: true, `sld`:
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_facts: Option<bool> = None,
    /// If true, a successor that is the proof is the only action; `deepprooflog`: true, `sld`: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take_proof: Option<bool> = None,
    /// If true, facts equal to the query are hidden while it is asked; `deepprooflog`: true, `sld`: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hide_query: Option<bool> = None,
    /// If true, the last action of each state without the proof gives up: the verdict `false`;
    /// `deepprooflog`: true, `sld`: false. It is there in any case where a state has no successor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_up: Option<bool> = None,
    /// The fraction of queries that are corrupted; `deepprooflog`: 0.5, `sld`: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted: Option<f64> = None,
    /// The reward at the end of an episode.
    pub reward: ProofReward = ProofReward::default(),
    /// The largest number of goals in a state: longer successors are left out, and counted; 0 for any.
    /// `deepprooflog`: 10, `sld`: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_atoms: Option<u32> = None,
    /// The largest number of actions of a state, giving up among them: of more, those with the fewest goals
    /// are kept, the others counted; 0 for any. `deepprooflog`: 20, `sld`: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_successors: Option<u32> = None,
    /// The largest number of clauses that are tried at a state; those beyond are counted.
    pub max_clauses: u32 = 1 << 16,
    /// The largest number of words (constants, variables, functors, predicates) that a resolution step may
    /// handle; larger steps are counted.
    pub max_words: u32 = 1 << 14,
    /// The largest number of words that all successors of a state together may have, those among them that
    /// are left out: clauses behind it are not tried, and counted.
    pub max_successor_words: u32 = 1 << 22,
    /// The largest number of tokens of an observed atom, its predicate among them: compound terms are cut
    /// there, and counted. 0 for that of the largest arity, and 16 where there are compound terms.
    pub atom_tokens: u32 = 0,
    /// The queries of training.
    pub queries: TrainingQueries = TrainingQueries::default(),
    /// Shapes the rewards of training by an embedding of the graph's facts; evaluation has those of the task.
    /// None where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shaping: Option<ShapingConfig> = None,
}
}

/// The presets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofPreset {
    /// Those of agents that learn proofs in DeepProofLog's way: an observation padded to 64-bit numbers has
    /// 5,200 bytes.
    #[default]
    Deepprooflog,
    /// Plain SLD resolution, as Prolog does it.
    Sld,
}

/// The goal that is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalSelection {
    /// The first one.
    Leftmost,
    /// The first one of those with the fewest distinct variables.
    FewestVariables,
}

/// The form in which actions are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionForm {
    /// The state that the action leads to.
    #[default]
    Successors,
    /// The clause that it applies: head, then conditions.
    Clauses,
}

/// The reward at the end of an episode; 0 at a time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofReward {
    /// 1 for the right verdict, -1 for the wrong one.
    #[default]
    Verdict,
    /// 1 for the right verdict, 0 for the wrong one.
    Right,
    /// 1 for a proof of a true query, 0 otherwise.
    Proof,
    /// 1 for a proof of a true query, -1 for one of a false query, 0 otherwise.
    SignedProof,
}

/// The queries of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrainingQueries {
    /// Those of the split `train`.
    #[default]
    Train,
    /// The facts of the graph.
    Facts,
}

/// The settings of a search, all of them given; as those of [`ProofConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub goal: GoalSelection,
    pub actions: ActionForm,
    pub depth: u32,
    pub steps: u32,
    pub prune_visited: bool,
    pub skip_single: bool,
    pub drop_facts: bool,
    pub take_proof: bool,
    pub hide_query: bool,
    pub give_up: bool,
    pub corrupted: f64,
    pub reward: ProofReward,
    pub max_atoms: usize,
    pub max_successors: usize,
    pub max_clauses: usize,
    pub max_words: usize,
    pub max_successor_words: usize,
}

impl ProofConfig {
    /// Refuses settings that are out of range.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self) -> Result<(), ConfigProblem> {
        let settings = self.settings();
        if !(0.0..=1.0).contains(&settings.corrupted) {
            return Err(ConfigProblem::new(
                "corrupted",
                format!("{} is not a fraction from 0 to 1", settings.corrupted),
            ));
        }
        let positive = [
            ("steps", settings.steps),
            ("max_clauses", self.max_clauses),
            ("max_words", self.max_words),
            ("max_successor_words", self.max_successor_words),
        ];
        if let Some((field, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(ConfigProblem::new(*field, "it is at least 1"));
        }
        if settings.max_successors == 1 {
            return Err(ConfigProblem::new(
                "max_successors",
                "a state has at least 2 actions, or 0 for any number",
            )
            .hint("giving up is one of them"));
        }
        if self.atom_tokens == 1 || self.atom_tokens > 1 << 12 {
            return Err(ConfigProblem::new(
                "atom_tokens",
                "an atom has 2 to 4096 tokens, or 0 for the largest arity",
            ));
        }
        self.shaping.as_ref().map_or(Ok(()), ShapingConfig::validate)
    }

    pub(crate) fn settings(&self) -> Settings {
        let is_bounded = self.preset == ProofPreset::Deepprooflog;
        Settings {
            goal: self.goal.unwrap_or(match is_bounded {
                true => GoalSelection::FewestVariables,
                false => GoalSelection::Leftmost,
            }),
            actions: self.actions,
            depth: self.depth,
            steps: self.steps.unwrap_or(if is_bounded { 20 } else { 1000 }),
            prune_visited: self.prune_visited.unwrap_or(is_bounded),
            skip_single: self.skip_single.unwrap_or(is_bounded),
            drop_facts: self.drop_facts.unwrap_or(is_bounded),
            take_proof: self.take_proof.unwrap_or(is_bounded),
            hide_query: self.hide_query.unwrap_or(is_bounded),
            give_up: self.give_up.unwrap_or(is_bounded),
            corrupted: self.corrupted.unwrap_or(if is_bounded { 0.5 } else { 0.0 }),
            reward: self.reward,
            max_atoms: self.max_atoms.unwrap_or(if is_bounded { 10 } else { 0 }) as usize,
            max_successors: self.max_successors.unwrap_or(if is_bounded { 20 } else { 0 }) as usize,
            max_clauses: self.max_clauses as usize,
            max_words: self.max_words as usize,
            max_successor_words: self.max_successor_words as usize,
        }
    }
}

impl ProofReward {
    /// The reward of an episode that ends with a proof, or with giving up, of a query that is true or false.
    pub(crate) fn of(self, is_proved: bool, label: bool) -> f32 {
        let is_right = is_proved == label;
        match self {
            Self::Verdict => {
                if is_right {
                    1.0
                } else {
                    -1.0
                }
            }
            Self::Right => f32::from(u8::from(is_right)),
            Self::Proof => f32::from(u8::from(is_proved && label)),
            Self::SignedProof => match (is_proved, label) {
                (false, _) => 0.0,
                (true, true) => 1.0,
                (true, false) => -1.0,
            },
        }
    }
}
