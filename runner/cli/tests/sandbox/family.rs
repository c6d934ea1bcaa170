//! Children that leave their session, and how they end.

use crate::Mode;
use runner_testkit::{Project, marked, pipeline, wait_for};
use std::process::{Child, Command, Stdio};

/// Leaves a process in its own session, one whose parent has exited, one that ignores signals, and one that
/// does all of it.
const ESCAPES: &str = "\
setsid sleep 1000 &
(setsid sh -c 'sleep 1001 & exit' &)
sh -c 'trap \"\" TERM INT HUP; sleep 1002; sleep 1003' &
setsid nohup sh -c 'trap \"\" TERM; (sleep 1004 &) ; sleep 1005' > /dev/null 2>&1 &
";

fn mark(name: &str, mode: Mode) -> String {
    format!("{name}-{mode:?}-{}", std::process::id())
}

/// Starts a stage that does not end, and waits until its family is complete.
fn start(mode: Mode, mark: &str) -> (Project, Child) {
    let run = format!("{ESCAPES}sleep 1006; echo 1 > ${{outputs.x}}");
    let stage = pipeline("family").run("a", &run);
    let project = Project::new(stage.set("env", format!("{{ MARK: {mark} }}")));
    let child = mode
        .command(&project, &["-q"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("its family", || {
        let family = marked(mark).join("\n");
        ["1000", "1001", "1002", "1004", "1005", "1006"]
            .iter()
            .all(|time| family.contains(&format!("sleep {time}")))
    });
    (project, child)
}

pub(crate) fn nothing_outlives_an_interrupt(mode: Mode) {
    let mark = mark("interrupt", mode);
    let (_project, mut child) = start(mode, &mark);
    let status = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = marked(&mark);
    assert!(left.is_empty(), "{left:?}");
}

pub(crate) fn nothing_outlives_a_kill(mode: Mode) {
    let mark = mark("kill", mode);
    let (project, mut child) = start(mode, &mark);
    let home = format!("RUNNER_HOME={}", project.home().display());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the family to end", || marked(&mark).is_empty());
    wait_for("the engine's own processes to end", || marked(&home).is_empty());
}
