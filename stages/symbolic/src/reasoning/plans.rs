//! Plans in rule worlds: every problem played once, beside random actions and breadth-first search.

use super::play::{Choice, Score, play};
use crate::env::batch::{Described as _, Order};
use crate::env::rules::{RuleEnvs, RuleTask, shortest_plan};
use rayon::prelude::*;
use stages_core::StageError;
use std::sync::Arc;

/// The end of a problem's episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOutcome {
    /// False at the limit of steps.
    pub is_solved: bool,
    /// The actions, by their numbers.
    pub plan: Vec<u32>,
    /// The probability of the actions that were taken.
    pub probability: f64,
}

/// Plays each problem once, in `envs` environments together.
///
/// # Errors
/// Those of the policy.
pub fn plans(
    task: &Arc<RuleTask>,
    envs: usize,
    choice: (Choice, u64),
    policy: &mut Score,
) -> Result<Vec<PlanOutcome>, StageError> {
    let problems = task.size();
    let all = envs.clamp(1, problems);
    let mut envs = RuleEnvs::new(task.clone(), 0, all, choice.1, Order::InTurn { all });
    let ends = play(&mut envs, problems, choice, policy)?.into_iter();
    let outcomes = ends.map(|(end, probability)| PlanOutcome {
        is_solved: end.is_solved,
        plan: end.plan,
        probability,
    });
    Ok(outcomes.collect())
}

/// The actions of the shortest plan of each problem, where breadth-first search finds it, and the states that
/// it expands; at most `budget` for a problem.
pub fn plan_searches(task: &RuleTask, budget: u64) -> Vec<(Option<usize>, u64)> {
    let search = |problem: usize| {
        let found = shortest_plan(task, problem, budget);
        (found.plan.map(|plan| plan.len()), found.expanded)
    };
    (0..task.size()).into_par_iter().map(search).collect()
}
