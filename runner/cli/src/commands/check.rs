//! `runner check`, and `exec --check`.

use crate::complete::completed;
use crate::project::{self, PipelineArgs, Project};
use crate::session::{Session, temporary_directory};
use crate::values::fraction;
use crate::{interrupt, output, registry};
use clap::{Args, Subcommand};
use datasets::Date;
use runner_engine::{Control, Failure, LookaheadVerdict, Options, row, text};
use runner_lookahead::{Outcome, Settings, Stages, Verdict, Wanted};
use std::collections::BTreeSet;

/// Check the results of a pipeline for look-ahead.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Example:
  runner check lookahead pipelines/rppo_options.yaml")]
pub(crate) enum CheckCommand {
    Lookahead(LookaheadArgs),
}

/// Check that no result changes with later data.
///
/// Changes the data after some dates, and compares the results up to them.
///
/// The pipeline runs unchanged first. Then, at dates that are spread over the data, notable or drawn, its
/// sources (files with dates, outputs of stages that read nothing, artifacts of earlier runs) are
/// truncated, and perturbed, after the date; the stages that depend on them run again in a temporary
/// store, and every row up to the date must be the same. Training runs only once.
///
/// Exit codes: 0 if everything was compared and nothing changed, 1 if a value changed, 4 if something
/// could not be changed, run or compared, which is named.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner check lookahead pipelines/rppo_options.yaml
  runner check lookahead p.yaml features --at 2019-06-28 --json
  runner check lookahead p.yaml --share 0.02 --confidence 0.99 --except report")]
pub(crate) struct LookaheadArgs {
    #[command(flatten)]
    pub pipeline: PipelineArgs,
    /// The last date whose data is unchanged (repeatable) [default: chosen dates].
    #[arg(long, value_name = "DATE")]
    pub at: Vec<String>,
    /// Choose as many dates that a leak at this share of all dates is found with the confidence.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = fraction)]
    pub share: f64,
    /// The probability that such a leak is found.
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = fraction)]
    pub confidence: f64,
    /// The seed of the drawn dates.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Do not compare this stage, or this output of a stage (`stage.output`), such as figures over the whole
    /// range (repeatable).
    #[arg(long, value_name = "OUTPUT", add = completed(project::stages_of_line))]
    pub except: Vec<String>,
}

pub(crate) fn check(session: &Session, command: &CheckCommand) -> Result<u8, Failure> {
    match command {
        CheckCommand::Lookahead(args) => lookahead(session, args),
    }
}

fn lookahead(session: &Session, args: &LookaheadArgs) -> Result<u8, Failure> {
    let at: Vec<Date> = args
        .at
        .iter()
        .map(|text| text.parse().map_err(Failure::usage))
        .collect::<Result<_, Failure>>()?;
    let control = interrupt::control()?;
    let project = session.project(&args.pipeline)?;
    let _guard = project.store.guard()?;
    let settings = Settings {
        at,
        wanted: Wanted {
            share: args.share,
            confidence: args.confidence,
            seed: args.seed,
        },
        except: args.except.clone(),
    };
    check_names(&project, &settings.except)?;
    let options = project.options(session, "lookahead");
    let verdict = run(session, &project, &settings, &options, &control)?;
    project.store.flush()?;
    if session.json {
        output::print_json(&verdict)?;
    } else {
        output::print(&page(&verdict))?;
    }
    Ok(verdict.verdict.exit_code())
}

/// Checks a run of the project with the default settings.
pub(super) fn after_run(
    session: &Session,
    project: &Project,
    options: &Options,
    control: &Control,
) -> Result<Verdict, Failure> {
    let options = Options {
        force: BTreeSet::new(),
        check: BTreeSet::new(),
        ..options.clone()
    };
    run(session, project, &Settings::default(), &options, control)
}

fn run(
    session: &Session,
    project: &Project,
    settings: &Settings,
    options: &Options,
    control: &Control,
) -> Result<Verdict, Failure> {
    // Runs on changed data and their logs are not kept.
    let logs = temporary_directory()?;
    let options = Options {
        logs: logs.path().to_owned(),
        ..options.clone()
    };
    let mut progress = output::progress(session.verbosity);
    let stages = Stages {
        pipeline: &project.pipeline,
        chosen: &project.chosen,
        store: &project.store,
        file_types: registry::FILE_TYPES,
        options: &options,
        control,
    };
    runner_lookahead::check(&stages, settings, &mut progress)
}

/// Refuses an exception that does not name a stage or an output.
fn check_names(project: &Project, except: &[String]) -> Result<(), Failure> {
    for name in except {
        let known = project.pipeline.nodes.iter().any(|node| {
            let outputs = match &node.work {
                runner_pipeline::Work::Command(command) => {
                    command.outputs.keys().cloned().collect::<Vec<_>>()
                }
                runner_pipeline::Work::Kind { kind, .. } => {
                    kind.ports().outputs.iter().map(|port| port.name.to_owned()).collect()
                }
            };
            *name == node.id
                || *name == node.stage
                || outputs.iter().any(|output| *name == format!("{}.{output}", node.stage))
        });
        if !known {
            return Err(
                Failure::usage(format!("there is no stage or output `{name}` to leave out"))
                    .hint("`--except` takes a stage, or STAGE.OUTPUT"),
            );
        }
    }
    Ok(())
}

