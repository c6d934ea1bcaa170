//! `runner paper`.

mod costs;
mod export;
mod fills;
mod show;

use crate::complete::{candidates, completed};
use crate::session::Session;
use clap::Subcommand;
use runner_engine::{Failure, exit};

/// Paper accounts: accounts that live forward on new data.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper show
  runner paper show desk-paper")]
pub(crate) enum PaperCommand {
    /// List the paper accounts, or show where one stands.
    ///
    /// Of one: its policy, its promise, positions, tonight's orders, the last nights, alarms, and the accounts
    /// beside it. Its ledger is verified: a past that was changed is an error.
    #[command(after_help = "\
Examples:
  runner paper show
  runner paper show desk-paper --last 30
  runner paper show desk-paper --json")]
    Show {
        /// The name of an account.
        #[arg(add = completed(candidates::accounts))]
        name: Option<String>,
        /// The number of last nights.
        #[arg(long, value_name = "N", default_value_t = 10)]
        last: usize,
    },
    Fills(fills::PaperFillsArgs),
    Costs(costs::PaperCostsArgs),
    Export(export::PaperExportArgs),
}

pub(crate) fn paper(session: &Session, command: &PaperCommand) -> Result<u8, Failure> {
    let done = |()| exit::DONE;
    match command {
        PaperCommand::Show { name: None, .. } => show::list(session).map(done),
        PaperCommand::Show {
            name: Some(name),
            last,
        } => show::show(session, name, *last).map(done),
        PaperCommand::Fills(args) => fills::fills(session, args).map(done),
        PaperCommand::Costs(args) => costs::costs(session, args).map(done),
        PaperCommand::Export(args) => export::export(session, args).map(done),
    }
}
