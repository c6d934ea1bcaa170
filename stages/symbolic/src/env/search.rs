//! Breadth-first search for the fewest actions to a goal.

use std::collections::HashSet;
use std::hash::Hash;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<A> {
    /// The fewest actions that lead to the goal; `None` where none do, or the budget ended.
    pub actions: Option<Vec<A>>,
    /// The number of states that were expanded.
    pub expanded: u64,
    /// True where the budget ended before the states did.
    pub is_cut: bool,
}

/// A visit of a state that an action leads to: the action, whether the goal is reached, what tells the state
/// from others, and the state.
pub(super) type Visit<'a, A, K, S> = dyn FnMut(A, bool, K, &dyn Fn() -> S) + 'a;

/// Searches from a state, and what tells it from others. `expand` visits the states that follow from one. At
/// most `budget` states are expanded. Of equals it is the first one by the order of visits.
pub(super) fn breadth_first<A: Copy, K: Eq + Hash, S: Default>(
    (start, key): (S, K),
    budget: u64,
    mut expand: impl FnMut(&S, &mut Visit<'_, A, K, S>),
) -> Found<A> {
    let mut seen = HashSet::from([key]);
    // Each state with the node and the action that it comes from.
    let mut nodes: Vec<(S, Option<(usize, A)>)> = vec![(start, None)];
    let mut at = 0;
    while at < nodes.len() && (at as u64) < budget {
        // What is expanded is not needed again.
        let state = std::mem::take(&mut nodes[at].0);
        let mut last = None;
        expand(&state, &mut |action, is_goal, key, next| {
            if last.is_none() && is_goal {
                last = Some((at, action));
            } else if last.is_none() && seen.insert(key) {
                nodes.push((next(), Some((at, action))));
            }
        });
        at += 1;
        if last.is_some() {
            let steps = std::iter::successors(last, |&(node, _)| nodes[node].1);
            let mut actions: Vec<A> = steps.map(|(_, action)| action).collect();
            actions.reverse();
            return Found {
                actions: Some(actions),
                expanded: at as u64,
                is_cut: false,
            };
        }
    }
    Found {
        actions: None,
        expanded: at as u64,
        is_cut: at < nodes.len(),
    }
}
