//! A backtest against its baselines.

use super::chart::{Axis, Series, lines, number, strips};
use super::html::{escape, table};
use arrow::array::{Array as _, RecordBatch};
use cache::Store;
use runner_history::{StageRun, figures};
use stages_core::table as columns;
use std::collections::BTreeMap;

/// The measures in the order of the table.
const MEASURES: [&str; 14] = [
    "total_return",
    "annual_return",
    "volatility",
    "sharpe",
    "sharpe_low",
    "sharpe_high",
    "sortino",
    "max_drawdown",
    "calmar",
    "var_95",
    "cvar_95",
    "hit_rate",
    "turnover",
    "costs",
];

/// The section of an evaluation stage; empty for other stages.
pub(super) fn section(stage: &StageRun, store: &Store) -> String {
    if !stage.kind.starts_with("evaluate/") {
        return String::new();
    }
    let mut out = format!("<h2>Evaluation: {}</h2>\n", escape(&stage.id));
    let Some(metrics) = figures::curves(stage, store) else {
        out.push_str("<p class=\"dim\">No metrics are stored for this stage.</p>\n");
        return out;
    };
    let value = |name: &str| metrics.get(name).and_then(|points| points.last()).map(|point| point.1);
    out.push_str(&measures(&metrics, &value));
    if let Some(trajectory) = trajectory(stage, store) {
        out.push_str(&paths(&trajectory));
    }
    out
}

fn measures(metrics: &BTreeMap<String, Vec<(f64, f64)>>, value: &dyn Fn(&str) -> Option<f64>) -> String {
    let shown = |value: Option<f64>| match value {
        Some(value) if value.is_finite() => number(value),
        _ => "–".to_owned(),
    };
    if value("total_return").is_none() {
        let rows: Vec<_> = metrics
            .iter()
            .map(|(name, points)| vec![escape(name), shown(points.last().map(|point| point.1))])
            .collect();
        return table(&["measure", "value"], &rows);
    }
    let mut baselines: Vec<&str> = metrics
        .keys()
        .filter_map(|name| {
            name.strip_prefix("baseline/")?
                .split_once('/')
                .map(|(baseline, _)| baseline)
        })
        .collect();
    baselines.dedup();
    let mut head = vec!["", "policy"];
    head.extend(&baselines);
    let rows: Vec<_> = MEASURES
        .iter()
        .filter(|name| metrics.contains_key(**name))
        .map(|name| {
            let mut row = vec![name.replace('_', " "), shown(value(name))];
            row.extend(
                baselines
                    .iter()
                    .map(|baseline| shown(value(&format!("baseline/{baseline}/{name}")))),
            );
            row
        })
        .collect();
    table(&head, &rows)
}

/// The first path of each strategy.
struct Path {
    days: Vec<f64>,
    columns: BTreeMap<&'static str, Vec<f64>>,
    actions: Vec<String>,
}

fn trajectory(stage: &StageRun, store: &Store) -> Option<Vec<(String, Path)>> {
    let artifact = store.artifact(*stage.outputs.get("trajectory")?).ok()?;
    let blob = store.blob(artifact.entry("trajectory.parquet")?.blob).ok()?;
    split(&columns::from_parquet(blob).ok()?)
}

fn split(table: &RecordBatch) -> Option<Vec<(String, Path)>> {
    let strategies = columns::texts(table, "strategy").ok()?;
    let path = columns::floats(table, "path").ok()?;
    let times = columns::snapshot_times(table).ok()?;
    let actions = columns::texts(table, "action").ok()?;
    let names = ["nav", "delta", "vega", "costs", "margin"];
    let values = names.map(|name| columns::floats_or_nan(table, name).unwrap_or_default());
    let mut found: Vec<(String, Path)> = Vec::new();
    for i in (0..table.num_rows()).filter(|&i| path.value(i) == 0.0) {
        if found.last().is_none_or(|(name, _)| name != strategies.value(i)) {
            let empty = Path {
                days: Vec::new(),
                columns: BTreeMap::new(),
                actions: Vec::new(),
            };
            found.push((strategies.value(i).to_owned(), empty));
        }
        let Some((_, one)) = found.last_mut() else {
            continue;
        };
        one.days.push(times[i].days());
        for (name, values) in names.iter().zip(&values) {
            one.columns
                .entry(name)
                .or_default()
                .push(values.get(i).copied().unwrap_or(f64::NAN));
        }
        one.actions.push(if actions.is_null(i) {
            String::new()
        } else {
            actions.value(i).to_owned()
        });
    }
    Some(found)
}

fn paths(paths: &[(String, Path)]) -> String {
    let chart = |title: &str, of: &dyn Fn(&Path) -> Vec<f64>, which: &dyn Fn(usize) -> bool| {
        let series: Vec<Series> = paths
            .iter()
            .enumerate()
            .filter(|(i, _)| which(*i))
            .map(|(_, (name, path))| Series::line(name, path.days.iter().copied().zip(of(path)).collect()))
            .collect();
        lines(title, &series, Axis::Days, 260.0)
    };
    let column = |name: &'static str| move |path: &Path| path.columns.get(name).cloned().unwrap_or_default();
    let equity = |path: &Path| {
        let nav = &path.columns["nav"];
        nav.iter().map(|value| value / nav[0]).collect::<Vec<_>>()
    };
    let drawdown = |path: &Path| {
        let mut peak = f64::NEG_INFINITY;
        path.columns["nav"]
            .iter()
            .map(|value| {
                peak = peak.max(*value);
                value / peak - 1.0
            })
            .collect::<Vec<_>>()
    };
    let all = |_: usize| true;
    let policy = |i: usize| i == 0;
    let mut out = String::from("<div class=\"charts\">\n");
    out.push_str(&chart("Equity (start = 1)", &equity, &all));
    out.push_str(&chart("Drawdown", &drawdown, &all));
    out.push_str(&chart(
        "Delta of the policy's positions, units of the underlying",
        &column("delta"),
        &policy,
    ));
    out.push_str(&chart(
        "Vega of the policy's positions, currency per 1.00 of volatility",
        &column("vega"),
        &policy,
    ));
    out.push_str(&chart("Margin of the policy, currency", &column("margin"), &policy));
    out.push_str(&chart("Costs paid, currency", &column("costs"), &all));
    if let Some((_, path)) = paths.first() {
        let mut names: Vec<String> = path.actions.iter().filter(|name| !name.is_empty()).cloned().collect();
        names.sort();
        names.dedup();
        let at: Vec<_> = path
            .days
            .iter()
            .zip(&path.actions)
            .filter_map(|(day, action)| Some((*day, names.iter().position(|name| name == action)?)))
            .collect();
        out.push_str(&strips("Actions of the policy", &names, &at));
    }
    out.push_str("</div>\n");
    out
}
