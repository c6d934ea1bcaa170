//! The settings of external programs: tools and what they do to the key, shells, the network, isolation.

use crate::Project;
use runner_testkit::{PipelineText, pipeline};
use std::os::unix::fs::PermissionsExt as _;

/// A project whose only stage writes what a command prints.
fn project(settings: &[(&str, &str)], command: &str) -> Project {
    Project::new(text(settings, command))
}

fn text(settings: &[(&str, &str)], command: &str) -> PipelineText {
    let stage = pipeline("tools").run("a", &format!("{command} > ${{outputs.x}}"));
    settings.iter().fold(stage, |text, (key, value)| text.set(key, value))
}

#[test]
fn a_tool_that_differs_is_shown_by_its_content_and_its_version() {
    let tool = "{ path: bin/greet, version: \"1.2\" }";
    let tools = |tool: &str| text(&[("tools", &format!("[{tool}]"))], "greet");
    let project = Project::new(tools("./bin/greet"));
    let greet = |version: &str| {
        project.write("bin/greet", format!("#!/bin/sh\necho greet {version}\n"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.path("bin/greet"), executable).unwrap();
    };
    let why = || project.run(&["why", "p.yaml", "a"]).stdout;
    greet("1.2.0");
    assert_eq!(project.exec(&[]).log(), "ran a");
    greet("1.2.1");
    assert!(why().contains("  tool bin/greet\n    - "), "{}", why());
    project.write("p.yaml", tools(tool));
    assert_eq!(project.exec(&[]).log(), "ran a");
    project.write("p.yaml", tools(&tool.replace("1.2", "1.3")));
    assert!(
        why().contains("  tool bin/greet version\n    - 1.2\n    + 1.3\n"),
        "{}",
        why()
    );
}

#[test]
fn the_network_is_part_of_the_key_and_shown() {
    let project = project(&[("network", "false")], "echo x");
    assert_eq!(project.exec(&[]).code, 0);
    project.write("p.yaml", text(&[("network", "true")], "echo x"));
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
    assert!(page.contains("<h3>Programs</h3>"), "{page}");
}

#[test]
fn isolation_is_not_in_the_key_and_the_user_has_a_default() {
    let project = project(&[("log", "1MiB")], "echo x");
    assert_eq!(project.exec(&["--isolation", "none"]).code, 0);
    project.write("p.yaml", text(&[("isolation", "none"), ("log", "2MiB")], "echo x"));
    assert_eq!(project.exec(&[]).stages("cached"), ["a"]);
    let wrong = project.exec(&["--isolation", "some"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("required"), "{}", wrong.stderr);
    project.write("p.yaml", text(&[("log", "2MiB")], "echo another"));
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
    let project = project(&[("tools", "[no-such-program-here]")], "echo x");
    for command in [["exec", "p.yaml"], ["plan", "p.yaml"]] {
        let ended = project.run(&command);
        assert_eq!(ended.code, 2, "{}", ended.text());
        let expected = "p.yaml:6:13: there is no program `no-such-program-here` on PATH";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    assert!(!project.home().join("runs").exists());
}
