//! A comparison as a table: for the terminal, as Markdown, or as CSV.

use super::comparison_rows::{cell, difference, rows};
use runner_engine::{RunStatus, text};
use runner_history::compare::{Comparison, Group, Point};
use std::collections::HashSet;

/// The maximum number of groups that are shown as columns; more groups are shown as rows.
const MOST_COLUMNS: usize = 5;

/// The maximum number of metrics in a row.
const MOST_METRICS: usize = 6;

/// The number of metrics that are all shown; of more, those that decide.
const FEW_METRICS: usize = 12;

/// The maximum number of rows of settings that differ.
const MOST_PARAMETERS: usize = 16;

/// The maximum number of rows of groups.
const MOST_ROWS: usize = 40;

/// The maximum length of a value in characters: longer values, such as commands, are truncated.
const LONGEST: usize = 36;

/// The values of a parameter for each group. Long values start where they differ.
pub(super) fn column(comparison: &Comparison, parameter: &str) -> Vec<String> {
    let values: Vec<Vec<String>> = comparison
        .groups
        .iter()
        .map(|group| comparison.values(group, parameter))
        .collect();
    let mut all = values.iter().flatten();
    let first: Vec<char> = all.next().map(|value| value.chars().collect()).unwrap_or_default();
    let common = all
        .filter(|value| !value.chars().eq(first.iter().copied()))
        .map(|value| value.chars().zip(&first).take_while(|(a, b)| a == *b).count())
        .min()
        .unwrap_or(0);
    let shown = |value: &String| match value.chars().count() {
        0..=LONGEST => value.replace(char::is_control, " "),
        length => {
            // Keeps a few characters of context.
            let from = common.saturating_sub(8);
            let inside: String = value.chars().skip(from).take(LONGEST - 2).collect();
            let (before, after) = (
                ["", "…"][usize::from(from > 0)],
                ["", "…"][usize::from(from + LONGEST - 2 < length)],
            );
            format!("{before}{}{after}", inside.replace(char::is_control, " "))
        }
    };
    let cell = |values: &Vec<String>| {
        let values: Vec<String> = values.iter().map(shown).collect();
        let long = values.iter().any(|value| value.chars().count() > LONGEST / 2);
        text::some(values.iter().map(String::as_str), if long { 1 } else { 8 })
    };
    values.iter().map(cell).collect()
}

/// The metrics of a table: those that were asked for, or few; of many those that decide.
fn shown(comparison: &Comparison) -> Vec<&str> {
    if comparison.is_complete {
        return comparison.metrics.iter().map(String::as_str).collect();
    }
    let (mut first, rest) = rows(comparison);
    if first.len() + rest.len() <= FEW_METRICS {
        first.extend(rest);
    }
    first
}

/// The rows of a table as cells, the header first.
struct Sheet(Vec<Vec<String>>);

impl Sheet {
    /// Creates a row for each group: `#`, runs, parameters, the status if a group is not done, and metrics;
    /// of two groups also a row of their differences.
    fn new(comparison: &Comparison, parameters: &[String], metrics: &[&str]) -> Self {
        let runs = !comparison.is_of_one_run();
        let status = comparison.points.iter().any(|point| point.status != "done");
        let mut head = vec!["#".to_owned()];
        head.extend(runs.then(|| "run".to_owned()));
        head.extend(parameters.iter().cloned());
        head.extend(status.then(|| "status".to_owned()));
        let facts = head.len();
        head.extend(metrics.iter().map(|&metric| metric.to_owned()));
        let mut lines = vec![head];
        let columns = parameters.iter().map(|parameter| column(comparison, parameter));
        let columns: Vec<Vec<String>> = columns.collect();
        for (i, group) in comparison.groups.iter().enumerate() {
            let mut line = vec![format!("#{}", i + 1)];
            line.extend(runs.then(|| text::some(comparison.runs(group), 3)));
            line.extend(columns.iter().filter_map(|column| column.get(i).cloned()));
            line.extend(status.then(|| self::status(comparison, group)));
            line.extend(metrics.iter().map(|metric| cell(comparison, group, metric)));
            lines.push(line);
        }
        if let [first, second] = comparison.groups.as_slice() {
            let mut line = vec![String::new(); facts];
            line[0] = "#2 less #1".to_owned();
            let less = |metric: &&str| difference(comparison, first, second, metric).unwrap_or_default();
            line.extend(metrics.iter().map(less));
            lines.push(line);
        }
        Self(lines)
    }

