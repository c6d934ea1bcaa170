//! A comparison as a table: for the terminal, as Markdown, or as CSV.

use runner_engine::{RunStatus, text};
use runner_history::compare::{Comparison, Group, Outcome, Point};

/// The maximum number of groups that are shown as columns; more groups are shown as rows.
const MOST_COLUMNS: usize = 5;

/// The maximum number of metrics in a row.
const MOST_METRICS: usize = 6;

/// The statistics of a metric as text: `1.25 ± 0.31 (n=3)`, `*` for the best, `n=2 of 3` if values are
/// missing.
fn cell(outcome: &Outcome, best: bool) -> String {
    let Some(spread) = outcome.spread else {
        return "-".to_owned();
    };
    let mut cell = spread.shown();
    if spread.n < outcome.of {
        cell.push_str(&format!(" (n={} of {})", spread.n, outcome.of));
    } else if spread.n > 1 {
        cell.push_str(&format!(" (n={})", spread.n));
    }
    if best {
        cell.push_str(" *");
    }
    cell
}

/// The maximum length of a value in characters: longer values, such as commands, are truncated.
const LONGEST: usize = 40;

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

/// The rows of a table as cells, the header first.
pub(super) struct Sheet(pub Vec<Vec<String>>);

impl Sheet {
    /// Creates a row for each group: `#`, runs, parameters, the status if a group is not done, and the first
    /// metrics.
    fn new(comparison: &Comparison, metrics: usize) -> Self {
        let metrics = &comparison.metrics[..metrics.min(comparison.metrics.len())];
        let runs = !comparison.is_of_one_run();
        let status = comparison.points.iter().any(|point| point.status != "done");
        let mut head = vec!["#".to_owned()];
        head.extend(runs.then(|| "run".to_owned()));
        head.extend(comparison.parameters.iter().cloned());
        head.extend(status.then(|| "status".to_owned()));
        head.extend(metrics.iter().cloned());
        let mut lines = vec![head];
        let columns = comparison
            .parameters
            .iter()
            .map(|parameter| column(comparison, parameter));
        let columns: Vec<Vec<String>> = columns.collect();
        for (i, group) in comparison.groups.iter().enumerate() {
            let mut line = vec![format!("#{}", i + 1)];
            line.extend(runs.then(|| text::some(comparison.runs(group), 3)));
            line.extend(columns.iter().filter_map(|column| column.get(i).cloned()));
            line.extend(status.then(|| self::status(comparison, group)));
            for metric in metrics {
                line.push(cell(
                    &comparison.outcome(group, metric),
                    comparison.is_best(group, metric),
                ));
            }
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

    /// Arranges the table: few groups are columns with all metrics, many groups are rows with the first
    /// `metrics`.
    pub(crate) fn arranged(comparison: &Comparison, metrics: usize) -> Self {
        match comparison.groups.len() <= MOST_COLUMNS {
            true => Self::new(comparison, usize::MAX).turned(),
            false => Self::new(comparison, metrics),
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
    let mut ended: Vec<(&str, &str)> = Vec::new();
    for point in &comparison.points {
        let run = (point.called.as_str(), point.run_status.name());
        let other = undone.iter().any(|undone| undone.run == point.run);
        if point.run_status != RunStatus::Done && !other && !ended.contains(&run) {
            ended.push(run);
        }
    }
    for (run, status) in ended.iter().take(MOST_NOTES) {
        notes.push(format!(
            "run {run} is not done ({status}), but what is compared of it is complete"
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
            "mean ± sample standard deviation of n values that differ in {} alone",
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
            "{} as these do; --all shows them",
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
        1 => "1 setting of stages differs".to_owned(),
        n => format!("{n} settings of stages differ"),
    }
}

fn are(n: usize) -> String {
    match n {
        1 => "1 metric is".to_owned(),
        n => format!("{n} metrics are"),
    }
}

/// Formats the comparison for the terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    if let Some(point) = comparison.points.first().filter(|_| comparison.is_of_one_run()) {
        out.push_str(&format!("run {}\n", point.called));
    }
    let sheet = Sheet::arranged(comparison, MOST_METRICS);
    if let Some((head, lines)) = sheet.0.split_first() {
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        out.push_str(&text::table(&head, lines, &[]));
    }
    let hidden = comparison.metrics.len().saturating_sub(MOST_METRICS);
    if comparison.groups.len() > MOST_COLUMNS && hidden > 0 {
        out.push_str(&format!(
            "{} in --csv, --json and --html; --metric NAME chooses\n",
            text::count(hidden, "more metric")
        ));
    }
    for note in notes(comparison) {
        out.push_str(&format!("{note}\n"));
    }
    out
}

/// Formats the comparison as a Markdown table.
pub fn markdown(comparison: &Comparison) -> String {
    let sheet = Sheet::arranged(comparison, usize::MAX);
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
