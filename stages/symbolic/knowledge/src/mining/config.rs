//! The settings of `reason/rules`.

use super::bodies::{LONGEST, Work};
use super::graph::Graph;
use crate::knowledge_base::KnowledgeBase;
use crate::print;
use crate::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{ConfigProblem, StageError};

/// The largest number of counters: some 600 MB.
const MOST_COUNTS: u64 = 20_000_000;

/// The handling of a knowledge base that has rules already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhereGiven {
    /// It is passed on as it is.
    #[default]
    Keep,
    /// Mined rules are added to those that are given; one that is given already is left out.
    Add,
}

stages_core::settings! {
/// The rules that are wanted, and the bounds of the search for them.
pub struct RulesConfig {
    /// The largest number of conditions, up to 3. 0 mines nothing: the knowledge base is passed on as it is.
    pub length: usize = 2,
    /// True where conditions may run against the direction of a relation: `p(Z, X)` in place of `p(X, Z)`.
    pub inverses: bool = false,
    /// The least support: pairs of constants that body and head hold for, each variable another constant.
    pub min_support: u64 = 20,
    /// The least confidence: the support over the pairs that the body holds for, from 0 to 1.
    pub min_confidence: f64 = 0.0,
    /// The rules of a relation that are kept, the best by confidence. 0 for all.
    pub rules_per_relation: usize = 4,
    /// The names of the relations that rules may conclude; all of the graph where none is named.
    pub relations: Vec<String> = Vec::new(),
    /// The handling of a knowledge base that has rules already.
    pub where_given: WhereGiven = WhereGiven::Keep,
    /// The most edges that may be followed from one constant to another while rules are counted; more is an
    /// error. 0 for no bound.
    pub most_edges: u64 = 1_000_000_000,
}
}

impl RulesConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        if self.length > LONGEST {
            let message = format!("{} conditions are more than {LONGEST}", self.length);
            return Err(ConfigProblem::new("length", message));
        }
        if self.min_support == 0 {
            return Err(ConfigProblem::new("min_support", "0 is not a support")
                .hint("1 takes every rule that holds for a pair of the graph"));
        }
        if !(0.0..=1.0).contains(&self.min_confidence) {
            let message = format!("{} is not from 0 to 1", self.min_confidence);
            return Err(ConfigProblem::new("min_confidence", message));
        }
        Ok(())
    }

    /// The numbers of the relations that are named, in order; `None` for all.
    pub(super) fn heads(&self, knowledge: &KnowledgeBase) -> Result<Option<Vec<u32>>, StageError> {
        let predicates = &knowledge.symbols.predicates;
        let find = |name: &String| {
            let found = predicates
                .find(name, 2)
                .filter(|&number| knowledge.relation(number).rows > 0);
            found.ok_or_else(|| {
                let with_facts = (0..knowledge.predicates() as u32).filter(|&number| {
                    let relation = knowledge.relation(number);
                    relation.arity() == 2 && relation.rows > 0
                });
                let mut known: Vec<&str> = with_facts.map(|number| predicates.name(number)).collect();
                known.sort_unstable();
                let more = if known.len() > 12 { ", …" } else { "" };
                known.truncate(12);
                StageError::new(format!(
                    "`relations` names `{name}`, of which the graph has no facts of two constants"
                ))
                .hint(format!("those that it has: {}{more}", known.join(", ")))
            })
        };
        let heads = self.relations.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(heads).filter(|heads| !heads.is_empty()))
    }

    /// The error for work beyond the bounds.
    pub(super) fn exceeded(&self, work: Work, knowledge: &KnowledgeBase) -> Option<StageError> {
        if self.most_edges > 0 && work.edges > self.most_edges {
            let message = format!(
                "rules of {} conditions follow more than {} edges, after {} of {} constants{}",
                self.length,
                self.most_edges,
                work.constants,
                knowledge.constants(),
                busiest(knowledge)
            );
            let hint = "lower `length`, leave `inverses` out, take constants that are in most facts out of \
                the graph, or raise `most_edges`";
            return Some(StageError::new(message).hint(hint));
        }
        (work.counts > MOST_COUNTS).then(|| {
            let message = format!(
                "there are more than {MOST_COUNTS} pairs of a body of {} conditions and a relation, after \
                {} of {} constants",
                self.length,
                work.constants,
                knowledge.constants()
            );
            StageError::new(message).hint(
                "lower `length`, leave `inverses` out, or name the `relations` \
                that rules are to conclude",
            )
        })
    }
}

/// The constant with the most facts, for messages.
fn busiest(knowledge: &KnowledgeBase) -> String {
    let graph = Graph::new(knowledge, true);
    let degree = |constant: &u32| (graph.from(*constant).len(), std::cmp::Reverse(*constant));
    let Some(busiest) = (0..graph.constants()).max_by_key(degree) else {
        return String::new();
    };
    let name = &print::terms(&knowledge.symbols, &[word::constant(busiest)])[0];
    format!(
        " (`{name}` alone has {} of the {})",
        graph.from(busiest).len(),
        graph.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn what_is_counted_is_bounded_without_a_setting() {
        let knowledge = KnowledgeBase::from_program(&text::prolog("p(a,b).", false).unwrap()).unwrap();
        let config = RulesConfig {
            most_edges: 0,
            ..RulesConfig::default()
        };
        let work = |counts| Work {
            constants: 1,
            edges: u64::MAX,
            counts,
        };
        assert!(config.exceeded(work(MOST_COUNTS), &knowledge).is_none());
        let error = config.exceeded(work(MOST_COUNTS + 1), &knowledge).unwrap();
        assert_eq!(
            error.to_string(),
            "there are more than 20000000 pairs of a body of 2 conditions and a relation, after 1 of 2 \
            constants"
        );
        assert!(error.hint.unwrap().contains("`relations`"));
    }
}
