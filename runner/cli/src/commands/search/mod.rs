//! `runner search`.

mod best;
mod export;
mod show;
mod stop;

use crate::session::{Session, folder_of};
use clap::Subcommand;
use runner_engine::Failure;
use runner_report::search::{self, View};
use std::path::Path;

/// Show, export and stop searches over settings.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner search show
  runner search best --set
  runner search export tune-3fa94c81 trials.csv")]
pub(crate) enum SearchCommand {
    Show(show::SearchShowArgs),
    Best(best::SearchBestArgs),
    Export(export::SearchExportArgs),
    Stop(stop::SearchStopArgs),
}

pub(crate) fn search(session: &Session, command: &SearchCommand) -> Result<(), Failure> {
    match command {
        SearchCommand::Show(args) => show::show(session, args),
        SearchCommand::Best(args) => best::best(session, args),
        SearchCommand::Export(args) => export::export(session, args),
        SearchCommand::Stop(args) => stop::stop(session, args),
    }
}

/// The search of this name: an id or a unique part of one, a run, or a pipeline; the newest without a name.
fn named(session: &Session, name: Option<&str>) -> Result<View, Failure> {
    let folder = name.map(Path::new).filter(|path| path.is_file());
    let folder = folder.and_then(|file| folder_of(&session.current, file));
    let home = session.home(folder.as_deref());
    Ok(View::new(&home, search::find(&home, name)?))
}
