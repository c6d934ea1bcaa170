//! The rows of a comparison for people: the figures that decide first, intervals and spreads inside of cells.

use crate::figures::{self, Unit, deciding, shown};
use crate::glossary::title;
use runner_history::compare::{Comparison, Group};

/// The most rows that are shown where no metric is one that decides.
const MOST_ROWS: usize = 9;

/// The ends of the names of interval bounds.
const BOUNDS: [&str; 2] = ["_low", "_high"];

/// The metrics that are shown first, those that decide in their order; and all others. Bounds of intervals
/// stand with their figures, in neither.
pub(crate) fn rows(comparison: &Comparison) -> (Vec<&str>, Vec<&str>) {
    let is_bound = |name: &str| {
        let base = BOUNDS.iter().find_map(|end| name.strip_suffix(end));
        base.is_some_and(|base| comparison.metrics.iter().any(|known| known == base))
    };
    let all = comparison
        .metrics
        .iter()
        .map(String::as_str)
        .filter(|name| !is_bound(name));
    let (mut first, mut rest): (Vec<&str>, Vec<&str>) = all.partition(|name| deciding(name).is_some());
    // The metric by which groups are sorted stays in front.
    let sorted_by = comparison.metrics.first().map(String::as_str);
    first.sort_by_key(|name| (Some(*name) != sorted_by, deciding(name)));
    if first.is_empty() {
        first = rest.drain(..rest.len().min(MOST_ROWS)).collect();
    }
    (first, rest)
}

/// A metric's title, with its stage where several stages are compared.
pub(crate) fn label(comparison: &Comparison, metric: &str) -> String {
    let stages = comparison.points.iter().flat_map(|point| &point.stages);
    let mut prefixes: Vec<&str> = stages.map(|stage| stage.prefix.as_str()).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let prefix = prefixes
        .iter()
        .rfind(|prefix| metric.starts_with(**prefix))
        .unwrap_or(&"");
    let name = match metric[prefix.len()..].rsplit_once('/') {
        None => title(&metric[prefix.len()..]),
        Some(("charts" | "validation" | "losses", name)) => title(name),
        Some((of, name)) => format!("{}, {}", of.replace(['/', '_'], " "), title(name)),
    };
    match prefixes.len() > 1 {
        true => format!("{}: {name}", prefix.trim_end_matches('.')),
        false => name,
    }
}

/// A figure of a group: with its interval for a single value, or with its standard deviation and their
/// number; `-` for none.
pub(crate) fn cell(comparison: &Comparison, group: &Group, metric: &str) -> String {
    let outcome = comparison.outcome(group, metric);
    let Some(spread) = outcome.spread else {
        return "-".to_owned();
    };
    let unit = Unit::of(metric);
    let bound = |end: &str| {
        let outcome = comparison.outcome(group, &format!("{metric}{end}"));
        outcome.spread.map_or(f64::NAN, |spread| spread.mean)
    };
    let mut cell = match spread.sd {
        Some(sd) => figures::with_deviation(spread.mean, sd, unit),
        None => figures::with_interval(spread.mean, bound("_low"), bound("_high"), unit),
    };
    if spread.n < outcome.of {
        cell.push_str(&format!(" (n={} of {})", spread.n, outcome.of));
    } else if spread.n > 1 {
        cell.push_str(&format!(" (n={})", spread.n));
    }
    if comparison.is_best(group, metric) {
        cell.push_str(" *");
    }
    cell
}

/// The difference of the means of a metric, the second group less the first; `None` without either.
pub(crate) fn difference(
    comparison: &Comparison,
    first: &Group,
    second: &Group,
    metric: &str,
) -> Option<String> {
    let mean = |group| Some(comparison.outcome(group, metric).spread?.mean);
    let value = mean(second)? - mean(first)?;
    Some(match value == 0.0 {
        true => shown(0.0, Unit::of(metric)),
        false => figures::signed(value, Unit::of(metric)),
    })
}
