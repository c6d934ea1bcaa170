//! Stages on an executor of other machines: which run there, how many at a time, and what stays here.

use crate::{Lab, Setup, pipeline};
use runner_engine::executor::JobStore;
use runner_testkit::PipelineText;

fn sweep(command: &str) -> PipelineText {
    pipeline("sweep")
        .run("a", &format!("{command}; echo ${{matrix.n}} > ${{outputs.x}}"))
        .matrix("n", "[1, 2, 3, 4, 5, 6]")
        .run("b", "count ${needs.x} > ${outputs.y}")
        .needs("x", "a[*]")
        .set("resources", "{ executor: here }")
}

#[test]
fn stages_run_where_they_ask_and_as_many_as_the_executor_takes() {
    let lab = Lab::new();
    let ran = lab.run_with(sweep("meet 2"), Setup::there());
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.there().most_running(), 2, "the machine here runs one at a time");
    assert_eq!(lab.there().played().len(), 6);
    assert_eq!(lab.player().played(), ["b"]);
    assert!(ran.log.contains("a[n=1] starts"), "{}", ran.log);
}

#[test]
fn a_stage_names_its_executor() {
    let text = pipeline("two")
        .run("a", "echo 1 > ${outputs.x}")
        .set("resources", "{ executor: there, threads: 7 }")
        .run("b", "echo ${needs.x} > ${outputs.y}")
        .needs("x", "a");
    let lab = Lab::new();
    let ran = lab.run_with(&text, Setup::default());
    assert_eq!(lab.there().played(), ["a"]);
    assert_eq!(lab.player().played(), ["b"]);
    let other = Lab::new();
    let same = other.run_with(text, Setup::there());
    for stage in ["a", "b"] {
        assert_eq!(ran.key(stage), same.key(stage), "a key does not depend on the executor");
        assert_eq!(ran.outputs(stage), same.outputs(stage));
    }
}

#[test]
fn an_unknown_executor_fails_its_stage() {
    let text = pipeline("one")
        .run("a", "echo 1 > ${outputs.x}")
        .set("resources", "{ executor: nowhere }");
    insta::assert_snapshot!(Lab::new().run_with(text, Setup::default()).error("a"), @"
    there is no executor `nowhere`
    hint: `executors:` of `config.yaml` in the home of the store defines them
    ");
}

/// A check or a decision runs the stages of a pipeline whatever they request.
#[test]
fn without_other_machines_stages_run_here() {
    let lab = Lab::new();
    let mut setup = Setup::default();
    setup.there.jobs = 0;
    let text = pipeline("one")
        .run("a", "echo 1 > ${outputs.x}")
        .set("resources", "{ executor: there }");
    let ran = lab.run_with(text, setup);
    assert_eq!(ran.summary.exit_code(), 0, "{}", ran.log);
    assert_eq!(lab.player().played(), ["a"]);
}

#[test]
fn secrets_and_files_of_this_machine_stay_here() {
    let text = pipeline("stay")
        .run("secret", "echo 1 > ${outputs.x}")
        .set("secrets", "[TOKEN]")
        .run("file", "echo <data.txt> > ${outputs.x}")
        .set("files", "[data.txt]")
        .run("free", "echo 2 > ${outputs.x}");
    let setup = |store: Option<JobStore>| {
        let mut setup = Setup::there();
        setup.env = vec![("TOKEN", "hush".to_owned())];
        setup.there.store = store.unwrap_or(setup.there.store);
        setup
    };
    let lab = Lab::new();
    lab.write("data.txt", "1");
    let ran = lab.run_with(&text, setup(None));
    assert!(
        ran.log
            .contains("secret runs on this machine: its secrets do not leave this machine"),
        "{}",
        ran.log
    );
    assert_eq!(lab.player().played(), ["secret"]);
    assert_eq!(lab.there().played().len(), 2, "the file is beside the store");
    let lab = Lab::new();
    lab.write("data.txt", "1");
    let node = JobStore::Node {
        dir: None,
        bound: 1 << 30,
    };
    lab.run_with(text, setup(Some(node)));
    assert_eq!(lab.player().played().len(), 3, "programs are on this machine alone");
}

#[test]
fn what_is_short_stays_here_unless_it_names_its_executor() {
    let text = |value: u32, more: &str| {
        let text = pipeline("short").run("a", &format!("echo {value} > ${{outputs.x}}"));
        match more {
            "" => text,
            more => text.set("resources", more),
        }
    };
    let lab = Lab::new();
    lab.run_with(text(1, ""), Setup::there());
    assert_eq!(lab.there().played(), ["a"], "nobody knows how long it takes");
    let ran = lab.run_with(text(2, ""), Setup::there());
    assert_eq!(lab.player().played(), ["a"]);
    assert!(
        ran.log.contains("are expected to take less time than a job costs"),
        "{}",
        ran.log
    );
    lab.run_with(text(3, "{ executor: there }"), Setup::there());
    assert_eq!(lab.there().played(), ["a"]);
}

#[test]
fn a_failure_there_is_retried_and_stops_what_needs_it() {
    let lab = Lab::new();
    let text = pipeline("retry")
        .run("a", "fail until 2; echo 1 > ${outputs.x}")
        .set("retries", "1")
        .run("b", "fail now; echo 1 > ${outputs.x}")
        .run("c", "echo ${needs.x} > ${outputs.y}")
        .needs("x", "b");
    let setup = Setup {
        keep_going: true,
        ..Setup::there()
    };
    let ran = lab.run_with(text, setup);
    insta::assert_snapshot!(ran.statuses(), @"
    retried a
    failed b
    skipped c
    ran a
    ");
    assert!(lab.player().played().is_empty());
}

#[test]
fn a_plan_shows_the_jobs() {
    let lab = Lab::new();
    let text = sweep("say x").set("retries", "0");
    let planned = lab.plan_with(text, &Setup::there());
    let jobs: Vec<_> = planned.iter().filter_map(|stage| stage.job.as_ref()).collect();
    assert_eq!(jobs.len(), 6);
    assert!(
        jobs.iter()
            .all(|job| job.executor == "there" && job.threads == 3 && job.move_bytes == 0)
    );
}
