//! An artifact: its files, its first rows, and its data quality.

use crate::layout::{Page, link, stage_address};
use crate::site::Site;
use cache::{Artifact, Store};
use runner_engine::{Failure, text};
use runner_history as history;
use runner_report::html::{escape, escape_content, table};
use runner_report::{Preview, preview, quality_table};

/// The number of rows.
const ROWS: usize = 50;

/// The number of files that are listed.
const FILES: usize = 200;

pub(crate) fn artifact(site: &Site, id: &str, stage: &str, output: &str) -> Result<Page, Failure> {
    let run = history::load(&site.runs, id)?;
    let missing = || {
        Failure::usage(format!("run {id} has no output `{stage}.{output}`"))
            .hint("open the run, and follow its links")
    };
    let run_stage = run.stage(stage).ok_or_else(missing)?;
    let digest = run_stage.outputs.get(output).ok_or_else(missing)?;
    let store = site.store()?;
    let artifact = store.artifact(*digest)?;
    let mut body = format!(
        "<h1>{}.{}</h1><p class=\"dim\">{} · {} · {}</p>\n",
        escape(stage),
        escape(output),
        escape(&artifact.kind),
        link(&stage_address(id, stage), stage),
        escape(&digest.to_hex())
    );
    body.push_str(&shown(&store, &artifact, ROWS));
    let rows: Vec<Vec<String>> = artifact
        .entries
        .iter()
        .take(FILES)
        .map(|entry| vec![escape(&entry.path), text::size(entry.size), entry.blob.short()])
        .collect();
    body.push_str(&format!("<h2>Files</h2>\n{}", table(&["file", "size", "blob"], &rows)));
    if artifact.entries.len() > FILES {
        body.push_str(&format!(
            "<p class=\"dim\">and {} more</p>\n",
            artifact.entries.len() - FILES
        ));
    }
    Ok(Page::new(format!("{stage}.{output}"), "/", body))
}

/// The size, the first rows and the quality of an artifact.
pub(crate) fn shown(store: &Store, artifact: &Artifact, rows: usize) -> String {
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let mut out = format!(
        "<p class=\"dim\">{} · {} · {}</p>\n",
        escape(&artifact.kind),
        text::count(artifact.entries.len(), "file"),
        text::size(size)
    );
    match preview(store, artifact, rows) {
        Ok(Preview::Table {
            path,
            rows,
            columns,
            first,
        }) => {
            let head: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
            let cell = |cell: &Option<String>| cell.as_deref().map_or_else(String::new, escape);
            let first: Vec<Vec<String>> = first.iter().map(|row| row.iter().map(cell).collect()).collect();
            out.push_str(&format!("<p>{}, {}</p>\n", escape(&path), text::count(rows, "row")));
            out.push_str(&table(&head, &first));
        }
        Ok(Preview::Text(text)) => out.push_str(&format!("<pre>{}</pre>\n", escape_content(&text))),
        // Metrics are shown as figures and curves of their stage.
        Ok(Preview::Metrics(_) | Preview::Nothing) => {}
        Err(failure) => out.push_str(&format!("<p class=\"dim\">{}</p>\n", escape(&failure.message))),
    }
    let quality = quality_table(&artifact.meta);
    if !quality.is_empty() {
        out.push_str(&format!(
            "<details id=\"quality-{}\"><summary>Data quality</summary><pre>{}</pre></details>\n",
            escape(&artifact.kind),
            escape_content(quality.trim())
        ));
    }
    out
}
