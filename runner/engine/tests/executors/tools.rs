//! Tools: what of them is in the key, and what is checked when they run.

use crate::{Lab, PipelineText, Setup, output, program};
use std::os::unix::fs::PermissionsExt as _;

tests![
    an_executable_is_part_of_the_key_by_its_content,
    an_executable_with_a_version_is_part_of_the_key_by_that,
    an_environment_is_part_of_the_key_by_its_lock_file_and_its_interpreter,
];

fn script(lab: &Lab, name: &str, text: &str) {
    lab.write(name, format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(lab.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A stage that writes what a command prints.
fn prints(command: &str, tools: &str) -> PipelineText {
    program(&format!("{command} > ${{outputs.x}}")).set("tools", tools)
}

/// The plan of its only stage.
fn plan(lab: &Lab, text: &PipelineText) -> String {
    lab.plan(text, &Setup::default())
}

fn an_executable_is_part_of_the_key_by_its_content() {
    let lab = Lab::with_workers();
    let text = prints("greet", "[./bin/greet]");
    script(&lab, "bin/greet", "echo one");
    assert_eq!(output(&lab, &text, "a"), "one\n");
    insta::assert_snapshot!(plan(&lab, &text), @"a cached: computed in run r1");
    script(&lab, "bin/greet", "echo two");
    insta::assert_snapshot!(plan(&lab, &text), @"a would run: tool bin/greet: … -> …");
    assert_eq!(output(&lab, &text, "a"), "two\n");
    // A directory elsewhere with the same content is the same experiment.
    let elsewhere = Lab::with_workers();
    script(&elsewhere, "bin/greet", "echo two");
    let key = |lab: &Lab| lab.plan_with(&text, &Setup::default())[0].key.unwrap();
    assert_eq!(key(&elsewhere), key(&lab));
}

fn an_executable_with_a_version_is_part_of_the_key_by_that() {
    let lab = Lab::with_workers();
    let text = |version: &str| prints("greet", &format!("[{{ path: bin/greet, version: \"{version}\" }}]"));
    script(
        &lab,
        "bin/greet",
        "[ \"$1\" = --version ] && echo greet 1.2.0 || echo one",
    );
    assert_eq!(output(&lab, text("1.2"), "a"), "one\n");
    script(
        &lab,
        "bin/greet",
        "[ \"$1\" = --version ] && echo greet 1.3.0 || echo two",
    );
    assert_eq!(
        lab.run_with(text("1.2"), Setup::default()).statuses(),
        "cached a",
        "its content does not count"
    );
    let error = lab.run_with(text("1.2"), Setup::force(&["a"])).error("a");
    assert!(error.contains("--version` prints `greet 1.3.0`, not `1.2`"), "{error}");
    insta::assert_snapshot!(plan(&lab, &text("1.3")), @"a would run: tool bin/greet version: 1.2 -> 1.3");
    assert_eq!(output(&lab, text("1.3"), "a"), "two\n");
}

fn an_environment_is_part_of_the_key_by_its_lock_file_and_its_interpreter() {
    let lab = Lab::with_workers();
    let text = prints("say", "[./env]");
    let cfg = "home = /usr/bin\nversion = 3.11.2\n";
    lab.write("env/pyvenv.cfg", cfg);
    script(&lab, "env/bin/python", "echo Python 3.11.2");
    script(&lab, "env/bin/say", "echo $(python --version)");
    lab.write("requirements.txt", "numpy==1.0\n");
    assert_eq!(output(&lab, &text, "a"), "Python 3.11.2\n");
    lab.write("requirements.txt", "numpy==1.1\n");
    insta::assert_snapshot!(plan(&lab, &text), @"a would run: tool env requirements.txt: … -> …");
    lab.write("requirements.txt", "numpy==1.0\n");
    assert_eq!(lab.run_with(&text, Setup::default()).statuses(), "cached a");
    lab.write("env/pyvenv.cfg", cfg.replace("3.11.2", "3.12.0"));
    let error = lab.run_with(&text, Setup::default()).error("a");
    assert!(error.contains("is of Python 3.12.0"), "{error}");
}
