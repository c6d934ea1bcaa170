//! The arguments of every command.

use super::compare::CompareArgs;
use super::runs::RunsArgs;
use super::watch::WatchArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a stage failed; 2 the command line or the pipeline file is wrong; 3 the store or the machine failed;
130 interrupted.

Environment: RUNNER_HOME is where results and runs are kept (else `.runner/` of the nearest folder above the pipeline that has
one or is a repository's root); RUNNER_REMOTE is the URL of a remote store, in place of `remote: url:` in the home's `config.yaml`;
NO_COLOR turns colours off.";

/// A declarative experiment runner for reinforcement learning on markets.
#[derive(Debug, Parser)]
#[command(name = "runner", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Arguments {
    /// Run as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Say nothing but errors and results.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: logs of stages, and why they run.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run what is not cached of a pipeline.
    #[command(after_help = "\
Examples:
  runner exec pipelines/rppo_options.yaml
  runner exec pipelines/rppo_options.yaml train --set seed=3 --set train.with.learning_rate=1e-4
  runner exec p.yaml --force evaluate --keep-going
  runner exec p.yaml --json | jq 'select(.event == \"metric\")'

With --json, each event is a line on standard output.")]
    Exec(ExecArgs),
    /// What would run and what is cached, and why. Runs nothing.
    #[command(after_help = "\
Examples:
  runner plan pipelines/rppo_options.yaml
  runner plan p.yaml --set train.with.learning_rate=1e-4
  runner plan p.yaml --profile quick --resolved
  runner plan p.yaml --save plan.json && runner exec --plan plan.json")]
    Plan(PlanArgs),
    /// What made a stage's key differ from its last run.
    #[command(after_help = "\
Examples:
  runner why pipelines/rppo_options.yaml train
  runner why p.yaml 'train[seed=2]' --set timesteps=8192")]
    Why(WhyArgs),
    /// The graph of a pipeline.
    #[command(after_help = "\
Examples:
  runner graph pipelines/rppo_options.yaml
  runner graph p.yaml --format dot | dot -Tsvg > graph.svg")]
    Graph(GraphArgs),
    /// The stage kinds, or one kind's ports and configuration.
    #[command(after_help = "\
Examples:
  runner stages
  runner stages train/recurrent_ppo")]
    Stages(StagesArgs),
    /// The JSON Schema of pipeline files, for editors.
    #[command(after_help = "\
Example:
  runner schema > pipeline.schema.json
  # then, in a pipeline's first line:  # yaml-language-server: $schema=pipeline.schema.json")]
    Schema,
    /// The runs so far: to find some, and to name, tag and keep them.
    #[command(after_help = super::runs::EXAMPLES)]
    Runs(RunsArgs),
    /// Runs, or points of a matrix, side by side: parameters that differ, metrics with their spread over seeds.
    #[command(after_help = super::compare::EXAMPLES)]
    Compare(CompareArgs),
    /// A run, a stage of it, or an artifact: schema, first rows, metrics, lineage.
    #[command(after_help = "\
Examples:
  runner show latest
  runner show latest/market.chain --rows 20
  runner show 20261120T213045-k3f9/train
  runner show 3fa94c81")]
    Show(ShowArgs),
    /// How a running run is doing: speed, losses, returns, processor and memory of its stages.
    #[command(after_help = super::watch::EXAMPLES)]
    Watch(WatchArgs),
    /// Write the HTML report of a run into its folder.
    #[command(after_help = "\
Example:
  runner report latest")]
    Report(ReportArgs),
    /// Write an artifact as ordinary files.
    #[command(after_help = "\
Examples:
  runner export latest/train.policy policy/
  runner export latest/plot.figure figures/")]
    Export(ExportArgs),
    /// What the store holds, whether it is sound, and dropping what no kept run needs.
    #[command(
        subcommand,
        after_help = "\
Examples:
  runner cache status
  runner cache verify
  runner cache push latest
  runner cache gc --keep-last 5 --keep-run 20261120T213045-k3f9 --keep-younger-than 2d --dry-run"
    )]
    Cache(CacheCommand),
    /// Whether what a pipeline makes can be trusted.
    #[command(
        subcommand,
        after_help = "\
Example:
  runner check lookahead pipelines/rppo_options.yaml"
    )]
    Check(CheckCommand),
    /// Versions, devices, instruction sets and limits, and what is wrong with them.
    #[command(after_help = "\
Example:
  runner doctor")]
    Doctor,
    /// Measure this machine.
    #[command(after_help = "\
Examples:
  runner bench greeks
  runner bench cache --json")]
    Bench(BenchArgs),
    /// A script that completes commands in a shell.
    #[command(after_help = "\
