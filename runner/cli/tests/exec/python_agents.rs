//! `train/python` in pipelines: what a function learns, returns and leaves behind, kills and faults.
//!
//! They need an interpreter with gymnasium and numpy: `RUNNER_TEST_PYTHON`.

use super::python_stages::python;
use crate::{Ended, Project, artifact, files, wait_for};
use runner_testkit::{PipelineText, pipeline};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// The example of docs/guides/own-agents.md.
const EVOLUTION: &str = include_str!("../../../../docs/agents/evolution.py");

/// A function of `my_agent.py` on an environment, and a backtest of what it returns.
fn training(python: &str, env: (&str, &str), steps: u32) -> PipelineText {
    pipeline("agents")
        .uses("env", env.0)
        .set("with", env.1)
        .uses("train", "train/python")
        .needs("env", "env")
        .with("call", "my_agent:train")
        .with("python", python)
        .with("n_envs", 16)
        .with("seed", 1)
        .with("total_timesteps", steps)
        .uses("evaluate", "evaluate/backtest")
        .needs("env", "env")
        .needs("policy", "train")
        .with("episodes", 16)
}

const CART_POLE: (&str, &str) = ("env/classic", "{ id: CartPole-v1 }");

fn project(pipeline: PipelineText, module: &str) -> Project {
    let project = Project::new(pipeline);
    project.write("my_agent.py", module);
    project
}

fn ok(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.text());
}

fn summary(project: &Project, output: &str) -> Value {
    let shown = project.run(&["show", "--json", output]);
    let shown: Value =
        serde_json::from_str(&shown.stdout).unwrap_or_else(|err| panic!("{err}: {}", shown.text()));
    shown["meta"]["summary"].clone()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name}: {value}"))
}

