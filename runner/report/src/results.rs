//! The findings of the evaluations of a run, for its end: a sentence or a table of each, and a short table of
//! the figures that decide.

use crate::evaluation::{JOINS, of_trials};
use crate::figures::{self, Unit};
use crate::finding::{finding, is_bound, table_of};
use crate::glossary;
use cache::Store;
use runner_engine::text;
use runner_history::Run;
use serde_json::{Map, Value};

/// The metrics that are shown of series of returns, episodes, verdicts, plans and ranks, the most important
/// first: those for which there is no room are left to the report.
const SHOWN: [&str; 14] = [
    "total_return",
    "excess_return",
    "sharpe",
    "max_drawdown",
    "volatility",
    "costs",
    "turnover",
    "episodic_return",
    "accuracy",
    "success",
    "mrr",
    "hits_1",
    "hits_10",
    "auc_pr",
];

/// The metrics that are shown with their intervals.
const WITH_INTERVAL: [&str; 3] = ["excess_return", "sharpe", "episodic_return"];

/// The metric that is shown with the number of trials.
const DEFLATED: &str = "deflated_sharpe";

/// The rows of baselines are shown of so many evaluations, and of more the policies alone.
const MOST_WITH_BASELINES: usize = 2;

/// The maximum number of rows; longer tables are only in the report, but for what joins evaluations.
const MOST_ROWS: usize = 30;

/// The number of baselines with equal figures that are named.
const MOST_NAMED: usize = 3;

/// A strategy of an evaluation, with the values of [`SHOWN`].
#[derive(Clone)]
struct Row {
    name: String,
    is_policy: bool,
    values: Vec<Option<f64>>,
    cells: Vec<String>,
    /// The deflated Sharpe ratio and the number of trials, of a policy.
    deflated: Option<(f64, f64)>,
}

impl Row {
    fn new(name: String, summary: &Map<String, Value>, prefix: &str) -> Self {
        let value = |name: &str| summary.get(&format!("{prefix}{name}")).and_then(Value::as_f64);
        let cell = |name: &&str| {
            let (Some(mean), unit) = (value(name), Unit::of(name)) else {
                return String::new();
            };
            let ends = [format!("{name}_low"), format!("{name}_high")].map(|end| value(&end));
            match ends {
                [Some(low), Some(high)] if WITH_INTERVAL.contains(name) => {
                    figures::with_interval(mean, low, high, unit)
                }
                _ => figures::shown(mean, unit),
            }
        };
        let trials = summary.get("trials").and_then(Value::as_f64);
        Self {
            name,
            is_policy: prefix.is_empty(),
            values: SHOWN.iter().map(|name| value(name)).collect(),
            cells: SHOWN.iter().map(cell).collect(),
            deflated: value(DEFLATED).zip(trials).filter(|_| prefix.is_empty()),
        }
    }
}

/// The finding of each evaluation of a run, and a table of them, with the policy first. A stage
/// that joins evaluations (a study, a walk-forward) comes before these, and is alone shown of too many, with
/// the best of the others.
pub fn results_table(run: &Run, store: &Store) -> String {
    let ((joined, joins), (found, mut others)) = (rows(run, store, true), rows(run, store, false));
    let policies = |rows: &[Row]| rows.iter().filter(|row| row.is_policy).count();
    let mut left_out = "";
    if policies(&joins) + policies(&others) > MOST_WITH_BASELINES {
        let before = others.len();
        others.retain(|row| row.is_policy);
        if others.len() < before {
            left_out = "the baselines of each are in the report\n";
        }
    }
    match joins.len() + others.len() {
        0 => joined + &found,
        1..=MOST_ROWS => joined + &found + &table(&[joins, others].concat()) + left_out,
        _ if joins.is_empty() || joins.len() > MOST_ROWS => joined + &best(&others),
        _ => joined + &table(&joins) + &best(&others),
    }
}

/// The best of many evaluations by the deflated Sharpe ratio.
fn best(rows: &[Row]) -> String {
    let tested = rows.iter().filter_map(|row| Some((row, row.deflated?)));
    let best = tested.max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    let line = best.map(|(row, deflated)| {
        format!("best deflated Sharpe ratio: {}, {}\n", row.name, deflated_of(deflated))
    });
    line.unwrap_or_default()
}

/// The deflated Sharpe ratio, with the number of trials by which it is deflated.
fn deflated_of((value, trials): (f64, f64)) -> String {
    format!("{} {}", figures::shown(value, Unit::of(DEFLATED)), of_trials(trials))
}

