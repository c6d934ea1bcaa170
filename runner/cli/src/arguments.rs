//! The program's arguments, and the list of commands.

use crate::commands::{
    bench, cache, check, compare, completions, data, doctor, exec, export, logs, manual, paper, plan, policy,
    reference, runs, schedule, search, serve, show, stages, track, watch, why,
};
use crate::session::Session;
use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use runner_engine::{Failure, exit};
use std::fmt::Write as _;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a stage failed; 2 the command line or the pipeline file is wrong; 3 the store or the \
machine failed, \
or standard output cannot be written; 4 a check could not check something; 130 interrupted (Ctrl-C, \
SIGTERM, SIGHUP; a second \
signal ends the program at once).

Environment variables: RUNNER_HOME is the directory of the store and the run history (default: `.runner/` \
in the nearest \
directory above the pipeline that has one or is a repository root); RUNNER_REMOTE is the URL of the remote \
store and overrides \
`remote: url:` in `config.yaml` of that directory; NO_COLOR disables colours.";

/// A declarative experiment runner for reinforcement learning on markets.
#[derive(Debug, Parser)]
#[command(name = "runner", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Arguments {
    /// Run in the directory DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Global options")]
    pub directory: Option<PathBuf>,
    /// Print only errors and results.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Global options"
    )]
    pub quiet: bool,
    /// Print stage logs and the reason why each stage runs.
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub verbose: bool,
    /// Print the result as JSON.
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(data::init::InitArgs),
    Exec(exec::ExecArgs),
    Plan(plan::PlanArgs),
    Why(why::WhyArgs),
    Graph(stages::GraphArgs),
    Stages(stages::StagesArgs),
    /// Print the JSON Schema of pipeline files, for editors.
    #[command(after_help = "\
Example:
  runner schema > pipeline.schema.json
  # then, in a pipeline's first line:  # yaml-language-server: $schema=pipeline.schema.json")]
    Schema,
    Runs(runs::RunsArgs),
    Compare(compare::CompareArgs),
    Show(show::ShowArgs),
    Watch(watch::WatchArgs),
    Logs(logs::LogsArgs),
    Track(track::TrackArgs),
    Serve(serve::ServeArgs),
    Report(runs::ReportArgs),
    Export(export::ExportArgs),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    Paper(paper::PaperCommand),
    #[command(subcommand)]
    Search(search::SearchCommand),
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    #[command(subcommand)]
    Check(check::CheckCommand),
    #[command(subcommand)]
    Data(data::DataCommand),
    Doctor(doctor::DoctorArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
    Man(manual::ManArgs),
    Reference(reference::ReferenceArgs),
}

impl Command {
    /// Runs the command, and returns the exit code.
    pub(crate) fn run(self, session: &Session) -> Result<u8, Failure> {
        let done = |()| exit::DONE;
        match self {
            Self::Init(args) => data::init(session, &args).map(done),
            Self::Exec(args) => exec::exec(session, &args),
            Self::Plan(args) => plan::plan(session, &args).map(done),
            Self::Why(args) => why::why(session, &args).map(done),
            Self::Graph(args) => stages::graph(session, &args).map(done),
            Self::Stages(args) => stages::stages(session, &args).map(done),
            Self::Schema => stages::schema(session).map(done),
            Self::Runs(args) => runs::runs(session, &args).map(done),
            Self::Compare(args) => compare::compare(session, &args).map(done),
            Self::Show(args) => show::show(session, &args).map(done),
            Self::Watch(args) => watch::watch(session, &args).map(done),
            Self::Logs(args) => logs::logs(session, &args).map(done),
            Self::Track(args) => track::track(session, &args),
            Self::Serve(args) => serve::serve(session, &args).map(done),
            Self::Report(args) => runs::report(session, &args).map(done),
            Self::Export(args) => export::export(session, &args).map(done),
            Self::Policy(command) => policy::policy(session, &command).map(done),
            Self::Paper(command) => paper::paper(session, &command),
            Self::Search(command) => search::search(session, &command).map(done),
            Self::Schedule(command) => schedule::schedule(session, &command),
            Self::Cache(command) => cache::cache(session, &command),
            Self::Check(command) => check::check(session, &command),
            Self::Data(command) => data::data(session, &command).map(done),
            Self::Doctor(args) => doctor::doctor(session, &args),
            Self::Bench(args) => bench::bench(session, &args).map(done),
            Self::Man(args) => manual::man(session, &args, Arguments::command()).map(done),
            Self::Reference(args) => reference::reference(session, &args).map(done),
            Self::Completions(args) => completions::completions(&args).map(done),
        }
    }
}

