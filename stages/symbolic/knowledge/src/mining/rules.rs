//! Rules made from counted bodies.

use super::bodies::{Bodies, Body, Instances, Work, count};
use super::config::RulesConfig;
use super::graph::Graph;
use crate::build::BuildError;
use crate::knowledge_base::KnowledgeBase;
use crate::print;
use crate::program::Rule;
use crate::word::{self, Word};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A rule whose conditions lead from the first variable of its head to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedRule {
    /// The number of the predicate that the rule concludes.
    pub head: u32,
    /// The relations of the rule's conditions; see [`Graph`].
    pub body: Vec<u32>,
    /// The number of pairs of constants for which body and head hold.
    pub support: u64,
    /// The number of pairs of constants for which the body holds, each variable standing for another
    /// constant.
    pub pairs: u64,
}

impl MinedRule {
    /// The fraction of the body's pairs that are facts of the head.
    pub fn confidence(&self) -> f64 {
        self.support as f64 / self.pairs as f64
    }

    /// The words of head and body, given the number of predicates. Variables are numbered in order of
    /// appearance, as in rules that are read from text.
    pub fn words(&self, predicates: u32) -> [Vec<Word>; 2] {
        // X is variable 0, Y variable 1, those between follow.
        let at = |step: usize| match step {
            0 => word::variable(0),
            step if step == self.body.len() => word::variable(1),
            step => word::variable(step as u32 + 1),
        };
        let condition = |(step, &relation): (usize, &u32)| match relation < predicates {
            true => [word::predicate(relation, 2), at(step), at(step + 1)],
            false => [word::predicate(relation - predicates, 2), at(step + 1), at(step)],
        };
        let head = vec![word::predicate(self.head, 2), word::variable(0), word::variable(1)];
        [head, self.body.iter().enumerate().flat_map(condition).collect()]
    }

    /// The number of variables.
    pub fn variables(&self) -> u32 {
        self.body.len() as u32 + 1
    }

    /// The rule as Prolog.
    pub fn text(&self, knowledge: &KnowledgeBase) -> String {
        let [head, body] = self.words(knowledge.predicates() as u32);
        let [head, body] = [head, body].map(|words| print::terms(&knowledge.symbols, &words).join(", "));
        format!("{head} :- {body}")
    }
}

/// The best rules of a knowledge base's facts, for all relations or for the relations `heads` (numbers of
/// predicates). Rules are ordered by the relation's name; those of a relation by descending confidence, then
/// by descending support, then by ascending length, then by name. The head itself is no body, and rules whose
/// head and body are among `given` are left out. Queries and rules of the knowledge base play no part.
/// `check` is called again and again while bodies are counted; see [`count`].
///
/// # Errors
/// Returns the error of `check`.
pub fn mine<E>(
    knowledge: &KnowledgeBase,
    options: &RulesConfig,
    heads: Option<&[u32]>,
    given: &BTreeSet<[Vec<Word>; 2]>,
    check: impl FnMut(Work) -> Result<(), E>,
) -> Result<Vec<MinedRule>, E> {
    let graph = Graph::new(knowledge, options.inverses);
    let predicates = graph.predicates();
    let mut is_head = vec![heads.is_none(); predicates as usize];
    for &head in heads.unwrap_or_default() {
        is_head[head as usize] = true;
    }
    let is_head = |relation: u32| is_head.get(relation as usize).is_some_and(|&is_head| is_head);
    let bodies = count(&graph, options.length, Instances::Distinct, is_head, check)?;
    Ok(best(knowledge, predicates, options, given, &bodies))
}

/// A knowledge base with rules mined from it after its own rules. The rules keep their confidence.
///
/// # Errors
/// When they are too many for 32-bit offsets.
pub fn with_mined(knowledge: KnowledgeBase, rules: &[MinedRule]) -> Result<KnowledgeBase, BuildError> {
    let predicates = knowledge.predicates() as u32;
    let words: Vec<[Vec<Word>; 2]> = rules.iter().map(|rule| rule.words(predicates)).collect();
    let clauses = rules
        .iter()
        .zip(&words)
        .zip(1..)
        .map(|((rule, [head, body]), line)| Rule {
            clause: 0,
            variables: rule.variables(),
            confidence: rule.confidence() as f32,
            source: 0,
            line,
            head,
            body,
        });
    knowledge.with_rules("mined rules", clauses)
}

/// A body that may conclude a relation.
struct Candidate<'a> {
    body: Body<'a>,
    support: u64,
    confidence: f64,
}

fn best(
    knowledge: &KnowledgeBase,
    predicates: u32,
    options: &RulesConfig,
    given: &BTreeSet<[Vec<Word>; 2]>,
    bodies: &Bodies,
) -> Vec<MinedRule> {
    let mut by_head: BTreeMap<u32, Vec<Candidate<'_>>> = BTreeMap::new();
    for number in 0..bodies.len() as u32 {
        let body = bodies.get(number);
        for (head, support) in body.hits().filter(|&(_, support)| support >= options.min_support) {
            let confidence = support as f64 / body.pairs() as f64;
            if confidence >= options.min_confidence && body.relations() != [head] {
                let candidate = Candidate {
                    body,
                    support,
                    confidence,
                };
                by_head.entry(head).or_default().push(candidate);
            }
        }
    }
    let name = |relation: u32| {
        let predicate = relation % predicates;
        (knowledge.symbols.predicates.name(predicate), relation != predicate)
    };
    let by_name = |a: &Body<'_>, b: &Body<'_>| -> Ordering {
        let [a, b] = [a, b].map(Body::relations);
        let names = |body: &[u32]| body.iter().map(|&relation| name(relation)).collect::<Vec<_>>();
        a.len().cmp(&b.len()).then_with(|| names(&a).cmp(&names(&b)))
    };
    let mut heads: Vec<(u32, Vec<Candidate<'_>>)> = by_head.into_iter().collect();
    heads.sort_by_key(|&(head, _)| name(head));
    let mut rules = Vec::new();
    for (head, mut candidates) in heads {
        candidates.sort_by(|a, b| {
            let better = b.confidence.total_cmp(&a.confidence).then(b.support.cmp(&a.support));
            better.then_with(|| by_name(&a.body, &b.body))
        });
        let by_head = candidates.into_iter().map(|candidate| MinedRule {
            head,
            body: candidate.body.relations(),
            support: candidate.support,
            pairs: candidate.body.pairs(),
        });
        let new = by_head.filter(|rule| given.is_empty() || !given.contains(&rule.words(predicates)));
        let most = match options.rules_per_relation {
            0 => usize::MAX,
            most => most,
        };
        rules.extend(new.take(most));
    }
    rules
}
