//! `runner why`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::project::{self, PipelineArgs, Selection, Settings, wrong};
use crate::session::Session;
use clap::Args;
use runner_engine::key::Difference;
use runner_engine::{self as engine, Failure, Parts, Planned, Prediction, text};
use runner_pipeline::named;
use std::path::PathBuf;

/// Explain why a stage's key differs from its last run.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner why pipelines/rppo_options.yaml train
  runner why p.yaml 'train[seed=2]' --set timesteps=8192")]
pub(crate) struct WhyArgs {
    /// The pipeline file.
    #[arg(add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    /// The stage, or points of its matrix.
    #[arg(add = completed(project::stages_of_line))]
    pub stage: String,
    #[command(flatten)]
    pub settings: Settings,
}

pub(crate) fn why(session: &Session, args: &WhyArgs) -> Result<(), Failure> {
    let project = session.project(&PipelineArgs {
        pipeline: args.pipeline.clone(),
        selection: Selection {
            stages: vec![args.stage.clone()],
            settings: args.settings.clone(),
            force: Vec::new(),
        },
    })?;
    let options = project.options(session, "");
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    let stages = named(&project.pipeline, &args.stage).map_err(|err| wrong(err.into()))?;
    let named: Vec<&Planned> = planned.iter().filter(|stage| stages.contains(&stage.node)).collect();
    if session.json {
        return output::print_json(&named);
    }
    let mut out = String::new();
    for stage in named {
        explain(stage, &planned, &mut out);
    }
    output::print(&out)
}

fn explain(stage: &Planned, planned: &[Planned], out: &mut String) {
    let last = stage
        .last_run
        .as_deref()
        .map(|run| format!(" (last in run {run})"))
        .unwrap_or_default();
    out.push_str(&format!("{}: {}{last}\n", stage.stage, stage.prediction.name()));
    match &stage.nearest {
        Some(nearest) if stage.prediction != Prediction::Depends && !nearest.differences.is_empty() => {
            out.push_str(&format!(
                "  {} of {} fields differ from run {}, the nearest\n",
                nearest.differences.len(),
                nearest.fields,
                nearest.run
            ));
            nearest.differences.iter().for_each(|difference| show(difference, out));
            nearest.parts.iter().for_each(|parts| show_parts(parts, out));
        }
        _ => out.push_str(&format!(
            "  {}\n",
            text::wrap(&stage.reason, text::WIDTH - 2).join("\n  ")
        )),
    }
    if let Some(share) = &stage.share {
        out.push_str(&format!("  {share} are already cached\n"));
    }
    if stage.key.is_none() {
        for other in planned
            .iter()
            .filter(|other| other.node < stage.node && other.prediction == Prediction::Runs)
        {
            out.push_str(&format!("  {} would run first: {}\n", other.stage, other.reason));
        }
    }
}

fn show(difference: &Difference, out: &mut String) {
    let absent = if difference.what.starts_with("with.") {
        "(default)"
    } else {
        "(none)"
    };
    let show = |value: &Option<String>| {
        let value = value.as_deref().unwrap_or(absent);
        text::wrap(value, text::WIDTH - 6).join("\n      ")
    };
    out.push_str(&format!(
        "  {}\n    - {}\n    + {}\n",
        difference.what,
        show(&difference.old),
        show(&difference.new)
    ));
}

/// The maximum number of parts that are named.
const MOST_PARTS: usize = 5;

fn show_parts(parts: &Parts, out: &mut String) {
    out.push_str(&format!(
        "  {}: {} of {} parts differ\n",
        parts.input,
        parts.changed.len(),
        parts.total
    ));
    for (path, how) in parts.changed.iter().take(MOST_PARTS) {
        out.push_str(&format!("    {how:<7} {path}\n"));
    }
    let more = parts.changed.len().saturating_sub(MOST_PARTS);
    if more > 0 {
        out.push_str(&format!("    and {more} more\n"));
    }
    if parts.about {
        out.push_str("    the metadata of the artifact differs (schema, quality, rows)\n");
    }
}
