//! Verification of cached results on request.

use crate::Project;
use runner_testkit::pipeline;

#[test]
fn a_stage_that_gives_another_result_is_found() {
    let project = Project::new(
        pipeline("clock")
            .run("same", "echo 1 > ${outputs.x}")
            .run("clock", "date +%N > ${outputs.x}"),
    );
    assert_eq!(project.exec(&[]).code, 0);
    let checked = project.exec(&["--check-determinism", "100%", "--keep-going"]);
    assert_eq!((checked.code, checked.log().as_str()), (1, "cached same\nfailed clock"));
    assert_eq!(project.exec(&[]).code, 0, "what was cached stays");
    assert_eq!(project.exec(&["same", "--check-determinism", "1%"]).code, 0);
    assert_eq!(project.exec(&["--check-determinism", "0%"]).code, 2);
}

#[test]
fn pipelines_that_run_programs_can_be_refused() {
    let project = Project::new(
        pipeline("programs")
            .uses("env", "env/classic")
            .run("touch", "echo 1 > ${outputs.x}")
            .run("more", "echo 2 > ${outputs.x}"),
    );
    let refused = project.exec(&["--no-run-stages"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("`touch` and 1 other stage would run an external program"),
        "{}",
        refused.stderr
    );
    assert!(!project.home().join("runs").exists(), "nothing began");
    assert_eq!(project.exec(&["env", "--no-run-stages"]).code, 0);
}