/// The findings of the evaluations that join others, or of the others, and their rows.
fn rows(run: &Run, store: &Store, joins: bool) -> (String, Vec<Row>) {
    let mut rows: Vec<Row> = Vec::new();
    let mut findings = String::new();
    let is_meant = |kind: &str| kind.starts_with("evaluate/") && joins == JOINS.contains(&kind);
    for stage in run.stages.iter().filter(|stage| is_meant(&stage.kind)) {
        let Some(Ok(artifact)) = stage.outputs.get("metrics").map(|digest| store.artifact(*digest)) else {
            continue;
        };
        let Some(summary) = artifact.meta["summary"].as_object() else {
            continue;
        };
        let found = finding(store, &artifact);
        if table_of(store, &artifact).is_some() {
            findings.push_str(&format!("{}\n\n{found}\n", stage.id));
            continue;
        }
        if !found.is_empty() {
            findings.push_str(&text::folded(&format!("{}: {found}", stage.id)));
        }
        rows.push(Row::new(stage.id.clone(), summary, ""));
        rows.extend(baselines(summary));
    }
    (findings, rows)
}

/// The baselines of an evaluation, the best first; those with equal figures share a row.
fn baselines(summary: &Map<String, Value>) -> Vec<Row> {
    let keys = summary
        .keys()
        .filter_map(|key| key.strip_prefix("baseline/")?.split('/').next());
    let mut names: Vec<&str> = keys.collect();
    names.dedup();
    let mut rows: Vec<(Vec<String>, Row)> = Vec::new();
    for name in names {
        let row = Row::new(String::new(), summary, &format!("baseline/{name}/"));
        let title = match is_bound(name) {
            true => format!("{} (a bound)", glossary::title(name)),
            false => glossary::title(name),
        };
        match rows
            .iter_mut()
            .find(|(_, other)| other.values == row.values && other.cells == row.cells)
        {
            Some((titles, _)) => titles.push(title),
            None => rows.push((vec![title], row)),
        }
    }
    let first = |row: &Row| row.values.iter().flatten().next().copied().unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|(_, a), (_, b)| first(b).total_cmp(&first(a)));
    let named = |(titles, row): (Vec<String>, Row)| Row {
        name: format!("  {}", text::some(titles.iter().map(String::as_str), MOST_NAMED)),
        ..row
    };
    rows.into_iter().map(named).collect()
}

/// The rows, with as many metrics as there is room for.
fn table(rows: &[Row]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            std::iter::once(row.name.clone())
                .chain(row.cells.iter().cloned())
                .collect()
        })
        .collect();
    let titles: Vec<String> = SHOWN.iter().map(|name| glossary::title(name)).collect();
    let heads: Vec<&str> = std::iter::once("evaluation")
        .chain(titles.iter().map(String::as_str))
        .collect();
    let is_used = |column: &usize| *column == 0 || cells.iter().any(|row| !row[*column].is_empty());
    let used: Vec<usize> = (0..heads.len()).filter(is_used).collect();
    let kept = &used[..text::fitting(&heads, &cells, &used)];
    let head: Vec<&str> = kept.iter().map(|&at| heads[at]).collect();
    let cells: Vec<Vec<String>> = cells
        .iter()
        .map(|row| kept.iter().map(|&at| row[at].clone()).collect())
        .collect();
    let right: Vec<usize> = (1..head.len()).collect();
    let mut out = text::table(&head, &cells, &right);
    for row in rows {
        if let Some(deflated) = row.deflated {
            let title = glossary::title(DEFLATED);
            out.push_str(&format!("{}: {title} {}\n", row.name, deflated_of(deflated)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_baselines_share_a_row_the_best_first_and_the_table_fits() {
        let mut summary = Map::new();
        let mut add = |prefix: &str, total: f64| {
            for (name, value) in [
                ("total_return", total),
                ("excess_return", total / 2.0),
                ("excess_return_low", total / 2.0 - 0.18),
                ("excess_return_high", total / 2.0 + 0.19),
                ("sharpe", 0.51),
                ("sharpe_low", -0.1),
                ("sharpe_high", 1.1),
                ("max_drawdown", -0.12),
                ("volatility", 0.151),
                ("costs", 0.0123),
                ("turnover", 12.34),
            ] {
                summary.insert(format!("{prefix}{name}"), json!(value));
            }
        };
        add("", 0.1541);
        for (name, total) in [("cash", 0.01), ("equal_weight", 0.21), ("momentum", 0.01)] {
            add(&format!("baseline/{name}/"), total);
        }
        summary.insert("trials".to_owned(), json!(20));
        summary.insert(DEFLATED.to_owned(), json!(0.31));
        let rows = [vec![Row::new("evaluate".to_owned(), &summary, "")], baselines(&summary)].concat();
        let shown = table(&rows);
        let names: Vec<&str> = rows.iter().map(|row| row.name.trim()).collect();
        assert_eq!(names.len(), 3, "{shown}");
        assert!(
            names[1].contains("equal weight") && names[2].contains("cash"),
            "{shown}"
        );
        assert!(names[2].contains("momentum"), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= text::WIDTH), "{shown}");
        assert!(
            lines[1].contains("15.4 %") && lines[1].contains("7.70 % [−10.3, 26.7]"),
            "{shown}"
        );
        assert!(lines[4].ends_with("0.310 of 20 trials"), "{shown}");
    }
}
