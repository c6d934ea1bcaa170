//! Time limits and signals of programs.

use crate::{Lab, PipelineText, Setup, program};
use runner_engine::{Event, StageEvent};
use runner_testkit::wait_for;

tests![
    a_program_over_its_time_limit_is_ended_with_its_family,
    a_flaky_program_is_tried_again,
    storing_outputs_hears_the_time_limit,
    storing_outputs_hears_a_cancellation,
    a_cancelled_program_is_asked_first,
    a_program_that_ignores_its_signal_is_killed,
];

fn a_program_over_its_time_limit_is_ended_with_its_family() {
    let lab = Lab::with_workers();
    let mark = lab.path("mark").display().to_string();
    let text = program("sleep 100 & sleep 100; echo > ${outputs.x}")
        .set("timeout", "1s")
        .set("env", format!("{{ MARK: {mark} }}"));
    let ran = lab.run_with(text, Setup::default());
    assert_eq!(
        ran.error("a"),
        "took longer than its time limit of 1.00 s\nhint: raise `timeout:` of the stage"
    );
    assert_eq!(runner_testkit::marked(&mark), Vec::<String>::new());
}

fn a_flaky_program_is_tried_again() {
    let lab = Lab::with_workers();
    let text = program("echo x >> $COUNTER; test $(wc -l < $COUNTER) -ge 3 && echo done > ${outputs.x}")
        .set("env", format!("{{ COUNTER: {} }}", lab.path("counter").display()))
        .set("retries", 4);
    // The counter is a file of the host.
    let ran = lab.run_with(text, Setup::on_host());
    assert_eq!(ran.statuses(), "retried a\nretried a\nran a", "{}", ran.log);
}

/// A stage whose output takes minutes to store.
fn large() -> PipelineText {
    program("mkdir ${outputs.x}; truncate -s 200G ${outputs.x}/big; mkfifo ${outputs.x}/fifo")
}

fn storing_outputs_hears_the_time_limit() {
    let text = large().set("timeout", "2s");
    let error = Lab::with_workers().run_with(text, Setup::on_host()).error("a");
    assert!(error.contains("time limit"), "{error}");
}

fn storing_outputs_hears_a_cancellation() {
    let (lab, setup) = (Lab::with_workers(), Setup::on_host());
    let control = setup.control.clone();
    let is_stored = || {
        let written = runner_testkit::files(&lab.path("home/tmp"));
        let mut sizes = written.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
        sizes.any(|size| (32 << 20..100 << 30).contains(&size))
    };
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the output to be stored", is_stored);
            control.cancel.cancel();
        });
        lab.run_with(large(), setup)
    });
    assert_eq!((ran.error("a").as_str(), ran.summary.exit_code()), ("interrupted", 130));
}

/// Cancels a run when its program has written a line.
fn cancelled(command: &str, setup: Setup) -> crate::Ran {
    let control = setup.control.clone();
    let text = program(&format!("echo begun; {command}; echo 1 > ${{outputs.x}}"));
    Lab::with_workers().watch(text, setup, |event| {
        let Event::Stage { event, .. } = event else { return };
        if matches!(event, StageEvent::Progress { message, .. } if message == "begun") {
            control.cancel.cancel();
        }
    })
}

fn a_cancelled_program_is_asked_first() {
    let ran = cancelled("trap 'exit 1' TERM; sleep 100 & wait", Setup::default());
    assert_eq!(
        (ran.error("a").as_str(), ran.summary.exit_code()),
        ("interrupted", 130),
        "{}",
        ran.log
    );
}

fn a_program_that_ignores_its_signal_is_killed() {
    let setup = Setup::grace(std::time::Duration::from_millis(300));
    let ran = cancelled("trap '' TERM; while true; do sleep 0.1; done", setup);
    assert_eq!(
        (ran.error("a").as_str(), ran.summary.exit_code()),
        ("interrupted", 130),
        "{}",
        ran.log
    );
}
