//! Rules in the form in which they are evaluated, checked to be safe and stratified.

use crate::knowledge_base::KnowledgeBase;
use crate::print;
use crate::word::{self, Word};
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use stages_core::StageError;
use std::collections::BTreeSet;

/// The largest number of conditions of a rule.
const MAX_CONDITIONS: usize = 1000;

/// An atom whose arguments are constants or variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Atom {
    pub predicate: u32,
    pub arguments: Vec<Word>,
}

/// A rule that is safe: each variable occurs in a positive condition.
#[derive(Clone, Debug)]
pub(super) struct SafeRule {
    /// The rule's number in the knowledge base.
    pub number: u32,
    pub head: Atom,
    pub positive: Vec<Atom>,
    pub negative: Vec<Atom>,
    pub variables: usize,
}

/// The rules of a knowledge base, by stratum.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(super) all: Vec<SafeRule>,
    /// The rules of each stratum, as indices into `all`. A negated condition belongs to a lower stratum.
    pub(super) strata: Vec<Vec<usize>>,
}

impl Rules {
    /// Checks the rules of a knowledge base.
    ///
    /// # Errors
    /// When one has a compound term or a variable in no positive condition, or a predicate depends on its own
    /// negation.
    pub fn of(knowledge: &KnowledgeBase) -> Result<Self, StageError> {
        let all: Vec<SafeRule> = (0..knowledge.rules() as u32)
            .map(|rule| safe(knowledge, rule))
            .collect::<Result<_, _>>()?;
        let stratum_of = stratify(knowledge, &all)?;
        let count = stratum_of.iter().max().map_or(1, |most| most + 1);
        let mut strata = vec![Vec::new(); count];
        for (place, rule) in all.iter().enumerate() {
            strata[stratum_of[rule.head.predicate as usize]].push(place);
        }
        Ok(Self { all, strata })
    }
}

/// The refusal of a rule, with its place.
fn refused(knowledge: &KnowledgeBase, rule: u32, message: &str, hint: &str) -> StageError {
    StageError::new(format!("{}: {message}", knowledge.place(rule))).hint(hint)
}

fn atom(words: &[Word]) -> Option<Atom> {
    let arguments = words[1..].to_vec();
    arguments.iter().all(|&word| !word::is_functor(word)).then(|| Atom {
        predicate: word::number(words[0]),
        arguments,
    })
}

fn safe(knowledge: &KnowledgeBase, number: u32) -> Result<SafeRule, StageError> {
    let rule = knowledge.rule(number);
    let compound = || {
        refused(
            knowledge,
            number,
            "Datalog has no compound terms and no lists",
            "keep clauses with them in another knowledge base",
        )
    };
    let head = atom(rule.head).ok_or_else(compound)?;
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    for range in word::parts(rule.body) {
        let condition = atom(&rule.body[range.clone()]).ok_or_else(compound)?;
        match word::is_negated(rule.body[range.start]) {
            true => negative.push(condition),
            false => positive.push(condition),
        }
    }
    if positive.len() + negative.len() > MAX_CONDITIONS {
        let message = format!("a rule has {} conditions", positive.len() + negative.len());
        return Err(refused(
            knowledge,
            number,
            &message,
            "at most 1,000 are supported: split it",
        ));
    }
    let bound: BTreeSet<Word> = positive
        .iter()
        .flat_map(|atom| atom.arguments.iter().copied())
        .filter(|&word| word::is_variable(word))
        .collect();
    let unbound = |atom: &Atom| {
        atom.arguments
            .iter()
            .copied()
            .find(|&word| word::is_variable(word) && !bound.contains(&word))
    };
    let unsafe_rule = |what: &str, variable: Word| {
        let mut name = String::new();
        print::variable(word::number(variable), &mut name);
        let ordinal = word::number(variable) + 1;
        refused(
            knowledge,
            number,
            &format!(
                "variable {ordinal} of the rule ({name} in order of appearance) is in {what} and in no \
                positive condition"
            ),
            "a rule is safe if each of its variables is in a condition that is not negated",
        )
    };
    if let Some(variable) = unbound(&head) {
        return Err(unsafe_rule("the head", variable));
    }
    if let Some(variable) = negative.iter().find_map(unbound) {
        return Err(unsafe_rule("a negated condition", variable));
    }
    Ok(SafeRule {
        number,
        head,
        positive,
        negative,
        variables: rule.variables as usize,
    })
}

/// The stratum of each predicate: the largest number of negations on any path down from it, in the graph of
/// strongly connected components.
fn stratify(knowledge: &KnowledgeBase, rules: &[SafeRule]) -> Result<Vec<usize>, StageError> {
    let predicates = knowledge.predicates();
    let mut edges: Vec<Vec<(u32, bool, u32)>> = vec![Vec::new(); predicates];
    let mut has_rules = vec![false; predicates];
    for rule in rules {
        let head = rule.head.predicate as usize;
        has_rules[head] = true;
        edges[head].extend(rule.positive.iter().map(|atom| (atom.predicate, false, rule.number)));
        edges[head].extend(rule.negative.iter().map(|atom| (atom.predicate, true, rule.number)));
    }
    let pairs = (0..)
        .zip(&edges)
        .flat_map(|(from, to)| to.iter().map(move |edge| (from, edge.0)));
    let mut graph: DiGraph<(), ()> = DiGraph::from_edges(pairs);
    while graph.node_count() < predicates {
        graph.add_node(());
    }
    // Components come out in the order of their dependencies: those below are done.
    let mut components = vec![0; predicates];
    let mut members: Vec<Vec<usize>> = Vec::new();
    for component in tarjan_scc(&graph) {
        let mut component: Vec<usize> = component.into_iter().map(|node| node.index()).collect();
        component.sort_unstable();
        component
            .iter()
            .for_each(|&predicate| components[predicate] = members.len());
        members.push(component);
    }
    let mut stratum = vec![0; predicates];
    for component in 0..members.len() {
        let mut level = usize::from(members[component].iter().any(|&predicate| has_rules[predicate]));
        for &predicate in &members[component] {
            for &(to, is_negated, rule) in &edges[predicate] {
                if components[to as usize] != component {
                    level = level.max(stratum[to as usize] + usize::from(is_negated));
                } else if is_negated {
                    let name = |predicate: u32| {
                        format!(
                            "`{}/{}`",
                            knowledge.symbols.predicates.name(predicate),
                            knowledge.symbols.predicates.tag(predicate)
                        )
                    };
                    let message = format!(
                        "{} depends on the negation of {}, which depends on it",
                        name(predicate as u32),
                        name(to)
                    );
                    return Err(refused(
                        knowledge,
                        rule,
                        &message,
                        "a program is stratified if no predicate depends on its own negation",
                    ));
                }
            }
        }
        for &predicate in &members[component] {
            stratum[predicate] = level;
        }
    }
    Ok(stratum)
}
