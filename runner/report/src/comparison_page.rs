//! A comparison as a single page: tables, and learning curves with their spread. The page is self-contained
//! and allows only its own script.

use super::comparison_rows::{cell, difference, label, rows};
use super::comparison_settings;
use super::comparison_table::{self, notes};
use crate::chart::{Axis, Role, Series, lines};
use crate::figure_table::{self, Column, together};
use crate::figures;
use crate::fold::Fold;
use crate::glossary;
use crate::html::{self, escape};
use crate::training::FIRST;
use runner_engine::text;
use runner_history::compare::{Comparison, Group, Measured, Point, mean_curve, rank};
use runner_history::figures::{Curve, is_time};
use std::collections::BTreeSet;

/// The maximum number of lines of a chart that can be distinguished.
const MOST_LINES: usize = 12;

/// The maximum number of rows of a table that are shown expanded.
const MOST_ROWS: usize = 12;

/// The maximum number of learning curves that are shown expanded.
const MOST_CHARTS: usize = 4;

/// The maximum number of metrics shown by parameter.
const MOST_METRICS: usize = 4;

/// Renders the page: what differs and the figures that decide, then charts, and the rest collapsed.
pub fn page(comparison: &Comparison) -> String {
    let runs: BTreeSet<&str> = comparison.points.iter().map(|point| point.called.as_str()).collect();
    let title = format!("Comparison of {}", text::some(runs, 3));
    let mut body = format!(
        "<h1>{}</h1><p class=\"dim\">{} in {}</p>\n",
        escape(&title),
        text::count(comparison.points.len(), "point"),
        text::count(comparison.groups.len(), "group")
    );
    let (first, rest) = rows(comparison);
    match comparison.groups.len() <= MOST_COLUMNS {
        true => body.push_str(&in_columns(comparison, &first)),
        false => body.push_str(&in_rows(comparison, &first)),
    }
    body.push_str("<ul class=\"dim\">");
    notes(comparison)
        .iter()
        .for_each(|note| body.push_str(&format!("<li>{}</li>", escape(note))));
    body.push_str("</ul>\n");
    body.push_str(&by_parameter(comparison, &first));
    if let Some(metric) = first.first() {
        body.push_str(&comparison_settings::section(comparison, metric));
    }
    let (curves, others) = charts(comparison);
    body.push_str(&curves);
    let mut folds = Vec::new();
    if !others.is_empty() {
        folds.push(Fold::new("More learning curves", String::new(), others));
    }
    if !rest.is_empty() {
        let table = match comparison.groups.len() <= MOST_COLUMNS {
            true => figures_in_columns(comparison, &rest),
            false => rest
                .chunks(MOST_FIGURES)
                .map(|some| figures_in_rows(comparison, some))
                .collect(),
        };
        folds.push(Fold::new("All other figures", text::count(rest.len(), "figure"), table));
    }
    let count = text::count(comparison.points.len(), "point");
    folds.push(Fold::new("Points", count, points(comparison, &first)));
    for fold in &folds {
        body.push_str(&fold.html(2, false));
    }
    body.push_str(&glossary::section(&body));
    html::page(&title, &body)
}

/// The maximum number of groups that are columns.
const MOST_COLUMNS: usize = 5;

/// The maximum number of figures in a row of a group.
const MOST_FIGURES: usize = 6;

/// The number of a group, with the runs that it is of where there are several.
fn group_title(comparison: &Comparison, i: usize, group: &Group) -> String {
    match comparison.is_of_one_run() {
        true => format!("#{}", i + 1),
        false => format!("#{} {}", i + 1, text::some(comparison.runs(group), 2)),
    }
}

/// The runs of each group, where there are several.
fn legend(comparison: &Comparison) -> String {
    let groups = comparison.groups.iter().enumerate();
    let items: String = groups
        .map(|(i, group)| format!("<li>{}</li>", escape(&group_title(comparison, i, group))))
        .collect();
    match comparison.is_of_one_run() {
        true => String::new(),
        false => format!("<ul class=\"dim\">{items}</ul>\n"),
    }
}

