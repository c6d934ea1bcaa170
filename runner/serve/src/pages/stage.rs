//! A stage of a run: why it ran, its settings, its artifacts with their first rows, its curves and its log.

use super::artifact::shown as artifact_shown;
use crate::layout::{Page, link, run_address, stage_address};
use crate::parts::{folded, status, tiles};
use crate::site::Site;
use runner_engine::{Failure, text};
use runner_history::{self as history, Figures, StageRun};
use runner_report::figures::{Unit, deciding, shown};
use runner_report::glossary::title;
use runner_report::html::{escape, escape_content, section, table};
use runner_report::{learning_curves, status_of};
use std::collections::BTreeMap;

/// The number of rows of each output.
const ROWS: usize = 5;

/// The number of metrics that stand at the top, and the number above which the others are folded.
const TILES: usize = 6;
const OPEN_METRICS: usize = 8;

/// The number of lines of the log.
const LINES: usize = 500;

pub(crate) fn stage(site: &Site, id: &str, name: &str) -> Result<Page, Failure> {
    let run = history::load(&site.runs, id)?;
    let Some(stage) = run.stage(name) else {
        let hint = runner_pipeline::suggest(name, "stages", run.stages.iter().map(|stage| stage.id.as_str()));
        return Err(Failure::usage(format!("run {id} has no stage `{name}`")).hint(hint));
    };
    let store = site.store()?;
    let mut body = format!(
        "<p class=\"crumbs\">{} / {} / {}</p><h1>{}</h1><p class=\"dim\">{} v{}</p>\n<p>{}{}</p>\n",
        link("/runs", "Runs"),
        link(&run_address(id), &format!("{} {id}", run.pipeline)),
        escape(&stage.id),
        escape(&stage.id),
        escape(&stage.kind),
        stage.version,
        status(status_of(stage)),
        times(stage)
    );
    if let Some(reason) = &stage.reason {
        body.push_str(&format!("<p>Why it ran: {}</p>\n", escape(reason)));
    }
    if let Some(error) = &stage.error {
        let hint = stage.hint.as_ref().map(|hint| format!("<br>{}", escape(hint)));
        body.push_str(&format!(
            "<p class=\"error\">{}{}</p>\n",
            escape(error),
            hint.unwrap_or_default()
        ));
    }
    let needs: Vec<Vec<String>> = stage
        .needs
        .iter()
        .map(|(port, needs)| {
            let links: Vec<String> = needs.iter().map(|need| need_link(id, need)).collect();
            vec![escape(port), links.join(", ")]
        })
        .collect();
    body.push_str(&section("<h2>Inputs</h2>", &["input", "from"], &needs));
    let figures = Figures::of(stage, &store);
    body.push_str(&metrics(&figures));
    let curves: BTreeMap<_, _> = figures
        .curves
        .into_iter()
        .filter(|(_, points)| points.len() > 1)
        .collect();
    if !curves.is_empty() {
        body.push_str(&learning_curves(&curves));
    }
    for (output, digest) in stage.outputs.iter() {
        let address = format!("{}/outputs/{output}", stage_address(id, &stage.id));
        body.push_str(&format!("<h2>{}</h2>\n", link(&address, output)));
        match store.artifact(*digest) {
            Ok(artifact) => body.push_str(&artifact_shown(&store, &artifact, ROWS)),
            Err(_) => body.push_str("<p class=\"dim\">It is no longer in the store.</p>\n"),
        }
    }
    let config = serde_json::to_string_pretty(&stage.config).unwrap_or_default();
    let config = format!(
        "<pre tabindex=\"0\" role=\"region\" aria-label=\"settings\">{}</pre>",
        escape_content(&config)
    );
    body.push_str(&folded("settings", "Settings", &config));
    body.push_str(&log(stage, &store));
    Ok(Page::new(format!("{name} {id}"), "/runs", body))
}

/// The metrics: those that decide as tiles, all of them below.
fn metrics(figures: &Figures) -> String {
    let shown = |name: &str, value: f64| shown(value, Unit::of(name));
    let mut deciding: Vec<(usize, &String)> = figures
        .headline
        .iter()
        .filter_map(|name| Some((deciding(name)?, name)))
        .collect();
    deciding.sort();
    let tile = |(_, name): &(usize, &String)| Some((title(name), shown(name, *figures.values.get(*name)?)));
    let decisive: Vec<(String, String)> = deciding.iter().take(TILES).filter_map(tile).collect();
    let decisive: Vec<(&str, String)> = decisive
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let metric = |name: &String| Some(vec![escape(name), shown(name, *figures.values.get(name)?)]);
    let rows: Vec<Vec<String>> = figures.headline.iter().filter_map(metric).collect();
    if rows.is_empty() {
        return String::new();
    }
    let all = table(&["metric", "value"], &rows);
    let tiled = if decisive.is_empty() {
        String::new()
    } else {
        tiles(&decisive)
    };
    let all = match rows.len() > OPEN_METRICS {
        true => folded("metrics", &format!("All {} metrics", rows.len()), &all),
        false => all,
    };
    format!("<h2>Metrics</h2>\n{tiled}{all}")
}

fn times(stage: &StageRun) -> String {
    let mut parts = vec![format!(" {} in this run", text::duration(stage.seconds))];
    parts.extend(
        stage
            .computed_seconds
            .map(|seconds| format!("{} when computed", text::duration(seconds))),
    );
    parts.extend(
        stage
            .peak_memory
            .map(|bytes| format!("peak memory {}", text::size(bytes))),
    );
    parts.extend(
        stage
            .memo
            .map(|(hits, total)| format!("{hits} of {total} sub-computations found")),
    );
    parts.extend(stage.key.map(|key| format!("key {}", key.short())));
    escape(&parts.join(" · "))
}

/// A link to the stage of `stage.output`, or of `run/stage.output` of an earlier run.
fn need_link(run: &str, need: &str) -> String {
    let (run, output) = need.split_once('/').unwrap_or((run, need));
    let stage = output.rsplit_once('.').map_or(output, |(stage, _)| stage);
    link(&stage_address(run, stage), need)
}

fn log(stage: &StageRun, store: &cache::Store) -> String {
    let record = || store.action(stage.key?).ok().flatten()?.log;
    let Some(bytes) = stage.log.or_else(record).and_then(|log| store.blob(log.blob).ok()) else {
        return String::new();
    };
    let log = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = log.lines().collect();
    format!(
        "<h2>Log</h2>\n<pre class=\"log\" tabindex=\"0\" role=\"region\" aria-label=\"log\">{}</pre>\n",
        escape_content(&lines[lines.len().saturating_sub(LINES)..].join("\n"))
    )
}