/// The metrics of a training, as its artifact has them.
fn metrics(project: &Project, ended: &Ended) -> Vec<Value> {
    let (store, artifact) = artifact(project, ended, "train.metrics");
    let entry = artifact.entry("metrics.jsonl").unwrap();
    let text = String::from_utf8(store.blob(entry.blob).unwrap().to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A random policy balances the pole for 22 steps.
#[test]
fn evolution_in_numpy_learns_cart_pole() {
    let Some(python) = python() else { return };
    let project = project(training(&python, CART_POLE, 200_000), EVOLUTION);
    let ended = project.exec(&[]);
    ok(&ended);
    let backtest = summary(&project, "latest/evaluate.metrics");
    assert!(number(&backtest, "episodic_return") > 300.0, "{backtest}");
    let lines = metrics(&project, &ended);
    for name in [
        "charts/episodic_return",
        "charts/population_std",
        "validation/return_greedy",
    ] {
        assert!(lines.iter().any(|line| line["name"] == name), "no {name}");
    }
    let events = ended.events();
    let reported = |name: &str| {
        events
            .iter()
            .any(|event| event["event"] == "metric" && event["name"] == name)
    };
    for name in ["time/environment", "time/python", "time/validation", "charts/SPS"] {
        assert!(reported(name), "no {name}");
    }
    let shown = project.run(&["policy", "show", "latest/train"]);
    assert_eq!(shown.code, 0, "{}", shown.text());
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
}

/// A function that starts a process and does not wait for it.
const STARTS: &str = "\
import subprocess
import numpy as np
from runner.trained import Weights

def train(ctx, env, total_timesteps, fails=False):
    subprocess.Popen(['sleep', '1234'])
    if fails:
        raise ValueError('after all')
    tensors = {'action.weight': np.zeros((4, 2)), 'action.bias': np.zeros(2), 'value.weight': np.zeros((4, 1)), 'value.bias': np.zeros(1)}
    return Weights(tensors, {'pi': [], 'vf': []})
";

#[test]
fn no_process_outlives_the_function() {
    let Some(python) = python() else { return };
    let project = project(training(&python, CART_POLE, 1_000), STARTS);
    let home = project.home().display().to_string();
    let fails = project.exec(&["train", "--set", "train.with.kwargs={ fails: true }"]);
    assert_eq!(fails.code, 1, "{}", fails.text());
    ok(&project.exec(&["train"]));
    wait_for("its processes to end", || pids(&home, "sleep").is_empty());
}

/// The threads of the stage step the environments, and change nothing.
#[test]
fn threads_of_the_stage_do_not_matter() {
    let Some(python) = python() else { return };
    let digests = [1, 3].map(|threads| {
        let pipeline = training(&python, CART_POLE, 20_000);
        let text = pipeline.to_string().replace(
            "uses: train/python",
            &format!("uses: train/python\n    resources: {{ threads: {threads} }}"),
        );
        let project = Project::new(text);
        project.write("my_agent.py", EVOLUTION);
        let ended = project.exec(&[]);
        ok(&ended);
        ended.digests()
    });
    assert_eq!(digests[0], digests[1]);
}

fn pids(home: &str, what: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let has = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
        let (environment, command) = (read("environ"), read("cmdline"));
        if has(&environment, home) && has(&command, what) {
            found.extend(entry.file_name().to_string_lossy().parse::<i32>().ok());
        }
    }
    found
}

fn kill(pid: i32) {
    let status = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    drop(status);
}

#[test]
fn killed_at_any_moment_ends_in_the_same_bytes() {
    let Some(python) = python() else { return };
    let pipeline = || training(&python, CART_POLE, 1_500_000);
    let reference = project(pipeline(), EVOLUTION);
    let ended = reference.exec(&[]);
    ok(&ended);
    // How often checkpoints are written changes nothing.
    let text = pipeline().to_string();
    let line = text.lines().find(|line| line.trim() == "n_envs: 16").unwrap();
    let interval = line.replace("n_envs: 16", "checkpoint_interval: 0.001");
    let often = text.replace(line, &format!("{line}\n{interval}"));
    let project = Project::new(often);
    project.write("my_agent.py", EVOLUTION);
    let home = project.home().display().to_string();
    let mut killed = [0; 2];
    for i in 1..=10_u64 {
        let began = std::time::SystemTime::now();
        let mut child = project
            .command(&["exec", "p.yaml", "-q"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let written = || {
            let scratch = files(&project.home().join("scratch"));
            let checkpoint = scratch.iter().find(|path| path.ends_with("checkpoint.safetensors"));
            checkpoint.and_then(|path| path.metadata().ok()?.modified().ok())
        };
        wait_for("another checkpoint", || {
            written().is_some_and(|time| time > began) || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_millis(i * 37 % 101 * 4));
        // The function's process, or all of the run's.
        let functions = if i % 2 == 0 {
            pids(&home, "Runs an algorithm")
        } else {
            Vec::new()
        };
        killed[0] += usize::from(!functions.is_empty());
        functions.iter().for_each(|&pid| kill(pid));
        if functions.is_empty() {
            killed[1] += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
        }
        child.wait().unwrap();
    }
    assert!(killed[0] > 2 && killed[1] > 2, "{killed:?} of 10 kills");
    let resumed = project.exec(&[]);
    ok(&resumed);
    // On a quick machine the last of the killed runs may have stored its policy.
    let goes_on = resumed.stdout.contains("resuming from the checkpoint");
    assert!(
        goes_on || resumed.stages("cached").contains(&"train".to_owned()),
        "{}",
        resumed.text()
    );
    assert_eq!(resumed.digests(), ended.digests());
    wait_for("the functions to end", || pids(&home, "Runs an algorithm").is_empty());
}

#[test]
fn mistakes_in_settings_are_found_before_anything_runs() {
    let Some(python) = python() else { return };
    let pipeline = training(&python, CART_POLE, 2_000).to_string();
    for (what, expected) in [
        ("total_timesteps: 0", "`total_timesteps` is required"),
        ("call: my_agent.train", "is not MODULE:FUNCTION"),
        ("call: nowhere:train", "there is no module `nowhere`"),
        ("n_envs: 0", "must be at least 1"),
        ("device: ''", "no device is given"),
        ("kwargs: { total_timesteps: 3 }", "is given by `total_timesteps`"),
        ("kwargs: { a.b: 1 }", "cannot be the name of an argument"),
        ("time_limit: 0", "must be from 0.1"),
        ("validation: { episodes: 0 }", "must be at least 1"),
        ("files: [../secret]", "is not a file below"),
        ("python: nowhere", "no program `nowhere`"),
    ] {
        let (key, value) = what.split_once(": ").unwrap();
        let text: String = pipeline
            .lines()
            .map(|line| match line.split_once("call: my_agent:train") {
                Some((head, rest)) if key == "call" => format!("{head}{what}{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let set = format!("train.with.{key}={value}");
        let project = Project::new(text);
        project.write("my_agent.py", EVOLUTION);
        let args: &[&str] = if key == "call" { &[] } else { &["--set", &set] };
        let ended = project.run(&[&["plan", "p.yaml"], args].concat());
        assert_eq!(ended.code, 2, "{what}: {}", ended.text());
        assert!(ended.text().contains(expected), "{what}: {}", ended.text());
    }
    let project = Project::new(&pipeline);
    project.write(
        "my_agent.py",
        "import runner\ndef train(ctx, env, total_timesteps): pass\n",
    );
    project.write("runner.py", "");
    let ended = project.run(&["plan", "p.yaml"]);
    assert!(
        ended.text().contains("has the name of the package `runner`"),
        "{}",
        ended.text()
    );
}
