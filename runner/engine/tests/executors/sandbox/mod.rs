//! Programs and the host: what they see, what they cannot reach, and what is recorded of them, with
//! namespaces, with Landlock, and without isolation.
//!
//! Tests that need what the system lacks are listed as ignored.

mod limits;
mod poison;
mod reach;
mod record;

use crate::requirements::trial;
use crate::{Lab, Ran, Setup, Test};
use libtest_mimic::Trial;
use runner_engine::{Event, StageEvent};
use runner_pipeline::Isolation;
use runner_sandbox::probe;
use std::fmt::Display;

/// The modes in which a test runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Namespaces,
    Landlock,
    None,
}

/// Names tests by their functions.
macro_rules! named {
    ($($module:ident::$test:ident,)*) => { &[$((stringify!($test), $module::$test)),*] };
}

/// A test of one mode.
type InMode = (&'static str, fn(Mode));

/// Runs a pipeline in this mode, two stages at a time.
fn exec(lab: &Lab, text: impl Display, mode: Mode) -> Ran {
    lab.run_with(text, setup(mode))
}

fn setup(mode: Mode) -> Setup {
    // Tests do without namespaces where the system has them.
    let namespaces = if mode == Mode::Landlock { "none" } else { "" };
    Setup {
        jobs: 2,
        isolation: match mode {
            Mode::Namespaces => Isolation::Required,
            Mode::Landlock => Isolation::Auto,
            Mode::None => Isolation::None,
        },
        env: vec![("RUNNER_TEST_NAMESPACES", namespaces.to_owned())],
        ..Setup::default()
    }
}

/// The output `x` of the stage `a`, which has to succeed.
fn output(text: impl Display, mode: Mode) -> String {
    let lab = Lab::with_workers();
    let ran = exec(&lab, text, mode);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    lab.text(ran.outputs("a")["x"])
}

/// The isolation of a run's first program, whether it has a network, and the limit of its memory.
fn isolation(ran: &Ran) -> (&str, bool, Option<u64>) {
    let found = ran.events.iter().find_map(|event| match &event.event {
        Event::Stage {
            event:
                StageEvent::Isolation {
                    isolation,
                    network,
                    memory,
                },
            ..
        } => Some((isolation.as_str(), *network, *memory)),
        _ => None,
    });
    found.unwrap()
}

/// An entry of the record of the stage `a`.
fn info(lab: &Lab, ran: &Ran, name: &str) -> serde_json::Value {
    let record = lab.store().recorded(ran.key("a")).unwrap().unwrap();
    record.info[name].clone()
}

pub(crate) fn trials() -> Vec<Trial> {
    let found = probe();
    let missing = found.namespaces.is_err().then_some("no namespaces");
    let no_landlock = found.landlock.is_err().then_some("no Landlock");
    let no_limits = found.limits.is_err().then_some("no delegated control group");
    let all: &[InMode] = named![
        reach::the_environment_is_clean,
        poison::inputs_are_not_poisoned,
        poison::a_sibling_is_not_poisoned,
        poison::what_comes_after_a_poisoner_is_sound,
        limits::failures_of_lines_and_pipes,
        limits::nothing_outlives_a_stage,
    ];
    let landlock: &[InMode] = named![reach::files_of_the_host_are_refused, reach::tcp_is_refused,];
    let namespaces: &[Test] = named![
        reach::files_of_the_host_are_invisible,
        reach::nothing_of_the_system_is_writable,
        reach::nothing_is_left_for_the_next_program,
        reach::there_is_no_network,
        reach::a_killed_server_is_started_again,
        reach::processes_of_the_host_are_invisible,
        reach::links_in_outputs,
        record::invisible_files_are_named,
        record::executed_programs_are_recorded,
        poison::an_isolated_sibling_of_a_poisoner_is_not_recorded,
    ];
    let mut trials = Vec::new();
    let mut add = |name: &str, missing: Option<&str>, test: Box<dyn FnOnce() + Send>| {
        trials.push(trial(&format!("sandbox::{name}"), missing, test));
    };
    for &(name, test) in all.iter().chain(landlock) {
        add(
            &format!("{name}_by_landlock"),
            no_landlock,
            Box::new(move || test(Mode::Landlock)),
        );
    }
    for &(name, test) in all {
        add(name, missing, Box::new(move || test(Mode::Namespaces)));
        add(
            &format!("{name}_without_isolation"),
            None,
            Box::new(move || test(Mode::None)),
        );
    }
    for &(name, test) in namespaces {
        add(name, missing, Box::new(test));
    }
    for (mode, missing) in [
        (Mode::Namespaces, missing),
        (Mode::Landlock, no_landlock),
        (Mode::None, None),
    ] {
        let name = format!("the_isolation_is_reported_{mode:?}").to_lowercase();
        add(
            &name,
            missing,
            Box::new(move || record::the_isolation_is_reported(mode)),
        );
    }
    let limited = || limits::memory_is_limited(Mode::Namespaces);
    add("memory_is_limited", missing.or(no_limits), Box::new(limited));
    let limited = || limits::memory_is_limited(Mode::None);
    add("memory_is_limited_without_isolation", no_limits, Box::new(limited));
    let unlimited = no_limits.is_none().then_some("limits are enforced");
    let test = limits::a_limit_that_is_not_enforced_is_not_claimed;
    add("a_limit_that_is_not_enforced_is_not_claimed", unlimited, Box::new(test));
    trials
}
