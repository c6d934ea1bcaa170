//! `runner cache`.

use super::cache_report::{self as command, Keep};
use super::remote::{self, ProgressLine};
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use crate::values::{age, percentage};
use clap::{Args, Subcommand};
use runner_engine::{Failure, exit, text};
use runner_history::paper;
use runner_history::{self as history, AllMarks};
use std::time::Duration;

/// Inspect, verify, clean up and transfer the store.
///
/// `push` and `pull` transfer it to and from the remote store.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  runner cache status
  runner cache verify
  runner cache push latest
  runner cache gc --keep-last 5 --keep-run 20261120T213045-k3f9 --keep-younger-than 2d --dry-run")]
pub(crate) enum CacheCommand {
    /// Show the number and size of the objects in the store, by type.
    #[command(after_help = "Example:\n  runner cache status --json")]
    Status,
    Verify(VerifyArgs),
    Gc(GcArgs),
    Push(remote::PushArgs),
    Pull(remote::PullArgs),
}

/// Verify the checksums of the store.
///
/// Damaged objects are removed and computed again when needed; the exit code is then 3.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  runner cache verify\n  runner cache verify --sample 5%")]
pub(crate) struct VerifyArgs {
    /// Verify only this share of the blobs, different ones each time. All records are verified.
    #[arg(long, value_name = "N%", value_parser = percentage)]
    pub sample: Option<f64>,
}

/// Remove objects that no kept run needs.
///
/// `runner runs keep RUN` keeps a run. Fails while a run uses the store.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner cache gc --dry-run
  runner cache gc --keep-last 3 --keep-younger-than 12h
  runner cache gc --keep-last 0 --keep-run 20261120T213045-k3f9 --keep-younger-than 0s")]
pub(crate) struct GcArgs {
    /// Keep the results of the last N runs.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub keep_last: usize,
    /// Keep the results of this run (repeatable): an id, or a unique prefix or suffix of one.
    #[arg(long, value_name = "RUN", add = completed(candidates::runs))]
    pub keep_run: Vec<String>,
    /// Keep objects written or used within this time, and the results of runs started within it: `90s`, `2h`,
    /// `5d`.
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
    pub keep_younger_than: Duration,
    /// Dry run: show what would be removed.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

pub(crate) fn cache(session: &Session, command: &CacheCommand) -> Result<u8, Failure> {
    match command {
        CacheCommand::Push(args) => return remote::push(session, args),
        CacheCommand::Pull(args) => return remote::pull(session, args),
        _ => {}
    }
    let archive = session.archive()?;
    match command {
        CacheCommand::Push(_) | CacheCommand::Pull(_) => {}
        CacheCommand::Status => output::print(&command::status(&archive.store, session.json)?)?,
        CacheCommand::Verify(args) => {
            let line = ProgressLine::new(session);
            let (text, clean) =
                command::verify(&archive.store, args.sample.unwrap_or(1.0), session.json, |progress| {
                    line.show(|| {
                        let (done, total) = (text::size(progress.done), text::size(progress.total));
                        format!("hashing {done} of {total}")
                    });
                })?;
            line.clear();
            output::print(&text)?;
            if !clean {
                return Ok(exit::MACHINE_FAILED);
            }
        }
        CacheCommand::Gc(args) => {
            let runs = history::list(&archive.runs)?;
            let named = |name: &String| history::resolve(&archive.runs, name);
            let all_marks = AllMarks::read(&archive.runs)?;
            let kept = all_marks.kept(&runs)?;
            let registered = paper::kept(archive.store.root())?;
            let in_use = runs
                .iter()
                .map(|run| run.id.clone())
                .filter(|run| registered.runs.contains(run));
            let named: Result<Vec<String>, Failure> = args.keep_run.iter().map(named).collect();
            let keep = Keep {
                last_runs: args.keep_last,
                runs: named?.into_iter().chain(kept).chain(in_use).collect(),
                actions: registered.actions,
                younger_than: args.keep_younger_than,
            };
            let runs = (runs.as_slice(), &all_marks);
            let done = command::gc(&archive.store, &archive.runs, runs, &keep, args.dry_run, session.json)?;
            output::print(&done)?;
        }
    }
    Ok(exit::DONE)
}
