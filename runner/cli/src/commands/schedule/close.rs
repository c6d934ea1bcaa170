//! `runner schedule close`.

use super::entry::{Entry, clock_at, instant};
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use chrono::{DateTime, Utc};
use clap::Args;
use runner_engine::Failure;
use runner_history::schedule;
use serde_json::json;
use std::path::PathBuf;

/// Close a night whose data never comes, with a reason
///
/// For a night that is due and not done, such as one on a day on which the exchange was closed by
/// announcement: it is skipped. It stays late otherwise, and `run-due` tries it again. `log` lists it with
/// its reason.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner schedule close nightly.yaml 2025-01-09 --reason \"day of mourning\"")]
pub(crate) struct CloseArgs {
    /// The pipeline file.
    #[arg(value_name = "PIPELINE", add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    /// The night: its date, with the time where a day has several.
    #[arg(value_name = "NIGHT")]
    pub night: String,
    /// The reason, which the history keeps.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub now: Option<DateTime<Utc>>,
}

pub(super) fn close(session: &Session, args: &CloseArgs) -> Result<(), Failure> {
    let entry = Entry::of(session, session.current.join(&args.pipeline))?;
    let now = clock_at(args.now).now();
    let Entry { home, file, scheduled } = &entry;
    let night = schedule::close(home, file, scheduled, &args.night, &args.reason, now)?;
    if session.json {
        let mut value = json!(night);
        value["pipeline"] = json!(scheduled.name);
        return output::print_json(&value);
    }
    output::print(&format!(
        "{} {}: {}, {}\n",
        scheduled.name,
        night.night,
        night.status.name(),
        night.why.as_deref().unwrap_or_default()
    ))
}
