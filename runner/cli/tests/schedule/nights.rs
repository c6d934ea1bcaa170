//! Nights that go wrong: data that is late, failures, timeouts, signals, two processes at once.

use crate::{Ended, Project};
use runner_testkit::wait_for;
use serde_json::Value;
use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

/// A pipeline of one program.
fn program(run: &str, more: &str) -> Project {
    let project = Project::new(format!(
        r#"
version: 1
name: nightly
params: {{ as_of: 2026-01-02 }}
schedule: {{ at: "18:30", timezone: UTC, from: 2026-03-02, params: {{ as_of: "${{schedule.date}}" }}{more} }}
stages:
  copy:
    run: |
      echo ${{params.as_of}} > ${{outputs.o}}
      {run}
    outputs: {{ o: o.txt }}
    isolation: none
"#
    ));
    project.write("data.csv", "1\n");
    project
}

fn due(project: &Project, now: &str) -> (i32, Vec<Value>) {
    let ended = project.run(&["schedule", "run-due", "p.yaml", "--now", now, "--json"]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
    (ended.code, json[0]["nights"].as_array().unwrap().clone())
}

fn states(nights: &[Value]) -> String {
    let line = |night: &Value| {
        let why = night["why"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        format!(
            "{} {}{why}\n",
            night["night"].as_str().unwrap(),
            night["status"].as_str().unwrap()
        )
    };
    nights.iter().map(line).collect()
}

fn written(project: &Project, name: &str, at: &str) {
    let time = chrono::DateTime::parse_from_rfc3339(at).unwrap();
    let file = File::options().append(true).open(project.path(name)).unwrap();
    file.set_modified(SystemTime::from(time)).unwrap();
}

#[test]
fn a_failed_night_is_reported_and_run_again() {
    let project = program("test -e ok", "");
    let (code, nights) = due(&project, "2026-03-02T18:30:00Z");
    assert_eq!(code, 1);
    insta::assert_snapshot!(states(&nights), @"2026-03-02 failed: copy: the command exited with status 1");
    let (code, nights) = due(&project, "2026-03-03T18:30:00Z");
    assert_eq!((code, nights.len()), (1, 2));
    // The program is another one now.
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("test -e ok", "true"));
    let (code, nights) = due(&project, "2026-03-03T18:31:00Z");
    assert_eq!(
        (code, states(&nights).as_str()),
        (0, "2026-03-02 done\n2026-03-03 done\n")
    );
    let log = project.run(&["schedule", "log", "p.yaml"]).stdout;
    assert!(log.contains("3 runs") && log.contains("2 runs"), "{log}");
}

#[test]
fn a_night_that_takes_too_long_is_ended() {
    let project = program("sleep 60", ", timeout: 1s");
    let (code, nights) = due(&project, "2026-03-02T18:30:00Z");
    assert_eq!(
        (code, states(&nights).as_str()),
        (1, "2026-03-02 failed: its `timeout` of 1 s has passed\n")
    );
}

#[test]
fn sources_and_files_are_waited_for() {
    let wait = r#", wait_for: { sources: [copy], files: ["in/${schedule.date}.csv"], until: "23:00", stable_for: 2m }"#;
    let project = program("true", wait);
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write(
        "p.yaml",
        text.replace("    isolation", "    files: [data.csv]\n    isolation"),
    );
    written(&project, "data.csv", "2026-03-02T18:00:00Z");
    let (code, nights) = due(&project, "2026-03-02T18:30:00Z");
    assert_eq!(code, 1);
    insta::assert_snapshot!(states(&nights), @"2026-03-02 late: in/2026-03-02.csv: there is no such file");
    project.write("in/2026-03-02.csv", "1\n");
    written(&project, "in/2026-03-02.csv", "2026-03-02T23:30:00Z");
    let (code, nights) = due(&project, "2026-03-03T08:00:00Z");
    assert_eq!((code, states(&nights).as_str()), (0, "2026-03-02 done\n"));
    // The next day's file, and the source of the day before.
    project.write("in/2026-03-03.csv", "1\n");
    written(&project, "in/2026-03-03.csv", "2026-03-03T18:00:00Z");
    insta::assert_snapshot!(states(&due(&project, "2026-03-03T18:30:00Z").1), @"2026-03-03 late: copy: no \
        file was written on that day or later");
}

/// Starts `run-due` by a real clock, in which the first night of the schedule is long over.
fn start(project: &Project) -> Child {
    let mut command = project.command(&["schedule", "run-due", "p.yaml", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_second_of_two_at_once_says_so() {
    let project = program("touch started; while ! test -e go; do sleep 0.05; done", "");
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    // Absolute, as programs run in a directory of their own.
    let here = project.path("").display().to_string();
    let text = text
        .replace("touch started", &format!("touch {here}started"))
        .replace("-e go", &format!("-e {here}go"));
    project.write("p.yaml", text.replace("from: 2026-03-02", "catch_up: latest"));
    let first = start(&project);
    wait_for("the first night", || project.path("started").exists());
    let second = project.run(&["schedule", "run-due", "p.yaml"]);
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (0, "nightly: another process runs its nights\n")
    );
    project.write("go", "");
    let first = Ended::from(first.wait_with_output().unwrap());
    let json: Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(
        (first.code, json[0]["nights"].as_array().unwrap().len()),
        (0, 1),
        "{}",
        first.text()
    );
}

#[test]
fn a_signal_ends_the_night_and_it_is_run_again() {
    let project = program("touch started; test -e go || sleep 60", "");
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    let here = project.path("").display().to_string();
    let text = text
        .replace("touch started", &format!("touch {here}started"))
        .replace("-e go", &format!("-e {here}go"));
    project.write("p.yaml", text.replace("from: 2026-03-02", "catch_up: latest"));
    let child = start(&project);
    wait_for("the night", || project.path("started").exists());
    std::thread::sleep(Duration::from_millis(100));
    let kill = std::process::Command::new("kill")
        .args(["-s", "TERM", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.text());
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json[0]["nights"][0]["status"], "killed");
    project.write("go", "");
    let again = project.run(&["schedule", "run-due", "p.yaml", "--json"]);
    let json: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (again.code, &json[0]["nights"][0]["status"]),
        (0, &"done".into()),
        "{}",
        again.text()
    );
    assert_eq!(json[0]["nights"][0]["attempts"], 2);
}

/// A night tells of late data, once, since no run did. A night whose run failed is told by its run alone.
#[test]
fn nights_that_fail_are_told() {
    let notify = " }\nnotify: [{ command: 'cat >> told' }] #";
    let told = |project: &Project| -> Vec<Value> {
        let text = std::fs::read_to_string(project.path("told")).unwrap_or_default();
        let documents = serde_json::Deserializer::from_str(&text).into_iter();
        documents.map(Result::unwrap).collect()
    };
    let project = program("test -e ok", notify);
    due(&project, "2026-03-02T18:30:00Z");
    let documents = told(&project);
    assert_eq!(documents.len(), 1, "{documents:?}");
    assert_eq!(documents[0]["errors"][0]["stage"], "copy");
    assert_eq!(documents[0]["night"], "2026-03-02");

    let late = ", wait_for: { files: [late.csv], until: '20:00' }";
    let project = program("true", &format!("{late}{notify}"));
    due(&project, "2026-03-02T18:30:00Z");
    due(&project, "2026-03-02T21:30:00Z");
    let documents = told(&project);
    assert_eq!(documents.len(), 1, "{documents:?}");
    assert_eq!(documents[0]["status"], "late");
    assert!(
        documents[0]["title"]
            .as_str()
            .unwrap()
            .contains("late, night 2026-03-02"),
        "{documents:?}"
    );
}