/// Few groups side by side: the parameters that differ, then the figures.
fn in_columns(comparison: &Comparison, metrics: &[&str]) -> String {
    let mut out = legend(comparison);
    if !comparison.parameters.is_empty() {
        let parameters: Vec<Vec<String>> = comparison
            .parameters
            .iter()
            .map(|parameter| {
                let values = comparison_table::column(comparison, parameter);
                std::iter::once(escape(parameter))
                    .chain(values.iter().map(|value| escape(value)))
                    .collect()
            })
            .collect();
        let (first, others) = parameters.split_at(parameters.len().min(MOST_ROWS));
        let columns = group_columns(comparison, "setting");
        out.push_str(&format!(
            "<h2>What differs</h2>\n{}",
            figure_table::table(&columns, first)
        ));
        if !others.is_empty() {
            let table = figure_table::table(&columns, others);
            out.push_str(&html::collapsed(&format!("{} more settings", others.len()), &table));
        }
    }
    out.push_str("<h2>Figures that decide</h2>\n");
    out + &figures_in_columns(comparison, metrics)
}

/// A column for each group, after the one of the rows' titles.
fn group_columns(comparison: &Comparison, corner: &str) -> Vec<Column> {
    let groups = comparison.groups.iter().enumerate();
    let titles = groups.map(|(i, _)| format!("#{}", i + 1));
    std::iter::once(corner.to_owned())
        .chain(titles)
        .map(|title| Column::text(&title))
        .collect()
}

/// Figures by rows, groups by columns, and the difference of two groups.
fn figures_in_columns(comparison: &Comparison, metrics: &[&str]) -> String {
    let mut columns = group_columns(comparison, "figure");
    let pair = match comparison.groups.as_slice() {
        [first, second] => Some((first, second)),
        _ => None,
    };
    columns.extend(pair.map(|_| Column::text("#2 less #1")));
    let rows: Vec<Vec<String>> = metrics
        .iter()
        .map(|metric| {
            let term = figures::term(metric).unwrap_or_default();
            let mut row = vec![glossary::worded(term, &label(comparison, metric))];
            let groups = comparison.groups.iter();
            row.extend(groups.map(|group| in_cell(&cell(comparison, group, metric))));
            row.extend(pair.map(|(first, second)| {
                let less = difference(comparison, first, second, metric);
                escape(&less.unwrap_or_default())
            }));
            row
        })
        .collect();
    figure_table::table(&columns, &rows)
}

/// A figure as HTML, with what follows its unit in small type.
fn in_cell(text: &str) -> String {
    let (text, best) = match text.strip_suffix(" *") {
        Some(text) => (text, "&nbsp;*"),
        None => (text, ""),
    };
    let at = text
        .find(" [")
        .or_else(|| text.find(" ± "))
        .or_else(|| text.find(" (n"));
    let (figure, rest) = text.split_at(at.unwrap_or(text.len()));
    match rest.trim() {
        "" => together(figure) + best,
        rest => format!(
            "{}{best} <span class=\"dim\">{}</span>",
            together(figure),
            together(rest)
        ),
    }
}

/// Many groups below one another: the parameters that differ and the first figures.
fn in_rows(comparison: &Comparison, metrics: &[&str]) -> String {
    let table = figures_in_rows(comparison, &metrics[..metrics.len().min(MOST_FIGURES)]);
    format!("<h2>Groups</h2>\n{table}")
}

/// A row for each group with its parameters and these figures; what follows the first rows is collapsed.
fn figures_in_rows(comparison: &Comparison, metrics: &[&str]) -> String {
    let mut columns = vec![Column::text("group")];
    columns.extend(comparison.parameters.iter().map(|name| Column::text(name)));
    columns.extend(metrics.iter().map(|metric| {
        let name = metric.rsplit(['.', '/']).next().unwrap_or(metric);
        Column::words(name, &label(comparison, metric))
    }));
    let parameters = comparison.parameters.iter();
    let values: Vec<Vec<String>> = parameters
        .map(|parameter| comparison_table::column(comparison, parameter))
        .collect();
    let rows: Vec<Vec<String>> = comparison
        .groups
        .iter()
        .enumerate()
        .map(|(i, group)| {
            let mut row = vec![escape(&group_title(comparison, i, group))];
            row.extend(values.iter().map(|values| escape(&values[i])));
            row.extend(metrics.iter().map(|metric| in_cell(&cell(comparison, group, metric))));
            row
        })
        .collect();
    // The groups are sorted by the first metric.
    let (first, others) = rows.split_at(rows.len().min(MOST_ROWS));
    let mut out = figure_table::table(&columns, first);
    if !others.is_empty() {
        let summary = format!("the other {}", text::count(others.len(), "group"));
        out.push_str(&html::collapsed(&summary, &figure_table::table(&columns, others)));
    }
    out
}

