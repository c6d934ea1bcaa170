//! External programs and the host: what they see, what they cannot reach, and how they end, with and without
//! isolation.
//!
//! Tests that need namespaces are listed as ignored where the system has none.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod family;
mod hidden;
mod landlock;
mod limits;
mod poison;
mod programs;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::Project;
use std::process::ExitCode;

/// The modes in which a test runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Namespaces,
    Landlock,
    None,
}

/// The variable by which tests do without namespaces where the system has them.
const NAMESPACES: &str = "RUNNER_TEST_NAMESPACES";

impl Mode {
    /// The value of `--isolation`.
    fn argument(self) -> &'static str {
        match self {
            Self::Namespaces => "required",
            Self::Landlock => "auto",
            Self::None => "none",
        }
    }

    /// The value of [`NAMESPACES`].
    fn namespaces(self) -> &'static str {
        match self {
            Self::Landlock => "none",
            Self::Namespaces | Self::None => "",
        }
    }
}

/// Runs `p.yaml` with this isolation, two stages at a time.
fn exec(project: &Project, mode: Mode, args: &[&str]) -> runner_testkit::Ended {
    let options = [
        "exec",
        "p.yaml",
        "--json",
        "--jobs",
        "2",
        "--isolation",
        mode.argument(),
    ];
    let mut command = project.command(&[&options[..], args].concat());
    command.env(NAMESPACES, mode.namespaces()).output().unwrap().into()
}

/// True if the system has Landlock: a stage without namespaces then has it.
fn has_landlock() -> bool {
    let project = Project::new(
        "version: 1\nname: l\nstages:\n  a: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }\n",
    );
    let ended = exec(&project, Mode::Landlock, &[]);
    ended.stdout.contains(r#""isolation":"landlock""#)
}

fn main() -> ExitCode {
    let found = Project::new("").run(&["doctor", "--json"]).stdout;
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let value = |what: &str| {
        let finding = findings.iter().find(|finding| finding["what"] == what);
        finding.unwrap()["value"].as_str().unwrap()
    };
    let missing = (value("isolation") != "namespaces").then_some("no namespaces");
    let limits = value("limits").starts_with("memory");
    let no_limits = (!limits).then_some("no delegated control group");
    // (name, test of one mode)
    type InMode = (&'static str, fn(Mode));
    let no_landlock = (!has_landlock()).then_some("no Landlock");
    let both: [InMode; 9] = [
        ("findings", poison::findings),
        ("inputs_are_not_poisoned", poison::inputs_are_not_poisoned),
        ("a_sibling_is_not_poisoned", poison::a_sibling_is_not_poisoned),
        ("failures_of_lines_and_pipes", programs::failures_of_lines_and_pipes),
        ("nothing_outlives_a_stage", family::nothing_outlives_a_stage),
        ("nothing_outlives_an_interrupt", family::nothing_outlives_an_interrupt),
        ("nothing_outlives_a_kill", family::nothing_outlives_a_kill),
        ("the_environment_is_clean", hidden::the_environment_is_clean),
        ("a_big_log_is_bounded", limits::a_big_log_is_bounded),
    ];
    let one: [(&str, fn()); 10] = [
        (
            "an_isolated_sibling_of_a_poisoner_is_not_recorded",
            poison::an_isolated_sibling_of_a_poisoner_is_not_recorded,
        ),
        (
            "files_of_the_host_are_invisible",
            hidden::files_of_the_host_are_invisible,
        ),
        (
            "nothing_of_the_system_is_writable",
            hidden::nothing_of_the_system_is_writable,
        ),
        (
            "nothing_is_left_for_the_next_program",
            hidden::nothing_is_left_for_the_next_program,
        ),
        ("there_is_no_network", hidden::there_is_no_network),
        (
            "processes_of_the_host_are_invisible",
            hidden::processes_of_the_host_are_invisible,
        ),
        ("invisible_files_are_named", hidden::invisible_files_are_named),
        ("links_in_outputs", hidden::links_in_outputs),
        (
            "executed_programs_are_recorded",
            programs::executed_programs_are_recorded,
        ),
        ("the_isolation_is_reported", programs::the_isolation_is_reported),
    ];
    let mut trials = Vec::new();
    let of_landlock: [InMode; 3] = [
        ("files_of_the_host_are_refused", landlock::files_of_the_host_are_refused),
        ("tcp_is_refused", landlock::tcp_is_refused),
        ("the_isolation_is_named", landlock::the_isolation_is_named),
    ];
    for (name, test) in both.into_iter().chain(of_landlock) {
        trials.push(trial(&format!("{name}_by_landlock"), no_landlock, move || {
            test(Mode::Landlock);
        }));
    }
    for (name, test) in both {
        trials.push(trial(name, missing, move || test(Mode::Namespaces)));
        trials.push(trial(&format!("{name}_without_isolation"), None, move || {
            test(Mode::None)
        }));
    }
    trials.extend(one.map(|(name, test)| trial(name, missing, test)));
    trials.push(trial("memory_is_limited", missing.or(no_limits), || {
        limits::memory_is_limited(Mode::Namespaces);
    }));
    trials.push(trial("memory_is_limited_without_isolation", no_limits, || {
        limits::memory_is_limited(Mode::None);
    }));
    trials.push(trial(
        "a_limit_that_is_not_enforced_is_not_claimed",
        limits.then_some("limits are enforced"),
        limits::a_limit_that_is_not_enforced_is_not_claimed,
    ));
    trials.push(trial(
        "outputs_hear_their_limits",
        None,
        limits::outputs_hear_their_limits,
    ));
    requirements::run(trials)
}
