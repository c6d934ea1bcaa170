//! Arguments of the commands about the store.

use super::pipeline::Settings;
use super::values::{age, percentage};
use clap::{Args, Subcommand};

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
