//! Checks that no value of a pipeline for a date depends on data of later dates.
//!
//! The pipeline runs on the original data. Then, for each source separately, every value after a date is replaced in a copy, all downstream
//! stages run again in a separate store, and every table is compared bit by bit with its first version up to that date.

mod overlay;
mod perturb;
mod report;
mod runs;
mod sources;
mod table;
mod violation;

pub use report::{Perturbed, Report, Unchecked};

use cache::Store;
use datasets::Date;
use overlay::Overlay;
use runner_engine::{Control, Failure, Options};
use runner_pipeline::{Pipeline, Work};
use runs::{Progress, Run};
use std::collections::BTreeSet;

/// True for stages that do not run: they are slow, and their results legitimately depend on later data.
fn is_left_out(work: &Work) -> bool {
    match work {
        Work::Kind { kind, .. } => kind.name().starts_with("train/") || kind.name().starts_with("evaluate/"),
        Work::Command(_) => false,
    }
}

/// Checks the chosen stages. `options` configures the runs of stages, `progress` receives progress messages.
///
/// # Errors
/// When the pipeline fails on the original data, when nothing can be perturbed at the date, or when the store or the machine fails.
pub fn check(
    pipeline: &mut Pipeline,
    chosen: &[usize],
    store: &Store,
    at: Option<Date>,
    options: &Options,
    control: &Control,
    progress: &mut Progress<'_>,
) -> Result<Report, Failure> {
    let (chosen, skipped) = without_training(pipeline, chosen);
    if chosen.is_empty() {
        return Err(
            Failure::usage("there is no stage to check: training and evaluation stages are excluded")
                .hint("select stages that produce data, features or environments"),
        );
    }
    let base = Run::new(pipeline, &chosen, store, options, control, progress)?;
    if let Some((stage, error)) = base.failed.first() {
        return Err(Failure::new(
            runner_engine::exit::STAGE_FAILED,
            format!("`{stage}` failed before the perturbation: {error}"),
        ));
    }
    let (sources, mut unchecked) = sources::find(pipeline, &chosen, &base.made, store)?;
    let at = match at {
        Some(at) => at,
        None => sources::middle(&sources, store)?.ok_or_else(|| {
            Failure::usage("no source of this pipeline has dates, so nothing can be perturbed").hint(
                "name a date with `--at`, or a pipeline whose sources are data sets or files with a column `date`",
            )
        })?,
    };
    let mut report = Report {
        at,
        sources: Vec::new(),
        moved: Vec::new(),
        unchecked: Vec::new(),
        skipped,
        tables: 0,
        rows: 0,
    };
    // Stages that were forced by name have already run.
    let other = Options {
        force: BTreeSet::new(),
        ..options.clone()
    };
    for source in &sources {
        let overlay = Overlay::new(store)?;
        let Some(rows) = source.perturb(&overlay, at)? else {
            unchecked.push(source.unperturbed(&format!("has no values after {at} to perturb")));
            continue;
        };
        progress(&format!("{} after {at}: {} other rows", source.name, rows.changed));
        let affected = source.affected(pipeline, &chosen);
        base.lend(pipeline, &chosen, &affected, source, &rows, &overlay)?;
        let original = rows.file.map(|file| source.swap(pipeline, file));
        let run = Run::new(pipeline, &chosen, &overlay.store, &other, control, &mut |_: &str| {});
        if let Some(original) = original {
            source.swap(pipeline, original);
        }
        let run = run?;
        report.sources.push(Perturbed {
            name: source.name.clone(),
            rows: rows.changed,
            stages: affected.len(),
        });
        for (stage, error) in &run.failed {
            unchecked.push(Unchecked {
                source: source.name.clone(),
                stage: stage.clone(),
                what: String::new(),
                reason: format!("it failed on the perturbed data: {error}"),
            });
        }
        let mut comparison = violation::Comparison::new(&source.name, at);
        for &node in &affected {
            comparison.stage(pipeline, node, (&base, store), (&run, &overlay.store))?;
        }
        report.tables += comparison.tables;
        report.rows += comparison.rows;
        report.moved.extend(comparison.moved);
        report.unchecked.extend(comparison.unchecked);
    }
    if report.sources.is_empty() {
        return Err(
            Failure::usage(format!("no source has values after {at} to perturb")).hint(
                match sources::span(&sources, store)? {
                    Some((first, last)) => {
                        format!("the sources have dates from {first} to {last}: choose one between with `--at`")
                    }
                    None => "the sources have no dates".to_owned(),
                },
            ),
        );
    }
    if report.tables > 0 && report.rows == 0 && report.moved.is_empty() {
        return Err(Failure::usage(format!("no table has rows up to {at} to compare"))
            .hint("choose a later date with `--at` that all sources cover"));
    }
    report.unchecked.splice(0..0, unchecked);
    report.moved.sort_by_key(|moved| (moved.node, moved.source.clone()));
    Ok(report)
}

/// Excludes training, evaluation and the stages that depend on them. Returns the remaining nodes, and the excluded stages with reasons.
fn without_training(pipeline: &Pipeline, chosen: &[usize]) -> (Vec<usize>, Vec<(String, String)>) {
    let (mut left, mut out) = (Vec::new(), BTreeSet::new());
    let mut skipped = Vec::new();
    for &i in chosen {
        let node = &pipeline.nodes[i];
        let because = if is_left_out(&node.work) {
            Some("it trains or evaluates on all dates".to_owned())
        } else {
            let mut needs = node.needs.values().flatten();
            needs
                .find(|need| out.contains(&need.node))
                .map(|need| format!("it needs `{}`", pipeline.nodes[need.node].id))
        };
        match because {
            Some(reason) => {
                out.insert(i);
                skipped.push((node.id.clone(), reason));
            }
            None => left.push(i),
        }
    }
    (left, skipped)
}
