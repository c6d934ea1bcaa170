//! The arguments of every command: those that read a pipeline, those about runs so far, and those about the
//! store.

mod data;
pub(crate) mod help;
mod history;
mod pipeline;
mod policy;
mod schedule;
mod store;
mod values;

pub(crate) use crate::commands::serve::ServeArgs;
pub(crate) use data::{ConvertArgs, DataCommand, InitArgs, LayoutsArgs, ReadArgs};
pub(crate) use history::{
    Better, CompareArgs, ExportArgs, LabelCommand, LogsArgs, PruneArgs, ReportArgs, RmArgs, RunsArgs,
    RunsCommand, ShowArgs, TrackArgs, WatchArgs,
};
pub(crate) use pipeline::{
    CheckCommand, ExecArgs, GraphArgs, GraphFormat, LookaheadArgs, PipelineArgs, PlanArgs, RunCheck,
    Selection, Settings, StagesArgs, WhyArgs,
};
pub(crate) use policy::{
    PolicyActArgs, PolicyCommand, PolicyDiffArgs, PolicyExportArgs, PolicyFormat, PolicyPromoteArgs,
    PolicyRegisterArgs, PolicyRollbackArgs,
};
pub(crate) use schedule::{
    Installer, NextArgs, NightsArgs, RunDueArgs, ScheduleCommand, ScheduledArgs, TimerArgs,
};
pub(crate) use store::{CacheCommand, PullArgs, PushArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use history::{COMPARE_EXAMPLES, RUNS_EXAMPLES, WATCH_EXAMPLES};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a stage failed; 2 the command line or the pipeline file is wrong; 3 the store or the \
machine failed, \
or standard output cannot be written; 4 a check could not check something; 130 interrupted (Ctrl-C, \
SIGTERM, SIGHUP; a second \
signal ends the program at once).

Environment variables: RUNNER_HOME is the directory of the store and the run history (default: `.runner/` \
in the nearest \
directory above the pipeline that has one or is a repository root); RUNNER_REMOTE is the URL of the remote \
store and overrides \
`remote: url:` in `config.yaml` of that directory; NO_COLOR disables colours.";

/// A declarative experiment runner for reinforcement learning on markets.
#[derive(Debug, Parser)]
#[command(name = "runner", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Arguments {
    /// Run in the directory DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Global options")]
    pub directory: Option<PathBuf>,
    /// Print only errors and results.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Global options"
    )]
    pub quiet: bool,
    /// Print stage logs and the reason why each stage runs.
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub verbose: bool,
    /// Print the result as JSON.
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a first pipeline for files of market data.
    ///
    /// Their kinds are found by their contents, as by `runner data inspect`.
    #[command(after_help = "\
Examples:
  runner init data/spx_eod_2023*.txt data/treasury_rates.csv
  runner init stocks.parquet --to stocks.yaml
  runner init                              # a simulated market, without data")]
    Init(InitArgs),
    /// Run the stages of a pipeline that are not cached.
    #[command(after_help = "\
Examples:
  runner exec pipelines/rppo_options.yaml
  runner exec pipelines/rppo_options.yaml train --set seed=3 --set train.with.learning_rate=1e-4
  runner exec p.yaml --force evaluate --keep-going
  runner exec p.yaml --json | jq 'select(.event == \"metric\")'

With --json, each event is one line of standard output.")]
    Exec(ExecArgs),
    /// Show what would run and what is cached, and why; run nothing.
    #[command(after_help = "\
Examples:
  runner plan pipelines/rppo_options.yaml
  runner plan p.yaml --set train.with.learning_rate=1e-4
  runner plan p.yaml --profile quick --resolved
  runner plan p.yaml --save plan.json && runner exec --plan plan.json")]
    Plan(PlanArgs),
    /// Explain why a stage's key differs from its last run.
    #[command(after_help = "\
Examples:
  runner why pipelines/rppo_options.yaml train
  runner why p.yaml 'train[seed=2]' --set timesteps=8192")]
    Why(WhyArgs),
    /// Print the task graph of a pipeline.
    #[command(after_help = "\
Examples:
  runner graph pipelines/rppo_options.yaml
  runner graph p.yaml --format svg > graph.svg")]
    Graph(GraphArgs),
    /// List the stage kinds, or describe one: ports and configuration.
    #[command(after_help = "\
Examples:
  runner stages
  runner stages train/recurrent_ppo")]
    Stages(StagesArgs),
    /// Print the JSON Schema of pipeline files, for editors.
    #[command(after_help = "\
Example:
  runner schema > pipeline.schema.json
  # then, in a pipeline's first line:  # yaml-language-server: $schema=pipeline.schema.json")]
    Schema,
    /// List and filter the runs, and name, tag or keep them.
    #[command(after_help = RUNS_EXAMPLES)]
    Runs(RunsArgs),
    /// Compare runs or points of a matrix: parameters and metrics.
    ///
    /// Parameters that differ, and metrics with mean and standard deviation over seeds.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Show a run, a stage of a run, or an artifact.
    ///
    /// Of an artifact: schema, first rows, metrics, provenance.
    #[command(after_help = "\
Examples:
  runner show latest
  runner show latest/market.chain --rows 20
  runner show 20261120T213045-k3f9/train
  runner show 3fa94c81")]
    Show(ShowArgs),
    /// Follow a run in progress: speed, losses, returns, CPU, memory.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Print the log of a stage.
    #[command(after_help = "\
Examples:
  runner logs latest/train
  runner logs 'latest/train[seed=1]' -f")]
    Logs(LogsArgs),
    /// Write a run to MLflow, or its trace to OpenTelemetry.
    #[command(after_help = "\
