//! Arguments of the commands about runs so far.

use super::values::age;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// RUN, RUN/STAGE, RUN/STAGE.OUTPUT, or the digest of an artifact. RUN is an id, a unique prefix or
    /// suffix of one, a name, or `latest`.
    pub what: String,
    /// The number of table rows to show.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub rows: usize,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LogsArgs {
    /// RUN/STAGE, where STAGE selects one point of a matrix. RUN is an id, a unique prefix or suffix of one,
    /// a name, or `latest`.
    pub what: String,
    /// Wait for more until the stage ends.
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Args, Clone, Debug)]
#[group(id = "servers", required = true, multiple = true, args = ["mlflow", "otlp"])]
pub(crate) struct TrackArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, or `latest`.
    pub run: String,
    /// The address of a tracking server of MLflow.
    #[arg(long, value_name = "URI")]
    pub mlflow: Option<String>,
    /// The experiment; the pipeline's name by default.
    #[arg(long, value_name = "NAME", requires = "mlflow")]
    pub experiment: Option<String>,
    /// The variable of the environment that holds a bearer token for MLflow.
    #[arg(long, value_name = "VARIABLE", requires = "mlflow")]
    pub token: Option<String>,
    /// The address of a collector of OpenTelemetry traces, by OTLP over HTTP.
    #[arg(long, value_name = "ENDPOINT")]
    pub otlp: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, or `latest`.
    pub run: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// RUN/STAGE.OUTPUT, RUN/STAGE if the stage has one output, or the digest of an artifact; or RUN, for its
    /// metrics.
    pub what: String,
    /// The directory to write to. For an artifact it must be empty or not exist; the metrics of another run
    /// are replaced.
    pub dest: PathBuf,
}

pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  runner compare latest                        # the points of a matrix, grouped over seeds
  runner compare baseline 20261120T213045-k3f9 --html
  runner compare 'sweep/train[lr=0.001]' 'sweep/train[lr=0.01]' --metric episodic_return
  runner compare --where 'tag = sweep' --metric evaluate.sharpe --csv > sweep.csv

Points that differ only in `seed` (an axis, a parameter or a field of a stage's configuration) form a \
group, whose metrics are shown as mean ± sample standard deviation of n values. Missing and non-finite \
values are not counted in n; a computation that occurs in several runs is counted once.";

#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// RUN, `RUN[seed=1]`, RUN/STAGE or `RUN/STAGE[seed=1]`. RUN is an id, a unique prefix or suffix of one,
    /// a name, or `latest`. A matrix stage stands for all of its points.
    #[arg(value_name = "RUN", required_unless_present = "filter")]
    pub runs: Vec<String>,
    /// Also compare all runs that match this expression; see `runner runs --help` for its syntax.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Show only this metric (repeatable); the first one is the sort key [default: the summary metrics of
    /// evaluations and trainings].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// The direction in which the first metric improves [default: by its name].
    #[arg(long, value_enum)]
    pub better: Option<Better>,
    /// Treat this axis or parameter as repetitions, like `seed` (repeatable).
    #[arg(long, value_name = "AXIS")]
    pub over: Vec<String>,
    /// Show every point separately, without grouping repetitions.
    #[arg(long, conflicts_with = "over")]
    pub each: bool,
    /// Also show parameters and metrics that are equal everywhere.
    #[arg(long)]
    pub all: bool,
    /// Print CSV with full precision.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Also write an HTML page with learning curves [default: compare.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "compare.html")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
}

pub(super) const RUNS_EXAMPLES: &str = "\
Examples:
  runner runs
  runner runs --last 5 --json
  runner runs --where 'evaluate.sharpe > 1 and not tag = bad' --sort=-evaluate.sharpe
  runner runs --where 'pipeline = cartpole and age < 2d' --show params.seed,train.episodic_return
  runner runs name latest baseline
  runner runs tag baseline sweep lr
  runner runs keep baseline
  runner runs prune --keep 100 --older-than 30d

