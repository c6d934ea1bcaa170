//! Failures: what they stop, what goes on, and what is tried again.

use crate::{Lab, Setup, pipeline};
use runner_engine::Event;
use runner_testkit::PipelineText;

/// `bad` fails; `after` and `later` need it, `other` does not.
fn fork() -> PipelineText {
    pipeline("fork")
        .run("good", "echo 1 > ${outputs.x}")
        .run("bad", "fail at row 3; echo 2 > ${outputs.x}")
        .run("after", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "bad")
        .run("later", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "after")
        .run("other", "echo ${needs.x} other > ${outputs.x}")
        .needs("x", "good")
}

fn keep_going() -> Setup {
    Setup {
        keep_going: true,
        ..Setup::default()
    }
}

#[test]
fn nothing_new_starts_after_a_failure_and_what_was_done_is_kept() {
    let lab = Lab::new();
    let ran = lab.run_with(fork(), Setup::default());
    insta::assert_snapshot!(ran.log, @r#"
    r1 of fork: good, bad, after, later, other
    good starts: never ran before
    good ran x="1"
    bad starts: never ran before
    bad failed: at row 3 (hint: do not ask it to)
    after skipped: needs `bad`, which failed
    later skipped: needs `bad`, which failed
    other skipped: another stage failed
    failed: 0 cached, 1 ran, 1 failed, 3 skipped
    "#);
    assert_eq!(ran.summary.exit_code(), 1);
    insta::assert_snapshot!(lab.run_with(fork(), Setup::only(&["good"])).log, @r#"
    r2 of fork: good
    good cached x="1"
    done: 1 cached, 0 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn other_branches_go_on_with_keep_going() {
    let ran = Lab::new().run_with(fork(), keep_going());
    insta::assert_snapshot!(ran.log, @r#"
    r1 of fork: good, bad, after, later, other
    good starts: never ran before
    good ran x="1"
    bad starts: never ran before
    bad failed: at row 3 (hint: do not ask it to)
    after skipped: needs `bad`, which failed
    later skipped: needs `bad`, which failed
    other starts: never ran before
    other ran x="1 other"
    failed: 0 cached, 2 ran, 1 failed, 2 skipped
    "#);
    assert_eq!(ran.summary.exit_code(), 1);
}

#[test]
fn what_runs_when_another_stage_fails_completes_and_keeps_its_result() {
    let text = pipeline("both")
        .run("fails", "meet 2; fail at once; echo 1 > ${outputs.x}")
        .run("runs", "meet 2; hold; echo 2 > ${outputs.x}")
        .run("waits", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "runs");
    let lab = Lab::new();
    let two = Setup::jobs(2);
    let ran = lab.watch(text, two, |event| {
        if matches!(event, Event::StageFinished { stage, .. } if stage == "fails") {
            lab.player().release();
        }
    });
    insta::assert_snapshot!(ran.log, @r#"
    r1 of both: fails, runs, waits
    fails starts: never ran before
    runs starts: never ran before
    fails failed: at once (hint: do not ask it to)
    waits skipped: another stage failed
    runs ran x="2"
    failed: 0 cached, 1 ran, 1 failed, 1 skipped
    "#);
}

#[test]
fn a_stage_is_tried_again_as_often_as_it_may_be() {
    let text = |times: u32, retries: u32| {
        pipeline("flaky")
            .run("flaky", &format!("fail until {times}; echo done > ${{outputs.x}}"))
            .set("retries", retries)
    };
    insta::assert_snapshot!(Lab::new().run(text(3, 4)), @r#"
    r1 of flaky: flaky
    flaky starts: never ran before
    flaky is retried, 1 of 4: try 1 failed
    flaky starts: never ran before
    flaky is retried, 2 of 4: try 2 failed
    flaky starts: never ran before
    flaky ran x="done"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(Lab::new().run(text(3, 1)), @"
    r1 of flaky: flaky
    flaky starts: never ran before
    flaky is retried, 1 of 1: try 1 failed
    flaky starts: never ran before
    flaky failed: try 2 failed
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
}

#[test]
fn a_failure_of_the_machine_is_not_tried_again_and_stops_everything() {
    let text = pipeline("machine")
        .run("lost", "lose the disk; echo 1 > ${outputs.x}")
        .set("retries", 3)
        .run("other", "echo 2 > ${outputs.x}");
    let ran = Lab::new().run_with(text, keep_going());
    insta::assert_snapshot!(ran.log, @"
    r1 of machine: lost, other
    lost starts: never ran before
    lost failed: the disk
    other skipped: another stage failed
    failed: 0 cached, 0 ran, 1 failed, 1 skipped
    ");
    assert_eq!(ran.summary.exit_code(), 3);
}

#[test]
fn an_executor_that_panics_fails_its_stage() {
    let text = pipeline("panic").run("a", "panic; echo 1 > ${outputs.x}");
    let ran = Lab::new().run_with(text, Setup::default());
    insta::assert_snapshot!(ran.log, @"
    r1 of panic: a
    a starts: never ran before
    a failed: a thread of the engine panicked: at the command (hint: memory or the number of processes may be limited here: see `ulimit -a`)
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
    assert_eq!(ran.summary.exit_code(), 3);
}

#[test]
fn a_failed_stage_is_not_cached() {
    let lab = Lab::new();
    let text = pipeline("fails").run("a", "fail at row 3; echo 1 > ${outputs.x}");
    lab.run(&text);
    insta::assert_snapshot!(lab.run(&text), @"
    r2 of fails: a
    a starts: never ran before
    a failed: at row 3 (hint: do not ask it to)
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
}

/// A need is an output that the producer did not write.
#[test]
fn an_output_that_was_not_made_fails_what_needs_it() {
    let text = pipeline("missing")
        .run("a", "echo 1 > ${outputs.x}")
        .output("y", "y.txt")
        .run("b", "echo ${needs.y} > ${outputs.x}")
        .needs("y", "a.y");
    insta::assert_snapshot!(Lab::new().run(text), @r#"
    r1 of missing: a, b
    a starts: never ran before
    a ran x="1"
    b failed: `a` produced no output `y`
    failed: 0 cached, 1 ran, 1 failed, 0 skipped
    "#);
}
