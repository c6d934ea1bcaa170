//! The evaluations of a run: the answer of each first, then its parts, each after a line that sums it up.

mod market;
mod other;
mod strategies;

use crate::figure_table::cell;
use crate::figures::{self, Unit, shown};
use crate::finding;
use crate::fold::Fold;
use crate::glossary::title;
use cache::{Artifact, Store};
use runner_history::{StageRun, figures as stored};
use std::collections::BTreeMap;

pub(crate) use strategies::summary_table;

/// The kinds of evaluations that join others, which come first.
pub(crate) const JOINS: [&str; 5] = [
    "evaluate/summary",
    "evaluate/overfitting",
    "evaluate/study",
    "evaluate/learning_curves",
    "evaluate/walk_forward",
];

/// The last value of each metric, by name.
pub(crate) type Values = BTreeMap<String, f64>;

/// An evaluation as a page shows it.
pub(crate) struct Evaluation {
    /// The stage's id.
    pub id: String,
    /// True if the evaluation joins others.
    pub joins: bool,
    /// The answer in a line, as text.
    pub line: String,
    /// The answer as HTML: sentences, charts and the figures that decide.
    pub head: String,
    /// The parts below the answer.
    pub folds: Vec<Fold>,
    /// The data of the test in words; empty where they are not known.
    pub test: String,
    /// The figures.
    pub values: Values,
}

/// The evaluation of a stage; `None` for a stage of another kind.
pub(crate) fn evaluation(stage: &StageRun, store: &Store) -> Option<Evaluation> {
    if !stage.kind.starts_with("evaluate/") {
        return None;
    }
    let mut this = Evaluation {
        id: stage.id.clone(),
        joins: JOINS.contains(&stage.kind.as_str()),
        line: String::new(),
        head: String::new(),
        folds: Vec::new(),
        test: String::new(),
        values: Values::new(),
    };
    let Some(curves) = stored::curves(stage, store) else {
        this.line = "no metrics are stored".to_owned();
        this.head = "<p class=\"dim\">No metrics are stored for this stage.</p>\n".to_owned();
        return Some(this);
    };
    let last = |(name, points): (String, stored::Curve)| Some((name, points.last()?.1));
    this.values = curves.into_iter().filter_map(last).collect();
    this.line = line(&this.values);
    match this.values.contains_key("total_return") {
        true => market::fill(&mut this, stage, store),
        false => other::fill(&mut this, stage, store),
    }
    Some(this)
}

/// The answer in a line: the figure that is tested and the judgement, or the first figures that decide.
fn line(values: &Values) -> String {
    let deciding = || {
        let found = figures::DECIDING
            .iter()
            .filter_map(|name| Some((name, values.get(*name)?)));
        let words = found.map(|(name, value)| format!("{} {}", title(name), shown(*value, Unit::of(name))));
        words.take(3).collect::<Vec<_>>().join(", ")
    };
    match finding::in_short(values) {
        Some(line) => line,
        None => deciding(),
    }
}

/// A figure with its confidence interval, as HTML; empty where there is none.
pub(crate) fn with_interval(values: &Values, name: &str) -> String {
    let of = |end: &str| values.get(&format!("{name}{end}")).copied();
    let Some(value) = of("") else {
        return String::new();
    };
    let unit = Unit::of(name);
    match (of("_low"), of("_high")) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() && low < high => format!(
            "{} <span class=\"dim\">{}</span>",
            cell(value, unit),
            figures::interval(low, high, unit)
        ),
        _ => cell(value, unit),
    }
}

/// The names between a prefix and the next slash, each once.
pub(crate) fn names<'a>(values: &'a Values, prefix: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = values
        .keys()
        .filter_map(|name| name.strip_prefix(prefix)?.split_once('/').map(|(name, _)| name))
        .collect();
    names.dedup();
    names
}

/// The number of trials in words: `of 200 trials`.
pub(super) fn of_trials(trials: f64) -> String {
    format!(
        "of {} trial{}",
        shown(trials, Unit::Count),
        if trials == 1.0 { "" } else { "s" }
    )
}

fn metrics_artifact(stage: &StageRun, store: &Store) -> Option<Artifact> {
    let digest = stage.outputs.get("metrics")?;
    store.artifact(*digest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_with_their_intervals() {
        let values = Values::from([
            ("excess_return".to_owned(), 0.0192),
            ("excess_return_low".to_owned(), -0.019),
            ("excess_return_high".to_owned(), 0.057),
            ("sharpe".to_owned(), 0.57143),
        ]);
        assert_eq!(
            with_interval(&values, "excess_return"),
            "1.92&nbsp;% <span class=\"dim\">[−1.90, 5.70]</span>"
        );
        assert_eq!(with_interval(&values, "sharpe"), "0.571");
        assert_eq!(with_interval(&values, "beta"), "");
        assert_eq!(line(&values), "excess return 1.92 %, Sharpe ratio 0.571");
    }
}
