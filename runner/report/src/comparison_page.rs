//! A comparison as a single page: tables, and learning curves with their spread. The page is self-contained
//! and has no scripts.

use super::comparison_table::{Sheet, cell, notes};
use crate::chart::{Axis, Role, Series, lines};
use crate::html::{self, escape};
use crate::training::FIRST;
use runner_engine::text;
use runner_history::compare::{Comparison, Group, Measured, Point, mean_curve, rank};
use runner_history::figures::{Curve, is_time};
use std::collections::BTreeSet;

/// The maximum number of lines of a chart that can be distinguished.
const MOST_LINES: usize = 12;

/// The maximum number of rows of a table that are shown expanded.
const MOST_ROWS: usize = 20;

/// The maximum number of metrics shown by parameter.
const MOST_METRICS: usize = 4;

/// Renders the page.
pub fn page(comparison: &Comparison) -> String {
    let runs: BTreeSet<&str> = comparison.points.iter().map(|point| point.called.as_str()).collect();
    let title = format!("Comparison of {}", text::some(runs, 3));
    let mut body = format!(
        "<h1>{}</h1><p class=\"dim\">{} in {}</p>\n",
        escape(&title),
        text::count(comparison.points.len(), "point"),
        text::count(comparison.groups.len(), "group")
    );
    body.push_str(&by_parameter(comparison));
    body.push_str("<h2>Groups</h2>\n");
    body.push_str(&groups(comparison));
    body.push_str("<ul class=\"dim\">");
    notes(comparison)
        .iter()
        .for_each(|note| body.push_str(&format!("<li>{}</li>", escape(note))));
    body.push_str("</ul>\n");
    body.push_str(&charts(comparison));
    body.push_str("<h2>Points</h2>\n");
    body.push_str(&match comparison.points.len() {
        0..=MOST_ROWS => points(comparison),
        n => html::collapsed(&format!("all {n} points"), &points(comparison)),
    });
    html::page(&title, &body)
}

fn groups(comparison: &Comparison) -> String {
    let sheet = Sheet::arranged(comparison, usize::MAX);
    let Some((head, rows)) = sheet.0.split_first() else {
        return String::new();
    };
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| escape(cell)).collect())
        .collect();
    // The groups are sorted by the first metric.
    let (first, others) = rows.split_at(rows.len().min(MOST_ROWS));
    let mut out = html::table(&head, first);
    if !others.is_empty() {
        let summary = format!("the other {}", text::count(others.len(), "group"));
        out.push_str(&html::collapsed(&summary, &html::table(&head, others)));
    }
    out
}

/// Summarises many groups by one parameter at a time: the first metrics over all points that share a value.
fn by_parameter(comparison: &Comparison) -> String {
    let metrics = &comparison.metrics[..comparison.metrics.len().min(MOST_METRICS)];
    let mut rows = Vec::new();
    if comparison.groups.len() > MOST_LINES {
        for parameter in &comparison.parameters {
            let mut groups: Vec<(String, Group)> = Vec::new();
            for at in 0..comparison.points.len() {
                let only = Group { points: vec![at] };
                let value = comparison.values(&only, parameter).join(", ");
                match groups.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, group)) => group.points.push(at),
                    None => groups.push((value, only)),
                }
            }
            if groups.len() < 2 || groups.len() > MOST_LINES {
                continue;
            }
            for (value, group) in groups {
                let mut row = vec![escape(parameter), escape(&value), group.points.len().to_string()];
                row.extend(
                    metrics
                        .iter()
                        .map(|metric| cell(&comparison.outcome(&group, metric), false)),
                );
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = vec!["parameter", "value", "points"];
    head.extend(metrics.iter().map(String::as_str));
    format!(
        "<h2>By parameter</h2>\n<p class=\"dim\">Mean ± sample standard deviation over all points with that \
        value, whatever their other parameters.</p>\n{}",
        html::table(&head, &rows)
    )
}

