//! A short table of evaluation results for the end of a run.

use crate::evaluation::WALK_FORWARD;
use cache::Store;
use runner_engine::text;
use runner_history::Run;
use serde_json::Value;

/// The metrics that are shown for series of returns, episodes, verdicts, plans and ranks.
const SHOWN: [&str; 13] = [
    "total_return",
    "annual_return",
    "volatility",
    "sharpe",
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

/// The maximum number of rows; longer tables are only in the report, but for what joins evaluations.
const MOST_ROWS: usize = 30;

/// A table of the evaluations of a run, with the policy before its baselines, and what joins evaluations (a
/// walk-forward) before what it joins. Of too many rows only the joins are shown; empty if there are none.
pub fn results_table(run: &Run, store: &Store) -> String {
    let (joins, others) = (rows(run, store, true), rows(run, store, false));
    match joins.len() + others.len() {
        0 => String::new(),
        ..=MOST_ROWS => table([joins, others].concat()),
        _ if joins.is_empty() || joins.len() > MOST_ROWS => String::new(),
        _ => table(joins),
    }
}

/// The rows of the evaluations that join others, or of the others.
fn rows(run: &Run, store: &Store, joins: bool) -> Vec<(String, Vec<Option<f64>>)> {
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    let is_meant = |kind: &str| kind.starts_with("evaluate/") && joins == (kind == WALK_FORWARD);
    for stage in run.stages.iter().filter(|stage| is_meant(&stage.kind)) {
        let Some(Ok(artifact)) = stage.outputs.get("metrics").map(|digest| store.artifact(*digest)) else {
            continue;
        };
        let Some(summary) = artifact.meta["summary"].as_object() else {
            continue;
        };
        let values = |prefix: &str| -> Vec<Option<f64>> {
            let value = |name: &str| summary.get(&format!("{prefix}{name}")).and_then(Value::as_f64);
            SHOWN.iter().map(|name| value(name)).collect()
        };
        rows.push((stage.id.clone(), values("")));
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
                    rows.push((format!("  {name}"), values));
                }
            }
        }
    }
    rows
}

fn table(rows: Vec<(String, Vec<Option<f64>>)>) -> String {
    let columns: Vec<usize> = (0..SHOWN.len())
        .filter(|&i| rows.iter().any(|(_, values)| values[i].is_some()))
        .collect();
    let mut head = vec!["evaluation"];
    head.extend(columns.iter().map(|&i| SHOWN[i]));
    let cells: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, values)| {
            let cell = |&i: &usize| values[i].map(|value| format!("{value:.4}")).unwrap_or_default();
            std::iter::once(name).chain(columns.iter().map(cell)).collect()
        })
        .collect();
    let right: Vec<usize> = (1..head.len()).collect();
    text::table(&head, &cells, &right)
}
