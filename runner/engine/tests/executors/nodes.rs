//! Jobs in files: what a node of a cluster runs is what a worker runs here.

use crate::{Lab, Setup, no_upstream, pipeline};
use runner_engine::Control;
use runner_engine::executor::{beside, job_file_name, run_batch, run_job_file};
use runner_testkit::PipelineText;
use std::time::Duration;

tests![
    a_node_gives_the_outputs_of_this_machine,
    an_error_on_a_node_is_the_stages_own,
    a_job_that_is_asked_to_stop_is_interrupted,
    a_time_limit_counts_on_the_node,
    parts_of_a_stage_run_on_nodes,
    a_part_that_fails_fails_its_stage,
    a_killed_worker_is_the_machines_fault,
    a_damaged_job_is_refused,
    a_batch_runs_what_has_no_result,
];

fn act(act: &str) -> PipelineText {
    pipeline("node")
        .uses("a", "test/misbehave")
        .with("act", act)
        .set("resources", "{ threads: 1 }")
        .run("b", "tr a-z A-Z < ${needs.x} > ${outputs.y}")
        .needs("x", "a.x")
}

fn a_node_gives_the_outputs_of_this_machine() {
    let (here, there) = (Lab::with_workers(), Lab::with_workers());
    let text = act("say");
    let first = here.run_with(&text, Setup::default());
    let second = there.run_with(&text, Setup::there());
    assert_eq!(second.summary.exit_code(), 0, "{}", second.log);
    for stage in ["a", "b"] {
        assert_eq!(first.key(stage), second.key(stage), "{stage}");
        assert_eq!(first.outputs(stage), second.outputs(stage), "{stage}");
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    insta::assert_snapshot!(second.log.replace(&host, "HOST"), @r#"
    r1 of node: a, b
    a starts: never ran before
    a | runs on HOST
    a | first line
    a: losses/loss at 3 is NaN
    a: half of it
    a: warning: it is late (hint: begin earlier)
    a ran x="1 of 1 threads"
    b starts with 3 threads: never ran before
    b | runs on HOST
    b: isolation namespaces, network false
    b ran y="1 OF 1 THREADS"
    done: 0 cached, 2 ran, 0 failed, 0 skipped
    "#);
    let record = there.store().recorded(second.key("b")).unwrap().unwrap();
    assert_eq!(record.info["executor"], "there");
    assert_eq!(record.numerics_class, stages_numerics::class::numerics_class());
}

fn an_error_on_a_node_is_the_stages_own() {
    let ran = Lab::with_workers().run_with(act("fail"), Setup::there());
    let same = Lab::with_workers().run_with(act("fail"), Setup::default());
    assert_eq!(ran.error("a"), same.error("a"));
}

fn a_job_that_is_asked_to_stop_is_interrupted() {
    let setup = Setup::there();
    let cancel = setup.control.cancel.clone();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        cancel.cancel();
    });
    let ran = Lab::with_workers().run_with(act("obey"), setup);
    stop.join().unwrap();
    assert_eq!(ran.summary.exit_code(), 130, "{}", ran.log);
}

fn a_time_limit_counts_on_the_node() {
    let text = pipeline("late")
        .uses("a", "test/misbehave")
        .with("act", "obey")
        .set("timeout", "1s");
    let ran = Lab::with_workers().run_with(text, Setup::there());
    assert!(ran.log.contains("time limit"), "{}", ran.log);
}

fn a_killed_worker_is_the_machines_fault() {
    let ran = Lab::with_workers().run_with(act("killed"), Setup::there());
    assert!(ran.error("a").contains("SIGKILL"), "{}", ran.log);
    assert_eq!(ran.summary.exit_code(), 3, "a cluster tries another machine");
    let here = Lab::with_workers().run_with(act("killed"), Setup::default());
    assert_eq!(here.summary.exit_code(), 1);
}

fn sum(parts: u64) -> PipelineText {
    pipeline("parts").uses("a", "test/sum").with("parts", parts)
}

fn parts_of_a_stage_run_on_nodes() {
    let (here, there) = (Lab::with_workers(), Lab::with_workers());
    let first = here.run_with(sum(5), Setup::default());
    let second = there.run_with(sum(5), Setup::there());
    assert_eq!(first.outputs("a"), second.outputs("a"));
    assert_eq!(second.log.matches("a | runs on").count(), 5, "{}", second.log);
    assert!(second.log.contains("5 parts elsewhere"), "{}", second.log);
    assert!(!first.log.contains("elsewhere"), "{}", first.log);
    assert!(second.log.contains("a ran x=\"30\""), "{}", second.log);
}

fn a_part_that_fails_fails_its_stage() {
    let lab = Lab::with_workers();
    let ran = lab.run_with(sum(15), Setup::there());
    assert_eq!(ran.error("a"), "13 is unlucky");
    let jobs = std::fs::read_dir(lab.store().root().join("jobs")).unwrap().count();
    assert_eq!(jobs, 15, "the others were made");
}

fn a_damaged_job_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(job_file_name(b"{}"));
    let error = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = run_job_file(&file, &[], no_upstream, &Control::default()).unwrap_err();
        error.message.replace(&file.display().to_string(), "FILE")
    };
    assert_eq!(
        error(b"[]"),
        "the job `FILE` is damaged: its bytes do not match its name"
    );
    assert!(error(b"{}").contains("cannot be read: missing field"));
    assert!(!beside(&file, "result").exists());
}

fn a_batch_runs_what_has_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("tasks");
    std::fs::write(&list, "one two\nmissing\n").unwrap();
    for name in ["one", "two"] {
        std::fs::write(dir.path().join(format!("{name}.result")), "").unwrap();
    }
    let run = |number| run_batch(&list, number, &[], no_upstream, &Control::default());
    assert_eq!(run(0).unwrap(), 0, "both have a result");
    assert!(run(1).unwrap_err().message.contains("missing"));
    assert!(run(2).unwrap_err().message.contains("has no line 3"));
}
