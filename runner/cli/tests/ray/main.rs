//! Pipelines on a real Ray cluster of three nodes on this machine, with a directory as the remote store. They
//! end in the digests of a local run, whatever is killed meanwhile.
//!
//! `RUNNER_TEST_RAY` is a Python with Ray; without it these tests are listed as ignored.

#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use requirements::trial;
use runner_testkit::{Ended, PipelineText, Project, Ray, files, missing_ray, pipeline};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let missing = missing_ray();
    requirements::run(vec![
        trial("a_sweep", missing, a_sweep),
        trial("trainings_and_a_population", missing, trainings_and_a_population),
        trial(
            "results_without_a_key_on_the_nodes",
            missing,
            results_without_a_key_on_the_nodes,
        ),
        trial("a_ray_that_is_not_there", missing, a_ray_that_is_not_there),
        trial("an_interrupted_run", missing, faults::an_interrupted_run),
        trial("nodes_and_workers_killed", missing, faults::nodes_and_workers_killed),
        trial("engines_killed", missing, faults::engines_killed),
        trial("the_head_killed", missing, faults::the_head_killed),
    ])
}

/// A project whose stages run on a cluster, with a remote store in its directory.
fn on(ray: &Ray, pipeline: impl std::fmt::Display) -> Project {
    let project = Project::new(pipeline);
    let remote = remote_of(&project);
    project.write("home/config.yaml", remote + &ray.executors(&project, ""));
    project
}

/// The block `remote:` with a directory of the project.
fn remote_of(project: &Project) -> String {
    let path = project.path("remote");
    format!("remote: {{ url: {}, trust: unsigned }}\n", path.display())
}

fn command(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(&[&["exec", "p.yaml", "--json", "--executor", "ray"], args].concat());
    command.env("RAY_gcs_rpc_server_reconnect_timeout_s", "10");
    command
}

fn exec(project: &Project, args: &[&str]) -> Ended {
    command(project, args).output().unwrap().into()
}

/// The hosts and jobs in the records of a home.
fn records(project: &Project) -> Vec<serde_json::Value> {
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        serde_json::from_str(text.lines().next()?).ok()
    };
    files(&project.home().join("actions"))
        .into_iter()
        .filter_map(read)
        .collect()
}

const POLICY: &str = "{ net_arch: { pi: [16], qf: [16] } }";

/// A sweep of trainings of that many steps over `seeds`.
fn sweep(seeds: usize, steps: u64) -> PipelineText {
    pipeline("sweep")
        .uses("env", "env/classic")
        .with("id", "Pendulum-v1")
        .uses("train", "train/td3")
        .needs("env", "env")
        .matrix("seed", format!("{{ from: 1, to: {seeds} }}"))
        .with("seed", "\"${matrix.seed}\"")
        .with("total_timesteps", steps)
        .with("batch_size", 32)
        .with("policy_kwargs", POLICY)
}

fn a_sweep() {
    let ray = Ray::start(3);
    let project = on(&ray, sweep(64, 300));
    let ended = exec(&project, &[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let here = Project::new(sweep(64, 300)).exec(&[]);
    assert_eq!(ended.digests(), here.digests());
    let records = records(&project);
    let remote = records
        .iter()
        .filter(|record| record["record"]["info"]["executor"] == "ray");
    let jobs: std::collections::BTreeSet<_> = remote
        .map(|record| record["record"]["info"]["job"].to_string())
        .collect();
    assert_eq!(jobs.len(), 65);
    // The results came by the remote store, and other homes have them from there.
    let elsewhere = Project::new(sweep(64, 300));
    elsewhere.write("home/config.yaml", remote_of(&project));
    let ended = elsewhere.exec(&[]);
    assert_eq!(ended.stages("cached").len(), 65, "{}", ended.text());
    // A second run finds everything.
    assert_eq!(exec(&project, &[]).stages("cached").len(), 65);
}

/// Trainings of several seeds, a population of eight, and an evaluation.
fn trainings() -> PipelineText {
    sweep(6, 1500)
        .uses("pbt", "train/pbt")
        .needs("env", "env")
        .with("trainer", "train/td3")
        .with("pop_size", 8)
        .with("interval", 500)
        .with("seed", 3)
        .with("search_space", "{ learning_rate: { low: 1e-4, high: 1e-2 } }")
        .with(
            "with",
            format!("{{ total_timesteps: 1000, batch_size: 32, policy_kwargs: {POLICY} }}"),
        )
        .uses("evaluate", "evaluate/backtest")
        .needs("env", "env")
        .needs("policy", "pbt.policy")
        .with("episodes", 2)
}

fn trainings_and_a_population() {
    let ray = Ray::start(3);
    let project = on(&ray, trainings());
    let ended = exec(&project, &[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let here = Project::new(trainings()).exec(&[]);
    assert_eq!(here.code, 0, "{}", here.text());
    assert_eq!(ended.digests(), here.digests());
    assert!(ended.stdout.contains("\"metric\""), "metrics arrive");
}

fn results_without_a_key_on_the_nodes() {
    let ray = Ray::start(2);
    let project = on(&ray, sweep(4, 300));
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cache/remote/tests/keys/one");
    let remote = format!(
        "remote: {{ url: {}, sign_key_file: {key} }}\n",
        project.path("remote").display()
    );
    project.write("home/config.yaml", remote + &ray.executors(&project, ""));
    let ended = exec(&project, &[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    // Every record is signed, and none is of a node.
    let signed = files(&project.path("remote/actions"));
    assert_eq!(signed.len(), 5);
    for path in signed {
        assert!(
            std::fs::read_to_string(&path).unwrap().contains("ssh-ed25519"),
            "{}",
            path.display()
        );
    }
    assert!(files(&project.path("node/actions")).is_empty());
    let secret: Vec<String> = std::fs::read_to_string(key)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    for path in files(&project.path("node"))
        .into_iter()
        .filter(|path| !path.starts_with("programs"))
    {
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&bytes).contains(&secret[1]),
            "{}",
            path.display()
        );
    }
}

fn a_ray_that_is_not_there() {
    let project = Project::new(sweep(2, 300));
    let remote = remote_of(&project);
    let executor = |settings: &str| {
        project.write(
            "home/config.yaml",
            format!("{remote}executors: {{ ray: {{ kind: ray, {settings} }} }}\n"),
        );
        let ended = exec(&project, &[]);
        assert!(ended.stdout.is_empty(), "nothing ran: {}", ended.stdout);
        (
            ended.code,
            ended.stderr.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
        )
    };
    let (code, text) = executor("python: no-such-python");
    assert_eq!(code, 2);
    assert!(
        text.contains("cannot start `no-such-python`") && text.contains("pip install ray"),
        "{text}"
    );
    let (code, text) = executor("python: /usr/bin/python3");
    assert_eq!(code, 2);
    assert!(
        text.contains("has no Ray") && text.contains("pip install ray"),
        "{text}"
    );
    let python = runner_testkit::ray_python().unwrap();
    let (code, text) = executor(&format!("python: {python}, address: \"127.0.0.1:1\""));
    assert_eq!(code, 2);
    assert!(text.contains("127.0.0.1:1"), "{text}");
    // The nodes could not write there.
    project.write(
        "home/config.yaml",
        format!(
            "remote: {{ url: {}, trust: unsigned, read_only: true }}\n\
             executors: {{ ray: {{ kind: ray, python: {python} }} }}\n",
            project.path("remote").display()
        ),
    );
    let ended = exec(&project, &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("it is only read"), "{}", ended.stderr);
}
