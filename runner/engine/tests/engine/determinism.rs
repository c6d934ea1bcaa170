//! Cached results that are recomputed, to compare them.

use crate::{Lab, Setup, pipeline};

fn check(stages: &[&'static str]) -> Setup {
    Setup {
        check: stages.to_vec(),
        keep_going: true,
        ..Setup::default()
    }
}

#[test]
fn a_stage_that_gives_another_result_is_found_and_its_cached_result_stays() {
    let text = pipeline("clock")
        .run("same", "echo 1 > ${outputs.x}")
        .run("clock", "echo # > ${outputs.x}")
        .run("after", "echo ${needs.x} > ${outputs.x}")
        .needs("x", "clock");
    let lab = Lab::new();
    lab.run(&text);
    lab.player().played();
    let checked = lab.run_with(&text, check(&["same", "clock"]));
    insta::assert_snapshot!(checked.log, @r#"
    r2 of clock: same, clock, after
    same starts: determinism check
    same is the same: true
    same cached x="1"
    clock starts: determinism check
    clock is the same: false
    clock failed: the result is not deterministic: `x` is …, but was … (hint: check for clocks, unseeded random numbers, and the order of threads or files; the cached result is kept)
    after skipped: needs `clock`, which failed
    failed: 1 cached, 0 ran, 1 failed, 1 skipped
    "#);
    assert_eq!(checked.summary.exit_code(), 1);
    assert_eq!(lab.player().played(), ["same afresh", "clock afresh"]);
    insta::assert_snapshot!(lab.run(&text), @r#"
    r3 of clock: same, clock, after
    same cached x="1"
    clock cached x="1"
    after cached x="1"
    done: 3 cached, 0 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn a_stage_that_says_why_it_cannot_be_checked_is_not() {
    let lab = Lab::new();
    let text = pipeline("dice").uses("d", "test/dice");
    lab.run(&text);
    insta::assert_snapshot!(lab.run_with(&text, check(&["d"])).log, @r#"
    r2 of dice: d
    d | no determinism check: it rolls dice
    d cached x="4"
    done: 1 cached, 0 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn a_result_of_another_numerics_class_is_not_checked() {
    let lab = Lab::new();
    let text = pipeline("class").run("a", "echo 1 > ${outputs.x}");
    let key = lab.run_with(&text, Setup::default()).key("a");
    let mut record = lab.store().recorded(key).unwrap().unwrap();
    record.numerics_class = "abacus v1".to_owned();
    for action in runner_testkit::files(&lab.path("home/actions")) {
        std::fs::remove_file(action).unwrap();
    }
    lab.store().put_action(&record).unwrap();
    insta::assert_snapshot!(lab.run_with(&text, check(&["a"])).log, @r#"
    r2 of class: a
    a | no determinism check: it was computed on the numerics class abacus v1, whose bytes may differ
    a cached x="1"
    done: 1 cached, 0 ran, 0 failed, 0 skipped
    "#);
}
