//! The market data of each pipeline's last run: what it has of each day, and the findings of its quality
//! rules.

use crate::layout::{Page, link, run_address, stage_address};
use crate::site::Site;
use cache::Artifact;
use runner_engine::{Failure, RunStatus, text};
use runner_history::{self as history, Run};
use runner_report::findings_table;
use runner_report::html::{escape, table};
use std::collections::BTreeMap;

/// The number of runs among which the last of each pipeline is looked for.
const RUNS: usize = 500;

/// The number of partitions that are listed of a data set: the last ones.
const PARTITIONS: usize = 12;

pub(crate) fn data(site: &Site) -> Result<Page, Failure> {
    let (runs, _) = history::last(&site.runs, RUNS)?;
    let mut last: BTreeMap<&str, &Run> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Done) {
        last.insert(&run.pipeline, run);
    }
    let mut body = String::from("<h1>Data</h1>\n");
    if last.is_empty() {
        body.push_str("<p>No run has finished yet.</p>\n");
    }
    let store = if last.is_empty() { None } else { Some(site.store()?) };
    for (pipeline, run) in last {
        let mut part = String::new();
        for stage in run.stages.iter().filter(|stage| stage.kind.starts_with("ingest/")) {
            for (output, digest) in stage.outputs.iter() {
                let Some(artifact) = store.as_ref().and_then(|store| store.artifact(*digest).ok()) else {
                    continue;
                };
                let address = format!("{}/outputs/{output}", stage_address(&run.id, &stage.id));
                part.push_str(&format!(
                    "<h3>{}</h3>\n",
                    link(&address, &format!("{}.{output}", stage.id))
                ));
                part.push_str(&block(&artifact));
            }
        }
        if !part.is_empty() {
            body.push_str(&format!(
                "<h2>{} <span class=\"dim\">{}</span></h2>\n{part}",
                escape(pipeline),
                link(&run_address(&run.id), &run.id)
            ));
        }
    }
    Ok(Page::new("Data", "/data", body))
}

/// The last partitions of a data set, and its findings by day.
fn block(artifact: &Artifact) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let rows = artifact.meta["rows"]
        .as_u64()
        .map(|rows| format!("{}, ", text::count(rows as usize, "row")));
    let mut out = format!(
        "<p class=\"dim\">{}{}, {}</p>\n",
        rows.unwrap_or_default(),
        text::count(artifact.entries.len(), "partition"),
        text::size(size)
    );
    let skipped = artifact.entries.len().saturating_sub(PARTITIONS);
    let partitions: Vec<Vec<String>> = artifact.entries[skipped..]
        .iter()
        .map(|entry| vec![escape(&entry.path), text::size(entry.size)])
        .collect();
    out.push_str(&format!(
        "<details><summary>Last partitions</summary>{}</details>\n",
        table(&["partition", "size"], &partitions)
    ));
    let findings = artifact.meta["quality"].as_array();
    out.push_str(&findings_table(findings.map_or(&[], Vec::as_slice)));
    out
}