/// The commands by subject, in the order in which they are shown.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Pipelines",
        &["init", "exec", "plan", "why", "graph", "check", "stages", "schema"],
    ),
    (
        "Runs and results",
        &[
            "runs", "watch", "logs", "show", "compare", "report", "export", "track", "search", "policy",
        ],
    ),
    ("Every night", &["schedule", "paper", "serve"]),
    ("Data and store", &["data", "cache"]),
    (
        "Program",
        &["doctor", "bench", "completions", "man", "reference", "help"],
    ),
];

/// The command line with its commands in groups. The list of all commands is a part of the template, which
/// knows no groups.
pub(crate) fn command() -> clap::Command {
    let command = Arguments::command();
    let styles = Styles::default();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let width = command.get_subcommands().map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map_or_else(
                || "Print this message, or the help of a command".to_owned(),
                ToString::to_string,
            );
            let _ = writeln!(groups, "  {literal}{name:width$}{literal:#}  {about}");
        }
        groups.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Global \
        options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// The options that other programs have for values of parameters.
const AS_SET: [&str; 10] = [
    "-p",
    "-P",
    "-s",
    "-D",
    "--param",
    "--params",
    "--parameter",
    "--parameters",
    "--override",
    "--define",
];

/// The error of a command line, with the hint to `--set` where an option that does not exist looks like a
/// parameter (`--seed 2`, `-p seed=2`). `given` are the arguments, the program's name first.
pub(crate) fn explained(mut err: clap::Error, given: &[String]) -> clap::Error {
    let mut command = &Arguments::command();
    for word in given.iter().skip(1) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let has_set = command.get_arguments().any(|arg| arg.get_long() == Some("set"));
    let (ErrorKind::UnknownArgument, true, Some(ContextValue::String(option))) =
        (err.kind(), has_set, err.get(ContextKind::InvalidArg))
    else {
        return err;
    };
    let near = match err.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => near.as_str(),
        _ => "--set",
    };
    let tip = match option.trim_start_matches('-') {
        _ if AS_SET.contains(&option.as_str()) => "a parameter is set with `--set NAME=VALUE`".to_owned(),
        name if option.starts_with("--") && near == "--set" => {
            format!("if `{name}` is a parameter of the pipeline, write `--set {name}=VALUE`")
        }
        _ => return err,
    };
    err.remove(ContextKind::SuggestedArg);
    err.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    err
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_that_look_like_parameters_are_explained() {
        let said = |line: &str| {
            let given: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let err = command().try_get_matches_from(&given).unwrap_err();
            let text = explained(err, &given).to_string();
            let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
            tip.unwrap_or(&text).to_owned()
        };
        for option in AS_SET {
            let tip = said(&format!("runner exec p.yaml {option} seed=2"));
            assert_eq!(tip, "a parameter is set with `--set NAME=VALUE`", "{option}");
        }
        let tip = "if `seed` is a parameter of the pipeline, write `--set seed=VALUE`";
        assert_eq!(said("runner plan p.yaml --seed 2"), tip);
        assert_eq!(said("runner exec p.yaml --seed=2"), tip);
        assert!(said("runner exec p.yaml --forse train").contains("'--force'"));
        // A command without `--set`.
        assert!(!said("runner cache status --seed").contains("--set"));
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("runner "), "{}", command.get_name());
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.sort_unstable();
        let command = Arguments::command();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .chain(["help"])
            .collect();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    /// The lines that are too long for the list of commands or for an example, and prose that is broken by
    /// hand.
    fn wrong(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let names = command.get_subcommands().map(|sub| sub.get_name().len());
        // Two spaces, the longest name, two spaces.
        let left = 80 - 4 - names.max().unwrap_or_default();
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            if about.chars().count() > left {
                found.push(format!("{path} {}: {about}", sub.get_name()));
            }
            wrong(sub, &format!("{path} {}", sub.get_name()), found);
        }
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = after.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let is_example = line.starts_with("  ");
            let next = lines.get(i + 1).unwrap_or(&"");
            let is_whole = line.is_empty() || next.is_empty() || line.ends_with([':', '.']);
            if (is_example && line.chars().count() > 100) || (!is_example && !is_whole) {
                found.push(format!("{path}: {line}"));
            }
        }
    }

    #[test]
    fn lines_are_whole() {
        let mut found = Vec::new();
        wrong(&Arguments::command(), "runner", &mut found);
        assert_eq!(found.join("\n"), "");
    }
}
