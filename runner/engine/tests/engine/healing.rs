//! Damage in the store: who finds it, and what is made again.

use crate::{Lab, Setup, pipeline};
use runner_testkit::PipelineText;
use std::fs::File;

fn pair(word: &str) -> PipelineText {
    pipeline("heal")
        .run("a", "echo precious > ${outputs.x}")
        .run("b", &format!("echo {word} ${{needs.x}} > ${{outputs.x}}"))
        .needs("x", "a")
}

/// Nobody else looks at the store meanwhile, so that the damage is found by who reads the artifact.
fn without_scrub(lab: &Lab) -> File {
    let lock = File::create(lab.path("home/locks/scrub")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn a_damaged_input_is_made_again() {
    let lab = Lab::new();
    lab.run(pair("one"));
    lab.damage("precious");
    let _lock = without_scrub(&lab);
    insta::assert_snapshot!(lab.run(pair("two")), @r#"
    r2 of heal: a, b
    a cached x="precious"
    b starts: run: "echo one ${needs.x} > ${outputs.x}" -> "echo two ${needs.x} > ${outputs.x}"
    a is made again for b
    a starts: forced
    a ran x="precious"
    b starts: run: "echo one ${needs.x} > ${outputs.x}" -> "echo two ${needs.x} > ${outputs.x}"
    b ran x="two precious"
    done: 0 cached, 2 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(std::fs::read(lab.blob("precious")).unwrap(), b"precious");
}

/// A stage that repairs another stage's input uses memos; one that is forced by name does not.
#[test]
fn the_producer_of_a_damaged_input_is_not_computed_afresh() {
    let lab = Lab::new();
    lab.run(pair("one"));
    lab.damage("precious");
    let _lock = without_scrub(&lab);
    lab.player().played();
    lab.run(pair("two"));
    assert_eq!(lab.player().played(), ["b", "a", "b"]);
}

#[test]
fn an_output_that_is_gone_is_noticed_when_it_is_looked_up() {
    let lab = Lab::new();
    lab.run(pair("one"));
    std::fs::remove_file(lab.blob("precious")).unwrap();
    insta::assert_snapshot!(lab.run(pair("one")), @r#"
    r2 of heal: a, b
    a starts: its result is no longer in the store
    a ran x="precious"
    b cached x="one precious"
    done: 1 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn a_damaged_input_that_two_stages_need_is_made_once() {
    let text = |word: &str| {
        pair(word)
            .run("c", &format!("echo {word} c ${{needs.x}} > ${{outputs.x}}"))
            .needs("x", "a")
    };
    let lab = Lab::new();
    lab.run(text("one"));
    lab.damage("precious");
    let _lock = without_scrub(&lab);
    let ran = lab.run_with(text("two"), Setup::default());
    insta::assert_snapshot!(ran.statuses(), @"
    cached a
    healing a
    ran a
    ran b
    ran c
    ");
}

#[test]
fn damage_that_nobody_reads_is_found_by_the_scrub() {
    let lab = Lab::new();
    lab.run(pair("one"));
    lab.damage("precious");
    let mut found = 0;
    for _ in 0..200 {
        found += lab.run_with(pair("one"), Setup::default()).damaged;
        if found > 0 {
            break;
        }
    }
    assert_eq!(found, 1);
    // It is made again by that run already, if it was found before it was looked up.
    lab.run(pair("one"));
    assert_eq!(std::fs::read(lab.blob("precious")).unwrap(), b"precious");
}
