//! Several runs at once.

use crate::Project;
use runner_testkit::pipeline;
use std::process::Stdio;

#[test]
fn two_processes_compute_each_action_once() {
    let dir = tempfile::tempdir().unwrap();
    let counter = dir.path().join("counter");
    let stages = ["a", "b", "c"].iter().fold(pipeline("shared"), |text, name| {
        let count = format!(
            "echo {name} >> {}; sleep 0.3; echo {name} > ${{outputs.x}}",
            counter.display()
        );
        text.run(name, &count)
    });
    let project = Project::new(stages.needs("x", "a.x"));
    let children: Vec<_> = (0..3)
        .map(|_| {
            project
                // The counter is a file of the host.
                .command(&["exec", "p.yaml", "--json", "--isolation", "none"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut waited = false;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        waited |= String::from_utf8(output.stdout).unwrap().contains("stage_waiting");
    }
    let mut computed: Vec<String> = std::fs::read_to_string(counter)
        .unwrap()
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    computed.sort();
    assert_eq!(computed, ["a", "b", "c"]);
    assert!(waited);
}
