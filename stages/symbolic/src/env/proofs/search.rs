//! Breadth-first search for the shortest proof, and proofs as trees.

use super::counts::ProofCounts;
use super::expand::Engine;
use super::state::{Goals, Successors, hash};
use super::task::{ProofTask, Query};
use crate::env::search::{Found, breadth_first};
use stages_knowledge::{Clause, Resolver, Word, print, word};

/// Searches for the proof of a query with the fewest resolution steps under the task's settings, without a
/// limit of steps: the number of the goal among those of its state, and the clause. At most `budget` states
/// are expanded. Of equals it is the first one by the order of clauses.
pub fn shortest(task: &ProofTask, query: &Query, budget: u64) -> Found<(u32, Clause)> {
    let hidden = if task.hides(query) { query.words.as_slice() } else { &[] };
    let mut engine = Engine::new(task);
    let mut counts = ProofCounts::default();
    let mut successors = Successors::default();
    let key = |words: &[Word], depths: &[u32]| hash(words, depths, task.settings.depth > 0);
    let start = task.first_state(&query.words);
    let start_key = key(&start.words, &start.depths);
    breadth_first((start, start_key), budget, |state: &Goals, visit| {
        engine.expand(task, state, hidden, &[], &mut successors, &mut counts);
        for successor in 0..successors.len() {
            let (words, depths) = successors.get(successor);
            let step = (successors.goal as u32, successors.clause(successor));
            visit(step, depths.is_empty(), key(words, depths), &|| {
                let mut state = Goals::default();
                state.set(words, depths);
                state
            });
        }
    })
}

/// An atom of a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofNode {
    /// The atom under the bindings of the whole proof.
    pub atom: Vec<Word>,
    /// The clause that proves it; `None` where it is left open.
    pub clause: Option<Clause>,
    /// The proofs of the clause's conditions, by their numbers.
    pub children: Vec<usize>,
}

/// A proof, or what was made of one before it was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofTree {
    /// The atoms; those of the query come first.
    pub nodes: Vec<ProofNode>,
    /// The number of goals of the query.
    pub roots: usize,
}

impl ProofTree {
    /// The tree that resolution steps make of a query.
    pub fn new(task: &ProofTask, query: &Query, trace: &[(u32, Clause)]) -> Self {
        let knowledge = &task.knowledge;
        let hidden = if task.hides(query) { query.words.as_slice() } else { &[] };
        let mut resolver = Resolver::new(usize::MAX);
        let roots = word::parts(&query.words).count();
        let mut nodes: Vec<ProofNode> = vec![ProofNode::default(); roots];
        // The goals, then every atom of the tree: bindings reach these, too.
        let mut goals: Vec<usize> = (0..roots).collect();
        let mut words = [query.words.as_slice(), &query.words].concat();
        for &(goal, clause) in trace {
            let goal = goal as usize;
            let Some(selected) = word::parts(&words).nth(goal) else {
                break;
            };
            let mut next = Vec::new();
            let variables = word::variables(&words);
            let resolved = resolver.resolve(knowledge, &words, variables, selected.start, clause, &mut next);
            if resolved != Ok(stages_knowledge::Outcome::Resolved) {
                break;
            }
            let conditions = match clause {
                Clause::Fact(_) => 0,
                Clause::Rule(rule) => task.conditions[rule as usize] as usize,
            };
            let first = nodes.len();
            let node = goals.remove(goal);
            nodes[node].clause = Some(clause);
            nodes[node].children = (first..first + conditions).collect();
            nodes.resize(first + conditions, ProofNode::default());
            goals.splice(0..0, first..first + conditions);
            let body = word::parts(&next).take(conditions).last().map_or(0, |range| range.end);
            next.extend_from_within(..body);
            words = next;
            if task.settings.drop_facts {
                let mut kept = Vec::new();
                let mut left = Vec::new();
                let mut parts = word::parts(&words);
                for &node in &goals {
                    let Some(range) = parts.next() else { break };
                    let atom = &words[range];
                    let is_fact = atom[1..].iter().all(|&word| word::is_constant(word)) && atom != hidden;
                    let row = match is_fact && knowledge.knows(atom[0]) {
                        true => knowledge.relation(atom[0]).find(&atom[1..]).next(),
                        false => None,
                    };
                    match row {
                        Some(row) => nodes[node].clause = Some(Clause::Fact(row)),
                        None => {
                            kept.extend_from_slice(atom);
                            left.push(node);
                        }
                    }
                }
                kept.extend(parts.flat_map(|range| words[range].iter().copied()));
                (words, goals) = (kept, left);
            }
        }
        for (range, node) in word::parts(&words).skip(goals.len()).zip(&mut nodes) {
            node.atom = words[range].to_vec();
        }
        Self { nodes, roots }
    }

    /// The tree as text: an atom on a line, its conditions below it, further to the right, and the clause
    /// behind it.
    pub fn text(&self, task: &ProofTask) -> String {
        let knowledge = &task.knowledge;
        let mut out = String::new();
        let mut left: Vec<(usize, usize)> = (0..self.roots).rev().map(|root| (root, 0)).collect();
        while let Some((at, depth)) = left.pop() {
            let node = &self.nodes[at];
            out.extend(std::iter::repeat_n("  ", depth));
            print::term(&knowledge.symbols, &node.atom, &mut out);
            out.push_str("  % ");
            match node.clause {
                None => out.push_str("open"),
                Some(Clause::Fact(_)) => out.push_str("fact"),
                Some(Clause::Rule(rule)) => out.push_str(&knowledge.place(rule)),
            }
            out.push('\n');
            left.extend(node.children.iter().rev().map(|&child| (child, depth + 1)));
        }
        out
    }
}
