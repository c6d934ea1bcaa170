//! The study of rule worlds: plans beside the shortest ones.

use super::config::ReasoningBaseline;
use super::play::{Choice, Score, indifferent, play};
use super::runs::{ENVS, Runs};
use super::sheet::{Figure, Sheet};
use super::study::Study;
use crate::env::batch::Described as _;
use crate::env::rules::{FinishedPlan, RuleTask, shortest_plan};
use rayon::prelude::*;
use stages_core::StageError;
use std::fmt::Write as _;
use std::sync::Arc;

/// A plan, and the probability of its actions.
type Plan = (FinishedPlan, f64);

/// The number of actions of a problem's shortest plan, if breadth-first search finds it, and the number of
/// states that the search expands.
type Shortest = (Option<usize>, u64);

/// The study of a task's problems.
pub(super) fn study(runs: &Runs, task: &Arc<RuleTask>) -> Result<Study, StageError> {
    let config = runs.config;
    let choice = (config.choice(), config.seed);
    let plans = |choice, policy: &mut Score| -> Result<Vec<Plan>, StageError> {
        Ok(play(task, task.size(), ENVS, choice, policy)?.0)
    };
    let (policies, blind) = runs.all(|policy| plans(choice, policy))?;
    runs.context.check_cancelled()?;
    let budget = config.budget(task.steps);
    let budget_of_search = config.search_budget.max(budget);
    let search = |problem: usize| -> Shortest {
        let found = shortest_plan(task, problem, budget_of_search);
        (found.actions.map(|plan| plan.len()), found.expanded)
    };
    let found: Vec<Shortest> = (0..task.size()).into_par_iter().map(search).collect();
    let sheets = |of: &[Vec<Plan>]| of.iter().map(|of| sheet(of, &found)).collect();
    let mut baselines = Vec::new();
    if config.has(ReasoningBaseline::Random) {
        let random = plans((Choice::Sampled, config.seed), &mut indifferent)?;
        baselines.push((ReasoningBaseline::Random.name(), sheet(&random, &found)));
    }
    if config.has(ReasoningBaseline::Search) {
        let mut searched = Sheet::default();
        let is_solved = |_: usize, found: &Shortest| found.0.is_some() && found.1 <= budget;
        let success = Figure::mean(&found, 1, |at, found| Some(f64::from(u8::from(is_solved(at, found)))));
        searched.add("success", success);
        baselines.push((ReasoningBaseline::Search.name(), searched));
    }
    Ok(Study {
        units: task.size(),
        policies: sheets(&policies),
        blind: sheets(&blind),
        baselines,
        compared: &["success"],
        others: vec![
            ("problems".to_owned(), task.size() as f64),
            ("search_budget".to_owned(), budget as f64),
        ],
        proofs: texts(task, &policies[0], &found, config.proofs),
        files: Vec::new(),
    })
}

/// The figures of plans.
fn sheet(outcomes: &[Plan], found: &[Shortest]) -> Sheet {
    let mut sheet = Sheet::default();
    let success = |_: usize, (end, _): &Plan| Some(f64::from(u8::from(end.is_solved)));
    sheet.add("success", Figure::mean(outcomes, 1, success));
    // Of problems that are solved, and whose shortest plan was found.
    let lengths = |at: usize, (end, _): &Plan| match found[at].0 {
        Some(shortest) if end.is_solved => Some((end.plan.len() as f64, shortest as f64)),
        _ => None,
    };
    sheet.add_lengths("plan_length", outcomes, 1, lengths);
    sheet
}

/// The plans of the first problems that are solved.
fn texts(task: &RuleTask, outcomes: &[Plan], found: &[Shortest], most: usize) -> Vec<String> {
    let solved = outcomes.iter().enumerate().filter(|(_, (end, _))| end.is_solved);
    let text = |(problem, (end, probability)): (usize, &Plan)| {
        let mut text = format!(
            "; {}: {} actions, probability {probability:.3}",
            task.texts[problem],
            end.plan.len()
        );
        if let Some(shortest) = found[problem].0 {
            let _ = write!(text, "; the shortest plan has {shortest}");
        }
        text.push('\n');
        for &action in &end.plan {
            let _ = writeln!(text, "{}", task.step_text(problem, action));
        }
        text
    };
    solved.take(most).map(text).collect()
}
