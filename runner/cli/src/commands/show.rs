//! `runner show`.

use super::labels::Marked;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use cache::{ActionRecord, ArtifactDigest};
use clap::Args;
use runner_engine::key::{RUN, Recipe};
use runner_engine::{Failure, StageStatus, described_source, row, text};
use runner_history::Archive;
use runner_history::named::{Named, find};
use runner_history::{Marks, Run, StageRun, marks};
use runner_report::{finding, preview, quality_table};
use serde_json::{Value, json};

/// Show a run, a stage of a run, or an artifact.
///
/// For an artifact: schema, first rows, metrics, provenance.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner show latest
  runner show latest/market.chain --rows 20
  runner show 20261120T213045-k3f9/train
  runner show 3fa94c81")]
pub(crate) struct ShowArgs {
    /// RUN, RUN/STAGE, RUN/STAGE.OUTPUT, or the digest of an artifact. RUN is an id, a unique prefix or
    /// suffix of one, a name, `latest`, or `latest~1` for the run before it.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// The number of table rows to show.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub rows: usize,
}

pub(crate) fn show(session: &Session, args: &ShowArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    match find(&archive, &args.what)? {
        Named::Run(run) => {
            let marks = marks::readable(&archive.runs, &run.id, &mut output::warn);
            match session.json {
                true => output::print_json(&Marked {
                    run: &run,
                    marks: &marks,
                }),
                false => output::print(&run_text(&run, &marks)),
            }
        }
        Named::Stage(_, stage) if session.json => {
            let record = record(&archive, &stage)?;
            output::print_json(&json!({ "stage": stage, "record": record }))
        }
        Named::Stage(run, stage) => output::print(&stage_text(&archive, &run, &stage)?),
        Named::Artifact(digest, origin) => {
            let origin = origin.map(|(run, stage, output)| (*run, *stage, output));
            show_artifact(session, &archive, digest, origin.as_ref(), args.rows)
        }
    }
}

fn record(archive: &Archive, stage: &StageRun) -> Result<Option<ActionRecord>, Failure> {
    Ok(match stage.key {
        Some(key) => archive.store.action(key)?,
        None => None,
    })
}

/// A scalar as is, any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn run_text(run: &Run, marks: &Marks) -> String {
    let mut out = format!(
        "run {}{}\npipeline {} ({})\nstatus {}, {}, started {}\n",
        run.id,
        marks.suffix(),
        run.pipeline,
        run.file.display(),
        run.status.name(),
        text::duration(run.seconds),
        run.started.format("%Y-%m-%d %H:%M:%S UTC")
    );
    if !run.params.is_empty() {
        let params: Vec<String> = run
            .params
            .iter()
            .map(|(name, value)| format!("{name}={}", plain(value)))
            .collect();
        out.push_str(&text::folded(&format!("params {}", params.join(", "))));
    }
    out.push('\n');
    let rows: Vec<Vec<String>> = run
        .stages
        .iter()
        .map(|stage| {
            let seconds = if stage.status == Some(StageStatus::Cached) {
                stage.computed_seconds
            } else {
                Some(stage.seconds)
            };
            let outputs: Vec<String> = stage
                .outputs
                .iter()
                .map(|(name, digest)| format!("{name} {}", digest.short()))
                .collect();
            row![
                stage.id,
                stage.kind,
                stage.status.map_or("-", StageStatus::name),
                seconds.map(text::duration),
                stage.peak_memory.map(text::size),
                outputs.join(", "),
            ]
        })
        .collect();
    out.push_str(&text::table(
        &["stage", "kind", "status", "took", "memory", "outputs"],
        &rows,
        &[3, 4],
    ));
    if let Some(check) = &run.lookahead {
        out.push_str(&format!("\nlook-ahead: {}, {}\n", check.verdict, check.summary));
        for line in check.found.iter().chain(&check.unchecked) {
            out.push_str(&text::folded(&format!("  {line}")));
        }
    }
    for stage in &run.stages {
        if let Some(error) = &stage.error {
            out.push_str(&format!("\n{}", text::folded(&format!("{}: {error}", stage.id))));
        }
    }
    if run.damaged > 0 {
        out.push_str(&format!(
            "\n{} parts of this history are damaged and left out; the results in the store are checked on \
            their own\n",
            run.damaged
        ));
    }
    out.push_str(&format!("\ndirectory {}\n", run.dir.display()));
    out
}

