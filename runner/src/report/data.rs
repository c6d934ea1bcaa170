//! What the market data is, and what was wrong with it.

use super::html::{escape, table};
use crate::history::Run;
use cache::{Artifact, Store};
use serde_json::Value;
use std::fmt::Write as _;

/// One block for each data set that says something of its quality.
pub(super) fn section(run: &Run, store: &Store) -> String {
    let mut out = String::new();
    for stage in &run.stages {
        for (name, digest) in &stage.outputs {
            let Ok(artifact) = store.artifact(*digest) else {
                continue;
            };
            if artifact.meta.get("quality").is_none() {
                continue;
            }
            let _ = writeln!(out, "<h3>{}.{}</h3>", escape(&stage.id), escape(name));
            out.push_str(&block(&artifact));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("<h2>Data quality</h2>\n{out}")
    }
}

fn block(artifact: &Artifact) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let mut out = format!(
        "<p class=\"dim\">{} partitions, {}</p>\n",
        artifact.entries.len(),
        super::bytes(size)
    );
    match &artifact.meta["quality"] {
        Value::Array(rows) if rows.iter().all(Value::is_object) => out.push_str(&objects(rows)),
        Value::Object(map) => {
            let (tables, plain): (Vec<_>, Vec<_>) = map
                .iter()
                .partition(|(_, value)| value.as_array().is_some_and(|rows| rows.iter().all(Value::is_object)));
            let rows: Vec<_> = plain
                .into_iter()
                .map(|(name, value)| vec![escape(name), text(value)])
                .collect();
            if !rows.is_empty() {
                out.push_str(&table(&["", ""], &rows));
            }
            for (_, value) in tables {
                out.push_str(&objects(value.as_array().map_or(&[], Vec::as_slice)));
            }
        }
        other => {
            let _ = write!(out, "<p>{}</p>", text(other));
        }
    }
    out
}

/// A table of JSON objects with the same keys.
fn objects(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else {
        return "<p>No defects.</p>\n".to_owned();
    };
    let keys: Vec<&str> = first.keys().map(String::as_str).collect();
    let cells: Vec<_> = rows
        .iter()
        .map(|row| keys.iter().map(|key| text(&row[*key])).collect())
        .collect();
    table(&keys, &cells)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => escape(text),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => escape(&other.to_string()),
    }
}