Example:
  runner completions bash > ~/.local/share/bash-completion/completions/runner")]
    Completions(CompletionsArgs),
}

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
}

#[derive(Args, Clone, Debug)]
pub(crate) struct StagesArgs {
    /// One kind, such as `greeks/analytic`.
    pub kind: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// RUN, RUN/STAGE, RUN/STAGE.OUTPUT, or the digest of an artifact. RUN is an id, a unique part of its beginning or end,
    /// the name it was given, or `latest`.
    pub what: String,
    /// How many rows of a table to show.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub rows: usize,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// An id, a unique part of its beginning or end, the name it was given, or `latest`.
    pub run: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// RUN/STAGE.OUTPUT, RUN/STAGE where it has one output, or the digest of an artifact.
    pub what: String,
    /// The folder to write to. It must not exist, or be empty.
    pub dest: PathBuf,
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

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure.
    #[arg(value_enum)]
    pub what: super::bench::What,
    /// With `train`: also from 1 to 4096 environments, 1 to all threads, and LSTMs of 64 to 1024; takes some minutes.
    #[arg(long)]
    pub sweep: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// What the store holds, by kind, and how large it is.
    #[command(after_help = "Example:\n  runner cache status --json")]
    Status,
    /// Hash everything again. What is damaged is forgotten, and computed again when it is needed; the exit code is then 3.
    #[command(after_help = "Examples:\n  runner cache verify\n  runner cache verify --sample 5%")]
    Verify(VerifyArgs),
    /// Drop what no kept run needs (`runner runs keep RUN` keeps one). Runs themselves stay listed. Refused while a run uses the store.
    #[command(after_help = "\
Examples:
  runner cache gc --dry-run
  runner cache gc --keep-last 3 --keep-younger-than 12h
  runner cache gc --keep-last 0 --keep-run 20261120T213045-k3f9 --keep-younger-than 0s")]
    Gc(GcArgs),
    /// Upload what runs made to the remote store, as far as it is not there.
    #[command(after_help = "\
Examples:
  runner cache push                 # the last run
  runner cache push 20261120T213045-k3f9
  runner cache push --all           # all actions and memos that are here")]
    Push(PushArgs),
    /// Fetch from the remote store what runs or pipelines need, as far as it is not here.
    #[command(after_help = "\
Examples:
  runner cache pull pipelines/rppo_options.yaml
  runner cache pull latest
  runner cache pull --all           # all that the remote has")]
    Pull(PullArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PushArgs {
    /// A run: its id, a unique part of it, or `latest` [default: latest].
    #[arg(conflicts_with = "all")]
    pub run: Option<String>,
    /// All actions and memos of the store.
    #[arg(long)]
    pub all: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PullArgs {
    /// Runs of this home, or pipeline files: what is cached of their stages [default: latest].
    #[arg(value_name = "RUN|PIPELINE", conflicts_with = "all")]
    pub what: Vec<String>,
    #[command(flatten)]
    pub settings: Settings,
    /// All that the remote has.
    #[arg(long, conflicts_with_all = ["set", "profile"])]
    pub all: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyArgs {
    /// Hash only this share of the blobs, others each time. Records are all checked.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub sample: Option<f64>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GcArgs {
    /// Keep what this many of the last runs need.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub keep_last: usize,
    /// Keep what this run needs (repeatable): an id, or a unique part of its beginning or end.
    #[arg(long, value_name = "RUN")]
    pub keep_run: Vec<String>,
    /// Keep what was written or used in this time, and what runs that began in it need: `90s`, `2h`, `5d`.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
    pub keep_younger_than: std::time::Duration,
    /// Only say what would be dropped.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// A share from 0 to 1, written `10%`.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(number) if number > 0.0 && number <= 100.0 => Ok(number / 100.0),
        _ => Err("a share is written `10%`, more than 0 and at most 100".to_owned()),
    }
}

pub(crate) fn age(text: &str) -> Result<std::time::Duration, String> {
    if text.trim_end_matches(['s', 'm', 'h', 'd']) == "0" {
        return Ok(std::time::Duration::ZERO);
    }
    crate::pipeline::duration(text).ok_or_else(|| "an age is written `90s`, `15m`, `2h` or `5d`".to_owned())
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_age_may_be_nothing() {
        assert_eq!(age("0s"), Ok(std::time::Duration::ZERO));
        assert_eq!(age("90s"), Ok(std::time::Duration::from_secs(90)));
        assert!(age("").is_err() && age("s").is_err() && age("-1s").is_err());
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("runner "), "{}", command.get_name());
        }
    }
}
