//! Breadth-first search for the shortest plan.

use super::env::RuleTask;
use std::collections::HashSet;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlan {
    /// The actions of the shortest plan, by their numbers. `None` where there is none, or the budget ended.
    pub plan: Option<Vec<u32>>,
    /// The states that were expanded.
    pub expanded: u64,
    /// True where the budget ended before the states did.
    pub is_cut: bool,
}

/// Searches for the plan of a problem with the fewest actions; at most `budget` states are expanded. Of
/// equals it is the first one by the order of actions.
pub fn shortest_plan(task: &RuleTask, problem: usize, budget: u64) -> FoundPlan {
    let ground = &task.problems[problem];
    let start = ground.init.clone();
    let mut seen = HashSet::from([start.clone()]);
    // Each state with the node and the action that it comes from.
    let mut nodes: Vec<(Vec<u64>, usize, u32)> = vec![(start, 0, 0)];
    let found = |plan, expanded, is_cut| FoundPlan {
        plan,
        expanded,
        is_cut,
    };
    let mut at = 0;
    while at < nodes.len() {
        if at as u64 == budget {
            return found(None, budget, true);
        }
        let state = std::mem::take(&mut nodes[at].0);
        for action in ground.applicable(&state) {
            let mut next = state.clone();
            ground.actions[action as usize].apply(&mut next);
            if ground.is_solved(&next) {
                let mut plan = vec![action];
                let mut back = at;
                while back > 0 {
                    plan.push(nodes[back].2);
                    back = nodes[back].1;
                }
                plan.reverse();
                return found(Some(plan), at as u64 + 1, false);
            }
            if !seen.contains(&next) {
                seen.insert(next.clone());
                nodes.push((next, at, action));
            }
        }
        at += 1;
    }
    found(None, at as u64, false)
}
