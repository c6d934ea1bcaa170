//! Rules in the form that they are evaluated in: checked to be safe and stratified.

use crate::knowledge_base::KnowledgeBase;
use crate::print;
use crate::word::{self, Word};
use std::collections::BTreeSet;
use std::fmt;

/// The most conditions of a rule.
const MAX_CONDITIONS: usize = 1000;

/// The reason for which rules are not evaluated, and the place of one that causes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The problem, with the place of the rule.
    pub message: String,
    /// A hint at its solution.
    pub hint: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// An atom whose arguments are constants or variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Atom {
    pub predicate: u32,
    pub arguments: Vec<Word>,
}

/// A rule that is safe: each variable occurs in a positive condition.
#[derive(Clone, Debug)]
pub(super) struct SafeRule {
    /// Its number in the knowledge base.
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
    /// The rules of each stratum, as places in `all`. A negated condition is of a lower one.
    pub(super) strata: Vec<Vec<usize>>,
    /// The stratum of each predicate; 0 for one without rules.
    pub(super) stratum_of: Vec<usize>,
}

impl Rules {
    /// Checks the rules of a knowledge base.
    ///
    /// # Errors
    /// When one has a compound term or a variable in no positive condition, or a predicate depends on its own
    /// negation.
    pub fn of(knowledge: &KnowledgeBase) -> Result<Self, Refused> {
        let all: Vec<SafeRule> = (0..knowledge.rules() as u32)
            .map(|rule| safe(knowledge, rule))
            .collect::<Result<_, _>>()?;
        let stratum_of = stratify(knowledge, &all)?;
        let count = stratum_of.iter().max().map_or(1, |most| most + 1);
        let mut strata = vec![Vec::new(); count];
        for (place, rule) in all.iter().enumerate() {
            strata[stratum_of[rule.head.predicate as usize]].push(place);
        }
        Ok(Self {
            all,
            strata,
            stratum_of,
        })
    }
}

fn refused(knowledge: &KnowledgeBase, rule: u32, message: &str, hint: &str) -> Refused {
    Refused {
        message: format!("{}: {message}", knowledge.place(rule)),
        hint: hint.to_owned(),
    }
}

fn atom(words: &[Word]) -> Option<Atom> {
    let arguments = words[1..].to_vec();
    arguments.iter().all(|&word| !word::is_functor(word)).then(|| Atom {
        predicate: word::number(words[0]),
        arguments,
    })
}

fn safe(knowledge: &KnowledgeBase, number: u32) -> Result<SafeRule, Refused> {
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

/// The stratum of each predicate: the largest number of negations on a way down from it, in the graph of its
/// strongly connected components.
fn stratify(knowledge: &KnowledgeBase, rules: &[SafeRule]) -> Result<Vec<usize>, Refused> {
    let predicates = knowledge.predicates();
    let mut edges: Vec<Vec<(u32, bool, u32)>> = vec![Vec::new(); predicates];
    let mut has_rules = vec![false; predicates];
    for rule in rules {
        let head = rule.head.predicate as usize;
        has_rules[head] = true;
        edges[head].extend(rule.positive.iter().map(|atom| (atom.predicate, false, rule.number)));
        edges[head].extend(rule.negative.iter().map(|atom| (atom.predicate, true, rule.number)));
    }
    let components = components(&edges);
    // Components come out in the order of their dependencies: those below are done.
    let count = components.iter().max().map_or(0, |most| most + 1);
    let mut members = vec![Vec::new(); count];
    for (predicate, &component) in components.iter().enumerate() {
        members[component].push(predicate);
    }
    let mut stratum = vec![0; predicates];
    for component in 0..count {
        let mut level = usize::from(members[component].iter().any(|&predicate| has_rules[predicate]));
        for &predicate in &members[component] {
            for &(to, is_negated, rule) in &edges[predicate] {
                if components[to as usize] != component {
                    level = level.max(stratum[to as usize] + usize::from(is_negated));
                } else if is_negated {
                    let name = |predicate: u32| {
                        format!(
                            "`{}/{}`",
                            knowledge.symbols().predicates.name(predicate),
                            knowledge.symbols().predicates.tag(predicate)
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

/// Tarjan's strongly connected components, without recursion; a component has a larger number than those that
/// it leads to.
fn components(edges: &[Vec<(u32, bool, u32)>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let n = edges.len();
    let (mut index, mut low, mut component) = (vec![NEW; n], vec![0; n], vec![NEW; n]);
    let (mut next, mut count) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    for root in 0..n {
        if index[root] != NEW {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some(&mut (node, ref mut at)) = path.last_mut() {
            if *at == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                open.push(node);
            }
            if let Some(&(to, _, _)) = edges[node].get(*at) {
                *at += 1;
                let to = to as usize;
                if index[to] == NEW {
                    path.push((to, 0));
                } else if component[to] == NEW {
                    low[node] = low[node].min(index[to]);
                }
                // A node without this mark would be numbered again when it is the path's last once more.
                continue;
            }
            path.pop();
            if low[node] == index[node] {
                while let Some(member) = open.pop() {
                    component[member] = count;
                    if member == node {
                        break;
                    }
                }
                count += 1;
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    component
}
