//! `runner schedule skip`.

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

/// Skip a night, with a reason
///
/// For a day of mourning, a vendor's holiday, data that never comes: the night is not run, or not run again.
/// It may be late, failed, not tried yet, or still to come; nights before it are run as always. `log` and the
/// page list it with its reason.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner schedule skip nightly.yaml 2025-01-09 --why \"day of mourning\"")]
pub(crate) struct SkipArgs {
    /// The pipeline file.
    #[arg(value_name = "PIPELINE", add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    /// The night: its date, with the time where a day has several.
    #[arg(value_name = "NIGHT")]
    pub night: String,
    /// The reason, which the history keeps.
    #[arg(long, alias = "reason", value_name = "TEXT")]
    pub why: String,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub now: Option<DateTime<Utc>>,
}

pub(super) fn skip(session: &Session, args: &SkipArgs) -> Result<(), Failure> {
    let entry = Entry::of(session, session.current.join(&args.pipeline))?;
    let now = clock_at(args.now).now();
    let Entry { home, file, scheduled } = &entry;
    let night = schedule::skip(home, file, scheduled, &args.night, &args.why, now)?;
    if session.json {
        let mut value = json!(night);
        value["pipeline"] = json!(scheduled.name);
        return output::print_json(&value);
    }
    output::print(&format!(
        "{} {}: {}: {}\n",
        scheduled.name,
        night.night,
        night.status.name(),
        night.why.as_deref().unwrap_or_default()
    ))
}
