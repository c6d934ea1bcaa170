//! Agents of launchd.

use super::unit::{Call, RETRY_AFTER};

/// The label of a pipeline's agent.
pub(super) fn label(name: &str) -> String {
    format!("runner.schedule.{name}")
}

/// The property list: every five minutes, since launchd knows only local time.
pub(super) fn plist(call: &Call) -> String {
    let word = |text: &str| format!("    <string>{}</string>\n", escaped(text));
    let path = |path: &std::path::Path| path.display().to_string();
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
        insta::assert_snapshot!(plist(&call), @r#"
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
          <key>RunAtLoad</key>
          <true/>
          <key>StartInterval</key>
          <integer>300</integer>
        </dict>
        </plist>
        "#);
    }
}