fn points(comparison: &Comparison) -> String {
    let mut head = vec!["point", "group", "status"];
    head.extend(comparison.parameters.iter().map(String::as_str));
    head.extend(comparison.metrics.iter().map(String::as_str));
    let mut rows = Vec::new();
    for (i, group) in comparison.groups.iter().enumerate() {
        for &at in &group.points {
            let Some(point) = comparison.points.get(at) else {
                continue;
            };
            let only = Group { points: vec![at] };
            let mut row = vec![escape(&point.label()), format!("#{}", i + 1), escape(point.status)];
            for parameter in &comparison.parameters {
                row.push(escape(&comparison.values(&only, parameter).join(", ")));
            }
            for metric in &comparison.metrics {
                row.push(cell(&comparison.outcome(&only, metric), false));
            }
            rows.push(row);
        }
    }
    html::table(&head, &rows)
}

/// The name of a group in a legend: its number and the parameters that distinguish it.
fn name(comparison: &Comparison, i: usize, group: &Group) -> String {
    let repeats = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        comparison.over.iter().any(|over| over == last || over == name)
    };
    let told = comparison
        .parameters
        .iter()
        .filter(|name| !repeats(name) && rank(name) < 2);
    let mut parts: Vec<String> = told
        .map(|parameter| {
            let short = parameter.split_once('.').map_or(parameter.as_str(), |(_, short)| short);
            format!("{short}={}", comparison.values(group, parameter).join(" "))
        })
        .collect();
    if parts.is_empty() && comparison.groups.len() > 1 {
        parts.extend(comparison.runs(group).first().map(|run| (*run).to_owned()));
    }
    format!("#{} {}", i + 1, parts.join(", "))
        .trim_end()
        .chars()
        .take(60)
        .collect()
}

fn charts(comparison: &Comparison) -> String {
    let mut names: BTreeSet<(usize, String)> = BTreeSet::new();
    for stage in comparison.points.iter().flat_map(|point| &point.stages) {
        for (name, curve) in &stage.figures.curves {
            if curve.len() > 1 && !is_time(name) {
                let place = FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
                names.insert((place, format!("{}{name}", stage.prefix)));
            }
        }
    }
    let mut out = String::new();
    for (_, name) in &names {
        out.push_str(&lines(name, &series(comparison, name), Axis::Steps, 240.0));
    }
    if out.is_empty() {
        return out;
    }
    let mut about = "A line is the mean of a group where all its complete points have values, the band one \
        sample standard deviation to each side. Incomplete points have a line of their own."
        .to_owned();
    if comparison.groups.len() > MOST_LINES {
        about.push_str(&format!(
            " Of {} groups the first {MOST_LINES} are drawn.",
            comparison.groups.len()
        ));
    }
    format!("<h2>Learning curves</h2>\n<p class=\"dim\">{about}</p>\n<div class=\"charts\">\n{out}</div>\n")
}

/// The lines of one metric, by name; lines without points are omitted.
fn series(comparison: &Comparison, metric: &str) -> Vec<Series> {
    let (mut all, mut incomplete) = (Vec::new(), Vec::new());
    for (i, group) in comparison.groups.iter().enumerate().take(MOST_LINES) {
        let name = name(comparison, i, group);
        let measured = comparison.measured(group, metric);
        let done: Vec<&Curve> = measured
            .iter()
            .filter(|(_, stage)| stage.done)
            .filter_map(|(_, stage)| curve(stage, metric))
            .collect();
        let mean = mean_curve(&done);
        // A group has the same colour in every chart.
        all.push(Series {
            name: name.clone(),
            points: mean.mean,
            band: mean.band,
            role: Role::Plain,
        });
        let undone = |(point, stage): &(&Point, &Measured)| {
            let points = curve(stage, metric)?.clone();
            Some(Series::line(
                &format!("#{} {} ({})", i + 1, point.label(), point.status),
                points,
            ))
        };
        incomplete.extend(measured.iter().filter(|(_, stage)| !stage.done).filter_map(undone));
    }
    all.extend(incomplete);
    all
}

