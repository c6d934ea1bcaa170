//! The outputs of an evaluation: metrics as JSON lines, the trajectory as Parquet.

use crate::panel::Estimate;
use crate::trajectory;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use cache::{ArtifactBuilder, canonical_json};
use serde::Serialize;
use serde_json::{Map, Value, json};
use stages_core::{Context, Outputs, PortType, StageError, table};
use std::sync::Arc;

/// Figures by name, in the order in which they were added.
#[derive(Default)]
pub struct Metrics(Vec<(String, f64)>, Vec<Rule>);

/// A baseline that was found by a search, in words.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rule {
    pub name: String,
    pub text: String,
}

impl Metrics {
    /// Adds a figure.
    pub fn add(&mut self, name: impl Into<String>, value: f64) {
        self.0.push((name.into(), value));
    }

    /// Adds the ends of a figure's interval.
    pub fn interval(&mut self, name: &str, of: Estimate) {
        self.add(format!("{name}_low"), of.low);
        self.add(format!("{name}_high"), of.high);
    }

    /// Adds a figure with its interval.
    pub fn estimate(&mut self, name: &str, of: Estimate) {
        self.add(name, of.value);
        self.interval(name, of);
    }

    /// A figure by name, the last of that name.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0
            .iter()
            .rev()
            .find(|(own, _)| own == name)
            .map(|(_, value)| *value)
    }

    /// Adds the descriptions of baselines that were searched, for the artifact's metadata.
    pub(crate) fn describe(&mut self, rules: Vec<Rule>) {
        self.1.extend(rules);
    }

    /// The figures, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A figure as JSON; `null` stands for a ratio without a denominator.
    fn value(value: f64) -> Value {
        serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
    }

    fn lines(&self) -> String {
        self.0
            .iter()
            .map(|(name, value)| {
                canonical_json(&json!({ "name": name, "step": 0, "value": Self::value(*value) })) + "\n"
            })
            .collect()
    }

    fn summary(&self) -> Map<String, Value> {
        self.0
            .iter()
            .map(|(name, value)| (name.clone(), Self::value(*value)))
            .collect()
    }
}

/// The file of a table for people, as Markdown, beside the metrics.
pub(crate) const TABLE: &str = "table.md";

/// A Markdown table.
pub(crate) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); head.len()];
    let rows = rows.iter().map(|row| line(row));
    [line(head), line(&rule)].into_iter().chain(rows).collect()
}

/// A table of columns by name.
pub(crate) fn columns(columns: &[(&str, Vec<f64>)]) -> Result<RecordBatch, StageError> {
    Ok(RecordBatch::try_from_iter(columns.iter().map(|(name, values)| {
        let array: ArrayRef = Arc::new(Float64Array::from(values.clone()));
        (*name, array)
    }))?)
}

/// Stores both outputs and reports the metrics.
pub(crate) fn store(
    context: &Context,
    metrics: Metrics,
    rows: &RecordBatch,
    about: Value,
) -> Result<Outputs, StageError> {
    let store = &context.store;
    let mut outputs = store_metrics(context, metrics)?;
    let mut builder = ArtifactBuilder::new(store, PortType::Trajectory.name(), about);
    builder.bytes(trajectory::FILE, &table::to_parquet(rows)?)?;
    outputs.insert("trajectory".to_owned(), builder.finish()?);
    Ok(outputs)
}

/// Stores and reports the metrics.
pub(crate) fn store_metrics(context: &Context, metrics: Metrics) -> Result<Outputs, StageError> {
    store_with(context, metrics, json!({}), &[])
}

/// Stores and reports the metrics of a comparison with its verdict, and the equity of both sides as CSV.
pub(crate) fn store_judged(
    context: &Context,
    metrics: Metrics,
    verdict: Value,
    equity: &str,
) -> Result<Outputs, StageError> {
    store_with(
        context,
        metrics,
        json!({ "verdict": verdict }),
        &[("equity.csv", equity)],
    )
}

/// Stores and reports the metrics, with files beside them.
///
/// # Errors
/// Fails when the store cannot be written.
pub fn store_metrics_with(
    context: &Context,
    metrics: Metrics,
    files: &[(&str, &str)],
) -> Result<Outputs, StageError> {
    store_with(context, metrics, json!({}), files)
}

fn store_with(
    context: &Context,
    metrics: Metrics,
    mut about: Value,
    files: &[(&str, &str)],
) -> Result<Outputs, StageError> {
    about["summary"] = Value::Object(metrics.summary());
    if !metrics.1.is_empty() {
        about["rules"] = json!(metrics.1);
    }
    let mut builder = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), about);
    builder.bytes("metrics.jsonl", metrics.lines().as_bytes())?;
    for (name, text) in files {
        builder.bytes(name, text.as_bytes())?;
    }
    let digest = builder.finish()?;
    for (name, value) in &metrics.0 {
        if value.is_finite() {
            context.metric(name, 0, *value);
        }
    }
    Ok(Outputs::from([("metrics".to_owned(), digest)]))
}
