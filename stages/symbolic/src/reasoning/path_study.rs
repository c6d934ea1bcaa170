//! The study of path finding: filtered ranks, and areas under precision and recall.

use super::baselines::{RuleOptions, breadth_first, embedding, random_walk, rules, tail_frequency};
use super::config::ReasoningBaseline;
use super::ranking::{RankingOptions, Rankings, ranking};
use super::sheet::{Area, Figure, Sheet};
use super::stage::Runs;
use super::study::{Study, env_counts};
use crate::env::paths::{PathTask, QuerySides};
use rayon::prelude::*;
use stages_core::StageError;

/// The study of a task's queries.
///
/// # Errors
/// When a candidate is no entity, and when the stage should stop.
pub(super) fn study(runs: &Runs, task: &PathTask) -> Result<Study, StageError> {
    let config = runs.config;
    let options = RankingOptions {
        beam: config.beam,
        pooling: config.pooling.into(),
        candidates: candidates(&config.candidates, task)?,
        paths: config.proofs,
        ..RankingOptions::default()
    };
    let (policies, blind) = runs.all(|actor| {
        ranking(task, &options, &mut |batch, from, logits| {
            actor.score(batch, from, logits)
        })
    })?;
    runs.context.check_cancelled()?;
    let baseline = |of: &ReasoningBaseline| {
        let found = match of {
            ReasoningBaseline::Random => random_walk(task, &options),
            ReasoningBaseline::Search => breadth_first(task, &options),
            ReasoningBaseline::TailFrequency => tail_frequency(task, &options),
            ReasoningBaseline::Rules => rules(task, &options, &RuleOptions::default()),
            ReasoningBaseline::Embedding => embedding(task, &options, runs.embedding?),
        };
        Some((of.name(), sheet(task, &found, false)))
    };
    let wanted: Vec<ReasoningBaseline> = ReasoningBaseline::ALL
        .into_iter()
        .filter(|baseline| config.has(*baseline))
        .collect();
    let sheets = |of: &[Rankings]| of.iter().map(|of| sheet(task, of, true)).collect();
    let mut others = vec![
        ("queries".to_owned(), task.queries() as f64),
        ("entities".to_owned(), task.entities().len() as f64),
        ("unused_queries".to_owned(), task.unused_queries() as f64),
    ];
    let mut counts = policies[0].counts;
    policies[1..].iter().for_each(|of| counts.add(&of.counts));
    others.extend(env_counts(counts.named()));
    Ok(Study {
        units: task.queries() / per_unit(task),
        policies: sheets(&policies),
        blind: sheets(&blind),
        baselines: wanted.par_iter().filter_map(baseline).collect(),
        compared: &["mrr", "hits_1", "hits_3", "hits_10"],
        others,
        proofs: policies[0].paths.iter().map(|path| format!("{path}\n")).collect(),
        files: Vec::new(),
    })
}

/// The queries of a fact.
fn per_unit(task: &PathTask) -> usize {
    match task.sides() {
        QuerySides::Tails => 1,
        QuerySides::Both => 2,
    }
}

/// The numbers of entities of these names.
fn candidates(names: &[String], task: &PathTask) -> Result<Vec<u32>, StageError> {
    let number = |name: &String| {
        let constant = task.knowledge().symbols().constants.find(name, 0);
        let is_entity = |constant: &u32| task.entities().binary_search(constant).is_ok();
        constant.filter(is_entity).ok_or_else(|| {
            StageError::new(format!("`candidates`: `{name}` is no entity of the knowledge base"))
                .hint("write names as the facts do; without `candidates` the area is that of all entities")
        })
    };
    names.iter().map(number).collect()
}

/// The names of the figures of all queries, of those for tails, and of those for heads.
const NAMES: [[&str; 6]; 3] = [
    ["mrr", "hits_1", "hits_3", "hits_10", "mean_rank", "reached"],
    [
        "tails_mrr",
        "tails_hits_1",
        "tails_hits_3",
        "tails_hits_10",
        "tails_mean_rank",
        "tails_reached",
    ],
    [
        "heads_mrr",
        "heads_hits_1",
        "heads_hits_3",
        "heads_hits_10",
        "heads_mean_rank",
        "heads_reached",
    ],
];

/// The figures of ranks. The area of all queries has an interval where `with_area`; it takes the scores of
/// all candidates of all queries.
fn sheet(task: &PathTask, found: &Rankings, with_area: bool) -> Sheet {
    let per_unit = per_unit(task);
    let mut sheet = Sheet::default();
    let (sides, areas) = match per_unit {
        1 => (1, vec![]),
        _ => (
            3,
            vec![
                ("tails_auc_pr", found.tails.auc_pr),
                ("heads_auc_pr", found.heads.auc_pr),
            ],
        ),
    };
    for (side, names) in NAMES.iter().enumerate().take(sides) {
        let numbers: [&dyn Fn(usize, f64) -> f64; 6] = [
            &|_, rank| 1.0 / rank,
            &|_, rank| f64::from(u8::from(rank <= 1.0)),
            &|_, rank| f64::from(u8::from(rank <= 3.0)),
            &|_, rank| f64::from(u8::from(rank <= 10.0)),
            &|_, rank| rank,
            &|at, _| f64::from(u8::from(found.is_reached[at])),
        ];
        for (name, number) in names.iter().zip(numbers) {
            // The query for a fact's head follows the one for its tail.
            let is_of = |at: usize| side == 0 || at % per_unit == side - 1;
            let figure =
                Figure::mean(&found.ranks, per_unit, |at, rank| is_of(at).then(|| number(at, *rank)));
            sheet.add(name, figure);
        }
    }
    match with_area {
        true => sheet.add("auc_pr", Figure::Area(Area::new(found.areas.iter(), per_unit))),
        false => sheet.fixed.push(("auc_pr", found.all.auc_pr)),
    }
    sheet.fixed.extend(areas);
    sheet
}
