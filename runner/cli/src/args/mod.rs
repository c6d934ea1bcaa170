//! The arguments of every command: those that read a pipeline, those about runs so far, and those about the store.

mod history;
mod pipeline;
mod store;
mod values;

pub(crate) use history::{
    Better, CompareArgs, ExportArgs, LabelCommand, PruneArgs, ReportArgs, RmArgs, RunsArgs, RunsCommand, ShowArgs,
    WatchArgs,
};
pub(crate) use pipeline::{
    CheckCommand, ExecArgs, GraphArgs, GraphFormat, LookaheadArgs, PipelineArgs, PlanArgs, Selection, Settings,
    StagesArgs, WhyArgs,
};
pub(crate) use store::{CacheCommand, PullArgs, PushArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use history::{COMPARE_EXAMPLES, RUNS_EXAMPLES, WATCH_EXAMPLES};
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
  runner graph p.yaml --format svg > graph.svg")]
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
    #[command(after_help = RUNS_EXAMPLES)]
    Runs(RunsArgs),
    /// Runs, or points of a matrix, side by side: parameters that differ, metrics with their spread over seeds.
    #[command(after_help = COMPARE_EXAMPLES)]
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
    #[command(after_help = WATCH_EXAMPLES)]
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

/// What can be measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BenchTarget {
    /// Greeks and implied volatilities a second.
    Greeks,
    /// Feature rows a second.
    Features,
    /// Rows of CSV a second.
    Ingest,
    /// Environment steps a second.
    Env,
    /// Training steps a second.
    Train,
    /// Training steps a second on each device.
    Device,
    /// What a run costs that has nothing, little or everything to do, and what the store costs.
    Cache,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure.
    #[arg(value_enum)]
    pub what: BenchTarget,
    /// With `train`: also from 1 to 4096 environments, 1 to all threads, and LSTMs of 64 to 1024; takes some minutes.
    #[arg(long)]
    pub sweep: bool,
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
    fn every_command_has_an_example() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("runner "), "{}", command.get_name());
        }
    }
}
