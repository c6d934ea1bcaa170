//! Arguments of the commands that read a pipeline.

use super::values::percentage;
use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct PipelineArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// What of a pipeline is run, and how it is read.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Selection {
    /// Stages to run, with what they need; all where none is named. `train[seed=1]` is one point of a matrix.
    #[arg(value_name = "STAGE")]
    pub stages: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: Settings,
    /// Run this stage even if it is cached, from nothing: without memos and checkpoints of earlier work.
    #[arg(long, value_name = "STAGE")]
    pub force: Vec<String>,
}

/// What a pipeline is read with.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Settings {
    /// Override a parameter (`seed=3`) or a stage's configuration (`train.with.learning_rate=1e-4`).
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Set what this profile of the pipeline sets; a later one wins, and `--set` over all.
    #[arg(long, value_name = "NAME")]
    pub profile: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExecArgs {
    /// The pipeline file.
    #[arg(required_unless_present = "plan")]
    pub pipeline: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Run exactly what this plan says, as `plan --save` or `plan --json` wrote it, or refuse because something changed since.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pipeline", "stages", "set", "profile", "force", "dry_run"])]
    pub plan: Option<PathBuf>,
    /// How many stages run side by side at most [default: the number of cores].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// After a failure, go on with all that does not depend on what failed.
    #[arg(short, long)]
    pub keep_going: bool,
    /// Only say what would run.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Read every source file, also those that have not changed since they were hashed.
    #[arg(long)]
    pub verify_inputs: bool,
    /// Compute this share of the cached stages again, without memos and checkpoints, and compare: a stage that gives another
    /// result fails. At least one stage is taken, by chance.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub check_determinism: Option<f64>,
    /// Refuse pipelines whose stages run programs of their author's choosing (`run:`).
    #[arg(long)]
    pub no_run_stages: bool,
    /// Leave the remote store out that is configured.
    #[arg(long)]
    pub no_remote: bool,
    /// Write the HTML report, however long that takes and also where everything was cached. Without this option it is written
    /// where a stage ran and it takes less than 5 % of the run; `runner report RUN` writes it later.
    #[arg(long)]
    pub report: bool,
    /// Give the run a name, which then stands for it wherever a run is named.
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
    /// Write the plan to FILE, for `exec --plan FILE`.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Print the pipeline as one file: includes, profiles, `--set`, parameters and the environment filled in, ranges and draws
    /// written out. It can be run as it is. With --json, every stage and point with its whole configuration.
    #[arg(long, conflicts_with = "save")]
    pub resolved: bool,
    /// Leave the remote store out that is configured.
    #[arg(long)]
    pub no_remote: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// The stage, or one point of its matrix.
    pub stage: String,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GraphArgs {
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// How to write it.
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
    /// A picture.
    Svg,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StagesArgs {
    /// One kind, such as `greeks/analytic`.
    pub kind: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Change each source after a date and see whether anything moves that is of that date or before.
    ///
    /// The pipeline runs as it is. Then, for each source by itself (what its first stages make, and text files with dates that programs read), every
    /// number after the date becomes another, what follows runs again in a store of its own, and every table is compared up to the date, bit by bit.
    /// Training and evaluation are left out. The exit code is 1 where something moved.
    #[command(after_help = "\
Examples:
  runner check lookahead pipelines/rppo_options.yaml
  runner check lookahead p.yaml features --at 2019-06-28 --json")]
    Lookahead(LookaheadArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LookaheadArgs {
    #[command(flatten)]
    pub pipeline: PipelineArgs,
    /// The last date whose data stays as it is; the end of a month in the middle of the data by default.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
}
