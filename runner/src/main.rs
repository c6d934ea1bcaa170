//! The command line. All of it is in [`runner::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(runner::cli::main())
}
