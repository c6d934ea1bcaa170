//! The command line with its commands in groups.

use super::Arguments;
use clap::builder::Styles;
use clap::{Command, CommandFactory as _};
use std::fmt::Write as _;

/// The commands by subject, in the order in which they are shown.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Pipelines",
        &["init", "exec", "plan", "why", "graph", "check", "stages", "schema"],
    ),
    (
        "Runs and results",
        &[
            "runs", "watch", "logs", "show", "compare", "report", "export", "track", "policy",
        ],
    ),
    ("Every night", &["schedule", "serve"]),
    ("Data and store", &["data", "cache"]),
    ("Program", &["doctor", "bench", "completions", "man", "help"]),
];

/// The command line without groups, for manual pages.
pub(crate) fn plain() -> Command {
    Arguments::command()
}

/// The command line. The list of all commands is a part of the template, which knows no groups.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let styles = Styles::default();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let width = command.get_subcommands().map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.sort_unstable();
        let command = Arguments::command();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .map(Command::get_name)
            .chain(["help"])
            .collect();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    /// The lines that are too long for the list of commands or for an example, and prose that is broken by
    /// hand.
    fn wrong(command: &Command, path: &str, found: &mut Vec<String>) {
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