    /// The transposed table.
    fn turned(self) -> Self {
        let width = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let column = |i: usize| {
            self.0
                .iter()
                .map(|line| line.get(i).cloned().unwrap_or_default())
                .collect()
        };
        Self((0..width).map(column).collect())
    }

    /// Arranges the table: few groups are columns, many groups are rows.
    fn arranged(comparison: &Comparison, parameters: &[String], metrics: &[&str]) -> Self {
        let rows = Self::new(comparison, parameters, metrics);
        match comparison.groups.len() <= MOST_COLUMNS {
            true => rows.turned(),
            false => rows,
        }
    }
}

/// `done`, or the number of points by status.
pub(super) fn status(comparison: &Comparison, group: &Group) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for point in comparison.members(group) {
        match counts.iter_mut().find(|(status, _)| *status == point.status) {
            Some((_, n)) => *n += 1,
            None => counts.push((point.status, 1)),
        }
    }
    match counts.as_slice() {
        [(status, _)] => (*status).to_owned(),
        several => several
            .iter()
            .map(|(status, n)| format!("{n} {status}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The maximum number of notes of a kind.
const MOST_NOTES: usize = 10;

/// Notes that explain the table.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let undone: Vec<&Point> = comparison
        .points
        .iter()
        .filter(|point| point.status != "done")
        .collect();
    for point in undone.iter().take(MOST_NOTES) {
        let error = point.error.as_ref().and_then(|error| error.lines().next());
        let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
        notes.push(format!("{} is not complete: {}{error}", point.label(), point.status));
    }
    if undone.len() > MOST_NOTES {
        notes.push(format!("{} more are not complete", undone.len() - MOST_NOTES));
    }
    let undone_runs: HashSet<&str> = undone.iter().map(|point| point.run.as_str()).collect();
    let (mut ended, mut told) = (Vec::new(), HashSet::new());
    for point in &comparison.points {
        let run = (point.called.as_str(), point.run_status.name());
        let is_other = point.run_status != RunStatus::Done && !undone_runs.contains(point.run.as_str());
        if is_other && told.insert(run) {
            ended.push(run);
        }
    }
    for (run, status) in ended.iter().take(MOST_NOTES) {
        notes.push(format!(
            "run {run} is not done ({status}), but what is compared here is complete"
        ));
    }
    let repeated = |group: &Group| {
        let spread = comparison
            .metrics
            .iter()
            .filter_map(|metric| comparison.outcome(group, metric).spread);
        spread.map(|spread| spread.n).max().unwrap_or(0) > 1
    };
    if comparison.groups.iter().any(repeated) {
        notes.push(format!(
            "mean ± sample standard deviation of n values that differ only in {}",
            comparison.over.join(", ")
        ));
    }
    if let Some(first) = comparison.metrics.first().filter(|_| comparison.groups.len() > 1) {
        let order = match comparison.higher_is_better(first) {
            Some(true) => "highest first; * is the best",
            Some(false) => "lowest first; * is the best",
            None => "highest first",
        };
        notes.push(format!("sorted by {first}, {order}"));
    }
    if comparison.following > 0 {
        notes.push(format!(
            "{} as a consequence; --all shows them",
            differ(comparison.following)
        ));
    }
    if comparison.equal > 0 {
        notes.push(format!(
            "{} the same everywhere; --all shows them",
            are(comparison.equal)
        ));
    }
    notes
}

fn differ(n: usize) -> String {
    match n {
        1 => "1 stage setting differs".to_owned(),
        n => format!("{n} stage settings differ"),
    }
}

fn are(n: usize) -> String {
    match n {
        1 => "1 metric is".to_owned(),
        n => format!("{n} metrics are"),
    }
}

/// Formats the comparison for the terminal: the figures that decide, as many as there is room for.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    if let Some(point) = comparison.points.first().filter(|_| comparison.is_of_one_run()) {
        out.push_str(&format!("run {}\n", point.called));
    }
    let metrics = shown(comparison);
    let has_columns = comparison.groups.len() <= MOST_COLUMNS;
    let most = if has_columns {
        metrics.len()
    } else {
        metrics.len().min(MOST_METRICS)
    };
    let parameters = &comparison.parameters;
    let most_settings = parameters.len().min(MOST_PARAMETERS);
    let settings = match (comparison.is_complete, has_columns) {
        (true, _) => parameters.len(),
        (_, true) => most_settings,
        // Columns: those for which there is room beside a metric.
        (_, false) => {
            let fit = |n: &usize| {
                let Sheet(lines) = Sheet::arranged(comparison, &parameters[..*n], &metrics[..most.min(1)]);
                let head: Vec<&str> = lines[0].iter().map(String::as_str).collect();
                let all: Vec<usize> = (0..head.len()).collect();
                text::fitting(&head, &lines[1..], &all) == all.len()
            };
            (0..=most_settings).rev().find(fit).unwrap_or(0)
        }
    };
    let Sheet(mut lines) = Sheet::arranged(comparison, &parameters[..settings], &metrics[..most]);
    let mut count = most;
    if !has_columns {
        // The metrics are the last columns: those for which there is no room are left out, but for the first.
        let width = lines[0].len();
        let head: Vec<&str> = lines[0].iter().map(String::as_str).collect();
        let all: Vec<usize> = (0..width).collect();
        let kept = text::fitting(&head, &lines[1..], &all).max(width - most + most.min(1));
        lines.iter_mut().for_each(|line| line.truncate(kept));
        count = most - (width - kept);
    }
    let (head, rows) = lines.split_at(1);
    let listed = if has_columns {
        rows.len()
    } else {
        rows.len().min(MOST_ROWS)
    };
    let head: Vec<&str> = head[0].iter().map(String::as_str).collect();
    out.push_str(&text::table(&head, &rows[..listed], &[]));
    if rows.len() > listed {
        let more = text::count(rows.len() - listed, "more group");
        out.push_str(&format!("and {more}: --csv has all, --html draws them\n"));
    }
    if settings < parameters.len() {
        let more = text::count(parameters.len() - settings, "more differing setting");
        out.push_str(&format!("and {more}: --all shows them\n"));
    }
    let hidden = comparison.metrics.len() - count;
    if hidden > 0 {
        let how = match has_columns {
            true => "--all shows them",
            false => "in --csv, --json and --html; --metric NAME chooses",
        };
        out.push_str(&format!("{}: {how}\n", text::count(hidden, "more metric")));
    }
    for note in notes(comparison) {
        out.push_str(&format!("{note}\n"));
    }
    out
}

