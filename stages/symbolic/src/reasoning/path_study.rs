//! The study of path finding: filtered ranks, and areas under precision and recall.

use super::baselines::{breadth_first, embedding, random_walk, rules, tail_frequency};
use super::config::ReasoningBaseline;
use super::ranking::{RankingOptions, Rankings, ranking};
use super::runs::Runs;
use super::sheet::{Area, Figure, Sheet};
use super::study::{Study, env_counts};
use crate::env::batch::Described as _;
use crate::env::paths::PathTask;
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
        pooling: config.pooling,
        candidates: candidates(&config.candidates, task)?,
        paths: config.proofs,
        ..RankingOptions::default()
    };
    let (policies, blind) = runs.all(|policy| ranking(task, &options, policy))?;
    runs.context.check_cancelled()?;
    let baseline = |of: &ReasoningBaseline| {
        let found = match of {
            ReasoningBaseline::Random => random_walk(task, &options),
            ReasoningBaseline::Search => breadth_first(task, &options),
            ReasoningBaseline::TailFrequency => tail_frequency(task, &options),
            ReasoningBaseline::Rules => rules(task, &options),
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
        ("queries".to_owned(), task.size() as f64),
        ("entities".to_owned(), task.entities.len() as f64),
        ("unused_queries".to_owned(), task.unused as f64),
    ];
    others.extend(env_counts(policies.iter().map(|of| of.counts)));
    Ok(Study {
        units: task.size() / task.sides.count(),
        policies: sheets(&policies),
        blind: sheets(&blind),
        baselines: wanted.par_iter().filter_map(baseline).collect(),
        compared: &["mrr", "hits_1", "hits_3", "hits_10"],
        others,
        proofs: policies[0].paths.iter().map(|path| format!("{path}\n")).collect(),
        files: Vec::new(),
    })
}

/// The numbers of the entities with the given names.
fn candidates(names: &[String], task: &PathTask) -> Result<Vec<u32>, StageError> {
    let number = |name: &String| {
        let constant = task.knowledge.symbols.constants.find(name, 0);
        let is_entity = |constant: &u32| task.entities.binary_search(constant).is_ok();
        constant.filter(is_entity).ok_or_else(|| {
            StageError::new(format!("`candidates`: `{name}` is not an entity of the knowledge base"))
                .hint("write names as the facts do; without `candidates` the area is that of all entities")
        })
    };
    names.iter().map(number).collect()
}

/// The figures of ranks. The area of all queries has an interval where `with_area`; it takes the scores of
/// all candidates of all queries.
pub fn sheet(task: &PathTask, found: &Rankings, with_area: bool) -> Sheet {
    let per_unit = task.sides.count();
    let mut sheet = Sheet::default();
    let is = |is: bool| f64::from(u8::from(is));
    type Number<'a> = &'a dyn Fn(usize, f64) -> f64;
    let figures: [(&str, Number<'_>); 6] = [
        ("mrr", &|_, rank| 1.0 / rank),
        ("hits_1", &|_, rank| is(rank <= 1.0)),
        ("hits_3", &|_, rank| is(rank <= 3.0)),
        ("hits_10", &|_, rank| is(rank <= 10.0)),
        ("mean_rank", &|_, rank| rank),
        ("reached", &|at, _| is(found.is_reached[at])),
    ];
    // The query for a fact's head follows the one for its tail.
    let sides: &[&str] = if per_unit == 1 { &[] } else { &["tails", "heads"] };
    for (name, number) in figures {
        sheet.add(
            name,
            Figure::mean(&found.ranks, per_unit, |at, rank| Some(number(at, *rank))),
        );
    }
    for (at_side, side) in sides.iter().enumerate() {
        for (name, number) in figures {
            let on_side = |at: usize, rank: &f64| (at % per_unit == at_side).then(|| number(at, *rank));
            sheet.add(format!("{side}_{name}"), Figure::mean(&found.ranks, per_unit, on_side));
        }
    }
    let area = Area::new(found.areas.iter(), per_unit);
    match with_area {
        true => sheet.add("auc_pr", Figure::Area(area)),
        false => sheet.fixed.push(("auc_pr".to_owned(), area.whole())),
    }
    for (at, side) in sides.iter().enumerate() {
        let area = Area::new(found.areas.iter().skip(at).step_by(per_unit), 1);
        sheet.fixed.push((format!("{side}_auc_pr"), area.whole()));
    }
    sheet
}