fn stage_text(archive: &Archive, run: &Run, stage: &StageRun) -> Result<String, Failure> {
    let mut out = format!(
        "{} of run {}\nkind {} v{}\nstatus {}\n",
        stage.id,
        run.id,
        stage.kind,
        stage.version,
        stage.status.map_or("-", StageStatus::name)
    );
    if let Some(key) = stage.key {
        out.push_str(&format!("key {key}\n"));
    }
    if let Some(reason) = &stage.reason {
        out.push_str(&text::folded(&format!("ran because {reason}")));
    }
    if let Some(error) = &stage.error {
        out.push_str(&text::folded(&format!("error {error}")));
    }
    for (port, needs) in &stage.needs {
        out.push_str(&text::folded(&format!("needs {port}: {}", needs.join(", "))));
    }
    if let Some((hits, total)) = stage.memo {
        out.push_str(&format!("memo {hits} of {total} sub-computations found\n"));
    }
    let config = serde_json::to_string_pretty(&stage.config).unwrap_or_default();
    out.push_str(&format!("config {config}\n"));
    let record = record(archive, stage)?;
    if let Some(record) = &record {
        out.push_str(&format!(
            "computed in {} by {}",
            text::duration(record.seconds),
            record.program
        ));
        for name in ["run", "host", "started", "isolation"] {
            if let Some(value) = record.info.get(name) {
                out.push_str(&format!(", {name} {}", plain(value)));
            }
        }
        out.push_str(&format!(", numerics {}\n", record.numerics_class));
        for source in &record.sources {
            out.push_str(&format!("{}\n", described_source(source)));
        }
        if stage.kind == RUN {
            let isolated = record
                .info
                .get("isolation")
                .is_some_and(|isolation| isolation != "none");
            let network = !isolated || stage.config.value()["network"] == true;
            out.push_str(if network { "network yes\n" } else { "network no\n" });
        }
    }
    for (name, digest) in stage.outputs.iter() {
        let ty = stage.types.get(name).map(String::as_str).unwrap_or_default();
        out.push_str(&format!("output {name} ({ty}) {digest}\n"));
    }
    let metrics = stage.metrics.iter().map(|(name, series)| {
        let last = series.last().map_or(f64::NAN, |metric| metric.value);
        row![name, series.len(), format!("{last:.6}")]
    });
    let rows: Vec<Vec<String>> = metrics.collect();
    out.push_str(&text::block(&["metric", "values", "last"], &rows, &[1, 2]));
    if let Some(log) = stage.log.or_else(|| record.and_then(|record| record.log)) {
        let bytes = archive.store.blob(log.blob)?;
        let log = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = log.lines().collect();
        out.push_str("\nlog, its last lines:\n");
        for line in &lines[lines.len().saturating_sub(20)..] {
            out.push_str(&format!("  {line}\n"));
        }
    }
    Ok(out)
}

/// A line for each fact of a table: the name, the value, and the origin.
pub(crate) fn facts_table(meta: &Value) -> String {
    let facts = meta["facts"].as_object();
    let lines = facts.into_iter().flatten().map(|(name, fact)| {
        let value = match &fact["value"] {
            Value::String(value) => value.clone(),
            other => other.to_string(),
        };
        format!(
            "  {name:12} {value} ({})\n",
            fact["origin"].as_str().unwrap_or_default()
        )
    });
    lines.collect()
}

