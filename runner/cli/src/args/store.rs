//! Arguments of the commands about the store.

use super::pipeline::Settings;
use super::values::{age, percentage};
use clap::{Args, Subcommand};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show the number and size of the objects in the store, by type.
    #[command(after_help = "Example:\n  runner cache status --json")]
    Status,
    /// Verify the checksums of the store.
    ///
    /// Damaged objects are removed and computed again when needed; the exit code is then 3.
    #[command(after_help = "Examples:\n  runner cache verify\n  runner cache verify --sample 5%")]
    Verify(VerifyArgs),
    /// Remove objects that no kept run needs.
    ///
    /// `runner runs keep RUN` keeps a run. Fails while a run uses the store.
    #[command(after_help = "\
Examples:
  runner cache gc --dry-run
  runner cache gc --keep-last 3 --keep-younger-than 12h
  runner cache gc --keep-last 0 --keep-run 20261120T213045-k3f9 --keep-younger-than 0s")]
    Gc(GcArgs),
    /// Upload results of runs that are missing in the remote store.
    #[command(after_help = "\
Examples:
  runner cache push                 # the last run
  runner cache push 20261120T213045-k3f9
  runner cache push --all           # all actions and memos that are here")]
    Push(PushArgs),
    /// Download results that runs or pipelines need from the remote store.
    #[command(after_help = "\
Examples:
  runner cache pull pipelines/rppo_options.yaml
  runner cache pull latest
  runner cache pull --all           # all that the remote has")]
    Pull(PullArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PushArgs {
    /// A run: its id, a unique prefix or suffix of it, its name, or `latest` [default: latest].
    #[arg(conflicts_with = "all")]
    pub run: Option<String>,
    /// Upload all actions and memos of the store.
    #[arg(long)]
    pub all: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PullArgs {
    /// Runs, or pipeline files, whose cached results are downloaded [default: latest].
    #[arg(value_name = "RUN|PIPELINE", conflicts_with = "all")]
    pub what: Vec<String>,
    #[command(flatten)]
    pub settings: Settings,
    /// Download everything in the remote store.
    #[arg(long, conflicts_with_all = ["set", "profile"])]
    pub all: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyArgs {
    /// Verify only this share of the blobs, different ones each time. All records are verified.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub sample: Option<f64>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GcArgs {
    /// Keep the results of the last N runs.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub keep_last: usize,
    /// Keep the results of this run (repeatable): an id, or a unique prefix or suffix of one.
    #[arg(long, value_name = "RUN")]
    pub keep_run: Vec<String>,
    /// Keep objects written or used within this time, and the results of runs started within it: `90s`, `2h`,
    /// `5d`.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
    pub keep_younger_than: std::time::Duration,
    /// Dry run: show what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}
