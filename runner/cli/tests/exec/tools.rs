//! The settings of external programs: tools and what they do to the key, shells, the network, isolation.

use crate::Project;
use std::os::unix::fs::PermissionsExt as _;

fn program(project: &Project, name: &str, text: &str) {
    project.write(name, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(project.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project whose only stage writes what a command prints.
fn project(settings: &str, command: &str) -> Project {
    Project::new(&text(settings, command))
}

fn text(settings: &str, command: &str) -> String {
    format!(
        "version: 1\nname: tools\nstages:\n  a:\n    run: {command} > ${{outputs.x}}\n    outputs: \
        {{ x: x.txt }}\n    {settings}\n"
    )
}

#[test]
fn an_executable_is_part_of_the_key_by_its_content() {
    let project = project("tools: [./bin/greet]", "greet");
    program(&project, "bin/greet", "echo one");
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert_eq!(project.output("a.x"), "one\n");
    assert_eq!(project.exec(&[]).stages("cached"), ["a"]);
    program(&project, "bin/greet", "echo two");
    let why = project.run(&["why", "p.yaml", "a"]);
    assert!(why.stdout.contains("  tool bin/greet\n    - "), "{}", why.text());
    assert_eq!(project.exec(&[]).stages("ran"), ["a"]);
    assert_eq!(project.output("a.x"), "two\n");
    // A directory elsewhere with the same content is the same experiment.
    let elsewhere = Project::new(&text("tools: [./bin/greet]", "greet"));
    program(&elsewhere, "bin/greet", "echo two");
    let ended = elsewhere
        .command(&["exec", "p.yaml", "--json"])
        .env("RUNNER_HOME", project.home())
        .output();
    assert_eq!(runner_testkit::Ended::from(ended.unwrap()).stages("cached"), ["a"]);
}

#[test]
fn an_executable_with_a_version_is_part_of_the_key_by_that() {
    let settings = "tools: [{ path: bin/greet, version: \"1.2\" }]";
    let project = project(settings, "greet");
    program(
        &project,
        "bin/greet",
        "[ \"$1\" = --version ] && echo greet 1.2.0 || echo one",
    );
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    program(
        &project,
        "bin/greet",
        "[ \"$1\" = --version ] && echo greet 1.3.0 || echo two",
    );
    assert_eq!(project.exec(&[]).stages("cached"), ["a"], "its content does not count");
    let ended = project.exec(&["--force", "a"]);
    let error = ended.error("a");
    assert!(error.contains("--version` prints `greet 1.3.0`, not `1.2`"), "{error}");
    project.write("p.yaml", &text(&settings.replace("1.2", "1.3"), "greet"));
    let why = project.run(&["why", "p.yaml", "a"]);
    assert!(
        why.stdout.contains("  tool bin/greet version\n    - 1.2\n    + 1.3\n"),
        "{}",
        why.text()
    );
    assert_eq!(project.exec(&[]).stages("ran"), ["a"]);
}

#[test]
fn an_environment_is_part_of_the_key_by_its_lock_file_and_its_interpreter() {
    let project = project("tools: [./env]", "say");
    let cfg = "home = /usr/bin\nversion = 3.11.2\n";
    project.write("env/pyvenv.cfg", cfg);
    program(&project, "env/bin/python", "echo Python 3.11.2");
    program(&project, "env/bin/say", "echo $(python --version)");
    project.write("requirements.txt", "numpy==1.0\n");
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert_eq!(project.output("a.x"), "Python 3.11.2\n");
    project.write("requirements.txt", "numpy==1.1\n");
    let why = project.run(&["why", "p.yaml", "a"]);
    assert!(
        why.stdout.contains("  tool env requirements.txt\n    - "),
        "{}",
        why.text()
    );
    project.write("requirements.txt", "numpy==1.0\n");
    assert_eq!(project.exec(&[]).stages("cached"), ["a"]);
    project.write("env/pyvenv.cfg", &cfg.replace("3.11.2", "3.12.0"));
    let ended = project.exec(&[]);
    assert!(ended.error("a").contains("is of Python 3.12.0"), "{}", ended.text());
}

#[test]
fn a_failing_part_of_a_pipe_is_a_failure_unless_the_shell_is_sh() {
    let project = project("shell: bash", "false | cat");
    assert_eq!(project.exec(&[]).code, 1);
    project.write("p.yaml", &text("shell: sh", "false | cat"));
    assert_eq!(project.exec(&[]).code, 0);
    project.write("p.yaml", &text("shell: sh", "false; echo more"));
    assert_eq!(project.exec(&[]).code, 1);
}

#[test]
fn the_network_is_part_of_the_key_and_shown() {
    let project = project("network: false", "echo x");
    assert_eq!(project.exec(&[]).code, 0);
    project.write("p.yaml", &text("network: true", "echo x"));
    let plan = project.run(&["plan", "p.yaml"]);
    assert!(plan.stdout.contains("network: none -> true"), "{}", plan.text());
    assert!(
        plan.stdout.contains("program a: reaches the network\n"),
        "{}",
        plan.text()
    );
    assert_eq!(project.exec(&["--report"]).stages("ran"), ["a"]);
    let shown = project.run(&["show", "latest/a"]);
    assert!(shown.stdout.contains("network yes\n"), "{}", shown.text());
    let reports = runner_testkit::files(&project.home().join("runs"));
    let report = reports.iter().rfind(|path| path.ends_with("report.html")).unwrap();
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("<h2>Programs</h2>"), "{page}");
}

#[test]
fn isolation_is_not_in_the_key_and_the_user_has_a_default() {
    let project = project("log: 1MiB", "echo x");
    assert_eq!(project.exec(&["--isolation", "none"]).code, 0);
    project.write("p.yaml", &text("isolation: none\n    log: 2MiB", "echo x"));
    assert_eq!(project.exec(&[]).stages("cached"), ["a"]);
    let wrong = project.exec(&["--isolation", "some"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("required"), "{}", wrong.stderr);
    project.write("p.yaml", &text("log: 2MiB", "echo another"));
    project.write("home/config.yaml", "isolation: none\n");
    let plan = project.run(&["plan", "p.yaml"]);
    assert!(
        plan.stdout.contains("program a: runs without isolation\n"),
        "{}",
        plan.text()
    );
    project.write("home/config.yaml", "isolation: of course\n");
    let wrong = project.exec(&[]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("config.yaml:1:12: `isolation` is"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_program_that_is_not_there_is_said_before_anything_runs() {
    let project = project("tools: [no-such-program-here]", "echo x");
    for command in [["exec", "p.yaml"], ["plan", "p.yaml"]] {
        let ended = project.run(&command);
        assert_eq!(ended.code, 2, "{}", ended.text());
        let expected = "p.yaml:7:13: there is no program `no-such-program-here` on PATH";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    assert!(!project.home().join("runs").exists());
}
