//! Several runs at once, and actions that several stages have in common.

use crate::Project;
use std::process::Stdio;

#[test]
fn two_processes_compute_each_action_once() {
    let project = Project::new("");
    let counter = project.path("counter");
    let stage = |name: &str, needs: &str| {
        format!(
            "  {name}:\n    run: echo {name} >> $COUNTER; sleep 0.3; echo {name} > ${{outputs.x}}\n    env: \
            {{ COUNTER: {} }}\n    outputs: {{ x: x.txt }}\n{needs}",
            counter.display()
        )
    };
    project.write(
        "p.yaml",
        &format!(
            "version: 1\nname: shared\nstages:\n{}{}{}",
            stage("a", ""),
            stage("b", ""),
            stage("c", "    needs: { x: a.x }\n")
        ),
    );
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

#[test]
fn equal_stages_of_one_run_compute_once() {
    let project = Project::new(
        "\
version: 1
name: twins
stages:
  a: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }
  b: { run: 'echo 1 > ${outputs.x}', outputs: { x: x.txt } }
",
    );
    let ended = project.run(&["exec", "p.yaml", "--json", "--jobs", "2"]);
    insta::assert_snapshot!(ended.log(), @r"
    ran a
    cached b
    ");
}
