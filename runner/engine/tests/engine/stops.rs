//! Runs that are asked to stop, and time limits.

use crate::lab::Ran;
use crate::{Lab, Setup, pipeline};
use runner_engine::{Control, Event};
use runner_testkit::PipelineText;

/// Runs a pipeline, and stops it as soon as this stage has started.
fn stopped_at(stage: &str, lab: &Lab, text: &PipelineText, stop: impl Fn(&Control) + Send + Sync) -> Ran {
    let setup = Setup::default();
    let control = setup.control.clone();
    lab.watch(text, setup, |event| match event {
        Event::StageStarted { stage: started, .. } if started == stage => stop(&control),
        _ => {}
    })
}

fn three(second: &str) -> PipelineText {
    pipeline("stop")
        .run("a", &format!("{second}; echo 1 > ${{outputs.x}}"))
        .run("b", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "a")
        .run("c", "echo 3 > ${outputs.x}")
}

#[test]
fn a_run_that_is_cancelled_is_interrupted() {
    let ran = stopped_at("a", &Lab::new(), &three("wait"), |control| control.cancel.cancel());
    insta::assert_snapshot!(ran.log, @"
    r1 of stop: a, b, c
    a starts: never ran before
    a failed: interrupted
    b skipped: needs `a`, which was interrupted
    c skipped: the run was interrupted
    interrupted: 0 cached, 0 ran, 1 failed, 2 skipped
    ");
    assert_eq!(ran.summary.exit_code(), 130);
}

#[test]
fn an_interrupted_stage_is_not_tried_again() {
    let text = pipeline("stop")
        .run("a", "wait; echo 1 > ${outputs.x}")
        .set("retries", 5);
    let ran = stopped_at("a", &Lab::new(), &text, |control| control.cancel.cancel());
    insta::assert_snapshot!(ran.log, @"
    r1 of stop: a
    a starts: never ran before
    a failed: interrupted
    interrupted: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
}

#[test]
fn a_stage_that_does_not_stop_is_killed() {
    let ran = stopped_at("a", &Lab::new(), &three("hang"), |control| {
        control.cancel.cancel();
        control.kill.cancel();
    });
    insta::assert_snapshot!(ran.statuses(), @"
    failed a
    skipped b
    skipped c
    ");
    assert_eq!(ran.summary.exit_code(), 130);
}

#[test]
fn a_run_that_was_cancelled_before_it_began_runs_nothing() {
    let setup = Setup::default();
    setup.control.cancel.cancel();
    let lab = Lab::new();
    insta::assert_snapshot!(lab.run_with(three("say hello"), setup).log, @"
    r1 of stop: a, b, c
    a skipped: the run was interrupted
    b skipped: the run was interrupted
    c skipped: the run was interrupted
    interrupted: 0 cached, 0 ran, 0 failed, 3 skipped
    ");
    assert!(lab.player().played().is_empty());
}

#[test]
fn the_next_run_goes_on_where_an_interrupted_one_stopped() {
    let lab = Lab::new();
    let text = |wait: &str| {
        pipeline("resume")
            .run("a", "echo 1 > ${outputs.x}")
            .run("b", &format!("{wait}echo 2 ${{needs.x}} > ${{outputs.x}}"))
            .needs("x", "a")
    };
    let first = stopped_at("b", &lab, &text("wait; "), |control| control.cancel.cancel());
    insta::assert_snapshot!(first.statuses(), @"
    ran a
    failed b
    ");
    insta::assert_snapshot!(lab.run_with(text(""), Setup::default()).statuses(), @"
    cached a
    ran b
    ");
}

/// The stage was asked to stop and ended well all the same: its result counts.
#[test]
fn a_run_whose_stages_all_end_well_is_done_although_it_was_cancelled() {
    let text = pipeline("late").run("a", "be late; echo 1 > ${outputs.x}");
    let ran = stopped_at("a", &Lab::new(), &text, |control| control.cancel.cancel());
    assert_eq!((ran.statuses().as_str(), ran.summary.exit_code()), ("ran a", 0));
}

#[test]
fn a_time_limit_is_a_failure_and_is_tried_again() {
    let text = pipeline("slow")
        .run("a", "wait; echo 1 > ${outputs.x}")
        .set("timeout", "1s")
        .set("retries", 1);
    let ran = Lab::new().run_with(text, Setup::default());
    insta::assert_snapshot!(ran.log, @"
    r1 of slow: a
    a starts: never ran before
    a is retried, 1 of 1: took longer than its time limit
    a starts: never ran before
    a failed: took longer than its time limit
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
    assert_eq!(ran.summary.exit_code(), 1);
}
