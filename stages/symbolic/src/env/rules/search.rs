//! Breadth-first search for the shortest plan.

use super::env::RuleTask;
use crate::env::search::{Found, breadth_first};

/// Searches for the plan of a problem with the fewest actions, by their numbers; at most `budget` states are
/// expanded. Of equals it is the first one by the order of actions.
pub fn shortest_plan(task: &RuleTask, problem: usize, budget: u64) -> Found<u32> {
    let ground = &task.problems[problem];
    let start = (ground.init.clone(), ground.init.clone());
    breadth_first(start, budget, |state: &Vec<u64>, visit| {
        for action in ground.applicable(state) {
            let mut next = state.clone();
            ground.actions[action as usize].apply(&mut next);
            visit(action, ground.is_solved(&next), next.clone(), &|| next.clone());
        }
    })
}
