//! `runner completions`.

use crate::complete;
use clap::Args;
use runner_engine::Failure;

/// Print the completion script of a shell.
///
/// Commands, options, and stages, kinds, runs, profiles and parameters as they are are completed.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  source <(runner completions bash)      # in ~/.bashrc
  source <(runner completions zsh)       # in ~/.zshrc, after compinit
  runner completions fish | source       # in ~/.config/fish/config.fish

The script calls this program for the candidates. Print it anew after an upgrade, as these lines do.")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    complete::script(args.shell)
}
