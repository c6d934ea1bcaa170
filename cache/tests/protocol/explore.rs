//! The exploration of all reachable states, or of a random path.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

/// A state and its successors.
pub(crate) trait Model: Clone + Hash {
    /// The rules of the protocol.
    type Rules;

    /// All successors, with the number of the actor whose step leads there.
    fn successors(&self, rules: &Self::Rules) -> Vec<(usize, Self)>;

    /// The invariant of every state.
    fn check(&self) -> Result<(), String>;

    /// The invariant of final states.
    fn check_end(&self, rules: &Self::Rules) -> Result<(), String>;

    /// The next step of an actor, for messages.
    fn describe(&self, who: usize) -> String;
}

/// A path to a state that violates an invariant.
#[derive(Debug)]
pub(crate) struct Violation {
    pub what: String,
    /// The actor of each step, and its state before.
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

/// A bound above the number of states of every case here.
const MOST: usize = 20_000_000;

/// The states on the current path, with the successors left and the actor of the step to each.
struct Frame<M> {
    state: M,
    left: Vec<(usize, M)>,
    who: usize,
}

/// Visits every reachable state once. Returns their number.
pub(crate) fn all<M: Model>(start: M, rules: &M::Rules) -> Result<usize, Violation> {
    // Two hashes of 64 bits stand for a state: two of some million states share both by a chance of about
    // 1e-25.
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

/// Follows one path, chosen by the numbers.
pub(crate) fn one<M: Model>(start: M, rules: &M::Rules, choices: &[u16]) -> Result<(), Violation> {
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
        // Kills are among the successors: after the last number, the actors take turns.
        let choice = choices.get(i).map_or(i, |&choice| choice.into());
        let (who, next) = successors.swap_remove(choice % successors.len());
        steps.push(state.describe(who));
        state = next;
        assert!(i < 100_000, "it does not end");
    }
    Ok(())
}
