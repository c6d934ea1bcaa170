//! Stage kinds in worker processes: what a stage says, and how it and its worker end.

use crate::{Lab, Setup, pipeline};
use runner_engine::Event;
use runner_testkit::PipelineText;
use std::time::Duration;

tests![
    what_a_stage_says_arrives,
    a_stage_has_the_threads_that_it_was_given,
    memos_are_counted_and_what_was_computed_is_named,
    an_error_is_the_stages_own,
    a_panic_is_a_bug_and_its_place_is_shown,
    a_worker_that_dies_fails_its_stage_alone,
    an_output_that_is_not_made_is_an_error,
    a_time_limit_asks_and_then_kills,
    a_cancelled_stage_is_interrupted,
    a_killed_stage_is_interrupted_at_once,
];

fn act(act: &str) -> PipelineText {
    pipeline("worker")
        .uses("a", "test/misbehave")
        .with("act", act)
        .set("resources", "{ threads: 1 }")
}

fn what_a_stage_says_arrives() {
    let lab = Lab::with_workers();
    let ran = lab.run_with(act("say"), Setup::default());
    insta::assert_snapshot!(ran.log, @r#"
    r1 of worker: a
    a starts: never ran before
    a | first line
    a: losses/loss at 3 is NaN
    a: half of it
    a: warning: it is late (hint: begin earlier)
    a ran x="1 of 1 threads"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    let Some(Event::StageFinished { peak_memory, log, .. }) =
        ran.events.iter().rev().nth(1).map(|e| &e.event)
    else {
        panic!("{}", ran.log);
    };
    assert!(peak_memory.unwrap() > 1 << 20);
    let log = lab.store().local_blob(log.unwrap().blob).unwrap();
    assert_eq!(log.to_vec(), b"first line\n");
    // What is not a message of the protocol goes to the log.
    insta::assert_snapshot!(lab.run(act("print")), @r#"
    r2 of worker: a
    a starts: with.act: "say" -> "print"
    a | this is not a message
    a ran x="1 of 1 threads"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

fn a_stage_has_the_threads_that_it_was_given() {
    let text = act("nothing").set("resources", "{ threads: 3 }");
    insta::assert_snapshot!(Lab::with_workers().run(text), @r#"
    r1 of worker: a
    a starts with 3 threads: never ran before
    a ran x="3 of 3 threads"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

fn memos_are_counted_and_what_was_computed_is_named() {
    let lab = Lab::with_workers();
    let squares = |count: u64| {
        pipeline("memos")
            .uses("s", "test/squares")
            .with("count", count)
            .set("resources", "{ threads: 1 }")
    };
    insta::assert_snapshot!(lab.run(squares(2)), @r#"
    r1 of memos: s
    s starts: never ran before
    s: 0 of 2 memos
    s ran x="0 1"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(lab.run(squares(4)), @r#"
    r2 of memos: s
    s starts: with.count: 2 -> 4
    s | computed 2 of 4 parts: square 2, square 3
    s: 2 of 4 memos
    s ran x="0 1 4 9"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    insta::assert_snapshot!(lab.run_with(squares(4), Setup::force(&["s"])).log, @r#"
    r3 of memos: s
    s starts: forced
    s: 0 of 4 memos
    s ran x="0 1 4 9"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
    let many = lab.run(squares(30));
    let line = many.lines().find(|line| line.starts_with("s | ")).unwrap();
    assert!(line.ends_with("square 29 and 6 more"), "{line}");
}

fn an_error_is_the_stages_own() {
    let ran = Lab::with_workers().run_with(act("fail"), Setup::default());
    insta::assert_snapshot!(ran.log, @"
    r1 of worker: a
    a starts: never ran before
    a failed: row 3 is not a number (hint: mend it)
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
    assert_eq!(ran.summary.exit_code(), 1);
}

fn a_panic_is_a_bug_and_its_place_is_shown() {
    let ran = Lab::with_workers().run_with(act("panic"), Setup::default());
    let error = ran.error("a");
    assert!(error.starts_with("the stage panicked: no such row\n    | "), "{error}");
    let hint = "hint: this is a bug in the program; RUST_BACKTRACE=1 shows the backtrace";
    assert!(error.ends_with(hint), "{error}");
}

/// The others of the run complete.
fn a_worker_that_dies_fails_its_stage_alone() {
    let text = ["abort", "exit", "killed"].iter().fold(pipeline("dies"), |text, how| {
        text.uses(how, "test/misbehave")
            .with("act", how)
            .set("resources", "{ threads: 1 }")
    });
    let text = text
        .uses("good", "test/squares")
        .with("count", 3)
        .set("resources", "{ threads: 1 }");
    let setup = Setup {
        keep_going: true,
        jobs: 2,
        ..Setup::default()
    };
    let ran = Lab::with_workers().run_with(text, setup);
    insta::assert_snapshot!(ran.error("abort"), @"
    its worker was killed by signal 6 (SIGABRT)
    hint: this is a bug in the program or one of its libraries
    ");
    insta::assert_snapshot!(ran.error("exit"), @"its worker ended without a result, with status 7");
    insta::assert_snapshot!(ran.error("killed"), @"
    its worker was killed by signal 9 (SIGKILL)
    hint: the system kills processes that use too much memory: `resources: { memory: … }` keeps large stages from running in parallel
    ");
    assert!(ran.log.contains("good ran x=\"0 1 4\""), "{}", ran.log);
    assert_eq!(ran.summary.exit_code(), 1);
}

fn an_output_that_is_not_made_is_an_error() {
    let ran = Lab::with_workers().run_with(act("no output"), Setup::default());
    insta::assert_snapshot!(ran.error("a"), @"`test/misbehave` produced no output `x`");
}

fn a_time_limit_asks_and_then_kills() {
    for stubborn in ["obey", "ignore"] {
        let setup = Setup::grace(Duration::from_millis(200));
        let ran = Lab::with_workers().run_with(act(stubborn).set("timeout", "1s"), setup);
        assert_eq!(
            ran.error("a"),
            "took longer than its time limit of 1.00 s\nhint: raise `timeout:` of the stage",
            "{stubborn}"
        );
        assert_eq!(ran.summary.exit_code(), 1);
    }
}

fn a_cancelled_stage_is_interrupted() {
    for stubborn in ["obey", "ignore"] {
        let setup = Setup::grace(Duration::from_millis(200));
        let control = setup.control.clone();
        let ran = Lab::with_workers().watch(act(stubborn), setup, |event| {
            if matches!(event, Event::StageStarted { .. }) {
                control.cancel.cancel();
            }
        });
        assert_eq!(
            (ran.error("a").as_str(), ran.summary.exit_code()),
            ("interrupted", 130),
            "{stubborn}"
        );
    }
}

fn a_killed_stage_is_interrupted_at_once() {
    let setup = Setup::grace(Duration::from_secs(1000));
    let control = setup.control.clone();
    let ran = Lab::with_workers().watch(act("ignore"), setup, |event| {
        if matches!(event, Event::StageStarted { .. }) {
            control.cancel.cancel();
            control.kill.cancel();
        }
    });
    assert_eq!((ran.error("a").as_str(), ran.summary.exit_code()), ("interrupted", 130));
}
