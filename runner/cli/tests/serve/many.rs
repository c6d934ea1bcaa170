//! A history of many runs.

use crate::Test;
use crate::http::Server;
use runner_testkit::Project;
use std::fs;

pub const TESTS: &[Test] = &[("ten_thousand_runs_are_listed", ten_thousand_runs_are_listed)];

fn ten_thousand_runs_are_listed() {
    let project = Project::new(
        "version: 1\nname: small\nstages:\n  a: { run: 'echo made > ${outputs.x}', outputs: { x: x.txt } }\n",
    );
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let runs = project.home().join("runs");
    let model = fs::read_dir(&runs).unwrap().next().unwrap().unwrap();
    let id = model.file_name().to_string_lossy().into_owned();
    let events = fs::read(model.path().join("events.jsonl")).unwrap();
    let pipeline = fs::read(model.path().join("pipeline.json")).unwrap();
    for i in 0..10_000 {
        let dir = runs.join(format!(
            "2020{:02}{:02}T{:06}-aa{:02}",
            1 + i / 1000,
            1 + i % 28,
            i,
            i % 100
        ));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("events.jsonl"), &events).unwrap();
        fs::write(dir.join("pipeline.json"), &pipeline).unwrap();
    }
    let server = Server::new(&project, &[]);
    let first = server.page("/");
    assert!(first.contains(&id) && first.contains("older"), "{first}");
    assert_eq!(first.matches("type=\"checkbox\"").count(), 100);
    let older = server.page("/?page=3");
    assert_eq!(older.matches("type=\"checkbox\"").count(), 100);
    assert!(!older.contains(&id));
    let last = server.page("/?page=100");
    assert_eq!(last.matches("type=\"checkbox\"").count(), 1);
    let filtered = server.page("/?where=status+%3D+done");
    assert_eq!(filtered.matches("type=\"checkbox\"").count(), 100);
}