/// Formats the comparison as a Markdown table.
pub fn markdown(comparison: &Comparison) -> String {
    let sheet = Sheet::arranged(comparison, &comparison.parameters, &shown(comparison));
    let mut out = String::new();
    for (i, cells) in sheet.0.iter().enumerate() {
        out.push_str(&markdown_line(cells));
        if i == 0 {
            out.push_str(&format!("|{}\n", " --- |".repeat(cells.len())));
        }
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        out.push('\n');
        notes
            .iter()
            .for_each(|note| out.push_str(&format!("- {}\n", escaped(note))));
    }
    out
}

/// Formats the comparison as CSV (RFC 4180): a row for each group, with mean, standard deviation and count of
/// every metric in full precision; empty if there are no values.
pub fn csv(comparison: &Comparison) -> String {
    let mut head: Vec<String> = ["group", "runs", "points", "status"].map(ToOwned::to_owned).into();
    head.extend(comparison.parameters.iter().cloned());
    for metric in &comparison.metrics {
        head.extend([metric.clone(), format!("{metric}.sd"), format!("{metric}.n")]);
    }
    let mut out = csv_line(&head);
    for (i, group) in comparison.groups.iter().enumerate() {
        let mut cells = vec![
            (i + 1).to_string(),
            comparison.runs(group).join(" "),
            group.points.len().to_string(),
            status(comparison, group),
        ];
        for parameter in &comparison.parameters {
            cells.push(comparison.values(group, parameter).join(" "));
        }
        for metric in &comparison.metrics {
            let spread = comparison.outcome(group, metric).spread;
            cells.push(spread.map(|spread| spread.mean.to_string()).unwrap_or_default());
            cells.push(
                spread
                    .and_then(|spread| spread.sd)
                    .map(|sd| sd.to_string())
                    .unwrap_or_default(),
            );
            cells.push(spread.map_or(0, |spread| spread.n).to_string());
        }
        out.push_str(&csv_line(&cells));
    }
    out
}

/// A text of one line in which `|` separates no cells.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace(['\n', '\r'], " ")
}

/// A line of a Markdown table.
pub(crate) fn markdown_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A line of CSV (RFC 4180).
pub(crate) fn csv_line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