Examples:
  runner track latest --mlflow http://127.0.0.1:5000
  runner track 20261120T213045-k3f9 --mlflow http://127.0.0.1:5000 --experiment desk
  runner track latest --otlp http://127.0.0.1:4318")]
    Track(TrackArgs),
    /// Show runs, data and the store as pages for a browser.
    ///
    /// Running ones are followed as they go.
    #[command(after_help = "\
Examples:
  runner serve
  runner serve --bind 127.0.0.1:9000 --allow-run
  runner serve --schedule pipelines/nightly.yaml
  runner serve --bind 0.0.0.0:8642 --token-file token

On a loopback address only this machine can connect. Elsewhere a token is needed with every request; the \
printed address has it. Traffic is not encrypted: use an SSH tunnel or a proxy with TLS over networks.")]
    Serve(ServeArgs),
    /// Write the HTML report of a run to its directory.
    #[command(after_help = "\
Example:
  runner report latest")]
    Report(ReportArgs),
    /// Write an artifact's files, or a run's metrics, to a directory.
    #[command(after_help = "\
Examples:
  runner export latest/train.policy policy/
  runner export latest/plot.figure figures/
  runner export latest results/          # metrics.json and plots/STAGE/METRIC.tsv")]
    Export(ExportArgs),
    /// Decide with, export and register trained policies.
    #[command(
        subcommand,
        after_help = "\
Example:
  runner policy export latest/train --format numpy policy.npz"
    )]
    Policy(PolicyCommand),
    /// Run pipelines on the nights of their schedules; install timers.
    #[command(
        subcommand,
        after_help = "\
Examples:
  runner schedule next nightly.yaml
  runner schedule install nightly.yaml
  runner schedule run-due nightly.yaml
  runner schedule list
  runner schedule log nightly.yaml --last 30"
    )]
    Schedule(ScheduleCommand),
    /// Inspect, verify, clean up and transfer the store.
    ///
    /// `push` and `pull` transfer it to and from the remote store.
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
    /// Check the results of a pipeline for look-ahead.
    #[command(
        subcommand,
        after_help = "\
Example:
  runner check lookahead pipelines/rppo_options.yaml"
    )]
    Check(CheckCommand),
    /// Inspect and convert files of market data; list their layouts.
    #[command(
        subcommand,
        after_help = "\
Examples:
  runner data inspect data/spx_eod_202312.txt
  runner data layouts"
    )]
    Data(DataCommand),
    /// Show versions, devices and limits of this machine, and problems.
    ///
    /// Also the instruction sets for which there are kernels.
    #[command(after_help = "\
Example:
  runner doctor")]
    Doctor,
    /// Run benchmarks on this machine.
    #[command(after_help = "\
Examples:
  runner bench greeks
  runner bench env --python ./env
  runner bench env --of latest/env
  runner bench track --uri http://127.0.0.1:5000
  runner bench cache --json")]
    Bench(BenchArgs),
    /// Print the completion script of a shell.
    ///
    /// Commands, options, and stages, kinds, runs, profiles and parameters as they are are completed.
    #[command(after_help = "\
Examples:
  source <(runner completions bash)      # in ~/.bashrc
  source <(runner completions zsh)       # in ~/.zshrc, after compinit
  runner completions fish | source       # in ~/.config/fish/config.fish

The script calls this program for the candidates. Print it anew after an upgrade, as these lines do.")]
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each command.
    #[command(after_help = "\
Example:
  runner man ~/.local/share/man/man1 && man runner-exec")]
    Man(ManArgs),
}

/// A benchmark.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BenchTarget {
    /// Greeks and implied volatilities per second.
    Greeks,
    /// Feature rows per second.
    Features,
    /// CSV rows per second; option chains cold and with a day appended, time and memory.
    Ingest,
    /// Environment steps per second.
    Env,
    /// Steps of symbolic environments per second.
    Symbolic,
    /// Training steps per second.
    Train,
    /// The same of trainers by replay buffer, evolution strategies and populations.
    Trainers,
    /// Training steps per second on each device.
    Device,
    /// Overhead of runs that are cached, partly cached and not cached, and of the store.
    Cache,
    /// Cost of `track:`: a training without a server, with one that answers at once, one that answers 200 ms
    /// late, and one that is away, by turns.
    Track,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// The benchmark.
    #[arg(value_enum)]
    pub what: BenchTarget,
    /// With `train`: also vary the environments from 1 to 4096, the threads from 1 to all, and the LSTM size
    /// from 64 to 1024; with `ingest`: also chains of 7 and 30 million rows. Takes some minutes.
    #[arg(long)]
    pub sweep: bool,
    /// With `env`: an interpreter with gymnasium, or the directory of an environment; CartPole by
    /// `env/python` is measured, beside the native one and Gymnasium's own batches.
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<String>,
    /// With `env`: environments of runs, RUN/STAGE or RUN/STAGE.OUTPUT, of any kind; these are measured, 1,
    /// 16 and 256 of each, with random actions among those that are allowed.
    #[arg(long, value_name = "NAME", num_args = 1.., conflicts_with = "python")]
    pub of: Vec<String>,
    /// With `symbolic`: files of facts, each line with head, relation and tail or `relation(head,tail).`,
    /// instead of families drawn at random.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub triples: Vec<PathBuf>,
    /// With `track`: the address of a server of MLflow that is measured, too.
    #[arg(long, value_name = "URI")]
    pub uri: Option<String>,
    /// With `track`: the runs with each server.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub runs: usize,
    /// With `track`: the steps of the training.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub steps: u64,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// The directory to write to; it is created.
    pub dest: PathBuf,
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
