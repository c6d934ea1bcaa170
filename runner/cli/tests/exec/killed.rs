//! Runs that are stopped, asked or not.

use crate::{Project, marked, wait_for};
use runner_testkit::{PipelineText, pipeline};
use std::process::{Child, Stdio};
use std::time::Duration;

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn quick() -> PipelineText {
    pipeline("quick")
        .run("a", "sleep 0.02; seq 1000 > ${outputs.x}")
        .run("b", "sleep 0.02; sort -r ${needs.x} > ${outputs.x}")
        .needs("x", "a.x")
        .run("c", "sleep 0.02; wc < ${needs.x} > ${outputs.x}")
        .needs("x", "a.x")
        .run(
            "d",
            "sleep 0.02; head -n ${matrix.n} ${needs.b} > ${outputs.x}; cat ${needs.c} >> ${outputs.x}",
        )
        .matrix("n", "[1, 2, 3]")
        .needs("b", "b.x")
        .needs("c", "c.x")
        .run("e", "cat ${needs.d} > ${outputs.x}")
        .needs("d", "'d[*].x'")
}

#[test]
fn killed_at_any_moment_and_run_again() {
    let reference = Project::new(quick()).exec(&[]);
    assert_eq!(reference.code, 0, "{}", reference.stdout);
    let project = Project::new(quick());
    for i in 0..20u64 {
        let mut child = project
            .command(&["exec", "p.yaml", "-q", "--force", "a", "--force", "d"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before it begins to after it ended, in no order.
        std::thread::sleep(Duration::from_millis(i * 37 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 0, "{}", ended.stdout);
        assert_eq!(ended.digests(), reference.digests());
        if i % 5 == 4 {
            std::fs::remove_dir_all(project.home()).unwrap();
        }
    }
}

/// Runs a project ten times, whose whole run takes `whole` milliseconds, and kills each run after a random
/// time of at most a part in `parts` of that.
pub(crate) fn kill_ten_times(project: &Project, whole: u64, parts: u64) {
    let mut left_to_do = 0;
    for i in 1..=10 {
        let mut child = project
            .command(&["exec", "p.yaml", "-q"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(i * 37 % 101 * whole / (100 * parts)));
        left_to_do += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(left_to_do > 3, "{left_to_do} of 10 kills, {whole} ms");
}

/// Populations that go on from memos and checkpoints: of members that learn from replay buffers, and of
/// actors beside a learner.
fn populations() -> PipelineText {
    pipeline("populations")
        .uses("env", "env/classic")
        .with("id", "Pendulum-v1")
        .uses("pbt", "train/pbt")
        .needs("env", "env")
        .with("trainer", "train/td3")
        .with("pop_size", 3)
        .with("interval", 1500)
        .with("seed", 3)
        .with("search_space", "{ learning_rate: { low: 1e-4, high: 1e-2 } }")
        .with("checkpoint_interval", 0.01)
        .with(
            "with",
            "{ total_timesteps: 6000, batch_size: 32, policy_kwargs: { net_arch: { pi: [32], qf: [32] } } }",
        )
        .uses("erl", "train/erl")
        .needs("env", "env")
        .with("total_timesteps", 15000)
        .with("pop_size", 4)
        .with("num_elites", 1)
        .with("warmup_iters", 1)
        .with("num_rl_updates_per_iter", 300)
        .with("episode_length", 100)
        .with("batch_size", 32)
        .with("checkpoint_interval", 0.01)
        .with("policy_kwargs", "{ net_arch: { pi: [32], qf: [32] } }")
}

#[test]
fn populations_killed_at_any_moment_end_in_the_same_bytes() {
    let began = std::time::Instant::now();
    let reference = Project::new(populations()).exec(&[]);
    assert_eq!(reference.code, 0, "{}", reference.stdout);
    let whole = u64::try_from(began.elapsed().as_millis()).unwrap();
    let project = Project::new(populations());
    kill_ten_times(&project, whole, 12);
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert_eq!(ended.digests(), reference.digests());
}

fn endless(mark: &str) -> Project {
    Project::new(
        pipeline("endless")
            .run("a", "sleep 1000 & (sleep 1001; true) & sleep 1002; true")
            .set("env", format!("{{ MARK: {mark} }}"))
            .output("x", "x.txt"),
    )
}

/// Starts an endless stage and waits until it runs.
fn start(mark: &str) -> (Project, Child) {
    let project = endless(mark);
    let child = project
        .command(&["exec", "p.yaml", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("its processes", || {
        marked(mark).iter().filter(|line| line.starts_with("sleep")).count() == 3
    });
    (project, child)
}

#[test]
fn no_orphans_when_the_parent_is_killed() {
    let mark = format!("orphans-{}", std::process::id());
    let (project, mut child) = start(&mark);
    let home = format!("RUNNER_HOME={}", project.home().display());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the stage's processes to end", || marked(&mark).is_empty());
    wait_for("the workers to end", || marked(&home).is_empty());
    let shown = project.run(&["runs", "--json"]);
    assert!(shown.stdout.contains(r#""status": "killed""#), "{}", shown.stdout);
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

#[test]
fn interrupted() {
    for (name, mark) in [("INT", "int"), ("TERM", "term"), ("HUP", "hup")] {
        // Tests that run under `nohup` hand on that SIGHUP is ignored.
        if name == "HUP" && is_hangup_ignored() {
            continue;
        }
        let mark = format!("interrupted-{mark}-{}", std::process::id());
        let (project, child) = start(&mark);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains(r#""status":"interrupted""#), "{stdout}");
        wait_for("the stage's processes to end", || marked(&mark).is_empty());
        let shown = project.run(&["runs", "--json"]);
        assert!(shown.stdout.contains(r#""status": "interrupted""#), "{}", shown.stdout);
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let mark = format!("stubborn-{}", std::process::id());
    let project = Project::new(
        pipeline("stubborn")
            .run("a", "trap '' TERM; while true; do sleep 0.1; done")
            .set("env", format!("{{ MARK: {mark} }}"))
            .output("x", "x.txt"),
    );
    let child = project.command(&["exec", "p.yaml", "-q"]).spawn().unwrap();
    wait_for("the stage", || {
        marked(&mark).iter().any(|line| line.starts_with("sleep"))
    });
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
}
