//! The order of stages, and what limits how many of them run at the same time.

use crate::{Lab, Setup, pipeline};
use runner_testkit::PipelineText;

/// So many stages without needs; a suffix is appended to each command.
fn independent(number: usize, step: &str) -> PipelineText {
    (0..number).fold(pipeline("independent"), |text, i| {
        text.run(&format!("s{i}"), &format!("{step}; echo {i} > ${{outputs.x}}"))
    })
}

fn parallel(text: PipelineText, setup: Setup) -> usize {
    let lab = Lab::new();
    let ran = lab.run_with(text, setup);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    lab.player().most_running()
}

#[test]
fn one_stage_at_a_time_in_the_order_of_the_pipeline() {
    let lab = Lab::new();
    let text = pipeline("diamond")
        .run("last", "echo ${needs.l} ${needs.r} > ${outputs.x}")
        .needs("l", "left")
        .needs("r", "right")
        .run("right", "echo r ${needs.x} > ${outputs.x}")
        .needs("x", "first")
        .run("left", "echo l ${needs.x} > ${outputs.x}")
        .needs("x", "first")
        .run("first", "echo 1 > ${outputs.x}");
    insta::assert_snapshot!(lab.run(text), @r#"
    r1 of diamond: first, right, left, last
    first starts: never ran before
    first ran x="1"
    right starts: never ran before
    right ran x="r 1"
    left starts: never ran before
    left ran x="l 1"
    last starts: never ran before
    last ran x="l 1 r 1"
    done: 0 cached, 4 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(lab.player().most_running(), 1);
}

#[test]
fn as_many_stages_run_as_there_are_jobs() {
    let jobs = |jobs: usize| Setup {
        jobs,
        ..Setup::default()
    };
    // The stages of each pair wait for each other: fewer jobs would be waited for in vain.
    assert_eq!(parallel(independent(6, "meet 2"), jobs(2)), 2);
    assert_eq!(parallel(independent(6, "meet 3"), jobs(3)), 3);
    assert_eq!(parallel(independent(4, "say hello"), jobs(1)), 1);
}

#[test]
fn stages_that_want_more_threads_than_there_are_wait() {
    let eight = || Setup {
        jobs: 8,
        threads: 8,
        ..Setup::default()
    };
    let with = |resources: &str| {
        (0..4).fold(pipeline("threads"), |text, i| {
            text.run(&format!("s{i}"), &format!("meet 2; echo {i} > ${{outputs.x}}"))
                .set("resources", resources)
        })
    };
    assert_eq!(parallel(with("{ threads: 4 }"), eight()), 2);
    let memory = Setup {
        memory: Some(10 << 30),
        ..eight()
    };
    assert_eq!(parallel(with("{ memory: 5GiB }"), memory), 2);
}

#[test]
fn a_stage_that_wants_more_than_the_machine_has_runs_alone() {
    let text = pipeline("large")
        .run("large", "say alone; echo 1 > ${outputs.x}")
        .set("resources", "{ threads: 64, memory: 1TiB }")
        .run("small", "say alone; echo 2 > ${outputs.x}");
    let lab = Lab::new();
    let setup = Setup {
        jobs: 4,
        threads: 2,
        memory: Some(1 << 30),
        ..Setup::default()
    };
    insta::assert_snapshot!(lab.run_with(text, setup).log, @r#"
    r1 of large: large, small
    large starts with 2 threads: never ran before
    large | alone
    large ran x="1"
    small starts: never ran before
    small | alone
    small ran x="2"
    done: 0 cached, 2 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(lab.player().most_running(), 1);
}

/// `wide` does not fit beside `first`; `small`, which comes after it, does.
#[test]
fn a_smaller_stage_further_on_may_start_first() {
    let text = pipeline("fit")
        .run("first", "meet 2; echo 1 > ${outputs.x}")
        .set("resources", "{ threads: 3 }")
        .run("wide", "echo 2 > ${outputs.x}")
        .set("resources", "{ threads: 4 }")
        .run("small", "meet 2; echo 3 > ${outputs.x}");
    let lab = Lab::new();
    let setup = Setup {
        jobs: 4,
        threads: 4,
        ..Setup::default()
    };
    let ran = lab.run_with(text, setup);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.player().played().last().unwrap(), "wide");
}

#[test]
fn stage_kinds_share_the_threads_and_programs_have_one() {
    let text = pipeline("threads")
        .uses("a", "test/squares")
        .with("count", 1)
        .run("b", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "a")
        .uses("c", "test/squares")
        .needs("after", "b")
        .with("count", 2)
        .set("resources", "{ threads: 3 }");
    insta::assert_snapshot!(Lab::new().run(text), @r#"
    r1 of threads: a, b, c
    a starts with 8 threads: never ran before
    a ran x="0"
    b starts: never ran before
    b ran x="0"
    c starts with 3 threads: never ran before
    c ran x="0 1"
    done: 0 cached, 3 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn many_stages_keep_their_order() {
    let text = independent(200, "say hello");
    let lab = Lab::new();
    let ran = lab.run_with(&text, Setup::default());
    let expected: Vec<String> = (0..200).map(|i| format!("s{i}")).collect();
    assert_eq!(lab.player().played(), expected);
    assert_eq!(ran.summary.stages.len(), 200);
    let again = lab.run_with(&text, Setup::default());
    assert!(lab.player().played().is_empty());
    assert_eq!(again.statuses(), ran.statuses().replace("ran ", "cached "));
}
