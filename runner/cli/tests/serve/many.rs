//! A history of many runs.

use crate::Test;
use crate::http::Server;
use cache::checksummed::add_checksum;
use chrono::{NaiveDate, TimeDelta};
use runner_testkit::Project;
use runner_testkit::pipeline;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(crate) const TESTS: &[Test] = &[("ten_thousand_runs_are_listed", ten_thousand_runs_are_listed)];

/// The number of runs that [`history`] adds.
pub(crate) const RUNS: usize = 10_000;

/// Of the runs of [`history`], every so many-th failed.
pub(crate) const FAILED: usize = 40;

/// The memory that a server of these runs may need, in bytes.
const MEMORY: u64 = 100 << 20;

/// A project of one run, whose parameter `n` is -1, and its id; and [`RUNS`] hourly runs before it, whose
/// parameter `n` counts from 0, with their ids.
pub(crate) fn history() -> (Project, String, Vec<String>) {
    let project = Project::new(
        pipeline("small")
            .param("n", -1)
            .run("a", "echo ${params.n} > ${outputs.x}"),
    );
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let runs = project.home().join("runs");
    let model = fs::read_dir(&runs).unwrap().next().unwrap().unwrap();
    let last = model.file_name().to_string_lossy().into_owned();
    let events = fs::read_to_string(model.path().join("events.jsonl")).unwrap();
    let parsed = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let events: Vec<Value> = events.lines().map(parsed).collect();
    let pipeline = model.path().join("pipeline.json");
    let began = NaiveDate::from_ymd_opt(2020, 1, 1)
        .unwrap()
        .and_hms_opt(0, 0, 0)
        .unwrap();
    let ids = (0..RUNS).map(|n| {
        let time = began + TimeDelta::hours(n as i64);
        let id = format!("{}-{:04}", time.format("%Y%m%dT%H%M%S"), n);
        let time = json!(time.format("%Y-%m-%dT%H:%M:%S.000Z").to_string());
        let dir = runs.join(&id);
        fs::create_dir(&dir).unwrap();
        let lines: String = events
            .iter()
            .map(|event| {
                let mut event = event.clone();
                event["time"] = time.clone();
                if !event["run"].is_null() {
                    event["run"] = json!(id);
                }
                if !event["params"].is_null() {
                    event["params"]["n"] = json!(n);
                }
                if n.is_multiple_of(FAILED) && !event["status"].is_null() {
                    event["status"] = json!("failed");
                }
                line(event)
            })
            .collect();
        fs::write(dir.join("events.jsonl"), lines).unwrap();
        // The stages of all are the same.
        fs::hard_link(&pipeline, dir.join("pipeline.json")).unwrap();
        id
    });
    let ids = ids.collect();
    (project, last, ids)
}

/// A line of an event log, with its checksum.
fn line(mut value: Value) -> String {
    value.as_object_mut().unwrap().remove("checksum");
    let mut line = value.to_string();
    add_checksum(&mut line);
    line.push('\n');
    line
}

fn ten_thousand_runs_are_listed() {
    let (project, id, ids) = history();
    let server = Server::new(&project, &[]);
    let first = server.page("/runs");
    assert!(first.contains(&id) && first.contains("older"), "{first}");
    assert_eq!(first.matches(" name=\"run\"").count(), 100);
    let older = server.page("/runs?page=3");
    assert_eq!(older.matches(" name=\"run\"").count(), 100);
    assert!(!older.contains(&id));
    let last = server.page("/runs?page=100");
    assert_eq!(last.matches(" name=\"run\"").count(), 1);
    assert!(last.contains(&ids[0]), "{last}");
    let sorted = server.page("/runs?sort=params.n");
    let at = |n: usize| sorted.find(ids[n].as_str()).unwrap();
    // The run with -1 comes first.
    assert!(sorted.find(&id).unwrap() < at(0) && at(0) < at(1), "{sorted}");
    assert!(
        sorted.contains("aria-sort=\"ascending\"") && sorted.contains("older"),
        "{sorted}"
    );
    let filtered = server.page("/runs?where=status+%3D+done");
    assert_eq!(filtered.matches(" name=\"run\"").count(), 100);
    let failed = (RUNS - 1) / FAILED + 1;
    let count = format!("{} runs", RUNS + 1 - failed);
    assert!(filtered.contains(&count), "{filtered}");
    // A server that holds all of these runs, or much for each client, needs more than this.
    let half = |_| {
        let mut client = TcpStream::connect(&server.address)?;
        client.write_all(b"GET /runs HTTP/1.1\r\nHost: x\r\n").map(|()| client)
    };
    let clients: Vec<io::Result<TcpStream>> = (0..600).map(half).collect();
    drop(clients);
    // The server sees their ends one after the other.
    let started = Instant::now();
    while !server.has("/runs") {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the clients are not forgotten"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "{peak}");
}