/// The provenance of an artifact: its stage, the stages upstream of it, and so on.
fn lineage(run: &Run, stage: &StageRun, depth: usize, out: &mut Vec<String>) {
    let needs: Vec<String> = stage
        .needs
        .iter()
        .map(|(port, refs)| format!("{port} = {}", refs.join(", ")))
        .collect();
    let needs = if needs.is_empty() {
        String::new()
    } else {
        format!(" <- {}", needs.join("; "))
    };
    let line = format!(
        "{}{} ({} v{}){needs}",
        "  ".repeat(depth),
        stage.id,
        stage.kind,
        stage.version
    );
    // A stage with several consumers is expanded once.
    let seen = out.iter().any(|known| known.trim_start() == line.trim_start());
    if seen || depth > 50 {
        return;
    }
    out.push(line);
    for need in stage.needs.values().flatten() {
        let producer = run
            .stages
            .iter()
            .find(|other| need.strip_prefix(&other.id).is_some_and(|rest| rest.starts_with('.')));
        if let Some(producer) = producer {
            lineage(run, producer, depth + 1, out);
        }
    }
}

fn show_artifact(
    session: &Session,
    archive: &Archive,
    digest: ArtifactDigest,
    origin: Option<&(Run, StageRun, String)>,
    rows: usize,
) -> Result<(), Failure> {
    let artifact = archive.store.artifact(digest)?;
    let preview = preview(&archive.store, &artifact, rows)?;
    let size: u64 = artifact.entries.iter().map(|entry| entry.size).sum();
    let mut lines = Vec::new();
    if let Some((run, stage, _)) = origin {
        lineage(run, stage, 0, &mut lines);
    }
    if session.json {
        let recipe = match origin.and_then(|(_, stage, _)| stage.key) {
            Some(key) => archive
                .store
                .action(key)?
                .and_then(|record| Recipe::from_json(&record.recipe)),
            None => None,
        };
        let made_by =
            origin.map(|(run, stage, output)| json!({ "run": run.id, "stage": stage.id, "output": output }));
        return output::print_json(&json!({
            "digest": digest,
            "type": artifact.kind,
            "meta": artifact.meta,
            "size": size,
            "entries": artifact.entries,
            "preview": preview.to_json(),
            "origin": made_by,
            "lineage": lines,
            "recipe": recipe,
        }));
    }
    let mut out = format!("artifact {digest}\ntype {}\n", artifact.kind);
    if let Some((run, stage, name)) = origin {
        out.push_str(&format!("from {}.{name} of run {}\n", stage.id, run.id));
    }
    out.push_str(&format!(
        "{}, {}\n",
        text::count(artifact.entries.len(), "file"),
        text::size(size)
    ));
    let shown = 10;
    for entry in artifact.entries.iter().take(shown) {
        out.push_str(&format!(
            "  {}  {}  {}\n",
            entry.path,
            text::size(entry.size),
            entry.blob.short()
        ));
    }
    if artifact.entries.len() > shown {
        out.push_str(&format!("  and {} more\n", artifact.entries.len() - shown));
    }
    out.push_str(&finding(&archive.store, &artifact));
    // The data-quality table follows as a table, whole.
    let mut meta = artifact.meta.clone();
    if let Some(fields) = meta.as_object_mut() {
        fields.remove("quality");
        fields.remove("facts");
    }
    let is_empty = meta.as_object().is_none_or(serde_json::Map::is_empty);
    if !is_empty {
        let meta = serde_json::to_string_pretty(&meta).unwrap_or_default();
        let lines: Vec<&str> = meta.lines().collect();
        out.push_str(&format!("meta {}", lines[..lines.len().min(60)].join("\n")));
        out.push_str(if lines.len() > 60 {
            "\n  … (all of it with --json)\n"
        } else {
            "\n"
        });
    }
    let facts = facts_table(&artifact.meta);
    if !facts.is_empty() {
        out.push_str(&format!("facts\n{facts}"));
    }
    out.push_str(&quality_table(&artifact.meta));
    out.push_str(&preview.to_text());
    if !lines.is_empty() {
        out.push_str("\nlineage\n");
        lines
            .iter()
            .for_each(|line| out.push_str(&text::folded(&format!("  {line}"))));
    }
    output::print(&text::folded(&out))
}
