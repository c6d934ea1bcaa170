//! The command line. All of it is in the library [`runner`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(runner::main())
}
