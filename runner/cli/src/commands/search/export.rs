//! `runner search export`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, text};
use runner_search::export::{csv, journal};
use serde_json::json;
use std::path::PathBuf;

/// Write the trials of a search as CSV, or as a study of Optuna.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner search export tune-3fa94c81 trials.csv
  runner search export tune-3fa94c81 study.journal --optuna
  optuna-dashboard study.journal")]
pub(crate) struct SearchExportArgs {
    /// The search: an id or a unique part of one, a run that searched, or a pipeline.
    #[arg(add = completed(candidates::searches))]
    pub search: String,
    /// The file, which must not exist.
    pub dest: PathBuf,
    /// Write a journal that `optuna-dashboard DEST` and Optuna's `JournalFileBackend` read, in place of CSV.
    #[arg(long)]
    pub optuna: bool,
}

pub(super) fn export(session: &Session, args: &SearchExportArgs) -> Result<(), Failure> {
    let view = super::named(session, Some(&args.search))?;
    let record = &view.record;
    let path = session.current.join(&args.dest);
    if path.exists() {
        return Err(Failure::usage(format!("`{}` already exists", args.dest.display()))
            .hint("name a file that does not exist"));
    }
    let text = if args.optuna { journal(record) } else { csv(record) };
    runner_report::replace(&path, &text).map_err(Failure::at("cannot write", &path))?;
    let (id, trials) = (&record.header.id, view.trials.len());
    if session.json {
        return output::print_json(&json!({ "search": id, "trials": trials, "dest": path }));
    }
    output::print(&format!(
        "{} of search {id} in {}\n",
        text::count(trials, "trial"),
        args.dest.display()
    ))
}
