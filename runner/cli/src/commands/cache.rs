//! `runner cache`.

use super::cache_report::{self as command, Keep};
use super::remote;
use crate::args::CacheCommand;
use crate::output;
use crate::session::Session;
use runner_engine::{Failure, exit, text};
use runner_history::policies::Registry;
use runner_history::{self as history, AllMarks};
use runner_report::reporter::Verbosity;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

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
            let shown = session.verbosity != Verbosity::Quiet && std::io::stderr().is_terminal();
            let last = Mutex::new(Instant::now());
            let (text, clean) =
                command::verify(&archive.store, args.sample.unwrap_or(1.0), session.json, |progress| {
                    let Ok(mut last) = last.try_lock() else { return };
                    if shown && last.elapsed() > Duration::from_millis(100) {
                        *last = Instant::now();
                        let (done, total) = (text::size(progress.done), text::size(progress.total));
                        let _ = write!(std::io::stderr(), "\r\x1b[Khashing {done} of {total}");
                    }
                })?;
            if shown {
                let _ = write!(std::io::stderr(), "\r\x1b[K");
            }
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
            let registered = Registry::new(archive.store.root()).kept()?;
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
