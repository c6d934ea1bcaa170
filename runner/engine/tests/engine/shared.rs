//! Actions that several stages, or several runs, have in common.

use crate::{Lab, Setup, pipeline};
use runner_engine::Event;
use runner_testkit::PipelineText;
use std::sync::Barrier;

#[test]
fn equal_stages_of_one_run_compute_once() {
    let text = pipeline("twins")
        .run("a", "echo 1 > ${outputs.x}")
        .run("b", "echo 1 > ${outputs.x}");
    let lab = Lab::new();
    insta::assert_snapshot!(lab.run_with(text, Setup::jobs(2)).log, @r#"
    r1 of twins: a, b
    a starts: never ran before
    a ran x="1"
    b cached x="1"
    done: 1 cached, 1 ran, 0 failed, 0 skipped
    "#);
    assert_eq!(lab.player().played(), ["a"]);
}

/// Runs a stage whose action another process computes; `end` is called when it waits for that.
fn waits(lab: &Lab, text: &PipelineText, end: impl Fn() + Send + Sync) -> String {
    let key = lab.plan_with(text, &Setup::default())[0].key.unwrap();
    let mut lock = Some(lab.store().lock(key).unwrap());
    let ran = lab.watch(text, Setup::default(), |event| {
        if matches!(event, Event::StageWaiting { .. }) {
            end();
            lock = None;
        }
    });
    ran.log
}

#[test]
fn a_stage_waits_for_another_process_and_uses_its_result() {
    let text = pipeline("waits").run("a", "echo 1 > ${outputs.x}");
    // An equal stage in another home, whose result is copied.
    let other = Lab::new();
    let key = other.run_with(&text, Setup::default()).key("a");
    let (from, lab) = (other.store(), Lab::new());
    let log = waits(&lab, &text, || {
        let (record, store) = (from.recorded(key).unwrap().unwrap(), lab.store());
        store.put(b"1").unwrap();
        store
            .put_artifact(&from.artifact(record.outputs["x"]).unwrap())
            .unwrap();
        store.put_action(&record).unwrap();
    });
    insta::assert_snapshot!(log, @r#"
    r1 of waits: a
    a waits for another process
    a cached x="1"
    done: 1 cached, 0 ran, 0 failed, 0 skipped
    "#);
    assert!(lab.player().played().is_empty());
}

#[test]
fn a_stage_runs_when_the_other_process_ends_without_a_result() {
    let text = pipeline("waits").run("a", "echo 1 > ${outputs.x}");
    insta::assert_snapshot!(waits(&Lab::new(), &text, || {}), @r#"
    r1 of waits: a
    a waits for another process
    a starts: never ran before
    a ran x="1"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

#[test]
fn several_runs_at_once_compute_each_action_once() {
    let text = pipeline("shared")
        .run("a", "say a; echo a > ${outputs.x}")
        .run("b", "say b; echo b > ${outputs.x}")
        .run("c", "echo ${needs.x} c > ${outputs.x}")
        .needs("x", "a");
    let lab = Lab::new();
    lab.write("p.yaml", &text);
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                barrier.wait();
                let ran = lab.run_with(&text, Setup::jobs(2));
                assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
            });
        }
    });
    let mut played = lab.player().played();
    played.sort();
    assert_eq!(played, ["a", "b", "c"]);
}
