//! Growth of the work of commands with what they are given. The work is counted in instructions, by valgrind,
//! at three sizes that double: of work `a + b·n^p` the differences double `p` times. Nothing is counted, nor
//! checked, where valgrind is missing.
//!
//! | what grows | command | exponent |
//! | --- | --- | --- |
//! | stages | `exec`, nothing to do | 1 |
//! | stages | `plan`, all cached | 1 |
//! | points of a sweep | `compare` with all it can write | 1 |
//! | earlier runs | `runs` | 1 |
//! | earlier runs | `exec`, nothing to do | 0 |
//! | rows of a file | `data inspect` | 1 |

#![allow(clippy::print_stdout, reason = "the counts of a test")]

use crate::Project;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// The tolerance of an exponent, for logarithms and the doubling of buffers.
const TOLERANCE: f64 = 0.25;

/// The instructions of a command of this program, with a single thread in its pools; `None` without valgrind.
fn instructions(project: &Project, args: &str) -> Option<u64> {
    let (log, ours) = (project.path("valgrind.log"), project.command(args));
    let mut command = Command::new("valgrind");
    project
        .at_home(&mut command)
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(format!("--log-file={}", log.display()))
        .arg(ours.get_program())
        .args(ours.get_args())
        .envs([("RAYON_NUM_THREADS", "1"), ("POLARS_MAX_THREADS", "1")]);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {text}");
    let log = fs::read_to_string(log).unwrap();
    let (_, count) = log.split_once("I   refs:").expect("a count of instructions");
    let count = count.lines().next().unwrap().replace(',', "");
    Some(count.trim().parse().unwrap())
}

/// Checks that the work of a command grows with at most this exponent from `prepare(1)` over `prepare(2)` to
/// `prepare(4)`.
fn grows(exponent: f64, args: &str, mut prepare: impl FnMut(usize) -> Project) {
    let mut counts = Vec::new();
    for times in [1, 2, 4] {
        match instructions(&prepare(times), args) {
            Some(count) => counts.push(count as f64),
            None => return println!("not counted: valgrind is missing"),
        }
    }
    // Less work than at the size before, within the noise of a few threads, is no growth.
    let (first, second) = (counts[1] - counts[0], counts[2] - counts[1]);
    let flat = second <= 0.05 * counts[0];
    let found = (second / first.max(1.0)).log2();
    println!("{args}: {counts:?}, exponent {found:.2}");
    assert!(
        flat || found <= exponent + TOLERANCE,
        "{args}: {counts:?}, exponent {found:.2}"
    );
    assert!(
        !flat || exponent == 0.0,
        "{args}: {counts:?} does not grow: nothing is measured"
    );
}

/// A project that has run a pipeline of stages in ten chains. Those of a chain are the same action, which
/// runs once.
fn chains(stages: usize) -> Project {
    let mut text = "version: 1\nname: chains\nstages:\n".to_owned();
    for i in 0..stages {
        let needs = i
            .checked_sub(10)
            .map(|before| format!("    needs: {{ a: s{before} }}\n"));
        let needs = needs.unwrap_or_default();
        let _ = write!(
            text,
            "  s{i}:\n    run: echo 1 > ${{outputs.x}}\n    outputs: {{ x: x.txt }}\n{needs}"
        );
    }
    let project = Project::new(text);
    project.exec("p.yaml");
    project
}

#[test]
fn a_run_with_nothing_to_do_grows_with_its_stages() {
    grows(1.0, "exec -q p.yaml", |times| chains(200 * times));
    grows(1.0, "plan p.yaml", |times| chains(200 * times));
}

#[test]
fn a_comparison_grows_with_its_points() {
    grows(1.0, "compare latest --json --html all.html", |times| {
        let rates: Vec<usize> = (0..25 * times).collect();
        let project = Project::new(format!(
            "version: 1\nname: s\nstages:\n  m:\n    matrix: {{ lr: {rates:?}, seed: [1, 2, 3, 4] }}\n    \
            run: echo '{{\"name\":\"return\",\"step\":1,\"value\":${{matrix.lr}}.${{matrix.seed}}}}' > \
            ${{outputs.metrics}}\n    outputs: {{ metrics: metrics.jsonl }}\n"
        ));
        project.exec("p.yaml --isolation none");
        project
    });
}

/// A project of one run, and copies of it at earlier hours.
fn history(runs: usize) -> Project {
    let project = Project::new(
        "version: 1\nname: h\nstages: { a: { run: 'echo > ${outputs.x}', outputs: { x: x } } }\n",
    );
    let id = project.exec("p.yaml");
    let dir = project.path("home/runs");
    let events = fs::read_to_string(dir.join(&id).join("events.jsonl")).unwrap();
    for n in 0..runs {
        let copy = format!("2020{:02}{:02}T{:02}0000-{n:04}", 1 + n / 672, 1 + n / 24 % 28, n % 24);
        let mut lines = String::new();
        for line in events.lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().remove("checksum");
            if event["run"].is_string() {
                event["run"] = copy.as_str().into();
            }
            let _ = writeln!(lines, "{event}");
        }
        fs::create_dir(dir.join(&copy)).unwrap();
        fs::write(dir.join(&copy).join("events.jsonl"), lines).unwrap();
        fs::hard_link(
            dir.join(&id).join("pipeline.json"),
            dir.join(&copy).join("pipeline.json"),
        )
        .unwrap();
    }
    project
}

#[test]
fn a_history_costs_what_is_read_of_it() {
    grows(1.0, "runs --json", |times| history(200 * times));
    grows(0.0, "exec -q p.yaml", |times| history(200 * times));
}

#[test]
fn the_inspection_of_a_file_grows_with_its_rows() {
    grows(1.0, "data inspect bars.csv --json", |times| {
        let project = Project::new("");
        let mut bars = "date,open,high,low,close,volume\n".to_owned();
        for i in 0..5000 * times {
            let date = format!("{}-{:02}-{:02}", 1900 + i / 336, 1 + i / 28 % 12, 1 + i % 28);
            let _ = writeln!(bars, "{date},{i}.5,{i}.75,{i}.25,{i}.5,{}", 1000 + i % 7);
        }
        project.write("bars.csv", bars);
        project
    });
}
