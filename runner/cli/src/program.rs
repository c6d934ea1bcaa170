//! The main function, from arguments to an exit code. Only this module prints errors.

use crate::args::{Arguments, Command, help};
use crate::commands::{
    bench, cache, check, compare, completions, data, doctor, exec, export, logs, manual, plan, policy, runs,
    schedule, serve, show, stages, track, watch, why,
};
use crate::complete;
use crate::output;
use crate::registry;
use crate::session::Session;
use clap::FromArgMatches as _;
use runner_engine::{Failure, executor, exit};
use std::io::ErrorKind;

/// Runs the program and returns its exit code.
pub fn main() -> u8 {
    // Before anything else: child processes of the program itself have a single fixed argument.
    let given: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    match given.as_slice() {
        [only] if only == "worker" => {
            return executor::worker(registry::kinds(), cache_remote::open_for_worker);
        }
        [only] if only == "sandbox" => return runner_sandbox::sandbox(),
        _ => {}
    }
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return exit::DONE,
        Err(failure) => return show(&failure),
    }
    let arguments = help::command().try_get_matches();
    let arguments = match arguments.and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches)) {
        Ok(arguments) => arguments,
        Err(err) => {
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

/// Prints a failure and returns its exit code.
fn show(failure: &Failure) -> u8 {
    if !failure.message.is_empty() {
        output::say(&failure.to_string());
    }
    failure.code
}

fn run(arguments: Arguments) -> Result<u8, Failure> {
    let session = Session::new(&arguments)?;
    let done = |()| exit::DONE;
    match arguments.command {
        Command::Init(args) => data::init(&session, &args).map(done),
        Command::Exec(args) => exec::exec(&session, &args),
        Command::Plan(args) => plan::plan(&session, &args).map(done),
        Command::Why(args) => why::why(&session, &args).map(done),
        Command::Graph(args) => stages::graph(&session, &args).map(done),
        Command::Stages(args) => stages::stages(&session, &args).map(done),
        Command::Schema => stages::schema().map(done),
        Command::Runs(args) => runs::runs(&session, &args).map(done),
        Command::Compare(args) => compare::compare(&session, &args).map(done),
        Command::Show(args) => show::show(&session, &args).map(done),
        Command::Watch(args) => watch::watch(&session, &args).map(done),
        Command::Logs(args) => logs::logs(&session, &args).map(done),
        Command::Track(args) => track::track(&session, &args),
        Command::Serve(args) => serve::serve(&session, &args).map(done),
        Command::Report(args) => runs::report(&session, &args).map(done),
        Command::Export(args) => export::export(&session, &args).map(done),
        Command::Policy(command) => policy::policy(&session, &command).map(done),
        Command::Schedule(command) => schedule::schedule(&session, &command),
        Command::Cache(command) => cache::cache(&session, &command),
        Command::Check(command) => check::check(&session, &command),
        Command::Data(command) => data::data(&session, &command).map(done),
        Command::Doctor => doctor::doctor(&session),
        Command::Bench(args) => bench::bench(&session, &args).map(done),
        Command::Man(args) => manual::man(&session, &args).map(done),
        Command::Completions(args) => completions::completions(&args).map(done),
    }
}
