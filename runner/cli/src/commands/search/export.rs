//! `runner search export`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::Failure;
use runner_search::export::{csv, journal};
use serde_json::json;
use std::path::PathBuf;

/// Write the trials of a search as CSV, or as a study of Optuna.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner search export tune-3fa94c81 trials.csv
  runner search export tune-3fa94c81 --optuna study.journal
  optuna-dashboard study.journal")]
pub(crate) struct SearchExportArgs {
    /// The search: an id or a unique part of one, a run that searched, or a pipeline.
    #[arg(add = completed(candidates::searches))]
    pub search: String,
    /// The CSV file: a line for each trial.
    #[arg(required_unless_present = "optuna")]
    pub dest: Option<PathBuf>,
    /// Write a journal that `optuna-dashboard FILE` and Optuna's `JournalFileBackend(FILE)` read.
    #[arg(long, value_name = "FILE")]
    pub optuna: Option<PathBuf>,
}

pub(super) fn export(session: &Session, args: &SearchExportArgs) -> Result<(), Failure> {
    let view = super::named(session, Some(&args.search))?;
    let texts = [
        (&args.dest, csv as fn(&_) -> String),
        (&args.optuna, journal as fn(&_) -> String),
    ];
    let mut written = Vec::new();
    for (path, text) in texts {
        let Some(path) = path else { continue };
        let path = session.current.join(path);
        runner_report::replace(&path, &text(&view.record)).map_err(Failure::at("cannot write", &path))?;
        written.push(path);
    }
    let trials = view.trials.len();
    if session.json {
        return output::print_json(
            &json!({ "search": view.record.header.id, "trials": trials, "files": written }),
        );
    }
    let lines: String = written
        .iter()
        .map(|path| {
            format!(
                "{} of search {} in {}\n",
                runner_engine::text::count(trials, "trial"),
                view.record.header.id,
                path.display()
            )
        })
        .collect();
    output::print(&lines)
}
