//! Walks through what may happen: all of it, or a random part.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

/// A state, and what may follow it.
pub trait Model: Clone + Hash {
    /// Which parts of a protocol are kept.
    type Rules;

    /// Everything that may happen next, with the number of the actor who does it.
    fn successors(&self, rules: &Self::Rules) -> Vec<(usize, Self)>;

    /// What must hold at every instant.
    fn check(&self) -> Result<(), String>;

    /// What must hold when nobody can go on.
    fn check_end(&self, rules: &Self::Rules) -> Result<(), String>;

    /// What an actor is about to do.
    fn describe(&self, who: usize) -> String;
}

/// How a state came about in which something does not hold.
#[derive(Debug)]
pub struct Violation {
    pub what: String,
    /// Who took each step, and where they stood before.
    pub steps: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        for step in &self.steps {
            write!(f, "\n  {step}")?;
        }
        Ok(())
    }
}

/// More states than any case here has.
const MOST: usize = 20_000_000;

/// States on the way, with what is left to try from each and who made the step to it.
struct Frame<M> {
    state: M,
    left: Vec<(usize, M)>,
    who: usize,
}

/// Visits every state that can be reached, once. Returns how many there are.
pub fn all<M: Model>(start: M, rules: &M::Rules) -> Result<usize, Violation> {
    // Two hashes of 64 bits stand for a state: two of some million states share both by a chance of about 1e-25.
    let (first, second) = (RandomState::new(), RandomState::new());
    let mut seen = HashSet::new();
    let mut path: Vec<Frame<M>> = Vec::new();
    let mut next = Some((0, start));
    while let Some((who, state)) = next.take() {
        if seen.insert((first.hash_one(&state), second.hash_one(&state))) {
            assert!(seen.len() < MOST, "too many states");
            let left = state.successors(rules);
            let is_end = left.is_empty();
            path.push(Frame { state, left, who });
            let state = &path[path.len() - 1].state;
            let held = state.check().and_then(|()| match is_end {
                true => state.check_end(rules),
                false => Ok(()),
            });
            if let Err(what) = held {
                let steps = path.windows(2).map(|pair| pair[0].state.describe(pair[1].who));
                return Err(Violation {
                    what,
                    steps: steps.collect(),
                });
            }
        }
        while let Some(frame) = path.last_mut() {
            next = frame.left.pop();
            if next.is_some() {
                break;
            }
            path.pop();
        }
    }
    Ok(seen.len())
}

/// Takes one way, as the numbers say.
pub fn one<M: Model>(start: M, rules: &M::Rules, choices: &[u16]) -> Result<(), Violation> {
    let mut state = start;
    let mut steps = Vec::new();
    for i in 0.. {
        let mut successors = state.successors(rules);
        let held = state.check().and_then(|()| match successors.is_empty() {
            true => state.check_end(rules),
            false => Ok(()),
        });
        if let Err(what) = held {
            return Err(Violation { what, steps });
        }
        if successors.is_empty() {
            break;
        }
        // Deaths stand beside steps: where the numbers end, everybody goes on in turn.
        let choice = choices.get(i).map_or(i, |&choice| choice.into());
        let (who, next) = successors.swap_remove(choice % successors.len());
        steps.push(state.describe(who));
        state = next;
        assert!(i < 100_000, "it does not end");
    }
    Ok(())
}
