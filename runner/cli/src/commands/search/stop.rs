//! `runner search stop`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, text};
use runner_search::record::stop_file;
use serde_json::json;

/// Ask a running search to end after the jobs under way.
///
/// Their results are kept, and the next `runner exec` goes on from there.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner search stop tune-3fa94c81")]
pub(crate) struct SearchStopArgs {
    /// The search: an id or a unique part of one, a run that searches, or a pipeline.
    #[arg(add = completed(candidates::searches))]
    pub search: String,
}

pub(super) fn stop(session: &Session, args: &SearchStopArgs) -> Result<(), Failure> {
    let home = session.home(None);
    let view = super::named(session, Some(&args.search))?;
    let header = &view.record.header;
    let id = &header.id;
    if !view.is_running {
        return Err(Failure::usage(format!("the search `{id}` is not running"))
            .hint(format!("`runner search show {id}` shows its results")));
    }
    let path = stop_file(&home, id);
    std::fs::write(&path, "").map_err(Failure::at("cannot write", &path))?;
    let under_way = view.under_way();
    if session.json {
        return output::print_json(&json!({ "search": id, "jobs_under_way": under_way }));
    }
    output::print(&format!(
        "search {id} was asked to stop: {} in progress will finish first, and no other will start\n\
        `runner exec {}` resumes it later\n",
        text::count(under_way, "job"),
        header.file.display()
    ))
}
