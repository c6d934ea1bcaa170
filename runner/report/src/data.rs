//! The quality of the market data.

use super::figure_table::{self, Column};
use super::figures::{self, Unit};
use super::fold::Fold;
use super::html::{bytes, escape};
use cache::{Artifact, Store};
use datasets::quality::Example;
use runner_engine::text;
use runner_history::Run;
use serde_json::Value;
use stages_core::PortType;
use std::fmt::Write as _;

/// A block for each data set with quality findings. Findings passed on from one data set to another are shown
/// once. `None` when the findings cannot be read in time.
pub(super) fn section(run: &Run, store: &Store, in_time: &impl Fn() -> bool) -> Option<Fold> {
    let mut out = String::new();
    let mut rules: Vec<String> = Vec::new();
    let mut shown: Vec<Value> = Vec::new();
    for stage in &run.stages {
        for (name, digest) in stage.outputs.iter() {
            // Files of external programs have no quality findings.
            if stage.types.get(name).is_some_and(|ty| ty == PortType::File.name()) {
                continue;
            }
            if !in_time() {
                return None;
            }
            let Ok(artifact) = store.artifact(*digest) else {
                continue;
            };
            let quality = &artifact.meta["quality"];
            let Some(findings) = quality.as_array().filter(|_| !shown.contains(quality)) else {
                continue;
            };
            shown.push(quality.clone());
            let _ = writeln!(out, "<h3>{}.{}</h3>", escape(&stage.id), escape(name));
            out.push_str(&block(&artifact, findings));
            let found = findings.iter().filter(|finding| has_rows(finding));
            rules.extend(found.map(|finding| words(&finding["rule"]).replace('_', " ")));
        }
    }
    rules.sort();
    rules.dedup();
    let found = match rules.is_empty() {
        true => "no findings".to_owned(),
        false => format!("findings: {}", rules.join(", ")),
    };
    let summary = format!("{}, {found}", text::count(shown.len(), "data set"));
    Some(Fold::new("Data", summary, out))
}

/// True for a finding that some rows have.
fn has_rows(finding: &Value) -> bool {
    finding["rows"].as_u64().is_none_or(|rows| rows > 0)
}

fn block(artifact: &Artifact, findings: &[Value]) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let rows = artifact.meta["rows"].as_u64();
    let mut out = format!(
        "<p class=\"dim\">{}{} partitions, {}</p>\n",
        rows.map(|rows| format!("{} rows, ", figures::shown(rows as f64, Unit::Count)))
            .unwrap_or_default(),
        artifact.entries.len(),
        bytes(size)
    );
    out.push_str(&findings_table(findings));
    out
}

/// The findings of quality rules as a table, and the rules without findings.
pub fn findings_table(findings: &[Value]) -> String {
    let mut out = String::new();
    let (found, clean): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| has_rows(finding));
    if !found.is_empty() {
        let count = |value: &Value| {
            value
                .as_f64()
                .map_or_else(String::new, |n| figures::shown(n, Unit::Count))
        };
        let rows: Vec<_> = found
            .iter()
            .map(|finding| {
                let mut about = words(&finding["about"]);
                for example in [words(&finding["examples"]), sample(&finding["sample"])] {
                    if !example.is_empty() {
                        let _ = write!(about, " <span class=\"dim long\">{example}</span>");
                    }
                }
                vec![
                    words(&finding["rule"]).replace('_', " "),
                    about,
                    words(&finding["action"]),
                    count(&finding["rows"]),
                    count(&finding["days"]),
                ]
            })
            .collect();
        let [rule, finding, action, rows_, days] =
            ["rule", "finding", "action", "rows", "days"].map(Column::text);
        let columns = [rule, finding.left(), action.left(), rows_, days];
        out.push_str(&figure_table::table(&columns, &rows));
    }
    if !clean.is_empty() {
        let names: Vec<_> = clean.iter().map(|finding| words(&finding["rule"])).collect();
        let _ = writeln!(out, "<p class=\"dim\">No findings: {}.</p>", names.join(", "));
    }
    out
}

/// The first example row of a finding.
fn sample(rows: &Value) -> String {
    let first = rows
        .get(0)
        .cloned()
        .and_then(|row| serde_json::from_value::<Example>(row).ok());
    first.map(|row| escape(&row.to_string())).unwrap_or_default()
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => escape(text),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        other => escape(&other.to_string()),
    }
}
