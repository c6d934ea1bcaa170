//! External programs of a run that is interrupted or killed, and their logs, with and without isolation. What
//! a program sees and what is recorded of it are tests of the engine's executors.
//!
//! Tests that need namespaces are listed as ignored where the system has none.

#![allow(clippy::unwrap_used, reason = "tests")]

mod family;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::{Ended, Project, pipeline, runner, wait_for};
use std::process::{Command, ExitCode, Stdio};

/// The modes in which a test runs.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Namespaces,
    Landlock,
    None,
}

impl Mode {
    /// A command that runs `p.yaml` in this mode.
    fn command(self, project: &Project, args: &[&str]) -> Command {
        let (isolation, namespaces) = match self {
            Self::Namespaces => ("required", ""),
            // Tests do without namespaces where the system has them.
            Self::Landlock => ("auto", "none"),
            Self::None => ("none", ""),
        };
        let mut command = project.command(&["exec", "p.yaml", "--isolation", isolation]);
        command.args(args).env("RUNNER_TEST_NAMESPACES", namespaces);
        command
    }
}

fn a_big_log_is_bounded(mode: Mode) {
    let run = "echo first; head -c 1500000000 /dev/zero; echo; echo last; echo 1 > ${outputs.x}";
    let project = Project::new(pipeline("log").run("a", run));
    let ended = Ended::from(mode.command(&project, &["-v"]).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.text());
    let peak = "peak memory of the engine in bytes: ";
    let memory = ended.stderr.lines().find_map(|line| line.strip_prefix(peak));
    // The engine maps the blobs that it stores and the program itself is large.
    assert!(memory.unwrap().trim().parse::<u64>().unwrap() < 200 << 20, "{memory:?}");
    let files = runner_testkit::files(&project.home());
    let size: u64 = files
        .iter()
        .map(|path| path.metadata().map_or(0, |meta| meta.len()))
        .sum();
    assert!((64 << 20..80 << 20).contains(&size), "{size}");
    let shown = project.run(&["show", "latest/a"]).stdout;
    assert!(shown.contains("last"), "the tail is kept");
}

/// As in a container: the kernel lets the first process ignore signals that it does not handle.
fn a_first_process_ends_by_signals() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut unshare = Command::new("unshare")
            .args(["-rpf", "--"])
            .arg(runner())
            .args(["bench", "search"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let mut ended = None;
        wait_for("the end of the first process", || {
            // Earlier on, the signal is ignored.
            let first = std::fs::read_to_string(&children).unwrap_or_default();
            let _ = Command::new("kill")
                .args([&format!("-{signal}"), first.trim()])
                .output();
            ended = unshare.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(code), "SIG{signal}");
    }
}

fn main() -> ExitCode {
    let found = Project::new("").run(&["doctor", "--json"]).stdout;
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let isolation = findings.iter().find(|finding| finding["what"] == "isolation").unwrap();
    let missing = (isolation["value"] != "namespaces").then_some("no namespaces");
    let probe = Project::new(pipeline("probe").run("a", "echo 1 > ${outputs.x}"));
    let probed = Mode::Landlock.command(&probe, &["--json"]).output().unwrap();
    let has_landlock = Ended::from(probed).stdout.contains(r#""isolation":"landlock""#);
    let no_landlock = (!has_landlock).then_some("no Landlock");
    // (name, test of one mode)
    type InMode = (&'static str, fn(Mode));
    let tests: [InMode; 3] = [
        ("nothing_outlives_an_interrupt", family::nothing_outlives_an_interrupt),
        ("nothing_outlives_a_kill", family::nothing_outlives_a_kill),
        ("a_big_log_is_bounded", a_big_log_is_bounded),
    ];
    let first = trial(
        "a_first_process_ends_by_signals",
        missing,
        a_first_process_ends_by_signals,
    );
    let mut trials = vec![first];
    for (name, test) in tests {
        trials.push(trial(name, missing, move || test(Mode::Namespaces)));
        trials.push(trial(&format!("{name}_by_landlock"), no_landlock, move || {
            test(Mode::Landlock);
        }));
        trials.push(trial(&format!("{name}_without_isolation"), None, move || {
            test(Mode::None);
        }));
    }
    requirements::run(trials)
}
