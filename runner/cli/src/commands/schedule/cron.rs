//! Lines of the user's crontab.

use super::unit::{Call, RETRY_AFTER};

/// The comment at the end of a pipeline's line.
fn marker(name: &str) -> String {
    format!("# runner schedule of {name}")
}

/// The line of a pipeline: every five minutes, since cron does not know the schedule's time zone or the times
/// that it missed.
pub(super) fn line(call: &Call) -> String {
    let mut command = format!("cd {} && ", quoted(&call.folder.display().to_string()));
    for (name, value) in &call.env {
        command.push_str(&format!("{name}={} ", quoted(value)));
    }
    command.push_str(&format!(
        "{} -q schedule run-due {} --retry-after {RETRY_AFTER}",
        quoted(&call.program.display().to_string()),
        quoted(&call.file.display().to_string())
    ));
    // Cron ends the command at a bare `%`.
    format!("*/5 * * * * {} {}", command.replace('%', "\\%"), marker(&call.name))
}

/// Quotes a word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// True if a crontab contains the line of a pipeline.
pub(super) fn has(table: &str, name: &str) -> bool {
    table.lines().any(|line| line.ends_with(&marker(name)))
}

/// Returns a crontab without the line of a pipeline.
pub(super) fn without(table: &str, name: &str) -> String {
    let marker = marker(name);
    let left = table.lines().filter(|line| !line.ends_with(&marker));
    left.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_replaced_and_removed() {
        let call = |file: &str| Call {
            name: "nightly".to_owned(),
            program: "/usr/bin/runner".into(),
            file: file.into(),
            folder: "/data/it's 100%".into(),
            env: vec![("RUNNER_HOME", "/var/lib/runner".to_owned())],
        };
        let own = "MAILTO=desk\n0 5 * * * backup # runner schedule of nightly2\n";
        let table = format!("{own}{}\n", line(&call("/data/p.yaml")));
        insta::assert_snapshot!(table, @r"
        MAILTO=desk
        0 5 * * * backup # runner schedule of nightly2
        */5 * * * * cd '/data/it'\''s 100\%' && RUNNER_HOME='/var/lib/runner' '/usr/bin/runner' -q schedule run-due '/data/p.yaml' --retry-after 1h # runner schedule of nightly
        ");
        assert!(has(&table, "nightly") && !has(&table, "night"));
        assert_eq!(without(&table, "nightly"), own);
    }
}
