//! Runs in which a stage fails.

use crate::{Project, files};
use runner_testkit::{PipelineText, pipeline};

/// `bad` fails, `after` needs it, and `other` does not.
fn fork() -> PipelineText {
    pipeline("fork")
        .run("bad", "echo broken; echo very >&2; exit 3; echo > ${outputs.x}")
        .run("after", "cat ${needs.x} > ${outputs.y}")
        .needs("x", "bad")
        .run("other", "echo 1 > ${outputs.x}")
}

#[test]
fn other_branches_go_on_with_keep_going() {
    let project = Project::new(fork());
    let ended = project.exec(&["--keep-going"]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.log(), @r"
    failed bad
    skipped after
    ran other
    ");
    let error = ended.error("bad");
    insta::assert_snapshot!(error, @r"
    the command exited with status 3
        | broken
        | very
    ");
    let text = project.run(&["exec", "p.yaml", "--keep-going"]);
    assert!(
        text.stderr.contains("exited with status 3") && text.stderr.contains("hint: its whole output is in "),
        "{}",
        text.stderr
    );
    let logs = files(&project.home().join("runs"));
    assert!(logs.iter().any(|path| path.ends_with("logs/bad.log")));
}

#[test]
fn wrong_usage() {
    let project = Project::new("version: 1\nname: wrong\nstages:\n  a: { uses: env/clasic }\n");
    let code = |args: &[&str]| project.run(args).code;
    assert_eq!(code(&["exec", "p.yaml"]), 2);
    assert_eq!(code(&["exec", "nowhere.yaml"]), 2);
    assert_eq!(code(&["exec"]), 2);
    assert_eq!(code(&["exec", "p.yaml", "--jobs", "0"]), 2);
    assert_eq!(code(&["nonsense"]), 2);
    assert_eq!(code(&["show", "latest"]), 2);
    assert_eq!(code(&["-C", "/nowhere", "runs"]), 2);
    assert_eq!(code(&["--help"]), 0);
    let ended = project.run(&["exec", "p.yaml"]);
    assert_eq!(ended.stdout, "");
    insta::assert_snapshot!(ended.stderr, @r"
    error: p.yaml:4:14: there is no stage kind `env/clasic`
      |
    4 |   a: { uses: env/clasic }
      |              ^^^^^^^^^^
      = hint: did you mean `env/classic`?
    ");
}

#[test]
fn a_home_that_cannot_be_written() {
    let project = Project::new(fork());
    project.write("home", "a file is in the way");
    let ended = project.run(&["exec", "p.yaml"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
}
