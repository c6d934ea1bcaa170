//! `runner paper`.

mod costs;
mod export;
mod fills;
pub(crate) mod night;
mod open;
mod person;
mod show;

use crate::complete::{candidates, completed};
use crate::session::Session;
use clap::Subcommand;
use runner_engine::{Failure, exit};

/// Paper accounts: accounts that live forward on new data.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper open desk-paper --policy desk@champion --capital 1e6
  runner paper run desk-paper
  runner paper show desk-paper
  runner paper resume desk-paper --why \"a data error, now fixed\"")]
pub(crate) enum PaperCommand {
    Open(open::OpenArgs),
    Run(night::RunArgs),
    /// Stop the policy from acting.
    ///
    /// The book is held or closed, as the account was opened.
    #[command(after_help = "\
Example:
  runner paper halt desk-paper --why \"the desk is away\"")]
    Halt(person::WhyArgs),
    /// Let a halted policy act again; its promise is watched anew.
    #[command(after_help = "\
Example:
  runner paper resume desk-paper --why \"the alarm was a data error\"")]
    Resume(person::WhyArgs),
    /// Close an account for good: nothing is booked after it.
    #[command(after_help = "\
Example:
  runner paper close desk-paper --why \"moved to production\"")]
    Close(person::WhyArgs),
    /// Add capital, after the last night. It is no return.
    #[command(after_help = "\
Example:
  runner paper deposit desk-paper 250000")]
    Deposit(person::AmountArgs),
    /// Withdraw capital, after the last night. It is no return.
    #[command(after_help = "\
Example:
  runner paper withdraw desk-paper 50000 --why \"fees\"")]
    Withdraw(person::AmountArgs),
    /// List the paper accounts, or show where one stands.
    ///
    /// Of one: its policy, promise, positions, tonight's orders, the last nights, alarms, and the accounts
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
        PaperCommand::Open(args) => open::open(session, args).map(done),
        PaperCommand::Run(args) => night::run(session, args).map(done),
        PaperCommand::Halt(args) => person::halt(session, args).map(done),
        PaperCommand::Resume(args) => person::resume(session, args).map(done),
        PaperCommand::Close(args) => person::close(session, args).map(done),
        PaperCommand::Deposit(args) => person::transfer(session, args, 1.0).map(done),
        PaperCommand::Withdraw(args) => person::transfer(session, args, -1.0).map(done),
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
