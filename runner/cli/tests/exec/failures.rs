//! Runs in which a stage fails.

use crate::{Project, files};
use std::os::unix::fs::PermissionsExt as _;

const FORK: &str = "\
version: 1
name: fork
stages:
  good: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }
  bad: { run: 'echo broken; echo very >&2; exit 3', outputs: { x: x.txt } }
  after: { run: 'cat ${needs.x} > ${outputs.y}', needs: { x: bad.x }, outputs: { y: y.txt } }
  later: { run: 'cat ${needs.y} > ${outputs.z}', needs: { y: after.y }, outputs: { z: z.txt } }
  other: { run: 'cat ${needs.x} > ${outputs.y}', needs: { x: good.x }, outputs: { y: y.txt } }
";

#[test]
fn nothing_new_starts_after_a_failure() {
    let project = Project::new(FORK);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.log(), @r"
    ran good
    failed bad
    skipped after
    skipped later
    skipped other
    ");
    insta::assert_snapshot!(ended.error("later"), @"needs `bad`, which failed");
    // What was done is kept.
    insta::assert_snapshot!(project.exec(&["good"]).log(), @"cached good");
}

#[test]
fn other_branches_go_on_with_keep_going() {
    let project = Project::new(FORK);
    let ended = project.exec(&["--keep-going"]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.log(), @r"
    ran good
    failed bad
    skipped after
    skipped later
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
fn a_missing_output() {
    let project = Project::new(
        "version: 1\nname: missing\nstages:\n  a: { run: 'echo hi > x.tx', outputs: { x: x.txt } }\n",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.error("a"), @"the command succeeded, but its output `x` (`x.txt`) is \
        missing");
}

#[test]
fn time_limit_and_retries() {
    let project = Project::new(
        "\
version: 1
name: limits
stages:
  slow: { run: 'sleep 100', outputs: { x: x.txt }, timeout: 1s }
",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.error("slow"), @"took longer than its time limit of 1.00 s");
    let counter = project.path("counter");
    project.write(
        "p.yaml",
        &format!(
            "\
version: 1
name: limits
stages:
  flaky:
    run: echo x >> $COUNTER; test $(wc -l < $COUNTER) -ge 3 && echo done > ${{outputs.x}}
    env: {{ COUNTER: {} }}
    outputs: {{ x: x.txt }}
    retries: 4
",
            counter.display()
        ),
    );
    // The counter is a file of the host.
    let ended = project.exec(&["--isolation", "none"]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    insta::assert_snapshot!(ended.log(), @r"
    retried flaky
    retried flaky
    ran flaky
    ");
}

#[test]
fn a_killed_worker_fails_its_stage_alone() {
    let project = Project::new(
        "\
version: 1
name: crash
stages:
  crash: { uses: ingest/simulated_market, with: { days: 20000, strikes: { step: 75 } } }
  good:
    run: |
      until [ -n \"${found:-}\" ]; do
        for process in /proc/[0-9]*; do
          name=$(head -c 13 $process/cmdline 2> /dev/null | tr '\\0' ' ' || true)
          if [ \"$name\" = 'runner worker' ] && grep -qs \"$OWN\" $process/environ; then kill -9 \
${process#/proc/}; found=1; fi
        done
      done
      echo 1 > ${outputs.x}
    env: { OWN: OWN_HOME }
    outputs: { x: x.txt }
    timeout: 60s
",
    );
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", &text.replace("OWN_HOME", project.home().to_str().unwrap()));
    let ended = project.run(&[
        "exec",
        "p.yaml",
        "--json",
        "--jobs",
        "2",
        "--keep-going",
        "--isolation",
        "none",
    ]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.log().contains("ran good"), "{}", ended.log());
    insta::assert_snapshot!(ended.error("crash"), @"its worker was killed by signal 9 (SIGKILL)");
}

#[test]
fn a_damaged_artifact_is_made_again() {
    let text = |word: &str| {
        format!(
            "\
version: 1
name: heal
stages:
  a: {{ run: 'echo precious > ${{outputs.x}}', outputs: {{ x: x.txt }} }}
  b: {{ run: 'cat ${{needs.x}}; echo {word} > ${{outputs.y}}', needs: {{ x: a.x }}, outputs: {{ y: y.txt }} }}
"
        )
    };
    let project = Project::new(&text("one"));
    assert_eq!(project.exec(&[]).code, 0);
    let damaged = files(&project.home().join("blobs"))
        .into_iter()
        .find(|path| std::fs::read(path).unwrap() == b"precious\n")
        .unwrap();
    std::fs::set_permissions(&damaged, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&damaged, b"pr3cious\n").unwrap();
    project.write("p.yaml", &text("two"));
    // Nobody else looks at the store meanwhile, so that the damage is found by who reads the artifact.
    let scrub = std::fs::File::create(project.home().join("locks/scrub")).unwrap();
    scrub.lock().unwrap();
    let ended = project.exec(&[]);
    drop(scrub);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    insta::assert_snapshot!(ended.log(), @r"
    cached a
    healing a for b
    ran a
    ran b
    ");
    assert_eq!(std::fs::read(&damaged).unwrap(), b"precious\n");
    // One that is gone is noticed when it is looked up.
    std::fs::remove_file(&damaged).unwrap();
    insta::assert_snapshot!(project.exec(&[]).log(), @r"
    ran a
    cached b
    ");
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
    let project = Project::new(FORK);
    project.write("home", "a file is in the way");
    let ended = project.run(&["exec", "p.yaml"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
}
