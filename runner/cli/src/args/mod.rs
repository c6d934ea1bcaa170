//! The program's own arguments, the list of commands, and the arguments that several commands share.

pub(crate) mod help;
pub(crate) mod values;

use crate::commands::{
    bench, cache, check, compare, completions, data, exec, export, logs, manual, plan, policy, runs,
    schedule, serve, show, stages, track, watch, why,
};
use crate::complete::{candidates, completed};
use clap::{Args, Parser, Subcommand};
use serde::{Deserialize, Serialize};
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
    Init(data::init::InitArgs),
    Exec(exec::ExecArgs),
    Plan(plan::PlanArgs),
    Why(why::WhyArgs),
    Graph(stages::GraphArgs),
    Stages(stages::StagesArgs),
    /// Print the JSON Schema of pipeline files, for editors.
    #[command(after_help = "\
Example:
  runner schema > pipeline.schema.json
  # then, in a pipeline's first line:  # yaml-language-server: $schema=pipeline.schema.json")]
    Schema,
    Runs(runs::RunsArgs),
    Compare(compare::CompareArgs),
    Show(show::ShowArgs),
    Watch(watch::WatchArgs),
    Logs(logs::LogsArgs),
    Track(track::TrackArgs),
    Serve(serve::ServeArgs),
    Report(runs::ReportArgs),
    Export(export::ExportArgs),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    #[command(subcommand)]
    Check(check::CheckCommand),
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Show versions, devices and limits of this machine, and problems.
    ///
    /// Also the instruction sets for which there are kernels.
    #[command(after_help = "\
Example:
  runner doctor")]
    Doctor,
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
    Man(manual::ManArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PipelineArgs {
    /// The pipeline file.
    #[arg(add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// The selected stages of a pipeline, and its settings.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Selection {
    /// Stages to run, with the stages they need [default: all]. Of a matrix, `train[lr=1e-4]` selects the
    /// points with this value, as in `needs:`, and `train` or `train[*]` all of them.
    #[arg(value_name = "STAGE", add = completed(candidates::stages))]
    pub stages: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: Settings,
    /// Run this stage even if it is cached, without memos and checkpoints (repeatable).
    #[arg(long, value_name = "STAGE", add = completed(candidates::stages))]
    pub force: Vec<String>,
}

/// The settings that a pipeline is read with.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Settings {
    /// Override a parameter (`seed=3`) or a field of a stage's configuration
    /// (`train.with.learning_rate=1e-4`) (repeatable).
    #[arg(long, value_name = "NAME=VALUE", add = completed(candidates::settings))]
    pub set: Vec<String>,
    /// Apply a profile of the pipeline (repeatable): a later profile overrides an earlier one, `--set`
    /// overrides all.
    #[arg(long, value_name = "NAME", add = completed(candidates::profiles))]
    pub profile: Vec<String>,
    /// Read the pipeline as in that night of its schedule: `${schedule.date}` is DATE, and the parameters are
    /// those of the night.
    #[arg(long, value_name = "DATE")]
    pub night: Option<String>,
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
