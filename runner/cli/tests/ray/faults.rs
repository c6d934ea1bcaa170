//! Kills while a pipeline runs on Ray.

use crate::{command, exec, on, remote_of, sweep};
use runner_testkit::{Digests, Ended, Project, Ray, files, marked};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The trainings of the sweep, and the steps of each.
const POINTS: usize = 12;
const STEPS: u64 = 3000;

/// The command lines of the workers whose jobs run on the nodes of a project.
fn workers(project: &Project) -> Vec<u32> {
    let programs = project.path("node/programs");
    let is_ours = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.starts_with(&programs))
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_ours)
        .collect()
}

/// True for the process of a job, whose child runs the stage.
fn is_outer(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("--job"))
}

fn kill(pid: u32, signal: &str) {
    let _ = std::process::Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

fn start(project: &Project) -> Child {
    command(project, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> Ended {
    child.wait_with_output().unwrap().into()
}

/// Waits until `ready` returns true, for at most a minute: a cluster that is busy takes its time.
fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Moments that differ from run to run of a test, and from try to try.
fn moment(i: u32) -> Duration {
    let random = std::process::id().wrapping_mul(2_654_435_761).rotate_left(i * 5);
    Duration::from_millis(u64::from(random % 3000))
}

/// The digests of a local run.
fn reference() -> Digests {
    let ended = Project::new(sweep(POINTS, STEPS)).exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    ended.digests()
}

pub(crate) fn an_interrupted_run() {
    let ray = Ray::start(3);
    let project = on(&ray, sweep(POINTS, 100_000_000));
    let child = start(&project);
    wait_for("workers", || workers(&project).len() >= 4);
    let began = Instant::now();
    kill(child.id(), "INT");
    let ended = end(child);
    assert_eq!(ended.code, 130, "{}", ended.text());
    assert!(began.elapsed() < Duration::from_secs(30));
    wait_for("the end of all workers", || workers(&project).is_empty());
}

pub(crate) fn nodes_and_workers_killed() {
    let mut ray = Ray::start(3);
    let all = reference();
    for i in 0..10 {
        let project = on(&ray, sweep(POINTS, STEPS));
        let child = start(&project);
        wait_for("a worker", || !workers(&project).is_empty());
        std::thread::sleep(moment(i));
        if i % 2 == 0 {
            ray.kill_node();
        } else if let Some(pid) = workers(&project).into_iter().find(|&pid| is_outer(pid)) {
            kill(pid, "KILL");
        }
        let ended = end(child);
        assert_eq!(ended.code, 0, "try {i}: {}", ended.text());
        assert_eq!(ended.digests(), all, "try {i}");
        wait_for("the end of all workers", || workers(&project).is_empty());
    }
}

pub(crate) fn engines_killed() {
    let ray = Ray::start(3);
    let all = reference();
    for i in 0..10 {
        let project = on(&ray, sweep(POINTS, STEPS));
        let mut child = start(&project);
        wait_for("a worker", || !workers(&project).is_empty());
        std::thread::sleep(moment(i));
        kill(child.id(), "KILL");
        child.wait().unwrap();
        wait_for("the end of all workers", || workers(&project).is_empty());
        let home = format!("RUNNER_HOME={}", project.home().display());
        wait_for("the end of the driver", || marked(&home).is_empty());
        let ended = exec(&project, &[]);
        assert_eq!(ended.code, 0, "try {i}: {}", ended.text());
        assert_eq!(ended.digests(), all, "try {i}");
    }
}

pub(crate) fn the_head_killed() {
    let mut ray = Ray::start(3);
    let project = on(&ray, sweep(POINTS, STEPS));
    let child = start(&project);
    wait_for("a result", || !files(&project.home().join("actions")).is_empty());
    ray.kill_head();
    let ended = end(child);
    assert_eq!(ended.code, 3, "{}", ended.text());
    assert!(ended.text().contains("Ray's head is gone"), "{}", ended.text());
    drop(ray);
    wait_for("the end of all workers", || workers(&project).is_empty());
    // What had ended stays done.
    let ray = Ray::start(3);
    let remote = remote_of(&project);
    project.write("home/config.yaml", remote + &ray.executors(&project, ""));
    let again = exec(&project, &[]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert_eq!(again.digests(), reference());
    let kept = ended.stages("ran").len();
    assert!(kept > 0 && again.stages("cached").len() >= kept, "{}", again.log());
}
