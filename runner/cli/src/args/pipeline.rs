//! Arguments of the commands that read a pipeline.

use super::values::{fraction, isolation, percentage};
use clap::{Args, Subcommand, ValueEnum};
use runner_pipeline::Isolation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct PipelineArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// The selected stages of a pipeline, and its settings.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Selection {
    /// Stages to run, with the stages they need [default: all]. Of a matrix, `train[lr=1e-4]` selects the
    /// points with this value, as in `needs:`, and `train` or `train[*]` all of them.
    #[arg(value_name = "STAGE")]
    pub stages: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: Settings,
    /// Run this stage even if it is cached, without memos and checkpoints (repeatable).
    #[arg(long, value_name = "STAGE")]
    pub force: Vec<String>,
}

/// The settings that a pipeline is read with.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Settings {
    /// Override a parameter (`seed=3`) or a field of a stage's configuration
    /// (`train.with.learning_rate=1e-4`) (repeatable).
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Apply a profile of the pipeline (repeatable): a later profile overrides an earlier one, `--set`
    /// overrides all.
    #[arg(long, value_name = "NAME")]
    pub profile: Vec<String>,
    /// Read the pipeline as in that night of its schedule: `${schedule.date}` is DATE, and the parameters are
    /// those of the night.
    #[arg(long, value_name = "DATE")]
    pub night: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ExecArgs {
    /// The pipeline file.
    #[arg(required_unless_present = "plan")]
    pub pipeline: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Run the plan in FILE, written by `plan --save` or `plan --json`; fails if anything changed since.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pipeline", "stages", "set", "profile", "night", "force", "dry_run"])]
    pub plan: Option<PathBuf>,
    /// The maximum number of stages that run in parallel [default: the number of cores].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// After a failure, continue with the stages that do not depend on the failed one.
    #[arg(short, long)]
    pub keep_going: bool,
    /// Dry run: show what would run.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Hash every source file again, even if its size and modification time are unchanged.
    #[arg(long)]
    pub verify_inputs: bool,
    /// Compute a random share of the cached stages again (at least one), without memos and checkpoints; a
    /// stage whose result differs fails.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub check_determinism: Option<f64>,
    /// Check the results after a run that succeeded; the exit code is then that of `runner check lookahead`.
    #[arg(long, value_enum, value_name = "CHECK")]
    pub check: Option<RunCheck>,
    /// The isolation of `run:` stages that do not ask for one [default: that of `config.yaml`, or `auto`].
    /// What a stage or this requires is required.
    #[arg(long, value_name = "HOW", value_parser = isolation())]
    pub isolation: Option<Isolation>,
    /// Refuse pipelines with stages that run external programs (`run:`).
    #[arg(long)]
    pub no_run_stages: bool,
    /// Ignore the configured remote store.
    #[arg(long)]
    pub no_remote: bool,
    /// Ask no server: sources at URLs are what was fetched before, and the configured remote store is
    /// ignored.
    #[arg(long)]
    pub offline: bool,
    /// Always write the HTML report. Without this option it is written if a stage ran and it takes less than
    /// 5 % of the run; `runner report RUN` writes it later.
    #[arg(long)]
    pub report: bool,
    /// Name the run; the name can be used wherever a run is expected.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Tag the run (repeatable).
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

#[derive(Args, Clone, Debug)]
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
    /// Ignore the configured remote store.
    #[arg(long)]
    pub no_remote: bool,
    /// Ask no server: sources at URLs are what was fetched before, and the configured remote store is
    /// ignored.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// The stage, or points of its matrix.
    pub stage: String,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GraphArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// The output format.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub format: GraphFormat,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Indented text.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A self-contained SVG image.
    Svg,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StagesArgs {
    /// A stage kind, such as `greeks/analytic`.
    pub kind: Option<String>,
    /// Print the requirements of a program's output of this type, such as `features` or `table`: columns, key
    /// and checks.
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "kind")]
    pub of_type: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check that no result changes with later data.
    ///
    /// Changes the data after some dates, and compares the results up to them.
    ///
    /// The pipeline runs unchanged first. Then, at dates that are spread over the data, notable or drawn, its
    /// sources (files with dates, outputs of stages that read nothing, artifacts of earlier runs) are
    /// truncated, and perturbed, after the date; the stages that depend on them run again in a temporary
    /// store, and every row up to the date must be the same. A training is done once.
    ///
    /// Exit codes: 0 if everything was compared and nothing changed, 1 if a value changed, 4 if something
    /// could not be changed, run or compared, which is named. Method, confidence and cost: docs/lookahead.md.
    #[command(after_help = "\
Examples:
  runner check lookahead pipelines/rppo_options.yaml
  runner check lookahead p.yaml features --at 2019-06-28 --json
  runner check lookahead p.yaml --share 0.02 --confidence 0.99 --except report")]
    Lookahead(LookaheadArgs),
}

#[derive(Args, Clone, Debug)]
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
    #[arg(long, value_name = "OUTPUT")]
    pub except: Vec<String>,
}

/// A check that follows a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunCheck {
    /// `runner check lookahead` with its default settings.
    Lookahead,
}
