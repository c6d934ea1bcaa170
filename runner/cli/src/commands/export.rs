//! `runner export`.

use super::remote;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, text};
use runner_history::named::{self, Named};
use runner_report::write_metric_files;
use std::path::PathBuf;

/// Write an artifact's files, or a run's metrics, to a directory.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner export latest/train.policy policy/
  runner export latest/plot.figure figures/
  runner export latest results/          # metrics.json and plots/STAGE/METRIC.tsv")]
pub(crate) struct ExportArgs {
    /// RUN/STAGE.OUTPUT, RUN/STAGE if the stage has one output, or the digest of an artifact; or RUN, for its
    /// metrics.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// The directory to write to. For an artifact it must be empty or not exist; the metrics of another run
    /// are replaced.
    pub dest: PathBuf,
}

pub(crate) fn export(session: &Session, args: &ExportArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let dest = session.current.join(&args.dest);
    let named = named::find(&archive, &args.what)?;
    if let Named::Run(run) = &named {
        let written = write_metric_files(run, &archive.store, &dest)?;
        if session.json {
            return output::print_json(&serde_json::json!({
                "run": run.id,
                "dest": dest,
                "values": written.values,
                "curves": written.curves,
            }));
        }
        return output::print(&format!(
            "{} and {} of run {} in {}\n",
            text::count(written.values, "metric"),
            text::count(written.curves, "curve"),
            run.id,
            args.dest.display()
        ));
    }
    let digest = named::as_artifact(named, &args.what)?;
    let found = archive.store.artifact(digest)?;
    let used = dest.is_file() || std::fs::read_dir(&dest).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(Failure::usage(format!("`{}` already exists", args.dest.display()))
            .hint("name a directory that does not exist or is empty"));
    }
    let exported = archive.store.export(&found, &dest);
    if let Some(upstream) = archive.store.upstream() {
        remote::warn(upstream);
    }
    exported?;
    let bytes: u64 = found.entries.iter().map(|entry| entry.size).sum();
    if session.json {
        return output::print_json(&serde_json::json!({
            "digest": digest,
            "dest": dest,
            "files": found.entries.len(),
            "bytes": bytes,
        }));
    }
    output::print(&format!(
        "{} of {} in {}\n",
        text::count(found.entries.len(), "file"),
        text::size(bytes),
        args.dest.display()
    ))
}