/// Converts a verdict to the form stored in a run's history.
pub(super) fn stored(verdict: &Verdict) -> LookaheadVerdict {
    LookaheadVerdict {
        verdict: verdict.verdict.name().to_owned(),
        summary: summary(verdict),
        found: verdict
            .moved
            .iter()
            .map(|moved| {
                let about = [moved.date.clone().unwrap_or_default(), moved.about.clone()].join(" ");
                format!(
                    "{}.{} column {} of {}: {} -> {} (data after {}: {})",
                    moved.stage,
                    moved.output,
                    moved.column,
                    about.trim(),
                    moved.was,
                    moved.became,
                    moved.at,
                    moved.change.name()
                )
            })
            .collect(),
        unchecked: verdict
            .unchecked
            .iter()
            .map(|unchecked| unchecked.to_string())
            .collect(),
        seconds: verdict.cost.seconds,
    }
}

/// The summary of a verdict: the rows compared, the dates, the confidence and the cost.
fn summary(verdict: &Verdict) -> String {
    let confidence = &verdict.confidence;
    let mut out = format!(
        "{}, {} compared at {}",
        text::count(verdict.tables, "table"),
        text::count(verdict.rows, "row"),
        text::count(confidence.tested, "date"),
    );
    if confidence.dates > 0 {
        out.push_str(&format!(
            " of {}; a leak at {} % of the dates is found with probability {:.3}",
            confidence.dates,
            confidence.share * 100.0,
            confidence.found
        ));
    }
    out
}

pub(super) fn page(verdict: &Verdict) -> String {
    let mut out = String::new();
    let rows: Vec<Vec<String>> = verdict
        .sources
        .iter()
        .map(|source| row![source.name, source.rows, source.stages])
        .collect();
    if !rows.is_empty() {
        out.push_str(&text::table(
            &["source", "rows changed", "stages run again"],
            &rows,
            &[1, 2],
        ));
    }
    if !verdict.moved.is_empty() {
        out.push_str("\nchanged with later data:\n");
        let rows: Vec<Vec<String>> = verdict
            .moved
            .iter()
            .map(|moved| {
                let about = [moved.date.clone().unwrap_or_default(), moved.about.clone()];
                row![
                    moved.stage,
                    moved.output,
                    moved.column,
                    moved.row,
                    about.join(" ").trim(),
                    format!("{} -> {}", moved.was, moved.became),
                    moved.rows,
                    format!("{} ({})", moved.at, moved.change.name()),
                    moved.dates,
                    moved.from.join(", "),
                ]
            })
            .collect();
        let header = [
            "stage",
            "output",
            "column",
            "row",
            "of",
            "value",
            "rows",
            "data changed after",
            "dates",
            "inherited from",
        ];
        out.push_str(&text::table(&header, &rows, &[3, 6, 8]));
    }
    if !verdict.unchecked.is_empty() {
        out.push_str("\nnot checked:\n");
        for unchecked in &verdict.unchecked {
            out.push_str(&format!("  {unchecked}\n"));
        }
    }
    for (stage, rule) in &verdict.rules {
        out.push_str(&format!("by rule: {stage}: {rule}\n"));
    }
    for name in &verdict.skipped {
        out.push_str(&format!("left out: {name}\n"));
    }
    for name in &verdict.fixed {
        out.push_str(&format!("without dates, taken as known from the beginning: {name}\n"));
    }
    if verdict.rounded > 0 {
        out.push_str(&format!("differ by rounding alone: {} cells\n", verdict.rounded));
    }
    let cost = verdict.cost;
    out.push_str(&format!(
        "cost: {} in {}, {:.1} times the checked stages' own {}\n",
        text::count(cost.runs, "run"),
        text::duration(cost.seconds),
        cost.factor(),
        text::duration(cost.run_seconds)
    ));
    let own: BTreeSet<&str> = verdict
        .moved
        .iter()
        .filter(|moved| moved.from.is_empty())
        .map(|moved| moved.stage.as_str())
        .collect();
    let names: Vec<&str> = own.into_iter().collect();
    let first = match verdict.verdict {
        Outcome::Passed => "no look-ahead found".to_owned(),
        Outcome::Found => format!("look-ahead in {}", names.join(", ")),
        Outcome::Unchecked => format!(
            "not passed: {} not checked",
            text::count(verdict.unchecked.len(), "thing")
        ),
    };
    out.push_str(&format!("{first}: {}\n", summary(verdict)));
    out
}
