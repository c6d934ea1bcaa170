//! The findings of the evaluations of a run, for its end: a sentence or a table of each, and a short table.

use crate::evaluation::{JOINS, of_trials};
use crate::finding::{finding, table_of};
use cache::Store;
use runner_engine::text;
use runner_history::Run;
use serde_json::Value;

/// The metrics that are shown for series of returns, episodes, verdicts, plans and ranks.
const SHOWN: [&str; 14] = [
    "total_return",
    "annual_return",
    "volatility",
    "sharpe",
    DEFLATED,
    "max_drawdown",
    "costs",
    "episodic_return",
    "accuracy",
    "success",
    "mrr",
    "hits_1",
    "hits_10",
    "auc_pr",
];

/// The metric that is shown with the number of trials.
const DEFLATED: &str = "deflated_sharpe";

/// The maximum number of rows; longer tables are only in the report, but for what joins evaluations.
const MOST_ROWS: usize = 30;

/// A strategy of an evaluation, with the values of [`SHOWN`].
#[derive(Clone)]
struct Row {
    name: String,
    values: Vec<Option<f64>>,
    /// The number of trials, of a policy.
    trials: Option<f64>,
}

impl Row {
    fn shown(&self, i: usize) -> String {
        let value = self.values[i].map(|value| format!("{value:.4}")).unwrap_or_default();
        match self.trials.filter(|_| SHOWN[i] == DEFLATED && !value.is_empty()) {
            Some(trials) => format!("{value} {}", of_trials(trials)),
            None => value,
        }
    }
}

/// The finding of each evaluation of a run, and a table of them, with the policy first. A stage
/// that joins evaluations (a study, a walk-forward) comes before these, and is alone shown of too many, with
/// the best of the others.
pub fn results_table(run: &Run, store: &Store) -> String {
    let ((joined, joins), (found, others)) = (rows(run, store, true), rows(run, store, false));
    match joins.len() + others.len() {
        0 => joined + &found,
        1..=MOST_ROWS => joined + &found + &table(&[joins, others].concat()),
        _ if joins.is_empty() || joins.len() > MOST_ROWS => joined + &best(&others),
        _ => joined + &table(&joins) + &best(&others),
    }
}

/// The best of many evaluations by the deflated Sharpe ratio.
fn best(rows: &[Row]) -> String {
    let deflated = SHOWN.iter().position(|name| *name == DEFLATED);
    let value = |row: &Row| row.values[deflated?].filter(|_| row.trials.is_some());
    let tested = rows.iter().filter_map(|row| Some((row, value(row)?)));
    let best = tested.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let line = best
        .zip(deflated)
        .map(|((row, _), i)| format!("best deflated Sharpe ratio: {}, {}\n", row.name, row.shown(i)));
    line.unwrap_or_default()
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
            findings.push_str(&format!("{}: {found}", stage.id));
        }
        let values = |prefix: &str| -> Vec<Option<f64>> {
            let value = |name: &str| summary.get(&format!("{prefix}{name}")).and_then(Value::as_f64);
            SHOWN.iter().map(|name| value(name)).collect()
        };
        let trials = summary.get("trials").and_then(Value::as_f64);
        rows.push(Row {
            name: stage.id.clone(),
            values: values(""),
            trials,
        });
        for kind in ["baseline/", "ablation/"] {
            let mut names: Vec<&str> = summary
                .keys()
                .filter_map(|key| key.strip_prefix(kind)?.split('/').next())
                .collect();
            names.dedup();
            for name in names {
                let values = values(&format!("{kind}{name}/"));
                // Some ablations store only losses.
                if kind == "baseline/" || values.iter().any(Option::is_some) {
                    rows.push(Row {
                        name: format!("  {name}"),
                        values,
                        trials: None,
                    });
                }
            }
        }
    }
    (findings, rows)
}

fn table(rows: &[Row]) -> String {
    let columns: Vec<usize> = (0..SHOWN.len())
        .filter(|&i| rows.iter().any(|row| row.values[i].is_some()))
        .collect();
    let mut head = vec!["evaluation"];
    head.extend(columns.iter().map(|&i| SHOWN[i]));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let cells = columns.iter().map(|&i| row.shown(i));
            std::iter::once(row.name.clone()).chain(cells).collect()
        })
        .collect();
    let right: Vec<usize> = (1..head.len()).collect();
    text::table(&head, &cells, &right)
}
