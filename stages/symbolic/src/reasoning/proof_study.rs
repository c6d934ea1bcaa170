//! The study of proof search: verdicts, proofs beside the shortest ones, and calibration.

use super::config::ReasoningBaseline;
use super::runs::{ENVS, Runs};
use super::sheet::{Area, Figure, Labelled, Sheet};
use super::study::{Study, env_counts};
use super::verdicts::{Outcome, Searched, VerdictOptions, Verdicts, random_verdicts, searches, verdicts};
use crate::env::batch::Described as _;
use crate::env::proofs::ProofTask;
use stages_core::StageError;
use std::fmt::Write as _;
use std::sync::Arc;

/// The study of a task's queries.
pub(super) fn study(runs: &Runs, task: &Arc<ProofTask>) -> Result<Study, StageError> {
    let config = runs.config;
    let options = VerdictOptions {
        envs: ENVS,
        seed: config.seed,
        choice: config.choice(),
        trees: config.proofs,
    };
    let (policies, blind) = runs.all(|policy| verdicts(task, &options, policy))?;
    let budget = config.budget(task.settings.steps);
    runs.context.check_cancelled()?;
    let found = searches(task, config.seed, [config.search_budget.max(budget), budget]);
    let per_unit = task.turns() / task.size();
    let sheets = |of: &[Verdicts]| of.iter().map(|of| sheet(&of.outcomes, &found, per_unit)).collect();
    let mut baselines = Vec::new();
    if config.has(ReasoningBaseline::Random) {
        let random = random_verdicts(task, &options)?;
        baselines.push((
            ReasoningBaseline::Random.name(),
            sheet(&random.outcomes, &found, per_unit),
        ));
    }
    if config.has(ReasoningBaseline::Search) {
        baselines.push((ReasoningBaseline::Search.name(), searched(&found, budget, per_unit)));
    }
    let mut others = vec![
        ("queries".to_owned(), task.turns() as f64),
        ("search_budget".to_owned(), budget as f64),
        (
            "true_fraction".to_owned(),
            found.iter().filter(|found| found.label).count() as f64 / found.len() as f64,
        ),
    ];
    others.extend(env_counts(policies.iter().map(|of| of.counts)));
    Ok(Study {
        units: task.size(),
        policies: sheets(&policies),
        blind: sheets(&blind),
        baselines,
        compared: &["accuracy", "success", "auc_pr"],
        others,
        proofs: policies[0].trees.clone(),
        files: vec![("calibration.csv", calibration(&policies))],
    })
}

/// The figures of verdicts.
pub fn sheet(outcomes: &[Outcome], found: &[Searched], per_unit: usize) -> Sheet {
    let mut sheet = judged(outcomes, per_unit);
    sheet.add(
        "steps",
        Figure::mean(outcomes, per_unit, |_, end| Some(f64::from(end.steps))),
    );
    // Of true queries that are proved, and whose shortest proof was found.
    let lengths = |at: usize, end: &Outcome| match found[at].length {
        Some(shortest) if end.label && end.is_proved => Some((end.length as f64, shortest as f64)),
        _ => None,
    };
    sheet.add_lengths("proof_length", outcomes, per_unit, lengths);
    let scores: Vec<Labelled> = outcomes
        .iter()
        .map(|end| Labelled {
            reached: vec![(end.score, end.label)],
            unreached: [0; 2],
        })
        .collect();
    sheet.add("auc_pr", Figure::Area(Area::new(scores.iter(), per_unit)));
    sheet.add("calibration_error", Figure::calibration(outcomes, per_unit));
    sheet
}

/// The figures of verdicts without a probability.
fn judged(outcomes: &[Outcome], per_unit: usize) -> Sheet {
    let proved = |end: &Outcome| f64::from(u8::from(end.is_proved));
    let right = |_: usize, end: &Outcome| Some(f64::from(u8::from(end.is_right())));
    let mut sheet = Sheet::default();
    sheet.add("accuracy", Figure::mean(outcomes, per_unit, right));
    let success = |_: usize, end: &Outcome| end.label.then(|| proved(end));
    sheet.add("success", Figure::mean(outcomes, per_unit, success));
    let false_proofs = |_: usize, end: &Outcome| (!end.label).then(|| proved(end));
    sheet.add("false_proofs", Figure::mean(outcomes, per_unit, false_proofs));
    sheet
}

/// The figures of breadth-first search in a budget.
fn searched(found: &[Searched], budget: u64, per_unit: usize) -> Sheet {
    let outcome = |found: &Searched| Outcome {
        label: found.label,
        is_proved: found.is_proved(budget),
        ..Outcome::default()
    };
    judged(&found.iter().map(outcome).collect::<Vec<_>>(), per_unit)
}

/// The verdicts of each policy by confidence, in ten equal ranges from 0.5 to 1.
fn calibration(policies: &[Verdicts]) -> String {
    let mut text = String::from("policy,confidence,right,verdicts\n");
    for (at, of) in policies.iter().enumerate() {
        for range in 0..10 {
            let ends = of.outcomes.iter().filter(|end| end.confidence().1 == range);
            let count = ends.clone().count() as f64;
            if count > 0.0 {
                let confidence = ends.clone().map(|end| end.confidence().0).sum::<f64>() / count;
                let right = ends.filter(|end| end.is_right()).count() as f64 / count;
                let _ = writeln!(text, "{},{confidence:.6},{right:.6},{count}", at + 1);
            }
        }
    }
    text
}
