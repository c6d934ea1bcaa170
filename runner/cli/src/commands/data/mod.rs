//! `runner data` and `runner init`: the layouts known, what files are, and their conversion.

mod attempt;
mod chain;
mod contents;
mod first;
pub(crate) mod init;
mod inspect;
mod layouts;
mod plot;
mod read;
mod trial;

pub(crate) use init::init;

use crate::output;
use crate::session::Session;
use clap::{Args, Subcommand};
use read::ReadArgs;
use runner_engine::{Failure, text};
use runner_report::reporter::Verbosity;
use serde_json::json;
use std::path::PathBuf;

/// Inspect and convert files of market data; list their layouts.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  runner data inspect data/spx_eod_202312.txt
  runner data layouts")]
pub(crate) enum DataCommand {
    Layouts(layouts::LayoutsArgs),
    Inspect(inspect::InspectArgs),
    Convert(ConvertArgs),
}

/// Read files as a stage would, and write Parquet of our schema.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner data convert data/options --to converted/")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// The directory to write to.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
}

pub(crate) fn data(session: &Session, command: &DataCommand) -> Result<(), Failure> {
    match command {
        DataCommand::Layouts(args) => layouts::layouts(session, args),
        DataCommand::Inspect(args) => inspect::inspect(session, &args.read),
        DataCommand::Convert(args) => convert(session, args),
    }
}

fn convert(session: &Session, args: &ConvertArgs) -> Result<(), Failure> {
    let dest = session.current.join(&args.to);
    let used = dest.is_file() || std::fs::read_dir(&dest).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(Failure::usage(format!("`{}` already exists", args.to.display()))
            .hint("name a directory that does not exist or is empty"));
    }
    let looked = read::look(&session.current, &args.read)?;
    let (table, _) = looked.table(&args.read)?;
    let (_scratch, read, warnings) = read::read(session, &args.read, table)?;
    read.store.export(&read.artifact, &dest)?;
    if !matches!(session.verbosity, Verbosity::Quiet) {
        warnings.iter().for_each(|warning| output::warn(warning));
    }
    let bytes: u64 = read.artifact.entries.iter().map(|entry| entry.size).sum();
    if session.json {
        let mut document = json!({
            "table": table,
            "dest": dest,
            "files": read.artifact.entries.len(),
            "bytes": bytes,
            "rows": read.artifact.meta["rows"],
        });
        if !warnings.is_empty() {
            document["warnings"] = json!(warnings);
        }
        return output::print_json(&document);
    }
    output::print(&format!(
        "{} rows, {} of {} in {}\n",
        read.artifact.meta["rows"],
        text::count(read.artifact.entries.len(), "file"),
        text::size(bytes),
        args.to.display()
    ))
}
