//! Joins: the instances of a rule whose conditions hold, starting from one given condition.

use super::rules::{Atom, SafeRule};
use super::table::{Fact, Table};
use crate::word::{self, Word};

/// The order in which the conditions of a rule are looked up.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The positive condition that is a given fact; `None` where the rule has no positive condition.
    start: Option<usize>,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// The index of the condition among the positive or the negated ones.
    condition: usize,
    is_negated: bool,
    /// The arguments that are bound when the condition is looked up, as bits (of the first 32 arguments).
    mask: u32,
}

/// A variable without a value.
const UNBOUND: Word = Word::MAX;

impl Plan {
    /// The plan of a rule from a start: the next condition is always the one with the most bound arguments; a
    /// negated condition follows as soon as all its arguments are bound.
    pub(super) fn new(rule: &SafeRule, start: Option<usize>) -> Self {
        let mut bound = vec![false; rule.variables];
        let bind = |atom: &Atom, bound: &mut Vec<bool>| {
            for &word in atom.arguments.iter().filter(|&&word| word::is_variable(word)) {
                bound[word::number(word) as usize] = true;
            }
        };
        let mut positive: Vec<usize> = (0..rule.positive.len()).collect();
        let mut negative: Vec<usize> = (0..rule.negative.len()).collect();
        if let Some(at) = start {
            bind(&rule.positive[at], &mut bound);
            positive.remove(at);
        }
        let is_bound =
            |word: Word, bound: &[bool]| word::is_constant(word) || bound[word::number(word) as usize];
        let mut steps = Vec::new();
        loop {
            negative.retain(|&condition| {
                let is_ready = rule.negative[condition]
                    .arguments
                    .iter()
                    .all(|&word| is_bound(word, &bound));
                if is_ready {
                    steps.push(Step {
                        condition,
                        is_negated: true,
                        mask: 0,
                    });
                }
                !is_ready
            });
            let mask = |condition: usize| {
                let arguments = rule.positive[condition].arguments.iter().take(32).enumerate();
                arguments
                    .filter(|(_, word)| is_bound(**word, &bound))
                    .fold(0_u32, |mask, (argument, _)| mask | 1 << argument)
            };
            let Some(next) = (0..positive.len()).max_by_key(|&at| {
                let condition = positive[at];
                let free = rule.positive[condition].arguments.len() as u32 - mask(condition).count_ones();
                (mask(condition).count_ones(), std::cmp::Reverse((free, at)))
            }) else {
                break;
            };
            let condition = positive.remove(next);
            let mask = mask(condition);
            steps.push(Step {
                condition,
                is_negated: false,
                mask,
            });
            bind(&rule.positive[condition], &mut bound);
        }
        Self { start, steps }
    }

    /// The indices that the plan looks up: predicates and masks.
    pub(super) fn indices<'a>(&'a self, rule: &'a SafeRule) -> impl Iterator<Item = (u32, u32)> + 'a {
        let steps = self.steps.iter().filter(|step| !step.is_negated);
        steps.map(|step| (rule.positive[step.condition].predicate, step.mask))
    }
}

/// The buffers of a join.
#[derive(Debug, Default)]
pub(super) struct Join {
    bindings: Vec<Word>,
    children: Vec<Fact>,
    values: Vec<Word>,
    /// The number of instances examined.
    pub instances: u64,
}

/// An instance of a rule: the values of the head's arguments, and the facts that match its positive
/// conditions.
pub(super) struct Instance<'a> {
    pub head: &'a [Word],
    pub children: &'a [Fact],
}

fn value(word: Word, bindings: &[Word]) -> Word {
    match word::is_variable(word) {
        true => bindings[word::number(word) as usize],
        false => word,
    }
}

/// Binds an atom's variables to a fact's values; the variables that were bound are appended to `trail`.
fn unify(atom: &Atom, values: &[Word], bindings: &mut [Word], trail: &mut Vec<u32>) -> bool {
    for (&word, &given) in atom.arguments.iter().zip(values) {
        let bound = value(word, bindings);
        if bound == UNBOUND {
            bindings[word::number(word) as usize] = given;
            trail.push(word::number(word));
        } else if bound != given {
            return false;
        }
    }
    true
}

impl Join {
    /// Passes on all instances of a rule that start from `fact`, with the given values, and have no condition
    /// deeper than `most`. Conditions before the start are less deep, so that an instance with several facts
    /// of that depth is found once.
    pub(super) fn run(
        &mut self,
        tables: &[Table],
        rule: &SafeRule,
        plan: &Plan,
        values: &[Word],
        fact: Fact,
        most: u32,
        found: &mut dyn FnMut(&Instance<'_>),
    ) {
        self.bindings.clear();
        self.bindings.resize(rule.variables, UNBOUND);
        self.children.clear();
        self.children.resize(rule.positive.len(), fact);
        let mut trail = Vec::new();
        let start = plan.start.map(|at| &rule.positive[at]);
        if start.is_none_or(|atom| unify(atom, values, &mut self.bindings, &mut trail)) {
            self.step(tables, rule, plan, 0, most, &mut trail, found);
        }
    }

    /// Looks up the conditions from a step of the plan on, by recursion over the conditions, of which a rule
    /// has at most 1,000.
    fn step(
        &mut self,
        tables: &[Table],
        rule: &SafeRule,
        plan: &Plan,
        at: usize,
        most: u32,
        trail: &mut Vec<u32>,
        found: &mut dyn FnMut(&Instance<'_>),
    ) {
        let Some(step) = plan.steps.get(at) else {
            self.instances += 1;
            self.values.clear();
            let bindings = &self.bindings;
            self.values
                .extend(rule.head.arguments.iter().map(|&word| value(word, bindings)));
            found(&Instance {
                head: &self.values,
                children: &self.children,
            });
            return;
        };
        if step.is_negated {
            let atom = &rule.negative[step.condition];
            let values: Vec<Word> = atom.arguments.iter().map(|&word| value(word, &self.bindings)).collect();
            if !tables[atom.predicate as usize].holds(&values) {
                self.step(tables, rule, plan, at + 1, most, trail, found);
            }
            return;
        }
        let atom = &rule.positive[step.condition];
        let table = &tables[atom.predicate as usize];
        let is_earlier = plan.start.is_some_and(|start| step.condition < start);
        let deepest = most - u32::from(is_earlier);
        let bindings = &self.bindings;
        let bound = (0..32).filter(|argument| step.mask >> argument & 1 == 1);
        let listed = table.matching(
            step.mask,
            bound.map(|argument| value(atom.arguments[argument], bindings)),
        );
        let count = listed.map_or(table.rows.len(), <[u32]>::len);
        for i in 0..count {
            let row = listed.map_or(i as u32, |rows| rows[i]);
            let depth = table.rows[row as usize].depth;
            if depth == 0 || depth > deepest {
                continue;
            }
            let mark = trail.len();
            if unify(atom, table.values(row), &mut self.bindings, trail) {
                self.children[step.condition] = Fact {
                    predicate: atom.predicate,
                    row,
                };
                self.step(tables, rule, plan, at + 1, most, trail, found);
            }
            for variable in trail.drain(mark..) {
                self.bindings[variable as usize] = UNBOUND;
            }
        }
    }
}
