//! `env/python` in pipelines: training and evaluation, the key, kills and faults.
//!
//! They need an interpreter with gymnasium and numpy: `RUNNER_TEST_PYTHON`.

use super::python_stages::python;
use crate::{Ended, Project, marked, wait_for};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PIPELINE: &str = "\
version: 1
name: own_env
stages:
  env:
    uses: env/python
    with: { WHAT, python: PYTHON }
  train:
    uses: train/ppo
    needs: { env: env }
    with: \
{ total_timesteps: STEPS, n_envs: 8, n_steps: 64, batch_size: 128, n_epochs: 4, learning_rate: 1e-3, gamma: 0.98, seed: 1, checkpoint_interval: 0.01 }
    resources: { threads: THREADS }
  evaluate:
    uses: evaluate/backtest
    needs: { env: env, policy: train }
    with: { episodes: 10 }
";

/// A chain whose end pays, with a helper, a time limit, and random rewards.
const MODULE: &str = "\
import gymnasium
import numpy as np
from helpers.limits import LIMIT


class Chain(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.shown(), {}

    def shown(self):
        return np.full(1, self.at / 10, np.float32)

    def step(self, action):
        self.at = min(max(self.at + (1 if action else -1), 0), 10)
        self.steps += 1
        reward = self.at / 10 + 0.01 * self.np_random.normal()
        return self.shown(), reward, False, self.steps == LIMIT, {}


def make(**kwargs):
    return Chain(**kwargs)
";

fn pipeline(what: &str, python: &str, steps: u32, threads: u32) -> String {
    PIPELINE
        .replace("WHAT", what)
        .replace("PYTHON", python)
        .replace("STEPS", &steps.to_string())
        .replace("THREADS", &threads.to_string())
}

fn project(pipeline: &str) -> Project {
    let project = Project::new(pipeline);
    project.write("my_envs.py", MODULE);
    project.write("helpers/__init__.py", "");
    project.write("helpers/limits.py", "LIMIT = 20\n");
    project
}

fn ok(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.text());
}

