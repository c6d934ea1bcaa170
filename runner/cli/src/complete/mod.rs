//! Completion in shells: commands and options, and from the pipeline, the history and the stage kinds what
//! can be an argument.
//!
//! A shell calls this program with the line so far, and RUNNER_COMPLETE as the name of the shell.

mod bash;
pub(crate) mod candidates;

use crate::output;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Elvish, Fish, Powershell, Shells, Zsh};
use runner_engine::Failure;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The environment variable by which a shell asks.
const VARIABLE: &str = "RUNNER_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&bash::Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Answers a shell about a command line, and returns whether one asked.
pub(crate) fn answer(command: fn() -> clap::Command) -> Result<bool, Failure> {
    let complete = || CompleteEnv::with_factory(command).var(VARIABLE).shells(SHELLS);
    if std::env::var_os(VARIABLE).is_some() {
        enter(&line());
    }
    let current = std::env::current_dir().ok();
    complete()
        .try_complete(std::env::args_os(), current.as_deref())
        .map_err(|err| Failure::usage(err.to_string().trim().to_owned()))
}

/// Prints the script of a shell.
pub(crate) fn script(shell: Shell) -> Result<(), Failure> {
    let program = std::env::args_os().next().unwrap_or_default();
    // A name is found on PATH; a path is that of this program wherever the shell is.
    let program = match PathBuf::from(&program) {
        path if path.components().count() > 1 => std::path::absolute(&path).unwrap_or(path),
        name => name,
    };
    let mut text = Vec::new();
    if let Some(completer) = SHELLS.completer(&shell.to_string()) {
        completer
            .write_registration(VARIABLE, "runner", "runner", &program.to_string_lossy(), &mut text)
            .map_err(|err| output::unwritable(&err))?;
    }
    output::print_document(&String::from_utf8_lossy(&text))
}

/// The words of the line before the one at the cursor.
fn line() -> Vec<String> {
    let args = std::env::args_os().skip_while(|arg| arg != "--").skip(1);
    let mut words: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    words.truncate(index(words.len()));
    words
}

/// The index of the word at the cursor among so many.
fn index(words: usize) -> usize {
    let told = std::env::var("_CLAP_COMPLETE_INDEX").ok();
    let last = words.saturating_sub(1);
    told.and_then(|index| index.parse().ok())
        .map_or(last, |index: usize| index.min(last))
}

/// Enters the directory that `-C DIR` of a line names.
fn enter(line: &[String]) {
    if let Some(at) = line.iter().position(|word| word == "-C")
        && let Some(dir) = line.get(at + 1)
    {
        // A directory that does not exist yields no candidates.
        let _ = std::env::set_current_dir(dir);
    }
}

/// The candidates for a word, given the words before it.
type Candidates = fn(&[String], &str) -> Vec<CompletionCandidate>;

/// The completion of an argument by its candidates.
pub(crate) fn completed(candidates: Candidates) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| match current.to_str() {
        Some(current) => candidates(&line(), current),
        None => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, CommandFactory as _};

    /// All arguments with candidates, as `command argument`.
    fn with_candidates(command: &Command, found: &mut Vec<String>) {
        let name = command.get_name();
        for arg in command.get_arguments() {
            if arg.get::<ArgValueCompleter>().is_some() {
                found.push(format!("{name} {}", arg.get_id()));
            }
        }
        command
            .get_subcommands()
            .for_each(|command| with_candidates(command, found));
    }

    #[test]
    fn arguments_with_candidates() {
        let mut found = Vec::new();
        with_candidates(&crate::arguments::Arguments::command(), &mut found);
        insta::assert_snapshot!(found.join("\n"), @r"
    exec pipeline
    exec stages
    exec set
    exec profile
    exec force
    plan pipeline
    plan stages
    plan set
    plan profile
    plan force
    why pipeline
    why stage
    why set
    why profile
    graph pipeline
    graph set
    graph profile
    stages kind
    stages of_type
    name run
    unname run
    tag run
    untag run
    keep run
    unkeep run
    rm runs
    compare runs
    show what
    watch run
    logs what
    track run
    serve schedule
    report run
    export what
    act what
    export what
    list name
    show policy
    register what
    register name
    promote policy
    rollback name
    diff policy
    diff other
    open policy
    run name
    halt name
    resume name
    close name
    deposit name
    withdraw name
    show name
    fills name
    costs name
    export name
    show search
    best search
    export search
    stop search
    next pipelines
    list pipelines
    run-due pipelines
    install pipelines
    uninstall pipelines
    log pipelines
    skip pipeline
    gc keep_run
    push run
    pull what
    pull set
    pull profile
    lookahead pipeline
    lookahead stages
    lookahead set
    lookahead profile
    lookahead force
    lookahead except
    layouts name
    ");
    }
}
