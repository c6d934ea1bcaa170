//! `runner paper run`.

use crate::commands::acting::acting;
use crate::commands::remote;
use crate::commands::schedule::clock_at;
use crate::complete::{candidates, completed};
use crate::session::Session;
use crate::{interrupt, output};
use chrono::{DateTime, Utc};
use clap::Args;
use datasets::Date;
use runner_acting::Given;
use runner_acting::paper::{Files, Nightly, Papers, run as run_nights};
use runner_engine::{Control, Failure, text};
use runner_history::paper::{Entry, Ledger, lock};
use runner_history::policies::Registry;
use serde_json::json;

/// Book the nights that are due: fill, mark, decide anew.
///
/// The stages between the data and the policy's environment run again on the data up to each night, from the
/// cache but for what is new. A night that is booked is never booked again.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper run desk-paper
  runner paper run desk-paper --data today.csv
  runner paper run walk --until 2019-12-31 --json")]
pub(crate) struct RunArgs {
    /// The name of the account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
    /// A file of the night's data, as `runner policy act` takes it; without one the stages' own files and
    /// sources have grown.
    #[arg(long, value_name = "[STAGE=]FILE")]
    pub data: Vec<String>,
    /// Read the files in place of the stages' own ones.
    #[arg(long)]
    pub replace: bool,
    /// Go on even if days are missing between what the stages read and the files.
    #[arg(long)]
    pub allow_gap: bool,
    /// The last night to book [default: today].
    #[arg(long, value_name = "DATE")]
    pub until: Option<Date>,
    /// Act as if it were this instant [default: now].
    #[arg(long, value_name = "INSTANT")]
    pub now: Option<DateTime<Utc>>,
}

pub(super) fn run(session: &Session, args: &RunArgs) -> Result<(), Failure> {
    let today = Date::from(clock_at(args.now).now().date_naive());
    let nightly = Nightly {
        files: Files {
            data: args.data.iter().map(|text| given(session, text)).collect(),
            replace: args.replace,
            allow_gap: args.allow_gap,
        },
        until: args.until.unwrap_or(today),
        requires: None,
    };
    let entries = book(session, &args.name, &nightly, &interrupt::control()?, None)?;
    match session.json {
        true => output::print_json(&json!({ "account": args.name, "entries": entries })),
        false if entries.is_empty() => output::print(&format!(
            "{}: nothing to book: no night is due until {}, or the data ends before it\n",
            args.name, nightly.until
        )),
        false => output::print(&entries.iter().map(line).collect::<String>()),
    }
}

/// A file of a night's data.
pub(crate) fn given(session: &Session, text: &str) -> Given {
    Given {
        text: text.to_owned(),
        current: session.current.clone(),
    }
}

/// Books the nights of an account; those of the night with the run `night_run` go to the remote store with
/// it.
pub(crate) fn book(
    session: &Session,
    name: &str,
    nightly: &Nightly,
    control: &Control,
    night_run: Option<&str>,
) -> Result<Vec<Entry>, Failure> {
    let archive = session.archive()?;
    let home = archive.store.root();
    let Some(_lock) = lock(home, name)? else {
        return Err(Failure::usage(format!("another process is booking nights of `{name}`"))
            .hint("wait for it, or stop it"));
    };
    let mut ledger = Ledger::read(home, name)?;
    for note in ledger.notes() {
        output::warn(note);
    }
    let registry = Registry::new(home);
    let _guard = archive.store.guard()?;
    let mut progress = output::progress(session.verbosity);
    let entries = acting(session, &archive, (control, "paper"), |acting| {
        let papers = Papers {
            acting,
            registry: &registry,
        };
        run_nights(&papers, &mut ledger, nightly, &mut progress)
    })?;
    archive.store.flush()?;
    for entry in &entries {
        match entry {
            Entry::Halted(stop) => output::warn(&format!(
                "{name} is halted ({}): {}; `runner paper resume {name} --why …` lets it act again{}",
                stop.by,
                stop.why,
                match stop.by.as_str() {
                    "max_age" => ", once there is a newer version",
                    _ => "",
                }
            )),
            Entry::Correction(correction) => output::warn(&format!(
                "{name}: the data of {} was restated ({}); what is booked stays as it is",
                correction.of, correction.what
            )),
            _ => {}
        }
    }
    match (night_run, archive.store.upstream()) {
        (Some(run), _) => remote::finish_uploads(session, &archive.store, run, control)?,
        (None, Some(upstream)) => remote::warn(upstream),
        (None, None) => {}
    }
    Ok(entries)
}

/// An entry in a line.
pub(crate) fn line(entry: &Entry) -> String {
    match entry {
        Entry::Night(night) => format!(
            "{}: net asset value {:.2} ({:+.2} %), {}; {}, {}\n",
            night.time,
            night.book.nav,
            100.0 * night.log_return.exp_m1(),
            text::count(night.bookings.len(), "booking"),
            night.action,
            text::count(night.orders.len(), "order")
        ),
        Entry::Policy(moved) => format!(
            "{}: {} acts in place of {}\n",
            moved.date, moved.to.name, moved.from.name
        ),
        Entry::Correction(correction) => {
            format!(
                "{}: restated: {} of {}\n",
                correction.date, correction.what, correction.of
            )
        }
        Entry::Halted(stop) => format!("{}: halted ({}): {}\n", stop.date, stop.by, stop.why),
        _ => String::new(),
    }
}
