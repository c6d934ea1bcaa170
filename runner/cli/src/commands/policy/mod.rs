//! `runner policy`.

pub(crate) mod act;
mod export;
mod registry;

use crate::complete::{candidates, completed};
use crate::session::Session;
use clap::Subcommand;
use runner_engine::Failure;

/// Decide with, export and register trained policies.
#[derive(Subcommand, Clone, Debug)]
#[command(after_help = "\
Example:
  runner policy export latest/train --format numpy policy.npz")]
pub(crate) enum PolicyCommand {
    Act(act::PolicyActArgs),
    Export(export::PolicyExportArgs),
    /// List the registered policies, or the versions of one.
    ///
    /// With their aliases; of one, also the moves of its aliases.
    #[command(after_help = "\
Examples:
  runner policy list
  runner policy list desk --json")]
    List {
        /// The name of a policy.
        #[arg(add = completed(candidates::policies))]
        name: Option<String>,
    },
    /// Show a policy: origin, training and evaluation; of a rule its lines.
    #[command(after_help = "\
Examples:
  runner policy show desk@champion
  runner policy show desk@3 --json
  runner policy show latest/straddle")]
    Show {
        /// NAME@ALIAS, NAME@VERSION, or RUN/STAGE of a policy that has no name.
        #[arg(add = completed(candidates::policies))]
        policy: String,
    },
    Register(registry::PolicyRegisterArgs),
    Promote(registry::PolicyPromoteArgs),
    Rollback(registry::PolicyRollbackArgs),
    Diff(registry::PolicyDiffArgs),
}

pub(crate) fn policy(session: &Session, command: &PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::Act(args) => act::act(session, args),
        PolicyCommand::Export(args) => export::export(session, args),
        PolicyCommand::List { name } => registry::list(session, name.as_deref()),
        PolicyCommand::Show { policy } => registry::show(session, policy),
        PolicyCommand::Register(args) => registry::register(session, args),
        PolicyCommand::Promote(args) => registry::promote(session, args),
        PolicyCommand::Rollback(args) => registry::rollback(session, args),
        PolicyCommand::Diff(args) => registry::diff(session, args),
    }
}
