//! Agents of launchd.
//!
//! The system throttles jobs of other process types than `Interactive`, and keeps those of the background on
//! efficiency cores. A time that passed while the machine slept is made up for when it wakes.

use super::unit::{Call, RETRY_AFTER};
use std::path::Path;

/// The label of a pipeline's agent.
pub(super) fn label(name: &str) -> String {
    format!("runner.schedule.{name}")
}

/// The agents of this user's sessions.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// The command that loads an agent. Unlike `launchctl load`, it fails where that fails.
pub(super) fn load(plist: &Path) -> Vec<String> {
    let path = plist.display().to_string();
    ["launchctl".to_owned(), "bootstrap".to_owned(), domain(), path].into()
}

/// The command that succeeds if an agent is loaded.
pub(super) fn is_loaded(label: &str) -> Vec<String> {
    let service = format!("{}/{label}", domain());
    ["launchctl".to_owned(), "print".to_owned(), service].into()
}

/// The command that unloads an agent, if it is loaded. It also ends what the agent runs.
pub(super) fn unload(label: &str) -> Vec<String> {
    let service = format!("{}/{label}", domain());
    ["launchctl".to_owned(), "bootout".to_owned(), service].into()
}

/// The property list: every five minutes, since launchd knows only local time. The program's output goes to
/// the file `log`.
pub(super) fn plist(call: &Call, log: &Path) -> String {
    let word = |text: &str| format!("    <string>{}</string>\n", escaped(text));
    let path = |path: &Path| path.display().to_string();
    let arguments: String = [
        &path(&call.program),
        "-q",
        "schedule",
        "run-due",
        &path(&call.file),
        "--retry-after",
        RETRY_AFTER,
    ]
    .map(word)
    .concat();
    let env: String = call
        .env
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key>\n{}", word(value)))
        .collect();
    format!(
        include_str!("launchd.plist"),
        label = escaped(&label(&call.name)),
        arguments = arguments,
        env = env,
        folder = escaped(&path(&call.folder)),
        log = escaped(&path(log)),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent() {
        let call = Call {
            name: "nightly".to_owned(),
            program: "/usr/local/bin/runner".into(),
            file: "/Users/desk/a & b.yaml".into(),
            folder: "/Users/desk".into(),
            env: vec![("RUNNER_HOME", "/Users/desk/.runner".to_owned())],
        };
        let log = Path::new("/Users/desk/Library/Logs/runner.schedule.nightly.log");
        insta::assert_snapshot!(plist(&call, log), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
          <key>Label</key>
          <string>runner.schedule.nightly</string>
          <key>ProgramArguments</key>
          <array>
            <string>/usr/local/bin/runner</string>
            <string>-q</string>
            <string>schedule</string>
            <string>run-due</string>
            <string>/Users/desk/a &amp; b.yaml</string>
            <string>--retry-after</string>
            <string>1h</string>
          </array>
          <key>EnvironmentVariables</key>
          <dict>
            <key>RUNNER_HOME</key>
            <string>/Users/desk/.runner</string>
          </dict>
          <key>WorkingDirectory</key>
          <string>/Users/desk</string>
          <key>StandardOutPath</key>
          <string>/Users/desk/Library/Logs/runner.schedule.nightly.log</string>
          <key>StandardErrorPath</key>
          <string>/Users/desk/Library/Logs/runner.schedule.nightly.log</string>
          <key>ProcessType</key>
          <string>Interactive</string>
          <key>RunAtLoad</key>
          <true/>
          <key>StartInterval</key>
          <integer>300</integer>
        </dict>
        </plist>
        "#);
    }
}
