//! Arguments of the commands about runs so far.

use super::values::age;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

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

pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  runner compare latest                        # the points of a matrix, seeds in groups
  runner compare baseline 20261120T213045-k3f9 --html
  runner compare 'sweep/train[lr=0.001]' 'sweep/train[lr=0.01]' --metric episodic_return
  runner compare --where 'tag = sweep' --metric evaluate.sharpe --csv > sweep.csv

Points that are equal in everything but what is called `seed` (an axis, a parameter, a stage's
configuration) are one group: its metrics are given as mean ± sample standard deviation of n values.
A value that is missing or not finite counts for nothing, and n says so; the same computation in two
runs counts once.";

#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// RUN, `RUN[seed=1]`, RUN/STAGE or `RUN/STAGE[seed=1]`. RUN is an id, a unique part of its beginning or end, the name it
    /// was given, or `latest`. A matrix stands for its points.
    #[arg(value_name = "RUN", required_unless_present = "filter")]
    pub runs: Vec<String>,
    /// Compare all runs for which this holds, too; `runner runs --help` says how it is written.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Show this metric only (repeatable), and sort by the first [default: those that sum up evaluations and trainings].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Which values of the first metric are better [default: by its name].
    #[arg(long, value_enum)]
    pub better: Option<Better>,
    /// Take this axis or parameter for repetitions, too, as `seed` is (repeatable).
    #[arg(long, value_name = "AXIS")]
    pub over: Vec<String>,
    /// Let every point stand for itself, without groups.
    #[arg(long, conflicts_with = "over")]
    pub each: bool,
    /// Show parameters and metrics that are the same everywhere, too.
    #[arg(long)]
    pub all: bool,
    /// Print CSV, numbers to the last digit.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write a page with learning curves, too [default: compare.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "compare.html")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Better {
    /// The highest is best.
    Higher,
    /// The lowest is best.
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

Fields: id, pipeline, name, tag, kept, status, started, age, duration, params.NAME, STAGE.METRIC,
STAGE[seed=1].METRIC, STAGE.with.KEY, STAGE.status, STAGE.seconds; of the points of a matrix also
mean(X), sd(X), min(X), max(X), count(X).
Comparisons: = != < <= > >= and ~ (holds the text), joined by and, or, not and parentheses. Of the
points of a matrix, one that fits is enough. A field alone holds where the run has it.
Values: 1.5, done, 'two words', 2026-11-20, 2026-11-20T21:30 (UTC), 90s, 2h, 5d.";

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "COMMAND")]
pub(crate) struct RunsArgs {
    /// How many to list: the last ones, or the first ones of what is sorted.
    #[arg(long, visible_alias = "limit", value_name = "N", default_value_t = 20)]
    pub last: usize,
    /// Only runs for which this holds.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Sort by this field, `-FIELD` from the greatest on (repeatable); what has no value comes last.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// Show these fields too, with commas between them.
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
    /// Remove old runs from the history, except those with a name, a tag or `keep`.
    #[command(after_help = "\
Runs that are running are not removed, nor those whose artifacts a remaining run uses. With both options
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

On a terminal the picture is drawn again until the run ends; elsewhere there is one every ten seconds.
With --json it is a line every second: the run's status and each running stage's figures.
The run's folder has its metrics as JSON lines (`metrics/`) and for `tensorboard --logdir` (`tensorboard/`).";

#[derive(Args, Clone, Debug)]
pub(crate) struct WatchArgs {
    /// An id, a unique part of its beginning or end, the name it was given, or `latest`.
    #[arg(default_value = "latest")]
    pub run: String,
    /// Show how it is doing once, and go.
    #[arg(long)]
    pub once: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Give a run a name, which then stands for it wherever a run is named.
    #[command(after_help = "Example:\n  runner runs name latest baseline\n  runner show baseline")]
    Name {
        /// The run.
        run: String,
        /// Its name: a letter, then letters, digits, `_`, `-` and `.`. No two runs have the same.
        name: String,
    },
    /// Take a run's name away.
    #[command(after_help = "Example:\n  runner runs unname baseline")]
    Unname {
        /// The run.
        run: String,
    },
    /// Tag a run.
    #[command(after_help = "Example:\n  runner runs tag latest sweep lr\n  runner runs --where 'tag = sweep'")]
    Tag {
        /// The run.
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Take tags away.
    #[command(after_help = "Example:\n  runner runs untag latest lr")]
    Untag {
        /// The run.
        run: String,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Keep all that a run needs when `cache gc` drops what no kept run needs.
    #[command(after_help = "Example:\n  runner runs keep baseline")]
    Keep {
        /// The run.
        run: String,
    },
    /// Keep it no longer.
    #[command(after_help = "Example:\n  runner runs unkeep baseline")]
    Unkeep {
        /// The run.
        run: String,
    },
}
