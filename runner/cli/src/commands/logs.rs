//! `runner logs`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::Failure;
use runner_history::Archive;
use runner_history::{self as history, LogFollower, StageRun};
use std::time::Duration;

/// Print the log of a stage.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner logs latest/train
  runner logs 'latest/train[seed=1]' -f")]
pub(crate) struct LogsArgs {
    /// RUN/STAGE, where STAGE selects one point of a matrix. RUN is an id, a unique prefix or suffix of one,
    /// a name, `latest`, or `latest~1` for the run before it.
    #[arg(add = completed(candidates::stages_of_runs))]
    pub what: String,
    /// Wait for more until the stage ends.
    #[arg(short, long)]
    pub follow: bool,
}

/// The interval in which a log is looked at again.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn logs(session: &Session, args: &LogsArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let Some((run, name)) = args.what.split_once('/') else {
        return Err(Failure::usage(format!("`{}` is not a stage of a run", args.what))
            .hint("write `RUN/STAGE`, such as `latest/train`"));
    };
    let run = archive.run(run)?;
    let stage = history::find_stage(&run, name)?;
    let name = stage.id.as_str();
    if let Some(log) = stored(&archive, stage)? {
        return print(session, name, &log).map(drop);
    }
    // Of a stage that is running, or did not succeed.
    let mut follower = LogFollower::new(&archive.runs, &run.id, name)?;
    loop {
        let text = follower.text()?;
        let is_read = text.is_empty() || print(session, name, &text)?;
        if !is_read || !args.follow || follower.is_over() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// The log of the action of a stage that has ended.
fn stored(archive: &Archive, stage: &StageRun) -> Result<Option<String>, Failure> {
    if stage.status.is_none() {
        return Ok(None);
    }
    let record = match stage.key {
        Some(key) => archive.store.action(key)?,
        None => None,
    };
    let Some(log) = stage.log.or_else(|| record.and_then(|record| record.log)) else {
        return Ok(None);
    };
    Ok(Some(
        String::from_utf8_lossy(&archive.store.blob(log.blob)?).into_owned(),
    ))
}

/// Prints a text, as lines of JSON if asked. Returns false once the reader has closed the pipe.
fn print(session: &Session, stage: &str, text: &str) -> Result<bool, Failure> {
    if !session.json {
        return output::print_while_open(text);
    }
    let line = |line: &str| format!("{}\n", serde_json::json!({ "stage": stage, "line": line }));
    output::print_while_open(&text.lines().map(line).collect::<String>())
}