fn summary(project: &Project) -> Value {
    let shown = project.run(&["show", "--json", "latest/evaluate.metrics"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["meta"]["summary"].clone()
}

/// A random policy balances the pole for 22 steps.
#[test]
fn ppo_learns_cart_pole_of_gymnasium() {
    let Some(python) = python() else { return };
    let project = project(&pipeline("id: CartPole-v1", &python, 32_768, 2));
    let ended = project.exec(&[]);
    ok(&ended);
    let summary = summary(&project);
    let of = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("no {name}: {summary}"));
    assert!(of("episodic_return") > 150.0, "{summary}");
    // A reward of 1 a step, as in `env/classic`.
    assert_eq!(of("episodic_return"), of("episodic_length"), "{summary}");
    assert_eq!(of("episodes"), 10.0);
    let again = project.exec(&[]);
    assert_eq!(again.stages("ran"), Vec::<String>::new(), "{}", again.text());
}

#[test]
fn modules_arguments_and_packages_are_in_the_key() {
    let Some(python) = python() else { return };
    let what = "call: my_envs:make";
    let project = project(&pipeline(what, &python, 1024, 1));
    let first = project.exec(&[]);
    ok(&first);
    // Threads, and so processes, are not.
    project.write("p.yaml", pipeline(what, &python, 1024, 2));
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    let two = project.exec(&["--force", "train"]);
    ok(&two);
    assert_eq!(two.digests(), first.digests());
    project.write("unused.py", "x = 1\n");
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    project.write("helpers/limits.py", "LIMIT = 20  # steps\n");
    let why = project.run(&["why", "p.yaml", "env"]).text();
    assert!(why.contains("project/helpers/limits.py"), "{why}");
    let edited = project.exec(&[]);
    assert_eq!(edited.stages("ran"), ["env", "train", "evaluate"], "{}", edited.text());
    // The environment holds the module's text: the trained policy's bytes are those of before.
    assert_eq!(edited.digests()["train"], first.digests()["train"]);
    project.write("p.yaml", pipeline(&format!("{what}, time_limit: 50"), &python, 1024, 2));
    assert_eq!(project.exec(&[]).stages("ran")[0], "env");
    let plan = project.run(&["plan", "p.yaml", "--set", "env.with.call=my_envs:Chain"]);
    assert!(plan.text().contains("env"), "{}", plan.text());
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let Some(python) = python() else { return };
    for (what, expected) in [
        ("id: 3", "`id` of `env`"),
        ("kwargs: { a: 1 }", "neither `id` nor `call` is given"),
        ("id: CartPole-v1, call: my_envs:make", "both `id` and `call` are given"),
        ("call: my_envs.make", "`my_envs.make` is not MODULE:FUNCTION"),
        ("call: nowhere:make", "there is no module `nowhere`"),
        (
            "id: CartPole-v1, files: [../secret]",
            "is not a file below the directory of the modules",
        ),
        ("id: CartPole-v1, files: [missing.csv]", "there is no file"),
        ("id: CartPole-v1, time_limit: 0", "must be from 0.1"),
        (
            "id: CartPole-v1, kwargs: { a.b: 1 }",
            "cannot be the name of an argument",
        ),
    ] {
        let project = project(&pipeline(what, &python, 1024, 1));
        let ended = project.exec(&[]);
        assert_eq!(ended.code, 2, "{what}: {}", ended.text());
        assert!(ended.text().contains(expected), "{what}: {}", ended.text());
        assert!(ended.text().contains("p.yaml:"), "{what}: {}", ended.text());
    }
    let project = project(&pipeline("id: CartPole-v1", "./nowhere", 1024, 1));
    assert!(project.exec(&[]).text().contains("there is no interpreter"));
}

#[test]
fn killed_and_resumed_to_the_same_bytes() {
    let Some(python) = python() else { return };
    let text = pipeline("call: my_envs:make", &python, 12_288, 2);
    let reference = project(&text).exec(&[]);
    ok(&reference);
    let project = project(&text);
    let mut resumed = 0_u128;
    for _ in 0..6 {
        let mut child = project
            .command(&["exec", "p.yaml", "-q"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let scratch = project.home().join("scratch");
        let began = Instant::now();
        while began.elapsed().as_millis() < 1500 + 300 * resumed && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        resumed += u128::from(!crate::files(&scratch).is_empty());
    }
    let ended = project.exec(&[]);
    ok(&ended);
    assert_eq!(ended.digests(), reference.digests());
    assert!(resumed > 0, "never killed while it trained");
}

/// A module whose environment hangs after the trial of the stage.
fn hanging() -> String {
    MODULE
        .replace("self.steps += 1\n", "self.steps += 1\n        wait(self.np_random)\n")
        .replace(
            "\n\ndef make",
            "\n\ndone = 0\n\ndef wait(random):\n    global done\n    done += 1\n    while done > \
            200:\n        pass\n\n\ndef make",
        )
}

#[test]
fn no_process_outlives_a_run_that_is_killed() {
    let Some(python) = python() else { return };
    let project = project(&pipeline("call: my_envs:make", &python, 12_288, 2));
    project.write("my_envs.py", hanging());
    let home = project.home();
    let mark = home.to_str().unwrap();
    let workers = || -> Vec<String> {
        let all = marked(mark);
        all.into_iter().filter(|line| line.contains(" -B -s -c ")).collect()
    };
    let mut child = project
        .command(&["exec", "p.yaml", "-q"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..120 {
        if workers().len() == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    // Into the endless loop.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(workers().len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the workers", || marked(mark).is_empty());
}

#[test]
fn a_fault_fails_the_stage_and_nothing_is_cached() {
    let Some(python) = python() else { return };
    let project = project(&pipeline("call: my_envs:make", &python, 12_288, 2));
    project.write(
        "my_envs.py",
        hanging().replace(
            "    while done > 200:\n        pass\n",
            "    assert done <= 200, 'too much'\n",
        ),
    );
    for _ in 0..2 {
        let failed = project.exec(&[]);
        assert_eq!(failed.code, 1, "{}", failed.text());
        let text = failed.text();
        assert!(
            text.contains("of `my_envs:make` raised: AssertionError: too much"),
            "{text}"
        );
        assert!(text.contains("in wait"), "{text}");
        assert!(!text.contains("<string>"), "{text}");
    }
    project.write("my_envs.py", MODULE);
    ok(&project.exec(&[]));
}

/// Prices of 60 days.
fn prices() -> String {
    let day = |i: usize| format!("2024-{:02}-{:02},{}\n", 1 + i / 28, 1 + i % 28, 100 + i * i % 7);
    format!("date,close\n{}", (0..60).map(day).collect::<String>())
}

/// An environment of prices.
const PRICED: &str = "\
import csv
import gymnasium
import numpy as np


class Priced(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1e3, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        with open('prices.csv') as file:
            self.closes = [float(row['close']) for row in csv.DictReader(file)]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.full(1, self.closes[0], np.float32), {}

    def step(self, action):
        self.t += 1
        return np.full(1, self.closes[self.t], np.float32), float(action), False, self.t == 10, {}


def make():
    return Priced()
";

/// The check of look-ahead changes data, and no interpreters, records of packages or modules; what it does
/// not compare has not passed.
#[test]
fn look_ahead_is_checked_beside_environments_in_python() {
    let Some(python) = python() else { return };
    let beside = "  prices: \
        { run: 'cat prices.csv > ${outputs.prices}', files: [prices.csv], outputs: { prices: copy.csv } }\n";
    let check = |what: &str| {
        let project = project(&format!("{}{beside}", pipeline(what, &python, 1_024, 2)));
        project.write("priced.py", PRICED);
        project.write("prices.csv", prices());
        let ended = project.run(&["check", "lookahead", "p.yaml", "--at", "2024-02-10", "--json"]);
        assert!([0, 4].contains(&ended.code), "{}", ended.text());
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let named = |list: &str, name: &str| -> Vec<String> {
            let list = report[list].as_array().unwrap().iter();
            list.map(|item| item.get(name).unwrap_or(item).as_str().unwrap().to_owned())
                .collect()
        };
        (
            ended.code,
            named("sources", "name"),
            named("unchecked", "stage"),
            named("fixed", ""),
        )
    };
    let (code, sources, unchecked, fixed) = check("call: my_envs:make");
    assert_eq!((code, unchecked), (0, Vec::new()));
    assert_eq!(
        (sources, fixed),
        (vec!["prices: prices.csv".to_owned()], vec!["env.env".to_owned()])
    );
    let (code, sources, unchecked, fixed) = check("call: priced:make, files: [prices.csv]");
    assert_eq!((code, unchecked), (4, vec!["env".to_owned(), "train".to_owned()]));
    assert_eq!(sources, ["env: project/prices.csv", "prices: prices.csv"]);
    assert!(fixed.is_empty(), "{fixed:?}");
}
