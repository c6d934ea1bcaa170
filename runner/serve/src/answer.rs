//! The answer of a run: the sentence of its first evaluation, its main figure, and the curve that a spark
//! line shows.

use crate::layout::encode;
use cache::{ArtifactDigest, Store};
use runner_engine::text;
use runner_history::{Run, StageRun, figures as metrics};
use runner_report::figures::{Unit, deciding, shown};
use runner_report::glossary::title;

/// The number of a run's evaluations among which its answer is looked for.
const EVALUATIONS: usize = 4;

fn evaluations(run: &Run) -> impl Iterator<Item = &StageRun> {
    run.stages
        .iter()
        .filter(|stage| stage.kind.starts_with("evaluate/") && stage.outputs.contains_key("metrics"))
}

/// The answers of a run's first evaluations in a sentence each, or else the first one's main figure; and how
/// many more evaluations there are. None if nothing was evaluated.
pub(crate) fn answers(run: &Run, store: &Store, most: usize) -> Vec<String> {
    let (mut found, mut more) = runner_report::answers(run, store, most);
    if let (true, Some((stage, name, value))) = (found.is_empty(), decisive(run, store)) {
        more = evaluations(run).count() - 1;
        let stage = match more {
            0 => String::new(),
            _ => format!("{}: ", stage.id),
        };
        found.push(format!("{stage}{name} {value}"));
    }
    if more > 0 {
        found.push(format!("and {}", text::count(more, "more evaluation")));
    }
    found
}

/// The main figure of a run: the words of its name, and its value for people.
pub(crate) fn main_figure(run: &Run, store: &Store) -> Option<(String, String)> {
    decisive(run, store).map(|(_, name, value)| (name, value))
}

/// The main figure of a run with its evaluation.
fn decisive<'r>(run: &'r Run, store: &Store) -> Option<(&'r StageRun, String, String)> {
    evaluations(run).take(EVALUATIONS).find_map(|stage| {
        let values = metrics::summary(stage, store)?;
        let decisive = values
            .iter()
            .filter_map(|(name, value)| Some((deciding(name)?, name, value)));
        let (_, name, value) = decisive.min_by_key(|(place, ..)| *place)?;
        Some((stage, title(name), shown(*value, Unit::of(name))))
    })
}

/// The metrics of a run's evaluations as names of columns, `STAGE.METRIC`, those that decide first.
pub(crate) fn columns(run: &Run, store: &Store) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for stage in evaluations(run).take(EVALUATIONS) {
        let values = metrics::summary(stage, store).unwrap_or_default();
        let mut names: Vec<&String> = values.keys().filter(|name| !name.contains('/')).collect();
        names.sort_by_key(|name| deciding(name).unwrap_or(usize::MAX));
        found.extend(names.into_iter().map(|name| format!("{}.{name}", stage.stage)));
    }
    found.dedup();
    found
}

/// The spark line of a run as an image: the equity of its policy, or else its learning curve.
pub(crate) fn spark(run: &Run) -> String {
    let output = |kind: &'static str, output: &'static str| {
        let stages = run.stages.iter().filter(move |stage| stage.kind.starts_with(kind));
        stages.filter_map(move |stage| stage.outputs.get(output).copied())
    };
    let of: Vec<String> = output("evaluate/", "trajectory")
        .take(1)
        .chain(output("train/", "metrics").take(1))
        .map(|digest: ArtifactDigest| format!("of={}", encode(&digest.to_hex())))
        .collect();
    match of.is_empty() {
        true => String::new(),
        false => format!(
            "<img class=\"spark\" src=\"/spark.svg?{}\" width=\"96\" height=\"24\" loading=\"lazy\" \
            alt=\"curve of {}\">",
            of.join("&amp;"),
            run.id
        ),
    }
}