fn curve<'m>(stage: &'m Measured, metric: &str) -> Option<&'m Curve> {
    stage.figures.curves.get(metric.strip_prefix(&stage.prefix)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_engine::RunStatus;
    use runner_history::Figures;
    use runner_history::compare::Options;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn point(seed: u32, curve: Curve, done: bool) -> Point {
        let figures = Figures {
            values: curve
                .last()
                .map(|last| ("loss".to_owned(), last.1))
                .into_iter()
                .collect(),
            headline: vec!["loss".to_owned()],
            curves: BTreeMap::from([("loss".to_owned(), curve)]),
        };
        Point {
            run: "run".to_owned(),
            called: "<run>".to_owned(),
            place: format!("[seed={seed}]"),
            stages: vec![Measured {
                prefix: "train.".to_owned(),
                id: format!("train[seed={seed}]"),
                key: None,
                done,
                family: "train".to_owned(),
                figures: Arc::new(figures),
            }],
            parameters: BTreeMap::from([("matrix.seed".to_owned(), json!(seed))]),
            status: if done { "done" } else { "killed" },
            run_status: RunStatus::Killed,
            error: None,
        }
    }

    #[test]
    fn what_is_incomplete_is_a_line_of_its_own() {
        let points = vec![
            point(1, vec![(0.0, 4.0), (1.0, 2.0)], true),
            point(2, vec![(0.0, 2.0), (1.0, 1.0)], true),
            point(3, vec![(0.0, 9.0), (0.5, 8.0)], false),
        ];
        let comparison = Comparison::new(points, &Options::default()).unwrap();
        let drawn = series(&comparison, "train.loss");
        let shown: Vec<(&str, &Curve, usize)> = drawn
            .iter()
            .map(|line| (line.name.as_str(), &line.points, line.band.len()))
            .collect();
        assert_eq!(
            shown,
            [
                ("#1", &vec![(0.0, 3.0), (1.0, 1.5)], 2),
                ("#1 <run>[seed=3] (killed)", &vec![(0.0, 9.0), (0.5, 8.0)], 0),
            ]
        );
        let outcome = comparison.outcome(&comparison.groups[0], "train.loss");
        assert_eq!((outcome.values, outcome.of), (vec![2.0, 1.0], 3));
        let page = page(&comparison);
        assert!(!page.contains("<details><summary>all"), "few points stand open");
        assert!(!page.contains("<run>") && page.contains("&lt;run&gt;[seed=3] is not complete: killed"));
    }

    #[test]
    fn two_hundred_points_are_collapsed() {
        let of = |i: u32| {
            let mut point = point(i % 5, vec![(0.0, 1.0), (1.0, f64::from(i / 5))], true);
            point.place = format!("[lr={},seed={}]", i / 5 / 10, i % 5);
            point.parameters.insert("matrix.lr".to_owned(), json!(i / 5 / 10));
            point.parameters.insert("matrix.units".to_owned(), json!(i / 5 % 10));
            point.stages[0].id = format!("train[{i}]");
            point
        };
        let comparison = Comparison::new((0..200).map(of).collect(), &Options::default()).unwrap();
        assert_eq!(comparison.groups.len(), 40);
        let page = page(&comparison);
        let open: String = page
            .split("<details")
            .map(|part| part.rsplit("</details>").next().unwrap())
            .collect();
        // Five seeds, four rates and ten units; twenty groups; a header each. The rest is closed.
        assert_eq!(open.matches("<tr>").count(), (5 + 4 + 10) + 20 + 2);
        assert!(page.contains("the other 20 groups") && page.contains("all 200 points"));
        // The mean over 50 points of a rate: 5 seeds of 0, 1, …, 9.
        assert!(open.contains("<td class=\"\" data-name=\"train.loss\">4.5 ± "));
    }
}
