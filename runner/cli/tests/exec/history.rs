//! The history of runs: how little it weighs, how runs leave it, and reports.

use crate::{Ended, Project, files, wait_for};
use runner_testkit::{PipelineText, pipeline};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

fn training() -> PipelineText {
    pipeline("training")
        .uses("env", "env/classic")
        .with("id", "CartPole-v1")
        .uses("train", "train/ppo")
        .needs("env", "env")
        .with("total_timesteps", 256)
        .with("n_envs", 4)
        .with("n_steps", 32)
        .with("batch_size", 128)
        .with("n_epochs", 1)
}

fn value() -> PipelineText {
    pipeline("value")
        .param("value", 1)
        .run("a", "echo ${params.value} > ${outputs.x}")
}

fn run_of(ended: &Ended) -> String {
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended.events()[0]["run"].as_str().unwrap().to_owned()
}

fn json_of(project: &Project, args: &[&str]) -> Value {
    let ended = project.run(&[args, &["--json"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn ids(project: &Project) -> Vec<String> {
    let listed = json_of(project, &["runs", "--last", "100000"]);
    let id = |run: &Value| run["id"].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().map(id).collect()
}

/// Runs that nobody can look into: whoever opens their events waits for ever.
fn add_sealed_runs(runs: &Path, count: usize) {
    let pipes: Vec<_> = (0..count)
        .map(|i| {
            let folder = runs.join(format!("20200101T000000-{i:05}"));
            std::fs::create_dir(&folder).unwrap();
            folder.join("events.jsonl")
        })
        .collect();
    for pipes in pipes.chunks(500) {
        assert!(Command::new("mkfifo").args(pipes).status().unwrap().success());
    }
}

/// The number of system calls of a no-op run that name a path in the directory of runs; `None` without
/// strace.
fn looks_at_runs(project: &Project, trace: &str) -> Option<usize> {
    let exec = project.command(&["exec", "p.yaml", "--name", trace]);
    let trace = project.path(trace);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-e", "trace=%file,getdents64", "-o"]);
    strace.arg(&trace).arg(exec.get_program()).args(exec.get_args());
    strace.current_dir(project.path("")).env("RUNNER_HOME", project.home());
    let status = strace
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(trace).unwrap();
    let runs = project.home().join("runs").display().to_string();
    // A call during which another thread made one is two lines.
    let is_call = |line: &&str| line.contains(&runs) && !line.contains(" resumed>");
    Some(text.lines().filter(is_call).count())
}

#[test]
fn a_run_with_nothing_to_do_does_not_look_at_earlier_runs() {
    let project = Project::new(training());
    run_of(&project.exec(&["--name", "first"]));
    let alone = looks_at_runs(&project, "one");
    add_sealed_runs(&project.home().join("runs"), 2000);
    // It would hang if it opened them; nor may it list them.
    let log = project.exec(&["--name", "many", "--tag", "x"]).log();
    assert_eq!(log, "cached env\ncached train");
    let among_many = looks_at_runs(&project, "two");
    assert_eq!(alone, among_many);
    match alone {
        None => eprintln!("system calls were not counted: `strace` is not installed, or may not trace"),
        Some(count) => assert!((1..200).contains(&count), "{count}"),
    }
}

#[test]
fn reports_are_written_when_they_are_asked_for_or_cheap() {
    let project = Project::new(pipeline("slow").run("a", "sleep 1; echo 1 > ${outputs.x}"));
    let report = |ended: &Ended| {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let line = ended.stdout.lines().last().unwrap();
        line.strip_prefix("report: ")
            .unwrap_or_else(|| panic!("{}", ended.stdout))
            .to_owned()
    };
    let path = report(&project.run(&["exec", "p.yaml"]));
    assert!(project.path(&path).is_file(), "{path}");
    // A run with nothing to do writes none, and says how to have it.
    let ended = project.run(&["exec", "p.yaml"]);
    let hint = report(&ended);
    let words: Vec<&str> = hint.split('`').nth(1).unwrap_or_default().split(' ').collect();
    assert_eq!(words, ["runner", "report", "latest"], "{hint}");
    let id = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("run ")?.split(':').next())
        .unwrap();
    let page = project.home().join("runs").join(id).join("report.html");
    assert!(!page.exists());
    project.run(&words[1..]);
    let written = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    let path = report(&project.run(&["exec", "p.yaml", "--report"]));
    assert!(project.path(&path).is_file() && written.contains("<h2>Provenance</h2>"));
    // The time that is printed is the time that was waited for.
    let began = std::time::Instant::now();
    let ended = project.run(&["exec", "p.yaml", "--force", "a"]);
    let waited = began.elapsed().as_secs_f64();
    let line = ended.stdout.lines().find(|line| line.starts_with("run ")).unwrap();
    let printed = line.split(" in ").nth(1).unwrap().split(' ').next().unwrap();
    let printed: f64 = printed.parse().unwrap();
    assert!((1.0..=waited + 0.01).contains(&printed), "{line} after {waited}");
}

#[test]
fn the_report_of_a_cached_training_has_the_times_of_the_run_that_computed_it() {
    let project = Project::new(training());
    run_of(&project.exec(&[]));
    let page = |run: &str| {
        std::fs::read_to_string(project.home().join("runs").join(run).join("report.html")).unwrap()
    };
    let speed = |page: &str| {
        let line = page.lines().find(|line| line.contains(" a second"));
        line.unwrap_or_else(|| panic!("{page}")).to_owned()
    };
    let first = run_of(&project.exec(&["--report"]));
    let second = run_of(&project.exec(&["--report"]));
    assert_eq!(speed(&page(&first)), speed(&page(&second)));
}

#[test]
fn pruned_runs_are_gone_and_gc_frees_what_only_they_needed() {
    let project = Project::new(value());
    let mut runs: Vec<String> = (0..8)
        .map(|value| run_of(&project.exec(&["--set", &format!("value={value}")])))
        .collect();
    for (command, i) in [(["runs", "name", "", "best"], 0), (["runs", "tag", "", "sweep"], 1)] {
        let mut command = command.to_vec();
        command[2] = &runs[i];
        assert_eq!(project.run(&command).code, 0);
    }
    assert_eq!(project.run(&["runs", "keep", &runs[2]]).code, 0);
    // One of the two options has to be given.
    assert_eq!(project.run(&["runs", "prune"]).code, 2);
    let expected = json!([runs[3], runs[4], runs[5]]);
    let foreseen = json_of(&project, &["runs", "prune", "--keep", "2", "--dry-run"]);
    assert_eq!((&foreseen["runs"], &foreseen["dry_run"]), (&expected, &json!(true)));
    assert_eq!(ids(&project), runs);
    let nothing = json_of(&project, &["runs", "prune", "--keep", "2", "--older-than", "1d"]);
    assert_eq!(nothing["runs"], json!([]));
    let pruned = json_of(&project, &["runs", "prune", "--keep", "2"]);
    assert_eq!(pruned["runs"], expected);
    assert_eq!(pruned["bytes"], foreseen["bytes"]);
    runs.drain(3..6);
    assert_eq!(ids(&project), runs);
    let folders = std::fs::read_dir(project.home().join("runs")).unwrap().count();
    assert_eq!(folders, 5);

    // By name: not what is kept.
    let kept = project.run(&["runs", "rm", &runs[2]]);
    assert_eq!(kept.code, 2);
    assert!(kept.stderr.contains("is kept"), "{}", kept.stderr);
    let removed = project.run(&["runs", "rm", "best"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert!(
        removed.stdout.contains(&runs[0]) && removed.stdout.contains("1 run"),
        "{}",
        removed.stdout
    );
    runs.remove(0);
    assert_eq!(ids(&project), runs);
    assert_eq!(project.run(&["show", "best"]).code, 2);
    // The name may be given again.
    assert_eq!(project.run(&["runs", "name", &runs[2], "best"]).code, 0);

    // gc frees the results of the four that are gone, and removes the runs that are neither kept nor
    // labelled.
    let gc = ["cache", "gc", "--keep-last", "1", "--keep-younger-than", "0s"];
    let blobs = || files(&project.home().join("blobs")).len();
    let before = blobs();
    let foreseen = json_of(&project, &[&gc[..], &["--dry-run"]].concat());
    let report = json_of(&project, &gc);
    assert_eq!(foreseen["runs_dropped"], report["runs_dropped"]);
    assert_eq!(report["runs_kept"], json!([runs[1], runs[3]]));
    assert_eq!(report["runs_dropped"], json!([]));
    assert!(blobs() < before);
    assert_eq!(project.run(&["runs", "unname", "best"]).code, 0);
    assert_eq!(json_of(&project, &gc)["runs_dropped"], json!([runs[2]]));
    runs.remove(2);
    assert_eq!(ids(&project), runs);
    for (run, code) in [(&runs[1], 0), (&runs[2], 0), (&runs[0], 3)] {
        let ended = project.run(&["show", &format!("{run}/a.x")]);
        assert_eq!(ended.code, code, "{run} of {runs:?}: {}", ended.stderr);
    }
}

#[test]
fn a_running_run_is_never_removed() {
    let project = Project::new(
        pipeline("going_on")
            .run(
                "a",
                "while [ ! -e \"$STOP\" ]; do sleep 0.02; done; echo 1 > ${outputs.x}",
            )
            .set("env", "{ STOP: STOPFILE }"),
    );
    let stop = project.path("stop");
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", text.replace("STOPFILE", &stop.display().to_string()));
    let mut child = project
        // It waits for a file of the host.
        .command(&["exec", "p.yaml", "-q", "--isolation", "none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("a run that goes on", || {
        let listed = project.run(&["runs", "--json"]);
        serde_json::from_str::<Value>(&listed.stdout).is_ok_and(|runs| runs[0]["status"] == "running")
    });
    let id = ids(&project).remove(0);
    assert_eq!(json_of(&project, &["runs", "prune", "--keep", "0"])["runs"], json!([]));
    let refused = project.run(&["runs", "rm", &id]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains(&format!("run {id} is running")),
        "{}",
        refused.stderr
    );
    std::fs::write(&stop, "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(json_of(&project, &["show", &id])["status"], "done");
    assert_eq!(
        json_of(&project, &["runs", "prune", "--keep", "0"])["runs"],
        json!([id])
    );
    assert!(ids(&project).is_empty());
}

#[test]
fn a_run_whose_artifacts_another_uses_is_not_removed() {
    let project = Project::new(value());
    let first = run_of(&project.exec(&["--name", "base"]));
    project.write(
        "after.yaml",
        pipeline("after")
            .run("b", "cat ${needs.x} > ${outputs.x}")
            .needs("x", "base/a.x"),
    );
    let second = run_of(&project.run(&["exec", "after.yaml", "--json"]));
    project.run(&["runs", "unname", "base"]);
    assert_eq!(json_of(&project, &["runs", "prune", "--keep", "1"])["runs"], json!([]));
    let refused = project.run(&["runs", "rm", &first]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("uses an artifact of run"), "{}", refused.stderr);
    let both = json_of(&project, &["runs", "rm", &first, &second]);
    assert_eq!(both["runs"], json!([first, second]));
}
