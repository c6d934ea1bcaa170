//! `runner why`.

use super::args::{PipelineArgs, WhyArgs};
use super::session::Session;
use super::{exec, output};
use crate::engine::{self, Planned, Prediction};
use crate::error::Failure;

pub(crate) fn why(session: &Session, args: &WhyArgs) -> Result<(), Failure> {
    let project = session.project(&PipelineArgs {
        pipeline: args.pipeline.clone(),
        stages: vec![args.stage.clone()],
        set: args.set.clone(),
        force: Vec::new(),
    })?;
    let options = exec::options(session, &project, "")?;
    let planned = engine::plan(&project.pipeline, &project.chosen, &project.store, &options)?;
    let nodes = &project.pipeline.nodes;
    let named: Vec<&Planned> = planned
        .iter()
        .filter(|stage| nodes[stage.node].stage == args.stage || stage.stage == args.stage)
        .collect();
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
    if stage.differences.is_empty() {
        out.push_str(&format!("  {}\n", stage.reason));
    }
    for difference in &stage.differences {
        let absent = if difference.what.starts_with("with.") {
            "(default)"
        } else {
            "(none)"
        };
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.to_owned());
        out.push_str(&format!(
            "  {}\n    - {}\n    + {}\n",
            difference.what,
            show(&difference.old),
            show(&difference.new)
        ));
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
