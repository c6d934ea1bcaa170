//! `runner plan`.

use super::plan_file::{PlanArguments, SavedPlan};
use super::{executors, remote};
use crate::output;
use crate::project::{PipelineArgs, Project, Reach};
use crate::session::Session;
use clap::Args;
use runner_cluster::settings::Settings as Executor;
use runner_engine::{self as engine, Failure, Planned, PlannedJob, Prediction, row, text};
use runner_history::ResolvedPipeline;
use runner_pipeline::{Isolation, Work};
use runner_search::driver::{Forecast, forecast};
use serde_json::json;
use std::path::PathBuf;

/// Show what would run and what is cached, and why; run nothing.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner plan pipelines/rppo_options.yaml
  runner plan p.yaml --set train.with.learning_rate=1e-4
  runner plan p.yaml --profile quick --resolved
  runner plan p.yaml --executor hpc
  runner plan p.yaml --save plan.json && runner exec --plan plan.json")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub pipeline: PipelineArgs,
    /// Save the plan to FILE, for `exec --plan FILE`.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Print the resolved pipeline as one file that can be run: includes, profiles, `--set`, parameters and
    /// environment variables substituted, ranges and draws expanded. With --json, every stage and point with
    /// its whole configuration.
    #[arg(long, conflicts_with = "save")]
    pub resolved: bool,
    /// The executor of `config.yaml` that would run the stages that name none [default: this machine].
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
    #[command(flatten)]
    pub reach: Reach,
}

pub(crate) fn plan(session: &Session, args: &PlanArgs) -> Result<(), Failure> {
    let session = &args.reach.session(session);
    if args.resolved && !session.json {
        let file = &args.pipeline.pipeline;
        return output::print_document(&session.resolved(file, &args.pipeline.selection.settings)?);
    }
    let project = session.project(&args.pipeline)?;
    let home = project.runs.parent().unwrap_or(&project.runs);
    let search = forecast(home, &project.pipeline)?.filter(|_| args.pipeline.selection.stages.is_empty());
    if args.resolved {
        return output::print_json(&ResolvedPipeline::new(&project.pipeline, &project.chosen));
    }
    let mut options = project.options(session, "");
    let settings = executors::requested(&project, args.executor.as_deref())?;
    executors::set(&mut options, args.executor.as_deref(), &settings);
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    if let Some(upstream) = project.store.upstream() {
        upstream.save()?;
        remote::warn(upstream);
    }
    for note in project
        .store
        .files()
        .map(cache::FetchFiles::take_notes)
        .unwrap_or_default()
    {
        output::say(&format!("note: {note}"));
    }
    let count = |prediction| planned.iter().filter(|stage| stage.prediction == prediction).count();
    let (cached, runs, depends) = (
        count(Prediction::Cached),
        count(Prediction::Runs),
        count(Prediction::Depends),
    );
    let expected: f64 = planned
        .iter()
        .filter(|stage| stage.prediction != Prediction::Cached)
        .filter_map(|stage| stage.expected_seconds)
        .fold(0.0, |sum: f64, seconds| sum + seconds);
    let document = json!({
        "pipeline": project.pipeline.name,
        "arguments": PlanArguments::new(session, &args.pipeline),
        "stages": planned,
        "cached": cached,
        "runs": runs,
        "depends": depends,
        "expected_seconds": expected,
        "search": search,
        "fetch_bytes": planned.iter().map(|stage| stage.fetch_bytes).sum::<u64>(),
        "store_bytes": planned.iter().filter_map(|stage| stage.store_bytes).sum::<u64>(),
    });
    if let Some(file) = &args.save {
        SavedPlan::write(file, &document)?;
    }
    if session.json {
        return output::print_json(&document);
    }
    let rows: Vec<Vec<String>> = planned
        .iter()
        .map(|stage| {
            let runs = stage.prediction != Prediction::Cached;
            let some_bytes = |bytes: u64| (bytes > 0).then(|| text::size(bytes));
            row![
                stage.stage,
                stage.prediction.name(),
                stage.share.as_ref().map(ToString::to_string),
                stage.expected_seconds.filter(|_| runs).map(text::duration),
                some_bytes(stage.fetch_bytes),
                stage.store_bytes.and_then(some_bytes),
                stage.job.as_ref().map(request),
                stage.reason,
            ]
        })
        .collect();
    let mut out = String::new();
    for stage in &planned {
        if let Some(warning) = &stage.warning {
            output::say(&format!(
                "warning: {}: {}\n   hint: {}",
                stage.stage, warning.message, warning.hint
            ));
        }
    }
    out += &without_blanks(
        &["stage", "", "cached", "time", "fetch", "store", "job", "why"],
        rows,
        &[3, 4, 5],
    );
    out.push_str(&format!(
        "{cached} cached, {runs} would run, {depends} depend on stages that run"
    ));
    if expected > 0.0 {
        out.push_str(&format!("; about {} expected from past runs", text::duration(expected)));
    }
    let always_hashed: usize = planned.iter().map(|stage| stage.always_hashed).sum();
    if always_hashed > 0 {
        out.push_str(&format!(
            "\nnote: {always_hashed} source files are hashed in each run: the times of their file system do \
            not record every write"
        ));
    }
    out.push('\n');
    for (name, settings) in &settings {
        out += &jobs(name, settings, &planned);
    }
    out.extend(search.as_ref().map(searched));
    out.push_str(&programs(&project, &planned));
    output::print(&out)
}

