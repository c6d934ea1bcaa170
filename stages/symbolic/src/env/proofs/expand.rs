//! The successors of a state: one resolution step by each clause that matches the selected goal.

use super::config::GoalSelection;
use super::counts::ProofCounts;
use super::state::{Goals, Successors, hash};
use super::task::ProofTask;
use stages_knowledge::{Clause, Outcome, Resolver, Word, word};

/// Expands states. Each thread needs its own; buffers are kept from state to state.
#[derive(Debug)]
pub struct Engine {
    resolver: Resolver,
}

impl Engine {
    /// An engine for a task.
    pub fn new(task: &ProofTask) -> Self {
        Self {
            resolver: Resolver::new(task.settings.max_words),
        }
    }

    /// Writes the successors of a state, in the order of the clauses. `hidden` is the ground atom that facts
    /// must not equal, or empty; `visited` holds the hashes of the states that are pruned.
    pub fn expand(
        &mut self,
        task: &ProofTask,
        state: &Goals,
        hidden: &[Word],
        visited: &[u64],
        out: &mut Successors,
        counts: &mut ProofCounts,
    ) {
        let (knowledge, settings) = (&task.knowledge, &task.settings);
        out.clear();
        counts.expanded += 1;
        let Some((goal, start)) = select(state, settings.goal) else {
            return;
        };
        out.goal = goal;
        let depth = state.depths[goal];
        if settings.depth > 0 && depth > settings.depth {
            counts.depth_cuts += 1;
            return;
        }
        let end = word::end(&state.words, start);
        let atom = &state.words[start..end];
        out.predicate = atom[0];
        let is_hidden = hidden.first() == Some(&atom[0]);
        let relation = knowledge.knows(atom[0]).then(|| knowledge.relation(atom[0]));
        let variables = word::variables(&state.words);
        let candidates = knowledge.candidates(atom);
        let bound = candidates.bound();
        if bound > settings.max_clauses {
            counts.clauses_cut += (bound - settings.max_clauses) as u64;
        }
        // The words of the successors so far, those among them that are left out.
        let mut made = 0;
        for (tried, clause) in candidates.into_iter().take(settings.max_clauses).enumerate() {
            if made > settings.max_successor_words {
                counts.successor_words_cut += (bound.min(settings.max_clauses) - tried) as u64;
                break;
            }
            let conditions = match clause {
                Clause::Fact(row) => {
                    if is_hidden && relation.is_some_and(|relation| relation.is_row(row, &hidden[1..])) {
                        continue;
                    }
                    0
                }
                Clause::Rule(rule) => {
                    let conditions = task.conditions[rule as usize] as usize;
                    if is_hidden && conditions == 0 && knowledge.rule(rule).head == hidden {
                        continue;
                    }
                    conditions
                }
            };
            let (words, depths) = (out.words.len(), out.depths.len());
            match self
                .resolver
                .resolve(knowledge, &state.words, variables, start, clause, &mut out.words)
            {
                Ok(Outcome::Resolved) => {}
                Ok(Outcome::Clash) => continue,
                Ok(Outcome::OccursCheck) => {
                    counts.occurs_checks += 1;
                    continue;
                }
                Err(_) => {
                    counts.words_cut += 1;
                    made += settings.max_words;
                    continue;
                }
            }
            made += out.words.len() - words;
            out.depths.resize(depths + conditions, depth + 1);
            out.depths.extend_from_slice(&state.depths[..goal]);
            out.depths.extend_from_slice(&state.depths[goal + 1..]);
            if settings.drop_facts {
                counts.dropped += drop_facts(task, hidden, words, depths, out);
            }
            let goals = out.depths.len() - depths;
            if settings.max_atoms > 0 && goals > settings.max_atoms {
                counts.atoms_cut += 1;
                out.words.truncate(words);
                out.depths.truncate(depths);
                continue;
            }
            let mut state_hash = 0;
            if settings.prune_visited {
                state_hash = hash(&out.words[words..], &out.depths[depths..], settings.depth > 0);
                if visited.contains(&state_hash) {
                    counts.visited += 1;
                    out.words.truncate(words);
                    out.depths.truncate(depths);
                    continue;
                }
            }
            if goals == 0 && settings.take_proof {
                out.items.clear();
                out.push(words, depths, clause, state_hash);
                return;
            }
            out.push(words, depths, clause, state_hash);
        }
    }
}

/// The goal that is resolved: its number and the start of its words.
#[inline]
fn select(state: &Goals, by: GoalSelection) -> Option<(usize, usize)> {
    if state.depths.is_empty() {
        return None;
    }
    if by == GoalSelection::Leftmost {
        return Some((0, 0));
    }
    let (mut at, mut best, mut fewest) = (0, (0, 0), usize::MAX);
    for goal in 0..state.depths.len() {
        let end = word::end(&state.words, at);
        let count = distinct_variables(&state.words[at..end]);
        if count < fewest {
            (best, fewest) = ((goal, at), count);
            if count == 0 {
                break;
            }
        }
        at = end;
    }
    Some(best)
}

#[inline]
fn distinct_variables(atom: &[Word]) -> usize {
    let is_first = |&(at, word): &(usize, &Word)| word::is_variable(*word) && !atom[..at].contains(word);
    atom.iter().enumerate().filter(is_first).count()
}

/// Drops the goals behind `words` and `depths` that are facts other than the hidden one, and returns their
/// number.
#[inline]
fn drop_facts(task: &ProofTask, hidden: &[Word], words: usize, depths: usize, out: &mut Successors) -> u64 {
    let (mut from, mut to) = (words, words);
    let (mut goal, mut kept) = (depths, depths);
    while goal < out.depths.len() {
        let end = word::end(&out.words, from);
        let atom = &out.words[from..end];
        let is_fact = atom[1..].iter().all(|&word| word::is_constant(word))
            && task.knowledge.is_fact(atom)
            && atom != hidden;
        if !is_fact {
            if to < from {
                out.words.copy_within(from..end, to);
                out.depths[kept] = out.depths[goal];
            }
            to += end - from;
            kept += 1;
        }
        from = end;
        goal += 1;
    }
    if to < from {
        out.words.copy_within(from.., to);
        out.words.truncate(out.words.len() - (from - to));
        out.depths.truncate(kept);
    }
    (goal - kept) as u64
}
