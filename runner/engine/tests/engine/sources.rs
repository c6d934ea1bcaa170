//! Files outside the store.

use crate::{Lab, Setup, pipeline};
use std::time::{Duration, SystemTime};

fn reader() -> runner_testkit::PipelineText {
    pipeline("reader")
        .run("a", "echo <data.txt > ${outputs.x}")
        .set("files", "[data.txt]")
}

/// The file is there when the pipeline is read, and gone when the key of the second stage is computed.
#[test]
fn a_file_that_is_gone_fails_its_stage() {
    let lab = Lab::new();
    lab.write("data.txt", "one");
    let text = reader()
        .needs("x", "first")
        .run("first", "remove data.txt; echo 1 > ${outputs.x}");
    insta::assert_snapshot!(lab.run(text), @r#"
    r1 of reader: first, a
    first starts: never ran before
    first ran x="1"
    a failed: cannot read `DIR/data.txt`: No such file or directory (os error 2)
    failed: 0 cached, 1 ran, 1 failed, 0 skipped
    "#);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused_and_nothing_is_cached() {
    let lab = Lab::new();
    lab.write("data.txt", "one");
    let text = pipeline("changes")
        .run("a", "echo <data.txt > ${outputs.x}; edit data.txt")
        .set("files", "[data.txt]");
    insta::assert_snapshot!(lab.run(&text), @"
    r1 of changes: a
    a starts: never ran before
    a failed: `DIR/data.txt` changed while the stage was reading it (hint: run it again once the file is complete)
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
    insta::assert_snapshot!(lab.run(&text), @r#"
    r2 of changes: a
    a starts: never ran before
    a ran x="edited"
    done: 0 cached, 1 ran, 0 failed, 0 skipped
    "#);
}

/// The key of a stage in a plan that was shown is the only one that it may have.
#[test]
fn a_plan_is_run_as_it_was_shown_or_not_at_all() {
    let lab = Lab::new();
    lab.write("data.txt", "one");
    let key = lab.plan_with(reader(), &Setup::default())[0].key.unwrap();
    let planned = || Setup {
        planned: vec![("a", key)],
        ..Setup::default()
    };
    lab.write("data.txt", "two");
    insta::assert_snapshot!(lab.run_with(reader(), planned()).log, @"
    r1 of reader: a
    a failed: an input changed since the plan was made (hint: create a new plan with `runner plan --save FILE`)
    failed: 0 cached, 0 ran, 1 failed, 0 skipped
    ");
    lab.write("data.txt", "one");
    insta::assert_snapshot!(lab.run_with(reader(), planned()).statuses(), @"ran a");
}

/// A tool that writes into a file and sets its times back fools the stamp only where the change time is not
/// kept; what is tested here is that the file is read, by a stamp that is believed.
#[test]
fn inputs_are_read_again_on_demand() {
    let lab = Lab::new();
    lab.write("data.txt", "one");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let file = std::fs::File::open(lab.path("data.txt")).unwrap();
    file.set_modified(old).unwrap();
    let verify = || Setup {
        verify_inputs: true,
        ..Setup::default()
    };
    assert_eq!(lab.run_with(reader(), Setup::default()).statuses(), "ran a");
    assert_eq!(lab.run_with(reader(), verify()).statuses(), "cached a");
    // Its change time is young, so that it was not trusted until now; from here on it is.
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(lab.run_with(reader(), Setup::default()).statuses(), "cached a");
    let stat = runner_testkit::files(&lab.path("home/stat"));
    assert_eq!(stat.len(), 1, "it is known now");
    // A stat record that lies, as a file system whose times cannot be trusted would make it.
    let text = std::fs::read_to_string(&stat[0]).unwrap();
    let line = text.lines().next().unwrap();
    let digest = |text: &str| cache::BlobRef::of(text.as_bytes()).blob.to_hex();
    let lie = line.replace(&digest("one"), &digest("two"));
    assert_ne!(lie, line);
    std::fs::remove_file(&stat[0]).unwrap();
    std::fs::write(&stat[0], format!("{lie}\n{}\n", digest(&lie))).unwrap();
    let plan = lab.plan(reader(), &Setup::default());
    assert!(plan.starts_with("a would run"), "the lie is believed: {plan}");
    assert_eq!(lab.run_with(reader(), verify()).statuses(), "cached a", "and found out");
    assert_eq!(
        lab.run_with(reader(), Setup::default()).statuses(),
        "cached a",
        "and put right"
    );
}