/// The job that a stage would request: `hpc: 4 threads, 8 GiB, 1 GPU, 2 h`.
fn request(job: &PlannedJob) -> String {
    let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut parts = vec![plural(job.threads as u64, "thread")];
    parts.extend(job.memory.map(text::size));
    parts.extend((job.gpus > 0).then(|| plural(u64::from(job.gpus), "GPU")));
    parts.extend(job.time_seconds.map(|seconds| text::duration(seconds as f64)));
    format!("{}: {}", job.executor, parts.join(", "))
}

/// The jobs of an executor in one line.
fn jobs(name: &str, settings: &Executor, planned: &[Planned]) -> String {
    let of_it = |stage: &&Planned| stage.job.as_ref().is_some_and(|job| job.executor == name);
    let stages: Vec<&Planned> = planned.iter().filter(of_it).collect();
    let bytes: u64 = stages
        .iter()
        .filter_map(|stage| stage.job.as_ref())
        .map(|job| job.move_bytes)
        .sum();
    let seconds: Vec<f64> = stages.iter().filter_map(|stage| stage.expected_seconds).collect();
    let mut line = format!(
        "{name}: {} jobs, at most {} at a time",
        stages.len(),
        settings.max_jobs()
    );
    if bytes > 0 {
        line += &format!("; {} to be moved to the remote first", text::size(bytes));
    }
    if !seconds.is_empty() {
        line += &format!("; about {} of run time expected", text::duration(seconds.iter().sum()));
        match stages.len() - seconds.len() {
            0 => {}
            unknown => line += &format!(", not counting {unknown} jobs that never ran"),
        }
    }
    line + "\n"
}

/// The work that is left of a search. The stages above are those of the file's own settings.
fn searched(forecast: &Forecast) -> String {
    let rows: Vec<Vec<String>> = forecast
        .rungs
        .iter()
        .enumerate()
        .map(|(i, rung)| row![i + 1, rung.resource, rung.ended, rung.left])
        .collect();
    let time = forecast.expected_seconds.map(text::duration);
    let time = time.map_or_else(String::new, |time| format!(", about {time}"));
    format!(
        "search {}: {} of {} trials proposed; the stages above are those of the file's own settings\n{}",
        forecast.search,
        forecast.proposed,
        forecast.trials,
        text::table(&["rung", "resource", "cached", "left"], &rows, &[0, 1, 2, 3])
    ) + &format!("{:.0} units of the resource are left{time}\n", forecast.units)
}

/// The programs that would run with more access than a sandbox gives, one line for each stage of the file.
fn programs(project: &Project, planned: &[Planned]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for stage in planned.iter().filter(|stage| stage.prediction != Prediction::Cached) {
        let node = &project.pipeline.nodes[stage.node];
        let Work::Command(command) = &node.work else {
            continue;
        };
        let mut facts = Vec::new();
        if command.network {
            facts.push("reaches the network".to_owned());
        }
        facts.extend(
            command
                .container
                .as_ref()
                .map(|image| format!("runs in the container {image}")),
        );
        if command.container.is_none() && project.isolation.of(command.isolation) == Isolation::None {
            facts.push("runs without isolation".to_owned());
        }
        let line = format!("program {}: {}\n", node.stage, facts.join(", "));
        if !facts.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

/// Formats a table without the columns that are empty in every row.
fn without_blanks(header: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
    let kept: Vec<usize> = (0..header.len())
        .filter(|&i| rows.iter().any(|row| !row[i].is_empty()))
        .collect();
    let names: Vec<&str> = kept.iter().map(|&i| header[i]).collect();
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| kept.iter().map(|&i| row[i].clone()).collect())
        .collect();
    let right: Vec<usize> = (0..kept.len()).filter(|&i| right.contains(&kept[i])).collect();
    text::table(&names, &rows, &right)
}
