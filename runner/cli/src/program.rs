//! The main function, from arguments to an exit code. Only this module prints errors.

use crate::arguments::{self, Arguments};
use crate::complete;
use crate::interrupt;
use crate::output;
use crate::registry;
use crate::session::Session;
use clap::{CommandFactory as _, FromArgMatches as _};
use runner_engine::{Failure, executor, exit};
use runner_report::reporter::Verbosity;
use stages_core::AnyStage;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Runs the program with stage kinds of another crate beside its own, each under a prefix of that crate, and
/// returns its exit code. A program whose main function is this call has all commands, and its worker
/// processes, which are the same program, have the kinds too.
pub fn main_with(kinds: Vec<Box<dyn AnyStage>>) -> u8 {
    match registry::add(kinds) {
        Ok(()) => main(),
        Err(message) => show(&Failure::usage(message)),
    }
}

/// Runs the program and returns its exit code.
pub fn main() -> u8 {
    // Before anything else: child processes of the program itself have a single fixed argument.
    let given: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    match given.as_slice() {
        [only] if only == "worker" => {
            return executor::worker(registry::kinds(), cache_remote::open_for_worker);
        }
        [only] if only == "sandbox" => return runner_sandbox::sandbox(),
        [first, second] if first == "worker" && (second == "--job" || second == "--batch") => {
            return node(second == "--batch").unwrap_or_else(|failure| show(&failure));
        }
        _ => {}
    }
    if let Err(failure) = interrupt::end_as_first_process() {
        return show(&failure);
    }
    match complete::answer(Arguments::command) {
        Ok(false) => {}
        Ok(true) => return exit::DONE,
        Err(failure) => return show(&failure),
    }
    let arguments = arguments::command().try_get_matches();
    let arguments = match arguments.and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches)) {
        Ok(arguments) => arguments,
        Err(err) => {
            let given: Vec<String> = std::env::args_os()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect();
            let err = arguments::explained(err, &given);
            let printed = err.print();
            return match printed {
                _ if err.use_stderr() => exit::WRONG_USAGE,
                Err(err) if err.kind() != ErrorKind::BrokenPipe => show(&output::unwritable(&err)),
                _ => exit::DONE,
            };
        }
    };
    match run(arguments) {
        Ok(code) => code,
        Err(failure) => show(&failure),
    }
}

/// Runs `worker --job FILE` or `worker --batch FILE NUMBER`, jobs in files on a node of a cluster, or
/// `worker --job -`, a job on standard input.
fn node(is_batch: bool) -> Result<u8, Failure> {
    let usage = || Failure::usage("expected `worker --job FILE` or `worker --batch FILE NUMBER`");
    let mut given = std::env::args_os().skip(3);
    let file = PathBuf::from(given.next().ok_or_else(usage)?);
    let control = interrupt::of_job()?;
    let open = cache_remote::open_for_worker;
    if !is_batch && file.as_os_str() == "-" {
        return Ok(executor::run_job_stream(registry::FILE_TYPES, open, &control));
    }
    if !is_batch {
        return executor::run_job_file(&file, registry::FILE_TYPES, open, &control);
    }
    let number = given
        .next()
        .and_then(|text| text.to_str()?.parse().ok())
        .ok_or_else(usage)?;
    executor::run_batch(&file, number, registry::FILE_TYPES, open, &control)
}

/// Prints a failure and returns its exit code.
fn show(failure: &Failure) -> u8 {
    if !failure.message.is_empty() {
        output::say(&failure.to_string());
    }
    failure.code
}

fn run(arguments: Arguments) -> Result<u8, Failure> {
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let session = Session::new(arguments.directory.as_deref(), verbosity, arguments.json)?;
    arguments.command.run(&session)
}
