//! Shells, failures, and the record of executed programs.

use crate::{Mode, exec};
use runner_testkit::Project;

fn stage(run: &str, more: &str) -> Project {
    let lines: String = run.lines().map(|line| format!("      {line}\n")).collect();
    Project::new(format!(
        "version: 1\nname: programs\nstages:\n  a:\n    run: |\n{lines}    outputs: {{ x: x.txt }}\n{more}"
    ))
}

pub(crate) fn failures_of_lines_and_pipes(mode: Mode) {
    for (run, more, code) in [
        ("false\necho 1 > ${outputs.x}", "", 1),
        ("false | cat > ${outputs.x}", "", 1),
        ("echo $UNSET_VARIABLE > ${outputs.x}", "", 1),
        ("[[ a == a ]] && echo 1 > ${outputs.x}", "", 0),
        ("false\necho 1 > ${outputs.x}", "    shell: sh\n", 1),
        // `sh` has no `pipefail` everywhere, and does not mind what is unset.
        ("false | echo $UNSET_VARIABLE > ${outputs.x}", "    shell: sh\n", 0),
        ("kill -9 $$\necho 1 > ${outputs.x}", "", 1),
    ] {
        let ended = exec(&stage(run, more), mode, &[]);
        assert_eq!(ended.code, code, "{run} {more}: {}{}", ended.stdout, ended.stderr);
    }
    let killed = exec(&stage("kill -9 $$", ""), mode, &[]);
    assert!(
        killed.error("a").contains("was killed by signal 9 (SIGKILL)"),
        "{}",
        killed.error("a")
    );
}

/// The `info` of the record of the only stage.
pub(crate) fn info(project: &Project) -> serde_json::Value {
    let records = runner_testkit::files(&project.home().join("actions"));
    let text = std::fs::read_to_string(&records[0]).unwrap();
    let record: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    record["record"]["info"].clone()
}

pub(crate) fn executed_programs_are_recorded() {
    let project = stage(
        "printf '#!/usr/bin/perl\\nprint 1;' > script; chmod +x script; ./script > ${outputs.x}; cat \
        ${outputs.x}; setsid true; no-such-program || true",
        "",
    );
    let ended = exec(&project, Mode::Namespaces, &[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let warning = ended
        .events()
        .into_iter()
        .find(|event| event["event"] == "warning")
        .unwrap();
    assert_eq!(warning["message"], "executed `/usr/bin/perl`, which is not in its key");
    assert_eq!(warning["hint"], "add `tools: [perl]`");
    let executed = info(&project)["executed"].to_string();
    for path in [
        "bash\"",
        "\"/stage/work/script\"",
        "/cat\"",
        "/perl\"",
        "/setsid\"",
        "/true\"",
    ] {
        assert!(executed.contains(path), "{path}: {executed}");
    }
    assert!(!executed.contains("no-such-program"), "{executed}");
    let quiet = exec(&stage("seq 3 | sort -r > ${outputs.x}", ""), Mode::Namespaces, &[]);
    assert!(!quiet.stdout.contains(r#""event":"warning""#), "{}", quiet.stdout);
}

pub(crate) fn the_isolation_is_reported() {
    for (mode, name) in [(Mode::Namespaces, "namespaces"), (Mode::None, "none")] {
        let project = stage("echo 1 > ${outputs.x}", "");
        let ended = exec(&project, mode, &[]);
        let event = ended
            .events()
            .into_iter()
            .find(|event| event["event"] == "isolation")
            .unwrap();
        assert_eq!(event["isolation"], name);
        assert_eq!(event["network"], mode == Mode::None);
        let info = info(&project);
        assert_eq!(info["isolation"], name);
        assert_eq!(info["executed"].is_null(), mode == Mode::None);
    }
    // Neither mode is in the key.
    let project = stage("echo 1 > ${outputs.x}", "");
    assert_eq!(exec(&project, Mode::Namespaces, &[]).log(), "ran a");
    assert_eq!(exec(&project, Mode::None, &[]).log(), "cached a");
}