Fields: id, pipeline, name, tag, kept, status, started, age, duration, params.NAME, STAGE.METRIC, \
STAGE[seed=1].METRIC, STAGE.with.KEY, STAGE.status, STAGE.seconds; for the points of a matrix also \
mean(X), sd(X), min(X), max(X), count(X).
Operators: = != < <= > >= and ~ (contains the text), combined with and, or, not and parentheses. For \
the points of a matrix, one match is sufficient. A field by itself matches runs that have it.
Values: 1.5, done, 'two words', 2026-11-20, 2026-11-20T21:30 (UTC), 90s, 2h, 5d.";

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "COMMAND")]
pub(crate) struct RunsArgs {
    /// The number of runs to list: the last ones, or with `--sort` the first ones.
    #[arg(long, visible_alias = "limit", value_name = "N", default_value_t = 20)]
    pub last: usize,
    /// List only runs that match this expression.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Sort by this field, `-FIELD` in descending order (repeatable); runs without a value come last.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// Also show these fields, separated by commas.
    #[arg(long, value_name = "FIELDS")]
    pub show: Vec<String>,
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    #[command(flatten)]
    Label(LabelCommand),
    /// Remove runs from the history: their events, metrics, logs and reports.
    #[command(after_help = "\
A run that is running or kept is refused, and one whose artifacts another run uses.

Example:
  runner runs rm 20261120T213045-k3f9")]
    Rm(RmArgs),
    /// Remove old runs from the history.
    ///
    /// Runs with a name, a tag or `keep` stay.
    #[command(after_help = "\
Runs that are running are not removed, nor those whose artifacts a remaining run uses. With both options \
a run is removed if it is old and not among the last ones.

Examples:
  runner runs prune --keep 100
  runner runs prune --older-than 30d --dry-run
  runner runs prune --keep 20 --older-than 30d && runner cache gc")]
    Prune(PruneArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RmArgs {
    /// The runs: ids, unique parts of their beginning or end, or names.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only print what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PruneArgs {
    /// Keep this many of the last runs.
    #[arg(long, value_name = "N", required_unless_present = "older_than")]
    pub keep: Option<usize>,
    /// Remove only runs that began longer ago than this: `90s`, `2h`, `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Only print what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

pub(super) const WATCH_EXAMPLES: &str = "\
Examples:
  runner watch
  runner watch latest --once
  runner watch 20261120T213045-k3f9 --json

On a terminal the display is updated until the run ends; otherwise it is printed every ten seconds.
With --json, one line per second is printed: the status of the run and the state of each running stage.
The directory of the run has its metrics as JSON lines (`metrics/`) and for `tensorboard --logdir` \
(`tensorboard/`).";

#[derive(Args, Clone, Debug)]
pub(crate) struct WatchArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, or `latest`.
    #[arg(default_value = "latest")]
    pub run: String,
    /// Print the current state once and exit.
    #[arg(long)]
    pub once: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Name a run; the name can be used wherever a run is expected.
    #[command(after_help = "Example:\n  runner runs name latest baseline\n  runner show baseline")]
    Name {
        /// The run.
        run: String,
        /// The name: a letter, then letters, digits, `_`, `-` and `.`. Names are unique.
        name: String,
    },
    /// Remove the name of a run.
    #[command(after_help = "Example:\n  runner runs unname baseline")]
    Unname {
        /// The run.
        run: String,
    },
    /// Tag a run.
    #[command(
        after_help = "Example:\n  runner runs tag latest sweep lr\n  runner runs --where 'tag = sweep'"
    )]
    Tag {
        /// The run.
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Remove tags from a run.
    #[command(after_help = "Example:\n  runner runs untag latest lr")]
    Untag {
        /// The run.
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Protect the results of a run from `cache gc`.
    #[command(after_help = "Example:\n  runner runs keep baseline")]
    Keep {
        /// The run.
        run: String,
    },
    /// Remove the protection of a run.
    #[command(after_help = "Example:\n  runner runs unkeep baseline")]
    Unkeep {
        /// The run.
        run: String,
    },
}
