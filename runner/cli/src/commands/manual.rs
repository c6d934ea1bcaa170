//! `runner man`: the manual pages, from the same source as `--help`.

use crate::output;
use crate::session::Session;
use clap::{Args, Command};
use clap_mangen::generate_to;
use runner_engine::Failure;
use serde_json::json;
use std::path::PathBuf;

/// Write the manual pages, one for each command.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner man ~/.local/share/man/man1 && man runner-exec")]
pub(crate) struct ManArgs {
    /// The directory to write to; it is created.
    pub dest: PathBuf,
}

pub(crate) fn man(session: &Session, args: &ManArgs, command: Command) -> Result<(), Failure> {
    let dest = session.current.join(&args.dest);
    let failed =
        |err: std::io::Error| Failure::caused(format!("cannot write to `{}`", args.dest.display()), &err);
    std::fs::create_dir_all(&dest).map_err(failed)?;
    generate_to(command, &dest).map_err(failed)?;
    if session.json {
        return output::print_json(&json!({ "dest": args.dest }));
    }
    output::print(&format!("manual pages in {}\n", args.dest.display()))
}