/// Summarises many groups by one parameter at a time: the first metrics over all points that share a value.
fn by_parameter(comparison: &Comparison, metrics: &[&str]) -> String {
    let metrics = &metrics[..metrics.len().min(MOST_METRICS)];
    let mut rows = Vec::new();
    if comparison.groups.len() > MOST_LINES {
        for parameter in &comparison.parameters {
            let mut groups: Vec<(String, Group)> = Vec::new();
            for at in 0..comparison.points.len() {
                if groups.len() > MOST_LINES {
                    break;
                }
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
                row.extend(metrics.iter().map(|metric| in_cell(&cell(comparison, &group, metric))));
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut columns: Vec<Column> = ["parameter", "value", "points"].map(Column::text).into();
    columns.extend(metrics.iter().map(|metric| Column::text(&label(comparison, metric))));
    format!(
        "<h2>By parameter</h2>\n<p class=\"dim\">Mean ± sample standard deviation over all points with that \
        value, whatever their other parameters.</p>\n{}",
        figure_table::table(&columns, &rows)
    )
}

fn points(comparison: &Comparison, metrics: &[&str]) -> String {
    let metrics = &metrics[..metrics.len().min(MOST_FIGURES)];
    let mut columns: Vec<Column> = ["point", "group", "status"].map(Column::text).into();
    columns.extend(comparison.parameters.iter().map(|name| Column::text(name)));
    columns.extend(metrics.iter().map(|metric| Column::text(&label(comparison, metric))));
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
            for metric in metrics {
                row.push(in_cell(&cell(comparison, &only, metric)));
            }
            rows.push(row);
        }
    }
    figure_table::table(&columns, &rows)
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

/// The learning curves that are shown first, and all others.
fn charts(comparison: &Comparison) -> (String, String) {
    let mut names: BTreeSet<(usize, String)> = BTreeSet::new();
    for stage in comparison.points.iter().flat_map(|point| &point.stages) {
        for (name, curve) in &stage.figures.curves {
            if curve.len() > 1 && !is_time(name) {
                let place = FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
                names.insert((place, format!("{}{name}", stage.prefix)));
            }
        }
    }
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (_, name) in &names {
        let chart = lines(name, &series(comparison, name), Axis::Steps, 240.0);
        let list = if first.len() < MOST_CHARTS {
            &mut first
        } else {
            &mut others
        };
        list.push(chart);
    }
    if first.is_empty() {
        return (String::new(), String::new());
    }
    let grid = |charts: &[String]| format!("<div class=\"charts\">\n{}</div>\n", charts.concat());
    let others = if others.is_empty() {
        String::new()
    } else {
        grid(&others)
    };
    let mut about = "A line is the mean of a group where all its complete points have values, the band one \
        sample standard deviation to each side. Incomplete points have a line of their own."
        .to_owned();
    if comparison.groups.len() > MOST_LINES {
        about.push_str(&format!(
            " Of {} groups the first {MOST_LINES} are drawn.",
            comparison.groups.len()
        ));
    }
    let first = format!(
        "<h2>Learning curves</h2>\n<p class=\"dim\">{about}</p>\n{}",
        grid(&first)
    );
    (first, others)
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
        assert!(page.contains("<h2>Figures that decide</h2>"), "few groups are columns");
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
        // Five seeds, four rates and ten units; twelve groups; a header each. The rest is closed.
        assert_eq!(open.matches("<tr>").count(), (5 + 4 + 10) + 12 + 2);
        assert!(page.contains("the other 28 groups") && page.contains(">200 points</span>"));
        // A line for each point, and a dot over the rate, the units and the seed.
        assert_eq!(open.matches("<path class=\"c0 faint\"").count(), 200);
        assert_eq!(open.matches("<circle class=\"f0\"").count(), 3 * 200);
        // The mean over 50 points of a rate: 5 seeds of 0, 1, …, 9.
        assert!(open.contains("<td>4.50 <span class=\"dim\">± "), "{open}");
    }
}
