//! Verification of cached results on request.

use crate::Project;
use std::time::{Duration, SystemTime};

const CLOCK: &str = "\
version: 1
name: clock
stages:
  same: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }
  clock: { run: 'date +%N > ${outputs.x}', outputs: { x: x.txt } }
  after: { run: 'cat ${needs.x} > ${outputs.x}', needs: { x: clock.x }, outputs: { x: x.txt } }
";

#[test]
fn a_stage_that_gives_another_result_is_found() {
    let project = Project::new(CLOCK);
    assert_eq!(project.exec(&[]).code, 0);
    let before = project.output("clock.x");

    let checked = project.exec(&["--check-determinism", "100%", "--keep-going"]);
    assert_eq!(checked.code, 1);
    insta::assert_snapshot!(checked.log(), @r"
    cached same
    failed clock
    skipped after
    ");
    let error = checked.error("clock");
    assert!(error.starts_with("the result is not deterministic: `x` is "), "{error}");

    let again = project.exec(&[]);
    assert_eq!(again.code, 0);
    assert_eq!(project.output("clock.x"), before, "what was cached stays");
    assert_eq!(project.exec(&["same", "--check-determinism", "1%"]).code, 0);
    let wrong = project.exec(&["--check-determinism", "0%"]);
    assert_eq!(wrong.code, 2);
}

#[test]
fn pipelines_that_run_programs_can_be_refused() {
    let project = Project::new(
        "\
version: 1
name: programs
stages:
  env: { uses: env/classic }
  touch: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }
  more: { run: 'echo 2 > ${outputs.x}', outputs: { x: x.txt } }
",
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

/// A tool that writes into a file and sets its times back fools the stamp only where the change time is not
/// kept; what is tested here is that the file is read, by a stamp that is believed.
#[test]
fn inputs_are_read_again_on_demand() {
    let project = Project::new(
        "\
version: 1
name: inputs
stages:
  a: { run: 'cat x.txt > ${outputs.x}', files: [x.txt], outputs: { x: out.txt } }
",
    );
    project.write("x.txt", "one");
    let old = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(project.path("x.txt"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(project.exec(&[]).log(), "ran a");
    assert_eq!(project.exec(&["--verify-inputs"]).log(), "cached a");
    // Its change time is young, so that it was not trusted until now; from here on it is.
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(project.exec(&[]).log(), "cached a");
    let stat = crate::files(&project.home().join("stat"));
    assert_eq!(stat.len(), 1, "it is known now");
    // A stat record that lies, as a file system whose times cannot be trusted would make it.
    let text = std::fs::read_to_string(&stat[0]).unwrap();
    let line = text.lines().next().unwrap();
    let right = blake3::hash(b"one").to_hex();
    let lie = line.replace(right.as_str(), blake3::hash(b"two").to_hex().as_str());
    assert_ne!(lie, line);
    std::fs::remove_file(&stat[0]).unwrap();
    std::fs::write(&stat[0], format!("{lie}\n{}\n", blake3::hash(lie.as_bytes()).to_hex())).unwrap();
    let plan = project.run(&["plan", "p.yaml"]);
    assert!(
        plan.stdout.contains("would run"),
        "the lie is believed: {}",
        plan.stdout
    );
    assert_eq!(project.exec(&["--verify-inputs"]).log(), "cached a", "and found out");
    assert_eq!(project.exec(&[]).log(), "cached a", "and put right");
}
